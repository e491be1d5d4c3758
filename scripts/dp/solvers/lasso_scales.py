"""Logistic regression with an L1 penalty, where lambda may have one of several meanings.

"mean"          mean loss + lam ||w||_1
"summed"        summed loss + lam ||w||_1: the weight beside the mean loss is lam / n
"standardised"  mean loss + lam sum_j s_j |w_j|, s_j the standard deviation of column j of these rows:
                the penalty is that of standardised columns
"lassoglm"      deviance/n + lam sum_j s_j |w_j|, where the deviance is twice the loss, with a free
                intercept that is then left out. MATLAB's lassoglm minimises this, and only its slopes
                are used
"""

import numpy as np

from dp import losses
from dp.descents.distributed_lasso import soft_threshold
from dp.solvers.elastic_net import minimise_elastic_net

SCALES = ("mean", "summed", "standardised", "lassoglm")
# Attempts of Newton's method, proximal steps between two attempts, and most Newton steps in one.
ATTEMPTS, STEPS, NEWTON = 100, 100, 30


def weight_beside_mean(lam: float, n: int, scale: str) -> float:
    """Weight of the L1 norm beside the mean loss, or of standardised columns' L1 norm."""
    return lam / {"summed": n, "lassoglm": 2}.get(scale, 1)


def minimise_lasso(
    X: np.ndarray, y: np.ndarray, lam: float, scale: str = "mean", tolerance: float = 1e-9
) -> tuple[np.ndarray, dict]:
    """Weights (1, d) and info, as from `minimise_elastic_net`.

    If columns are standardised, constant columns get the weight 0.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    weight = weight_beside_mean(lam, len(y), scale)
    if scale in ("mean", "summed"):
        return minimise_elastic_net(X, y, weight, 0.0, tolerance)
    deviation = X.std(axis=0)
    used = deviation > 1e-12 * np.abs(X).max(axis=0)
    weights = np.zeros((1, X.shape[1]))
    rows = X[:, used] / deviation[used]
    if scale == "standardised":
        fitted, info = minimise_elastic_net(rows, y, weight, 0.0, tolerance)
    else:
        fitted, info = _with_intercept(rows - rows.mean(axis=0), y, weight, tolerance)
    weights[0, used] = fitted[0, : used.sum()] / deviation[used]
    return weights, info


def _with_intercept(X, y, l1, tolerance):
    """argmin of mean logistic loss + l1 ||w||_1 with a free intercept, the last of weights (1, d + 1).

    Newton's method solves for the weights that a proximal step leaves nonzero. Between its attempts are
    proximal steps.
    """
    rows = np.column_stack([X, np.ones(len(X))])
    n, d = rows.shape
    penalty = np.append(np.full(d - 1, l1), 0.0)
    loss, smooth = losses.get("logistic"), 0.25 * float(np.linalg.norm(rows, 2) ** 2) / n

    def evaluate(w):
        slope, curvature = loss.slopes(y * (rows @ w))
        gradient = (slope * y) @ rows / n
        at_zero = np.maximum(np.abs(gradient) - penalty, 0.0)
        kink = np.where(w != 0, gradient + penalty * np.sign(w), at_zero)
        return gradient, curvature, float(np.linalg.norm(kink))

    w, passes = np.zeros(d), 0
    best = evaluate(w)[2], w
    for _ in range(ATTEMPTS):
        trial = w
        for _ in range(NEWTON):
            gradient, curvature, norm = evaluate(trial)
            passes += 1
            if norm < best[0]:
                best = norm, trial
            if best[0] <= tolerance or not np.isfinite(norm):
                break
            target = soft_threshold(trial - gradient / smooth, penalty, 1 / smooth)
            alive = target != 0
            hessian = (rows[:, alive].T * curvature) @ rows[:, alive] / n
            hessian[np.diag_indices_from(hessian)] += 1e-12 * max(1e-300, np.trace(hessian))
            masked = np.where(alive, trial, 0.0)
            slope, _ = loss.slopes(y * (rows @ masked))
            right = (slope * y) @ rows / n + penalty * np.sign(target)
            try:
                masked[alive] -= np.linalg.solve(hessian, right[alive])
            except np.linalg.LinAlgError:
                break
            trial = masked
        if best[0] <= tolerance:
            break
        for _ in range(STEPS):
            w = soft_threshold(w - evaluate(w)[0] / smooth, penalty, 1 / smooth)
            passes += 1
    return best[1][None], {
        "gradient_norm": np.array([best[0]]),
        "status": np.array(["ok" if best[0] <= tolerance else "not_converged"]),
        "iterations": np.array([passes]),
    }
