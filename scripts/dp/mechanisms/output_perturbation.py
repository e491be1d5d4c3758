"""Output perturbation: the regularised minimiser plus noise (CM08 algorithm 1)."""

import numpy as np

from dp import losses
from dp.accounting import REPLACE_ONE, Guarantee
from dp.data import check_rows
from dp.fits import FITS, fit_options
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


class Perturbed(Mechanism):
    """w + z: a minimiser of `dp.fits`, the one that `fit` names, and noise of a subclass' scale."""

    in_blocks = True
    law = staticmethod(l2_laplace)  # of the noise

    def scale(self, n, d, *, epsilon, lam, bound=1.0, tolerance=0.0, **options):
        """Scale of the noise."""
        raise NotImplementedError

    def _premise(self, weights, lam):
        """Whether a certified fit has what the sensitivity needs besides."""
        return True

    def _statistics(self, weights, noise):
        """Further entries of info, from weights (1, d) and noise (restarts, d)."""
        return {}

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
        **options,
    ):
        """fit: (weights, info) of the mechanism's fit for the same data, lam and options, computed if
        not given. options: as `guarantee`.

        Where the minimiser is not certified to `tolerance` nothing is released: the weights are
        zeros, with the status "not_converged". That event itself depends on the data, so the
        guarantee is for data on which it cannot happen. A fit's free intercept is released as it is.
        """
        n, d = np.shape(X)
        self._check(epsilon, lam, n, d, bound)
        self.check_options(options)
        options = self.options() | options
        scale = self.scale(n, d, epsilon=epsilon, lam=lam, bound=bound, **options)
        check_rows(X, y, bound)
        if fit is None:
            fit = FITS[self.fit](X, y, lam, **fit_options(self.fit, options))
        weights, gradient_norm, status = fit[0], fit[1]["gradient_norm"], fit[1]["status"]
        weights, intercept = weights[:, :d], weights[0, d:]
        if not self._premise(weights, lam):
            gradient_norm = np.array([np.inf])
        certified = gradient_norm[0] <= options["tolerance"]
        noise = self.law(d, scale, restarts, rng)
        info = {
            "gradient_norm": np.repeat(gradient_norm, restarts),
            "scale": scale,
            **self._statistics(weights, noise),
        }
        if len(intercept):
            info["intercept"] = np.full(restarts, intercept[0] if certified else 0.0)
        return Release(
            np.add(weights, noise, out=noise) if certified else np.zeros_like(noise),
            np.repeat(status if certified else np.array(["not_converged"]), restarts),
            info,
        )


@register("output_perturbation")
class OutputPerturbation(Perturbed):
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
