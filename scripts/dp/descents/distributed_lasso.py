"""The lasso over data centres that share gradients: proximal gradient descent.

The objective is (1/2n) sum_i (y_i - w.x_i)^2 + lambda ||w||_1, labels in {-1, 1}, targets in [-1, 1].
"""

import math
from itertools import pairwise

import numpy as np

from dp.errors import Refused

STOPPED = ("iterations", "cost difference", "loss threshold", "diverged")


def soft_threshold(v: np.ndarray, lam: float | np.ndarray, rate: float | np.ndarray) -> np.ndarray:
    """sign(v) max(|v| - rate lam, 0): the proximal map of rate lam ||.||_1."""
    limit = rate * lam
    return v - np.minimum(np.maximum(v, -limit), limit)  # three passes over v


def printed_threshold(
    v: np.ndarray, lam: float | np.ndarray, rate: float | np.ndarray
) -> np.ndarray:
    """sign(v) (|v| - lam), as E18 prints it: no clip at zero, and no step size. Only 0 becomes 0."""
    return v - lam * np.sign(v)


SHRINKAGES = {"soft": soft_threshold, "as_printed": printed_threshold}


class Centre:
    """A data centre: it keeps its rows to itself and returns the gradient of its *summed* loss.

    The gradient X'X w - X'y is formed from the rows, or from X'X if that is less work. X: (n, d). y: (n,).
    """

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        self.rows, columns = np.shape(X)
        self._moment = y @ X
        self._X = X if 2 * self.rows < columns else None
        self._gram = None if self._X is not None else X.T @ X

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """sum_i (w.x_i - y_i) x_i at each of the points w (values, d)."""
        if self._X is not None:
            return (w @ self._X.T) @ self._X - self._moment
        return w @ self._gram - self._moment


def _mean(gradients, centres):
    return sum(gradients) / sum(centre.rows for centre in centres)


def _added_means(gradients, centres):
    return sum(g / centre.rows for g, centre in zip(gradients, centres, strict=True))


# How gradients of centres are combined: the mean over all rows; the sum over all rows, as E18 prints it; or
# the sum of the centres' own means, as E18's program computes it. If m centres have equal sizes, that is m
# times the mean, so a step is m times as long as its rate says.
GRADIENTS = {
    "mean": _mean,
    "sum": lambda gradients, centres: sum(gradients),
    "added_means": _added_means,
}


def largest_curvature(X: np.ndarray) -> float:
    """Largest eigenvalue of X'X/n, the Lipschitz constant of the mean loss' gradient."""
    n, d = np.shape(X)
    if d == 0:  # every column was constant
        return 0.0
    gram = X.T @ X if d <= n else X @ X.T
    return float(np.linalg.eigvalsh(gram)[-1]) / n


def proximal_gradient(
    centres: list,
    dimension: int,
    lam: np.ndarray,
    rate: np.ndarray,
    *,
    shrinkage: str = "soft",
    gradients: str = "mean",
    max_iterations: int = 3000,
    cost_difference: float = 1e-20,
    loss_threshold: float = 1e-4,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Iterative shrinkage: w <- shrink(w - rate * gradient), for many (lam, rate) at once.

    centres: objects with `rows` and `gradient(w)`, and nothing else. gradients: how their gradients are
    combined, see `GRADIENTS`. lam, rate: (values,). Iteration begins at zero. It ends when the cost changes
    by at most `cost_difference`, when the cost falls below `loss_threshold`, after `max_iterations`, or
    when the cost is no longer finite (or has grown 1e12 times). The start matters: with a small step,
    `max_iterations` ends the iteration far from the minimiser, and the step size regularises. So no value
    of lambda starts from the result of another.

    The coordinator needs no loss from the centres. The loss is quadratic, and y_i^2 is 1 for every label,
    so gradients are enough: sum_i (y_i - w.x_i)^2 / 2 = (w.(g(w) + g(0)) + n) / 2. For targets that are
    numbers, the right side is larger by the constant sum_i (1 - y_i^2) / 2. This moves no minimiser, but
    the cost may then never fall below `loss_threshold`.

    Returns weights (values, d), iterations (values,) and the rule that stopped each, one of `STOPPED`.
    """
    lam, rate = (np.asarray(a, dtype=float) for a in np.broadcast_arrays(lam, rate))
    shrink = SHRINKAGES[shrinkage]
    n = sum(centre.rows for centre in centres)
    weights = np.zeros((len(lam), dimension))
    iterations = np.full(len(lam), max_iterations)
    stopped = np.full(len(lam), "iterations", dtype=object)
    at_zero = sum(centre.gradient(np.zeros((1, dimension))) for centre in centres)[0]

    join = GRADIENTS[gradients]

    def evaluate(w, lam):
        found = [centre.gradient(w) for centre in centres]
        gradient = sum(found)
        loss = (np.einsum("ij,ij->i", w, gradient) + w @ at_zero + n) / 2
        return join(found, centres), loss / n + lam * np.abs(w).sum(axis=1)

    active, w = np.arange(len(lam)), weights.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        gradient, cost = evaluate(w, lam)
        limit = 1e12 * (1 + cost)
        for iteration in range(1, max_iterations + 1):
            w = shrink(w - rate[active, None] * gradient, lam[active, None], rate[active, None])
            gradient, new = evaluate(w, lam[active])
            diverged = ~(new <= limit[active])
            small = new < loss_threshold
            still = np.abs(new - cost) <= cost_difference
            done = diverged | small | still
            cost = new
            if done.any():
                stopped[active[still]] = "cost difference"
                stopped[active[small]] = "loss threshold"
                stopped[active[diverged]] = "diverged"
                iterations[active[done]] = iteration
                weights[active[done]] = w[done]
                active, w, gradient, cost = (a[~done] for a in (active, w, gradient, cost))
            if not len(active):
                break
    weights[active] = w
    return weights, iterations, stopped


class Preparation:
    """Standardises columns, and projects on principal components, both fitted on training rows.

    kind: "none", "standardise" (a constant column becomes zeros), or "pca" (standardised, then
    `components` principal components). X: the training rows (n, d).
    """

    KINDS = ("none", "standardise", "pca")

    def __init__(self, X: np.ndarray, kind: str, components: int | None = None) -> None:
        n, d = np.shape(X)
        self.mean, self.scale, self.basis = np.zeros(d), np.ones(d), None
        if kind == "none":
            return
        varies = X.min(axis=0) < X.max(axis=0)
        self.mean = X.mean(axis=0)
        self.scale = np.where(varies, X.std(axis=0), np.inf)
        if kind == "pca":
            Z = (X - self.mean) / self.scale
            if n < d:  # the smaller Gram matrix gives the same right singular vectors
                values, left = np.linalg.eigh(Z @ Z.T)
                keep = slice(None, -min(components, n - 1) - 1, -1)
                self.basis = Z.T @ (left[:, keep] / np.sqrt(np.maximum(values[keep], 1e-300)))
            else:
                self.basis = np.linalg.eigh(Z.T @ Z)[1][:, : -components - 1 : -1]

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Prepared rows (n, k), from rows (n, d)."""
        if np.all(self.scale == 1) and not self.mean.any():
            return X
        Z = (X - self.mean) / self.scale
        return Z if self.basis is None else Z @ self.basis

    def unapply(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (values, d) of the original columns and an intercept (values,), from w (values, k)."""
        w = (w if self.basis is None else w @ self.basis.T) / self.scale
        return w, -w @ self.mean


def clipped_sum(X: np.ndarray, y: np.ndarray, w: np.ndarray, clip: float) -> np.ndarray:
    """sum_i of (w.x_i - y_i) x_i, each clipped to norm `clip`, at the points w (values, d)."""
    slope = w @ X.T - y
    length = np.abs(slope) * np.sqrt(np.einsum("ij,ij->i", X, X))
    slope *= clip / np.maximum(length, clip)
    # If w.x overflows, the slope may not be a number. The record's share must stay bounded all the same.
    return np.nan_to_num(slope, copy=False) @ X


def split_rows(n: int, centres: int) -> list[slice]:
    """Consecutive shares of n rows, one per centre, whose sizes differ by at most one."""
    if centres > n:
        raise Refused(f"{n} rows cannot be divided among {centres} centres: give fewer centres")
    edges = [math.floor(n * k / centres) for k in range(centres + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]
