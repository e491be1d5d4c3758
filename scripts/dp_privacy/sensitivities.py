"""Sensitivities of Gram matrices, Hessians and Newton steps, and ridges that cover noise.

Rows have ||x||_2 <= R. Sensitivities are for sums; for means under replace-one, divide by the public n.
Matrix sensitivities are in the Frobenius norm unless stated otherwise, for
`dp.proofs.quadratics.isotropic` noise.
"""

import math

import numpy as np

from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE, check_adjacency


def _choose(adjacency, replace, add):
    check_adjacency(adjacency)
    return replace if adjacency == REPLACE_ONE else add


def vector_sum(norm: float, adjacency: str = REPLACE_ONE) -> float:
    """L2 sensitivity of a sum of vectors of norm at most C: 2C under replace-one, C under add/remove."""
    return _choose(adjacency, 2 * norm, norm)


def gram(bound: float = 1.0, adjacency: str = REPLACE_ONE) -> float:
    """Frobenius sensitivity of X'X: sqrt(2) R^2 under replace-one, R^2 under add/remove.

    ||x x' - z z'||^2 = |x|^4 + |z|^4 - 2 (x.z)^2 <= 2 R^4. Row weights in [0, a] multiply the sensitivity
    by a.
    """
    return _choose(adjacency, math.sqrt(2), 1.0) * bound**2


def smallest_eigenvalue(bound: float = 1.0) -> float:
    """Sensitivity of the smallest eigenvalue of X'X under either adjacency: R^2.

    x x' - z z' has at most one positive and one negative eigenvalue, of size at most R^2.
    """
    return bound**2


def gram_and_moment(
    bound: float = 1.0, label_bound: float = 1.0, adjacency: str = REPLACE_ONE
) -> float:
    """L2 sensitivity of (X'X, X'y) together for labels in [-Y, Y].

    Its square is the maximum, over neighbours, of the change of X'X in squared Frobenius norm plus that of
    X'y in squared Euclidean norm. Add/remove: sqrt(R^4 + Y^2 R^2). Replace-one: let (x, y) be replaced by
    (z, u), a = |x|, b = |z|, and c = |cos| of the angle between x and z. The squared change a^4 + b^4 - 2
    a^2 b^2 c^2 + |y x - u z|^2 is convex in y and in u, so it is largest for |y| = |u| = Y. With the
    worst signs, it is a^4 + b^4 - 2 (abc)^2 + Y^2 (a^2 + b^2 + 2 abc). This is a parabola in abc with its
    vertex at Y^2/2. If Y^2/2 <= ab, its maximum, a^4 + b^4 + Y^2 (a^2 + b^2) + Y^4/2, increases in a and b.
    Otherwise the maximum is at c = 1, and (a+b)^2 ((a-b)^2 + Y^2) increases in a and b, since Y^2 + 2a^2 >=
    2ab. So the worst case has a = b = R, and the sensitivity is

        sqrt(2 R^4 + 2 Y^2 R^2 + Y^4/2) = sqrt(2) (R^2 + Y^2/2) if Y^2 <= 2 R^2, else 2 Y R.
    """
    R, Y = bound, label_bound
    if adjacency == ADD_REMOVE:
        return R * math.hypot(R, Y)
    inside = math.sqrt(2) * (R**2 + Y**2 / 2)
    return _choose(adjacency, inside if Y**2 <= 2 * R**2 else 2 * Y * R, None)


def hessian_trace(bound: float = 1.0, curvature: float = 0.25) -> float:
    """Sensitivity of sum w_i |x_i|^2, 0 <= w_i <= curvature, under either adjacency: curvature R^2."""
    return curvature * bound**2


def newton_direction(
    ridge: float | np.ndarray, bound: float = 1.0, curvature: float = 0.25
) -> float | np.ndarray:
    """Sensitivity in operator norm of (H + ridge I)^-1 under either adjacency.

    H = sum w_i x_i x_i' with 0 <= w_i <= curvature. With c = curvature R^2, the sensitivity is c/(ridge
    (ridge + c)). Proof: add u u' with |u|^2 <= c to B >= ridge I. The inverse falls by B^-1 u u' B^-1/(1 +
    u'B^-1 u). This decrease is positive semidefinite, of norm |B^-1 u|^2/(1 + t) <= t/(ridge (1 + t)),
    which increases in t = u'B^-1 u <= c/ridge. Replacing a record gives the difference of two such
    matrices, whose norm is no larger. A direction (H + ridge I)^-1 g for a public g changes by at most |g|
    times the sensitivity. For the mean H/n + l I, ridge = n l and the inverse is n times larger: c/(n l^2 +
    c l).
    """
    c = curvature * bound**2
    return c / (ridge * (ridge + c))


def newton_direction_floored(
    floor: float, bound: float = 1.0, curvature: float = 0.25, adjacency: str = REPLACE_ONE
) -> float:
    """Frobenius sensitivity of f(H), f = 1/max(eigenvalue, floor): curvature times `gram` over floor^2.

    H is as in `newton_direction`. f is 1/floor^2-Lipschitz on numbers and, in the Frobenius norm, on
    symmetric matrices: ||f(A) - f(B)||^2 = sum over eigenpairs of (f(a_i) - f(b_j))^2 (u_i.v_j)^2.
    """
    return curvature * gram(bound, adjacency) / floor**2


def noise_norm(sigma: float, d: int) -> float:
    """Approximate largest eigenvalue of d x d isotropic symmetric noise: sigma sqrt(2 d).

    The variance is sigma^2 on the diagonal and sigma^2/2 off it, so the edge of the semicircle law is at 2
    sqrt(d sigma^2/2).
    """
    return sigma * math.sqrt(2 * d)


def eigenvalue_lower_bound(noisy: np.ndarray, sigma: float, quantile: float = 1.96) -> np.ndarray:
    """max(0, noisy smallest eigenvalue - quantile sigma), elementwise, which is post-processing."""
    return np.maximum(0.0, noisy - quantile * sigma)


def spectral_ridge(
    sigma: float, d: int, eigenvalue: float | np.ndarray = 0.0
) -> float | np.ndarray:
    """max(0, sigma sqrt(2d) - l/2), elementwise: a ridge for G = X'X + E with noise E.

    eigenvalue: l, a lower bound on the smallest eigenvalue of X'X. Steps with P = (G + ridge I)^-1 contract
    if the eigenvalues of P X'X are below 2, that is if X'X + 2 E + 2 ridge I > 0. A ridge above ||E|| - l/2
    suffices. With l in place of l/2, steps may expand.
    """
    return np.maximum(0.0, noise_norm(sigma, d) - eigenvalue / 2)


def eigenvalue_floor(sigma: float, d: int, factor: float = 1.2) -> float:
    """A public floor for a noisy Gram matrix's eigenvalues, by default a fifth above `noise_norm`."""
    return factor * noise_norm(sigma, d)
