"""Stochastic gradient descent with norm-Laplace noise (Song et al. 2013; Einarsson 2018)."""

import copy
import math
from typing import NamedTuple

import numpy as np

from dp import losses
from dp.descents import stochastic
from dp.mechanisms import Mechanism, Release, register
from dp.noise import l2_laplace
from dp.options import LOSS, Choice, Flag, Optional, Ordinary, Positive, Whole

CHUNK_BYTES = 1 << 28  # maximum size of rows and noise held at once
EXAMPLES_BYTES = 1 << 22  # maximum size of all runs' batches in one step, to fit the L3 cache
OPTIONS = {
    "batch": Whole(50),
    "epochs": Whole(1),
    "schedule": Choice(*stochastic.SCHEDULES),
    "rate": Positive(1.0),
    **LOSS,
    "clip": Ordinary(1.0),
    "dimensions": Optional(Whole()),
    "bias": Flag(True),
    "batch_final": Optional(Whole()),
}


class _Run(NamedTuple):
    """The index of a descent's data set, and generators for its three kinds of draws."""

    train: int
    projection: np.random.Generator
    order: np.random.Generator
    noise: np.random.Generator


class _SGD(Mechanism):
    """w <- w - eta_t (lambda w + (1/b) sum of clipped gradients + z_t/b) over disjoint batches.

    `release_many` runs all data sets, restarts and candidates together. With `dimensions` = k, rows
    are multiplied by a Gaussian matrix (d, k), drawn independently of the data, whose entries have
    variance 1/k. The released weights are this matrix times the k weights.

    info["intercept"]: the weight of the column of ones (`bias`).
    info["scale"]: (restarts,), the noise scale of each batch's sum of gradients, or 0.
    """

    numbers = True

    needs_rng = True
    law = staticmethod(l2_laplace)
    as_run = False  # whether updates follow E18's program rather than its formulas

    def _scale(self, p):
        return 0.0

    def _release_many(self, tasks, draws):
        waiting, held = [], 0
        for task in tasks:
            waiting.append(task)
            held += 8 * len(task[0]) * (task[0].shape[1] + 1)
            if held >= CHUNK_BYTES:
                yield from self._chunk(waiting, draws)
                waiting, held = [], 0
        if waiting:
            yield from self._chunk(waiting, draws)

    def _chunk(self, waiting, draws):
        """Releases of the waiting tasks. Descents on data sets of equal size advance together."""
        releases = [None] * len(waiting)
        candidates = waiting[0][2]
        scales = np.repeat([self._scale(p) for p in candidates], draws)
        for n in sorted({len(y) for _, y, _, _ in waiting}):
            same = [k for k, (_, y, _, _) in enumerate(waiting) if len(y) == n]
            runs = [
                _Run(j, *generator.spawn(3))
                for j, k in enumerate(same)
                for generator in waiting[k][3].spawn(draws)
            ]
            trains, cache = [waiting[k][:2] for k in same], {}
            weights = np.empty((len(candidates), len(runs), trains[0][0].shape[1]))
            intercepts = np.zeros((len(candidates), len(runs)))
            *others, last = self._alike(candidates)
            for p, chosen in (*others, last):
                # Candidates share draws, so groups copy the generators. The last need not; a copy takes
                # longer than a short descent.
                again = runs if chosen is last[1] else copy.deepcopy(runs)
                lams = [candidates[k].lam for k in chosen]
                weights[chosen], intercepts[chosen] = self._descend(trains, again, lams, cache, p)
            for j, k in enumerate(same):
                part = slice(j * draws, (j + 1) * draws)
                w = weights[:, part].reshape(-1, weights.shape[2])
                info = {"intercept": intercepts[:, part].ravel(), "scale": scales}
                releases[k] = Release(w, np.full(len(w), "ok"), info)
        return releases

    def _descend(self, trains, runs, lams, cache, p):
        """Weights (lambdas, runs, d) and intercepts (lambdas, runs).

        `cache` keeps the latest rows, for other settings of the same runs.
        """
        n, d = trains[0][0].shape
        scale = self._scale(p)
        plan = stochastic.batch_plan(n, p.batch, p.batch_final)
        width = (p.dimensions or d) + p.bias
        projected = p.dimensions is not None
        residual = losses.get(p.loss).residual
        held = 8 * width * (len(plan[0]) + n * projected)  # bytes per run: noise, projected rows
        step = min(CHUNK_BYTES // held, EXAMPLES_BYTES // (8 * width * int(plan[2].max())))
        parts = []
        for j in range(0, len(runs), max(1, step)):
            part = runs[j : j + max(1, step)]
            key = (p.dimensions, p.bias, residual, j if projected else None)
            if key not in cache:
                cache.clear()
                of = part if projected else runs
                cache[key] = _rows(trains, of, p.dimensions, p.bias, residual)
            rows, targets, block, projections = cache[key]
            block = block if projected else block[j : j + len(part)]
            parts.append(self._part(part, rows, targets, block, projections, scale, lams, plan, p))
        weights, intercepts = zip(*parts, strict=True)
        return np.concatenate(weights, axis=1), np.concatenate(intercepts, axis=1)

    def _part(self, runs, rows, targets, block, projections, scale, lams, plan, p):
        n, width = rows.shape[1:]
        steps = len(plan[0])

        def passes():
            for _ in range(p.epochs):
                order = np.array([run.order.permutation(n) for run in runs])
                noise = None
                if scale:
                    noise = np.stack([self.law(width, scale, steps, run.noise) for run in runs])
                yield order, noise

        settings = {"loss": p.loss, "clip": p.clip, "schedule": p.schedule, "rate": p.rate}
        settings["as_run"] = self.as_run
        w, _ = stochastic.descend(rows, block, lams, passes(), plan, targets=targets, **settings)
        return self._of_features(w.transpose(1, 0, 2), projections, p)

    def _of_features(self, w, projections, p):
        """Weights (lambdas, runs, d) of the original features, and intercepts.

        w: (lambdas, runs, width), for the columns of `_rows`.
        """
        intercepts = w[:, :, -1] if p.bias else np.zeros(w.shape[:2])
        w = w[:, :, : w.shape[2] - p.bias]
        if projections is not None:
            w = np.stack([w[:, j] @ m.T for j, m in enumerate(projections)], axis=1)
        return w, intercepts


def _rows(trains, runs, dimensions, bias, residual):
    """Rows times labels (blocks, n, width), targets or None, each run's block, and projections or None.

    With `residual`, rows are not multiplied by labels, and targets have the shape (blocks, n).
    """
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
    for block_rows, (train, matrix) in zip(rows, sources, strict=True):
        X, y = trains[train]
        sign = np.ones((n, 1)) if residual else np.asarray(y, dtype=float)[:, None]
        np.multiply(X if matrix is None else X @ matrix, sign, out=block_rows[:, :width])
        block_rows[:, width:] = sign
    targets = (
        np.array([trains[train][1] for train, _ in sources], dtype=float) if residual else None
    )
    return rows, targets, block, projections


@register("dp_sgd")
class DPSGD(_SGD):
    """SGD with norm-Laplace noise of scale 2 clip/epsilon' on each batch's sum of clipped gradients.

    Replacing a record changes one batch's sum per pass, by at most 2 clip in L2. Batches are
    disjoint and independent of the data. So noise of norm ~ Gamma(D, 2 clip/epsilon'), for D
    weights including the bias, makes the pass epsilon'-DP (Song, Chaudhuri, Sarwate, GlobalSIP
    2013; McSherry, SIGMOD 2009). k passes cost k epsilon'. Gradients are clipped after projection and with
    the bias column, so the bound holds for any rows, targets and loss.
    """

    options = OPTIONS | {"accounting": Choice("composed", "as_published")}

    def _guarantee(self, n, d, p):
        """epsilon-DP with `accounting` "composed", where each of k passes gets epsilon/k.

        With "as_published", each gets epsilon, in total k epsilon.
        """
        proven = p.epsilon if p.accounting == "composed" else p.epochs * p.epsilon
        width = (p.dimensions or d) + p.bias
        reason = (
            f"one pass over disjoint batches, noise of norm Gamma({width}, {self._scale(p):.6g}) on "
            f"each sum of gradients clipped to {p.clip:g}, costs {proven / p.epochs:.6g}; {p.epochs} "
            f"pass{'es' * (p.epochs > 1)} compose to {proven:.6g}"
        )
        return p.proven(reason, proven)

    def _scale(self, p):
        return 2 * p.clip * (p.epochs if p.accounting == "composed" else 1) / p.epsilon


@register("sgd")
class SGD(_SGD):
    """Without privacy: the descent of `dp_sgd` with clipping and without noise."""

    private = False
    options = OPTIONS

    def _guarantee(self, n, d, p):
        return "no noise is added"


@register("projected_minimiser")
class ProjectedMinimiser(SGD):
    """Without privacy: the limit of `sgd`, the minimiser on projected rows with a bias column."""

    numbers = False
    options = {key: OPTIONS[key] for key in ("dimensions", "bias")}

    def _by_rule(self, n, d, p):
        """Placeholders for the descent's options, because no descent runs."""
        return {
            "batch": n,
            "epochs": 1,
            "schedule": "constant",
            "rate": 1.0,
            "clip": 1.0,
            "batch_final": None,
            "loss": "logistic",
        }

    def _part(self, runs, rows, targets, block, projections, scale, lams, plan, p):
        from dp.solvers.newton import minimise

        w = np.empty((len(lams), len(runs), rows.shape[2]))
        for j, place in enumerate(block):
            for k, lam in enumerate(lams):  # rows are already multiplied by their labels
                w[k, j] = minimise(rows[place], np.ones(rows.shape[1]), lam)[0][0]
        return self._of_features(w, projections, p)

    def _guarantee(self, n, d, p):
        return "the exact minimiser is released"
