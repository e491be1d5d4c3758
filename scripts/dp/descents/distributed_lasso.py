"""The lasso by proximal gradient descent, over data centres that share gradients.

The objective is (1/2n) sum_i (y_i - w.x_i)^2 + lambda ||w||_1, with labels y_i in {-1, 1} or targets y_i in
[-1, 1].
"""

import math
from itertools import pairwise

import numpy as np

from dp_privacy.errors import Refused

LOOKED_AT = 50  # maximum number of iterations whose costs are computed together
HELD = 1 << 17  # maximum number of weights stored over these iterations: 1 MB
STOPPED = ("iterations", "cost difference", "loss threshold", "diverged")


def soft_threshold(v: np.ndarray, lam: float | np.ndarray, rate: float | np.ndarray) -> np.ndarray:
    """sign(v) max(|v| - rate lam, 0): the proximal map of rate lam ||.||_1."""
    limit = rate * lam
    return v - np.minimum(np.maximum(v, -limit), limit)


def printed_threshold(
    v: np.ndarray, lam: float | np.ndarray, rate: float | np.ndarray
) -> np.ndarray:
    """sign(v) (|v| - lam), as Einarsson (2018, E18) prints it: small v change sign.

    It lacks a step size and a clip at zero.
    """
    return v - lam * np.sign(v)


SHRINKAGES = {"soft": soft_threshold, "as_printed": printed_threshold}


class Centre:
    """A data centre, which returns only the gradient of its *summed* loss.

    The gradient X'X w - X'y is computed from the rows or from X'X, whichever is less work.

    X: (n, d). y: (n,). count: the number of centres of equal size whose rows this object combines.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, count: int = 1) -> None:
        self.rows, columns = np.shape(X)
        self.count = count
        self._moment = y @ X
        self._X = X if 2 * self.rows < columns else None
        self._gram = None if self._X is not None else X.T @ X

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """sum_i (w.x_i - y_i) x_i at each point w (values, d)."""
        gradient = w @ self._gram if self._X is None else (w @ self._X.T) @ self._X
        gradient -= self._moment
        return gradient


def _mean(centres):
    return [1 / sum(centre.rows for centre in centres)] * len(centres)


# A step follows a weighted sum of the centres' gradients: the mean over all rows, the sum over all rows (as
# E18 prints it), or the sum of the centres' means (as E18's program computes it). For m centres of one
# size, the last is m times the first, so steps are m times as long.
GRADIENTS = {
    "mean": _mean,
    "sum": lambda centres: [1.0] * len(centres),
    "added_means": lambda centres: [centre.count / centre.rows for centre in centres],
}


def largest_curvature(X: np.ndarray) -> float:
    """Largest eigenvalue of X'X/n, the Lipschitz constant of the mean loss's gradient."""
    n, d = np.shape(X)
    if d == 0:
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

    centres: objects with `rows`, `count` and `gradient(w)`. gradients: a rule of `GRADIENTS`. lam, rate:
    (values,). Iteration from zero ends after `max_iterations`, or when the cost changes by at most
    `cost_difference`, falls below `loss_threshold`, exceeds 1.5e12 or is not finite. With a small step,
    iteration ends far from the minimiser, so the step size regularises. So no lambda is warm-started.

    Since the loss is quadratic and y_i^2 is 1 for every label, the coordinator needs only the summed
    gradient g: sum_i (y_i - w.x_i)^2 / 2 = (w.(g(w) + g(0)) + n) / 2. For numeric targets, the right side
    is larger by the constant sum_i (1 - y_i^2) / 2. This does not move the minimiser, but may keep the cost
    above `loss_threshold`.

    Returns weights (values, d), iterations (values,) and the rule that stopped each, one of `STOPPED`.
    """
    lam, rate = (np.array(a, dtype=float) for a in np.broadcast_arrays(lam, rate))
    shrink = SHRINKAGES[shrinkage]
    n = sum(centre.rows for centre in centres)
    first, *others = shares = GRADIENTS[gradients](centres)
    alike = all(share == first for share in others)
    at_zero = sum(centre.gradient(np.zeros((1, dimension))) for centre in centres)[0]
    weights = np.zeros((len(lam), dimension))
    iterations = np.full(len(lam), max_iterations)
    stopped = np.full(len(lam), "iterations", dtype=object)

    def at(w):
        """The sum of all rows' gradients at w, and the gradient that a step follows."""
        centre_gradients = [centre.gradient(w) for centre in centres]
        total = sum(centre_gradients)
        if alike:
            return total, total
        return total, sum(
            share * gradient for share, gradient in zip(shares, centre_gradients, strict=True)
        )

    active, w, done = np.arange(len(lam)), weights, 0
    cost = np.full(len(lam), 0.5)  # at zero weights
    limit = 1e12 * (1 + cost[0])
    with np.errstate(over="ignore", invalid="ignore"):
        _, along = at(w)
        while len(active) and done < max_iterations:
            size = min(max_iterations - done, LOOKED_AT, max(1, HELD // max(1, w.size)))
            points, totals = np.empty((2, size, *w.shape))
            lam_, rate_ = lam[active, None], rate[active, None]
            pace = rate_ * first if alike else rate_
            for k in range(size):
                w = points[k] = shrink(w - pace * along, lam_, rate_)
                totals[k], along = at(w)
            costs = np.einsum("tij,tij->ti", points, totals) + points @ at_zero + n
            costs = costs / (2 * n) + lam[active] * np.abs(points).sum(axis=2)
            reasons = {
                "cost difference": np.abs(np.diff(costs, axis=0, prepend=cost[None]))
                <= cost_difference,
                "loss threshold": costs < loss_threshold,
                "diverged": ~(costs <= limit),
            }
            ends = np.logical_or.reduce(list(reasons.values()))
            ended = ends.any(axis=0)
            where = ends.argmax(axis=0)[ended], np.flatnonzero(ended)
            iterations[active[ended]] = done + where[0] + 1
            weights[active[ended]] = points[where]
            for reason, applies in reasons.items():  # if several reasons apply, the last one counts
                stopped[active[ended][applies[where]]] = reason
            active, w, along, cost = (a[~ended] for a in (active, w, along, costs[-1]))
            done += size
    weights[active] = w
    return weights, iterations, stopped


class Preparation:
    """Standardisation and principal components, fitted on training rows X (n, d).

    kind: "none", "standardise" (a constant column becomes zeros), or "pca" (standardised, then
    `components` principal components).
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
            if n < d:  # the smaller Gram matrix gives the same basis
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
        """Convert w (values, k) to weights (values, d) of the original columns and intercepts (values,)."""
        w = (w if self.basis is None else w @ self.basis.T) / self.scale
        return w, -w @ self.mean


def clipped_sum(X: np.ndarray, y: np.ndarray, w: np.ndarray, clip: float) -> np.ndarray:
    """Sum over i of (w.x_i - y_i) x_i, each clipped to norm `clip`, at each point w (values, d)."""
    slope = w @ X.T - y
    length = np.abs(slope) * np.sqrt(np.einsum("ij,ij->i", X, X))
    slope *= clip / np.maximum(length, clip)
    # If w.x overflows, the slope may be NaN, but the record's contribution must stay bounded.
    return np.nan_to_num(slope, copy=False) @ X


def split_rows(n: int, centres: int) -> list[slice]:
    """Slices of n rows into consecutive parts, one per centre, whose sizes differ by at most one."""
    if centres > n:
        raise Refused(f"{n} rows cannot be divided among {centres} centres: give fewer centres")
    edges = [math.floor(n * k / centres) for k in range(centres + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]
