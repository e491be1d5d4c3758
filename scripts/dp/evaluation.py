"""Metrics of released weights on test rows, and regularised risk."""

from collections.abc import Callable

import numpy as np

from dp import losses, metrics
from dp.rows import Rows, slices

BLOCK_ELEMENTS = 1 << 13  # scores at a time: 64 kB, so that malloc reuses memory
KEPT = 1 << 23  # maximum number of scores in memory: 64 MB
CACHED = 1 << 14  # scores that fit in the cache together with their results
SORTED = 1 << 20  # maximum number of test rows for an exact AUC
BINS = 1 << 15


def _blocks(rows, restarts):
    step = max(16, BLOCK_ELEMENTS // max(1, restarts))  # with fewer rows, matrix products are slow
    return slices(rows, min(step, losses.SUMMED))


def _scores(weights, X, intercept, each_block):
    """Yield (a slice of the restarts, their scores (restarts, n)).

    A slice has at most CACHED scores, or is a single restart. Before its scores are yielded,
    each_block(restarts, rows, scores (rows, restarts)) is called for every block of rows.
    """
    intercept = np.broadcast_to(intercept, len(weights))
    for part in slices(len(weights), max(1, KEPT // max(1, len(X)))):
        W, held = weights[part].T, np.empty((part.stop - part.start, len(X)))
        for rows in _blocks(len(X), W.shape[1]):
            scores = X[rows] @ W + intercept[part]
            held[:, rows] = scores.T
            each_block(part, rows, scores)
        for some in slices(len(held), max(1, CACHED // max(1, len(X)))):
            yield slice(part.start + some.start, part.start + some.stop), held[some]


def _of_classes(weights, X):
    """Yield (rows, their scores (rows, restarts, K)) for weights (restarts, d, K)."""
    restarts, d, K = weights.shape
    flat = weights.transpose(1, 0, 2).reshape(d, restarts * K)
    for rows in _blocks(len(X), restarts * K):
        yield rows, (X[rows] @ flat).reshape(-1, restarts, K)


def error_rate(
    weights: np.ndarray, X: np.ndarray | Rows, y: np.ndarray, intercept: float | np.ndarray = 0.0
) -> np.ndarray:
    """Share (restarts,) of rows with a wrong prediction, for each weight vector.

    With weights (restarts, d) and labels -1 and 1, the prediction is sgn(w.x + b), and -1 for 0.
    intercept: b, a number or (restarts,). With weights (restarts, d, K) and labels 0, .., K - 1,
    the prediction is the first class with the largest score.
    """
    wrong = np.zeros(len(weights))
    if weights.ndim == 3:
        for rows, scores in _of_classes(weights, X):
            wrong += (scores.argmax(axis=2) != y[rows, None]).sum(axis=0)
        return wrong / len(X)
    for rows in _blocks(len(X), len(weights)):
        wrong += ((X[rows] @ weights.T + intercept > 0) != (y[rows] > 0)[:, None]).sum(axis=0)
    return wrong / len(X)


def classification(
    weights: np.ndarray, X: np.ndarray | Rows, y: np.ndarray, intercept: float | np.ndarray = 0.0
) -> dict[str, np.ndarray]:
    """The metrics in `metrics.CLASSES`, name -> (restarts,), from arguments as for `error_rate`.

    log_loss interprets scores as log-odds (for K classes, as arguments of a softmax), whatever the training
    loss. auc is NaN for K classes, and computed by `binned_auc` for more than SORTED rows.
    """
    values = {name: np.full(len(weights), np.nan) for name in metrics.CLASSES}
    if weights.ndim == 3:
        values["error"], total = error_rate(weights, X, y), np.zeros(len(weights))
        for rows, scores in _of_classes(weights, X):
            top = scores.max(axis=2, keepdims=True)
            sums = np.log(np.exp(scores - top).sum(axis=2)) + top[:, :, 0]
            total += (sums - np.take_along_axis(scores, y[rows, None, None], 2)[:, :, 0]).sum(
                axis=0
            )
        values["log_loss"] = total / len(X)
        return values
    positive, logistic = y > 0, losses.get("logistic")
    errors, log_losses = np.zeros(len(weights)), np.zeros(len(weights))

    def add(restarts, rows, scores):
        label = positive[rows, None]
        errors[restarts] += ((scores > 0) != label).sum(axis=0)
        log_losses[restarts] += logistic.total(np.where(label, scores, -scores))

    if len(X) > SORTED:
        values["auc"] = binned_auc(weights, X, positive, intercept, add)
    else:
        for part, scores in _scores(weights, X, intercept, add):
            values["auc"][part] = auc(scores, positive)
    values["error"], values["log_loss"] = errors / len(X), log_losses / len(X)
    return values


def auc(scores: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """Area under the ROC curve of each row of finite scores (restarts, n); ties count half.

    NaN for a single class. The label replaces each score's last bit, so one sort orders by score, then
    label. Scores that differ only in this bit are tied.
    """
    count = int(positive.sum())
    pairs = count * (len(positive) - count)
    if not pairs:
        return np.full(len(scores), np.nan)
    label, rank = positive.astype(np.int64), np.arange(float(len(positive)))
    scores = (scores + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    scores &= -2

    def above(scores, label):
        """(sum of the ranks of label 1, sorted keys)."""
        keys = scores | label
        keys.view(float).sort(axis=1)
        return (keys & 1).astype(float) @ rank, keys

    ordered, keys = above(scores, label)
    tied = ((keys[:, 1:] ^ keys[:, :-1]) == 1).any(axis=1)
    ordered -= count * (count - 1) / 2
    if tied.any():  # with swapped labels, the sort breaks ties the other way
        other = rank.sum() - above(scores[tied], 1 - label)[0] - count * (count - 1) / 2
        ordered[tied] = (ordered[tied] + other) / 2
    return ordered / pairs


def binned_auc(
    weights: np.ndarray,
    X: np.ndarray | Rows,
    positive: np.ndarray,
    intercept: float | np.ndarray = 0.0,
    each_block: Callable | None = None,
) -> np.ndarray:
    """Approximate `auc` of weights (restarts, d) on the rows of X, with little memory.

    The first pass finds each restart's range of scores. The second divides this range into BINS equal bins
    and counts both classes in each. A positive and a negative in the same bin count half, so the error is
    at most half the share of such pairs. each_block: as for `_scores`, in the first pass.
    """
    restarts, count = len(weights), int(positive.sum())
    pairs = count * (len(positive) - count)
    largest = np.maximum(np.abs(weights).max(axis=1), np.abs(intercept))
    # Division by a power of 2, which is exact, makes weights less than 2, so scores cannot overflow.
    size = 2.0 ** (np.frexp(largest)[1] - 1)
    W, b = (weights / size[:, None]).T, intercept / size
    low, high = np.full(restarts, np.inf), np.full(restarts, -np.inf)
    for rows in _blocks(len(X), restarts):
        scores = X[rows] @ W + b
        np.minimum(low, scores.min(axis=0), out=low)
        np.maximum(high, scores.max(axis=0), out=high)
        if each_block:
            each_block(slice(None), rows, scores * size)
    if not pairs:
        return np.full(restarts, np.nan)
    per_score = (BINS - 1) / np.maximum(high - low, 1e-300)
    # Bins hold restart 0's negatives, its positives, restart 1's negatives, ..
    first = 2 * BINS * np.arange(restarts)
    counts = np.zeros(2 * BINS * restarts, dtype=np.int64)
    for rows in slices(len(X), max(1, KEPT // 8 // restarts)):
        bins = (X[rows] @ W + b - low) * per_score
        np.clip(bins, 0, BINS - 1, out=bins)  # rounding may differ from the first pass
        bins = bins.astype(np.int64) + first + BINS * positive[rows, None]
        counts += np.bincount(bins.ravel(), minlength=len(counts))
    negatives, positives = counts.reshape(restarts, 2, BINS).swapaxes(0, 1).astype(float)
    below = negatives.cumsum(axis=1) - negatives / 2
    return (positives * below).sum(axis=1) / pairs


def regression(
    weights: np.ndarray,
    X: np.ndarray | Rows,
    y: np.ndarray,
    intercept: float | np.ndarray = 0.0,
    unit: float = 1.0,
) -> dict[str, np.ndarray]:
    """The metrics in `metrics.TARGETS` for weights (restarts, d), name -> (restarts,).

    mse and mae are in the target's own units: a difference of 1 in y is `unit`. r2 is 1 minus mse over
    the variance of the test targets, or NaN if the variance is 0.
    """
    values = {name: np.full(len(weights), np.nan) for name in metrics.TARGETS}
    y = np.asarray(y, dtype=float)
    variance = y.var() if np.ptp(y) > 0 else np.nan
    for part, residual in _scores(weights, X, intercept, lambda *_: None):
        residual -= y
        mse = np.einsum("ij,ij->i", residual, residual) / len(X)
        values["mse"][part], values["r2"][part] = unit**2 * mse, 1 - mse / variance
        values["mae"][part] = unit * np.abs(residual, out=residual).mean(axis=1)
    return values


def counts(
    weights: np.ndarray,
    X: np.ndarray | Rows,
    y: np.ndarray,
    intercept: float | np.ndarray = 0.0,
    largest: float = 1.0,
) -> dict[str, np.ndarray]:
    """The metrics in `metrics.COUNTS` for weights (restarts, d), name -> (restarts,).

    y encodes the counts k = largest (y + 1)/2. The predicted rates are m = largest min(e^(w.x + b), 1).
    deviance is the Poisson deviance, the mean of 2 (k log(k/m) - k + m). d2 is 1 minus the deviance over
    the deviance of predicting the mean test count, or NaN if all test counts are equal.
    """
    values = {name: np.full(len(weights), np.nan) for name in metrics.COUNTS}
    share = (np.asarray(y, dtype=float) + 1) / 2
    there = share > 0
    logs = np.log(share, where=there, out=np.zeros_like(share))
    entropy, rate = share @ logs, share.mean()
    nothing = entropy - rate * len(X) * np.log(rate) if np.ptp(share) > 0 else np.nan
    for part, scores in _scores(weights, X, intercept, lambda *_: None):
        np.clip(scores, -1e300, 0.0, out=scores)  # -inf times a count of 0 would be NaN
        total = entropy - scores @ share - share.sum() + np.exp(scores).sum(axis=1)
        values["deviance"][part] = 2 * largest * np.maximum(total, 0.0) / len(X)
        values["d2"][part] = 1 - total / nothing
    return values


def mean_squared_error(
    weights: np.ndarray, X: np.ndarray | Rows, y: np.ndarray, intercept: float | np.ndarray = 0.0
) -> np.ndarray:
    """Mean squared error (restarts,), from arguments as for `error_rate` but targets in [-1, 1]."""
    return regression(weights, X, y, intercept)["mse"]


def bounded_loss(
    weights: np.ndarray,
    X: np.ndarray | Rows,
    y: np.ndarray,
    intercept: float | np.ndarray = 0.0,
    numbers: bool = False,
) -> np.ndarray:
    """Sum (restarts,) over rows of a loss in [0, 1], so one row changes the sum by at most 1.

    For classes, the loss is half the Brier score of the probabilities in `classification`. For `numbers`,
    it is (prediction - y)^2/4, with predictions clipped to [-1, 1]. The loss of a score that overflowed to
    NaN is 1.
    """
    total = np.zeros(len(weights))
    if weights.ndim == 3:
        for rows, scores in _of_classes(weights, X):
            with np.errstate(invalid="ignore"):
                p = np.exp(scores - scores.max(axis=2, keepdims=True))
            p /= p.sum(axis=2, keepdims=True)
            right = np.take_along_axis(p, y[rows, None, None], 2)[:, :, 0]
            wrong = ((p * p).sum(axis=2) - 2 * right + 1) / 2
            total += np.nan_to_num(wrong, copy=False, nan=1.0).sum(axis=0)
        return total
    for rows in _blocks(len(X), len(weights)):
        with np.errstate(over="ignore", invalid="ignore"):
            scores, target = X[rows] @ weights.T + intercept, y[rows, None]
        if numbers:
            wrong = (np.clip(scores, -1, 1) - target) / 2
        else:
            wrong = 0.5 - 0.5 * np.tanh(scores * target / 2)
        np.nan_to_num(wrong, copy=False, nan=1.0)
        total += (wrong * wrong).sum(axis=0)
    return total


def regularised_risk(
    weights: np.ndarray,
    X: np.ndarray | Rows,
    y: np.ndarray,
    lam: float,
    loss: losses.Loss = "logistic",
    l1: float = 0.0,
) -> np.ndarray:
    """mean_i loss(z_i) + lam/2 ||w||^2 + l1 ||w||_1 for weights (restarts, d); z_i as in `dp.losses`."""
    loss = losses.get(loss)
    total = np.zeros(len(weights))
    for rows in _blocks(len(X), len(weights)):
        total += loss.total(loss.arguments(X[rows] @ weights.T, y[rows, None]))
    penalty = lam / 2 * np.einsum("ij,ij->i", weights, weights) + l1 * np.abs(weights).sum(axis=1)
    return total / len(X) + penalty
