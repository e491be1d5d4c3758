"""The lasso over data centres that share exact gradients (Einarsson 2018), or noisy ones."""

import math

import numpy as np

from dp.descents import distributed_lasso
from dp.mechanism import repeated
from dp.mechanisms import Mechanism, Release, register
from dp.options import Choice, Flag, NonNegative, Optional, Ordinary, Positive, Whole
from dp_privacy.accounting import gaussian_sigma


class _OverCentres(Mechanism):
    numbers = True

    def _check_together(self, n, d, p):
        distributed_lasso.split_rows(n, p.centres)


@register("distributed_lasso")
class DistributedLasso(_OverCentres):
    """Without privacy: the lasso over data centres that send only their gradients.

    part: the rows used: "all", or those of "one" centre.
    preparation, components: as for `dp.descents.distributed_lasso.Preparation`, fitted on
    `all_rows` if given, so that subsets of any size have the same columns and components, as in the
    source.
    rate: the step size, by default the reciprocal of the gradient's Lipschitz constant.
    shrinkage: "soft", or "as_printed" in the source.
    gradients: how to combine the centres' gradients (`dp.descents.distributed_lasso.GRADIENTS`).
    bias: whether a column of ones gets a weight, shrunk like the others, as in the source's
    program.
    max_iterations, cost_difference, loss_threshold: the source's stopping rules.

    info, each (restarts,): intercept; discarded, the number of weights below 1e-100 in magnitude;
    smallest_weight, the minimum magnitude; iterations; stopped, the rule that ended them.
    """

    private = False
    reports = ("discarded", "smallest_weight", "iterations", "stopped")
    uses_all_rows = True

    options = {
        "centres": Whole(2),
        "part": Choice("all", "one"),
        "preparation": Choice(*distributed_lasso.Preparation.KINDS, default="standardise"),
        "components": Whole(100),
        "rate": Optional(Positive()),
        "shrinkage": Choice(*distributed_lasso.SHRINKAGES),
        "gradients": Choice(*distributed_lasso.GRADIENTS),
        "bias": Flag(False),
        "max_iterations": Whole(3000),
        "cost_difference": NonNegative(1e-20),
        "loss_threshold": NonNegative(1e-4),
    }

    def _guarantee(self, n, d, p):
        return "exact gradients of the private rows leave each centre"

    def _release_many(self, tasks, draws):
        """Candidates that differ only in lam and rate iterate together. All `draws` are equal."""
        all_rows, fitted = None, {}  # fitted: options -> `Preparation` of all rows
        for X, y, settings, _ in tasks:
            if settings[0].all_rows is not all_rows:
                all_rows, fitted = settings[0].all_rows, {}
            release = self._minimisers(X, np.asarray(y, dtype=float), settings, fitted)
            yield repeated(release, draws)

    def _preparation(self, rows, p, fitted):
        options = p.preparation, p.components
        if p.all_rows is None:
            return distributed_lasso.Preparation(rows, *options)
        if options not in fitted:
            fitted[options] = distributed_lasso.Preparation(p.all_rows, *options)
        return fitted[options]

    def _minimisers(self, X, y, settings, fitted):
        weights = np.empty((len(settings), X.shape[1]))
        info = {
            "intercept": np.empty(len(settings)),
            **{key: np.empty(len(settings), dtype=object) for key in self.reports},
        }
        for p, chosen in self._alike(settings, "rate"):
            parts = distributed_lasso.split_rows(len(X), p.centres)
            rows = parts[0] if p.part == "one" else slice(None)
            if p.part == "one":
                parts = parts[:1]
            prepared = self._preparation(X[rows], p, fitted)
            Z = prepared.apply(X[rows])
            if p.bias:
                Z = np.column_stack([Z, np.ones(len(Z))])
            used = np.any(Z, axis=0)  # columns of zeros keep weight 0 under either shrinkage
            Z = Z[:, used]
            rates = [settings[k].rate for k in chosen]
            if None in rates:
                automatic = 1 / (distributed_lasso.largest_curvature(Z) or 1.0)
                rates = [automatic if rate is None else rate for rate in rates]
            lams = [settings[k].lam for k in chosen]
            w, iterations, stopped = self._iterate(Z, y[rows], parts, p, lams, rates)
            full = np.zeros((len(chosen), len(used)))
            full[:, used] = w
            full, of_ones = (full[:, :-1], full[:, -1]) if p.bias else (full, 0.0)
            weights[chosen], intercept = prepared.unapply(full)
            info["intercept"][chosen] = intercept + of_ones
            info["smallest_weight"][chosen] = np.abs(full).min(axis=1)
            info["discarded"][chosen] = (np.abs(full) < 1e-100).sum(axis=1)
            info["iterations"][chosen], info["stopped"][chosen] = iterations, stopped
        bad = info["stopped"] == "diverged"
        weights[bad], info["intercept"][bad] = 0.0, 0.0
        return Release(weights, np.where(bad, "diverged", "ok"), info)

    def _iterate(self, X, y, parts, p, lams, rates):
        # If only the sum of the gradients matters, all rows form one centre.
        alike = len({part.stop - part.start for part in parts}) == 1
        joined = alike or p.gradients != "added_means"
        shares = [(slice(None), len(parts))] if joined else [(part, 1) for part in parts]
        return distributed_lasso.proximal_gradient(
            [distributed_lasso.Centre(X[k], y[k], count) for k, count in shares],
            X.shape[1],
            lams,
            rates,
            shrinkage=p.shrinkage,
            gradients=p.gradients,
            max_iterations=p.max_iterations,
            cost_difference=p.cost_difference,
            loss_threshold=p.loss_threshold,
        )


@register("dp_distributed_lasso")
class DPDistributedLasso(_OverCentres):
    """The lasso over data centres that clip and sum their gradients, and add Gaussian noise.

    In each of `rounds` rounds, every centre sends sum_i clip((w.x_i - y_i) x_i), over its rows,
    plus N(0, sigma^2 I). The coordinator takes a soft-thresholded step along the total divided by
    n. Rows are not standardised, because that would use private rows without noise.

    rate: the step size, by default 1/bound^2, since bound^2 bounds the mean loss's curvature.
    """

    delta = "needed"
    reports = ("discarded",)
    options = {
        "centres": Whole(2),
        "rounds": Whole(50),
        "clip": Ordinary(1.0),
        "rate": Optional(Positive()),
    }

    def _guarantee(self, n, d, p):
        """(epsilon, delta)-DP by exact composition.

        Replacing one record changes one centre's sum by at most 2 clip in L2, for any target.
        `rounds` adaptive Gaussian releases, which are all that the centres send, are equivalent to
        one release of sensitivity sqrt(rounds) 2 clip (Dong, Roth, Su, JRSS B 84, 2022, corollary
        3.3). sigma is calibrated analytically to this one release.
        """
        return (
            f"every centre adds noise of standard deviation {self._sigma(p):.6g} to its sum of gradients "
            f"clipped to {p.clip:g} in each of {p.rounds} rounds, one Gaussian mechanism of sensitivity "
            f"sqrt({p.rounds}) 2 {p.clip:g} in all"
        )

    def _sigma(self, p):
        return gaussian_sigma(p.epsilon, p.delta, 2 * p.clip * math.sqrt(p.rounds))

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        sigma = self._sigma(p)
        rate = 1 / p.bound**2 if p.rate is None else p.rate
        parts = distributed_lasso.split_rows(n, p.centres)
        w = np.zeros((draws, d))
        for _ in range(p.rounds):
            total = np.zeros_like(w)
            for part in parts:
                total += distributed_lasso.clipped_sum(X[part], y[part], w, p.clip)
                total += sigma * rng.standard_normal((draws, d))
            w = distributed_lasso.soft_threshold(w - rate * total / n, p.lam, rate)
        return w, {"discarded": (w == 0).sum(axis=1), "sigma": sigma}
