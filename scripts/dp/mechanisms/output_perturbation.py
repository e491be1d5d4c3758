"""Output perturbation: the regularised minimiser plus noise (CM08 algorithm 1)."""

import numpy as np

from dp import losses
from dp.accounting import REPLACE_ONE, Guarantee
from dp.data import check_rows
from dp.fits import l2
from dp.mechanisms import Mechanism, Release, check_tolerance, register
from dp.noise import l2_laplace


def sensitivity(n, lam, bound=1.0, loss="logistic", tolerance=0.0):
    """L2 sensitivity of the L2-regularised minimiser under replace-one.

    The objective is lam-strongly convex, and replacing one record changes its gradient by at most
    2 kappa R / n, so the exact minimisers differ by at most 2 kappa R / (n lam) (Chaudhuri,
    Monteleoni, Sarwate, JMLR 12, 2011, corollary 8). A point whose gradient norm is at most tau is
    within tau/lam of the minimiser: two such points differ by another 2 tau/lam.

    tolerance: tau, the gradient norm to which the minimiser is certified on every data set.
    """
    check_tolerance(tolerance)
    kappa = losses.get(loss).kappa
    if not np.isfinite(kappa):
        raise ValueError(f"the {loss} loss states no gradient bound, so its minimiser has no bound")
    return 2 * kappa * bound / (n * lam) + 2 * tolerance / lam


def perturbed(weights, info, scale, restarts, rng, tolerance):
    """`Release` of a shared fit's weights (1, d) plus `restarts` draws of Gamma(d, scale) noise.

    Zeros, with the status "not_converged", where the fit is not certified to `tolerance`.
    """
    noise = l2_laplace(weights.shape[1], scale, restarts, rng)
    certified = info["gradient_norm"][0] <= tolerance
    return Release(
        np.add(weights, noise, out=noise) if certified else np.zeros_like(noise),
        np.repeat(info["status"] if certified else np.array(["not_converged"]), restarts),
        {"gradient_norm": np.repeat(info["gradient_norm"], restarts), "scale": scale},
    )


@register("output_perturbation")
class OutputPerturbation(Mechanism):
    """w + z, w the minimiser of mean loss + lam/2 ||w||^2, z ~ Gamma(d, sensitivity / epsilon).

    No free intercept: it would not be regularised, and the sensitivity bound would fail. A constant
    feature is an ordinary regularised coordinate.
    """

    fit = "l2"

    def scale(self, n, d, *, epsilon, lam, bound=1.0, loss="logistic", tolerance=0.0):
        """Scale of the noise's norm ~ Gamma(d, scale)."""
        return sensitivity(n, lam, bound, loss, tolerance) / epsilon

    def guarantee(
        self, n, d, *, epsilon, delta=0.0, lam=None, bound=1.0, loss="logistic", tolerance=1e-9
    ):
        """epsilon-DP (CM08 theorem 1; CMS11 theorem 6, with the certified minimiser paid for)."""
        self._check(epsilon, lam, n, d, bound)
        scale = self.scale(
            n, d, epsilon=epsilon, lam=lam, bound=bound, loss=loss, tolerance=tolerance
        )
        reason = (
            f"the minimiser's L2 sensitivity is at most 2 kappa R/(n lambda) + 2 tau/lambda = "
            f"{scale * epsilon:.6g}, tau = {tolerance:g} the gradient norm that the solver certifies "
            f"(a premise: that it does so for every data set); "
            f"norm of the noise ~ Gamma({d}, {scale:.6g})"
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
        loss="logistic",
        tolerance=1e-9,
    ):
        """fit: (weights, info) of `dp.fits.l2` for the same data and lam, computed where not given.

        Where the minimiser is not certified to `tolerance` nothing is released: the weights are
        zeros, with the status "not_converged". That event itself depends on the data, so the
        guarantee is for data on which it cannot happen.
        """
        n, d = np.shape(X)
        self._check(epsilon, lam, n, d, bound)
        check_rows(X, y, bound)
        scale = self.scale(
            n, d, epsilon=epsilon, lam=lam, bound=bound, loss=loss, tolerance=tolerance
        )
        weights, info = fit if fit is not None else l2(X, y, lam, loss=loss, tolerance=tolerance)
        return perturbed(weights, info, scale, restarts, rng, tolerance)
