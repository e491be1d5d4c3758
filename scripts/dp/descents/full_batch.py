"""Full-batch gradient descent of linear classifiers, clipped per example and noisy where asked.

All restarts descend at once. Logistic loss: labels in {-1, 1}, weights (restarts, d). Softmax loss:
labels 0, .., K - 1, weights (restarts, d, K). Losses of residuals: targets that are numbers in [-1, 1],
weights (restarts, d).
"""

import math

import numpy as np

from dp import losses
from dp.data.examples import NUMBERS, slices
from dp.errors import Refused

BLOCK_ELEMENTS = 1 << 14  # scores at a time: 128 kB, in the cache with what is made of them
LEAST_ROWS = 256  # of a block, where there are many classes and restarts

LOSSES = ("logistic", "softmax", *(name for name, loss in losses.LOSSES.items() if loss.residual))


def classes_of(loss, classes):
    """What `dp.data.examples.check_rows` compares labels with: the number of classes for softmax loss."""
    if loss != "softmax":
        return NUMBERS if losses.get(loss).residual else None
    if classes is None or classes < 2:
        raise Refused(f"softmax loss needs the public number of classes, at least 2, not {classes}")
    return classes


def _residuals(X, y, W, loss):
    """Per-example loss (restarts, n) and its derivative by the scores (restarts, n, K)."""
    restarts, d, K = W.shape
    scores = (X @ W.transpose(1, 0, 2).reshape(d, restarts * K)).reshape(len(X), restarts, K)
    scores = scores.transpose(1, 0, 2)
    if loss != "softmax":
        loss = losses.get(loss)
        z = loss.arguments(scores[:, :, 0], y)
        return loss.value(z), (loss.derivative(z) * loss.signs(y))[:, :, None]
    shifted = scores - scores.max(axis=2, keepdims=True)
    exponential = np.exp(shifted)
    total = exponential.sum(axis=2, keepdims=True)
    rows = np.arange(len(X))
    value = np.log(total[:, :, 0]) - shifted[:, rows, y]
    residual = exponential / total
    residual[:, rows, y] -= 1.0
    return value, residual


def mean_gradient(X, y, W, loss, clip=None):
    """Mean loss (restarts,) and mean of the per-example gradients (restarts, d, K), block by block.

    An example's gradient is the outer product of x and its residual, so its norm is the product of
    theirs: clipping to `clip` scales residuals and never forms the gradients.
    """
    restarts, d, K = W.shape
    value, total = 0.0, 0.0
    for rows in slices(len(X), max(LEAST_ROWS, BLOCK_ELEMENTS // (restarts * K))):
        part = X[rows]
        values, residual = _residuals(part, y[rows], W, loss)
        if clip is not None:
            norms = np.abs(residual[:, :, 0])
            if K > 1:
                norms = np.sqrt(np.einsum("rnk,rnk->rn", residual, residual))
            norms *= np.sqrt(np.einsum("nd,nd->n", part, part))
            residual *= (clip / np.maximum(norms, clip))[:, :, None]
            if not np.isfinite(norms).all():
                # A score whose products overflow is no number; its record's share must stay bounded.
                np.nan_to_num(residual, copy=False)
        value = value + values.sum(axis=1)
        total = total + part.T @ residual.transpose(1, 0, 2).reshape(len(part), restarts * K)
    return value / len(X), total.reshape(d, restarts, K).transpose(1, 0, 2) / len(X)


def sampled_gradient(X, y, W, loss, clip, sampling, rng):
    """The sum of clipped gradients of a Poisson batch of each restart's own over the *expected* size.

    Every example is in a batch independently with probability `sampling`. The size that came out is a
    secret; the expected one, sampling times n, is public.
    """
    gradient = np.zeros(W.shape)
    for r in range(len(W)):
        batch = np.flatnonzero(rng.random(len(X)) < sampling)
        if len(batch):
            _, mean = mean_gradient(X[batch], y[batch], W[r : r + 1], loss, clip)
            gradient[r] = mean[0] * (len(batch) / (sampling * len(X)))
    return gradient


def descend(
    X,
    y,
    *,
    iterations,
    learning_rate,
    loss="logistic",
    classes=None,
    lam=0.0,
    clip=None,
    sigma=0.0,
    restarts=1,
    rng=None,
    initial=None,
    precondition=None,
    sampling=None,
):
    """w <- w - learning_rate (clipped mean gradient + noise + lam w), `iterations` times.

    sigma: standard deviation of independent Gaussian noise on every coordinate of the mean gradient,
    drawn from rng. initial: (d,) or (d, K), the same for all restarts; zeros where not given.
    Returns weights (restarts, d) or (restarts, d, K), and the mean loss (restarts, iterations + 1)
    at the start and after every step. precondition: (restarts, d, d), multiplies the gradients. sampling:
    of Poisson batches (`sampled_gradient`), in place of all rows; then no loss is found but the last.
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
    trace = np.full((restarts, iterations + 1), np.nan)
    for step in range(iterations):
        if sampling is None:
            trace[:, step], gradient = mean_gradient(X, y, W, loss, clip)
        else:
            gradient = sampled_gradient(X, y, W, loss, clip, sampling, rng)
        if sigma > 0:
            gradient = gradient + sigma * rng.standard_normal(W.shape)
        ascent = gradient + lam * W
        W = W - learning_rate * (ascent if precondition is None else precondition @ ascent)
    trace[:, -1] = _residuals(X, y, W, loss)[0].mean(axis=1)
    return (W if loss == "softmax" else W[:, :, 0]), trace
