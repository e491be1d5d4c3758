"""What a released weight vector is worth: test error and regularised risk."""

import numpy as np

from dp import losses

BLOCK_ELEMENTS = 1 << 20  # scores held at a time: 8 MB, whatever n x restarts is


def _blocks(rows, restarts):
    step = max(1, BLOCK_ELEMENTS // max(1, restarts))
    return (slice(start, start + step) for start in range(0, rows, step))


def error_rate(weights, X, y, intercept=0.0):
    """Share of rows with sgn(w.x + b) != y for each of the weights (restarts, d); a score of 0 is -1.

    intercept: b, a number or (restarts,).
    """
    wrong = np.zeros(len(weights))
    for rows in _blocks(len(X), len(weights)):
        wrong += ((X[rows] @ weights.T + intercept > 0) != (y[rows] > 0)[:, None]).sum(axis=0)
    return wrong / len(X)


def regularised_risk(weights, X, y, lam, loss="logistic", l1=0.0):
    """mean_i loss(y_i w.x_i) + lam/2 ||w||^2 + l1 ||w||_1 for each of the weights (restarts, d)."""
    loss = losses.get(loss)
    total = np.zeros(len(weights))
    for rows in _blocks(len(X), len(weights)):
        total += loss.value((X[rows] @ weights.T) * y[rows, None]).sum(axis=0)
    penalty = lam / 2 * np.einsum("ij,ij->i", weights, weights) + l1 * np.abs(weights).sum(axis=1)
    return total / len(X) + penalty
