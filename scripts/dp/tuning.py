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
