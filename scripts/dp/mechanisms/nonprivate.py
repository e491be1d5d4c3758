"""The baselines without noise."""

import numpy as np

from dp.mechanism import join, repeated
from dp.mechanisms import Mechanism, Release, register
from dp.options import LOSS, Choice
from dp.solvers.fits import FITS, INTERCEPTS, fit_options, sum_intercept_path
from dp.solvers.lasso_scales import SCALES
from dp_privacy.errors import Refused


@register("nonprivate")
class NonPrivate(Mechanism):
    """Without privacy: the regularised minimiser.

    penalty: "l2" (lam/2 ||w||^2) or, for the logistic loss, "l1" (lam ||w||_1) or "elastic_net"
    (both).
    penalty_scale: what lam means for "l1" (`dp.solvers.lasso_scales`).
    """

    private = False
    numbers = True
    fit = "l2"
    in_blocks = True
    options = LOSS | {
        "penalty": Choice("l2", "l1", "elastic_net"),
        "penalty_scale": Choice(*SCALES),
    }

    def _check_together(self, n, d, p):
        if p.penalty != "l2" and p.loss != "logistic":
            raise Refused(f"the {p.penalty} penalty is for the logistic loss only, not {p.loss!r}")
        if p.penalty_scale != "mean" and p.penalty != "l1":
            raise Refused(f"penalty_scale is for the penalty 'l1', not {p.penalty!r}")

    def _guarantee(self, n, d, p):
        return "the exact minimiser is released"

    def shared_fit(self, options: dict) -> str:
        return options.get("penalty", "l2")

    def _release(self, X, y, p, draws, rng):
        options = fit_options(p.penalty, {"loss": p.loss, "penalty_scale": p.penalty_scale})
        weights, info = p.fit or FITS[p.penalty](X, y, p.lam, **options)
        fitted = Release(weights, info["status"], {"gradient_norm": info["gradient_norm"]})
        return repeated(fitted, draws)


def weight_statistics(weights: np.ndarray) -> dict:
    """Mean and variance of one fit's weights (1, d), as E18 tabulates them."""
    return {"weights_mean": weights.mean(axis=1), "weights_variance": weights.var(axis=1)}


@register("nonprivate_sum")
class NonPrivateSum(Mechanism):
    """Without privacy: the minimiser of `dp.solvers.fits.sum_intercept`, with info["intercept"]."""

    private = False
    numbers = True
    fit = "sum_intercept"
    reports = ("weights_mean", "weights_variance")
    options = LOSS | {"intercept": Choice(*INTERCEPTS)}

    def _guarantee(self, n, d, p):
        return "the exact minimiser is released"

    def _release_many(self, tasks, draws):
        """Candidates that differ only in lambda share one regularisation path."""
        for X, y, candidates, _ in tasks:
            fits = {}
            for p, chosen in self._alike(candidates):
                lams = [candidates[k].lam for k in chosen]
                path = sum_intercept_path(X, y, lams, loss=p.loss, intercept=p.intercept)
                fits |= {k: candidates[k].fit or next(path) for k in chosen}
            release = join([_fitted(*fits[k]) for k in range(len(candidates))])
            yield repeated(release, draws)


def _fitted(weights, info):
    weights, intercept = weights[:, :-1], weights[:, -1]
    named = {"gradient_norm": info["gradient_norm"], "intercept": intercept}
    return Release(weights, info["status"], named | weight_statistics(weights))
