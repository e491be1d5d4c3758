"""Logistic regression with an L1 penalty, for several meanings of lambda.

"mean"          mean loss + lam ||w||_1
"summed"        summed loss + lam ||w||_1: the weight for the mean loss is lam / n
"standardised"  mean loss + lam sum_j s_j |w_j|, s_j the standard deviation of column j of these rows:
                the penalty is that of standardised columns
"lassoglm"      deviance/n + lam sum_j s_j |w_j|, where the deviance is twice the loss, with a free
                intercept, which the weights omit, as in MATLAB's lassoglm
"""

import numpy as np

from dp.solvers.elastic_net import minimise_elastic_net

SCALES = ("mean", "summed", "standardised", "lassoglm")


def weight_beside_mean(lam: float, n: int, scale: str) -> float:
    """Weight of the L1 penalty when added to the mean loss."""
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
    if scale == "lassoglm":  # the intercept is not penalised
        rows = np.column_stack([rows - rows.mean(axis=0), np.ones(len(rows))])
        weight = np.append(np.full(used.sum(), weight), 0.0)
    fitted, info = minimise_elastic_net(rows, y, weight, 0.0, tolerance)
    weights[0, used] = fitted[0, : used.sum()] / deviation[used]
    return weights, info
