"""The lasso over data centres as Einarsson's (2018) program runs it."""

import numpy as np

from dp.descents.distributed_lasso import Preparation, printed_threshold
from dp.mechanisms import register
from dp.mechanisms.lasso import DistributedLasso
from dp.options import Choice, Flag, NonNegative, Positive, Whole

LIMIT = 1e150  # the squares of larger weights overflow


class Centre:
    """A data centre, which returns its own loss, sum_i (w.x_i - y_i)^2 / 2n, and that loss's gradient.

    Rows X (n, d) with more rows than columns are replaced by the triangular factor of X. It has the
    same gradient, and the same loss up to a constant, to the accuracy of a sum over the rows. (X'X is
    faster, but its loss is less accurate than the difference at which the program stops.)
    """

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        self._rows, columns = X.shape
        self._beyond = 0.0
        if self._rows > columns:
            basis, factor = np.linalg.qr(X)
            projected = basis.T @ y
            self._beyond = ((y - basis @ projected) ** 2).sum()
            X, y = factor, projected
        self._X, self._y = X, y

    def look(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradients (values, d) and losses (values,) at points w (values, d)."""
        residuals = w @ self._X.T - self._y
        squares = np.einsum("ij,ij->i", residuals, residuals) + self._beyond
        return residuals @ self._X / self._rows, squares / (2 * self._rows)


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
    before = np.full((len(centres), len(lam)), np.inf)  # no loss is compared with the first
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(max_iterations):
            gradients, costs = map(np.array, zip(*(c.look(w) for c in centres), strict=True))
            rules = {
                "cost difference": np.abs(costs - before) < cost_difference,
                "loss threshold": costs < loss_threshold,
            }
            ended = np.zeros(len(active), dtype=bool)
            for rule, applies in rules.items():
                for gradient, here in zip(gradients, applies, strict=True):
                    now = here & ~ended
                    results[active[now]] = gradient[now] if returned == "gradient" else w[now]
                    stopped[active[now]] = rule
                    ended |= now
            w = printed_threshold(
                w - rate[active, None] * gradients.sum(axis=0), lam[active, None], 1
            )
            diverged = ~ended & ~(np.abs(w) < LIMIT).all(axis=1)
            stopped[active[diverged]] = "diverged"
            steps[active[ended]], steps[active[diverged]] = step, step + 1
            ongoing = ~(ended | diverged)
            active, w, before = active[ongoing], w[ongoing], costs[:, ongoing]
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
        "preparation": Choice(*Preparation.KINDS, default="standardise"),
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
