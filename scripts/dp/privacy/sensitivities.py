"""How far one record moves Gram matrices, Hessians and Newton steps, and ridges that cover their noise.

Rows have ||x||_2 <= R. All are for sums: for means, divide by a public n under replace-one. Matrices are
measured in the Frobenius norm, in which `dp.privacy.quadratics.isotropic` noise has the same standard
deviation in every direction.
"""

import math

import numpy as np

from dp.accounting import ADD_REMOVE, REPLACE_ONE


def _choose(adjacency, replace, add):
    if adjacency not in (REPLACE_ONE, ADD_REMOVE):
        raise ValueError(f"adjacency is {REPLACE_ONE} or {ADD_REMOVE}, not {adjacency!r}")
    return replace if adjacency == REPLACE_ONE else add


def vector_sum(norm: float, adjacency: str = REPLACE_ONE) -> float:
    """L2 sensitivity of a sum of vectors of norm at most C (clipped gradients): 2C replace-one, C
    add/remove."""
    return _choose(adjacency, 2 * norm, norm)


def gram(bound: float = 1.0, adjacency: str = REPLACE_ONE) -> float:
    """Frobenius sensitivity of X'X: sqrt(2) R^2 replace-one, R^2 add/remove.

    ||x x' - z z'||^2 = |x|^4 + |z|^4 - 2 (x.z)^2 <= 2 R^4. For a sum with weights in [0, a] it is a times
    that.
    """
    return _choose(adjacency, math.sqrt(2), 1.0) * bound**2


def smallest_eigenvalue(bound: float = 1.0) -> float:
    """Sensitivity of the smallest eigenvalue of X'X, either adjacency: R^2, because x x' - z z' has one
    eigenvalue of either sign, at most R^2 in size."""
    return bound**2


def gram_and_moment(
    bound: float = 1.0, label_bound: float = 1.0, adjacency: str = REPLACE_ONE
) -> float:
    """L2 sensitivity of (X'X, X'y) together for labels in [-Y, Y]: the squares of the Frobenius and the
    Euclidean norm are summed.

    Add/remove: sqrt(R^4 + Y^2 R^2). Replacing (x, y) by (z, u), with a = |x|, b = |z|, c = |cos|:
    a^4 + b^4 - 2 a^2 b^2 c^2 + |y x - u z|^2 is convex in y and in u, so |y| = |u| = Y, with signs
    that make it a^4 + b^4 - 2 (abc)^2 + Y^2 (a^2 + b^2 + 2 abc), a parabola in abc with its top at
    Y^2/2. If that is at most ab, its value a^4 + b^4 + Y^2 (a^2 + b^2) + Y^4/2 increases in a and b.
    Otherwise c = 1, and (a+b)^2 ((a-b)^2 + Y^2) increases in a, since Y^2 + 2a^2 >= 2ab. So a
    = b = R, and

        sqrt(2 R^4 + 2 Y^2 R^2 + Y^4/2) = sqrt(2) (R^2 + Y^2/2) where Y^2 <= 2 R^2, else 2 Y R.
    """
    R, Y = bound, label_bound
    if adjacency == ADD_REMOVE:
        return R * math.hypot(R, Y)
    inside = math.sqrt(2) * (R**2 + Y**2 / 2)
    return _choose(adjacency, inside if Y**2 <= 2 * R**2 else 2 * Y * R, None)


def hessian_trace(bound: float = 1.0, curvature: float = 0.25) -> float:
    """Sensitivity of sum w_i |x_i|^2 with weights in [0, curvature], either adjacency: curvature R^2."""
    return curvature * bound**2


def newton_direction(
    ridge: float | np.ndarray, bound: float = 1.0, curvature: float = 0.25
) -> float | np.ndarray:
    """Sensitivity in operator norm of (H + ridge I)^-1, H = sum w_i x_i x_i', 0 <= w_i <= curvature, for
    either adjacency.

    With c = curvature R^2: c/(ridge (ridge + c)). Add u u', |u|^2 <= c, to B >= ridge I: the
    inverse falls by B^-1 u u' B^-1/(1 + u'B^-1 u), positive semidefinite of norm |B^-1 u|^2/(1 +
    u'B^-1 u) <= t/(ridge (1 + t)), t = u'B^-1 u <= c/ridge, which increases in t. Replacing is the
    difference of two such, both between 0 and that times I, so its norm is no larger. A released
    direction (H + ridge I)^-1 g for a public g moves by that times |g|. In means, H/n + l I: ridge
    = n l, and the inverse is n times this one: c/(n l^2 + c l).
    """
    c = curvature * bound**2
    return c / (ridge * (ridge + c))


def newton_direction_floored(
    floor: float, bound: float = 1.0, curvature: float = 0.25, adjacency: str = REPLACE_ONE
) -> float:
    """Frobenius sensitivity of f(H), f = 1/max(eigenvalue, floor): curvature times `gram` over floor^2.

    f is 1/floor^2-Lipschitz, and a Lipschitz function of symmetric matrices is as Lipschitz in the
    Frobenius norm: ||f(A) - f(B)||^2 = sum over eigenpairs of (f(a_i) - f(b_j))^2 (u_i.v_j)^2.
    """
    return curvature * gram(bound, adjacency) / floor**2


def noise_norm(sigma: float, d: int) -> float:
    """About the largest eigenvalue of d x d isotropic symmetric noise: sigma sqrt(2 d).

    Diagonal variance sigma^2, off the diagonal sigma^2/2: the semicircle's edge is 2 sqrt(d sigma^2/2).
    """
    return sigma * math.sqrt(2 * d)


def eigenvalue_lower_bound(noisy: np.ndarray, sigma: float, quantile: float = 1.96) -> np.ndarray:
    """max(0, noisy smallest eigenvalue - quantile sigma), elementwise. This is post-processing."""
    return np.maximum(0.0, noisy - quantile * sigma)


def spectral_ridge(
    sigma: float, d: int, eigenvalue: float | np.ndarray = 0.0
) -> float | np.ndarray:
    """max(0, sigma sqrt(2d) - l/2), elementwise, beside G = X'X + E, l <= the smallest eigenvalue of X'X.

    Steps with P = (G + ridge I)^-1 contract if P X'X < 2, that is if X'X + 2 E + 2 ridge I > 0, which holds
    with a ridge above ||E|| - l/2. With all of l in place of half of it, they may expand.
    """
    return np.maximum(0.0, noise_norm(sigma, d) - eigenvalue / 2)


def eigenvalue_floor(sigma: float, d: int, factor: float = 1.2) -> float:
    """A public floor for the eigenvalues of a noisy Gram matrix: the semicircle's edge, and a fifth more
    for small d."""
    return factor * noise_norm(sigma, d)


def adassp_ridge(
    epsilon: float,
    delta: float,
    d: int,
    eigenvalue: float | np.ndarray = 0.0,
    bound: float = 1.0,
    failure_probability: float = 0.05,
) -> float | np.ndarray:
    """The published ridge (Wang, UAI 2018, algorithm 2), with l a lower bound on the smallest eigenvalue.

    max(0, sqrt(d log(6/delta) log(2 d^2/rho)) 3 R^2/epsilon - l).
    """
    noise = math.sqrt(math.log(6 / delta)) * 3 * bound**2 / epsilon
    return max(0.0, noise * math.sqrt(d * math.log(2 * d * d / failure_probability)) - eigenvalue)
