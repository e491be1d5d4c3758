"""Output perturbation: the regularised minimiser plus noise (CM08 algorithm 1)."""

import numpy as np

from dp import losses
from dp.mechanism import Parameters
from dp.mechanisms import Mechanism, Release, register
from dp.noise import gaussian, l2_laplace
from dp.options import ADJACENCY, LOSS, TOLERANCE, public_size
from dp.solvers.fits import FITS, fit_options
from dp.solvers.newton import check_certifiable
from dp_privacy.accounting import REPLACE_ONE
from dp_privacy.errors import Refused
from dp_privacy.profiles import Gaussian


def certificate(p: Parameters, norm: str = "gradient norm") -> str:
    """What a guarantee's reason says about tau, the certified bound on the norm called `norm`."""
    return (
        f"tau = {p.tolerance:g} the {norm} that the solver certifies on every data set (in real numbers by "
        f"its rate of convergence; that rounding does not prevent it is a premise, and settings in which "
        f"it could are refused)"
    )


def sensitivity(
    n: int, lam: float, bound: float = 1.0, loss: losses.Loss = "logistic", tolerance: float = 0.0
) -> float:
    """L2 sensitivity of the L2-regularised minimiser under replace-one.

    The objective is lam-strongly convex, and one record changes its gradient by at most 2 kappa R /
    n. So, for losses of margins or residuals, exact minimisers differ by at most 2 kappa R / (n lam)
    (Chaudhuri, Monteleoni, Sarwate, JMLR 12, 2011, corollary 8). Points of gradient norm at most tau =
    `tolerance`, certified on every data set, are within tau/lam of the minimisers, which adds 2 tau/lam.
    """
    kappa = losses.get(loss).kappa
    if not np.isfinite(kappa):
        raise Refused(f"the {loss} loss has no gradient bound, so no noise covers its minimiser")
    return 2 * kappa * bound / (n * lam) + 2 * tolerance / lam


class Perturbed(Mechanism):
    """w + z, where w is the minimiser that `fit` names in `dp.solvers.fits`, and z is noise.

    A minimiser not certified to `tolerance` gives weights of 0 and the status "not_converged". If
    the guarantee is finite, no data can cause this. A free intercept is released without noise.
    """

    in_blocks = True
    # Whether the guarantee needs the fit's certificate. If so, settings under which the fit of some
    # data set might not be certified are refused.
    certified = True
    law = staticmethod(l2_laplace)

    def scale(self, n: int, d: int, p: Parameters) -> float:
        raise NotImplementedError

    def _check_together(self, n, d, p):
        self.scale(n, d, p)
        if self.certified:
            loss = getattr(p, "loss", "logistic")
            check_certifiable(n, d, p.lam, p.bound, loss, p.tolerance)

    def _centre(self, weights, certified, n, p):
        """The vector (1, d) that gets noise, or None to release nothing."""
        return weights if certified else None

    def _statistics(self, weights, noise):
        """Further entries of info, from weights (1, d) and noise (restarts, d)."""
        return {}

    def _release(self, X, y, p, draws, rng):
        d = X.shape[1]
        scale = self.scale(X.shape[0], d, p)
        options = {name: getattr(p, name) for name in self.options}
        fit = p.fit or FITS[self.fit](X, y, p.lam, **fit_options(self.fit, options))
        weights, gradient_norm = fit[0], fit[1]["gradient_norm"]
        weights, intercept = weights[:, :d], weights[0, d:]
        certified = gradient_norm[0] <= p.tolerance
        centre = self._centre(weights, certified, len(X), p)
        noise = self.law(d, scale, draws, rng)
        info = {
            "gradient_norm": np.repeat(gradient_norm, draws),
            "scale": scale,
            **self._statistics(weights, noise),
        }
        if len(intercept):
            info["intercept"] = np.full(draws, intercept[0] if certified else 0.0)
        return Release(
            np.zeros_like(noise) if centre is None else np.add(centre, noise, out=noise),
            np.full(draws, "not_converged" if centre is None else "ok"),
            info,
        )


@register("output_perturbation")
class OutputPerturbation(Perturbed):
    """w + z, where w minimises mean loss + lam/2 ||w||^2, and ||z|| ~ Gamma(d, sensitivity / epsilon).

    There is no free intercept, because the sensitivity bound needs the ridge.
    """

    numbers = True
    fit = "l2"
    options = LOSS | TOLERANCE

    def scale(self, n: int, d: int, p: Parameters) -> float:
        return sensitivity(n, p.lam, p.bound, p.loss, p.tolerance) / p.epsilon

    def _guarantee(self, n, d, p):
        """epsilon-DP (CM08 theorem 1; CMS11 theorem 6), including the solver's tolerance."""
        scale = self.scale(n, d, p)
        return (
            f"the minimiser's L2 sensitivity is at most 2 kappa R/(n lambda) + 2 tau/lambda = "
            f"{scale * p.epsilon:.6g}, {certificate(p)}; norm of the noise ~ Gamma({d}, {scale:.6g})"
        )


@register("output_perturbation_gaussian")
class GaussianOutputPerturbation(OutputPerturbation):
    """The minimiser plus Gaussian noise, whose standard deviation is the L2 sensitivity over mu.

    Under add-remove, Lambda = n lambda, which regularises the summed loss, is public. A record
    changes the minimiser by at most kappa R/Lambda. Certified points for n and n + 1 records are
    within n tau/Lambda and (n + 1) tau/Lambda of their minimisers.
    """

    delta = "needed"
    law = staticmethod(gaussian)
    options = OutputPerturbation.options | ADJACENCY

    def _sensitivity(self, n, p):
        if p.adjacency == REPLACE_ONE:
            return sensitivity(n, p.lam, p.bound, p.loss, p.tolerance)
        moved = sensitivity(n, p.lam, p.bound, p.loss) / 2
        return moved + (2 + 1 / n) * p.tolerance / p.lam

    def scale(self, n: int, d: int, p: Parameters) -> float:
        return self._sensitivity(n, p) / p.mu

    def _guarantee(self, n, d, p):
        """(epsilon, delta)-DP by exact mu-Gaussian DP (Dong, Roth, Su, JRSS B 84, 2022, theorem 2.7)."""
        mu, public = p.mu, public_size(p)
        if public:
            public += f", and so is Lambda = n lambda = {n * p.lam:.6g}"
        reason = (
            f"the certified minimiser's L2 sensitivity is at most {self._sensitivity(n, p):.6g}, "
            f"{certificate(p)}; noise of standard deviation {self.scale(n, d, p):.6g} makes it Gaussian DP "
            f"with mu = {mu:.6g}{public}"
        )
        return p.proven(reason, profile=Gaussian(mu))
