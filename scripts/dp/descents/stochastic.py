"""Mini-batch stochastic gradient descent on many problems at once, clipped per example.

A *run* is one descent with its own rows, order of rows and noise. All values of lambda in a run share them.
Runs of equal size advance together, in few array operations a step.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from dp import losses
from dp.rows import slices
from dp_privacy.errors import Refused

CACHED = 1 << 15  # numbers processed at a time: 256 kB
SCHEDULES = ("inverse_sqrt", "inverse_lambda", "constant")


def batch_plan(
    n: int, batch: int, final: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(starts, stops, divisors) of one pass over n rows in disjoint batches.

    Batches have `batch` rows, at most n. With `final`, their size changes geometrically from `batch` at
    the first row to `final` at the last. A short last batch's sum is divided by its nominal size. The
    plan depends only on public numbers.
    """
    batch = min(batch, n)
    ratio = 1.0 if final is None else min(final, n) / batch
    starts, divisors = [], []
    used = 0
    while used < n:
        starts.append(used)
        divisors.append(max(1, round(batch * ratio ** (used / n))))
        used += divisors[-1]
    return np.array(starts), np.array([*starts[1:], n]), np.array(divisors)


def learning_rate(step: int, schedule: str, rate: float, lam: np.ndarray) -> np.ndarray:
    """Learning rates at step t (counted from 1), one per lambda: rate times 1/sqrt(t), 1/(lam t) or 1."""
    if schedule == "inverse_sqrt":
        return np.full(len(lam), rate / np.sqrt(step))
    if schedule == "inverse_lambda":
        return rate / (lam * step)
    return np.full(len(lam), rate)


def program_gradient(w: np.ndarray, examples: np.ndarray, clip: float) -> np.ndarray:
    """Sum over examples of the logistic loss's gradient as E18's program computes it, at weights w.

    w: (runs, values, d). examples: (runs, rows, d), each multiplied by its label. Coordinate j of the
    gradient at example x is -x_j/(1 + exp(w_j x_j)), with w_j x_j instead of w.x, as in d logistic
    regressions on one feature each. Each example's gradient is then clipped to Euclidean norm `clip`.
    """
    runs, values, d = w.shape
    total = np.zeros_like(w)
    for rows in slices(examples.shape[1], max(1, CACHED // d)):
        fit = max(1, CACHED // (d * (rows.stop - rows.start)))  # (run, lambda) pairs at a time
        for run in slices(runs, max(1, fit // values)):
            x = examples[run, None, rows]
            for value in slices(values, fit):
                slope = w[run, value, None] * x
                np.exp(slope, out=slope)
                slope += 1
                np.divide(x, slope, out=slope)
                length = np.sqrt(np.einsum("rvij,rvij->rvi", slope, slope))
                scale = clip / np.maximum(length, clip)
                total[run, value] -= np.einsum("rvij,rvi->rvj", slope, scale)
    return np.nan_to_num(total, copy=False)


def descend(
    rows: np.ndarray,
    block: np.ndarray,
    lam: np.ndarray,
    passes: Iterable,
    plan: tuple,
    *,
    targets: np.ndarray | None = None,
    loss: losses.Loss = "logistic",
    clip: float = 1.0,
    schedule: str = "inverse_sqrt",
    rate: float = 1.0,
    as_run: bool = False,
    checkpoints: Sequence[int] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """w <- w - eta (lam w + (sum of clipped gradients + noise) / b), from w = 0.

    as_run: the sum of gradients is `program_gradient`, and the scalar lam sum_j w_j replaces lam w in every
    coordinate.

    rows: (blocks, n, d), each row multiplied by its label, so margins are rows.w. For a residual loss,
        rows are not multiplied, and `targets` are (blocks, n).
    block: (runs,), index of each run's block; runs may share one. lam: (values,) regularisations.
    passes: one (order, noise) per epoch. order (runs, n) permutes the rows; noise is (runs, steps, d)
        or None. plan: `batch_plan` of n, with divisors b.
    clip: maximum Euclidean norm of an example's loss gradient.
    checkpoints: steps (counted from 1, over all epochs) after which weights are stored.

    Returns weights (runs, values, d) and the stored weights (checkpoints, runs, values, d). After overflow,
    weights are infinite or NaN.
    """
    loss = losses.get(loss)
    if loss.residual != (targets is not None):
        raise Refused(f"residual losses need targets, and no other loss takes any: {loss.name}")
    lam = np.asarray(lam, dtype=float)
    starts, stops, _ = plan
    runs, (n, d) = len(block), rows.shape[1:]
    first = n * np.asarray(block)[:, None]
    rows = rows.reshape(-1, d)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    targets = None if targets is None else np.ravel(targets)
    gathered = np.empty((runs * int((stops - starts).max()), d))
    w = np.zeros((runs, len(lam), d))
    stored, wanted, step = [], set(checkpoints), 0
    with np.errstate(over="ignore", invalid="ignore"):
        for order, noise in passes:
            for k, (start, stop, divisor) in enumerate(zip(*plan, strict=True)):
                step += 1
                chosen = (first + order[:, start:stop]).ravel()
                # All indices are in range, so the mode "clip" only avoids a copy.
                examples = np.take(rows, chosen, 0, gathered[: len(chosen)], mode="clip")
                examples = examples.reshape(runs, -1, d)
                if as_run:
                    total = program_gradient(w, examples, clip)
                else:
                    scores = w @ examples.transpose(0, 2, 1)
                    if targets is not None:
                        scores -= targets[chosen].reshape(runs, 1, -1)
                    slope = loss.derivative(scores)
                    length = np.abs(slope) * norms[chosen].reshape(runs, 1, -1)
                    slope *= clip / np.maximum(length, clip)
                    # After overflow, a margin may be NaN, but the record's contribution must stay bounded.
                    np.nan_to_num(slope, copy=False)
                    total = slope @ examples
                if noise is not None:
                    total += noise[:, None, k]
                eta = learning_rate(step, schedule, rate, lam)[:, None]
                decay = w.sum(axis=2, keepdims=True) if as_run else w
                w -= eta * (lam[:, None] * decay + total / divisor)
                if step in wanted:
                    stored.append(w.copy())
    return w, np.array(stored).reshape(len(stored), *w.shape)
