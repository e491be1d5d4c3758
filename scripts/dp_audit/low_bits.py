"""An attack on the low-order bits of weights plus noise, at any noise scale.

A program that adds floating-point noise of scale s releases o = fl(w + fl(s z)). Here fl rounds, and z is a
draw of numpy's generator. For another centre w', often no draw gives o (Mironov, CCS 2012). An attacker who
knows both neighbours checks which centres can give each released coordinate.

- Normal draws up to 3.65 are k W[i] with k < 2^52 and 256 constants W[i] (the ziggurat method).
- Laplace draws are -log V or log V, where V is a multiple of 2^-52 (or rarely a float next to one).
"""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from dp.mechanisms import Mechanism
from dp.noise import gaussian, laplace
from dp.solvers.fits import FITS, fit_options
from dp_privacy.errors import Refused

__all__ = ["Found", "allowed", "attack"]

FAR = 3.65  # NumPy computes normal draws beyond FAR by another formula
BITS = 2.0**52
NEAR = np.arange(-2, 3)  # offsets to try around a rounded quotient
LOG = 4e-16  # relative error of a logarithm and the steps around it
SAMPLES = 12_000  # draws to find the constants from, at least 20 per constant
ROWS, COLUMNS, LAMBDA = 1000, 50, 0.01  # defaults of `attack`
BLOCK = 1 << 16  # numbers at a time, which fit in the cache with what is computed of them


@cache
def ziggurat() -> np.ndarray:
    """The 256 constants of the ziggurat method, from draws and their raw bits."""
    seen = {}
    for seed in range(SAMPLES):
        raw = int(np.random.PCG64(seed).random_raw())
        z = np.random.Generator(np.random.PCG64(seed)).standard_normal()
        k = raw >> 9 & (1 << 52) - 1
        if k:
            seen.setdefault(raw & 255, []).append((k, abs(z)))
    constants = np.empty(256)
    for layer, draws in seen.items():
        k, z = np.array(draws).T
        middle = np.median(z / k)
        simple = np.abs(z / k / middle - 1) < 1e-9  # the first draw was accepted
        near = middle + np.arange(-40, 41) * np.spacing(middle)
        right = (near[:, None] * k[simple] == z[simple]).all(axis=1)
        if len(seen) < 256 or not right.any():
            raise Refused("this numpy draws normal numbers in another way, which is not known here")
        constants[layer] = near[right][0]
    return constants


def normal_possible(released: np.ndarray, centre: np.ndarray, scale: float) -> np.ndarray:
    """Whether a normal draw can give each of `released` (m, d) from `centre` (d,)."""
    W = ziggurat()
    z = (released - centre) / scale
    k = np.rint(np.abs(z)[..., None] / W)[..., None] + NEAR
    drawn = np.sign(z)[..., None, None] * (np.maximum(k, 0) * W[:, None])
    right = (centre[:, None, None] + scale * drawn == released[..., None, None]) & (k < BITS)
    return right.any(axis=(-1, -2)) | (np.abs(z) > FAR)


def laplace_possible(released: np.ndarray, centre: np.ndarray, scale: float) -> np.ndarray:
    """Whether a Laplace draw can give each of `released` (m, d) from `centre` (d,)."""
    x = (released - centre) / scale
    V = np.exp(-np.abs(x)) * BITS
    known = LOG * (1 + np.abs(x)) + np.spacing(np.abs(released)) / scale  # error of x
    return np.abs(V - np.rint(V)) <= V * known


POSSIBLE = {gaussian: normal_possible, laplace: laplace_possible}


class Found(NamedTuple):
    """An attack's result.

    Attributes
    ----------
    right : float
        Share of releases assigned to the right data set.
    allowed : float
        Largest share that the (epsilon, delta) proven for real numbers allows.
    trials : int
        Number of releases.
    """

    right: float
    allowed: float
    trials: int

    @property
    def error(self) -> float:
        """Standard error of `right` if its expectation were `allowed`."""
        return math.sqrt(self.allowed * (1 - self.allowed) / self.trials)

    @property
    def broken(self) -> bool:
        """Whether `right` exceeds `allowed` by over four standard errors."""
        return self.right > self.allowed + 4 * self.error


def allowed(epsilon: float, delta: float = 0.0) -> float:
    """Largest share of releases that any attack can assign to the right neighbour.

    For equally likely neighbours, the share is (1 + TV)/2, where TV, the total variation distance of their
    releases, is at most (e^eps - 1 + 2 delta)/(e^eps + 1).

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1).

    Returns
    -------
    float

    Examples
    --------
    >>> print(f"{allowed(1.0):.3f}")
    0.731
    """
    return (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))


def neighbours(rows: int = ROWS, columns: int = COLUMNS) -> tuple:
    """Neighbours ((X, y), (X', y')) with rows of norm 1, which differ in the first label."""
    rng = np.random.default_rng(20)
    X = rng.standard_normal((rows, columns))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-12)
    y = np.where(X @ rng.standard_normal(columns) + 0.3 * rng.standard_normal(rows) > 0, 1, -1)
    other = y.copy()
    other[0] *= -1
    return (X, y), (X, other)


def guesses(
    released: np.ndarray,
    centres: list[np.ndarray],
    scale: float,
    possible: Callable = normal_possible,
) -> np.ndarray:
    """Guess which side, 0 or 1, each release (m, d) comes from.

    This side has fewer impossible coordinates or, in a tie, the nearer centre.
    """
    size = max(1, BLOCK // (256 * len(NEAR) * released.shape[1]))
    parts = [released[start : start + size] for start in range(0, len(released), size)]
    able = [
        np.concatenate([possible(part, centre, scale).sum(axis=1) for part in parts])
        for centre in centres
    ]
    norm = 1 if possible is laplace_possible else 2
    away = [np.linalg.norm(released - centre, ord=norm, axis=1) for centre in centres]
    return np.where(able[0] == able[1], away[1] < away[0], able[1] > able[0]).astype(int)


def attack(
    mechanism: Mechanism,
    epsilon: float,
    delta: float,
    trials: int,
    rng: np.random.Generator,
    sides: tuple | None = None,
    **options,
) -> Found | None:
    """Measure how often low-order bits of releases distinguish two neighbours.

    Parameters
    ----------
    mechanism : Mechanism
        A form of output perturbation; others give None.
    epsilon, delta : float
        Requested privacy.
    trials : int
        Releases on each side.
    rng : numpy.random.Generator
        Source of the mechanism's noise.
    sides : tuple or None
        ((X, y), (X', y')); by default, `neighbours()`.
    **options
        The mechanism's options, and lam.

    Returns
    -------
    Found or None
        None, which proves nothing, if releases are not fl(w + fl(s z)).

    Raises
    ------
    dp_privacy.errors.Refused
        If no finite epsilon is proven.

    Examples
    --------
    >>> import numpy as np
    >>> from dp.mechanisms import MECHANISMS
    >>> mechanism = MECHANISMS["output_perturbation_gaussian"]
    >>> found = attack(mechanism, 0.1, 1e-6, 20, np.random.default_rng(1))
    >>> found.right > 0.9, found.broken, round(found.allowed, 3)
    (True, True, 0.525)
    """
    if not hasattr(mechanism, "scale") or getattr(mechanism, "law", None) not in POSSIBLE:
        return None
    (X, y), other = neighbours() if sides is None else sides
    settings = {"epsilon": epsilon, "delta": delta, "lam": LAMBDA} | options
    p = mechanism.parameters(*X.shape, **settings)
    proven = mechanism.guarantee(*X.shape, **settings)
    if not math.isfinite(proven.epsilon):
        raise Refused("nothing finite is proven of it, for real numbers either")
    scale = mechanism.scale(*X.shape, p)
    named = {name: getattr(p, name) for name in mechanism.options}
    right, centres = 0, []
    for data in ((X, y), other):
        weights, _ = FITS[mechanism.fit](*data, p.lam, **fit_options(mechanism.fit, named))
        centres.append(weights[0, : X.shape[1]])
    for side, data in enumerate(((X, y), other)):
        released = mechanism.release(*data, restarts=trials, rng=rng, **settings).weights
        guessed = guesses(released, centres, scale, POSSIBLE[mechanism.law])
        right += int((guessed == side).sum())
    return Found(right / (2 * trials), allowed(proven.epsilon, proven.delta), 2 * trials)
