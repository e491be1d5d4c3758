"""Full-batch gradient descent of linear models, with optional clipping and noise.

All restarts descend at once. Logistic loss takes labels in {-1, 1}, softmax loss labels 0, .., K - 1, and
residual losses targets in [-1, 1]. Weights are (restarts, d), for softmax loss (restarts, d, K).
"""

import math
from itertools import pairwise

import numpy as np

from dp import losses
from dp.descents import poisson
from dp.rows import NUMBERS, ROUNDING, row_norms, slices
from dp_privacy.errors import Refused

BLOCK_ELEMENTS = 1 << 14  # scores computed at a time: 128 kB, which fits in the cache
GATHERED = 1 << 17  # numbers in the rows gathered at a time: 1 MB
LEAST_ROWS = 256

LOSSES = ("logistic", "softmax", *(name for name, loss in losses.LOSSES.items() if loss.residual))


def classes_of(loss: str, classes: int | None) -> int | str | None:
    """The argument `classes` of `dp.rows.check_rows` for this loss."""
    if loss != "softmax":
        return NUMBERS if losses.get(loss).residual else None
    if classes is None or classes < 2:
        raise Refused(f"softmax loss needs the public number of classes, at least 2, not {classes}")
    return classes


def _scores(X, W):
    """Scores w.x of every row, restart and class, (n, restarts, K)."""
    restarts, d, K = W.shape
    return (X @ W.transpose(1, 0, 2).reshape(d, restarts * K)).reshape(len(X), restarts, K)


def _residuals(scores, y, loss, valued):
    """Losses (n, restarts), or None unless `valued`, and their derivatives with respect to scores.

    scores: (n, restarts, K), overwritten; the derivatives have this shape. y: as for `mean_gradient`.
    """
    if loss != "softmax":
        loss, z = losses.get(loss), scores[:, :, 0]
        if y is None:
            value = loss.value(z) if valued else None
            return value, loss.slope(z)[:, :, None]
        y = y[:, None]
        z = loss.arguments(z, y)
        value = loss.value(z) if valued else None
        return value, (loss.slope(z) * loss.signs(y))[:, :, None]
    shifted = scores - scores.max(axis=2, keepdims=True)
    exponential = np.exp(shifted)
    total = exponential.sum(axis=2, keepdims=True)
    rows = np.arange(len(scores))
    value = np.log(total[:, :, 0]) - shifted[rows, :, y] if valued else None
    residual = exponential / total
    residual[rows, :, y] -= 1.0
    return value, residual


def residual_limits(X: np.ndarray, loss: losses.Loss, clip: float) -> np.ndarray | float:
    """Limits (n,) on the norms of the rows' residuals that keep gradients within norm `clip`.

    A gradient is the outer product of x and the residual, so its norm is the product of both norms. The
    result is infinity if the loss keeps all residuals within these limits.
    """
    with np.errstate(divide="ignore"):
        limits = clip / row_norms(X)
    kappa = np.inf if loss == "softmax" else losses.get(loss).kappa
    return np.inf if limits.min() >= kappa * (1 - ROUNDING) else limits


def _clip(residual, limits):
    """Shorten residuals (n, restarts, K) in place to the rows' limits (n,)."""
    limits = limits[:, None, None]
    if residual.shape[2] == 1:
        np.maximum(np.minimum(residual, limits, out=residual), -limits, out=residual)
    else:
        sizes = np.sqrt(np.einsum("nrk,nrk->nr", residual, residual))
        residual *= np.minimum(1.0, limits[:, :, 0] / np.maximum(sizes, 1e-300))[:, :, None]


def mean_gradient(
    X: np.ndarray,
    y: np.ndarray,
    W: np.ndarray,
    loss: losses.Loss,
    clip: float | None = None,
    valued: bool = True,
    limits: np.ndarray | float | None = None,
) -> tuple[np.ndarray | None, np.ndarray]:
    """Mean loss (restarts,) and mean of the per-example gradients (restarts, d, K).

    y: None for a margin loss whose rows are multiplied by their labels. clip: maximum norm of
    each example's gradient. limits: `residual_limits`, if known. Unless `valued`, the loss is NaN.
    """
    restarts, d, K = W.shape
    value, total = 0.0 if valued else np.nan, 0.0
    if clip is not None and limits is None:
        limits = residual_limits(X, loss, clip)
    for rows in slices(len(X), max(LEAST_ROWS, BLOCK_ELEMENTS // (restarts * K))):
        part = X[rows]
        labels = y if y is None else y[rows]
        values, residual = _residuals(_scores(part, W), labels, loss, valued)
        if isinstance(limits, np.ndarray):
            _clip(residual, limits[rows])
        if valued:
            value = value + values.sum(axis=0)
        residual = residual.reshape(len(part), restarts * K)
        gradient = part.T @ residual
        if clip is not None and not np.isfinite(gradient).all():
            # After overflow, a score may be NaN, but the record's contribution must stay bounded.
            gradient = part.T @ np.nan_to_num(residual, posinf=0.0, neginf=0.0)
        total = total + gradient
    return value / len(X), total.reshape(d, restarts, K).transpose(1, 0, 2) / len(X)


def clipped_mean(gradient: np.ndarray, clip: float) -> np.ndarray:
    """Mean gradients (restarts, d, K), each clipped as a whole to norm `clip`.

    After overflow, NaN entries and gradients of infinite norm become 0.
    """
    gradient = np.nan_to_num(gradient)
    with np.errstate(over="ignore"):
        norms = np.sqrt(np.einsum("rdk,rdk->r", gradient, gradient))
    return gradient / np.maximum(1.0, norms / clip)[:, None, None]


def sampled_gradient(
    X: np.ndarray,
    y: np.ndarray,
    W: np.ndarray,
    loss: losses.Loss,
    clip: float | None,
    sampling: float,
    rng: np.random.Generator,
    limits: np.ndarray | float | None = None,
) -> np.ndarray:
    """The sum of clipped gradients over a Poisson batch, divided by the batch's *expected* size.

    Each restart has its own batch (`poisson.batches`) of secret size; the expected size, sampling * n,
    is public. limits: `residual_limits`, if known.
    """
    if clip is not None and limits is None:
        limits = residual_limits(X, loss, clip)
    if loss != "softmax":
        loss = losses.get(loss)
    (n, restarts), (_, d, K) = (len(X), len(W)), W.shape
    total, size = np.zeros((restarts, K, d)), max(LEAST_ROWS, GATHERED // d)
    gathered, scored, sums = np.empty((size, d)), np.empty((size, K)), np.empty_like(total)
    for part, batch, edges in poisson.batches(n, restarts, sampling, rng):
        for pieces in _in_blocks(edges, size):
            start = pieces[0][1]
            chosen = batch[start : pieces[-1][2]]
            # All indices are in range; the mode "clip" saves a copy.
            np.take(X, chosen, 0, gathered[: len(chosen)], mode="clip")
            scores = scored[: len(chosen)]
            examples = [gathered[first - start : last - start] for _, first, last in pieces]
            draws = [part.start + draw for draw, _, _ in pieces]
            for rows, draw, (_, first, last) in zip(examples, draws, pieces, strict=True):
                np.dot(rows, W[draw], out=scores[first - start : last - start])
            labels = y if y is None else y[chosen]
            residual = _residuals(scores[:, None], labels, loss, False)[1]
            if isinstance(limits, np.ndarray):
                _clip(residual, limits[chosen])
            if clip is not None and not np.isfinite(residual).all():
                np.nan_to_num(residual, copy=False, posinf=0.0, neginf=0.0)
            residual = residual[:, 0].T
            for k, (rows, (_, first, last)) in enumerate(zip(examples, pieces, strict=True)):
                np.dot(residual[:, first - start : last - start], rows, out=sums[k])
            total[draws] += sums[: len(pieces)]  # a draw has at most one piece in a block
    return total.transpose(0, 2, 1) / (sampling * n)


def _in_blocks(edges, size):
    """Yield lists of (draw, first row, last row + 1) with at most `size` rows, splitting larger draws."""
    block = []
    for draw, (first, last) in enumerate(pairwise(edges.tolist())):
        if block and last - block[0][1] > size:
            yield block
            block = []
        while last - first > size:
            yield [(draw, first, first + size)]
            first += size
        if first < last:
            block.append((draw, first, last))
    if block:
        yield block


def descend(
    X: np.ndarray,
    y: np.ndarray,
    *,
    iterations: int,
    learning_rate: float,
    loss: losses.Loss = "logistic",
    classes: int | None = None,
    lam: float = 0.0,
    clip: float | None = None,
    mean_clip: float | None = None,
    sigma: float = 0.0,
    restarts: int = 1,
    rng: np.random.Generator | None = None,
    initial: np.ndarray | None = None,
    precondition: np.ndarray | None = None,
    sampling: float | None = None,
    traced: bool = True,
    size: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """w <- w - learning_rate (clipped mean gradient + noise + lam w), `iterations` times.

    sigma: standard deviation of independent Gaussian noise on every coordinate of the mean gradient.
    mean_clip: maximum norm of the mean gradient. initial: (d,) or (d, K), for all restarts; by default
    zeros. precondition: (restarts, d, d), multiplies the steps. sampling: if given, steps use Poisson
    batches (`sampled_gradient`), and nothing is traced. size: the divisor of sums of gradients, by default
    the number of rows.

    Returns the weights and the mean loss (restarts, iterations + 1) at the start and after every step, all
    NaN unless `traced`.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    K = classes_of(loss, classes) if loss == "softmax" else 1
    y = y.astype(int) if loss == "softmax" else y.astype(float)
    shape = (X.shape[1], K)
    W = np.zeros((restarts, *shape))
    if initial is not None:
        if np.size(initial) != math.prod(shape):
            raise Refused(f"initial weights must have shape {shape}, not {np.shape(initial)}")
        W += np.reshape(initial, shape)
    if loss != "softmax" and not losses.get(loss).residual:
        X, y = X * y[:, None], None  # exact, because only signs change
    trace = np.full((restarts, iterations + 1), np.nan)
    limits = None if clip is None else residual_limits(X, loss, clip)
    for step in range(iterations):
        if sampling is None:
            trace[:, step], gradient = mean_gradient(X, y, W, loss, clip, traced, limits)
        else:
            gradient = sampled_gradient(X, y, W, loss, clip, sampling, rng, limits)
        if size is not None:
            gradient = gradient * (len(X) / size)
        if mean_clip is not None:
            gradient = clipped_mean(gradient, mean_clip)
        if sigma > 0:
            gradient = gradient + sigma * rng.standard_normal(W.shape)
        ascent = gradient + lam * W
        W = W - learning_rate * (ascent if precondition is None else precondition @ ascent)
    if traced and sampling is None:
        trace[:, -1] = mean_gradient(X, y, W, loss)[0]
    return (W if loss == "softmax" else W[:, :, 0]), trace
