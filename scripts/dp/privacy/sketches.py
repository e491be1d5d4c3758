"""Gaussian sketches: the privacy of k rows of N(0, X'X + g^2 I) (Iterative Hessian Mixing).

Lev, Shenfeld, Srinivasan, Ligett, Wilson, "Near-Optimal Private Linear Regression via Iterative Hessian
Mixing", arXiv 2601.07545: T sketches S X + g N, S (k x n) and N (k x d) standard normal, with g^2 =
max(0, gamma - l), l a noisy lower bound on the smallest eigenvalue of X'X, beside T noisy gradients.
Their proof bounds the sketch's Rényi divergence; here is its exact profile.

A sketch's rows are k independent draws of N(0, S), S = X'X + g^2 I. Adding or removing a row x,
||x|| <= R, changes S by x x'. In coordinates in which the smaller S is the identity, only one
direction differs. Its variances have the ratio 1 - v, with v = x'S^-1 x for the larger S, and v <=
R^2/gamma if either S has no eigenvalue below gamma (if it is the smaller one: v = a/(1+a), a <=
R^2/gamma). A release with a smaller v is a post-processing of one with a larger v (add independent noise
along that direction to both), so v = R^2/gamma is the worst. T sketches of k rows are one of kT rows.

The event l <= smallest eigenvalue, on which S >= gamma I, fails with probability Phi(-t0) under the
data set that is used. That probability is added to delta (`total`).
"""

import math

import numpy as np

from dp.accounting import ADD_REMOVE, REPLACE_ONE, renyi_epsilon
from dp.privacy.profiles import Curve, Gaussian, Losses, Profile, compose, losses, with_failure
from dp.privacy.sensitivities import vector_sum


def larger_variance_profile(rows: int, v: float, epsilon: float | np.ndarray) -> float | np.ndarray:
    """Hockey-stick divergence of k draws of N(0, 1) from k draws of N(0, 1-v), any real epsilon.

    The loss is (k/2) log(1-v) + v/(2(1-v)) C, C ~ chi-square with k degrees of freedom under the
    first and C/(1-v) such under the second: it exceeds epsilon where C > t = 2 (1-v)/v (epsilon -
    (k/2) log(1-v)).
    """
    from scipy.stats import chi2

    epsilon = np.asarray(epsilon, dtype=float)
    t = np.maximum(2 * (1 - v) / v * (epsilon - rows / 2 * math.log1p(-v)), 0.0)
    return _difference(chi2.logsf(t, rows), chi2.logsf(t / (1 - v), rows), epsilon)


def smaller_variance_profile(
    rows: int, v: float, epsilon: float | np.ndarray
) -> float | np.ndarray:
    """Hockey-stick divergence of k draws of N(0, 1-v) from k draws of N(0, 1).

    With C the chi-square of the first the loss is -(k/2) log(1-v) - v/2 C, so it exceeds epsilon where
    C < t = 2/v (-(k/2) log(1-v) - epsilon); under the second C (1-v) is a chi-square.
    """
    from scipy.stats import chi2

    epsilon = np.asarray(epsilon, dtype=float)
    t = np.maximum(2 / v * (-rows / 2 * math.log1p(-v) - epsilon), 0.0)
    return _difference(chi2.logcdf(t, rows), chi2.logcdf(t * (1 - v), rows), epsilon)


def _difference(log_p, log_q, epsilon):
    """p - e^epsilon q, at least 0, without cancellation; p = 0 gives 0."""
    with np.errstate(invalid="ignore"):
        gap = np.minimum(epsilon + log_q - log_p, 0.0)
    return np.exp(log_p) * -np.expm1(np.where(log_p == -np.inf, 0.0, gap))


def profile(rows: int, gamma: float, bound: float = 1.0, adjacency: str = ADD_REMOVE) -> Profile:
    """The profile of a sketch of `rows` rows (kT for T sketches) if S >= gamma I.

    Replace-one, S0 + x x' against S0 + z z': in coordinates that make both diagonal at most two
    directions differ. Along one the first has the larger variance, with ratio 1-v, v <= R^2/gamma,
    along the other the smaller, with ratio 1/(1+a), a <= R^2/gamma (P = S0 + x x' >= gamma I;
    P^-1/2 Q P^-1/2 = I - p p' + q q' with |p|^2, |q|^2 <= R^2/gamma has its eigenvalues in
    [1-|p|^2, 1+|q|^2]). They are independent: one release of each direction of add/remove, composed
    by privacy loss distributions.
    """
    if not gamma > bound**2:
        raise ValueError(f"gamma must exceed R^2 = {bound**2:g}, not {gamma}")
    v = bound**2 / gamma

    def remove(epsilon):
        return larger_variance_profile(rows, v, epsilon)

    def add(epsilon, v=v / (1 + v) if adjacency == REPLACE_ONE else v):
        return smaller_variance_profile(rows, v, epsilon)

    if adjacency == ADD_REMOVE:
        return Curve(remove, add)
    return compose(Curve(remove), Curve(add))


def renyi(
    order: float | np.ndarray, rows: int, gamma: float, bound: float = 1.0
) -> float | np.ndarray:
    """Rényi divergence of a sketch, add/remove, as its authors bound it, 1 < order < gamma/R^2.

    k a/(2(a-1)) log(1 - v) - k/(2(a-1)) log(1 - a v), v = R^2/gamma: of k draws of N(0, 1) from
    N(0, 1-v), exactly. Infinite beyond.
    """
    v, a = bound**2 / gamma, np.asarray(order, dtype=float)
    with np.errstate(all="ignore"):
        found = rows / (2 * (a - 1)) * (a * np.log1p(-v) - np.log1p(-a * v))
    return np.where(a * v < 1, found, np.inf)


def _least(private, low):
    high = 2 * low
    while not private(high):
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if private(middle) else (middle, high)
    return high


def gamma_exact(rows: int, epsilon: float, delta: float, bound: float = 1.0) -> float:
    """Least gamma for which the sketch alone is (epsilon, delta)-DP under add/remove, by bisection."""
    return _least(
        lambda gamma: profile(rows, gamma, bound).delta(epsilon) <= delta, bound**2 * (1 + 1e-9)
    )


def gamma_renyi(rows: int, epsilon: float, delta: float, bound: float = 1.0) -> float:
    """The same by the authors' Rényi divergence and its conversion (`dp.accounting.renyi_epsilon`)."""

    def private(gamma):
        share = np.linspace(0, 1, 4002)[1:-1] ** 2  # of orders between 1 and gamma/R^2
        orders = 1 + share * (gamma / bound**2 - 1)
        return renyi_epsilon(lambda a: renyi(a, rows, gamma, bound), delta, orders) <= epsilon

    return _least(private, bound**2 * (1 + 1e-9))


def eigenvalue_mu(rows: int, gamma: float, bound: float = 1.0) -> float:
    """Gaussian parameter of the smallest eigenvalue's release, noise gamma/sqrt(k): R^2 sqrt(k)/gamma.

    rows: k of one sketch. The eigenvalue moves by at most R^2 under either adjacency.
    """
    return bound**2 * math.sqrt(rows) / gamma


def gradient_mu(
    sigma: float, clip: float, bound: float = 1.0, adjacency: str = ADD_REMOVE
) -> float:
    """Gaussian parameter of one release of X' clip(y - X w, [-C, C]) + N(0, sigma^2 I): C R/sigma under
    add/remove, twice that under replace-one."""
    return vector_sum(clip * bound, adjacency) / sigma


def total(
    rows: int,
    steps: int,
    gamma: float,
    gradient: float,
    tau0: float,
    bound: float = 1.0,
    adjacency: str = ADD_REMOVE,
    by_losses: bool = False,
) -> Curve:
    """The profile of Iterative Hessian Mixing: T sketches of k rows, the eigenvalue, T gradients.

    gradient: `gradient_mu` of one step. tau0: the lower bound is lambda_min - (gamma/sqrt k)(tau0 -
    N(0, 1)), which exceeds lambda_min with probability Phi(-tau0). by_losses: through
    distributions, not an integral.
    """
    from scipy.special import ndtr

    sketch = profile(rows * steps, gamma, bound, adjacency)
    if by_losses:
        sketch = Losses(losses(sketch))
    gaussian = Gaussian(math.hypot(eigenvalue_mu(rows, gamma, bound), math.sqrt(steps) * gradient))
    return with_failure(compose(sketch, gaussian), float(ndtr(-tau0)))
