"""Objective perturbation: the minimiser of an objective with a random linear term (CM08 algorithm 2).

The solver returns a point w near the minimiser w*, and the error e = w - w* depends on the data. So
the release is w + z. Given the data, w* and the noise b in the term b.w/n (the tilt) determine each
other. Hence e is a function of w*, the data, and other restarts' independent tilts. If the gradient
norm at w is at most tau, strong convexity gives ||e|| <= tau/(lam + ridge). So neighbours' errors
differ by at most 2 tau/(lam + ridge). Given w*, noise z of norm ~ Gamma(d, 2 tau/((lam + ridge) s
epsilon)) makes w* + e + z (s epsilon)-DP. b is calibrated so that w* costs (1 - s) epsilon. By
adaptive composition, w* and w + z together cost epsilon. The share s is public (`Tilted.share`).
"""

import math
from typing import NamedTuple

import numpy as np

from dp import losses
from dp.mechanisms import Mechanism, Release, register
from dp.noise import l2_laplace, l2_laplace_reach
from dp.offset import Offset
from dp.options import LOSS, TOLERANCE, Choice, stated_size
from dp.proofs.laplace_tilt import calibrate, margin_loss
from dp.solvers.newton import check_certifiable, minimise
from dp_privacy.errors import Refused

MOST = 0.999  # maximum share of epsilon for output noise


class Plan(NamedTuple):
    """The noise of a release.

    share: the output noise's share of epsilon.
    epsilon: the tilt b's part of epsilon.
    epsilon_b, ridge: results of `Tilted.tilt` at that epsilon.
    scale: ||b|| ~ Gamma(d, scale).
    output_scale: ||z|| ~ Gamma(d, output_scale) for the output noise z.
    tolerance: certified gradient norm.
    """

    share: float
    epsilon: float
    epsilon_b: float
    ridge: float
    scale: float
    output_scale: float
    tolerance: float


class Tilted(Mechanism):
    """Base class: w + z, where w is near argmin of mean loss + (lam + ridge)/2 ||w||^2 + b.w/n.

    A subclass's `tilt` determines ridge and the scale of b.
    """

    numbers = True
    fit = "l2"
    in_blocks = True
    law = staticmethod(l2_laplace)  # distribution of the tilt and of the output noise

    def tilt(
        self,
        n: int,
        epsilon: float,
        lam: float,
        bound: float = 1.0,
        loss: losses.Loss = "logistic",
        **options,
    ) -> tuple[float, float]:
        """(epsilon_b, ridge) for an exact minimiser, where ||b|| ~ Gamma(d, 2 kappa R / epsilon_b)."""
        raise NotImplementedError

    @staticmethod
    def share(
        n: int, d: int, lam: float, bound: float, loss: losses.Loss, tolerance: float
    ) -> float:
        """s, the output noise's share of epsilon.

        Let H be the Hessian at the minimiser without tilt. To second order, tilt and output noise
        raise the objective by a multiple of tr(H^-1) (scale/n)^2 + tr(H) output_scale^2. An exact
        minimiser with all of epsilon for the tilt has only the first term. Since tr(H^-1) >= d^2 /
        tr(H) and tr(H) <= d lam + c R^2, the increase is at most ((1 - s)^-2 + (q/s)^2) times
        that minimiser's, with q = n tau (1 + c R^2/(d lam)) / (kappa R). The minimum of this factor,
        (1 + q^(2/3))^3, is at s/(1 - s) = q^(2/3).
        """
        q = n * tolerance * (1 + loss.c * bound * bound / (d * lam)) / (loss.kappa * bound)
        return q ** (2 / 3) / (1 + q ** (2 / 3))

    @classmethod
    def checked_share(
        cls, n: int, d: int, lam: float, bound: float, loss: losses.Loss, tolerance: float
    ) -> float:
        """`share`. Raises `Refused` if it leaves next to nothing for the tilt."""
        share = cls.share(n, d, lam, bound, loss, tolerance)
        if not share <= MOST:
            least = cls.share(n, d, math.inf, bound, loss, tolerance)
            raise Refused(
                f"the output noise for a tolerance of {tolerance:g} would take all but a thousandth of "
                f"epsilon: give a {'larger lambda' if least <= MOST else 'smaller tolerance'}"
            )
        return share

    def plan(self, n: int, d: int, **settings) -> Plan:
        """The `Plan` for the settings of a `guarantee`."""
        return self._plan(n, d, self.parameters(n, d, **settings))

    def _check_together(self, n, d, p):
        self._plan(n, d, p)

    def _plan(self, n, d, p):
        """The `Plan`. Raises `Refused` unless a minimiser is certified on every data set.

        `check_certifiable` decides. Tilts beyond `l2_laplace_reach`, of probability e^-60, are neglected.
        """
        loss, tolerance = margin_loss(p.loss), p.tolerance
        calibration = {"calibration": p.calibration} if "calibration" in self.options else {}
        settings = {"lam": p.lam, "bound": p.bound, "loss": loss, **calibration}
        # The ridge for all of epsilon is at most the ridge computed below for the tilt's part.
        _, ridge = self.tilt(n, p.epsilon, **settings)
        check_certifiable(n, d, p.lam + ridge, p.bound, loss, tolerance)
        share = self.checked_share(n, d, p.lam + ridge, p.bound, loss, tolerance)
        left = (1 - share) * p.epsilon
        epsilon_b, ridge = self.tilt(n, left, **settings)
        scale = 2 * loss.kappa * p.bound / epsilon_b
        reach = scale * l2_laplace_reach(d)
        check_certifiable(n, d, p.lam + ridge, p.bound, loss, tolerance, tilt=reach)
        output_scale = 2 * tolerance / ((p.lam + ridge) * share * p.epsilon)
        return Plan(share, left, epsilon_b, ridge, scale, output_scale, tolerance)

    def _paid(self, plan, d, tolerance):
        return (
            f"norm of the tilt ~ Gamma({d}, {plan.scale:.6g}), for {plan.epsilon:.6g} of epsilon; a "
            f"point of gradient norm at most tau = {tolerance:g} is found on every data set (a premise: "
            f"settings in which rounding or passes could prevent it are refused, but for the "
            f"longest tilts, of probability e^-60 = 9e-27, which are not counted), and noise on it of "
            f"norm ~ Gamma({d}, {plan.output_scale:.6g}), for its distance from the minimiser, takes the "
            f"share {plan.share:.3g} of epsilon, which belongs to this implementation, not to the source"
        )

    def _noise(self, d, plan, draws, rng):
        """Draws of the tilt."""
        return self.law(d, plan.scale, draws, rng)

    def _loss(self, p):
        """The loss to minimise, which the plan must cover."""
        return getattr(p, "loss", "logistic")

    def _release(self, X, y, p, draws, rng):
        """A restart without a certificate has weights of 0, and its status says why.

        The solver's tolerance is half of the plan's; the other half covers rounding.
        """
        n, d = stated_size(self.name, p, len(X)), X.shape[1]
        plan = self._plan(n, d, p)
        per_record = n / len(X)  # the solver's objective is a mean over the records
        settings = {
            "lam": (p.lam + plan.ridge) * per_record,
            "tolerance": plan.tolerance / 2 * per_record,
            "initial": None if p.fit is None else p.fit[0][0],
        }
        weights, info = self._minimised(X, y, p, plan, draws, rng, **settings)
        weights += self.law(d, plan.output_scale, draws, rng)
        status, named = info["status"], ("scale", "ridge", "output_scale")
        reported = {"gradient_norm": info["gradient_norm"], **{k: getattr(plan, k) for k in named}}
        if "intercept" in info:
            reported["intercept"] = info["intercept"]
        return Release(np.where((status == "ok")[:, None], weights, 0.0), status, reported)

    def _minimised(self, X, y, p, plan, draws, rng, **settings):
        """Weights near the minimisers, and info as from `minimise`, with "intercept" if there is one."""
        centre = self._centre(stated_size(self.name, p, len(X)), p, plan)
        if centre is None:
            linear = self._noise(X.shape[1], plan, draws, rng)
            return minimise(X, y, linear=linear, loss=self._loss(p), **settings)
        intercepts = centre.drawn(y, draws, rng)
        linear, loss = self._noise(X.shape[1], plan, draws, rng), Offset(self._loss(p), centre.unit)
        weights, rows = np.empty(linear.shape), loss.rows(X[:], y)
        reached = {"status": np.empty(draws, "U13"), "gradient_norm": np.empty(draws)}
        for k, offset in enumerate(intercepts):
            at = {"linear": linear[k : k + 1], "loss": loss}
            weights[k], info = minimise(rows, loss.targets(y, offset), **at, **settings)
            for name, values in reached.items():
                values[k] = info[name][0]
        return weights, reached | {"intercept": intercepts}

    def _centre(self, n, p, plan):
        """The `Centre` that is released first, if there is one."""
        return None

    def _solved(self, n, p, plan, bound):
        """The loss that the solver minimises, and the bound on its rows."""
        centre, loss = self._centre(n, p, plan), self._loss(p)
        return (loss, bound) if centre is None else (Offset(loss, centre.unit), bound / centre.unit)


@register("objective_perturbation")
class ObjectivePerturbation(Tilted):
    """Repaired objective perturbation (CMS11 algorithm 2), for any loss with known kappa and c."""

    options = LOSS | {"calibration": Choice("cms11", "single_log", "supremum")} | TOLERANCE

    def _guarantee(self, n, d, p):
        """epsilon-DP: CMS11 theorem 9 for the minimiser, output noise for the solver's error."""
        plan = self._plan(n, d, p)
        return (
            f"the Jacobian's share is taken from epsilon ({p.calibration}): noise for "
            f"{plan.epsilon_b:.6g}, extra ridge {plan.ridge:.6g}; {self._paid(plan, d, p.tolerance)}"
        )

    def tilt(
        self,
        n: int,
        epsilon: float,
        lam: float,
        bound: float = 1.0,
        loss: losses.Loss = "logistic",
        calibration: str = "cms11",
    ) -> tuple[float, float]:
        return calibrate(epsilon, n, lam, bound, loss, calibration)
