"""The lasso over data centres: exact gradients shared (Einarsson 2018), and noisy ones."""

import math
from itertools import repeat

import numpy as np

from dp import lasso
from dp.accounting import REPLACE_ONE, Guarantee, gaussian_sigma, none
from dp.data import check_rows
from dp.mechanisms import Mechanism, Release, register


def _whole(name, options):
    for key, value in options.items():
        if isinstance(value, bool) or value != int(value) or value < 1:
            raise ValueError(f"{name}: {key} must be a whole number >= 1, not {value}")


def _choice(name, key, value, valid):
    if value not in valid:
        raise ValueError(f"{name}: {key} is one of {', '.join(valid)}, not {value!r}")


class _Preparations:
    """Preparations fitted on the rows of `to`, each once, or where these are None on the rows given."""

    def __init__(self):
        self.rows, self.found = None, {}

    def to(self, rows):
        if rows is not self.rows:
            self.rows, self.found = rows, {}

    def of(self, rows, *options):
        if self.rows is None:
            return lasso.Preparation(rows, *options)
        if options not in self.found:
            self.found[options] = lasso.Preparation(self.rows, *options)
        return self.found[options]


@register("distributed_lasso")
class DistributedLasso(Mechanism):
    """The squared loss on labels with an L1 penalty, over `centres` that return only their gradients.

    centres 1 is all data in one place. part: "all", or "one" for a single centre's share alone.
    preparation: see `dp.lasso.Preparation`, and `components` of it; fitted on `all_rows` where they are
    given, as in the source, whose subsets of any size have the same columns and components. rate: the
    step size, None for the reciprocal of the gradient's Lipschitz constant. shrinkage: "soft", or
    "as_printed" in the source. max_iterations, cost_difference, loss_threshold: the source's three
    stopping rules.

    info: intercept; discarded, the number of features the lasso ran on whose weight is below 1e-100;
    iterations; stopped, which rule; each (restarts,).
    """

    private = False
    reports = ("discarded", "iterations", "stopped")
    uses_all_rows = True

    def guarantee(
        self,
        n,
        d,
        *,
        epsilon=math.inf,
        delta=0.0,
        lam=None,
        bound=1.0,
        centres=2,
        part="all",
        preparation="standardise",
        components=100,
        rate=None,
        shrinkage="soft",
        max_iterations=3000,
        cost_difference=1e-20,
        loss_threshold=1e-4,
    ):
        """None: exact gradients of the private rows leave each centre."""
        self._check(epsilon, lam, n, d, bound)
        whole = {"centres": centres, "components": components, "max_iterations": max_iterations}
        _whole(self.name, whole)
        lasso.split_rows(n, centres)
        _choice(self.name, "part", part, ("all", "one"))
        _choice(self.name, "preparation", preparation, lasso.Preparation.KINDS)
        _choice(self.name, "shrinkage", shrinkage, tuple(lasso.SHRINKAGES))
        if rate is not None and not (rate > 0 and math.isfinite(rate)):
            raise ValueError(f"{self.name}: rate must be a finite number > 0, not {rate}")
        return none(math.inf, "exact gradients of the private rows leave each centre")

    def release(self, X, y, *, rng=None, fit=None, all_rows=None, **arguments):
        """`Release` of the one minimiser, `restarts` times the same."""
        all_rows = None if all_rows is None else [all_rows]
        return next(iter(self.release_many([(X, y)], rngs=[rng], all_rows=all_rows, **arguments)))

    def release_many(
        self,
        trains,
        *,
        rngs=None,
        candidates=({},),
        epsilon=math.inf,
        delta=0.0,
        lam=None,
        restarts=1,
        bound=1.0,
        all_rows=None,
        **options,
    ):
        """See `Mechanism.release_many`; candidates that differ in lam and rate iterate together."""
        self.check_options(options)
        fitted = _Preparations()
        for (X, y), everything in zip(trains, all_rows or repeat(None), strict=False):
            check_rows(X, y, bound)
            settings = [{"lam": lam, **self.options(), **options, **c} for c in candidates]
            for each in settings:
                self.guarantee(*np.shape(X), epsilon=epsilon, bound=bound, **each)
            fitted.to(everything)
            yield self._release(
                np.asarray(X, dtype=float), np.asarray(y, dtype=float), settings, restarts, fitted
            )

    def _release(self, X, y, settings, restarts, fitted):
        weights = np.empty((len(settings), X.shape[1]))
        found = {
            "intercept": np.empty(len(settings)),
            **{key: np.empty(len(settings), dtype=object) for key in self.reports},
        }
        problems = {}
        for k, each in enumerate(settings):
            key = tuple((name, v) for name, v in each.items() if name not in ("lam", "rate"))
            problems.setdefault(key, []).append(k)
        for key, chosen in problems.items():
            options = dict(key)
            parts = lasso.split_rows(len(X), options["centres"])
            rows = parts[0] if options["part"] == "one" else slice(None)
            if options["part"] == "one":
                parts = parts[:1]
            prepared = fitted.of(X[rows], options["preparation"], options["components"])
            Z = prepared.apply(X[rows])
            used = np.any(Z, axis=0)  # a column of zeros keeps weight zero, under either shrinkage
            Z = Z[:, used]
            rates = [settings[k]["rate"] for k in chosen]
            if None in rates:
                automatic = 1 / (lasso.largest_curvature(Z) or 1.0)
                rates = [automatic if rate is None else rate for rate in rates]
            w, iterations, stopped = lasso.proximal_gradient(
                [lasso.Centre(Z[part], y[part]) for part in parts],
                Z.shape[1],
                [settings[k]["lam"] for k in chosen],
                rates,
                **{
                    name: options[name]
                    for name in ("shrinkage", "max_iterations", "cost_difference", "loss_threshold")
                },
            )
            full = np.zeros((len(chosen), len(used)))
            full[:, used] = w
            weights[chosen], found["intercept"][chosen] = prepared.unapply(full)
            found["discarded"][chosen] = (np.abs(full) < 1e-100).sum(axis=1)
            found["iterations"][chosen], found["stopped"][chosen] = iterations, stopped
        bad = found["stopped"] == "diverged"
        weights[bad], found["intercept"][bad] = 0.0, 0.0
        return Release(
            np.repeat(weights, restarts, axis=0),
            np.repeat(np.where(bad, "diverged", "ok"), restarts),
            {key: np.repeat(values, restarts) for key, values in found.items()},
        )


@register("dp_distributed_lasso")
class DPDistributedLasso(Mechanism):
    """Proximal gradient on noisy gradients: each centre clips, sums and adds Gaussian noise itself.

    In each of `rounds`, every centre sends sum_i clip((w.x_i - y_i) x_i) + N(0, sigma^2 I) over its own
    rows, and the coordinator takes a soft-thresholded step of size `rate` (None: 1/bound^2, the
    reciprocal of the public bound on the mean loss' curvature) along their sum over n. No one but
    a centre sees its exact gradient. Rows are used as they are: standardising would look at them.
    """

    reports = ("discarded",)

    def guarantee(
        self,
        n,
        d,
        *,
        epsilon,
        delta=0.0,
        lam=None,
        bound=1.0,
        centres=2,
        rounds=50,
        clip=1.0,
        rate=None,
    ):
        """(epsilon, delta)-DP, exactly composed.

        Replacing one record changes one centre's sum by at most 2 clip in L2, the others' not at all.
        `rounds` adaptive Gaussian releases with that sensitivity are, all together, exactly one of
        sensitivity sqrt(rounds) 2 clip (Dong, Roth, Su, JRSS B 84, 2022, corollary 2): sigma is the
        analytic calibration of that one. It covers all that the centres ever send.
        """
        sigma = self._sigma(n, d, epsilon, delta, lam, bound, centres, rounds, clip, rate)
        reason = (
            f"every centre adds noise of standard deviation {sigma:.6g} to its sum of gradients clipped "
            f"to {clip:g} in each of {rounds} rounds, one Gaussian mechanism of sensitivity "
            f"sqrt({rounds}) 2 {clip:g} in all"
        )
        return Guarantee(epsilon, epsilon, delta, REPLACE_ONE, reason)

    def _sigma(self, n, d, epsilon, delta, lam, bound, centres, rounds, clip, rate):
        self._check(epsilon, lam, n, d, bound)
        _whole(self.name, {"centres": centres, "rounds": rounds})
        lasso.split_rows(n, centres)
        for key, value in {"clip": clip, "rate": 1.0 if rate is None else rate}.items():
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{self.name}: {key} must be a finite number > 0, not {value}")
        if not 0 < delta < 1:
            raise ValueError(f"{self.name} has Gaussian noise and needs 0 < delta < 1, not {delta}")
        return gaussian_sigma(epsilon, delta, 2 * clip * math.sqrt(rounds))

    def release(
        self,
        X,
        y,
        *,
        epsilon,
        delta=0.0,
        lam=None,
        restarts=1,
        rng,
        bound=1.0,
        centres=2,
        rounds=50,
        clip=1.0,
        rate=None,
    ):
        """`Release` of `restarts` independent runs."""
        n, d = np.shape(X)
        sigma = self._sigma(n, d, epsilon, delta, lam, bound, centres, rounds, clip, rate)
        check_rows(X, y, bound)
        rate = 1 / bound**2 if rate is None else rate
        parts = lasso.split_rows(n, centres)
        w = np.zeros((restarts, d))
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(rounds):
                total = np.zeros_like(w)
                for part in parts:
                    total += lasso.clipped_sum(X[part], y[part], w, clip)
                    total += sigma * rng.standard_normal((restarts, d))
                w = lasso.soft_threshold(w - rate * total / n, lam, rate)
        finite = np.isfinite(w).all(axis=1)
        w = np.where(finite[:, None], w, 0.0)
        return Release(
            w,
            np.where(finite, "ok", "not_finite"),
            {"discarded": (w == 0).sum(axis=1), "sigma": sigma},
        )
