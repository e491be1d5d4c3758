"""Choosing the regularisation by cross-validation, without privacy."""

import numpy as np

from dp.evaluation import error_rate
from dp.solvers import minimise


def cross_validate(X, y, grid, folds, loss="logistic"):
    """Test error of the L2-regularised minimiser for every lambda and fold.

    grid: (m,) positive lambdas. folds: a list of (train, test) index arrays. Every fold solves all
    lambdas at once. Returns errors (m, folds), NaN where a fit failed, and the fits' status.

    A choice made from these errors depends on all rows: made on private rows it spends privacy that
    nobody accounts for.
    """
    errors = np.empty((len(grid), len(folds)))
    status = np.empty(errors.shape, dtype=object)
    for k, (train, test) in enumerate(folds):
        none = np.zeros((len(grid), X.shape[1]))
        weights, info = minimise(X[train], y[train], grid, linear=none, loss=loss)
        status[:, k] = info["status"]
        errors[:, k] = np.where(
            info["status"] == "ok", error_rate(weights, X[test], y[test]), np.nan
        )
    return errors, status


def most_frequent_best(errors):
    """The candidate that wins most simulations, as E18 tunes.

    errors: (simulations, candidates) validation errors, the preferred candidates first. A simulation's
    winner has its least error, the first of equals; NaN (a failed candidate) never wins. Ties in the
    number of wins go to the lower mean error, then to the preferred candidate. Returns the wins
    (candidates,) and the position of the choice.
    """
    errors = np.where(np.isnan(errors), np.inf, np.round(errors, 12))
    if not np.isfinite(errors).any(axis=1).all():
        raise ValueError("in some simulation every candidate failed: nothing can be chosen")
    wins = np.bincount(errors.argmin(axis=1), minlength=errors.shape[1])
    mean = errors.mean(axis=0).round(12)
    return wins, min(range(len(wins)), key=lambda k: (-wins[k], mean[k], k))
