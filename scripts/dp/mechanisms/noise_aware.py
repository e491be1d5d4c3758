"""Regressions with standard errors."""

import math
from functools import partial

import numpy as np

from dp import losses
from dp.inference import FLOOR, Linearised, curvature_level, floored, linearise, logistic_change
from dp.mechanism import Parameters
from dp.mechanisms import Release, register
from dp.mechanisms.gaussian_objective_perturbation import GaussianObjectivePerturbation, kind
from dp.noise import gaussian
from dp.options import Between, Flag, Loss, public_size
from dp.proofs.quadratics import coefficients, isotropic
from dp.rows import slices
from dp_privacy import sensitivities
from dp_privacy.errors import Refused

LOGISTIC = losses.get("logistic")


@register("noise_aware_logistic")
class NoiseAwareLogistic(GaussianObjectivePerturbation):
    """Gaussian objective perturbation, and a noisy Hessian at the released weights, for intervals.

    The Hessian of the mean loss is the mean of l'' x x' with l'' in [0, c], c = 1/4 for logistic
    loss. One record changes it by at most sqrt(2) c R^2/n in the Frobenius norm (add-remove: c
    R^2/n), as `sensitivities.gram` shows. The noise is isotropic and Gaussian. `robust` also
    releases the mean of l'^2 x x', which differs from the Hessian if the model is wrong. Slopes l' are
    in [-kappa, kappa]. The matrices and the weights' output noise (but not the exact minimiser)
    count as one Gaussian release, whose mu^2 is the sum of their mu^2.

    weights: corrected for the ridge's bias (`dp.inference.linearise`).
    info["covariance"]: (draws, d, d), due to sampling and all noise.
    info["unresolved"]: (draws, d, d), the part due to the Hessian's noise.
    info["answered"]: (draws, d), which coefficients get an interval (`dp.inference.answered`).
    info["coarse"]: (draws,), whether some coefficient gets none.
    info["minimiser"] (draws, d), info["hessian"] (draws, d, d) and, with `robust`, info["scores"]:
    the releases themselves.
    info["level"]: (draws,), `dp.inference.curvature_level`.

    covariance: the Hessian's share of mu^2, and as much again for a second release.
    """

    numbers = False
    # No `public_n`: covariances need the number of records.
    options = GaussianObjectivePerturbation.options
    options = {
        k: v for k, v in options.items() if k not in ("loss", "public_n", "clip", "offset", "most")
    }
    options |= {"covariance": Between(0.15, low=0, high=0.45), "robust": Flag(False)}
    reports = ("coarse",)

    def _kind(self, p):
        return kind("logistic")

    def _beside(self, p):
        """A description of the second release, or None."""
        return "the slopes' second moments" if p["robust"] else None

    def _second(self, p):
        """The share of mu that all releases except the exact minimiser get."""
        return math.sqrt(p["output"] ** 2 + p["covariance"] * (2 if self._beside(p) else 1))

    def rule_lambda(
        self, n: int, d: int, epsilon: float, delta: float, bound: float = 1.0, **options
    ) -> float:
        second = self._second(self.defaults() | options)
        options = {key: options[key] for key in options.keys() - {"covariance", "robust"}}
        return super().rule_lambda(n, d, epsilon, delta, bound, **options | {"output": second})

    def _plan(self, n, d, p):
        """A plan: `mu_output` covers all releases but the exact minimiser, `output_scale` only weights."""
        second = self._second(vars(p))
        if second >= 1:
            raise Refused(
                "output^2 and the shares for covariances leave nothing for the tilt: make them smaller"
            )
        plan = super()._plan(n, d, Parameters(**vars(p) | {"output": second}))
        return plan._replace(output_scale=plan.output_scale * second / p.output)

    def _scales(self, n, p, plan):
        """Standard deviations, for matrices on the diagonal, of noise on the Hessian and second release."""
        mu = plan.mu_output * math.sqrt(p.covariance) / self._second(vars(p))
        moved = sensitivities.gram(p.bound, plan.adjacency)
        loss = self._kind(p).loss
        # A mean of numbers in [0, kappa^2] changes by at most kappa^2/n under either adjacency.
        return loss.c * moved / (n * mu), loss.kappa**2 * (moved if p.robust else 1.0) / (n * mu)

    def _paid(self, n, p, plan):
        hessian, other = self._scales(n, p, plan)
        released = f"the Hessian there has noise of standard deviation {hessian:.6g}"
        if self._beside(vars(p)):
            released += f", {self._beside(vars(p))} {other:.6g}"
        paid = super()._paid(n, p, plan)
        return f"{paid}, shared with a second release: {released}{public_size(p)}"

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        plan = self._plan(n, d, p)
        release = super()._release(X, y, p, draws, rng)
        scales = self._scales(n, p, plan)
        loss = self._kind(p).loss
        matrices = second_moments(X, y, release.weights, p.robust, loss)
        for matrix, scale in zip(matrices, scales, strict=False):
            matrix /= n
            matrix += isotropic(gaussian(coefficients(d), scale, draws, rng), d)[0]
        level = curvature_level(matrices[0], scales[0], p.bound)
        hessian = floored(matrices[0], FLOOR * scales[0])
        failed = release.status != "ok"
        unknown = failed
        if p.robust:
            scores = floored(matrices[1], 0.0)
        else:
            scores, vague = self._assumed(X, y, release.weights, hessian, scales[1], rng, loss)
            unknown = unknown | vague
        noise = plan.scale, plan.output_scale
        change = None if loss.residual else partial(logistic_change, level=level)
        linear = linearise(release.weights, hessian, n, p.lam, *noise, scores, scales[0], change)
        info = said(linear, unknown)
        info |= {"minimiser": release.weights, "hessian": hessian, "scores": scores}
        info["level"] = level
        estimate = np.where(failed[:, None], 0.0, linear.estimate)
        return Release(estimate, release.status, release.info | info)

    def _assumed(self, X, y, weights, hessian, scale, rng, loss):
        """The mean of l'^2 x x' without `robust`, and which draws (draws,) are too noisy for intervals.

        Here, the mean is None, so `linearise` uses the Hessian.
        """
        return None, np.zeros(len(weights), dtype=bool)


@register("noise_aware_log_cosh")
class NoiseAwareLogCosh(NoiseAwareLogistic):
    """`noise_aware_logistic` for numeric targets, with slopes in [-tau, tau] even for outliers.

    It estimates the population's minimiser, which is theta if targets are symmetric about x.theta.

    Without `robust`, the Hessian and the mean v of the squared slopes, in [0, tau^2], are released.
    One record changes v by at most tau^2/n (either adjacency). If errors are independent of x, the
    mean of l'^2 x x' is v M, where M is the mean of x x'. The Hessian is (1 - v/tau^2) M, because
    l'' = 1 - l'^2/tau^2. So the mean of l'^2 x x' is v/(1 - v/tau^2) times the Hessian. v is too
    noisy if the standard deviation of its noise exceeds a quarter of v or of tau^2 - v.
    """

    numbers = True
    options = NoiseAwareLogistic.options | {"loss": Loss("log_cosh"), "robust": Flag(True)}

    def _kind(self, p):
        if not losses.get(p.loss).residual:
            raise Refused(f"{self.name} is for residuals: it needs the loss log_cosh")
        return kind(p.loss)

    def _beside(self, p):
        return super()._beside(p) or "the slopes' mean square"

    def _assumed(self, X, y, weights, hessian, scale, rng, loss):
        v = mean_square(X, y, weights, loss) + scale * rng.standard_normal(len(weights))
        return assumed(v, hessian, scale, loss)


def assumed(
    v: np.ndarray, hessian: np.ndarray, scale: float, loss: losses.LogCosh
) -> tuple[np.ndarray, np.ndarray]:
    """The mean of l'^2 x x' if errors are independent of rows, and which v are too noisy.

    v: (draws,), noisy mean of l'^2.
    scale: standard deviation of the noise on v.
    hessian: (draws, d, d).
    """
    least = np.minimum(v, loss.tau**2 - v)
    end = min(scale, 0.4 * loss.tau**2)
    v = np.clip(v, end, loss.tau**2 - end)
    return (v / (1 - v / loss.tau**2))[:, None, None] * hessian, 4 * scale > least


def said(linear: Linearised, unknown: np.ndarray) -> dict:
    """Entries of info about intervals. Draws that are `unknown` (draws,) get no interval."""
    unresolved = np.where(unknown[:, None, None], linear.covariance, linear.unresolved)
    printed = linear._replace(unresolved=unresolved).answered()
    info = {"covariance": linear.covariance, "unresolved": unresolved}
    return info | {"answered": printed, "coarse": ~printed.all(axis=1)}


def mean_square(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray, loss: losses.MarginLoss
) -> np.ndarray:
    """The mean (draws,) over rows of l'^2 at each of the weights (draws, d)."""
    total = np.zeros(len(weights))
    for part in slices(len(y)):
        z = loss.arguments(np.asarray(X[part], dtype=float) @ weights.T, y[part, None])
        total += (loss.slopes(z)[0] ** 2).sum(axis=0)
    return total / len(y)


def second_moments(
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    scores: bool = False,
    loss: losses.MarginLoss = LOGISTIC,
) -> list[np.ndarray]:
    """Sums (draws, d, d) of l'' x x' and, with `scores`, of l'^2 x x', at the weights (draws, d)."""
    draws, d = weights.shape
    sums = np.zeros((2 if scores else 1, draws, d, d))
    for part in slices(len(y)):
        rows = np.asarray(X[part], dtype=float)
        slope, curvature = loss.slopes(loss.arguments(rows @ weights.T, y[part, None]))
        for total, values in zip(sums, (curvature, slope * slope), strict=False):
            for r in range(draws):
                total[r] += (rows.T * values[:, r]) @ rows
    return list(sums)
