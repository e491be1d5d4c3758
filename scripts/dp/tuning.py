"""Chooses the regularisation: by cross-validation, without privacy, or privately."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dp import losses
from dp.accounting import REPLACE_ONE, Guarantee, largest_bound
from dp.errors import Refused
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

    grid: (m,) positive lambdas. folds: a list of (train, test) index arrays. Every fold solves all
    lambdas at once. Returns errors (m, folds), NaN if a fit failed, and the status of the fits.
    measure: error_rate or mean_squared_error of `dp.evaluation`. lasso: one of
    `dp.solvers.lasso_scales.SCALES`, for an L1 penalty in place of the L2 penalty; only logistic loss.

    A choice made from these errors depends on all rows. If the rows are private, it spends privacy that
    is not accounted for.
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
            weights = np.concatenate([found for found, _ in fits])
            status[:, k] = [info["status"][0] for _, info in fits]
        measured = measure(weights, X[test], y[test])
        errors[:, k] = np.where(status[:, k] == "ok", measured, np.nan)
    return errors, status


def most_frequent_best(errors: np.ndarray) -> tuple[np.ndarray, int]:
    """The candidate that wins most simulations: this is how E18 tunes.

    errors: (simulations, candidates) validation errors, preferred candidates first. The candidate with the
    least error of a simulation wins it, and the first one if several have that error. NaN (a failed
    candidate) never wins. If several candidates have the most wins, the lower mean error decides, then the
    preference. Returns the wins (candidates,) and the position of the choice.
    """
    errors = np.where(np.isnan(errors), np.inf, np.round(errors, 12))
    if not np.isfinite(errors).any(axis=1).all():
        raise ValueError("in some simulation every candidate failed: nothing can be chosen")
    wins = np.bincount(errors.argmin(axis=1), minlength=errors.shape[1])
    mean = errors.mean(axis=0).round(12)
    return wins, min(range(len(wins)), key=lambda k: (-wins[k], mean[k], k))


class PrivateChoice(NamedTuple):
    """index: the chosen lambda's in the grid, which alone may be released. guarantee: what that costs."""

    index: int
    guarantee: Guarantee


def private_tuning(
    X: np.ndarray,
    y: np.ndarray,
    grid: np.ndarray,
    mechanism: object,
    *,
    epsilon: float,
    rng: np.random.Generator,
    delta: float = 0.0,
    bound: float = 1.0,
    **options,
) -> PrivateChoice:
    """A lambda chosen with privacy (Chaudhuri, Monteleoni, Sarwate, JMLR 12, 2011, algorithm 3).

    The rows are shuffled and cut into one part per lambda and one more. On part i, the mechanism trains
    with grid[i] at `epsilon`; z_i counts its mistakes on the last part. i is drawn with probability
    proportional to exp(-epsilon z_i / 2).

    Why this costs epsilon: a replaced record is in one part only, because sizes and shuffle do not depend
    on the data. If it is in a training part, the mechanism covers it, whatever is done with its release.
    If it is in the last part, it changes every z_i by at most 1, for which the exponential mechanism with
    epsilon/2 is epsilon-DP (McSherry, Talwar, FOCS 2007). If the mechanism's proven epsilon is larger
    than its claim, the whole costs the larger one.

    grid: (m,) positive lambdas. options: of the mechanism. Returns a `PrivateChoice`.
    """
    if not np.isin(y, (-1, 1)).all():
        raise Refused("private tuning counts mistakes, and targets that are numbers have none")
    parts = np.array_split(rng.permutation(len(X)), len(grid) + 1)
    if not len(parts[-1]):
        raise ValueError(
            f"private tuning cuts the rows into {len(grid) + 1} parts, one per lambda and one more, "
            f"and there are {len(X)} rows; give fewer lambdas"
        )
    *parts, last = parts
    costs, mistakes = [], np.empty(len(grid))
    for k, (lam, rows) in enumerate(zip(grid, parts, strict=True)):
        arguments = {"epsilon": epsilon, "delta": delta, "lam": lam, "bound": bound, **options}
        costs.append(mechanism.guarantee(len(rows), X.shape[1], **arguments))
        if costs[-1].adjacency != REPLACE_ONE:
            raise Refused(
                f"private tuning is proven for {REPLACE_ONE}, and {mechanism.name} is private for "
                f"{costs[-1].adjacency}: choose another mechanism or adjacency"
            )
        weights = mechanism.release(X[rows], y[rows], rng=rng, **arguments).weights
        mistakes[k] = error_rate(weights, X[last], y[last])[0] * len(last)
    index = exponential_mechanism(-mistakes, epsilon, 1.0, rng)
    reason = (
        f"lambda is one of {len(grid)}, each tried on its own part of the rows by {mechanism.name}, "
        f"chosen by the exponential mechanism on the mistakes on a further part"
    )
    return PrivateChoice(
        index,
        Guarantee(
            max(epsilon, *(cost.claimed_epsilon for cost in costs)),
            largest_bound([epsilon, *(cost.epsilon for cost in costs)]),
            largest_bound(cost.delta for cost in costs),
            REPLACE_ONE,
            reason,
        ),
    )


def exponential_mechanism(
    utilities: np.ndarray, epsilon: float, sensitivity: float, rng: np.random.Generator
) -> int:
    """Index i with probability proportional to exp(epsilon u_i / (2 sensitivity)).

    It is epsilon-DP if one record changes every utility by at most `sensitivity`. The draw adds Gumbel
    noise to the exponents, so that none overflows.
    """
    exponents = epsilon * np.asarray(utilities, dtype=float) / (2 * sensitivity)
    return int((exponents + rng.gumbel(size=len(exponents))).argmax())
