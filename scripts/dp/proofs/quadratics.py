"""Noisy quadratic objectives w'Aw/2 - b.w: symmetric noise, and minimisers.

Whatever is computed only from noisy coefficients and public numbers is post-processing.
"""

import functools
import itertools
from collections.abc import Callable, Iterable

import numpy as np

from dp.noise import gaussian

REPAIRS = ("ridge", "trim", "none")


def moments(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X'X (d, d) and X'y (d,)."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    return X.T @ X, X.T @ y


def coefficients(d: int) -> int:
    """Number of distinct monomials of degree 1 and 2 in d variables."""
    return d + d * (d + 1) // 2


@functools.cache
def _positions(d):
    """Positions (d, d) of a symmetric matrix's entries in `unpack`'s vectors, after d linear terms."""
    rows, columns = np.triu_indices(d)
    positions = np.zeros((d, d), dtype=int)
    positions[rows, columns] = positions[columns, rows] = np.arange(d, coefficients(d))
    return positions


def unpack(values: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the monomials as a symmetric matrix and a vector.

    values: (restarts, d + d(d+1)/2), coefficients of w_1, .., w_d, then of w_j w_k, j <= k, row by row.
    Returns Q (restarts, d, d) and c (restarts, d), where the polynomial is w'Qw + c.w.
    """
    return values[:, _positions(d)] * np.where(np.eye(d) > 0, 1.0, 0.5), values[:, :d]


def isotropic(values: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit normals as a symmetric matrix E, isotropic in the Frobenius norm, and a vector.

    Diagonal entries have variance 1, and others 1/2. So <E, S>_F is standard normal for every symmetric S
    of unit norm. Adding sigma E is the Gaussian mechanism for a sensitivity in the Frobenius norm. values:
    (restarts, d + d(d+1)/2).
    """
    unit = np.where(np.eye(d) > 0, 1.0, np.sqrt(0.5))
    return values[:, _positions(d)] * unit, values[:, :d]


def upper_triangle(values: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """As `isotropic`, but all entries have variance 1."""
    E, e = isotropic(values, d)
    return E * np.where(np.eye(d) > 0, 1.0, np.sqrt(2)), e


def noisy(A: np.ndarray, sigma: float, draws: int, rng: np.random.Generator) -> np.ndarray:
    """A (d, d) plus isotropic noise of standard deviation sigma on the diagonal, (draws, d, d)."""
    d = len(A)
    return A + isotropic(gaussian(coefficients(d), sigma, draws, rng), d)[0]


def inverse(A: np.ndarray, ridge: float | np.ndarray, floor: float | None = None) -> np.ndarray:
    """Inverses (draws, d, d) of noisy positive semidefinite A (draws, d, d), made definite.

    Negative eigenvalues become 0, then all grow by `ridge` > 0, a number or (draws,). With `floor` > 0, all
    grow by the ridge first, then those below `floor` become `floor`.
    """
    values, vectors = np.linalg.eigh(A)
    ridge = np.reshape(ridge, (-1, 1))
    if floor is None:
        inverted = 1 / (np.maximum(values, 0.0) + ridge)
    else:
        inverted = 1 / np.maximum(values + ridge, floor)
    return (vectors * inverted[:, None, :]) @ vectors.transpose(0, 2, 1)


def solve(
    A: np.ndarray, b: np.ndarray, deviation: float = 0.0, repair: str = "ridge"
) -> tuple[np.ndarray, np.ndarray]:
    """Minimisers of w'Aw/2 - b.w per restart, for noisy A with any eigenvalues.

    A: (restarts, d, d) symmetric. b: (restarts, d). deviation: the public standard deviation of the
    noise on A's diagonal. Returns weights (restarts, d) and unbounded (restarts,), whether the
    quadratic has no minimum.

    repair:
      "ridge"  every eigenvalue grows by sqrt(d) deviation, of the order of the noise's spectral norm.
               Those still below `deviation` become `deviation`, so all quadratics are bounded
      "trim"   w is orthogonal to directions whose eigenvalues are not positive (Zhang et al., PVLDB 5,
               2012, section 6.2)
      "none"   the weights are NaN if the quadratic has no minimum
    """
    d = A.shape[-1]
    values, vectors = np.linalg.eigh(A)
    # Eigenvalues within rounding of zero do not count as positive.
    least = d * np.finfo(float).eps * np.abs(values).max(axis=1, initial=0.0, keepdims=True)
    positive = values > least
    unbounded = ~positive.all(axis=1)
    if repair == "ridge" and deviation > 0:
        values = np.maximum(values + np.sqrt(d) * deviation, deviation)
        positive = np.ones_like(positive)
    inverse = np.where(positive, 1 / np.where(positive, values, 1.0), 0.0)
    part = np.einsum("rji,rj->ri", vectors, b) * inverse
    weights = np.einsum("rij,rj->ri", vectors, part)
    if repair == "none":
        weights[unbounded] = np.nan
    return weights, unbounded


def adam(A: np.ndarray, b: np.ndarray, steps: int, learning_rate: float = 0.001) -> np.ndarray:
    """Weights (restarts, d) after `steps` steps of Adam on w'Aw/2 - b.w from zero."""

    def gradient(weights):
        return times(A, weights) - b

    return descend(itertools.repeat(gradient, steps), b.shape, learning_rate)


def times(A: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Products (restarts, d) of matrices (restarts, d, d) and vectors (restarts, d)."""
    return (A @ weights[:, :, None])[:, :, 0]


def descend(
    gradients: Iterable[Callable[[np.ndarray], np.ndarray]],
    shape: tuple[int, int],
    learning_rate: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    stabiliser: float = 1e-8,
) -> np.ndarray:
    """Adam (Kingma, Ba, ICLR 2015) from zero, with one step per gradient.

    gradients: functions from weights (restarts, d) to gradients of the same shape. No step changes a
    coordinate by much more than the learning rate, however steep the objective. So if steps x learning_rate
    is small, the first gradients' signs determine the result. Returns weights of `shape`, (restarts, d).
    """
    weights, mean, square = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for step, gradient_at in enumerate(gradients, start=1):
        gradient = gradient_at(weights)
        mean = beta1 * mean + (1 - beta1) * gradient
        square = beta2 * square + (1 - beta2) * gradient * gradient
        corrected = np.sqrt(square / (1 - beta2**step)) + stabiliser
        weights = weights - learning_rate * mean / (1 - beta1**step) / corrected
    return weights
