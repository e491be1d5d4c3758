"""Plans and releases of whole models.

A plan depends only on public numbers; settings without a proof are refused. Together, all parts except the
tilt are one Gaussian release, whose mu^2 is the sum of the parts' mu^2.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from numbers import Integral
from typing import NamedTuple

import numpy as np

from dp import losses
from dp.inference import (
    FLOOR,
    Intervals,
    curvature_level,
    floored,
    linearise,
    logistic_change,
    wald,
)
from dp.mechanisms import MECHANISMS
from dp.mechanisms.noise_aware import assumed, said
from dp.proofs import gaussian_tilt, person_tilt
from dp_privacy.accounting import REPLACE_ONE, Guarantee, gaussian_mu
from dp_privacy.errors import Refused
from dp_privacy.profiles import Curve, symmetric
from dp_release import bounds, lattice, rate, rows, statistics, tilt
from dp_release.draws import Stream
from dp_release.persons import Persons, check_shares
from dp_release.rate import RATE

__all__ = [
    "Plan",
    "Release",
    "described",
    "noise_aware_log_cosh",
    "noise_aware_logistic",
    "release",
]

# A thousand times the relative error of `composed_delta`, about 1e-9
# (`tests/unit/test_releasing_margin.py`).
SLACK = Fraction(1, 10**6)
# Factor on calibrated noise: a margin for rounding.
BESIDE = Fraction(1 + 1e-9)


class Plan(NamedTuple):
    """All that is public before the release.

    Attributes
    ----------
    problem : dp_release.tilt.Problem
        n, d, lambda and the loss.
    epsilon, delta : float
        Requested privacy.
    tolerance : float
        Certified bound on the gradient norm at the weights.
    tilt : dp_release.tilt.Tilt or None
        None for output perturbation.
    noises : dict
        Part -> `dp_release.lattice.Noise`, in the order of release; the first is "weights".
    longest : float
        Radius of the ball onto which weights are projected before statistics are computed.
    persons : dp_release.persons.Persons or None
        If set, a person has `most` of the n rows, and is what the release protects.
    found : dict
        Column -> noise on its counts, for bounds that are found (`dp_release.bounds`).

    Methods
    -------
    guarantee
        Replace-one guarantee.
    """

    problem: tilt.Problem
    epsilon: float
    delta: float
    tolerance: float
    tilt: tilt.Tilt | None
    noises: dict[str, lattice.Noise]
    longest: float
    persons: Persons | None = None
    found: dict[str, lattice.Noise] = {}

    @property
    def gaussians(self) -> list[lattice.Noise]:
        """All noises but the tilt's."""
        return [*self.noises.values(), *self.found.values()]

    @property
    def variation(self) -> Fraction:
        """eta: a bound on the total variation distance to the same release in real numbers."""
        total = sum(noise.variation for noise in self.gaussians)
        if self.tilt is not None:
            total += self.tilt.noise.variation + lattice.UNLIKELY
        return total

    def delta_at(self, epsilon: float) -> float:
        """The proven delta at epsilon >= 0, rounded up."""
        mu = lattice.above(lattice.together(self.gaussians))
        one, r = 0.0, 1 / (self.problem.n * Fraction(self.problem.lam))
        if self.tilt is not None:
            one = lattice.above(self.tilt.noise.mu)
        name = "logistic" if self.tilt is None else self.problem.loss.name
        delta = composed(epsilon, one, mu, lattice.above(r), name, self.persons)
        delta = Fraction(delta) * (1 + SLACK) + lattice.failure(epsilon, self.variation)
        return lattice.above(min(delta, Fraction(1)))

    @property
    def entries(self) -> Callable:
        """What `statistics.sums` makes of each matrix."""
        return statistics.vector

    def within(self, V: np.ndarray) -> np.ndarray:
        """Rows of which the guarantee holds, once they are shortened: all."""
        return V

    def described(self, release: "Release") -> "Described":
        """The function `described`."""
        return described(release)

    def costs(self) -> dict[str, tuple[Fraction, Fraction]]:
        """As `norm_models.Plan.costs`: none, because all parts are one Gaussian release."""
        return {}

    def guarantee(self) -> Guarantee:
        """The replace-one guarantee, with profile and reason.

        Returns
        -------
        dp_privacy.accounting.Guarantee
        """
        parts = ", ".join(
            f"{float(noise.deviation):.6g} on the {part}" for part, noise in self.noises.items()
        )
        begin = ""
        if self.tilt is not None:
            begin = f"tilt of standard deviation {float(self.tilt.noise.deviation):.6g}; "
        if self.persons is not None:
            most, weight = self.persons.most, self.persons.weight
            begin = f"a person has at most {most} rows, with a total weight of {weight} at most; {begin}"
        reason = (
            f"{begin}weights with a gradient norm of at most {self.tolerance:.3g} in exact "
            f"arithmetic, which are found on every data set; discrete Gaussian noise of standard "
            f"deviation {parts}; all rounding is paid for, and a distance of "
            f"{float(self.variation):.1g} in total variation"
        )
        if self.found:
            counted = ", ".join(
                f"{float(noise.deviation):.6g} for {name}" for name, noise in self.found.items()
            )
            reason += (
                f"; before, bounds from counts of rows in public bins, with discrete Gaussian noise of "
                f"standard deviation {counted}"
            )
        profile = Curve(symmetric(np.vectorize(self.delta_at, otypes=[float])))
        return Guarantee(self.epsilon, self.epsilon, self.delta, REPLACE_ONE, reason, profile)


def composed(
    epsilon: float, m: float, mu: float, r: float, loss: str, persons: Persons | None = None
) -> float:
    """`gaussian_tilt.composed_delta` under replace-one or, without a tilt (m = 0), a Gaussian's delta.

    With `persons` of several rows, it is `person_tilt.composed_delta`.
    """
    if m == 0:
        return float(gaussian_tilt.gaussian_profile(mu, epsilon))
    if persons is not None and persons.most > 1:
        return person_tilt.composed_delta(epsilon, m, mu, r, persons.weight, loss)
    return gaussian_tilt.composed_delta(epsilon, m, mu, r, REPLACE_ONE, loss)


def delta_left(epsilon: float, delta: float, coordinates: int, bits: int) -> float:
    """What `SLACK` and the cost of rounding leave of delta.

    bits: each of the `coordinates` is on a lattice with at least 2^bits points per standard deviation.
    """
    most = lattice.failure(
        epsilon, coordinates * lattice.total_variation(Fraction(1 << bits)) + lattice.UNLIKELY
    )
    left = float((Fraction(delta) - most) / (1 + SLACK))
    if not left > delta / 2:
        raise Refused(
            f"at epsilon {epsilon:g}, rounding costs {float(most):.1g} of delta = {delta:g}: "
            f"give a smaller epsilon or a larger delta"
        )
    return left


def objective_perturbation(
    n: int,
    d: int,
    epsilon: float,
    delta: float,
    loss: losses.Loss = "logistic",
    *,
    statistics_beside: tuple[str, ...] = (),
    lam: float | None = None,
    output: float = 0.03,
    covariance: float = 0.15,
    radius: float = 20.0,
    tolerance: float | None = None,
    bits: int = lattice.BITS,
    persons: Persons | None = None,
    find: dict[str, tuple[float, int]] | None = None,
) -> Plan:
    """The `Plan` of theorem 1 (`dp_release.tilt`), with statistics at the released weights.

    Options are those of `dp.mechanisms.noise_aware`; each statistic gets the share `covariance` of mu^2.
    lam: None for `rule_lambda`. tolerance: None for the smallest that is reached on every data set.
    persons: None if a row is protected. With several rows per person, the profile of theorem 1 is that of
    `dp.proofs.person_tilt`; nothing else in its proof depends on how neighbours differ.
    find: column -> (share of mu^2, number of bins), for bounds that are found (`dp_release.bounds`).
    """
    loss = losses.get(loss)
    name, kappa = loss.name, loss.kappa
    _check(n, d, epsilon, delta)
    find = find or {}
    shares = sum(share for share, _ in find.values())
    second = math.sqrt(output**2 + covariance * len(statistics_beside) + shares)
    if not 0 < output <= second < 1:
        raise Refused("the shares of mu leave nothing for the tilt: make them smaller")
    several = persons is not None and persons.most > 1
    most = persons.weight if several else 1
    if several and statistics.SQUARE in statistics_beside:
        raise Refused(
            "empty slots of people count in a mean square of slopes: take `robust: true`, or no person"
        )
    if lam is None and several:
        options = {"slope": kappa, "loss": name, "radius": radius, "output": second}
        lam = person_tilt.rule_lambda(n, d, epsilon, delta, most, **options)
    elif lam is None:
        options = {"loss": loss, "output": second, "radius": radius}
        rule = MECHANISMS["gaussian_objective_perturbation"].rule_lambda
        lam = rule(n, d, epsilon, delta, **options)
    _check_lambda(lam)
    counts = [statistics.coordinates(kind, d) for kind in statistics_beside]
    bins = sum(count for _, count in find.values())
    left = delta_left(epsilon, delta, 2 * d + sum(counts) + bins, bits)
    free = gaussian_tilt.sigma_where_free(epsilon, left, 1.0, kappa, REPLACE_ONE, name) * most
    if several:
        least = person_tilt.replacement(epsilon, kappa / (50 * free), 1 / (n * lam), most, name)
    else:
        least = gaussian_tilt.tilt_delta(epsilon, 50 * free, n * lam, 1.0, kappa, REPLACE_ONE, name)
    if least > left:
        raise Refused(
            f"at n lambda = {n * lam:.3g} no useful tilt is private: give a larger lambda"
        )
    if several:
        sigma, mu = person_tilt.with_output_noise(epsilon, left, n * lam, most, kappa, name, second)
    else:
        sigma, mu = gaussian_tilt.with_output_noise(
            epsilon, left, n * lam, 1.0, kappa, REPLACE_ONE, name, second
        )
    tilted = tilt.tilt(lattice.above(Fraction(sigma) * BESIDE), kappa, d, bits)
    pull = lattice.above(tilted.reach / n)
    problem = tilt.Problem(n, d, float(lam), loss, pull)
    tolerance = _tolerance(problem, tolerance)
    mu = Fraction(mu) / BESIDE

    def below(part):
        """part/second, a share of the joint mu. It is rounded down, since float division may round up."""
        return Fraction(part / second) * (1 - Fraction(1, 10**15))

    moved = tilt.moved(problem, tilted.noise.step, tolerance)
    noises = {"weights": lattice.covering(moved, mu * below(output), d, bits)}
    longest = _longest(problem, noises["weights"])
    share = below(math.sqrt(covariance))
    for kind, count in zip(statistics_beside, counts, strict=True):
        moved = statistics.sensitivity(kind, problem) * most
        moved += 2 * Fraction(statistics.rounding(kind, problem, longest))
        noises[kind] = lattice.covering(moved, mu * share, count, bits)
    found = {
        name: bounds.noise(mu * below(math.sqrt(share)), count, bits)
        for name, (share, count) in find.items()
    }
    plan = Plan(problem, epsilon, delta, tolerance, tilted, noises, longest, persons, found)
    _check_delta(plan)
    return plan


def noise_aware_logistic(
    n: int, d: int, epsilon: float, delta: float, robust: bool = False, **options
) -> Plan:
    """A plan that releases logistic weights and, for intervals, their Hessian.

    Parameters
    ----------
    n, d : int
        Public numbers of rows and columns.
    epsilon, delta : float
        Cost of the release: epsilon at most 50, delta in (0, 1).
    robust : bool
        Whether to release second moments of the slopes, for intervals that hold under a wrong model.
    **options
        Those of `objective_perturbation`.

    Returns
    -------
    Plan

    Examples
    --------
    >>> plan = noise_aware_logistic(5000, 3, epsilon=1.0, delta=1e-6)
    >>> print(plan.guarantee().epsilon, list(plan.noises))
    1.0 ['weights', 'hessian']
    """
    beside = (statistics.HESSIAN, statistics.SCORES)[: 1 + robust]
    return objective_perturbation(
        n, d, epsilon, delta, "logistic", statistics_beside=beside, **options
    )


def noise_aware_log_cosh(
    n: int, d: int, epsilon: float, delta: float, robust: bool = True, tau: float = 0.25, **options
) -> Plan:
    """A plan that releases log-cosh weights for a numeric target, and statistics for intervals.

    Parameters
    ----------
    n, d, epsilon, delta
        As for `noise_aware_logistic`.
    robust : bool
        Whether to release second moments of the slopes, not only their mean square.
    tau : float
        Width of the loss, for targets in [-1, 1].
    **options
        As for `noise_aware_logistic`.

    Returns
    -------
    Plan

    Examples
    --------
    >>> list(noise_aware_log_cosh(5000, 3, epsilon=1.0, delta=1e-6).noises)
    ['weights', 'hessian', 'scores']
    """
    other = statistics.SCORES if robust else statistics.SQUARE
    beside = (statistics.HESSIAN, other)
    loss = losses.LogCosh(tau)
    return objective_perturbation(n, d, epsilon, delta, loss, statistics_beside=beside, **options)


def output_perturbation_gaussian(
    n: int,
    d: int,
    epsilon: float,
    delta: float,
    lam: float,
    loss: losses.Loss = "logistic",
    tolerance: float | None = None,
    bits: int = lattice.BITS,
) -> Plan:
    """A plan that releases only weights, by output perturbation.

    It uses lemma 2 (`dp_release.lattice`), with D = 2 kappa/(n lam) and rho = tau/lam.
    """
    loss = losses.get(loss)
    _check(n, d, epsilon, delta)
    _check_lambda(lam)
    problem = tilt.Problem(n, d, float(lam), loss)
    tolerance = _tolerance(problem, tolerance)
    mu = Fraction(gaussian_mu(epsilon, delta_left(epsilon, delta, d, bits))) / BESIDE
    moved = 2 * Fraction(loss.kappa) / (n * Fraction(problem.lam))
    moved += tilt.moved(problem, None, tolerance)
    noises = {"weights": lattice.covering(moved, mu, d, bits)}
    longest = _longest(problem, noises["weights"])
    plan = Plan(problem, epsilon, delta, tolerance, None, noises, longest)
    _check_delta(plan)
    return plan


def _check_lambda(lam):
    if not 1e-50 < lam < 1e50:
        raise Refused(f"lambda must be a number strictly between 1e-50 and 1e50, not {lam}")


def _check(n, d, epsilon, delta):
    whole = isinstance(n, Integral) and isinstance(d, Integral)
    if not (whole and n >= 1 and d >= 1 and 0 < epsilon <= 50 and 0 < delta < 1):
        raise Refused(
            f"a release needs whole n and d of at least 1, epsilon in (0, 50] and delta in (0, 1), not "
            f"{n}, {d}, {epsilon} and {delta}"
        )


def _tolerance(problem, tolerance):
    least = tilt.effort(problem).least
    if tolerance is not None and not least <= tolerance < math.inf:
        raise Refused(
            f"not every data set allows a gradient norm of {tolerance:g}: the least is {least:.2g}"
        )
    return least if tolerance is None else float(tolerance)


def _longest(problem, noise):
    """A public radius that released weights exceed with probability at most e^-60."""
    return problem.longest + float(noise.deviation) * (math.sqrt(problem.d) + 11) * (1 + 1e-9)


def _check_delta(plan):
    """Stop if the plan's noise, after rounding, does not achieve its delta. No request can cause this."""
    proven = plan.delta_at(plan.epsilon)
    if not proven <= plan.delta:
        raise RuntimeError(
            f"the calibrated noise has delta {proven:.9g} in place of {plan.delta:.9g}: this is a fault "
            f"of the program, and nothing was released"
        )


class Release(NamedTuple):
    """The release of a plan.

    Attributes
    ----------
    plan : Plan
    parts : dict
        Part -> integers in units of 2^step, with the step in `plan.noises`.

    Methods
    -------
    floats
        A part as floats.
    offset
        What is added to all scores.
    """

    plan: Plan
    parts: dict[str, list[int]]

    def floats(self, part: str) -> np.ndarray:
        """A part as floats: post-processing.

        Parameters
        ----------
        part : str
            Key of `parts`.

        Returns
        -------
        numpy.ndarray
        """
        unit = self.plan.noises[part].spacing
        return np.array([float(each * unit) for each in self.parts[part]])

    def offset(self) -> float:
        """What is added to all scores, 0 without a class rate: post-processing.

        Returns
        -------
        float
        """
        if RATE not in self.parts:
            return 0.0
        return rate.offset(*self.parts[RATE], self.plan.noises[RATE], self.plan.problem.n)


def release(
    plan: Plan, V: np.ndarray, y: np.ndarray, key: bytes, shares: np.ndarray | None = None
) -> Release:
    """Release a plan from rows of integers, with all randomness from a key.

    Long rows are shortened, labels clipped (`dp_release.rows.bounded`), and rows outside a plan's body
    become zeros, so the guarantee holds for any input. Only `dp_release.making.make` charges a budget book.

    Parameters
    ----------
    plan : Plan
    V : numpy.ndarray of int32, (n, d)
        Rows in units of 2^-20.
    y : numpy.ndarray of int32, (n,)
        Labels -1 and 1, or targets in units of 2^-20; 0 in rows of zeros.
    key : bytes
        A secret from `dp_release.draws.new_key`, only for this release.
    shares : numpy.ndarray of int32, (n,), or None
        Weights of rows in units of 2^-20, if every person counts once (`dp_release.persons`). The rows
        stand by person then, as many for each.

    Returns
    -------
    Release

    Raises
    ------
    dp_privacy.errors.Refused
        If the number of rows or columns differs from the plan's.

    Examples
    --------
    >>> schema = rows.Schema([rows.Number("age", 0, 120), rows.Category("ill", ("no", "yes"))], "ill")
    >>> lines = [b"%d,%s" % (20 + k % 70, b"yes" if k % 70 > 40 else b"no") for k in range(5000)]
    >>> plan = noise_aware_logistic(5000, schema.d, epsilon=1.0, delta=1e-6)
    >>> found = release(plan, *schema.rows(lines, n=5000), key=bytes(32))  # a key that is not secret
    >>> described(found).weights.shape
    (2,)
    """
    problem = plan.problem
    if V.shape != (problem.n, problem.d):
        raise Refused(f"the plan is for {problem.n} rows of {problem.d} columns")
    X, y = rows.bounded(plan.within(V), y, problem.loss.residual)
    shares = check_shares(shares, plan.persons, problem.n)
    result = Release(plan, {})
    if RATE in plan.noises:  # before anything else, as theorem 5 needs
        exact, stream = [rate.total(y)], Stream(key, RATE)
        result.parts[RATE] = lattice.released(exact, plan.noises[RATE], stream)
    offset, pull = result.offset(), np.zeros(problem.d)
    if plan.tilt is not None:
        pull = tilt.draw(plan.tilt, Stream(key, "tilt"))
    weights = tilt.minimiser(problem, X, y, pull, plan.tolerance, shares, offset)
    noise = plan.noises["weights"]
    result.parts["weights"] = lattice.released(weights, noise, Stream(key, "weights"))
    beside = [part for part in plan.noises if part not in (RATE, "weights")]
    if beside:
        point = statistics.within(result.floats("weights"), plan.longest)
        values = statistics.sums(beside, problem, X, y, point, shares, plan.entries, offset)
        for part in beside:
            stream = Stream(key, part)
            result.parts[part] = lattice.released(values[part].tolist(), plan.noises[part], stream)
    return result


class Described(NamedTuple):
    """Weights (d,) without the ridge's bias, their covariance (d, d), and which have intervals (d,).

    unresolved (d, d): the part of the covariance due to the Hessian's noise, as in `Linearised`.
    """

    weights: np.ndarray
    covariance: np.ndarray
    answered: np.ndarray
    unresolved: np.ndarray

    def intervals(
        self, estimate: np.ndarray, covariance: np.ndarray, T: np.ndarray, answered: np.ndarray
    ) -> Intervals:
        """Intervals for coefficients (1, k) that are T weights plus constants."""
        return wald(estimate, covariance, answered=answered)


def described(release: Release) -> Described:
    """Weights with their covariance, by post-processing of a release.

    Parameters
    ----------
    release : Release
        Of `noise_aware_logistic` or `noise_aware_log_cosh`.

    Returns
    -------
    Described

    Examples
    --------
    >>> plan = noise_aware_logistic(200, 2, epsilon=1.0, delta=1e-6)
    >>> V, y = np.zeros((200, 2), np.int32), np.zeros(200, np.int32)
    >>> described(release(plan, V, y, bytes(32))).answered  # rows of zeros carry no information
    array([False, False])
    """
    plan, problem = release.plan, release.plan.problem
    n, d, loss = problem.n, problem.d, problem.loss
    noises = plan.noises
    deviation = float(noises[statistics.HESSIAN].deviation) / n
    hessian = statistics.matrix(release.floats(statistics.HESSIAN) / n, d)[None]
    level = curvature_level(hessian, deviation)
    hessian = floored(hessian, FLOOR * deviation)
    scores, vague = None, np.zeros(1, dtype=bool)
    if statistics.SCORES in noises:
        scores = statistics.matrix(release.floats(statistics.SCORES) / n, d)[None]
        scores = floored(scores, 0.0) * loss.kappa**2
    elif statistics.SQUARE in noises:
        size = loss.kappa**2 / n
        v = release.floats(statistics.SQUARE) * size
        scale = float(noises[statistics.SQUARE].deviation) * size
        scores, vague = assumed(v, hessian, scale, loss)
    if plan.persons is not None and plan.persons.weight > 1:
        # rows of a person may be as good as copies of each other (`dp.proofs.person_tilt`)
        scores = plan.persons.weight * (hessian if scores is None else scores)
    weights = release.floats("weights")[None]
    deviations = float(plan.tilt.noise.deviation), float(noises["weights"].deviation)
    change = None if loss.residual else partial(logistic_change, level=level)
    linear = linearise(weights, hessian, n, problem.lam, *deviations, scores, deviation, change)
    info = said(linear, vague)
    answered, unresolved = info["answered"][0], info["unresolved"][0]
    return Described(linear.estimate[0], linear.covariance[0], answered, unresolved)
