"""Regressions with standard errors: one budget pays for the weights and for their covariance."""

import math

import numpy as np

from dp import losses
from dp.data.examples import slices
from dp.errors import Refused
from dp.inference import floored, linearise
from dp.mechanisms import Parameters, Release, register
from dp.mechanisms.gaussian_objective_perturbation import GaussianObjectivePerturbation, kind
from dp.mechanisms.gradient_descent import public_size
from dp.mechanisms.options import Between, Flag, Loss
from dp.noise import gaussian
from dp.privacy import sensitivities
from dp.privacy.quadratics import coefficients, isotropic

LOGISTIC = losses.get("logistic")


@register("noise_aware_logistic")
class NoiseAwareLogistic(GaussianObjectivePerturbation):
    """Gaussian objective perturbation, then the Hessian at what it released; intervals follow from both.

    The Hessian of the mean loss, sum of l'' x x'/n at the released weights with l'' in [0, c], c = 1/4 of
    the logistic loss, moves by at most sqrt(2) c R^2/n in the Frobenius norm (replace-one; add-remove:
    c R^2/n), as `sensitivities.gram` shows, and gets isotropic Gaussian noise. With `robust`, the mean of
    l'^2 x x', l'^2 in [0, kappa^2], which differs from the Hessian where the model is wrong, is released
    too, with kappa^2 in the place of c. Given the weights these are Gaussian releases: with the output
    noise they count as one, mu^2 the sum of theirs, beside the tilt.

    weights: without the ridge's bias (`dp.inference.linearise`). info["covariance"]: (draws, d, d), of
    sampling and noise together; info["coarse"]: (draws,), whether linearising is too coarse;
    info["minimiser"] (draws, d), info["hessian"] (draws, d, d) and with `robust` info["scores"]: what both
    were made of.

    covariance: share of mu^2 for the Hessian, and for the other matrix as much again.
    """

    numbers = False
    options = {k: v for k, v in GaussianObjectivePerturbation.options.items() if k != "loss"} | {
        "covariance": Between(0.15, low=0, high=0.45),
        "robust": Flag(False),
    }
    reports = ("coarse",)

    def _kind(self, p):
        return kind("logistic")

    def _second(self, p):
        """Share of mu that everything but the tilt takes."""
        return math.sqrt(p["output"] ** 2 + p["covariance"] * (2 if p["robust"] else 1))

    def rule_lambda(self, n, d, epsilon, delta, bound=1.0, **options):
        """That of the tilt's own share of mu."""
        second = self._second(self.defaults() | options)
        options = {key: options[key] for key in options.keys() - {"covariance", "robust"}}
        return super().rule_lambda(n, d, epsilon, delta, bound, **options | {"output": second})

    def _plan(self, n, d, p):
        """`mu_output` is of all Gaussian releases beside the tilt, `output_scale` of the weights' alone."""
        second = self._second(vars(p))
        if second >= 1:
            raise Refused(
                "output^2 and the shares for covariances leave the tilt nothing: give less"
            )
        plan = super()._plan(n, d, Parameters(**vars(p) | {"output": second}))
        return plan._replace(output_scale=plan.output_scale * second / p.output)

    def _matrix_scales(self, n, p, plan):
        """Standard deviations, on the diagonals, of the Hessian's noise and of the other matrix's."""
        mu = plan.mu_output * math.sqrt(p.covariance) / self._second(vars(p))
        scale = sensitivities.gram(p.bound, plan.adjacency) / (n * mu)
        loss = self._kind(p).loss
        return loss.c * scale, loss.kappa**2 * scale

    def _paid(self, n, p, plan):
        hessian, scores = self._matrix_scales(n, p, plan)
        matrices = f"the Hessian there has noise of standard deviation {hessian:.6g}"
        if p.robust:
            matrices += f", the slopes' second moments {scores:.6g}"
        paid = super()._paid(n, p, plan)
        return f"{paid}, shared with a second release: {matrices}{public_size(p)}"

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        plan = self._plan(n, d, p)
        release = super()._release(X, y, p, draws, rng)
        scales = self._matrix_scales(n, p, plan)
        loss = self._kind(p).loss
        matrices = second_moments(X, y, release.weights, p.robust, loss)
        for matrix, scale in zip(matrices, scales, strict=False):
            matrix /= n
            matrix += isotropic(gaussian(coefficients(d), scale, draws, rng), d)[0]
        norm = sensitivities.noise_norm(scales[0], d)
        hessian = floored(matrices[0], norm)
        scores = floored(matrices[1], 0.0) if p.robust else None
        noise = plan.scale, plan.output_scale
        found = linearise(release.weights, hessian, n, p.lam, *noise, scores, norm, bend(loss))
        unknown = release.status != "ok"
        info = {"covariance": found.covariance, "coarse": found.coarse | unknown}
        info |= {"minimiser": release.weights, "hessian": hessian, "scores": scores}
        return Release(
            np.where(unknown[:, None], 0.0, found.estimate), release.status, release.info | info
        )


@register("noise_aware_log_cosh")
class NoiseAwareLogCosh(NoiseAwareLogistic):
    """The same of targets that are numbers, with slopes that an outlier cannot exceed, in [-tau, tau].

    What is estimated is the minimiser of the mean loss among all rows there could be: with errors
    symmetric about x.theta, theta itself.
    """

    numbers = True
    options = NoiseAwareLogistic.options | {"loss": Loss("log_cosh"), "robust": Flag(True)}

    def _kind(self, p):
        if not losses.get(p.loss).residual or not p.robust:
            raise Refused(
                f"{self.name} is of residuals, whose slopes' second moments are no Hessian whatever the "
                f"model: it needs robust: true, and the loss log_cosh"
            )
        return kind(p.loss)


def bend(loss):
    """sup |d log l''/dz| over sqrt(c): logistic 1 over 1/2, log-cosh 2/tau over 1."""
    return 2.0 / getattr(loss, "tau", 1.0)


def second_moments(X, y, weights, scores=False, loss=LOGISTIC):
    """[sum of l'' x x'] and, if asked for, the sum of l'^2 x x', at each of weights (draws, d).

    Each (draws, d, d).
    """
    draws, d = weights.shape
    sums = np.zeros((2 if scores else 1, draws, d, d))
    for part in slices(len(y)):
        rows = np.asarray(X[part], dtype=float)
        slope, curvature = loss.slopes(loss.arguments(rows @ weights.T, y[part, None]))
        for total, values in zip(sums, (curvature, slope * slope), strict=False):
            for r in range(draws):
                total[r] += (rows.T * values[:, r]) @ rows
    return list(sums)
