"""Limited-memory BFGS on many tilted objectives with wide rows, for `dp.solvers.newton`.

Only a few eigenvalues of wide rows' Hessians are far above lambda. They belong to the rows' principal
directions, which a sample reveals (Halko, Martinsson, Tropp, SIAM Review 53, 2011). With an initial inverse
Hessian built from these directions, every step reduces the gradient norm to about a tenth (Nocedal,
Mathematics of Computation 35, 1980).

Arrays hold one column per restart.
"""

import copy
from collections import deque

import numpy as np

from dp import losses
from dp.solvers.passes import Implicit, Passes

THINNING, LEAST, MOST = 16, 1 << 10, 1 << 13  # the sample has one row in 16, within these bounds
MANY = 4  # minimum number of restarts at which products cost more than reading rows
NEAR = 1e-5  # ratio of gradient norm to a typical row's norm that single precision can reach
MAIN = 48
PAIRS = 40  # number of latest steps and gradient changes kept
LIMIT = 20  # passes after which another method continues
SLOW = 0.7  # a step fails if more than this share of the gradient norm remains
RETRIES = 4  # maximum number of consecutive failed steps


def main_directions(
    X: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, float]:
    """Orthonormal principal directions (d, k) and mean squares of the rows' coordinates.

    The mean squares are (k,), one per direction, and a number, the average over all other directions.
    """
    n, d = X.shape
    k = min(MAIN, d, max(1, n // 20))  # n rows do not resolve more
    basis = np.linalg.qr(X.T @ (X @ rng.standard_normal((d, k))))[0]
    along = X @ basis
    square = np.einsum("ij,ij->", X, X)
    gram = along.T @ along / n
    if not np.isfinite(gram).all():  # gradients will not be finite either
        return basis, np.zeros(k), 0.0
    values, vectors = np.linalg.eigh(gram)
    rest = (square / n - values.sum()) / max(1, d - k)
    return basis @ vectors, np.maximum(values, 0.0), max(rest, 0.0)


class InverseHessians:
    """An approximation of each restart's inverse Hessian, improved by every step.

    main: as from `main_directions`. curvature: (restarts,), the mean of l'' over rows. lam: (restarts,).
    """

    def __init__(self, main: tuple, curvature: np.ndarray, lam: np.ndarray) -> None:
        self.directions, values, rest = main
        self.common = 1 / (rest * curvature + lam)
        self.weights = 1 / (values[:, None] * curvature + lam) - self.common
        self.pairs = deque(maxlen=PAIRS)

    def copy(self) -> "InverseHessians":
        other = copy.copy(self)
        other.pairs = self.pairs.copy()
        return other

    def learn(self, active: np.ndarray, step: np.ndarray, change: np.ndarray) -> None:
        """Learn from steps (d, active) and the changes of gradients along them."""
        steps, changes = np.zeros((2, len(step), len(self.common)))
        both = np.full(len(self.common), np.inf)
        steps[:, active], changes[:, active] = step, change
        both[active] = (step * change).sum(axis=0)
        self.pairs.append((steps, changes, both))

    def times(self, active: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The inverse Hessians times gradients (d, active), by the L-BFGS two-loop recursion."""
        part = slice(None) if len(active) == len(self.common) else active
        pairs = [(s[:, part], y[:, part], both[part]) for s, y, both in self.pairs]
        product, shares = gradient.copy(), []
        for step, change, both in reversed(pairs):
            shares.append((step * product).sum(axis=0) / both)
            product -= shares[-1] * change
        product = self.first(product, part)
        for (step, change, both), share in zip(pairs, reversed(shares), strict=True):
            product += (share - (change * product).sum(axis=0) / both) * step
        return product

    def first(self, gradient: np.ndarray, part: slice | np.ndarray) -> np.ndarray:
        """The first approximation times gradients (d, active), which are overwritten."""
        along = self.weights[:, part] * (self.directions.T @ gradient)
        gradient *= self.common[part]
        gradient += self.directions @ along
        return gradient


def full_steps(
    rows: Passes,
    lam: np.ndarray,
    tilt: np.ndarray,
    W: np.ndarray,
    goal: float,
    inverse: InverseHessians,
    further: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Take full steps from W (d, restarts) until the gradient norm is at most goal or stops falling.

    inverse: learns from every step. Each step starts from the best point so far. After more than RETRIES
    consecutive failed steps (see SLOW), the search ends. further: take one more step after the goal is met.
    Returns weights, gradient norms (before the extra step; not finite if no gradient was) and passes over
    the rows.
    """
    trial, W, norm = W, W.copy(), np.full(W.shape[1], np.inf)
    best = np.zeros_like(W)  # gradients at W
    passes, failed = np.zeros((2, W.shape[1]), dtype=int)
    active, last = np.arange(W.shape[1]), None
    for _ in range(LIMIT):
        passes[active] += 1
        gradient = rows.gradient(trial) + lam[active] * trial + tilt[:, active]
        if last is not None:
            inverse.learn(active, trial - last[0], gradient - last[1])
        size = np.linalg.norm(gradient, axis=0)
        slow = ~(size < SLOW * norm[active])
        failed[active] = np.where(slow, failed[active] + 1, 0)
        better = size < norm[active]
        taken = active[better]
        W[:, taken], best[:, taken] = trial[:, better], gradient[:, better]
        norm[taken] = size[better]
        going = (norm[active] > goal) & (failed[active] <= RETRIES) & np.isfinite(size)
        if further or going.any():
            ahead = W[:, active] - inverse.times(active, best[:, active])
        if further:
            met = norm[active] <= goal
            W[:, active[met]] = ahead[:, met]
        if not going.any():
            break
        last = trial[:, going], gradient[:, going]
        active, trial = active[going], ahead[:, going]
    return W, norm, passes


def minimise(
    X: np.ndarray,
    y: np.ndarray,
    lam: np.ndarray,
    tilt: np.ndarray,
    loss: losses.MarginLoss,
    size: float,
    start: np.ndarray,
    tolerance: float,
    learnt: tuple | None = None,
) -> tuple:
    """Weights, gradient norms, passes over the rows, and `learnt`.

    size: norm of a typical row. learnt: (n, `InverseHessians`) from an earlier call on n similar rows.
    It makes a sample unnecessary unless X has more than 2n rows.
    """
    if learnt is None or len(X) > 2 * learnt[0] or learnt[1].common.shape != lam.shape:
        start, inverse = _sample(X, y, lam, tilt, loss, size, start)
        learnt = len(X), inverse
    inverse = learnt[1].copy()
    rows = Implicit(X, y, loss, size, np.float64)
    W, passes = start, 0
    if len(lam) >= MANY:
        rows.dtype, goal = np.float32, max(NEAR * size, tolerance)
        W, _, passes = full_steps(rows, lam, tilt, W, goal, inverse, further=True)
        rows.dtype = np.float64
    W, norm, more = full_steps(rows, lam, tilt, W, tolerance, inverse)
    return W, norm, passes + more, (learnt[0], inverse)


def _sample(X, y, lam, tilt, loss, size, W):
    thinning = max(1, min(THINNING, len(X) // LEAST), len(X) // MOST)
    sample = np.array(X[::thinning], dtype=float), y[::thinning]
    rows = Implicit(*sample, loss, size, np.float64)
    main = main_directions(rows.X, np.random.default_rng(0))
    if not W.any():  # a given starting point may be better than the sample's minimiser
        inverse = InverseHessians(main, np.full(len(lam), loss.c), lam)
        W, *_ = full_steps(rows, lam, tilt, W, 0.1 * size / np.sqrt(rows.n), inverse)
    curvature = rows.hessians(len(lam))
    rows.gradient(W, curvature)
    return W, InverseHessians(main, curvature.mean(axis=0), lam)
