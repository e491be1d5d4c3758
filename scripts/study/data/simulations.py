"""The functions that simulate rows."""

import inspect

import numpy as np

from dp import rows as examples
from dp.rows import slices


def simulate_signs(
    rows: int, columns: int, true_columns: int, strength: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of independent random signs, and labels of a logistic model in some of the columns.

    `true_columns` random columns have weight `strength` or -strength; others have 0. P(y = 1) = 1/(1 +
    e^-w.x), so all true columns are equally informative.

    Returns X (rows, columns) of -1 and 1, y (rows,) in {-1, 1} and the weights w (columns,).
    """
    if not 1 <= true_columns <= columns:
        raise ValueError(f"of {columns} columns, {true_columns} cannot be the true ones")
    chosen = rng.permutation(columns)[:true_columns]
    weights = np.zeros(columns)
    weights[chosen] = strength * rng.choice([-1.0, 1.0], true_columns)
    X = np.empty((rows, columns), np.int8)
    for part in slices(rows, 1024):
        X[part] = 2 * rng.integers(0, 2, X[part].shape, np.int8) - 1
    chance = 1 / (1 + np.exp(-(X[:, chosen] @ weights[chosen])))
    return X, np.where(rng.random(rows) < chance, 1, -1).astype(np.int8), weights


# `simulate` of a source, except `mixture` -> function
KINDS = {
    "separable": examples.simulate_separable,
    "unseparable": examples.simulate_unseparable,
    "expanded_band": examples.simulate_expanded_band,
    "linear": examples.simulate_linear,
    "signs": simulate_signs,
}


def keys(kind):
    """(needed, optional) keys of a source: the function's arguments."""
    taken = inspect.signature(KINDS[kind]).parameters.values() if kind in KINDS else ()
    needed = [each.name for each in taken if each.default is each.empty and each.name != "rng"]
    return needed, [each.name for each in taken if each.default is not each.empty]
