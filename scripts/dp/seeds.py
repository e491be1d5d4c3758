"""Random generators that depend on what a draw is for, and never on the order in which jobs run."""

import hashlib

import numpy as np


def _words(axis):
    """Two 32-bit words that identify `axis`, by blake2b, because `hash()` differs between processes."""
    digest = hashlib.blake2b(str(axis).encode(), digest_size=8).digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")


def generator(seed: int, *axes) -> np.random.Generator:
    """The generator for one purpose.

    seed: the configuration's only seed, a non-negative integer.
    axes: what the draw is for, such as (experiment, data set, method, fold, purpose); anything with
        a stable `str`. If epsilon and the training size are left out, curves along them share their
        unit draws (common random numbers).

    Whoever knows the seed can regenerate a draw: it is reproducible, not secret.
    """
    spawn_key = tuple(word for axis in axes for word in _words(axis))
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=spawn_key)))
