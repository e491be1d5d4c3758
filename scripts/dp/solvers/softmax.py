"""Minimisers of tilted softmax objectives, certified by the norm of the gradient.

All restarts share passes over the rows (`dp.descents.full_batch.mean_gradient`). If quasi-Newton steps
stall, accelerated descent takes over.
"""

import math
from dataclasses import dataclass

import numpy as np

from dp.descents.full_batch import mean_gradient
from dp.solvers import accelerated, quasi_newton
from dp.solvers.newton import Info

LIMIT = 500  # passes
LEAST_STEP = 1e-6  # fraction of a step below which rounding dominates
SAMPLE = 1 << 12  # maximum number of rows for principal directions


@dataclass(frozen=True)
class Constants:
    """Constants of softmax loss with this many classes, for `dp.solvers.newton.check_certifiable`.

    R bounds row norms. kappa: a gradient's norm is at most sqrt(2) R. kappa is twice sqrt(2), since
    `mean_gradient` uses blocks of up to 8192 rows, where `rounding` assumes 4096. c: curvature is at most
    R^2/2. An error in the scores moves the probabilities p by at most half the error's norm, apart from a
    few roundings of each p_j.
    """

    classes: int
    name = "softmax"
    kappa = 2 * math.sqrt(2)
    c = 0.5

    def at_zero(self) -> float:
        return math.log(self.classes)


class _InverseHessians(quasi_newton.InverseHessians):
    """Inverse Hessians for weights (d K, restarts), initially built from the rows' principal directions."""

    def first(self, gradient, part):
        """Multiply all classes at once by the same inverse."""
        count = gradient.shape[1]
        shaped = gradient.reshape(len(self.directions), -1, count)
        along = np.einsum("dk,dcr->kcr", self.directions, shaped, optimize=True)
        along *= self.weights[:, part][:, None]
        shaped = shaped * self.common[part] + np.einsum(
            "dk,kcr->dcr", self.directions, along, optimize=True
        )
        return shaped.reshape(-1, count)


class _Rows:
    def __init__(self, X, y, classes):
        self.X, self.y, self.classes = X, y, classes

    def gradient(self, W):
        shape = self.X.shape[1], self.classes, W.shape[1]
        stacked = np.ascontiguousarray(W.reshape(shape).transpose(2, 0, 1))
        _, gradient = mean_gradient(self.X, self.y, stacked, "softmax", valued=False)
        return gradient.transpose(1, 2, 0).reshape(-1, W.shape[1])


def minimise(
    X: np.ndarray,
    y: np.ndarray,
    classes: int,
    lam: float,
    linear: np.ndarray,
    tolerance: float = 1e-9,
) -> tuple[np.ndarray, Info]:
    """Minimise mean_i loss_i(W) + lam/2 ||W||^2 + <linear_j, W>/n for every restart j.

    X: (n, d) floats. y: (n,) classes 0, .., K - 1. linear: (restarts, d, K). Returns weights (restarts,
    d, K) and the `Info` of `dp.solvers.newton.minimise`.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y).astype(int)
    (n, d), restarts = X.shape, len(linear)
    rows = _Rows(X, y, classes)
    tilt = np.asarray(linear).transpose(1, 2, 0).reshape(d * classes, restarts) / n
    main = quasi_newton.main_directions(X[:: -(-n // SAMPLE)], np.random.default_rng(0))
    # At W = 0, the curvature is at most R^2/K.
    inverse = _InverseHessians(main, np.full(restarts, 1 / classes), np.full(restarts, lam))
    W, norm, passes = _quasi_newton(rows, lam, tilt, inverse, tolerance)
    for j in np.flatnonzero(~(norm <= tolerance)):
        W[:, j], norm[j], more = _descend(rows, lam, tilt[:, j : j + 1], tolerance)
        passes[j] += more
    status = np.where(norm <= tolerance, "ok", "not_converged")
    info = Info(iterations=passes, gradient_norm=norm, status=status)
    return np.ascontiguousarray(W.reshape(d, classes, restarts).transpose(2, 0, 1)), info


def _quasi_newton(rows, lam, tilt, inverse, tolerance):
    """Weights, gradient norms and passes.

    A step is accepted if, at its end, the objective rises at most half as fast as it fell at the start.
    Slopes alone locate a convex function's minimum along a direction. The objective's values are not used,
    because their rounding would hide half of the digits. By convexity, every pair of a step and a gradient
    change is valid for BFGS.
    """
    W, direction, gradient = np.zeros((3, *tilt.shape))
    restarts = tilt.shape[1]
    norm, slope = np.full(restarts, np.inf), np.full(restarts, -np.inf)
    step, passes = np.ones(restarts), np.zeros(restarts, dtype=int)
    active = np.arange(restarts)
    for _ in range(LIMIT):
        passes[active] += 1
        trial = W[:, active] + step[active] * direction[:, active]
        ascent = rows.gradient(trial) + lam * trial + tilt[:, active]
        end_slope = (ascent * direction[:, active]).sum(axis=0)
        good = end_slope <= -slope[active] / 2
        with np.errstate(invalid="ignore"):
            # Secant method: a linear slope would be zero at this share of the step.
            shorter = slope[active] / (slope[active] - end_slope)
        step[active] = np.where(good, 1.0, step[active] * np.clip(np.nan_to_num(shorter), 0.1, 0.7))
        taken = active[good]
        if len(taken) and passes.max() > 1:
            inverse.learn(taken, trial[:, good] - W[:, taken], ascent[:, good] - gradient[:, taken])
        W[:, taken], gradient[:, taken] = trial[:, good], ascent[:, good]
        norm[taken] = np.linalg.norm(ascent[:, good], axis=0)
        if len(taken):
            direction[:, taken] = -inverse.times(taken, gradient[:, taken])
        slope[taken] = (gradient[:, taken] * direction[:, taken]).sum(axis=0)
        active = active[(norm[active] > tolerance) & (step[active] > LEAST_STEP)]
        if not len(active):
            break
    return W, norm, passes


def _descend(rows, lam, tilt, tolerance):
    """One restart's weights, gradient norm and passes, by accelerated descent from 0."""
    best, passes = [None, np.inf], 0

    def gradient(W):
        nonlocal passes
        passes += 1
        return rows.gradient(W) + lam * W + tilt

    def attempt(W):
        norm = float(np.linalg.norm(gradient(W)))
        if norm < best[1]:
            best[:] = W[:, 0].copy(), norm
        return norm <= tolerance

    start = np.zeros_like(tilt)
    smooth = lam + Constants.c * np.einsum("nd,nd->n", rows.X, rows.X).mean()
    attempt(start)
    limit = accelerated.steps(smooth, lam, best[1], tolerance)
    accelerated.proximal_descent(gradient, smooth, lam, start, limit, attempt)
    return *best, passes
