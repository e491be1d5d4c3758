"""Plans of releases with noise of a norm's law: three products.

    weights_alone   weights for predictions and coefficients; pure
    pure_table      weights and a Hessian, all noise by norms (theorems 2 and 4 of `norm_noise`); pure
    mixed_table     a tilt by a norm and a Gaussian Hessian, composed exactly; takes a delta. The norm is
                    the hull's or, with many numbers, the Euclidean one, if intervals are then narrower

Any of them may begin with a class rate (`dp_release.rate`). Rows are of map 2 (`dp_release.contrasts`). All
is decided by public numbers: lambda, the output noise's part of epsilon, the Hessian's, and which of two
tables has the narrower intervals (`table`).
"""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from dp import losses
from dp.mechanisms.knorm_objective_perturbation import RATE as SHARE
from dp.mechanisms.noise_aware import assumed
from dp.mechanisms.objective_perturbation import Tilted
from dp.noise import l2_laplace_reach
from dp.proofs.log_concave_tilt import Ball, Curvature, pure_epsilon, pure_shift
from dp_privacy import l2
from dp_privacy.accounting import REPLACE_ONE, Guarantee, gaussian_mu
from dp_privacy.errors import Refused
from dp_privacy.profiles import Curve, approximate, gaussian_profile, symmetric, with_chords
from dp_release import (
    contrasts,
    lattice,
    models,
    norm_noise,
    norm_tables,
    rate,
    rows,
    statistics,
    tilt,
)
from dp_release.norm_noise import Body, Noise
from dp_release.rate import RATE

# A thousand times the relative error of a pure epsilon in floating point.
CLOSE = Fraction(1, 10**12)
LESS = Fraction(1) - Fraction(1, 10**9)  # of what is spent on a part: a margin for rounding
PURE_SHARES = (
    0.05,
    0.1,
    0.15,
    0.2,
    0.25,
    0.3,
    0.35,
    0.4,
    0.5,
    0.6,
)  # of epsilon, tried for a Hessian
MIXED_SHARES = (0.02, 0.05, 0.1, 0.15, 0.25, 0.4)  # of mu^2
FEW = 12  # numbers, with fewer of which a box's tilt is quieter than the l2 one
POINTS = 96  # of the l2 tilt's profile
OFFSETS = BY_RULE, PAID, NONE = "rule", "paid", "none"
DEARER, WIDER = 0.002, 1.06  # what a class rate may cost, by `with_offset`
NO_WIDER = 1.02  # a pure table is taken if its intervals are at most this much wider
# In deviations of the noise on a Hessian's trace: below the first, a table of classes has no intervals;
# the second is for a lower bound on the mean of l''.
SURE, LOWER = 3.0, 2.0
# For a public design: the mean of l'', and the scores' standard deviation.
TYPICAL = {"logistic": (0.2, 1.0), "log_cosh": (0.7, 0.25)}


class Entries(NamedTuple):
    """The entries of a symmetric matrix (d, d) that a release has, in the order of its noise.

    i, j: their places. factors: the release has factor times the entry. body: for noise by a norm.
    """

    i: np.ndarray
    j: np.ndarray
    factors: np.ndarray
    body: Body
    d: int

    def vector(self, matrix: np.ndarray) -> np.ndarray:
        """The released vector of a matrix, or of a number."""
        return matrix[None] if matrix.ndim == 0 else matrix[self.i, self.j] * self.factors

    def matrix(self, vector: np.ndarray) -> np.ndarray:
        """The symmetric matrix of a released vector."""
        M = np.zeros((self.d, self.d))
        M[self.i, self.j] = M[self.j, self.i] = vector / self.factors
        return M


def entries(body: Body, pure: bool) -> Entries:
    """The entries that are not 0 on every valid row, with the parts of theorem 4 or for a Gaussian."""
    singles, blocks = body.singles, body.blocks
    pairs = [(j, j) for j in singles]
    pairs += [(a, b) for k, a in enumerate(singles) for b in singles[k + 1 :]]
    parts = [[(level, level) for level in block] for block in blocks]
    parts += [[(j, level) for level in block] for j in singles for block in blocks]
    parts += [
        [(a, b) for a in first for b in second]
        for k, first in enumerate(blocks)
        for second in blocks[k + 1 :]
    ]
    taken, places = len(pairs), []
    for part in parts:
        places.append(tuple(range(taken, taken + len(part))))
        taken += len(part)
        pairs += part
    i, j = np.array(pairs).T
    if pure:
        factors = np.where(np.arange(taken) < len(singles), 2.0, 1.0)
    else:
        factors = np.where(i == j, 1.0, statistics.SQRT2)
    return Entries(i, j, factors, Body(taken, tuple(places)), body.count)


class Plan(NamedTuple):
    """All that is public before a release with a tilt by a norm. See `models.Plan`.

    u: bound on entries of rows, as in `norm_noise`. beside: of the released matrices.
    """

    problem: tilt.Problem
    epsilon: float
    delta: float
    tolerance: float
    tilt: tilt.Tilt
    noises: dict[str, Noise | lattice.Noise]
    longest: float
    body: Body
    u: Fraction
    beside: Entries
    persons: None = None  # not proven here for people with several rows
    found: dict = {}  # nor for bounds that are found

    @property
    def entries(self) -> Callable:
        """What `statistics.sums` makes of each matrix."""
        return self.beside.vector

    def within(self, V: np.ndarray) -> np.ndarray:
        """Rows of integers with zeros in place of those outside the body. Rows of map 2 are inside."""
        most, inside = int(self.u * rows.ONE), np.ones(len(V), dtype=bool)
        sizes = np.abs(np.asarray(V).astype(np.int64))
        singles = self.body.singles
        inside &= (sizes[:, singles] <= most).all(axis=1)
        for block in self.body.blocks:
            inside &= sizes[:, list(block)].sum(axis=1) <= most
        return np.where(inside[:, None], V, 0) if not inside.all() else V

    @property
    def gaussian(self) -> list[lattice.Noise]:
        return [noise for noise in self.noises.values() if isinstance(noise, lattice.Noise)]

    @property
    def variation(self) -> Fraction:
        """eta: as in `models.Plan`, and the probability of a tilt beyond its reach."""
        total = sum(noise.variation for noise in self.noises.values())
        return total + self.tilt.noise.variation + lattice.UNLIKELY

    @property
    def paid(self) -> Fraction:
        """The epsilon of all noise of a norm's law but the tilt."""
        return sum(each.paid for each in self.noises.values() if isinstance(each, Noise))

    @property
    def certain(self) -> Fraction:
        """The epsilon of all parts that are not Gaussian, rounded up. For a hull's tilt."""
        return _of_tilt(self.tilt.noise, self.problem, self.u) + self.paid

    def delta_at(self, epsilon: float) -> float:
        """The proven delta at epsilon >= 0, rounded up."""
        mu = lattice.above(lattice.together(self.gaussian))
        if self.tilt.noise.law == "l2":
            m = lattice.above(
                norm_noise.shift(self.tilt.noise, self.problem.loss.kappa, Fraction(1))
            )
            curve = ball_and_gaussian(
                m, self.problem.d, self.problem.loss.name, _r(self.problem), mu
            )
            delta = Fraction(float(curve.delta(epsilon - lattice.above(self.paid))))
        else:
            delta = Fraction(pure_and_gaussian(lattice.above(self.certain), mu, epsilon))
        delta = delta * (1 + models.SLACK) + lattice.failure(epsilon, self.variation)
        return lattice.above(min(delta, Fraction(1)))

    def costs(self) -> dict[str, tuple[Fraction, Fraction]]:
        """Part -> the epsilon and delta that it adds to what the parts before it cost together.

        They add up to the release's, exactly. Pure parts cost what is paid for them. The delta is that of
        the first part that needs one: parts are composed exactly, so later ones add less than they would
        cost alone. The weights' cost is that of the tilt and of their noise.
        """
        whole = Fraction(str(self.epsilon)), Fraction(str(self.delta))
        names, costs, before = list(self.noises), {}, (Fraction(0), Fraction(0))
        for k, part in enumerate(names):
            until = self._replace(noises={name: self.noises[name] for name in names[: k + 1]})
            after = until._cost() if k + 1 < len(names) else whole
            after = max(after[0], before[0]), after[1]
            costs[part] = after[0] - before[0], after[1] - before[1]
            before = after
        return costs

    def _cost(self):
        """(epsilon, delta) of these parts together, with a delta of 0 or the release's. Rounded up."""
        if "weights" not in self.noises:
            return _decimals(self.paid), Fraction(0)
        if self.tilt.noise.law != "l2" and not self.gaussian:
            return min(_decimals(self.certain), Fraction(str(self.epsilon))), Fraction(0)
        low, high = Fraction(0), Fraction(str(self.epsilon))
        while high - low > high / 10**4:
            middle = (low + high) / 2
            low, high = (
                (low, middle) if self.delta_at(float(middle)) <= self.delta else (middle, high)
            )
        return min(_decimals(high), Fraction(str(self.epsilon))), Fraction(str(self.delta))

    def guarantee(self) -> Guarantee:
        """The replace-one guarantee. A delta of 0 is up to `variation`, as the reason says."""
        problem, noise = self.problem, self.tilt.noise
        u, within = self.u, _named(self.body)
        if noise.law == "l2":
            u, within = Fraction(1), "ball of radius 1"
        m = norm_noise.shift(noise, problem.loss.kappa, u)
        parts = [
            f"noise of a norm's law on the {part}, for {float(each.paid):.4g} of epsilon"
            if isinstance(each, Noise)
            else f"discrete Gaussian noise of standard deviation {float(each.deviation):.6g} on the {part}"
            for part, each in self.noises.items()
        ]
        around = ""
        if RATE in self.noises:
            around = (
                "; the rate is of class 1, is released first, and its log odds are in all scores"
            )
        reason = (
            f"by public bounds every row lies in a {within}; tilt with a density of "
            f"exp(-N(b)/s), N its norm, of which a row's slopes move the exponent by at most "
            f"{float(m):.6g}; n lambda = {problem.n * problem.lam:.6g} beside the sum of the losses; "
            f"weights with a gradient norm of at most {self.tolerance:.3g} in exact arithmetic, which are "
            f"found on every data set; {', '.join(parts)}{around}; all rounding is paid for, and tilts of "
            f"a probability below 1e-26, for which no weights may be found, "
        )
        if self.gaussian:
            reason += f"with a distance of {float(self.variation):.1g} in total variation"
        else:
            reason += "are not counted, as their delta is below that at which a hash function fails"
        profile = Curve(symmetric(np.vectorize(self.delta_at, otypes=[float])))
        return Guarantee(self.epsilon, self.epsilon, self.delta, REPLACE_ONE, reason, profile)

    def described(self, release: models.Release) -> norm_tables.Described:
        """Weights with their covariance, by post-processing of a release."""
        n, loss, noises = self.problem.n, self.problem.loss, self.noises
        matrices = {
            part: self.beside.matrix(release.floats(part)) / n
            for part in noises
            if part in (statistics.HESSIAN, statistics.SCORES)
        }
        hessian, own = matrices[statistics.HESSIAN], self.noise_of(statistics.HESSIAN)
        if not loss.residual:
            spread = math.sqrt(np.trace(own.variances))
            hessian = hessian * norm_tables.unselected_share(np.trace(hessian) / spread, SURE)
        scores, vague = None, False
        if statistics.SCORES in matrices:
            scores = matrices[statistics.SCORES] * loss.kappa**2
        elif statistics.SQUARE in noises:
            size = loss.kappa**2 / n
            scale = math.sqrt(float(_variances(noises[statistics.SQUARE])[0])) * size
            value = release.floats(statistics.SQUARE) * size
            found, unknown = assumed(value, np.ones((1, 1, 1)), scale, loss)
            scores, vague = float(found[0, 0, 0]) * hessian, bool(unknown[0])
        result = self.linearised(release.floats("weights"), hessian, own, scores)
        return result._replace(unresolved=result.covariance) if vague else result

    def linearised(
        self,
        weights: np.ndarray,
        hessian: np.ndarray,
        own: norm_tables.Entries,
        scores: np.ndarray | None = None,
        **more: float,
    ) -> norm_tables.Described:
        """`norm_tables.linearised` for this plan. own: `noise_of` the Hessian."""
        level = None
        if not self.problem.loss.residual:
            level = np.trace(hessian) - LOWER * math.sqrt(np.trace(own.variances))
        return norm_tables.linearised(
            *(weights, hessian, self.problem.n, self.problem.lam, self.tilt.noise),
            *(_variances(self.noises["weights"]), own, contrasts.span(self.body), scores, level),
            **more,
        )

    def noise_of(self, part: str) -> norm_tables.Entries:
        """The noise on the entries of a released matrix, of means over rows."""
        which = self.beside
        found = _variances(self.noises[part]) / (which.factors * self.problem.n) ** 2
        variances = np.zeros((which.d, which.d))
        variances[which.i, which.j] = variances[which.j, which.i] = found
        return norm_tables.scaled(variances)


def _decimals(epsilon):
    """A positive number, rounded up to nine digits."""
    exact = Context(prec=60).divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return Fraction(Context(prec=9, rounding=ROUND_CEILING).create_decimal(exact))


def _named(body):
    numbers, sizes = len(body.singles), [len(block) for block in body.blocks]
    said = f"box of {numbers} columns" if numbers else ""
    if sizes:
        said += (
            f"{' with ' if said else 'product of '}one-hot blocks of {', '.join(map(str, sizes))}"
        )
    return said


def _variances(noise):
    if isinstance(noise, Noise):
        return noise.variances
    return np.full(noise.count, float(noise.deviation) ** 2)


def _of_tilt(noise, problem, u):
    """The tilt's part of epsilon, with its rounding, rounded up."""
    m = lattice.above(norm_noise.shift(noise, problem.loss.kappa, u))
    one = Fraction(pure_epsilon(m, _curvature(problem))) * (1 + CLOSE)
    return one + norm_noise.rounding(noise)


def _r(problem):
    return lattice.above(1 / (problem.n * Fraction(problem.lam)))


def _curvature(problem):
    return Curvature(problem.loss.name, _r(problem))


def pure_and_gaussian(epsilon: float, mu: float, at: float) -> float:
    """delta at `at` of an epsilon-DP release and a mu-GDP one together (`norm_noise`)."""
    if mu == 0:
        return float(approximate(epsilon).delta(at))
    near, far = (float(gaussian_profile(mu, at + sign * epsilon)) for sign in (-1, 1))
    share = 1 / (1 + math.exp(-epsilon))
    return share * near + (1 - share) * far


@lru_cache(maxsize=256)
def ball_and_gaussian(m: float, d: int, loss: str, r: float, mu: float) -> Curve:
    """The profile of an exact minimiser with the l2 tilt (theorem 3) and a mu-GDP release together.

    It is E delta_t(e - L), L ~ N(mu^2/2, mu^2), as losses add up. delta_t is evaluated at `POINTS` epsilons
    up to one at which it is 0; the chords of `with_chords` between them are upper bounds.
    """
    curvature = Curvature(loss, r)
    ball = Ball(m, d, curvature)
    last = (m + float(curvature.largest(m))) * (1 + 1e-9)
    profile = Curve(np.vectorize(ball.replacement, otypes=[float]))
    return with_chords([profile], mu, np.linspace(last / POINTS, last, POINTS))


def _check(n, body, epsilon):
    if not (n >= 1 and 0 < epsilon <= 50 and body.count >= 1):
        raise Refused(f"a release needs rows, and epsilon in (0, 50], not {n} and {epsilon}")


def _made(
    n, body, u, loss, epsilon, delta, certain, matrices, radius=20.0, given=None, offset=False
):
    """The `Plan` whose parts that are not Gaussian cost `certain`, all but for `given` noises.

    matrices: part -> its share of epsilon, released by norms. given: (problem, longest) -> noises of
    Gaussian parts.
    """
    loss, u, certain = losses.get(loss), Fraction(u), Fraction(certain)
    kappa, d = loss.kappa, body.count
    first, paid, most = _rate(n, loss, epsilon, offset)
    left = certain - sum(map(Fraction, matrices.values())) - paid
    if not left > 0:
        raise Refused("the shares leave nothing for the tilt: make them smaller")
    # 2 c/S of theorem 2, S >= 2^BITS, where the margins by `LESS` do not cover it
    left -= max(Fraction(2 * body.largest, 1 << lattice.BITS) - left * (1 - LESS), 0)
    if not left > 0:
        raise Refused(f"epsilon {epsilon:g} is no more than rounding costs: give a larger epsilon")
    usual, free = (4, 4) if loss.residual else (3, 2)

    def tilted(spent):
        """(problem, tilt) where the tilt costs `spent`."""
        n_lambda = max(usual / epsilon, free / float(spent) * (1 + 1e-6))
        m = float(spent) / 2
        far = float(u) * kappa / m * math.sqrt(body.variances().sum()) / radius
        lam = max(n_lambda, far) / n
        models._check_lambda(lam)
        m = pure_shift(float(spent * LESS), Curvature(loss.name, 1 / (n * lam)))
        if not m > 0:
            raise Refused(f"at n lambda = {n * lam:.3g} no tilt is private: give a larger epsilon")
        made = norm_noise.tilt(Fraction(kappa) * u / (Fraction(m) * LESS), body)
        return tilt.Problem(n, d, lam, loss, lattice.above(made.reach / n), most), made

    part = Fraction(1, 1000)
    for _ in range(3):  # the tolerance hardly depends on the tilt's part
        problem, made = tilted(left * (1 - part) * LESS)
        tolerance = tilt.effort(problem).least
        part = Fraction(Tilted.share(n, d, problem.lam, 1.0, loss, tolerance))
        if not part <= Fraction(1, 2):
            raise Refused(
                f"at epsilon {epsilon:g} and {n} rows, hiding the solver's error takes more than half of "
                f"epsilon: give a larger epsilon"
            )
    problem, made = tilted(left * (1 - part) * LESS)
    tolerance = tilt.effort(problem).least
    output = norm_noise.output(problem, made.noise, tolerance, left * part * LESS)
    noises, longest = first | {"weights": output}, _longest(problem, output)
    which = entries(body, pure=given is None)
    if matrices and which.body.count > norm_noise.MOST:
        raise Refused(
            f"{which.body.count} entries of a Hessian are more than {norm_noise.MOST}: take fewer columns, "
            f"or the law mixed"
        )
    for kind, share in matrices.items():
        noises[kind] = _by_norm(kind, problem, which, u, Fraction(share), longest)
    if given:
        noises |= given(problem, longest)
    plan = Plan(problem, epsilon, delta, tolerance, made, noises, longest, body, u, which)
    _check_plan(plan)
    return plan


def _rate(n, loss, epsilon, offset):
    """(the first noise of theorem 5 by part, its epsilon, a bound on |offset|); none without an offset."""
    if not offset:
        return {}, Fraction(0), 0.0
    if loss.residual:
        raise Refused("an offset is for two classes")
    first = rate.noise(Fraction(epsilon) * Fraction(SHARE) * LESS)
    return {RATE: first}, first.paid, rate.largest(first, n)


def _by_norm(kind, problem, which, u, epsilon, longest):
    """The noise of theorem 4."""
    rho = Fraction(statistics.rounding(kind, problem, longest))
    if kind == statistics.SQUARE:
        return norm_noise.hiding(1 + 2 * rho, Body(1), Fraction(1), epsilon)
    most, p = Fraction(problem.loss.c) if kind == statistics.HESSIAN else 1, which.body.largest
    return norm_noise.hiding(2 * most * u**2 + 4 * p * rho, which.body, Fraction(p), epsilon)


def _longest(problem, noise):
    """A public radius beyond which released weights are shortened before statistics are computed."""
    far = float(noise.unit) * float(l2_laplace_reach(problem.d)) * math.sqrt(problem.d)
    return problem.longest + far * (1 + 1e-9)


def _check_plan(plan):
    """Stop if the rounded noise does not keep the plan's guarantee. No request can cause this."""
    if plan.delta:
        kept = plan.delta_at(plan.epsilon) <= plan.delta
    else:
        kept = plan.certain <= Fraction(plan.epsilon)
    if not kept:
        raise RuntimeError(
            "the calibrated noise does not keep the guarantee: this is a fault of the program, and nothing "
            "was released"
        )


def weights_alone(
    n: int, body: Body, u: Fraction, epsilon: float, loss: losses.Loss = "logistic", **options
) -> Plan:
    """A plan that releases weights, with delta = 0.

    n, epsilon: as in `models`. body, u: of the rows (`contrasts.body`, `rows.Schema.each` 2^-20).
    """
    _check(n, body, epsilon)
    return _made(n, body, u, loss, epsilon, 0.0, Fraction(epsilon) * LESS, {}, **options)


def beside(loss: losses.Loss, robust: bool) -> tuple[str, ...]:
    """The statistics of a table."""
    if losses.get(loss).residual:
        return (statistics.HESSIAN, statistics.SCORES if robust else statistics.SQUARE)
    return (statistics.HESSIAN, statistics.SCORES)[: 1 + robust]


def _shares(share, known, kinds, what):
    """The shares to try: the stated one, or those known that leave something for the tilt."""
    if share is None:
        return [each for each in known if each * len(kinds) < 0.95]
    if not 0 < share * len(kinds) < 1:
        raise Refused(f"the shares of {what} leave nothing for the tilt: make them smaller")
    return [share]


@lru_cache(maxsize=64)
def pure_table(
    n: int,
    body: Body,
    u: Fraction,
    epsilon: float,
    loss: losses.Loss = "logistic",
    robust: bool = False,
    share: float | None = None,
    offset: bool = False,
) -> Plan:
    """A plan that releases weights and the statistics for intervals, with delta = 0.

    share: each statistic's part of epsilon; None for that of `PURE_SHARES` with the smallest predicted
    widths.
    """
    _check(n, body, epsilon)
    kinds = beside(loss, robust)

    def at(share):
        spent = Fraction(epsilon) * LESS
        matrices = dict.fromkeys(kinds, spent * Fraction(share) * LESS)
        return _made(n, body, u, loss, epsilon, 0.0, spent, matrices, offset=offset)

    return _narrowest(at, _shares(share, PURE_SHARES, kinds, "epsilon"))


@lru_cache(maxsize=64)
def mixed_table(
    n: int,
    body: Body,
    u: Fraction,
    epsilon: float,
    delta: float,
    loss: losses.Loss = "logistic",
    robust: bool = False,
    share: float | None = None,
    offset: bool = False,
) -> Plan:
    """A plan with a tilt by a norm, and Gaussian statistics for intervals.

    share: each statistic's part of the mu^2 that a Gaussian release at (epsilon, delta) has; None for that
    of `MIXED_SHARES` with the smallest predicted widths.
    """
    _check(n, body, epsilon)
    models._check(n, body.count, epsilon, delta)
    kinds, which = beside(loss, robust), entries(body, pure=False)
    counts = [1 if kind == statistics.SQUARE else len(which.i) for kind in kinds]
    left = models.delta_left(epsilon, delta, sum(counts), lattice.BITS)
    whole = gaussian_mu(epsilon, left)

    def at(share):
        mu = whole * math.sqrt(share)
        joint = mu * math.sqrt(len(kinds))
        certain = Fraction(_pure_beside(epsilon, left, joint)) * LESS

        def given(problem, longest):
            return _gaussian(kinds, counts, mu, problem, longest)

        return _made(n, body, u, loss, epsilon, delta, certain, {}, given=given, offset=offset)

    shares = _shares(share, MIXED_SHARES, kinds, "mu^2")
    made = _narrowest(at, shares)
    if len(body.singles) < FEW or _beyond(body, epsilon):
        return made
    other = _ball_table(n, body, u, epsilon, delta, loss, kinds, counts, shares, offset)
    return min(made, other, key=predicted)


def _beyond(body, epsilon):
    """Whether `dp_privacy.l2` is not for so many columns, or for such an epsilon."""
    return body.count > 1000 or 4 * epsilon > l2.LARGEST


def _ball_table(n, body, u, epsilon, delta, loss, kinds, counts, shares, offset):
    """The mixed table with an l2 tilt, at the share with the smallest predicted widths.

    The additive mechanism's profile decides on the share and where the search for the scale begins.
    """
    loss, d = losses.get(loss), body.count
    left = models.delta_left(epsilon, delta, sum(counts), lattice.BITS) * (1 - 1e-9)
    whole, usual = gaussian_mu(epsilon, left), 4 if loss.residual else 3
    first, paid, most = _rate(n, loss, epsilon, offset)
    others = float(epsilon - paid)  # of the parts but the rate

    def made(m, mu):
        """The plan whose tilt has this m."""
        rms = loss.kappa / m * math.sqrt(d * (d + 1))
        lam = max(usual / epsilon, rms / 20) / n
        tilted = norm_noise.tilt(Fraction(loss.kappa) / (Fraction(m) * LESS), body, "l2")
        problem = tilt.Problem(n, d, lam, loss, lattice.above(tilted.reach / n), most)
        tolerance = tilt.effort(problem).least
        part = Fraction(Tilted.share(n, d, lam, 1.0, loss, tolerance))
        spent = Fraction(epsilon) * min(part, Fraction(1, 2))
        noises = first | {"weights": norm_noise.output(problem, tilted.noise, tolerance, spent)}
        longest, which = _longest(problem, noises["weights"]), entries(body, pure=False)
        noises |= _gaussian(kinds, counts, mu, problem, longest)
        return Plan(
            *(problem, epsilon, delta, tolerance, tilted, noises, longest, body, Fraction(u), which)
        )

    def additive(share):
        """The largest m, about, by the additive mechanism's profile alone."""
        mu = whole * math.sqrt(share * len(kinds))

        def over(m):
            grid = np.linspace(m / 24, 2 * m, 48)
            profile = Curve(np.vectorize(lambda e: l2.delta(e, 2 * m, d), otypes=[float]))
            return math.log(float(with_chords([profile], mu, grid).delta(others)) / left)

        high = 1 / (2 * l2.scale(d, others, left))
        low = high / 2
        while over(low) > 0:
            low /= 2
        return brentq(over, low, high, rtol=1e-4) if over(high) > 0 else high

    found = [(share, additive(share)) for share in shares]
    plans = [(predicted(made(m, whole * math.sqrt(share))), share, m) for share, m in found]
    _, share, m = min(plans)
    slope, before = 10.0, None  # of log delta in log m
    for _ in range(40):
        plan = made(m, whole * math.sqrt(share))
        proven = plan.delta_at(epsilon)
        if proven <= delta:
            return plan
        if before is not None:
            change = math.log(before[1] / proven) / math.log(before[0] / m)
            slope = min(max(change, 1.0), 1000.0)
        before = m, proven
        m *= math.exp(-math.log(proven / delta) / slope - 2e-4)
    raise Refused("at these public numbers, no l2 tilt of a useful size is private")


def _gaussian(kinds, counts, mu, problem, longest):
    """Gaussian noise of mu on each statistic."""
    noises = {}
    for kind, count in zip(kinds, counts, strict=True):
        moved = statistics.sensitivity(kind, problem)
        moved += 2 * Fraction(statistics.rounding(kind, problem, longest))
        noises[kind] = lattice.covering(moved, Fraction(mu) / models.BESIDE, count)
    return noises


def _pure_beside(epsilon, delta, mu):
    """The largest part of epsilon, up to rounding, for a pure release beside a mu-GDP one."""
    low, high = 0.0, epsilon
    if pure_and_gaussian(low, mu, epsilon) > delta:
        raise Refused("the shares of mu leave nothing for the tilt: make them smaller")
    for _ in range(100):
        middle = (low + high) / 2
        if pure_and_gaussian(middle, mu, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low


def _narrowest(at, shares):
    """The plan with the smallest predicted width. Shares that are refused are not taken."""
    best, plan, refused = math.inf, None, None
    for share in shares:
        try:
            made = at(share)
        except Refused as error:
            refused = error
            continue
        width = predicted(made)
        if plan is None or width < best:
            best, plan = width, made
    if plan is None:
        raise refused
    return plan


def predicted(plan: Plan) -> float:
    """The geometric mean of a table's standard errors, without the intercept, for a public design.

    Columns are independent, numbers have a sixth of the bounds' distance as standard deviation, levels are
    equally frequent, and all directions have the same effect on the scores. The known Hessian is not
    floored, so a share that leaves it unresolved has wide intervals. The bound on what the correction of
    the ridge's bias lacks does not count, as no class is rare here.
    """
    body = plan.body
    mean, size = TYPICAL[plan.problem.loss.name]
    M, basis = contrasts.design(body, float(plan.u)), contrasts.span(body)
    values, vectors = np.linalg.eigh(basis.T @ M @ basis)
    weights = size * basis @ (vectors / np.sqrt(values)) @ np.full(len(values), len(values) ** -0.5)
    own = plan.noise_of(statistics.HESSIAN)
    made = plan.linearised(weights, mean * M, own, floor=0.0, bounded=False)
    T = contrasts.table_map(body)
    if not len(T):
        T = basis.T
    return float(np.exp(np.log(np.einsum("ki,ij,kj->k", T, made.covariance, T)).mean() / 2))


def noise_loss(plan: Plan) -> float:
    """The mean loss that a tilt adds to second order, for the public design of `predicted`."""
    problem, body = plan.problem, plan.body
    H = TYPICAL[problem.loss.name][0] * contrasts.design(body, float(plan.u))
    K = np.linalg.inv(H + problem.lam * np.eye(body.count))
    return float(plan.tilt.noise.variances @ np.diagonal(K @ H @ K) / (2 * problem.n**2))


def with_offset(made: Callable[[bool], Plan], offset: str) -> Plan:
    """The plan with a class rate or without, as stated or by the public rule.

    made: from whether there is an offset to a plan. offset: one of `OFFSETS`. By the rule, two classes have
    a rate if this costs little where no class is rare: if it adds at most `DEARER` to the loss of weights
    alone, or makes a table's intervals wider by at most the factor `WIDER`, by forecasts from public
    numbers. Where a class is rare, it saves much more.
    """
    if offset != BY_RULE:
        return made(offset == PAID)
    plain = made(False)
    if plain.problem.loss.residual:
        return plain
    try:
        paid = made(True)
    except Refused:
        return plain
    return paid if costs_little(paid, plain) else plain


def costs_little(paid: Plan, plain: Plan) -> bool:
    """Whether the public rule pays for a class rate. plain: the plan without it."""
    after, _, most = _price(paid, plain)
    return after <= most


def _price(paid, plain):
    """(with the rate, without it, at most): widths of a table, or what noise adds to the loss."""
    if statistics.HESSIAN in plain.noises:
        before = predicted(plain)
        return predicted(paid), before, WIDER * before
    before = noise_loss(plain)
    return noise_loss(paid), before, DEARER + before


def warning(paid: Plan, plain: Plan) -> str:
    """What a class rate is predicted to cost, if the public rule would not pay for it; otherwise empty."""
    after, before, largest = _price(paid, plain)
    if after <= largest:
        return ""
    if statistics.HESSIAN in plain.noises:
        what, most = f"make intervals {after / before:.3g} times as wide", f"{WIDER:g} times"
    else:
        what, most = f"raise the log loss of predictions by {after - before:.2g}", f"{DEARER:g}"
    return (
        f"`offset: paid` is predicted to {what} where no class is rare; the rule pays up to {most}. "
        f"State it only if a class is known to be rare"
    )


class Choice(NamedTuple):
    """The plan that the public rule chooses, and why."""

    plan: Plan
    why: str


def table(
    n: int,
    body: Body,
    u: Fraction,
    epsilon: float,
    delta: float,
    loss: losses.Loss = "logistic",
    robust: bool = False,
    offset: str = NONE,
) -> Choice:
    """The pure table, unless a delta makes intervals narrower by more than `NO_WIDER`.

    offset: as for `with_offset`.
    """
    pure, refused = None, ""

    def pure_one(first):
        return pure_table(n, body, u, epsilon, loss, robust, offset=first)

    def mixed_one(first):
        return mixed_table(n, body, u, epsilon, delta, loss, robust, offset=first)

    try:
        pure = with_offset(pure_one, offset)
    except Refused as error:
        refused = str(error)
    mixed = with_offset(mixed_one, offset)
    if pure is None:
        return Choice(mixed, f"The law is mixed, as no pure table is possible: {refused}.")
    ratio = predicted(pure) / predicted(mixed)
    said = (
        f"by a forecast from public numbers, for independent columns, a pure table's intervals are "
        f"{ratio:.2f} times as wide as those of a mixed one"
    )
    if ratio <= NO_WIDER:
        return Choice(pure, f"The law is pure: {said}.")
    return Choice(mixed, f"The law is mixed: {said}.")
