"""Guarantees of mechanisms, and the calibration of Gaussian noise.

By default, a guarantee is for *replace-one* adjacency: data sets of one public size n that differ in one
record. The proofs assume real numbers, which floating-point samples only approximate (Mironov, CCS 2012).
"""

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from dp_privacy import roots
from dp_privacy.errors import Refused

__all__ = [
    "ADD_REMOVE",
    "REPLACE_ONE",
    "Guarantee",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_sigma",
    "renyi_epsilon",
    "rule_delta",
]

# `narrow_difference` is accurate to rounding if mu, the sensitivity / standard deviation, is below this.
NARROW = 0.1

REPLACE_ONE = "replace-one"
ADD_REMOVE = "add-remove"


def check_adjacency(adjacency: str) -> None:
    """Raise ValueError for an unknown adjacency."""
    if adjacency not in (REPLACE_ONE, ADD_REMOVE):
        raise ValueError(f"adjacency is {REPLACE_ONE} or {ADD_REMOVE}, not {adjacency!r}")


class Guarantee(NamedTuple):
    """The privacy that a mechanism's publication claims, and what is proven for its code.

    Attributes
    ----------
    claimed_epsilon : float
        The requested epsilon, which the publication claims.
    epsilon : float
        The proven epsilon: infinite without a guarantee, NaN if nothing is known.
    delta : float
        The delta at `epsilon`.
    adjacency : str
        `REPLACE_ONE` or `ADD_REMOVE`.
    reason : str
        Why the guarantee holds, in a sentence.
    profile : dp_privacy.profiles.Profile or None
        The proven curve delta(epsilon) through (epsilon, delta); None if unknown.

    Examples
    --------
    >>> from dp.mechanisms import MECHANISMS
    >>> found = MECHANISMS["output_perturbation"].guarantee(1000, 5, epsilon=1.0, lam=0.01)
    >>> print(found.epsilon, found.delta, found.adjacency)
    1.0 0.0 replace-one
    """

    claimed_epsilon: float
    epsilon: float
    delta: float
    adjacency: str
    reason: str
    profile: object = None


def none(claimed_epsilon: float, reason: str, adjacency: str = REPLACE_ONE) -> "Guarantee":
    """A guarantee without a finite epsilon."""
    return Guarantee(claimed_epsilon, math.inf, 0.0, adjacency, reason)


def unproven(guarantee: "Guarantee") -> "Guarantee":
    """The guarantee, marked as neither proven nor refuted."""
    reason = f"claimed by its author, not proven here: {guarantee.reason}"
    return guarantee._replace(epsilon=math.nan, delta=math.nan, profile=None, reason=reason)


LOOKED = (
    " looked at the private rows"  # in a reason, after the names of steps that void a guarantee
)


def after_preparation(guarantee: Guarantee, looked_at_private_rows: list[str]) -> Guarantee:
    """The joint guarantee of preparation steps and a mechanism.

    looked_at_private_rows: names of steps that depend on private rows without noise. Any such step voids
    the guarantee.
    """
    if not looked_at_private_rows or math.isinf(guarantee.epsilon):
        return guarantee
    steps = ", ".join(looked_at_private_rows)
    return guarantee._replace(
        epsilon=math.inf,
        delta=0.0,
        profile=None,
        reason=f"{steps}{LOOKED} without noise; alone the mechanism has "
        f"epsilon {guarantee.epsilon:.6g}: {guarantee.reason}".replace(
            "epsilon nan", "none proven"
        ),
    )


def given_that(guarantee: Guarantee, premises: list[str]) -> Guarantee:
    """The guarantee, with its public premises added to the reason."""
    if not premises or math.isinf(guarantee.epsilon):
        return guarantee
    public = ", and ".join(dict.fromkeys(premises))
    return guarantee._replace(reason=f"{guarantee.reason}; taken as public: {public}")


def gaussian_delta(sigma: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """Smallest delta for which Gaussian noise of standard deviation sigma is (epsilon, delta)-DP.

    delta = Phi(D/(2 sigma) - epsilon sigma/D) - e^epsilon Phi(-D/(2 sigma) - epsilon sigma/D), where D is
    the L2 sensitivity [1]_.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on each coordinate.
    epsilon : float
        At least 0; infinity gives a delta of 0.
    sensitivity : float
        D, in the units of sigma.

    Returns
    -------
    float

    Raises
    ------
    dp_privacy.errors.Refused
        If sigma or the sensitivity is not positive and finite, or epsilon is negative.

    References
    ----------
    .. [1] Balle, Wang, ICML 2018, theorem 8.

    Examples
    --------
    >>> print(f"{gaussian_delta(1.0, 1.0):.5f}")
    0.12694
    """
    from scipy.special import log_ndtr  # slow to import

    if not 0 < sigma < math.inf or not 0 < sensitivity < math.inf or not epsilon >= 0:
        raise Refused(
            f"gaussian_delta needs finite sigma > 0, finite sensitivity > 0 and epsilon >= 0, "
            f"not {sigma}, {sensitivity}, {epsilon}"
        )
    if math.isinf(epsilon):
        return 0.0
    ratio = sensitivity / sigma
    if ratio < NARROW:
        return float(narrow_difference(ratio, epsilon))
    upper = log_ndtr(ratio / 2 - epsilon / ratio)
    if upper == -math.inf:
        return 0.0
    lower = epsilon + log_ndtr(-ratio / 2 - epsilon / ratio)
    # e^upper - e^lower without cancellation
    return float(math.exp(upper) * -math.expm1(min(lower - upper, 0.0)))


def narrow_difference(mu: float, epsilon: float) -> Sequence[float] | float:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) for mu < 0.1 and real epsilon.

    The terms nearly cancel. So this computes the normal density's integral between the arguments of Phi, by
    Gauss-Legendre quadrature, minus (e^epsilon - 1) Phi(lower argument).
    """
    import numpy as np
    from scipy.special import log_ndtr

    nodes, weights = legendre(8)
    epsilon = np.asarray(epsilon, dtype=float)
    middle = -epsilon / mu
    points = middle[..., None] + mu / 2 * nodes
    between = mu / 2 / math.sqrt(2 * math.pi) * (weights * np.exp(-(points**2) / 2)).sum(axis=-1)
    lower = log_ndtr(middle - mu / 2)
    with np.errstate(over="ignore", invalid="ignore"):
        above = np.expm1(-epsilon) * np.exp(epsilon + lower)  # e^epsilon alone may overflow
        rest = np.where(epsilon > 0, above, -np.expm1(epsilon) * np.exp(lower))
    return np.maximum(0.0, between + rest)


@cache
def legendre(order: int) -> tuple[Sequence[float], Sequence[float]]:
    """Nodes and weights of Gauss-Legendre quadrature on [-1, 1]."""
    import numpy as np

    return np.polynomial.legendre.leggauss(order)


@lru_cache(maxsize=4096)
def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Smallest standard deviation of Gaussian noise that is (epsilon, delta)-DP: analytic calibration.

    Bisection of `gaussian_delta` to a relative width of 1e-12 returns the larger end, whose delta is at
    most the requested one [2]_.

    Parameters
    ----------
    epsilon : float
        Positive and finite.
    delta : float
        In (0, 1).
    sensitivity : float
        L2 sensitivity.

    Returns
    -------
    float
        In the units of the sensitivity.

    References
    ----------
    .. [2] Balle, Wang, ICML 2018, algorithm 1.

    Examples
    --------
    >>> print(f"{gaussian_sigma(1.0, 1e-6):.4f}")
    4.2247
    """
    _check("gaussian_sigma", epsilon, delta, sensitivity)
    low = high = 1.0
    while gaussian_delta(high, epsilon) > delta:
        high *= 2
    while gaussian_delta(low, epsilon) <= delta:
        low /= 2
    while high - low > 1e-12 * high:
        middle = math.sqrt(low * high)
        if not low < middle < high:
            break
        if gaussian_delta(middle, epsilon) > delta:
            low = middle
        else:
            high = middle
    return high * sensitivity


def _check(name, epsilon, delta, sensitivity):
    if not 0 < epsilon < math.inf or not 0 < delta < 1 or not 0 < sensitivity < math.inf:
        raise Refused(
            f"{name} needs finite epsilon and sensitivity > 0 and 0 < delta < 1, "
            f"not {epsilon}, {delta}, {sensitivity}"
        )


def gaussian_epsilon(sigma: float, delta: float, sensitivity: float = 1.0) -> float:
    """Smallest epsilon for which Gaussian noise of standard deviation sigma is (epsilon, delta)-DP.

    Bisection returns the larger end, as in `gaussian_sigma`.

    Parameters
    ----------
    sigma, delta, sensitivity : float
        As for `gaussian_delta`, with delta in (0, 1).

    Returns
    -------
    float
        0 if delta is at least the total variation distance.

    Examples
    --------
    >>> print(f"{gaussian_epsilon(gaussian_sigma(1.0, 1e-6), 1e-6):.6f}")
    1.000000
    """
    if not 0 < delta < 1:
        raise Refused(f"gaussian_epsilon needs 0 < delta < 1, not {delta}")
    if gaussian_delta(sigma, 0.0, sensitivity) <= delta:
        return 0.0
    return roots.least(
        lambda e: gaussian_delta(sigma, e, sensitivity) <= delta, 0.0, 1.0, relative=1e-12
    )


def rule_delta(n: int) -> float:
    """The delta min(1e-6, 1/(10 n)), so n delta is at most 0.1.

    Parameters
    ----------
    n : int
        Public number of records.

    Returns
    -------
    float

    Examples
    --------
    >>> rule_delta(5000)
    1e-06
    """
    return min(1e-6, 1 / (10 * n))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The Gaussian-DP parameter of an (epsilon, delta)-DP Gaussian release: 1/`gaussian_sigma`.

    Parameters
    ----------
    epsilon : float
        Positive and finite.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        mu, the sensitivity over the standard deviation [3]_.

    References
    ----------
    .. [3] Dong, Roth, Su, JRSS B 84, 2022.

    Examples
    --------
    >>> print(f"{gaussian_mu(1.0, 1e-6):.4f}")
    0.2367
    """
    return 1 / gaussian_sigma(epsilon, delta)


def renyi_epsilon(renyi: Callable, delta: float, orders: Sequence[float] | None = None) -> float:
    """Upper bound on a mechanism's epsilon at `delta`, from its Rényi divergences.

    epsilon = renyi(a) + log((a-1)/a) - (log delta + log a)/(a-1), minimised over a [4]_ [5]_. Any set of
    orders gives a valid bound.

    Parameters
    ----------
    renyi : Callable
        Maps an array of orders above 1 to divergences. Infinite and NaN values are ignored.
    delta : float
        In (0, 1).
    orders : Sequence[float] or None
        Increasing orders; by default, 4,000 up to 10^6.

    Returns
    -------
    float

    References
    ----------
    .. [4] Canonne, Kamath, Steinke, NeurIPS 2020, proposition 12.
    .. [5] Balle et al., AISTATS 2020, theorem 21.

    Examples
    --------
    >>> mu = gaussian_mu(1.0, 1e-6)
    >>> print(f"{renyi_epsilon(lambda a: a * mu**2 / 2, 1e-6):.3f}")  # a bound; the exact value is 1
    1.078
    """
    import numpy as np

    a = 1 + np.geomspace(1e-3, 1e6, 4000) if orders is None else np.asarray(orders, dtype=float)
    with np.errstate(all="ignore"):
        epsilons = renyi(a) + np.log1p(-1 / a) - (math.log(delta) + np.log(a)) / (a - 1)
    return max(0.0, float(np.nanmin(epsilons)))


def classical_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The classical sigma, sqrt(2 ln(1.25/delta)) D/epsilon, proved only for epsilon < 1.

    Dwork, Roth, 2014, appendix A.
    """
    _check("classical_gaussian_sigma", epsilon, delta, sensitivity)
    return math.sqrt(2 * math.log(1.25 / delta)) * sensitivity / epsilon
