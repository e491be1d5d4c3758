"""Objective perturbation of Poisson regression with noise of the norm of a ball, a box or a hull.

`dp.proofs.log_concave_tilt` proves what the exact minimiser costs. Noise on the mean count and on the
solver's point is pure, so all conditions of the proof are at the tilt's own part of epsilon.
"""

import math
from typing import NamedTuple

import numpy as np

from dp.capped_exponential import CappedExponential
from dp.mechanism import Parameters
from dp.mechanisms import register
from dp.mechanisms.counts import CountsObjectivePerturbation, certifiable_lambda, clipped_rate
from dp.mechanisms.gaussian_objective_perturbation import MOST_NOISE, Kind
from dp.mechanisms.knorm_objective_perturbation import (
    Body,
    bodies,
    check_delta,
    guaranteed,
    profile,
    quietest,
)
from dp.mechanisms.objective_perturbation import Tilted
from dp.noise import l2_laplace, laplace
from dp.offset import LEAST, RESOLVED
from dp.options import Choice
from dp.proofs.curvature import Curvature
from dp.proofs.log_concave_tilt import Ball
from dp.solvers.newton import check_certifiable
from dp_privacy.accounting import REPLACE_ONE
from dp_privacy.errors import Refused

MOST = 0.1  # the mean count's part of epsilon
KIND = Kind("counts", 1.0, CappedExponential())


class Plan(NamedTuple):
    """The noise of a release.

    rate: the mean count's part of epsilon. body, scale: the tilt b has a density proportional to exp(-N(b)/
    scale) for the body's norm N. left: the tilt's part of epsilon. delta: the guarantee's, 0 if it is pure.
    output: the output noise's part of epsilon. output_scale: its norm ~ Gamma(d, output_scale).
    """

    rate: float
    body: Body
    scale: float
    left: float
    delta: float
    output: float
    output_scale: float


@register("counts_knorm_objective_perturbation")
class CountsKNorm(CountsObjectivePerturbation):
    """`counts_objective_perturbation` with noise of the norm of a body that holds every row.

    A noisy mean count decides C, as there, with Laplace noise. The tilt's noise is that of
    `knorm_objective_perturbation`: `body`, and whether a delta is used, mean the same. The Jacobian
    adds log(1 + R^2/(n lam)) to epsilon.

    rate: the mean count's part of epsilon, by default that for which its noise has a standard deviation of
    0.0025 M, at least 1 and at most 10 %.
    """

    delta = "optional"
    facts = ("column_bounds", "blocks")
    options = {k: v for k, v in CountsObjectivePerturbation.options.items() if k != "output"}
    options |= {"body": Choice("auto", "ball", "box", "hull")}

    def _check_together(self, n, d, p):
        check_delta(self.name, p)
        super()._check_together(n, d, p)

    def rule_lambda(
        self, n: int, d: int, epsilon: float, delta: float, bound: float = 1.0, **options
    ) -> float:
        """lambda at which the Jacobian costs epsilon/10, or a larger one if the certificate needs it."""
        p = Parameters(**self.defaults() | options)
        vars(p).update(epsilon=epsilon, delta=delta, bound=bound, adjacency=REPLACE_ONE)
        R = bodies(d, p)[0].radius
        lam = R**2 / (n * math.expm1(min(epsilon / 10, 100.0)))
        # Twice the scale without the Jacobian and other releases covers them.
        noise = 4 / epsilon * max(body.farthest() for body in bodies(d, p))
        return certifiable_lambda(n, d, lam, R, noise + n * R, p.tolerance)

    def plan(self, n: int, d: int, p: object) -> Plan:
        """The `Plan`. Raises `Refused` unless the minimiser of every data set can be certified."""
        R = bodies(d, p)[0].radius
        self._check_certifiable(n, d, p, 0.0)
        needed = math.sqrt(2) / (RESOLVED * n * p.epsilon)
        rate = (p.rate or min(max(needed, LEAST), MOST)) * p.epsilon
        share = Tilted.checked_share(n, d, p.lam, R, KIND.loss, p.tolerance)
        output, left = share * (p.epsilon - rate), (1 - share) * (p.epsilon - rate)
        body, scale, delta = quietest(n, d, p, left, KIND)
        if not scale <= MOST_NOISE * 2 / left:
            raise Refused(
                f"at n lambda = {n * p.lam:.3g} the Jacobian needs more than {MOST_NOISE} times the noise "
                f"without it: give a larger lambda, such as that of the rule"
            )
        self._check_certifiable(n, d, p, scale * body.farthest())
        moved = 2 * p.tolerance / p.lam
        return Plan(rate, body, scale, left, delta, output, moved / output)

    def _check_certifiable(self, n, d, p, reach):
        R = bodies(d, p)[0].radius
        check_certifiable(n, d, p.lam, R, KIND.loss, p.tolerance, tilt=reach + n * R)

    def _guarantee(self, n, d, p):
        plan = self.plan(n, d, p)
        curvature = Curvature("counts", plan.body.radius**2 / (n * p.lam))
        within = f"{plan.body.described()}, so its norm of this {plan.body.name} is at most 1"
        reason = (
            f"{within}; Laplace noise of scale {1 / (n * plan.rate):.6g} M on the mean count, for "
            f"{plan.rate:.6g} of epsilon; norm of the tilt ~ Gamma({d}, {plan.scale:.6g}), for "
            f"{plan.left:.6g} of epsilon, of which the Jacobian costs {curvature.tangents[0][0]:.3g}; "
            f"slopes are in an interval of length 1; a point of gradient norm at most tau = "
            f"{p.tolerance:g} is found on every data set (a premise: settings in which rounding or passes "
            f"could prevent it are refused), and noise on it of norm ~ Gamma({d}, "
            f"{plan.output_scale:.6g}) takes "
            f"{plan.output:.3g} of epsilon"
        )
        tilt, pure = Ball(1 / plan.scale, d, curvature), plan.rate + plan.output
        return guaranteed(p, reason, profile(p, tilt, pure) if plan.delta else None)

    def _rates(self, u, plan, draws, rng):
        scale = 1 / (len(u) * plan.rate)
        noisy = np.asarray(u.mean() + laplace(1, scale, draws, rng))[:, 0]
        return clipped_rate(noisy, len(u), math.sqrt(2) * scale)

    def _tilts(self, d, plan, draws, rng):
        return plan.body.noise(plan.scale, draws, rng)

    def _output(self, d, plan, draws, rng):
        return l2_laplace(d, plan.output_scale, draws, rng)
