"""The baselines without noise."""

import numpy as np

from dp.accounting import none
from dp.data import check_rows
from dp.fits import FITS, sum_intercept, sum_intercept_path
from dp.mechanisms import Mechanism, Release, join, register

PENALTIES = ("l2", "l1", "elastic_net")


@register("nonprivate")
class NonPrivate(Mechanism):
    """The regularised minimiser itself.

    penalty: "l2" (lam/2 ||w||^2), "l1" (lam ||w||_1) or "elastic_net" (both); the last two for the
    logistic loss only.
    """

    fit = "l2"
    in_blocks = True
    private = False

    def guarantee(
        self,
        n,
        d,
        *,
        epsilon=np.inf,
        delta=0.0,
        lam=None,
        bound=1.0,
        loss="logistic",
        penalty="l2",
    ):
        """None: the exact minimiser is a function of the data."""
        self._check(epsilon, lam, n, d, bound)
        self.shared_fit({"loss": loss, "penalty": penalty})
        return none(np.inf, "the exact minimiser is released")

    def shared_fit(self, options):
        """The fit of the same name as the penalty."""
        loss, penalty = options.get("loss", "logistic"), options.get("penalty", "l2")
        if penalty not in PENALTIES:
            raise ValueError(f"penalty is {', '.join(PENALTIES)}, not {penalty!r}")
        if penalty != "l2" and loss != "logistic":
            raise ValueError(f"the {penalty} penalty is for the logistic loss only, not {loss!r}")
        return penalty

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
        penalty="l2",
    ):
        """The minimiser, `restarts` times the same row. fit: (weights, info) of the penalty's fit."""
        self._check(epsilon, lam, *np.shape(X), bound)
        check_rows(X, y, bound)
        if fit is None:
            options = {"loss": loss} if penalty == "l2" else {}
            fit = FITS[self.shared_fit({"loss": loss, "penalty": penalty})](X, y, lam, **options)
        weights, info = fit
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
        self._check(epsilon, lam, *np.shape(X), bound)
        check_rows(X, y, bound)
        return self._release(fit or sum_intercept(X, y, lam, loss=loss), restarts)

    def release_many(
        self, trains, *, candidates=({},), fits=None, bound=1.0, restarts=1, **arguments
    ):
        """See `Mechanism.release_many`; candidates that differ in lambda alone share one path of fits."""
        if fits is not None or any(set(candidate) != {"lam"} for candidate in candidates):
            yield from super().release_many(
                trains,
                candidates=candidates,
                fits=fits,
                bound=bound,
                restarts=restarts,
                **arguments,
            )
            return
        lams = [candidate["lam"] for candidate in candidates]
        for X, y in trains:
            for lam in lams:
                self._check(np.inf, lam, *np.shape(X), bound)
            check_rows(X, y, bound)
            loss = arguments.get("loss", "logistic")
            fitted = sum_intercept_path(X, y, lams, loss=loss)
            yield join([self._release(fit, restarts) for fit in fitted])

    def _release(self, fit, restarts):
        weights, info = fit
        d = weights.shape[1] - 1
        return Release(
            np.repeat(weights[:, :d], restarts, axis=0),
            np.repeat(info["status"], restarts),
            {
                "gradient_norm": np.repeat(info["gradient_norm"], restarts),
                "intercept": np.repeat(weights[:, d], restarts),
                **weight_statistics(weights[:, :d], restarts),
            },
        )
