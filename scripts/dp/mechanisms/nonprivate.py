"""The baseline without noise."""

import numpy as np

from dp.accounting import none
from dp.data import check_rows
from dp.fits import l2, sum_intercept
from dp.mechanisms import Mechanism, Release, register


@register("nonprivate")
class NonPrivate(Mechanism):
    """The L2-regularised minimiser itself."""

    fit = "l2"
    private = False

    def guarantee(self, n, d, *, epsilon=np.inf, delta=0.0, lam=None, bound=1.0, loss="logistic"):
        """None: the exact minimiser is a function of the data."""
        self._check(epsilon, lam, n, d, bound)
        return none(np.inf, "the exact minimiser is released")

    def release(
        self,
        X,
        y,
        *,
        epsilon=np.inf,
        delta=0.0,
        lam=None,
        restarts=1,
        rng=None,
        bound=1.0,
        fit=None,
        loss="logistic",
    ):
        """The minimiser, `restarts` times the same row. fit: (weights, info) of `dp.fits.l2`."""
        self._check(epsilon, lam, *np.shape(X), bound)
        check_rows(X, y, bound)
        weights, info = fit if fit is not None else l2(X, y, lam, loss=loss)
        return Release(
            np.repeat(weights, restarts, axis=0),
            np.repeat(info["status"], restarts),
            {"gradient_norm": np.repeat(info["gradient_norm"], restarts)},
        )


def weight_statistics(weights, restarts):
    """Mean and variance over the weights (1, d) of one fit, as E18 tabulates them, per restart."""
    return {
        "weights_mean": np.repeat(weights.mean(axis=1), restarts),
        "weights_variance": np.repeat(weights.var(axis=1), restarts),
    }


@register("nonprivate_sum")
class NonPrivateSum(Mechanism):
    """The minimiser of `dp.fits.sum_intercept`, its free intercept in info["intercept"] (restarts,)."""

    fit = "sum_intercept"
    private = False
    reports = ("weights_mean", "weights_variance")

    def guarantee(self, n, d, *, epsilon=np.inf, delta=0.0, lam=None, bound=1.0, loss="logistic"):
        """None: the exact minimiser is a function of the data."""
        self._check(epsilon, lam, n, d, bound)
        return none(np.inf, "the exact minimiser is released")

    def release(
        self,
        X,
        y,
        *,
        epsilon=np.inf,
        delta=0.0,
        lam=None,
        restarts=1,
        rng=None,
        bound=1.0,
        fit=None,
        loss="logistic",
    ):
        """The minimiser, `restarts` times the same row. fit: (weights, info) of the shared fit."""
        n, d = np.shape(X)
        self._check(epsilon, lam, n, d, bound)
        check_rows(X, y, bound)
        weights, info = fit if fit is not None else sum_intercept(X, y, lam, loss=loss)
        return Release(
            np.repeat(weights[:, :d], restarts, axis=0),
            np.repeat(info["status"], restarts),
            {
                "gradient_norm": np.repeat(info["gradient_norm"], restarts),
                "intercept": np.repeat(weights[:, d], restarts),
                **weight_statistics(weights[:, :d], restarts),
            },
        )
