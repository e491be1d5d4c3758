"""Stochastic gradient descent with norm-Laplace noise (Song et al. 2013; Einarsson 2018)."""

import copy
import math
from typing import NamedTuple

import numpy as np

from dp import losses
from dp.accounting import REPLACE_ONE, Guarantee, none
from dp.data import check_rows
from dp.descent import SCHEDULES, batch_plan, descend
from dp.mechanisms import Mechanism, Release, register
from dp.noise import l2_laplace

CHUNK_BYTES = 1 << 29  # rows and noise held at a time
EXAMPLES_BYTES = 1 << 22  # of a step's batches of all runs that descend together: in the L3 cache
ACCOUNTING = ("composed", "as_published")


class _Run(NamedTuple):
    """One descent: the data set it runs on, and the generators of its three kinds of draws."""

    train: int
    projection: np.random.Generator
    order: np.random.Generator
    noise: np.random.Generator


class _SGD(Mechanism):
    """w <- w - eta_t (lambda w + (1/b) sum of clipped gradients + z_t/b) over disjoint batches.

    `release_many` descends on all data sets, restarts and candidates together. The weights are those
    of the original features: with `dimensions` = k the descent runs on rows multiplied by a Gaussian
    matrix (d, k) of variance 1/k, drawn independently of the data, and what is released is that matrix
    times the k weights. info["intercept"]: the weight of the column of ones that `bias` adds.
    info["scale"]: (restarts,), of the noise on each batch's sum of gradients, 0 without noise.
    """

    def _scale(self, epsilon, clip, epochs, accounting):
        """Scale of the norm-Laplace noise on each batch's sum of gradients; 0 without noise."""
        raise NotImplementedError

    def _check_run(
        self, epsilon, lam, n, d, bound, *, batch, epochs, schedule, rate, clip, batch_final,
        dimensions, loss,
    ):  # fmt: skip
        self._check(epsilon, lam, n, d, bound)
        losses.get(loss)
        if schedule not in SCHEDULES:
            raise ValueError(f"schedule is one of {', '.join(SCHEDULES)}, not {schedule!r}")
        whole = {"batch": batch, "epochs": epochs, "batch_final": batch_final}
        for name, value in {**whole, "dimensions": dimensions}.items():
            if name in ("batch_final", "dimensions") and value is None:
                continue
            if isinstance(value, bool) or value != int(value) or value < 1:
                raise ValueError(f"{self.name}: {name} must be a whole number >= 1, not {value}")
        for name, value in {"rate": rate, "clip": clip}.items():
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{self.name}: {name} must be a finite number > 0, not {value}")

    def release(self, X, y, *, rng, **arguments):
        """`Release` of `restarts` descents, each with its own projection, order of rows and noise."""
        return next(iter(self.release_many([(X, y)], rngs=[rng], **arguments)))

    def release_many(
        self,
        trains,
        *,
        rngs,
        candidates=({},),
        epsilon=math.inf,
        delta=0.0,
        lam=None,
        restarts=1,
        bound=1.0,
        **options,
    ):
        """One `Release` per data set: see `Mechanism.release_many`."""
        self.check_options(options)
        waiting = []
        for train, rng in zip(trains, rngs, strict=False):
            check_rows(*train, bound)
            waiting.append((train, rng))
            n, d = np.shape(waiting[0][0][0])
            if len(waiting) * n * (d + 1) * 8 >= CHUNK_BYTES:
                yield from self._chunk(waiting, candidates, epsilon, lam, restarts, bound, options)
                waiting = []
        if waiting:
            yield from self._chunk(waiting, candidates, epsilon, lam, restarts, bound, options)

    def _chunk(self, waiting, candidates, epsilon, lam, restarts, bound, options):
        """Releases of data sets that are held together; those of one size descend together."""
        found = [None] * len(waiting)
        for n in sorted({len(train[1]) for train, _ in waiting}):
            same = [k for k, (train, _) in enumerate(waiting) if len(train[1]) == n]
            runs = [
                _Run(j, *generator.spawn(3))
                for j, k in enumerate(same)
                for generator in waiting[k][1].spawn(restarts)
            ]
            weights = np.empty((len(candidates), len(runs), np.shape(waiting[same[0]][0][0])[1]))
            intercepts = np.zeros((len(candidates), len(runs)))
            scales = np.empty((len(candidates), len(runs)))
            trains, cache = [waiting[k][0] for k in same], {}
            for settings, chosen, lams in _by_settings(candidates, options, lam):
                draws = copy.deepcopy(runs)  # candidates share their draws
                weights[chosen], intercepts[chosen], scales[chosen] = self._descend(
                    trains, draws, epsilon, lams, bound, cache, **settings
                )
            for j, k in enumerate(same):
                part = slice(j * restarts, (j + 1) * restarts)
                w = weights[:, part].reshape(-1, weights.shape[2])
                b = intercepts[:, part].ravel()
                finite = np.isfinite(w).all(axis=1) & np.isfinite(b)
                found[k] = Release(
                    np.where(finite[:, None], w, 0.0),
                    np.where(finite, "ok", "not_finite"),
                    {"intercept": np.where(finite, b, 0.0), "scale": scales[:, part].ravel()},
                )
        return found

    def _descend(self, trains, runs, epsilon, lams, bound, cache, **settings):
        """Weights (values of lambda, runs, d), intercepts (values, runs) and the noise's scale.

        cache: the last rows that were made, for other settings of the same runs.
        """
        settings = self.options() | settings
        accounting = settings.pop("accounting", "composed")
        n, d = np.shape(trains[0][0])
        for lam in lams:
            self._check_run(epsilon, lam, n, d, bound, **_without(settings, "bias"))
        scale = self._scale(epsilon, settings["clip"], settings["epochs"], accounting)
        plan = batch_plan(n, settings["batch"], settings["batch_final"])
        width = (settings["dimensions"] or d) + settings["bias"]
        projected = settings["dimensions"] is not None
        held = 8 * width * (len(plan[0]) + n * projected)  # noise of a pass, and rows of its own
        step = min(CHUNK_BYTES // held, EXAMPLES_BYTES // (8 * width * int(plan[2].max())))
        parts = []
        for j in range(0, len(runs), max(1, step)):
            part = runs[j : j + max(1, step)]
            key = (settings["dimensions"], settings["bias"], j if projected else None)
            if key not in cache:
                cache.clear()
                of = part if projected else runs
                cache[key] = _rows(trains, of, settings["dimensions"], settings["bias"])
            rows, block, projections = cache[key]
            block = block if projected else block[j : j + len(part)]
            parts.append(self._part(part, rows, block, projections, scale, lams, plan, settings))
        weights, intercepts = zip(*parts, strict=True)
        return np.concatenate(weights, axis=1), np.concatenate(intercepts, axis=1), scale

    def _part(self, runs, rows, block, projections, scale, lams, plan, settings):
        n, width = rows.shape[1:]
        steps = len(plan[0])

        def passes():
            for _ in range(settings["epochs"]):
                order = np.array([run.order.permutation(n) for run in runs])
                noise = None
                if scale:
                    noise = np.array([l2_laplace(width, scale, steps, run.noise) for run in runs])
                yield order, noise

        w, _ = descend(
            rows,
            block,
            lams,
            passes(),
            plan,
            loss=settings["loss"],
            clip=settings["clip"],
            schedule=settings["schedule"],
            rate=settings["rate"],
        )
        w = w.transpose(1, 0, 2)
        intercepts = w[:, :, -1] if settings["bias"] else np.zeros(w.shape[:2])
        w = w[:, :, : width - settings["bias"]]
        if projections is not None:
            w = np.stack([w[:, j] @ m.T for j, m in enumerate(projections)], axis=1)
        return w, intercepts


def _rows(trains, runs, dimensions, bias):
    """Rows times labels (blocks, n, width), each run's block, and the projections (None without)."""
    n, d = np.shape(trains[0][0])
    if dimensions is None:
        used = sorted({run.train for run in runs})
        block = np.array([used.index(run.train) for run in runs])
        sources, projections = [(train, None) for train in used], None
    else:
        shape = (d, dimensions)
        projections = [run.projection.standard_normal(shape) / math.sqrt(shape[1]) for run in runs]
        sources = [(run.train, matrix) for run, matrix in zip(runs, projections, strict=True)]
        block = np.arange(len(runs))
    width = dimensions or d
    rows = np.empty((len(sources), n, width + bool(bias)))
    for found, (train, matrix) in zip(rows, sources, strict=True):
        X, y = trains[train]
        sign = np.asarray(y, dtype=float)[:, None]
        np.multiply(X if matrix is None else X @ matrix, sign, out=found[:, :width])
        found[:, width:] = sign
    return rows, block, projections


def _by_settings(candidates, options, lam):
    """Candidates that differ in lambda alone: (options, positions, lambdas) of each such group."""
    groups = {}
    for position, candidate in enumerate(candidates):
        settings = options | {key: value for key, value in candidate.items() if key != "lam"}
        key = tuple(sorted(settings.items(), key=lambda item: item[0]))
        _, positions, lams = groups.setdefault(key, (settings, [], []))
        positions.append(position)
        lams.append(candidate.get("lam", lam))
    return groups.values()


def _without(mapping, key):
    return {name: value for name, value in mapping.items() if name != key}


@register("dp_sgd")
class DPSGD(_SGD):
    """With one norm-Laplace draw of scale 2 clip/epsilon' on every batch's sum of clipped gradients.

    Replacing one record changes one batch of each pass, and there the sum by at most 2 clip in L2:
    Gamma(D, 2 clip/epsilon') noise, D the number of weights with the bias, makes the pass
    epsilon'-DP, because batches are disjoint and fixed independently of the data (Song, Chaudhuri,
    Sarwate, GlobalSIP 2013; McSherry, SIGMOD 2009). Passes compose: k of them cost k epsilon'.
    Whatever the rows, clipping bounds the gradients, after projection and with the bias column.
    """

    def guarantee(
        self,
        n,
        d,
        *,
        epsilon,
        delta=0.0,
        lam=None,
        bound=1.0,
        batch=50,
        epochs=1,
        schedule="inverse_sqrt",
        rate=1.0,
        loss="logistic",
        clip=1.0,
        dimensions=None,
        bias=True,
        batch_final=None,
        accounting="composed",
    ):
        """epsilon-DP where `accounting` is "composed": each of k passes gets epsilon/k.

        "as_published": every pass gets epsilon, and k passes cost k epsilon.
        """
        self._check_run(
            epsilon, lam, n, d, bound, batch=batch, epochs=epochs, schedule=schedule, rate=rate,
            clip=clip, batch_final=batch_final, dimensions=dimensions, loss=loss,
        )  # fmt: skip
        scale = self._scale(epsilon, clip, epochs, accounting)
        proven = epsilon if accounting == "composed" else epochs * epsilon
        width = (dimensions or d) + bool(bias)
        reason = (
            f"one pass over disjoint batches, noise of norm Gamma({width}, {scale:.6g}) on each sum of "
            f"gradients clipped to {clip:g}, costs {proven / epochs:.6g}; {epochs} "
            f"pass{'es' * (epochs > 1)} compose to {proven:.6g}"
        )
        return Guarantee(epsilon, proven, 0.0, REPLACE_ONE, reason)

    def _scale(self, epsilon, clip, epochs, accounting):
        if accounting not in ACCOUNTING:
            raise ValueError(f"accounting is one of {', '.join(ACCOUNTING)}, not {accounting!r}")
        return 2 * clip * (epochs if accounting == "composed" else 1) / epsilon


@register("sgd")
class SGD(_SGD):
    """The same descent without noise, clipping included: the baseline of `dp_sgd`."""

    private = False

    def guarantee(
        self,
        n,
        d,
        *,
        epsilon=math.inf,
        delta=0.0,
        lam=None,
        bound=1.0,
        batch=50,
        epochs=1,
        schedule="inverse_sqrt",
        rate=1.0,
        loss="logistic",
        clip=1.0,
        dimensions=None,
        bias=True,
        batch_final=None,
    ):
        """None: the descent is a function of the data and of draws that hide nothing."""
        self._check_run(
            epsilon, lam, n, d, bound, batch=batch, epochs=epochs, schedule=schedule, rate=rate,
            clip=clip, batch_final=batch_final, dimensions=dimensions, loss=loss,
        )  # fmt: skip
        return none(math.inf, "no noise is added")

    def _scale(self, epsilon, clip, epochs, accounting):
        return 0.0
