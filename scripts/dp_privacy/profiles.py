"""Privacy profiles: the curve delta(epsilon) of a mechanism, or of several together.

delta(epsilon) is the supremum over neighbours and events of P(E) - e^epsilon Q(E), a hockey-stick
divergence. It is convex and decreasing in e^epsilon. Exchanging P and Q reflects the curve: delta(-epsilon)
= 1 - e^-epsilon + e^-epsilon delta_QP(epsilon).

A profile is a `Gaussian`, `Curve` or `Losses`, with `delta(epsilon)` and `epsilon(delta)`. The composition
of upper bounds is an upper bound.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dp_privacy import roots
from dp_privacy.accounting import NARROW, gaussian_epsilon, gaussian_mu, legendre, narrow_difference

__all__ = [
    "Curve",
    "Gaussian",
    "Losses",
    "Profile",
    "approximate",
    "compose",
    "group_epsilon",
    "repeated",
]

# Integrals over a Gaussian loss extend this many standard deviations to either side. Callers add the
# probability beyond, 2e-33 per side.
FAR = 12.0
PANELS = (24, 96, 384, 1536, 6144)  # panel counts tried for an integral; a panel has 8 nodes
AGREE = 1e-7  # relative difference between successive estimates at which refinement ends
SPACING = 1e-4  # smallest spacing of discretised losses
POINTS = 4000  # maximum number of points of a distribution on each side of 0
TAIL = 1e-15  # largest delta at a grid's end, counted as the probability of an infinite loss


def gaussian_profile(mu: float, epsilon: float | np.ndarray) -> float | np.ndarray:
    """delta of a Gaussian release with mu = sensitivity/standard deviation, for real epsilon, elementwise.

    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle, Wang, ICML 2018, theorem 8,
    whose proof does not need epsilon >= 0).
    """
    from scipy.special import log_ndtr

    epsilon = np.asarray(epsilon, dtype=float)
    if mu == 0:
        return np.maximum(0.0, -np.expm1(np.minimum(epsilon, 0.0)))
    upper = log_ndtr(mu / 2 - epsilon / mu)
    if mu < NARROW:
        return np.where(upper == -np.inf, 0.0, narrow_difference(mu, epsilon))
    lower = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    with np.errstate(invalid="ignore"):
        share = -np.expm1(np.minimum(lower - upper, 0.0))
    return np.where(upper == -np.inf, 0.0, np.exp(upper) * np.where(np.isnan(share), 0.0, share))


def reflected(delta: Callable, epsilon: float | np.ndarray) -> float | np.ndarray:
    """The divergence of (P, Q) at `epsilon`, where `delta` is the divergence of (Q, P).

    P(E) - e^a Q(E) = 1 - e^a + e^a (Q(E^c) - e^-a P(E^c)) for any event E.
    """
    epsilon = np.asarray(epsilon, dtype=float)
    return -np.expm1(epsilon) + np.exp(epsilon) * delta(-epsilon)


def symmetric(delta: Callable) -> Callable:
    """Extend a bound on (P, Q) and (Q, P) for epsilon >= 0 to all reals."""

    def extended(epsilon):
        epsilon = np.asarray(epsilon, dtype=float)
        at = np.minimum(1.0, delta(np.abs(epsilon)))
        return np.where(epsilon >= 0, at, -np.expm1(np.minimum(epsilon, 0)) + np.exp(epsilon) * at)

    return extended


def nodes(
    start: float | np.ndarray, stop: float | np.ndarray, panels: int, order: int = 8
) -> tuple[np.ndarray, np.ndarray]:
    """Composite Gauss-Legendre nodes and weights (m, k) on [start, stop], numbers or arrays (m,)."""
    x, weight = legendre(order)
    x = ((np.arange(panels)[:, None] + (x + 1) / 2) / panels).ravel()
    weight = np.tile(weight / 2 / panels, panels)
    start, width = np.asarray(start, dtype=float)[..., None], np.subtract(stop, start)[..., None]
    return start + width * x, width * weight


class Profile:
    """A privacy profile. Subclasses define its form.

    Methods
    -------
    delta
        delta at any real epsilon.
    epsilon
        The smallest epsilon at delta.
    """

    def delta(self, epsilon: float | np.ndarray) -> float | np.ndarray:
        """delta, elementwise.

        Parameters
        ----------
        epsilon : float or numpy.ndarray
            Any real number.

        Returns
        -------
        float or numpy.ndarray
        """
        raise NotImplementedError

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 at delta, rounded up.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        float
            Infinite if no epsilon up to 10^6 suffices for this delta.
        """
        if not 0 < delta < 1:
            raise ValueError(f"a profile's epsilon needs 0 < delta < 1, not {delta}")
        if self.delta(0.0) <= delta:
            return 0.0
        # If losses can be infinite, there may be no such epsilon.
        return roots.least(lambda e: self.delta(e) <= delta, 0.0, 1.0, relative=1e-10, most=1e6)

    @property
    def directions(self) -> tuple[Callable, ...]:
        """delta of (P, Q) and, if different, of (Q, P)."""
        return (self.delta,)

    def with_gaussian(self, mu: float) -> "Profile":
        """The profile of this release and an adaptive mu-GDP Gaussian release together.

        Parameters
        ----------
        mu : float

        Returns
        -------
        Profile
        """
        return _compose_losses([self, Gaussian(mu)])


@dataclass(frozen=True)
class Gaussian(Profile):
    """The profile of Gaussian releases: mu-GDP.

    Attributes
    ----------
    mu : float
        Total sensitivity over standard deviation.

    Examples
    --------
    >>> print(f"{Gaussian(1.0).epsilon(1e-6):.4f}")
    4.8866
    """

    mu: float

    def delta(self, epsilon: float | np.ndarray) -> float | np.ndarray:
        return gaussian_profile(self.mu, epsilon)[()]

    def epsilon(self, delta: float) -> float:
        return gaussian_epsilon(1 / self.mu, delta) if self.mu else 0.0

    def renyi(self, order: float | np.ndarray) -> np.ndarray:
        """Rényi divergence of this order, elementwise."""
        return np.asarray(order) * self.mu**2 / 2


@dataclass(frozen=True)
class Curve(Profile):
    """An explicit delta(epsilon) for all real epsilon, elementwise: exact, or an upper bound.

    Attributes
    ----------
    remove : Callable
        delta of (P, Q).
    add : Callable or None
        delta of (Q, P), if different. By default `remove` bounds both.
    kinks : tuple
        The epsilons at which a direction is not smooth.
    """

    remove: Any
    add: Any = None
    kinks: tuple = ()

    def delta(self, epsilon: float | np.ndarray) -> float | np.ndarray:
        deltas = [np.clip(direction(epsilon), 0.0, 1.0) for direction in self.directions]
        return np.maximum.reduce(deltas)[()]

    @property
    def directions(self) -> tuple[Callable, ...]:
        return (self.remove,) if self.add is None else (self.remove, self.add)

    def with_gaussian(self, mu: float) -> "Curve":
        return Curve(*(_with_gaussian(each, mu, self.kinks) for each in self.directions))


@dataclass(frozen=True)
class Losses(Profile):
    """The profile of a privacy loss distribution.

    Attributes
    ----------
    distribution : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
    """

    distribution: Any

    def delta(self, epsilon: float | np.ndarray) -> float | np.ndarray:
        epsilon = np.asarray(epsilon, dtype=float)
        # One epsilon at a time, since for several, the library loops over losses in Python.
        deltas = [
            self.distribution.get_delta_for_epsilon(each) for each in epsilon.ravel().tolist()
        ]
        return np.reshape(deltas, epsilon.shape)[()]

    def epsilon(self, delta: float) -> float:
        # The library sums in another order here than for `delta`, so round up slightly.
        return float(self.distribution.get_epsilon_for_delta(delta)) * (1 + 1e-12)


def approximate(epsilon: float, delta: float = 0.0) -> Curve:
    """The `Curve` that bounds every (epsilon, delta)-DP mechanism.

    delta(x) = delta + (1-delta)(e^epsilon - e^x)_+/(1 + e^epsilon) for x >= 0. Randomised response with a
    failure of probability delta dominates all such mechanisms [1]_.

    Parameters
    ----------
    epsilon, delta : float
        Of the known guarantee.

    Returns
    -------
    Curve

    References
    ----------
    .. [1] Kairouz, Oh, Viswanath, ICML 2015, theorem 3.4.

    Examples
    --------
    >>> print(f"{approximate(1.0).delta(0.0):.4f}, {approximate(1.0).delta(1.0):.4f}")
    0.4621, 0.0000
    """

    def bound(x):
        share = -np.expm1(np.minimum(np.asarray(x) - epsilon, 0.0)) / (1 + math.exp(-epsilon))
        return delta + (1 - delta) * share

    return Curve(symmetric(bound), kinks=(-epsilon, epsilon))


def with_failure(profile: Profile, probability: float) -> Curve:
    """The `Curve` of a mechanism that satisfies `profile` outside a failure event.

    probability: the event's maximum probability on any data set.
    """
    return Curve(*((lambda x, f=f: np.asarray(f(x)) + probability) for f in profile.directions))


def _with_gaussian(delta, mu, kinks=()):
    """The profile of a release with profile `delta` together with a mu-GDP Gaussian release.

    It is epsilon -> E delta(epsilon - L), where L ~ N(mu^2/2, mu^2) is the Gaussian release's privacy loss:
    losses add up, and delta(epsilon) is E (1 - e^(epsilon - loss))_+. This holds for adaptive releases in
    either order. The distribution of L does not depend on the data, so the supremum over data sets may be
    taken inside the expectation. The integral is one between neighbouring kinks, which it may miss.
    """
    kinks = np.array(kinks)

    def composed(epsilon):
        epsilon = np.asarray(epsilon, dtype=float)
        return np.reshape([at(value) for value in epsilon.ravel()], epsilon.shape)[()]

    def at(epsilon):
        def integrand(z):
            there = np.clip(delta(epsilon - mu * mu / 2 - mu * z), 0.0, 1.0)
            return there * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)

        ends = np.clip((epsilon - mu * mu / 2 - kinks) / mu, -FAR, FAR)
        ends = np.unique([-FAR, *ends, FAR])
        return sum(integral(integrand, a, b) for a, b in pairwise(ends)) + 4e-33

    return composed


def with_chords(profiles: Sequence[Profile], mu: float, epsilons: np.ndarray) -> Curve:
    """The `Curve` of a Gaussian release composed with a release of any one of `profiles`.

    profiles: upper bounds for both directions. epsilons: increasing numbers > 0. Between these numbers,
    chords in t = e^epsilon replace the maximum of the profiles. The chords form the profile of a loss with
    finitely many values, log t at the chords' ends, each with probability t times the change of slope
    there. The remaining probability is that of an infinite loss. So the result is the mean, over these
    losses l, of the Gaussian profile at epsilon - l.
    """
    at = np.max([np.asarray(symmetric(each.delta)(epsilons)) for each in profiles], axis=0)
    zero = max(float(each.delta(0.0)) for each in profiles)
    below = -np.expm1(-epsilons) + np.exp(-epsilons) * at
    points = np.concatenate([-epsilons[::-1], [0.0], epsilons])
    deltas = np.minimum(1.0, np.concatenate([below[::-1], [zero], at]))
    deltas = np.minimum.accumulate(deltas)
    t = np.exp(points)
    slopes = np.concatenate([[(deltas[0] - 1) / t[0]], np.diff(deltas) / np.diff(t), [0.0]])
    # A profile is convex in t, so negative changes of slope are rounding errors. Setting them to 0 can
    # only raise delta.
    mass = np.maximum(t * np.diff(slopes), 0.0)
    steps, mass = points[mass > 0], mass[mass > 0]

    def delta(epsilon):
        epsilon = np.asarray(epsilon, dtype=float)[..., None]
        total = deltas[-1] + (gaussian_profile(mu, epsilon - steps) * mass).sum(axis=-1)
        return np.minimum(total, 1.0)

    return Curve(delta)


def integral(
    integrand: Callable, start: float, stop: float, panels: Iterable[int] = PANELS
) -> float:
    """An upper estimate of an integral: the last estimate plus its change in the final refinement."""
    before = math.inf
    for count in panels:
        x, weight = nodes(start, stop, count)
        value = float((integrand(x) * weight).sum())
        difference = abs(value - before)
        if difference <= AGREE * abs(value):
            break
        before = value
    return value + difference


def group_delta(profile: Profile, epsilon: float, size: int, mu: float = 0.0) -> float:
    """An upper bound on delta at epsilon for data sets that differ in `size` records.

    Along a chain of neighbours, P(E) <= delta(e_1) + e^e_1 M(E), where M is the law on the next data set,
    and so on. So for real e_j that sum to epsilon:

        delta_size(epsilon) <= sum over j of e^(e_1 + .. + e_(j-1)) delta(e_j).

    The smallest of these bounds is the group privacy of f-DP (Dong, Roth, Su, JRSS B 84, 2022, theorem
    2.14). Here e_j = epsilon/size + (j - (size + 1)/2) mu^2, optimal for a Gaussian profile of parameter
    mu.
    """
    total, before = 0.0, 0.0
    for j in range(1, size + 1):
        step = epsilon / size + (j - (size + 1) / 2) * mu * mu
        total += math.exp(min(before, 700.0)) * float(profile.delta(step))
        before += step
    return min(total, 1.0)


def group_epsilon(profile: Profile, delta: float, size: int) -> float:
    """An epsilon at delta for data sets that differ in `size` records.

    Exact for a Gaussian profile, otherwise the smallest that `group_delta` proves with one of several mu.

    Parameters
    ----------
    profile : Profile
        For one record.
    delta : float
        In (0, 1).
    size : int

    Returns
    -------
    float
        Infinite if none is found.

    Examples
    --------
    >>> print(f"{group_epsilon(Gaussian(0.2), 1e-6, 5):.4f}, {Gaussian(1.0).epsilon(1e-6):.4f}")
    4.8866, 4.8866
    """
    if isinstance(profile, Gaussian):
        return Gaussian(size * profile.mu).epsilon(delta)
    one = profile.epsilon(delta)
    if not 0 < one < math.inf:
        return size * one
    alike = gaussian_mu(one, delta)  # mu of the Gaussian with the same epsilon at delta

    def holds(epsilon):
        shares = (1.0, 0.75, 0.0)
        return any(group_delta(profile, epsilon, size, k * alike) <= delta for k in shares)

    return roots.least(holds, 0.0, size * one, relative=1e-9, most=1e4)


def _reach(profile):
    """A loss at which delta is at most TAIL. If there is none below 64, a loss in [64, 80)."""
    reach = 1.0
    while reach < 64 and profile.delta(reach) > TAIL:
        reach *= 1.25
    return reach


def losses(profile: Profile, spacing: float | None = None) -> object:
    """A pessimistic privacy loss distribution (dp_accounting) of a profile.

    Connect-the-dots (Doroshenko et al., PoPETs 2022, algorithm 1) gives the smallest profile of losses on
    the grid that is nowhere below `profile`.
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    if isinstance(profile, Losses):
        return profile.distribution
    reach = _reach(profile)
    spacing = spacing or max(SPACING, reach / POINTS)
    if isinstance(profile, Gaussian):
        return pld.from_gaussian_mechanism(1 / profile.mu, value_discretization_interval=spacing)
    k = np.arange(-math.ceil(reach / spacing), math.ceil(reach / spacing) + 1)
    parts = [
        pld_pmf.create_pmf_pessimistic_connect_dots(
            spacing, k, np.minimum.accumulate(np.clip(direction(k * spacing), 0.0, 1.0))
        )
        for direction in profile.directions
    ]
    return pld.PrivacyLossDistribution(*parts)


def compose(*profiles) -> Profile:
    """The profile of adaptive releases from the same records.

    The composition of Gaussians is a Gaussian [2]_, and that of Gaussians and one curve is an integral.
    Both are exact. Several curves compose pessimistically, as privacy loss distributions.

    Parameters
    ----------
    *profiles : Profile

    Returns
    -------
    Profile

    References
    ----------
    .. [2] Dong, Roth, Su, JRSS B 84, 2022, corollary 3.3.

    Examples
    --------
    >>> compose(Gaussian(3.0), Gaussian(4.0))
    Gaussian(mu=5.0)
    >>> print(f"{compose(Gaussian(0.2), approximate(0.5)).epsilon(1e-6):.3f}")
    1.313
    """
    mu = math.hypot(0.0, *(p.mu for p in profiles if isinstance(p, Gaussian)))
    others = [p for p in profiles if not isinstance(p, Gaussian)]
    if not others:
        return Gaussian(mu)
    if len(others) == 1 and mu == 0:
        return others[0]
    if len(others) == 1:
        return others[0].with_gaussian(mu)
    return _compose_losses([*others, Gaussian(mu)] if mu else others)


def _compose_losses(profiles):
    discrete = [p.distribution for p in profiles if isinstance(p, Losses)]
    spacing = max(SPACING, max(map(_reach, profiles)) / POINTS)
    if discrete:
        spacing = discrete[0]._pmf_remove._discretization
    total, *rest = (losses(profile, spacing) for profile in profiles)
    for distribution in rest:
        total = total.compose(distribution)
    return Losses(total)


def repeated(profile: Profile, times: int) -> Profile:
    """The profile of several releases from the same records, each with this profile.

    Parameters
    ----------
    profile : Profile
    times : int

    Returns
    -------
    Profile

    Examples
    --------
    >>> repeated(Gaussian(0.5), 4)
    Gaussian(mu=1.0)
    """
    if isinstance(profile, Gaussian):
        return Gaussian(profile.mu * math.sqrt(times))
    return profile if times == 1 else Losses(losses(profile).self_compose(times))
