"""Output perturbation of L1-regularised minimisers, as Veldhuizen (2020) runs it."""

import math

import numpy as np

from dp.mechanism import Parameters
from dp.mechanisms import register
from dp.mechanisms.output_perturbation import Perturbed, sensitivity
from dp.options import TOLERANCE, Choice
from dp.solvers.lasso_scales import SCALES, weight_beside_mean
from dp_privacy.accounting import none


def lasso_sensitivity(lam: float) -> float:
    """An upper bound on the L2 sensitivity of the L1-regularised logistic minimiser, for any n.

    The loss is positive and log 2 at w = 0. So a minimiser w of the objective F has lam ||w||_1 <=
    F(w) <= F(0) = log 2. Two data sets' minimisers are at most ||w||_1 + ||w'||_1 <= 2 log 2 / lam
    apart. No bound can be much smaller: the L1 penalty has no curvature, so one record can move the
    minimiser to another corner of the L1 ball.
    """
    return 2 * math.log(2) / lam


DATA_DEPENDENT = ("standardised", "lassoglm")


@register("lasso_output_perturbation")
class LassoOutputPerturbation(Perturbed):
    """w + z, where w minimises mean logistic loss + lam ||w||_1, and ||z|| ~ Gamma(d, 2R/(n lam epsilon)).

    The noise is output perturbation's, whose sensitivity bound needs an L2 penalty's curvature.
    `elastic_net_output_perturbation` repairs this with such a penalty. The solver's point is scaled
    into the ball ||w||_1 <= log 2 / lam, which contains all minimisers, so the guarantee needs no
    certificate. No guarantee holds if `penalty_scale` uses the columns' standard deviations.

    penalty_scale: what lam means in the fit (`dp.solvers.lasso_scales`), which the source does not
    say. Noise is calibrated as if lam multiplied a penalty added to the mean loss.
    """

    fit = "l1"
    certified = False

    options = TOLERANCE | {"penalty_scale": Choice(*SCALES)}

    def scale(self, n: int, d: int, p: Parameters) -> float:
        return sensitivity(n, p.lam, p.bound) / p.epsilon

    def _centre(self, weights, certified, n, p):
        if p.penalty_scale in DATA_DEPENDENT:
            return weights
        bound = lasso_sensitivity(weight_beside_mean(p.lam, n, p.penalty_scale)) / 2
        return weights * min(1.0, bound / max(np.abs(weights).sum(), 1e-300))

    def _guarantee(self, n, d, p):
        """Proven epsilon, `lasso_sensitivity`/scale: epsilon n log 2 / R, or n times that for "summed"."""
        scale = self.scale(n, d, p)
        bound = f"2R/(n lambda) = {scale * p.epsilon:.6g} bounds the sensitivity under"
        only_l2 = f"{bound} L2 regularisation only"
        if p.penalty_scale in DATA_DEPENDENT:
            return none(
                p.epsilon,
                f"{only_l2}; the L1 penalty's weights are the standard deviations of the private rows' own "
                f"columns: where one nears zero, nothing bounds how far the minimiser moves",
            )
        weight = weight_beside_mean(p.lam, n, p.penalty_scale)
        moved = lasso_sensitivity(weight)
        if p.penalty_scale == "summed":
            why = f", whose penalty weighs lambda/n = {weight:.6g} beside the mean loss, moves by at most"
            return p.proven(f"{only_l2}; the L1 minimiser{why} {moved:.6g}", moved / scale)
        return p.proven(
            f"{only_l2}; the L1 minimiser can jump (0.18 n times as far was reached), and moves by at most "
            f"2 log 2/lambda = {moved:.6g}, since ||w||_1 <= log 2/lambda, to which what the solver found "
            f"is scaled: epsilon grows by n log 2/R = {moved / scale / p.epsilon:.6g}",
            moved / scale,
        )
