"""Statistics released besides weights: Hessians, second moments of slopes, and mean squares of slopes.

They are *sums* over the records, at the released weights projected onto a public ball. By lemma 2
(`dp_release.lattice`) each is a Gaussian release. For rows of norm at most 1, ||x x' - z z'||_F <=
sqrt(2):

    Hessian       sum of l'' x x', l'' in [0, c]                sensitivity sqrt(2) c
    scores        sum of a^2 x x', a = l'/kappa in [-1, 1]      sqrt(2)
    mean square   sum of a^2                                    1

A row of zeros adds nothing to the matrices, and at most 1 to the mean square. If a person has several rows
(`dp_release.persons`), sensitivities are those of one row times the largest total weight of a person
(`dp.proofs.person_tilt`). A matrix M is released as the
vector (M_ii, sqrt(2) M_ij, i < j), whose Euclidean norm is M's Frobenius norm, with equal noise on every
coordinate (`dp.proofs.quadratics.isotropic`).

Rounding, with u = 2^-53 and the point p: a score's error is u |p.x| plus negligible terms
(`tilt.gradient`). The error of a record's weight l'' or a^2 is then less than 25 u. (The weight is
quadratic in the slope, so the slope's ten roundings count twice, and so does the score's error times |z
l'''| < 1.) For log-cosh, the rounding of y and the score adds at most 2 u (0.77/tau) to this error, since
|l'''| <= 0.77/tau. (Logistic loss: |l'''| <= 0.1, which with an offset also bounds the effect of the first
rounding of a score, up to u O; see `tilt`.) The sum has n/2^11 blocks of 2^11 rows, and the products
and sqrt(2) are rounded five times. Let A = c for the Hessian, otherwise 1. So, under P1 and P2, in any
order of summation, the computed sum over n records differs from the exact one in Frobenius norm by at most

    rho = 1.02 n u (3 (1 + (d+2) sqrt(d) 2^-32 ||p|| + O) max(1, 0.77/tau) + 30 + (2^11 + n/2^11 + 10) A) +
    1e-290.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dp.rows import slices
from dp_release.lattice import root
from dp_release.tilt import BLOCK, Problem, U, split, unit_slopes

HESSIAN, SCORES, SQUARE = "hessian", "scores", "square"
SQRT2 = math.sqrt(2)


def coordinates(kind: str, d: int) -> int:
    """Length of the released vector."""
    return 1 if kind == SQUARE else d * (d + 1) // 2


def sensitivity(kind: str, problem: Problem) -> Fraction:
    """L2 sensitivity of the sum under replace-one, rounded up."""
    if kind == SQUARE:
        return Fraction(1)
    return root(Fraction(2)) * (Fraction(problem.loss.c) if kind == HESSIAN else 1)


def rounding(kind: str, problem: Problem, longest: float) -> float:
    """rho of the module docstring. longest: a bound on the point's norm."""
    n, low = problem.n, problem.low(longest)
    bend = max(1.0, 0.77 / getattr(problem.loss, "tau", 1.0))
    size = problem.loss.c if kind == HESSIAN else 1.0
    total = 3 * (1 + low + problem.most) * bend + 30 + (BLOCK + n / BLOCK + 10) * size
    return 1.02 * n * U * total + 1e-290


def within(point: np.ndarray, longest: float) -> np.ndarray:
    """The point, shortened to the norm `longest` if its norm is larger."""
    size = math.hypot(*point)
    return point if size <= longest else point * (longest / size)


def sums(
    kinds: list[str],
    problem: Problem,
    X: np.ndarray,
    y: np.ndarray,
    point: np.ndarray,
    shares: np.ndarray | None = None,
    entries: Callable | None = None,
    offset: float = 0.0,
) -> dict[str, np.ndarray]:
    """Each kind's sum at the point (d,), as a vector. X: (n, d), multiples of 2^-20.

    shares: weights (n,) of rows, or None. They are rounded into a record's weight once, within its 30 u.
    entries: what makes a vector of a matrix or a number, None for `vector`. offset: of all scores.
    """
    hi, lo = split(point)
    both, d = np.stack([hi, lo], axis=1), problem.d
    total = {kind: np.zeros(() if kind == SQUARE else (d, d)) for kind in kinds}
    for rows in slices(problem.n, BLOCK):
        block = X[rows].astype(float)
        scores = block @ both
        scores = scores[:, 0] + scores[:, 1] + offset
        for kind in kinds:
            weight = _weights(kind, problem.loss, scores, y[rows])
            if shares is not None:
                weight = weight * shares[rows]
            total[kind] += weight.sum() if kind == SQUARE else (block.T * weight) @ block
    return {kind: (entries or vector)(value) for kind, value in total.items()}


def _weights(kind, loss, scores, y):
    """l'' or a^2 of each row. Rows with the label 0 are zeros, so no matrix depends on their weights."""
    slope = unit_slopes(loss, scores, y)
    if kind != HESSIAN:
        return slope * slope
    if loss.residual:
        return np.maximum(1.0 - slope * slope, 0.0)
    size = np.abs(slope)
    return size * (1.0 - size)


def vector(matrix: np.ndarray) -> np.ndarray:
    """A symmetric matrix M as the vector of M_ii and sqrt(2) M_ij, i < j; or a number as a vector."""
    if matrix.ndim == 0:
        return matrix[None]
    i, j = np.triu_indices(len(matrix))
    return matrix[i, j] * np.where(i == j, 1.0, SQRT2)


def matrix(vector: np.ndarray, d: int) -> np.ndarray:
    """The symmetric matrix (d, d) of a vector from `vector`."""
    i, j = np.triu_indices(d)
    symmetric = np.zeros((d, d))
    symmetric[i, j] = vector / np.where(i == j, 1.0, SQRT2)
    symmetric[j, i] = symmetric[i, j]
    return symmetric
