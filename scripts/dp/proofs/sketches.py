"""Gaussian sketches: the privacy of k rows of N(0, X'X + g^2 I) (Iterative Hessian Mixing).

Lev, Shenfeld, Srinivasan, Ligett, Wilson (arXiv 2601.07545) release T sketches and T noisy gradients. A
sketch is Z X + g N, where Z (k x n) and N (k x d) are standard normal, g^2 = max(0, gamma - l) with a
public gamma, and l is a noisy lower bound on the smallest eigenvalue of X'X. The authors bound a sketch's
Rényi divergence; this module gives the exact profile.

A sketch's rows are k independent draws of N(0, S) with S = X'X + g^2 I. Adding or removing a row x with
||x|| <= R changes S by x x'. In coordinates that make the smaller S the identity, the variances differ in
only one direction, with the ratio 1 - v, where v = x'S^-1 x for the larger S. If one S has no eigenvalue
below gamma, v <= R^2/gamma. (If the smaller S has none, v = a/(1+a) with a <= R^2/gamma.) Post-processing
by noise along that direction turns a larger v into a smaller one, so v = R^2/gamma is the worst. T sketches
of k rows are one sketch of kT rows.

S >= gamma I unless l exceeds the smallest eigenvalue. `total` adds this event's probability to delta:
Phi(-tau0) if l is tau0 standard deviations of the noise below the noisy eigenvalue.
"""

import math

import numpy as np

from dp_privacy import roots
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE, renyi_epsilon
from dp_privacy.profiles import Curve, Gaussian, Profile, compose, with_failure


def larger_variance_profile(rows: int, v: float, epsilon: float | np.ndarray) -> float | np.ndarray:
    """Hockey-stick divergence of k draws of N(0, 1) from k draws of N(0, 1-v), for any real epsilon.

    The loss is (k/2) log(1-v) + v/(2(1-v)) C, with C the sum of squares. C is chi-square with k degrees
    of freedom under the first law, and C/(1-v) under the second. The loss exceeds epsilon if C > t =
    2 (1-v)/v (epsilon - (k/2) log(1-v)).
    """
    from scipy.stats import chi2

    epsilon = np.asarray(epsilon, dtype=float)
    t = np.maximum(2 * (1 - v) / v * (epsilon - rows / 2 * math.log1p(-v)), 0.0)
    return _difference(chi2.logsf(t, rows), chi2.logsf(t / (1 - v), rows), epsilon)


def smaller_variance_profile(
    rows: int, v: float, epsilon: float | np.ndarray
) -> float | np.ndarray:
    """Hockey-stick divergence of k draws of N(0, 1-v) from k draws of N(0, 1).

    The loss is -(k/2) log(1-v) - v/2 C, with C the sum of squares divided by 1-v. C is chi-square with
    k degrees of freedom under the first law, and C (1-v) under the second. The loss exceeds epsilon if
    C < t = 2/v (-(k/2) log(1-v) - epsilon).
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

    Replace-one: compare P = S0 + x x' >= gamma I with Q = S0 + z z'. In coordinates that make both
    diagonal, at most two directions differ. P^-1/2 Q P^-1/2 = I - p p' + q q' with |p|^2, |q|^2 <=
    R^2/gamma has its eigenvalues in [1-|p|^2, 1+|q|^2]. So along one direction P has the larger variance,
    with a ratio of 1-v, v <= R^2/gamma. Along the other, P has the smaller variance, with a ratio of
    1/(1+a), a <= R^2/gamma. The directions are independent, so each is one add/remove release. Privacy loss
    distributions compose them.
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
    """The authors' bound on a sketch's Rényi divergence, add/remove, for orders above 1.

    At order a, it is k a/(2(a-1)) log(1 - v) - k/(2(a-1)) log(1 - a v) with v = R^2/gamma: the divergence
    of k draws of N(0, 1) from k draws of N(0, 1-v). It is infinite for orders of gamma/R^2 or more.
    """
    v, a = bound**2 / gamma, np.asarray(order, dtype=float)
    with np.errstate(all="ignore"):
        divergence = rows / (2 * (a - 1)) * (a * np.log1p(-v) - np.log1p(-a * v))
    return np.where(a * v < 1, divergence, np.inf)


def _least(private, bound):
    low = bound**2 * (1 + 1e-9)
    return roots.least(private, low, 2 * low, relative=1e-9)


def gamma_exact(rows: int, epsilon: float, delta: float, bound: float = 1.0) -> float:
    """Smallest gamma for which the sketch alone is (epsilon, delta)-DP, add/remove."""
    return _least(lambda gamma: profile(rows, gamma, bound).delta(epsilon) <= delta, bound)


def gamma_renyi(rows: int, epsilon: float, delta: float, bound: float = 1.0) -> float:
    """As `gamma_exact`, but from the authors' bound `renyi`."""

    def private(gamma):
        share = np.linspace(0, 1, 4002)[1:-1] ** 2  # positions of orders between 1 and gamma/R^2
        orders = 1 + share * (gamma / bound**2 - 1)
        return renyi_epsilon(lambda a: renyi(a, rows, gamma, bound), delta, orders) <= epsilon

    return _least(private, bound)


def eigenvalue_mu(rows: int, gamma: float, bound: float = 1.0) -> float:
    """Gaussian parameter R^2 sqrt(k)/gamma of the smallest eigenvalue's release.

    The noise has standard deviation gamma/sqrt(k), and the eigenvalue has sensitivity R^2. rows: k, of one
    sketch.
    """
    return bound**2 * math.sqrt(rows) / gamma


def total(
    rows: int,
    steps: int,
    gamma: float,
    gradient: float,
    tau0: float,
    bound: float = 1.0,
    adjacency: str = ADD_REMOVE,
) -> Curve:
    """The profile of Iterative Hessian Mixing: T sketches of k rows, the eigenvalue, and T gradients.

    gradient: Gaussian parameter of one gradient. tau0: the lower bound on the smallest eigenvalue
    lambda_min is lambda_min - (gamma/sqrt k)(tau0 - N(0, 1)), which exceeds lambda_min with probability
    Phi(-tau0).
    """
    from scipy.special import ndtr

    sketch = profile(rows * steps, gamma, bound, adjacency)
    gaussian = Gaussian(math.hypot(eigenvalue_mu(rows, gamma, bound), math.sqrt(steps) * gradient))
    return with_failure(compose(sketch, gaussian), float(ndtr(-tau0)))
