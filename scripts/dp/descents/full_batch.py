"""Full-batch gradient descent of linear models, with clipping and noise if they are asked for.

All restarts descend at once. Logistic loss: labels in {-1, 1}, weights (restarts, d). Softmax loss:
labels 0, .., K - 1, weights (restarts, d, K). Losses of residuals: targets that are numbers in [-1, 1],
weights (restarts, d).
"""

import math

import numpy as np

from dp import losses
from dp.data.examples import NUMBERS, slices
from dp.errors import Refused

BLOCK_ELEMENTS = 1 << 14  # scores at a time: 128 kB, which the cache holds with what follows
LEAST_ROWS = 256  # fewest rows of a block, however many classes and restarts there are

LOSSES = ("logistic", "softmax", *(name for name, loss in losses.LOSSES.items() if loss.residual))


def classes_of(loss: str, classes: int | None) -> int | str | None:
    """The argument `classes` of `dp.data.examples.check_rows`: the number of classes for softmax loss."""
    if loss != "softmax":
        return NUMBERS if losses.get(loss).residual else None
    if classes is None or classes < 2:
        raise Refused(f"softmax loss needs the public number of classes, at least 2, not {classes}")
    return classes


def _residuals(X, y, W, loss, valued):
    """(per-example loss (n, restarts), or None unless `valued`; its derivative by the scores).

    The derivative is (n, restarts, K). y: None if the rows are already multiplied by their labels.
    """
    restarts, d, K = W.shape
    scores = (X @ W.transpose(1, 0, 2).reshape(d, restarts * K)).reshape(len(X), restarts, K)
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
    rows = np.arange(len(X))
    value = np.log(total[:, :, 0]) - shifted[rows, :, y] if valued else None
    residual = exponential / total
    residual[rows, :, y] -= 1.0
    return value, residual


def _clip(residual, norms, clip, kappa):
    """Shorten residuals (n, restarts, K) in place, so that gradients have norm at most `clip`.

    An example's gradient is the outer product of x and its residual, so its norm is the product of their
    norms. So clipping scales residuals and never forms the gradients. norms: (n,), of the rows. kappa: a
    bound that no residual exceeds.
    """
    with np.errstate(divide="ignore"):
        most = clip / norms
    if residual.shape[2] == 1:
        if not most.min() >= kappa:
            most = most[:, None, None]
            np.maximum(np.minimum(residual, most, out=residual), -most, out=residual)
    else:
        sizes = np.sqrt(np.einsum("nrk,nrk->nr", residual, residual))
        residual *= np.minimum(1.0, most[:, None] / np.maximum(sizes, 1e-300))[:, :, None]


def row_norms(X: np.ndarray) -> np.ndarray:
    """Euclidean norms (n,) of rows (n, d)."""
    return np.sqrt(np.einsum("nd,nd->n", X, X))


def mean_gradient(
    X: np.ndarray,
    y: np.ndarray,
    W: np.ndarray,
    loss: losses.Loss,
    clip: float | None = None,
    valued: bool = True,
    norms: np.ndarray | None = None,
) -> tuple[np.ndarray | None, np.ndarray]:
    """Mean loss (restarts,) and mean of the per-example gradients (restarts, d, K), block by block.

    y: None if the loss is of margins and the rows are already multiplied by their labels -1 and 1.
    clip: the norm that every example's gradient is clipped to. norms: `row_norms`, if they are known.
    Without `valued` the loss is not computed, and NaN is returned for it.
    """
    restarts, d, K = W.shape
    value, total = 0.0 if valued else np.nan, 0.0
    kappa = np.inf if loss == "softmax" else losses.get(loss).kappa
    if clip is not None and norms is None:
        norms = row_norms(X)
    for rows in slices(len(X), max(LEAST_ROWS, BLOCK_ELEMENTS // (restarts * K))):
        part = X[rows]
        values, residual = _residuals(part, y if y is None else y[rows], W, loss, valued)
        if clip is not None:
            _clip(residual, norms[rows], clip, kappa)
        if valued:
            value = value + values.sum(axis=0)
        residual = residual.reshape(len(part), restarts * K)
        gradient = part.T @ residual
        if clip is not None and not np.isfinite(gradient).all():
            # If its products overflow, a score is not a number. The record's share must stay bounded.
            gradient = part.T @ np.nan_to_num(residual, posinf=0.0, neginf=0.0)
        total = total + gradient
    return value / len(X), total.reshape(d, restarts, K).transpose(1, 0, 2) / len(X)


def clipped_mean(gradient: np.ndarray, clip: float) -> np.ndarray:
    """Mean gradients (restarts, d, K), each clipped as a whole to norm `clip`.

    If rows have no bound, gradients may overflow. An entry that is not a number becomes 0, and so does a
    gradient whose norm is infinite.
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
) -> np.ndarray:
    """The sum of clipped gradients over a Poisson batch, divided by the batch's *expected* size.

    Each restart has its own batch. Every example is in it independently with probability `sampling`. The
    actual size is secret; the expected size, sampling times n, is public.
    """
    gradient = np.zeros(W.shape)
    for r in range(len(W)):
        batch = np.flatnonzero(rng.random(len(X)) < sampling)
        if len(batch):
            labels = y if y is None else y[batch]
            _, mean = mean_gradient(X[batch], labels, W[r : r + 1], loss, clip, valued=False)
            gradient[r] = mean[0] * (len(batch) / (sampling * len(X)))
    return gradient


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
) -> tuple[np.ndarray, np.ndarray]:
    """w <- w - learning_rate (clipped mean gradient + noise + lam w), `iterations` times.

    sigma: standard deviation of independent Gaussian noise on every coordinate of the mean gradient,
    drawn from rng. mean_clip: norm to which the mean gradient is clipped as a whole. initial: (d,) or
    (d, K), the same for all restarts; zeros if it is not given. precondition: (restarts, d, d), multiplies
    the step. sampling: if it is given, steps take Poisson batches (`sampled_gradient`) in place of all
    rows, and nothing is traced.

    Returns weights (restarts, d) or (restarts, d, K), and the mean loss (restarts, iterations + 1)
    at the start and after every step, all NaN unless `traced`.
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
        X, y = X * y[:, None], None  # a change of sign rounds nothing
    trace = np.full((restarts, iterations + 1), np.nan)
    norms = row_norms(X) if clip is not None and sampling is None else None
    for step in range(iterations):
        if sampling is None:
            trace[:, step], gradient = mean_gradient(X, y, W, loss, clip, traced, norms)
        else:
            gradient = sampled_gradient(X, y, W, loss, clip, sampling, rng)
        if mean_clip is not None:
            gradient = clipped_mean(gradient, mean_clip)
        if sigma > 0:
            gradient = gradient + sigma * rng.standard_normal(W.shape)
        ascent = gradient + lam * W
        W = W - learning_rate * (ascent if precondition is None else precondition @ ascent)
    if traced and sampling is None:
        trace[:, -1] = mean_gradient(X, y, W, loss)[0]
    return (W if loss == "softmax" else W[:, :, 0]), trace
