"""Simulates tables with known coefficients, to test intervals.

Columns are prepared like real ones: they are clipped to public bounds and mapped to [-1, 1]. A constant
column is added, and all are divided by the square root of their number. A category has no column for its
reference level.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dp import losses
from dp.rows import clip_rows

COEFFICIENTS = np.array([2.0, -1.5, 1.0, 0.5, 0.0, 0.0])


class Table(NamedTuple):
    """Simulated rows and their coefficients theta (d,).

    rows: a function (n, rng) -> (n, d) of rows with norm at most 1.
    """

    rows: Callable
    theta: np.ndarray


def _balls(n, rng):
    return clip_rows(rng.standard_normal((n, 6)), math.sqrt(6)) / math.sqrt(6)


BALLS = Table(_balls, COEFFICIENTS)


def table(columns: Callable, effects: list, intercept: float) -> Table:
    """A table of columns in [-1, 1]. effects: log-odds per unit of each column."""
    d = len(effects) + 1

    def rows(n, rng):
        return np.column_stack([columns(n, rng), np.ones(n)]) / math.sqrt(d)

    return Table(rows, math.sqrt(d) * np.append(effects, float(intercept)))


def normals(deviations: list, effects: list, intercept: float, correlation: float = 0.0) -> Table:
    """Clipped normal columns. correlation: the correlation of the first two columns."""

    def columns(n, rng):
        Z = rng.standard_normal((n, len(effects)))
        Z[:, 1] = correlation * Z[:, 0] + math.sqrt(1 - correlation**2) * Z[:, 1]
        return np.clip(Z * deviations, -1, 1)

    return table(columns, effects, intercept)


def _levels(n, rng, shares):
    """Dummy columns for all levels except the first."""
    return (rng.choice(len(shares), n, p=shares)[:, None] == np.arange(1, len(shares))).astype(
        float
    )


def hospital(rare: float, shares: list, strong: float, intercept: float, more: int = 0) -> Table:
    """Columns of age, a strong score, a rare condition, a category with these shares, and `more` others.

    strong: the score's log-odds per unit.
    """

    def columns(n, rng):
        age = np.clip(rng.normal(0, 0.4, n), -1, 1)
        score = np.clip(rng.normal(-0.3, 0.35, n), -1, 1)
        condition = np.where(rng.random(n) < rare, 1.0, -1.0)
        further = rng.uniform(-1, 1, (n, more))
        return np.column_stack([age, score, condition, _levels(n, rng, shares), further])

    levels = np.linspace(0.6, -0.4, len(shares) - 1)
    return table(columns, [0.8, strong, 0.5, *levels, *np.linspace(0.5, 0, more)], intercept)


def levels(first: list, second: list, effects: list, intercept: float) -> Table:

    def columns(n, rng):
        number = np.clip(rng.normal(0.1, 0.35, n), -1, 1)
        return np.column_stack([number, _levels(n, rng, first), _levels(n, rng, second)])

    return table(columns, effects, intercept)


def binary(shares: list, effects: list, intercept: float) -> Table:
    """Columns of -1 and 1; `shares` are the probabilities of 1."""
    return table(
        lambda n, rng: np.where(rng.random((n, len(shares))) < shares, 1.0, -1.0),
        effects,
        intercept,
    )


def skewed(scales: list, effects: list, intercept: float) -> Table:
    return table(
        lambda n, rng: np.minimum(2 * rng.exponential(scales, (n, len(scales))) - 1, 1),
        effects,
        intercept,
    )


def sums(deviation: float, effects: list, intercept: float) -> Table:
    """Clipped normal columns, of which the third is nearly proportional to the sum of the first two."""

    def columns(n, rng):
        Z = rng.standard_normal((n, len(effects)))
        Z[:, 2] = 0.7 * Z[:, 0] + 0.7 * Z[:, 1] + 0.2 * Z[:, 2]
        return np.clip(Z * deviation, -1, 1)

    return table(columns, effects, intercept)


# The rule for printing intervals (`dp.inference.answered`) was chosen on these designs.
CHOSEN = {
    "balls": BALLS,
    "rare_level": hospital(0.03, [0.55, 0.3, 0.15], 2.0, -0.5),
    "dominating": normals([1, 0.15, 0.15, 0.1, 0.1], [1, 2, -2, 1, 0], 0),
    "imbalanced": normals([0.5] * 5, [1, -0.7, 0.5, 0, 0.3], -3),
    "collinear": normals([0.5] * 5, [1, -0.5, 0.5, 0, 0.3], -0.3, 0.95),
    "plain": normals([0.6] * 3, [0.8, -0.5, 0.2], 0.3),
    "many_levels": hospital(0.1, [0.4, 0.3, 0.2, 0.07, 0.03], 1.0, -1.0, 2),
    "strong": normals([0.6] * 5, [3, -2, 1, 0, 0.5], 0.5),
    "imbalanced_rare": hospital(0.05, [0.7, 0.3], 1.5, -2.2),
    "dominated": normals([0.9, 0.9, 0.2, 0.2, 0.2, 0.08, 0.3], [0.7, -1, 1, 2, 0, -3, 0.5], -0.6),
    "collinear_few": normals([0.4] * 4, [0.7, 0.7, -0.5, 0.2], 0.2, 0.9),
    "skewed": skewed([0.08, 0.08, 0.08, 0.5, 0.5], [1.5, 1, 0, 0.6, -0.4], 1),
    "many": normals([0.5] * 14, np.linspace(1, -1, 14), 0.2),
    "rare_class": normals([0.6] * 3, [0.8, -0.5, 0.3], -4),
    "weak": normals([0.35] * 9, [1, 1, -1, 0.5, 0.5, 0, 0, -0.3, 0.2], -0.8),
}
# The rule was then tested on these.
HELD_OUT = {
    "hospital": hospital(0.02, [0.6, 0.25, 0.1, 0.05], 1.5, -0.8, 1),
    "clinic": hospital(0.3, [0.5, 0.5], 1.0, 0.5),
    "yes_no": binary([0.5, 0.2, 0.05, 0.7], [0.4, -0.5, 0.7, 0.2], -0.4),
    "two_categories": levels([0.5, 0.3, 0.2], [0.7, 0.2, 0.1], [0.9, 0.3, -0.2, 0.4, -0.3], 0.6),
    "dominating_one": normals([1, 0.12, 0.2, 0.1], [0.8, -2.5, 1.5, 0], 0.3),
    "dominated_six": normals([0.9, 0.25, 0.25, 0.25, 0.1, 0.05], [1.2, 0.8, -0.8, 0, 2, -2], -1),
    "collinear_near": normals([0.5] * 5, [0.6, 0.6, -0.6, 0, 0.4], 0.5, 0.98),
    "three_way": sums(0.45, [0.6, -0.4, 0.5, 0, 0.3], 0),
    "imbalanced_few": normals([0.5] * 4, [1.2, -0.8, 0, 0.4], -2.6),
    "rare_outcome": hospital(0.1, [0.5, 0.5], 1.0, -3.8),
    "rarer_class": normals([0.5] * 4, [0.7, -0.6, 0.4, 0], -4.5),
    "strong_few": normals([0.6] * 4, [2.5, -2, 1.5, 0], 0),
    "skewed_few": skewed([0.15, 0.15, 0.08, 0.3], [1, -0.8, 1.2, 0.3], 1.5),
    "many_weak": normals([0.45] * 11, np.linspace(-0.8, 1, 11), -0.5),
    "plain_five": normals([0.55] * 4, [0.6, -0.3, 0, 0.4], -0.1),
}


class Design(NamedTuple):
    """A simulated model, and the methods whose intervals are tested on it.

    ways: method -> options of the mechanism. loss: the loss of non-private fits. right: whether `loss` is
    the model's negative log likelihood. truth: the true coefficients, None if unknown.
    """

    mechanism: str
    ways: dict
    loss: object
    right: bool
    table: Table
    truth: object = None


TAU = 0.25
LOG_COSH = {"log_cosh": {"tau": TAU}}
AWARE = {"noise_aware": {"robust": False}}
ROBUST = AWARE | {"noise_aware_robust": {"robust": True}}
WIDTHS = {name: own | {"loss": LOG_COSH} for name, own in ROBUST.items()}
ITERATES = {"noise_aware": {"iterates": "late"}, "noise_aware_last": {"iterates": "last"}}
LOGISTIC = losses.get("logistic")
HUBER = losses.get("huber_residual", tau=TAU)
DESIGNS = {
    "logistic": Design("noise_aware_logistic", ROBUST, LOGISTIC, True, BALLS, COEFFICIENTS),
    "other": Design("noise_aware_logistic", ROBUST, LOGISTIC, False, BALLS),
    "linear": Design("noise_aware_log_cosh", WIDTHS, losses.get(LOG_COSH), False, BALLS),
    # Clipping targets to [-1, 1] shrinks only errors above TAU in magnitude, and leaves them above TAU.
    # So the loss's slope, which is the error clipped at TAU, remains symmetric.
    "boosted": Design("noise_aware_boosted", ITERATES, HUBER, False, BALLS, COEFFICIENTS / 4),
    "boosted_uneven": Design(
        "noise_aware_boosted", ITERATES, HUBER, False, BALLS, COEFFICIENTS / 4
    ),
} | {
    name: Design("noise_aware_logistic", AWARE, LOGISTIC, True, simulated, simulated.theta)
    for name, simulated in (CHOSEN | HELD_OUT).items()
}


def draw(name: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw n rows (n, d) of norm at most 1, and their labels or numeric targets, from a design.

    Labels follow a logistic model, except in "other": there, the probability of label 1 stays within
    [0.1, 0.9], and has a jump and a kink. Targets are linear in the rows plus t-distributed errors (three
    degrees of freedom), clipped to [-1, 1]. In "boosted_uneven", errors are proportional to the first
    column's magnitude.
    """
    design = DESIGNS[name]
    X = design.table.rows(n, rng)
    z = X @ design.table.theta
    if design.loss.residual:
        spread = 0.5 * np.abs(X[:, 0]) if name == "boosted_uneven" else 0.1
        return X, np.clip(z / 4 + spread * rng.standard_t(3, n), -1, 1)
    if design.truth is not None:
        p = 1 / (1 + np.exp(-z))
    else:
        p = 0.1 + 0.8 * (z + np.abs(X[:, 1]) > 0.2) * (1 - 0.5 * np.exp(-np.abs(z)))
    return X, np.where(rng.random(n) < p, 1, -1)
