"""Output perturbation of L1-regularised minimisers, as V20 runs it and as repaired by an elastic net."""

import math

import numpy as np

from dp.accounting import none
from dp.mechanisms import Parameters, register
from dp.mechanisms.options import TOLERANCE, Choice, Optional, Positive
from dp.mechanisms.output_perturbation import Perturbed, certificate, sensitivity
from dp.solvers.lasso_scales import SCALES, weight_beside_mean


def lasso_sensitivity(lam: float) -> float:
    """An upper bound on the L2 sensitivity of the L1-regularised logistic minimiser, for any n.

    The loss is positive and log 2 at w = 0, so a minimiser w has lam ||w||_1 <= F(w) <= F(0) = log 2.
    The minimisers of two data sets are at most ||w||_1 + ||w'||_1 <= 2 log 2 / lam apart. A much
    smaller bound is not possible: the L1 penalty has no curvature, and one record of n can move the
    minimiser from one corner of the L1 ball to another.
    """
    return 2 * math.log(2) / lam


DATA_DEPENDENT = ("standardised", "lassoglm")  # penalty scales that depend on the rows


@register("lasso_output_perturbation")
class LassoOutputPerturbation(Perturbed):
    """w + z, w the minimiser of mean logistic loss + lam ||w||_1, z ~ Gamma(d, 2R/(n lam epsilon)).

    This is algorithm 1 as Veldhuizen (2020) runs it. The noise is that of output perturbation, whose
    sensitivity bound needs the curvature of an L2 penalty. `elastic_net_output_perturbation` is the
    repaired form. The point that the solver found is scaled to ||w||_1 <= log 2 / lam, where all minimisers
    are. So the guarantee holds for every data set, whether the point was certified or not.

    penalty_scale: the meaning of lam in the fit, see `dp.solvers.lasso_scales`. The source does not say it.
    The noise is always calibrated as if lam multiplied the penalty beside the mean loss.
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
        """epsilon n log 2 / R: `lasso_sensitivity` over the noise's scale."""
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


@register("elastic_net_output_perturbation")
class ElasticNetOutputPerturbation(Perturbed):
    """w + z, w the minimiser of mean logistic loss + lambda1 ||w||_1 + lam/2 ||w||^2.

    z ~ Gamma(d, sensitivity / epsilon) as in output perturbation, because lam (here lambda2) alone makes
    the objective strongly convex. As there, no intercept is free.

    lambda1: weight of ||w||_1; None means lam. It costs no privacy.
    """

    fit = "elastic_net"

    options = {"lambda1": Optional(Positive())} | TOLERANCE

    def scale(self, n: int, d: int, p: Parameters) -> float:
        return sensitivity(n, p.lam, p.bound, tolerance=p.tolerance) / p.epsilon

    def _guarantee(self, n, d, p):
        """epsilon-DP, as output perturbation.

        The proof of `dp.mechanisms.output_perturbation.sensitivity` needs that the objectives of
        neighbours are lam-strongly convex and differ by a function with gradient at most 2R/n. This still
        holds, because both contain the convex term lambda1 ||w||_1. A point with a subgradient of norm tau
        is within tau/lam of the minimiser, because subgradients of a lam-strongly convex function are
        lam-strongly monotone.
        """
        scale = self.scale(n, d, p)
        return (
            f"lambda2/2 ||w||^2 makes the objective strongly convex, lambda1 ||w||_1 leaves it so: L2 "
            f"sensitivity at most 2R/(n lambda2) + 2 tau/lambda2 = {scale * p.epsilon:.6g}, "
            f"{certificate(p, 'norm of a subgradient')}; norm of the noise ~ Gamma({d}, {scale:.6g})"
        )
