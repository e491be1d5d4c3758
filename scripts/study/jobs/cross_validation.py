"""Choice of the regularisation by cross-validation, without privacy."""

from collections.abc import Callable

import numpy as np

from dp import losses
from dp.evaluation import error_rate
from dp.solvers.lasso_scales import minimise_lasso
from dp.solvers.newton import minimise


def cross_validate(
    X: np.ndarray,
    y: np.ndarray,
    grid: np.ndarray,
    folds: list,
    loss: losses.Loss = "logistic",
    measure: Callable = error_rate,
    lasso: str | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Test error of the regularised minimiser for every lambda and fold.

    grid: (m,) positive lambdas. folds: (train, test) index arrays. measure: error_rate or
    mean_squared_error of `dp.evaluation`. lasso: one of `dp.solvers.lasso_scales.SCALES`, for logistic loss
    with an L1 penalty in place of L2. Returns errors (m, folds), NaN if a fit failed, and every fit's
    status.
    """
    errors = np.empty((len(grid), len(folds)))
    status = np.empty(errors.shape, dtype=object)
    for k, (train, test) in enumerate(folds):
        if lasso is None:
            none = np.zeros((len(grid), X.shape[1]))
            weights, info = minimise(X[train], y[train], grid, linear=none, loss=loss)
            status[:, k] = info["status"]
        else:
            fits = [minimise_lasso(X[train], y[train], lam, lasso) for lam in grid]
            weights = np.concatenate([weights_of for weights_of, _ in fits])
            status[:, k] = [info["status"][0] for _, info in fits]
        measured = measure(weights, X[test], y[test])
        errors[:, k] = np.where(status[:, k] == "ok", measured, np.nan)
    return errors, status


def most_frequent_best(errors: np.ndarray) -> tuple[np.ndarray, int]:
    """Choose the candidate that wins the most simulations: E18's tuning rule.

    errors: (simulations, candidates) validation errors, preferred candidates first. A simulation's winner
    is the first candidate with the smallest error; NaN never wins. Mean error, then preference, breaks ties
    in the number of wins. Returns the wins (candidates,) and the position of the choice.
    """
    errors = np.where(np.isnan(errors), np.inf, np.round(errors, 12))
    if not np.isfinite(errors).any(axis=1).all():
        raise ValueError("in some simulation every candidate failed: nothing can be chosen")
    wins = np.bincount(errors.argmin(axis=1), minlength=errors.shape[1])
    mean = errors.mean(axis=0).round(12)
    return wins, min(range(len(wins)), key=lambda k: (-wins[k], mean[k], k))
