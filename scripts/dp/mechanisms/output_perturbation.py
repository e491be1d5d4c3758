"""Output perturbation: the regularised minimiser plus noise (CM08 algorithm 1)."""

import numpy as np

from dp import losses
from dp.accounting import REPLACE_ONE, Guarantee
from dp.data import check_rows
from dp.fits import FITS, fit_options
from dp.mechanisms import Mechanism, Release, check_tolerance, register
from dp.noise import l2_laplace
from dp.solvers import check_certifiable

# Of a certificate's norm, in reasons.
EVERYWHERE = (
    "the solver certifies on every data set (in real numbers by its rate of convergence; that rounding "
    "does not prevent it is a premise, and settings in which it could are refused)"
)


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
    """w + z: a minimiser of `dp.fits`, the one that `fit` names, and noise of a subclass' scale.

    Where a guarantee rests on the fit's certificate, `guarantee` refuses settings in which data could
    keep the fit from it (`dp.solvers.check_certifiable`).
    """

    in_blocks = True
    law = staticmethod(l2_laplace)  # of the noise

    def scale(self, n, d, *, epsilon, lam, bound=1.0, tolerance=0.0, **options):
        """Scale of the noise."""
        raise NotImplementedError

    def _centre(self, weights, certified, lam):
        """What the noise is added to, (1, d), or None where nothing may be released."""
        return weights if certified else None

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
        zeros, with the status "not_converged". A finite guarantee is for settings in which no data can
        bring this about. A fit's free intercept is released as it is.
        """
        n, d = np.shape(X)
        self.check_options(options)
        options = self.options() | options
        self.guarantee(n, d, epsilon=epsilon, delta=delta, lam=lam, bound=bound, **options)
        scale = self.scale(n, d, epsilon=epsilon, lam=lam, bound=bound, **options)
        check_rows(X, y, bound)
        if fit is None:
            fit = FITS[self.fit](X, y, lam, **fit_options(self.fit, options))
        weights, gradient_norm = fit[0], fit[1]["gradient_norm"]
        weights, intercept = weights[:, :d], weights[0, d:]
        certified = gradient_norm[0] <= options["tolerance"]
        centre = self._centre(weights, certified, lam)
        noise = self.law(d, scale, restarts, rng)
        info = {
            "gradient_norm": np.repeat(gradient_norm, restarts),
            "scale": scale,
            **self._statistics(weights, noise),
        }
        if len(intercept):
            info["intercept"] = np.full(restarts, intercept[0] if certified else 0.0)
        return Release(
            np.zeros_like(noise) if centre is None else np.add(centre, noise, out=noise),
            np.full(restarts, "not_converged" if centre is None else "ok"),
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
        check_certifiable(n, d, lam, bound, loss, tolerance)
        reason = (
            f"the minimiser's L2 sensitivity is at most 2 kappa R/(n lambda) + 2 tau/lambda = "
            f"{scale * epsilon:.6g}, tau = {tolerance:g} the gradient norm that {EVERYWHERE}; "
            f"norm of the noise ~ Gamma({d}, {scale:.6g})"
        )
        return Guarantee(epsilon, epsilon, 0.0, REPLACE_ONE, reason)
