"""Objective perturbation with a tilt of a norm whose unit ball holds every record.

`dp.proofs.log_concave_tilt` proves the cost of an exact minimiser. As in
`dp.mechanisms.objective_perturbation`, l2-Laplace noise covers the solver's error, at a cost that is
certain. So all conditions of the proof are at the tilt's own part of epsilon.
"""

import math
from functools import lru_cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from dp import losses
from dp.mechanism import Parameters
from dp.mechanisms import register
from dp.mechanisms.gaussian_objective_perturbation import CLIP, MOST_NOISE, Kind, kind, moved
from dp.mechanisms.objective_perturbation import Tilted
from dp.noise import box, hull, l2_laplace, l2_laplace_reach
from dp.offset import Centre
from dp.options import ADJACENCY, LOSS, OFFSET, PUBLIC_N, TOLERANCE, Choice, Optional, public_size
from dp.proofs.curvature import Curvature
from dp.proofs.log_concave_tilt import Ball, ball_shift, pure_shift
from dp.solvers.newton import check_certifiable
from dp_privacy import l2
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE, Guarantee
from dp_privacy.errors import Refused
from dp_privacy.profiles import Curve, Profile, symmetric


class Body(NamedTuple):
    """A symmetric body that holds every record, the unit ball of the norm N.

    name: ball, box or hull. radius: the ball's, and a bound R on every record's Euclidean norm. bounds:
    one per column. blocks: columns whose |x_j|/bound have a sum of at most 1; only a hull has any.
    """

    name: str
    radius: float
    bounds: np.ndarray
    blocks: tuple

    @property
    def reach(self) -> float:
        """The largest Euclidean norm in the body."""
        if self.name == "ball":
            return self.radius
        levels = [list(block) for block in self.blocks]
        squares = [float(np.max(self.bounds[block])) ** 2 for block in levels]
        return math.sqrt(sum(squares) + float((self.bounds[self.singles] ** 2).sum()))

    @property
    def singles(self) -> np.ndarray:
        """Columns in no block, as a mask."""
        alone = np.ones(len(self.bounds), dtype=bool)
        alone[[column for block in self.blocks for column in block]] = False
        return alone

    def norm(self, b: np.ndarray) -> np.ndarray:
        """N of the rows of b (m, d)."""
        if self.name == "ball":
            return np.linalg.norm(b, axis=1) / self.radius
        size = np.abs(b) / self.bounds
        sums = [size[:, list(block)].sum(axis=1) for block in self.blocks]
        return np.max([size[:, self.singles].max(axis=1, initial=0.0), *sums], axis=0)

    def noise(self, scale: float, draws: int, rng: np.random.Generator) -> np.ndarray:
        """Draws (draws, d) with density proportional to exp(-N(b)/scale)."""
        d = len(self.bounds)
        if self.name == "ball":
            return l2_laplace(d, scale * self.radius, draws, rng)
        if self.name == "box":
            return box(d, scale, draws, rng) * self.bounds
        return hull(d, scale, draws, rng, blocks=self.blocks) * self.bounds

    def farthest(self) -> float:
        """A Euclidean norm that noise of scale 1 exceeds with probability at most e^-60."""
        d = len(self.bounds)
        return self.reach * l2_laplace_reach(d if self.name == "ball" else d + 1)

    def variances(self) -> np.ndarray:
        """Variances (d,) of noise of scale 1. Its coordinates are uncorrelated."""
        d = len(self.bounds)
        if self.name == "ball":
            return np.full(d, self.radius**2 * (d + 1))
        shares = np.full(d, 1 / 3)
        for block in self.blocks:
            shares[list(block)] = 2 / ((len(block) + 1) * (len(block) + 2))
        return (d + 1) * (d + 2) * shares * self.bounds**2

    def described(self) -> str:
        """What is public about every row."""
        if self.name == "ball":
            return f"every row has a norm of at most {self.radius:g}"
        counts = {}
        for bound in self.bounds[self.singles].tolist():
            counts[bound] = counts.get(bound, 0) + 1
        parts = [f"{count} columns of at most {bound:g} in size" for bound, count in counts.items()]
        parts += [
            f"a one-hot block of {len(block)} columns of at most {self.bounds[list(block)].max():g}"
            for block in self.blocks
        ]
        return f"every row has, by public bounds, {', '.join(parts)}"


class Plan(NamedTuple):
    """The noise of a release.

    body: records lie in it. scale: the tilt b has a density proportional to exp(-N(b)/scale).
    share, epsilon, output_scale, ridge, tolerance: as in `objective_perturbation.Plan`.
    rate: the part of epsilon for the class rate, 0 without an offset. delta: the guarantee's, 0 if it is
    pure.
    """

    body: Body
    scale: float
    share: float
    epsilon: float
    rate: float
    delta: float
    output_scale: float
    ridge: float
    tolerance: float


def check_delta(name: str, p: object) -> None:
    """Refuse a delta beside a body whose noise is pure."""
    if p.delta and p.body in ("box", "hull"):
        raise Refused(
            f"{name} with body {p.body} is (epsilon, 0)-DP and takes no delta, not {p.delta:g}: leave it "
            f"out, or take body ball or auto"
        )


def guaranteed(p: object, reason: str, profile: Profile | None) -> Guarantee:
    """The guarantee by a profile or, if that is None, a pure one, even if a delta was stated."""
    if profile is not None:
        return p.proven(reason, profile=profile)
    if p.delta:
        reason += f"; the guarantee is pure, without the delta of {p.delta:g} that was stated"
    return Guarantee(p.epsilon, p.epsilon, 0.0, p.adjacency, reason)


def bodies(d: int, p: object) -> list[Body]:
    """The bodies to choose from: one, or with "auto" all that the public bounds give."""
    bounds, blocks = np.full(d, p.bound), p.blocks or ()
    if p.column_bounds is not None:
        bounds = np.minimum(p.column_bounds, p.bound)
    outer = Body("hull", math.inf, bounds, blocks)
    if blocks:  # a block's sum obeys its own bounds, not the smaller ones that follow from the norm
        outer = outer._replace(bounds=np.where(outer.singles, bounds, p.column_bounds))
    radius = min(p.bound, outer.reach)
    found = {
        "ball": Body("ball", radius, bounds, ()),
        "box": Body("box", radius, bounds, ()),
        "hull": outer._replace(radius=radius),
    }
    if p.body != "auto":
        return [found[p.body]]
    return [found["ball"], found["box"], *([found["hull"]] if blocks else [])]


def excess(body: Body, outer: Body, curvature: float, lam: float) -> float:
    """E b'H^-1 C H^-1 b for noise b of scale 1, with C the loss's Hessian for a public design.

    H is C + lam I, and C is `curvature` E x x'. To second order, noise b raises the mean loss of n rows by
    this over 2 n^2. As lam falls, it becomes E b'H^-1 b. Numbers of the design are uniform within their
    bounds, and the levels of a block (of `outer`) equally frequent.
    """
    variances, alone = body.variances(), outer.singles
    numbers = curvature * outer.bounds[alone] ** 2 / 3
    total = float((variances[alone] * numbers / (numbers + lam) ** 2).sum())
    if not outer.blocks:
        return total
    levels = [column for block in outer.blocks for column in block]
    sizes = tuple(map(len, outer.blocks))
    values, squares = _directions(curvature, tuple(outer.bounds[levels].tolist()), sizes)
    return total + float(variances[levels] @ squares @ (values / (values + lam) ** 2))


@lru_cache(maxsize=64)  # all epsilons and sizes of a data set share them
def _directions(curvature, bounds, sizes):
    """Eigenvalues of `curvature` E x x' for the levels of blocks, and their vectors' squared entries."""
    share = np.repeat([1 / size for size in sizes], sizes)
    number = np.repeat(np.arange(len(sizes)), sizes)
    means = share * bounds
    moments = np.outer(means, means) * (number[:, None] != number)
    moments += np.diag(share * np.square(bounds))
    values, vectors = np.linalg.eigh(curvature * moments)
    # Values of directions that no row has are 0 up to rounding.
    return np.maximum(values, 0.0), vectors**2


def quietest(n: int, d: int, p: object, epsilon: float, loss: Kind) -> tuple[Body, float, float]:
    """(body, scale, delta) with the smallest predicted noise for the tilt's part of epsilon."""
    choices = bodies(d, p)
    curvature = Curvature(loss.name, choices[0].radius ** 2 / (n * p.lam), loss.slope)
    found = []
    for body in choices:
        m, delta = pure_shift(epsilon, curvature, p.adjacency), 0.0
        if body.name == "ball" and p.delta and d <= 1000 and 2 * epsilon <= l2.LARGEST:
            settings = {"loss": loss.name, "slope": loss.slope, "adjacency": p.adjacency}
            m, delta = ball_shift(epsilon, p.delta, d, curvature.r, **settings), p.delta
        found.append((body, math.nextafter(loss.slope / m, math.inf) if m else math.inf, delta))
    if len(found) == 1:
        return found[0]

    def predicted(choice):
        body, scale, _ = choice
        return scale**2 * excess(body, choices[-1], loss.loss.c, p.lam)

    return min(found, key=predicted)


def profile(p: object, tilt: Ball, pure: float) -> Curve:
    """The profile of the tilt's release with others that are together (pure, 0)-DP."""

    def delta(epsilon):
        left = epsilon - pure
        at = tilt.delta(abs(left), p.adjacency)
        return at if left >= 0 else -math.expm1(left) + math.exp(left) * at

    above = [pure + e for e in tilt.kinks()]
    kinks = (*above, *(-e for e in above))
    return Curve(symmetric(np.vectorize(delta, otypes=[float])), kinks=kinks)


@register("knorm_objective_perturbation")
class KNormObjectivePerturbation(Tilted):
    """Objective perturbation with noise of the norm of a body that holds all rows: ball, box or hull.

    The hull is that of one-hot blocks.

    body: where every record lies by public bounds. "ball": norms of at most R; with a delta, the noise is
    the l2 mechanism's. "box": columns within `column_bounds`. "hull": moreover, a one-hot block has one
    column that is not 0. For box and hull, the guarantee is pure, and they take no delta (Awan, Slavkovic,
    JASA 2021, had such noise first). "auto": the body with the smallest predicted noise (`excess`), which
    depends on public numbers alone. If this is a box or a hull, a stated delta is not used.
    loss: "logistic", or for numbers "log_cosh".
    clip: as for `gaussian_objective_perturbation`.
    offset: "paid" spends a tenth of epsilon on the noisy class rate first, the number of labels 1 over n
    (`public_n`, if stated), or on the noisy mean of numbers. Its log-odds, or the mean, are added to all
    scores w.x and returned as info["intercept"], so lambda draws the model towards the class rate or the
    mean (`dp.offset`).
    """

    options = LOSS | {"body": Choice("auto", "ball", "box", "hull")}
    options |= ADJACENCY | PUBLIC_N | TOLERANCE | {"clip": Optional(CLIP)}
    options |= OFFSET
    facts = ("column_bounds", "blocks")
    delta = "optional"
    least_delta = 1e-20  # tilts of probability e^-60 are neglected

    def rule_lambda(
        self, n: int, d: int, epsilon: float, delta: float, bound: float = 1.0, **options
    ) -> float:
        """Lambda = n lambda is the largest of three numbers.

        4 R^2/epsilon (with an offset 6; half of this under add-remove), the least at which the Jacobian
        costs nothing, and N R/20, with N the tilt's root mean square. With an offset, epsilon is what the
        class rate leaves.
        """
        p = Parameters(**self.defaults() | options)
        epsilon -= rate_epsilon(epsilon, p)
        vars(p).update(epsilon=epsilon, delta=delta, bound=bound)
        n, loss, R = p.public_n or n, self._kind(p), bodies(d, p)[0].radius
        usual, free = 6 if p.offset == "paid" else 4, 4 if loss.loss.residual else 2
        unit = R * R / (epsilon * parts(p))
        share = self.share(n, d, usual * unit / n, R, loss.loss, p.tolerance)
        n_lambda = max(usual, free / max(1 - share, 1e-3)) * unit
        p.lam = n_lambda / n
        body, scale, _ = quietest(n, d, p, (1 - share) * epsilon, loss)
        return max(n_lambda, scale * math.sqrt(body.variances().sum()) * R / 20) / n

    def tilt(
        self,
        n: int,
        epsilon: float,
        lam: float,
        bound: float = 1.0,
        loss: losses.Loss = "logistic",
        adjacency: str = REPLACE_ONE,
    ) -> tuple[float, float]:
        """As in `Tilted`, for the ball without a delta."""
        of = kind(loss)
        m = pure_shift(epsilon, Curvature(of.name, bound**2 / (n * lam), of.slope), adjacency)
        return 2 * m, 0.0

    def _kind(self, p):
        return kind(p.loss, p.clip)

    def _loss(self, p):
        return self._kind(p).loss

    def _check_together(self, n, d, p):
        check_delta(self.name, p)
        super()._check_together(n, d, p)

    def _curvature(self, n, p, R):
        loss = self._kind(p)
        return Curvature(loss.name, R * R / (n * p.lam), loss.slope)

    def _plan(self, n, d, p):
        loss, R = self._kind(p), bodies(d, p)[0].radius
        rate = rate_epsilon(p.epsilon, p)
        solved, length = self._solved(n, p, SimpleNamespace(rate=rate), R)
        check_certifiable(n, d, p.lam, length, solved, p.tolerance)
        share = self.checked_share(n, d, p.lam, R, loss.loss, p.tolerance)
        left = (1 - share) * (p.epsilon - rate)
        body, scale, delta = quietest(n, d, p, left, loss)
        if not scale <= MOST_NOISE * 2 * loss.slope / (left * parts(p)):
            raise Refused(
                f"at n lambda = {n * p.lam:.3g} the Jacobian needs more than {MOST_NOISE} times the noise "
                f"without it: give a larger lambda, such as that of the rule"
            )
        reach = scale * body.farthest()
        check_certifiable(n, d, p.lam, length, solved, p.tolerance, tilt=reach)
        spent = share * (p.epsilon - rate)
        output_scale = moved(n, p.lam, p.tolerance, p.adjacency) / spent
        share = spent / p.epsilon
        return Plan(body, scale, share, left, rate, delta, output_scale, 0.0, p.tolerance)

    def _centre(self, n, p, plan):
        if not plan.rate:
            return None
        return Centre(n, 1 / plan.rate, gaussian=False, numbers=self._loss(p).residual)

    def _noise(self, d, plan, draws, rng):
        return plan.body.noise(plan.scale, draws, rng)

    def _guarantee(self, n, d, p):
        plan = self._plan(n, d, p)
        slope = self._kind(p).slope
        fixed = (
            f"slopes are at most {slope:g}; n lambda = {n * p.lam:.6g} beside the sum of the losses"
        )
        if p.adjacency == ADD_REMOVE:
            fixed += f", the same with or without a record{public_size(p, at_most=True)}"
        within = f"{plan.body.described()}, so its norm of this {plan.body.name} is at most 1"
        reason = f"{within}; {self._paid(plan, d, p.tolerance)}; {fixed}"
        if plan.rate:
            described = self._centre(n, p, plan).described()
            reason += f"; {plan.rate:.6g} of epsilon pays for {described}"
        return guaranteed(p, reason, self._profile(n, d, p, plan) if plan.delta else None)

    def _profile(self, n, d, p, plan):
        curvature = self._curvature(n, p, plan.body.radius)
        tilt = Ball(self._kind(p).slope / plan.scale, d, curvature)

        return profile(p, tilt, plan.share * p.epsilon + plan.rate)


def parts(p: object) -> int:
    """2 under add-remove, where a record's whole effect is half of that of replacing it; else 1."""
    return 2 if p.adjacency == ADD_REMOVE else 1


RATE = 0.1  # the class rate's part of epsilon


def rate_epsilon(epsilon: float, p: object) -> float:
    """The class rate's part of epsilon, 0 without an offset."""
    return RATE * epsilon if p.offset == "paid" else 0.0
