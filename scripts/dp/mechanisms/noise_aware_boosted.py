"""Boosted AdaSSP with standard errors."""

import math

import numpy as np

from dp import inference
from dp.mechanisms import register
from dp.mechanisms.boosted_adassp import BoostedAdaSSP
from dp.mechanisms.noise_aware import said
from dp.options import Between, Choice
from dp.rows import slices


@register("noise_aware_boosted")
class NoiseAwareBoosted(BoostedAdaSSP):
    """Boosted AdaSSP, then two noisy means of its residuals, for intervals.

    At the mean weights of the second half of the steps, u is the mean over rows of
    (clip(residual)/clip)^2, and q the share of unclipped residuals. One record's (u, q) is (1, 0),
    or (u, 1) with u in [0, 1]. Its norm, and its distance from another record's (u, q), are at most
    sqrt(2). So the means change by at most sqrt(2)/n under either adjacency.

    If errors are independent of x, the sum of clip(residual)^2 x x' is about u clip^2 X'X, and the
    sum of x x' over unclipped residuals is about q X'X. X'X is the descent's noisy matrix.
    `dp.inference` turns these sums into estimates and covariances. Covariances are wrong for
    heteroscedastic errors, for which `noise_aware_log_cosh` with `robust` is right.

    covariance: the share of mu^2 for u and q.
    iterates: "late" uses the second half of the steps, "last" the last weights.

    weights: corrected for the bias towards the starting point.
    info["covariance"]: (draws, d, d), due to sampling and noise.
    info["unresolved"], info["answered"], info["coarse"]: as for `noise_aware_logistic`. No
    coefficient gets an interval if the noise on u and q has a standard deviation above a quarter of
    u, q or 1.
    info["minimiser"]: (draws, d), the last weights.
    info["hessian"], info["scores"]: (draws, d, d), the sum of x x' over unclipped residuals and the
    sum of clip(residual)^2 x x', each divided by n.
    """

    # No `public_n`: covariances need the number of records.
    options = {k: v for k, v in BoostedAdaSSP.options.items() if k != "public_n"} | {
        "covariance": Between(0.05, low=0, high=1),
        "iterates": Choice("late", "last"),
    }
    reports = ("coarse",)

    def _mu(self, p):
        return p.mu * math.sqrt(1 - p.covariance)

    def _deviation(self, n, p):
        """Standard deviation of the noise on each mean."""
        return math.sqrt(2) / (n * p.mu * math.sqrt(p.covariance))

    def _beside(self, n, p):
        return f" and of two means of residuals ({self._deviation(n, p):.6g})"

    def _release(self, X, y, p, draws, rng):
        n, taken = len(y), []
        last, gram, P = self._descend(X, y, p, draws, rng, taken)
        thetas, moments = (np.array(each) for each in zip(*taken, strict=True))
        _, scale, sigma = self._scales(p)
        means = residual_means(X, y, thetas[p.iterations // 2 :].mean(axis=0), p.clip)
        deviation = self._deviation(n, p)
        means += deviation * rng.standard_normal(means.shape)
        vague = np.minimum(1.0, means.min(axis=0)) < 4 * deviation
        u, q = np.clip(means, min(deviation, 1.0), 1.0)[..., None, None]
        gram = inference.floored(gram, inference.FLOOR * scale)
        released = thetas, moments, last, P, q * gram, u * p.clip**2 * gram
        q = q[:, 0, 0]
        errors = q * scale, deviation / q
        steps = inference.Steps(*released, *errors, gram / n, sigma, p.clip, n * p.lam)
        ways = {"late": inference.late_iterates, "last": inference.last_iterate}
        linear = ways[p.iterates](steps)
        info = said(linear, vague)
        info |= {"minimiser": last, "hessian": steps.D / n, "scores": steps.J / n}
        info |= {"scale": sigma, "matrix_scale": scale}
        return linear.estimate, info


def residual_means(X: np.ndarray, y: np.ndarray, weights: np.ndarray, clip: float) -> np.ndarray:
    """Means (2, draws) of min(1, |residual|/clip)^2 and of the indicator |residual| <= clip over rows.

    weights: (draws, d). A residual that is NaN after overflow counts as clipped.
    """
    sums = np.zeros((2, len(weights)))
    for part in slices(len(y)):
        size = np.abs(y[part, None] - np.asarray(X[part], dtype=float) @ weights.T) / clip
        sums += (np.fmin(size, 1.0) ** 2).sum(axis=0), (size <= 1).sum(axis=0)
    return sums / len(y)
