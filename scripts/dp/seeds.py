"""Random generators that depend on the purpose of a draw, not on the order of jobs."""

import hashlib

import numpy as np


def _words(axis):
    """Two 32-bit words that identify `axis`. `hash()` would differ between processes."""
    digest = hashlib.blake2b(str(axis).encode(), digest_size=8).digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")


def generator(seed: int, *axes) -> np.random.Generator:
    """The generator for one purpose. Its draws are reproducible, not secret.

    seed: the configuration's only seed, a non-negative integer. axes: the draw's purpose, such as
    (experiment, data set, method, fold, purpose), each with a stable `str`. Curves over an omitted axis,
    such as epsilon or the training size, use common random numbers.
    """
    spawn_key = tuple(word for axis in axes for word in _words(axis))
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=spawn_key)))
