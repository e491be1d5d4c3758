"""The lasso over data centres as Einarsson's (2018) program runs it."""

from functools import cached_property

import numpy as np

from dp.descents import distributed_lasso
from dp.mechanisms import register
from dp.mechanisms.lasso import DistributedLasso
from dp.options import Choice, Flag, NonNegative, Positive, Whole

LIMIT = 1e150  # the squares of larger weights overflow


class Centre(distributed_lasso.Centre):
    """A data centre, which returns its own loss, sum_i (w.x_i - y_i)^2 / 2n, and that loss's gradient.

    A loss that follows from the gradient costs little, but is less accurate than the difference at which
    the program stops. So it comes with a bound on its error, and `loss` is the accurate one.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        super().__init__(X, y)
        self._data, self._square = (X, y), y @ y
        self._length = np.linalg.norm(X)
        # The error of a product of length d is at most d units of the sum of its magnitudes (Higham,
        # Accuracy and Stability, 2002, section 3.1). There are two of length d, and one of length n.
        self._unit = 2 * (X.shape[0] + X.shape[1] + 2) * np.finfo(float).eps

    def look(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The gradients (values, d), losses (values,) and their largest errors at points w (values, d)."""
        gradient = self.gradient(w)
        squares = np.einsum("ij,ij->i", w, gradient - self._moment) + self._square
        # |w|'|X|'|X||w| + 2 |w|'|X|'|y| + y'y is at most the square of |X| |w| + |y|.
        length = self._length * np.sqrt(np.einsum("ij,ij->i", w, w)) + np.sqrt(self._square)
        gradient /= self.rows
        return gradient, squares / (2 * self.rows), self._unit * length**2 / (2 * self.rows)

    @cached_property
    def _factor(self):
        """Rows and labels with the same losses up to a constant, and this constant.

        They are the triangular factor of X, if X has more rows than columns.
        """
        X, y = self._data
        if X.shape[0] <= X.shape[1]:
            return X, y, 0.0
        basis, factor = np.linalg.qr(X)
        projected = basis.T @ y
        return factor, projected, ((y - basis @ projected) ** 2).sum()

    def loss(self, w: np.ndarray) -> np.ndarray:
        """Losses (values,) at points w (values, d), to the accuracy of a sum over the rows."""
        X, y, beyond = self._factor
        residuals = w @ X.T - y
        return (np.einsum("ij,ij->i", residuals, residuals) + beyond) / (2 * self.rows)


def descend(
    centres: list,
    dimension: int,
    lam: np.ndarray,
    rate: np.ndarray,
    *,
    returned: str = "gradient",
    max_iterations: int = 3000,
    cost_difference: float = 1e-20,
    loss_threshold: float = 1e-4,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The iterations of E18's program, for many (lam, rate) at once.

    Before every step, each centre compares its own loss, without the penalty, with its loss before the
    last step and with `loss_threshold`. If a rule applies in some centre, the program ends, and
    *assigns that centre's gradient to the weights*. The first rule, and then the first centre, counts.
    Otherwise it takes a step along the sum of the centres' mean gradients, with the printed shrinkage.

    returned: "gradient", as in the program, or the "weights" at that point. Without a stop both are the
    weights after `max_iterations` steps. A run with weights beyond `LIMIT` has "diverged". In the
    program, its weights become infinite, and classify no row correctly.

    Returns weights (values, d), steps (values,) and the rule that stopped each run.
    """
    lam, rate = (np.array(a, dtype=float) for a in np.broadcast_arrays(lam, rate))
    results = np.zeros((len(lam), dimension))
    steps = np.full(len(lam), max_iterations)
    stopped = np.full(len(lam), "iterations", dtype=object)
    active, w = np.arange(len(lam)), np.zeros((len(lam), dimension))
    w_before = np.full_like(w, np.nan)  # no loss is compared with the first
    before = np.full((len(centres), len(lam)), np.inf)
    errors_before = np.zeros_like(before)
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(max_iterations):
            gradients, costs, errors = zip(*(centre.look(w) for centre in centres), strict=True)
            costs, errors = np.array(costs), np.array(errors)
            # Where a rule may apply, accurate losses decide.
            near = ~(np.abs(costs - before) > cost_difference + errors + errors_before)
            near |= ~(costs - errors > loss_threshold)
            alike, small = np.zeros((2, *near.shape), dtype=bool)
            for k in np.flatnonzero(near.any(axis=1)):
                now, last = (centres[k].loss(points[near[k]]) for points in (w, w_before))
                alike[k, near[k]] = np.abs(now - last) < cost_difference
                small[k, near[k]] = now < loss_threshold
            ended = np.zeros(len(active), dtype=bool)
            for rule, applies in (("cost difference", alike), ("loss threshold", small)):
                for gradient, here in zip(gradients, applies, strict=True):
                    now = here & ~ended
                    results[active[now]] = gradient[now] if returned == "gradient" else w[now]
                    stopped[active[now]] = rule
                    ended |= now
            next_w = w - rate[active, None] * sum(gradients)
            next_w = distributed_lasso.printed_threshold(next_w, lam[active, None], 1)
            diverged = ~ended & ~(np.abs(next_w) < LIMIT).all(axis=1)
            stopped[active[diverged]] = "diverged"
            steps[active[ended]], steps[active[diverged]] = step, step + 1
            ongoing = ~(ended | diverged)
            w_before, w, before, errors_before = w, next_w, costs, errors
            if not ongoing.all():
                active, w_before, w = (a[ongoing] for a in (active, w_before, w))
                before, errors_before = (a[:, ongoing] for a in (before, errors_before))
            if not len(active):
                break
    results[active] = w
    return results, steps, stopped


@register("distributed_lasso_as_run")
class DistributedLassoAsRun(DistributedLasso):
    """Without privacy: E18's program, which returns a gradient if a stopping rule ends it.

    The program is github.com/IngvarBjarki/master_thesis: the loops of its files main.py and tuning.py.
    See `descend`.

    returned: "gradient", or the "weights" in its place, the repaired form.
    rate: the step size. Other options are those of `distributed_lasso`.
    """

    numbers = False
    options = {
        "returned": Choice("gradient", "weights"),
        "centres": Whole(2),
        "part": Choice("all", "one"),
        "preparation": Choice(*distributed_lasso.Preparation.KINDS, default="standardise"),
        "components": Whole(100),
        "rate": Positive(0.01),
        "bias": Flag(True),
        "max_iterations": Whole(3000),
        "cost_difference": NonNegative(1e-20),
        "loss_threshold": NonNegative(1e-4),
    }

    def _iterate(self, X, y, parts, p, lams, rates):
        return descend(
            [Centre(X[part], y[part]) for part in parts],
            X.shape[1],
            lams,
            rates,
            returned=p.returned,
            max_iterations=p.max_iterations,
            cost_difference=p.cost_difference,
            loss_threshold=p.loss_threshold,
        )
