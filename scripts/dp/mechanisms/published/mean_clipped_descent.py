"""Descent on the mean gradient, clipped as a whole, as Hoseinpour et al. (2023) print it."""

import math

from dp.mechanism import Parameters
from dp.mechanisms import register
from dp.mechanisms.gradient_descent import LOSS, STEPS, Descent, gradient_norm
from dp.options import Choice, Ordinary
from dp_privacy.accounting import classical_gaussian_sigma, gaussian_epsilon, gaussian_sigma
from dp_privacy.profiles import Gaussian


@register("dp_gd_mean_clip")
class MeanClippedDescent(Descent):
    """T steps on the mean gradient, clipped to norm C as a whole, with Gaussian noise on each.

    This is algorithm 2 of Hoseinpour et al. (2023). They bound the clipped mean's change by 2C, but
    divide this bound by n as if single gradients were clipped. T steps compose as in dp_gd.

    rows: how far one replaced record moves the clipped mean.
      "unbounded"  the record may outweigh all others and reverse the mean: a change of 2C for any n
      "bounded"    gradients have norm at most kappa R, where kappa is 1 for logistic and sqrt(2) for
                   softmax loss. So the mean changes by at most 2 kappa R/n, and the clipped mean by no
                   more, because projecting onto a ball does not increase distances. The bound is the
                   smaller of 2 kappa R/n and 2C, or 2C if gradients have no bound.
    noise:
      "published"  sigma = 2C/(n epsilon) sqrt(2 T ln(1.25/delta))
      "analytic"   sigma = sqrt(T)/mu times the bound of `rows`, with the largest mu for which
                   mu-Gaussian DP implies (epsilon, delta)-DP
    pretrain: as in dp_gd.
    """

    delta = "needed"
    options = (
        LOSS
        | {"noise": Choice("published", "analytic"), "clip": Ordinary(1.0)}
        | {"rows": Choice("unbounded", "bounded")}
        | STEPS
    )

    def moved(self, n: int, p: Parameters) -> float:
        """The maximum change of the clipped mean gradient if a record is replaced."""
        return min(2 * p.clip, 2 * self._each(p) / n)

    def _each(self, p):
        """The maximum norm of a record's gradient, infinite without a bound."""
        return gradient_norm(p, p.loss) if p.rows == "bounded" else math.inf

    def sigma(self, n: int, p: Parameters) -> float:
        if p.noise == "published":
            moved, calibrate = 2 * p.clip / n, classical_gaussian_sigma
        else:
            moved, calibrate = self.moved(n, p), gaussian_sigma
        return calibrate(p.epsilon, p.delta, math.sqrt(p.iterations) * moved)

    def _guarantee(self, n, d, p):
        moved, sigma = self.moved(n, p), self.sigma(n, p)
        mu = math.sqrt(p.iterations) * moved / sigma
        reason = (
            f"one record of {p.rows} rows moves the clipped mean gradient by {moved:.6g}, where 2C/n "
            f"is {2 * p.clip / n:.6g}; {p.iterations} Gaussian steps of standard deviation {sigma:.6g} "
            f"compose to Gaussian DP with mu = {mu:.6g}; {p.noise} noise"
        )
        proven = p.epsilon if p.noise == "analytic" else gaussian_epsilon(1 / mu, p.delta)
        return p.proven(reason, proven, Gaussian(mu))

    def _noise(self, n, p):
        # Each gradient is clipped to its bound, if any, so an overflow in one cannot spoil the mean.
        bound = self._each(p)
        clip = bound if math.isfinite(bound) else None
        return {"clip": clip, "mean_clip": p.clip, "sigma": self.sigma(n, p)}
