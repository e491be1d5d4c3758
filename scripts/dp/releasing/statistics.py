"""Releases besides weights: Hessians, second moments of slopes, and slopes' mean squares.

They are *sums* over the records, at the released weights projected onto a public ball. By lemma 2
(`dp.releasing.lattice`) each is a Gaussian release. For rows of norm at most 1, ||x x' - z z'||_F <=
sqrt(2):

    Hessian       sum of l'' x x', l'' in [0, c]                sensitivity sqrt(2) c
    scores        sum of a^2 x x', a = l'/kappa in [-1, 1]      sqrt(2)
    mean square   sum of a^2                                    1

A row of zeros adds nothing to the first two, and at most 1 to the last. A matrix is the vector (M_ii,
sqrt(2) M_ij, i < j), whose Euclidean norm is M's Frobenius norm, with equal noise on every coordinate:
`dp.privacy.quadratics.isotropic`.

Rounding, with u = 2^-53 and p the point: a score is p.x exactly to u |p.x| and tiny parts
(`tilt.gradient`). The weight l'' or a^2 of a record then errs by less than 25 u (ten roundings of a slope
count twice, and |z l'''| < 1 twice), and for log-cosh by 2 u (0.77/tau) more, since |l'''| <= 0.77/tau
meets the rounding of y and the score. (Logistic loss: |l'''| <= 0.1.) A block of 2^11 rows and n/2^11
blocks are added, and the products and sqrt(2) are rounded five times. So n records' sum is within

    rho = 1.02 n u (3 (1 + (d+2) sqrt(d) 2^-32 ||p||) max(1, 0.77/tau) + 30 + (2^11 + n/2^11 + 10) a) +
    1e-290,

a = c or 1, in the Frobenius norm, in any order of summation (P1), with P2 for exp and tanh.
"""

import math
from fractions import Fraction

import numpy as np

from dp.data.examples import slices
from dp.releasing.lattice import root
from dp.releasing.tilt import BLOCK, Problem, U, split, unit_slopes

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
    """rho of the module's docstring. longest: bound on the point's norm."""
    n, low = problem.n, problem.low(longest)
    bend = max(1.0, 0.77 / getattr(problem.loss, "tau", 1.0))
    size = problem.loss.c if kind == HESSIAN else 1.0
    total = 3 * (1 + low) * bend + 30 + (BLOCK + n / BLOCK + 10) * size
    return 1.02 * n * U * total + 1e-290


def within(point: np.ndarray, longest: float) -> np.ndarray:
    """The point, shortened to a public length if longer."""
    size = math.hypot(*point)
    return point if size <= longest else point * (longest / size)


def sums(
    kinds: list[str], problem: Problem, X: np.ndarray, y: np.ndarray, point: np.ndarray
) -> dict[str, np.ndarray]:
    """The vectors of the sums over all rows at the point (d,), by kind. X: (n, d), multiples of 2^-20."""
    hi, lo = split(point)
    both, d = np.stack([hi, lo], axis=1), problem.d
    total = {kind: np.zeros(() if kind == SQUARE else (d, d)) for kind in kinds}
    for rows in slices(problem.n, BLOCK):
        block = X[rows].astype(float)
        scores = block @ both
        scores = scores[:, 0] + scores[:, 1]
        for kind in kinds:
            weight = _weights(kind, problem.loss, scores, y[rows])
            total[kind] += weight.sum() if kind == SQUARE else (block.T * weight) @ block
    return {kind: vector(value) for kind, value in total.items()}


def _weights(kind, loss, scores, y):
    """l'' or a^2 per row. Rows of zeros with the label 0 may get any weight in a matrix."""
    slope = unit_slopes(loss, scores, y)
    if kind != HESSIAN:
        return slope * slope
    if loss.residual:
        return np.maximum(1.0 - slope * slope, 0.0)
    size = np.abs(slope)
    return size * (1.0 - size)


def vector(matrix: np.ndarray) -> np.ndarray:
    """(M_ii, sqrt(2) M_ij) of a symmetric matrix row by row; a number as a vector of one."""
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
