"""What a released weight vector is worth: test error and regularised risk."""

import numpy as np

from dp import losses
from dp.data import slices

BLOCK_ELEMENTS = 1 << 13  # scores held at a time: 64 kB, which malloc does not fetch anew each time


def _blocks(rows, restarts):
    step = max(16, BLOCK_ELEMENTS // max(1, restarts))  # at least what a matrix product needs
    return slices(rows, step)


def error_rate(weights, X, y, intercept=0.0):
    """Share of rows whose class is not predicted, for each of the weights, (restarts,).

    weights (restarts, d), labels -1 and 1: sgn(w.x + b), a score of 0 is -1; intercept: b, a number or
    (restarts,). weights (restarts, d, K), labels 0, .., K - 1: the class of the largest score, the
    first of equal ones.
    """
    wrong = np.zeros(len(weights))
    if weights.ndim == 3:
        restarts, d, K = weights.shape
        flat = weights.transpose(1, 0, 2).reshape(d, restarts * K)
        for rows in _blocks(len(X), restarts * K):
            scores = (X[rows] @ flat).reshape(-1, restarts, K)
            wrong += (scores.argmax(axis=2) != y[rows, None]).sum(axis=0)
        return wrong / len(X)
    for rows in _blocks(len(X), len(weights)):
        wrong += ((X[rows] @ weights.T + intercept > 0) != (y[rows] > 0)[:, None]).sum(axis=0)
    return wrong / len(X)


def regularised_risk(weights, X, y, lam, loss="logistic", l1=0.0):
    """mean_i loss(z_i) + lam/2 ||w||^2 + l1 ||w||_1 for each of the weights (restarts, d).

    z_i: as in `dp.losses`.
    """
    loss = losses.get(loss)
    total = np.zeros(len(weights))
    for rows in _blocks(len(X), len(weights)):
        total += loss.value(loss.arguments(X[rows] @ weights.T, y[rows, None])).sum(axis=0)
    penalty = lam / 2 * np.einsum("ij,ij->i", weights, weights) + l1 * np.abs(weights).sum(axis=1)
    return total / len(X) + penalty
