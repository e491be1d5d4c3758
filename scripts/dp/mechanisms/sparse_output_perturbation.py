"""Output perturbation of L1-regularised minimisers: as V20 runs it, and repaired by an elastic net."""

import math

import numpy as np

from dp.accounting import REPLACE_ONE, Guarantee
from dp.data import check_rows
from dp.fits import elastic_net, l1
from dp.mechanisms import Mechanism, check_tolerance, register
from dp.mechanisms.output_perturbation import perturbed, sensitivity


def lasso_sensitivity(lam):
    """An upper bound on the L2 sensitivity of the L1-regularised logistic minimiser, whatever n is.

    The loss is positive and log 2 at w = 0, so a minimiser w has lam ||w||_1 <= F(w) <= F(0) = log 2.
    Two of them, each on its own data, are at most ||w||_1 + ||w'||_1 <= 2 log 2 / lam apart. More can
    hardly be said: the L1 penalty has no curvature, and one record of n can move the minimiser from
    one corner of the L1 ball to another.
    """
    return 2 * math.log(2) / lam


@register("lasso_output_perturbation")
class LassoOutputPerturbation(Mechanism):
    """w + z, w the minimiser of mean logistic loss + lam ||w||_1, z ~ Gamma(d, 2R/(n lam epsilon)).

    Algorithm 1 as Veldhuizen (2020) runs it: the noise is that of output perturbation, whose
    sensitivity bound needs the curvature of an L2 penalty. `elastic_net_output_perturbation` is the
    repaired form.
    """

    fit = "l1"

    def guarantee(self, n, d, *, epsilon, delta=0.0, lam=None, bound=1.0, tolerance=1e-9):
        """epsilon n log 2 / R: `lasso_sensitivity` over the noise's scale."""
        self._check(epsilon, lam, n, d, bound)
        check_tolerance(tolerance)
        scale = sensitivity(n, lam, bound) / epsilon
        proven = lasso_sensitivity(lam) / scale
        reason = (
            f"2R/(n lambda) = {scale * epsilon:.6g} bounds the sensitivity under L2 regularisation "
            f"only; the L1 minimiser can jump (0.18 n times as far was reached), and is proven to "
            f"move by at most 2 log 2/lambda = {lasso_sensitivity(lam):.6g}: "
            f"epsilon grows by n log 2/R = {proven / epsilon:.6g}"
        )
        return Guarantee(epsilon, proven, 0.0, REPLACE_ONE, reason)

    def release(
        self,
        X,
        y,
        *,
        epsilon,
        delta=0.0,
        lam=None,
        restarts=1,
        rng,
        bound=1.0,
        fit=None,
        tolerance=1e-9,
    ):
        """fit: (weights, info) of `dp.fits.l1` for the same data and lam, computed where not given.

        Where its smallest subgradient is not certified to `tolerance`, or its norm exceeds the
        log 2 / lam that the guarantee rests on, zeros are released, with the status "not_converged".
        """
        n, d = np.shape(X)
        self._check(epsilon, lam, n, d, bound)
        check_tolerance(tolerance)
        check_rows(X, y, bound)
        weights, info = fit if fit is not None else l1(X, y, lam, tolerance=tolerance)
        if np.abs(weights).sum() > lasso_sensitivity(lam) / 2:
            info = {**info, "gradient_norm": np.array([np.inf])}
        scale = sensitivity(n, lam, bound) / epsilon
        return perturbed(weights, info, scale, restarts, rng, tolerance)


@register("elastic_net_output_perturbation")
class ElasticNetOutputPerturbation(Mechanism):
    """w + z, w the minimiser of mean logistic loss + lambda1 ||w||_1 + lam/2 ||w||^2.

    z ~ Gamma(d, sensitivity / epsilon) as in output perturbation: lam, here lambda2, alone makes the
    objective strongly convex. No free intercept, for the same reason as there.

    lambda1: weight of ||w||_1, lam itself where None; it costs no privacy.
    """

    fit = "elastic_net"

    def guarantee(
        self, n, d, *, epsilon, delta=0.0, lam=None, bound=1.0, lambda1=None, tolerance=1e-9
    ):
        """epsilon-DP, as output perturbation.

        The proof of `dp.mechanisms.output_perturbation.sensitivity` uses that the objectives of
        neighbours are lam-strongly convex and differ by a function with gradient at most 2R/n; the
        convex term lambda1 ||w||_1 is in both. A point with a subgradient of norm tau is within
        tau/lam of the minimiser, because subgradients of a lam-strongly convex function are
        lam-strongly monotone.
        """
        self._check(epsilon, lam, n, d, bound)
        self._check_lambda1(lambda1)
        moved = sensitivity(n, lam, bound, tolerance=tolerance)
        reason = (
            f"lambda2/2 ||w||^2 makes the objective strongly convex, lambda1 ||w||_1 leaves it so: L2 "
            f"sensitivity at most 2R/(n lambda2) + 2 tau/lambda2 = {moved:.6g}, tau = {tolerance:g} the "
            f"norm of a subgradient that is certified (a premise: on every data set); "
            f"norm of the noise ~ Gamma({d}, {moved / epsilon:.6g})"
        )
        return Guarantee(epsilon, epsilon, 0.0, REPLACE_ONE, reason)

    def release(
        self,
        X,
        y,
        *,
        epsilon,
        delta=0.0,
        lam=None,
        restarts=1,
        rng,
        bound=1.0,
        fit=None,
        lambda1=None,
        tolerance=1e-9,
    ):
        """fit: (weights, info) of `dp.fits.elastic_net` for the same data, lam and lambda1.

        Where its smallest subgradient is not certified to `tolerance`, zeros are released, with the
        status "not_converged".
        """
        n, d = np.shape(X)
        self._check(epsilon, lam, n, d, bound)
        self._check_lambda1(lambda1)
        check_rows(X, y, bound)
        scale = sensitivity(n, lam, bound, tolerance=tolerance) / epsilon
        if fit is None:
            fit = elastic_net(X, y, lam, lambda1=lambda1, tolerance=tolerance)
        return perturbed(*fit, scale, restarts, rng, tolerance)

    @staticmethod
    def _check_lambda1(lambda1):
        if lambda1 is not None and not 0 < lambda1 < math.inf:
            raise ValueError(
                f"lambda1 must be a finite number > 0, not {lambda1}; "
                f"'output_perturbation' is the mechanism without an L1 penalty"
            )
