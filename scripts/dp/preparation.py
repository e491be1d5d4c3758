"""Preparation steps, each with its privacy status.

A step is a function (Table, **options) -> Table, registered with whether its result for one row
depends on other private rows. Such a step spends privacy that nobody accounts for: whatever comes
after it has no finite epsilon (`dp.accounting.after_preparation`).
"""

from typing import NamedTuple

import numpy as np

from dp import data


class Table(NamedTuple):
    """Rows on their way to a mechanism.

    X: (n, d) floats. y: (n,) labels. columns: d names. bound: the public bound on ||x||_2 that the
    steps so far ensure, infinite where none does.
    """

    X: np.ndarray
    y: np.ndarray
    columns: tuple
    bound: float = np.inf


class Step(NamedTuple):
    apply: callable
    private_rows: bool
    what: str


STEPS = {}


def step(private_rows):
    """Decorator: registers a step under its function's name."""

    def decorate(function):
        STEPS[function.__name__] = Step(
            function, private_rows, function.__doc__.partition("\n")[0].rstrip(".")
        )
        return function

    return decorate


@step(private_rows=False)
def scale_by_constants(table, **constants):
    """Each column minus a public constant, divided by another: column name -> [centre, scale]."""
    _same_columns("scale_by_constants", constants, table.columns)
    centre, scale = np.array([constants[name] for name in table.columns], dtype=float).T
    if not (scale > 0).all():
        raise ValueError(
            f"scale_by_constants: the scale of {table.columns[int(np.argmin(scale > 0))]!r} "
            f"must be positive"
        )
    return table._replace(X=(table.X - centre) / scale, bound=np.inf)


@step(private_rows=False)
def scale_to_bounds(table, **bounds):
    """Each column clipped to its public bounds and mapped to [-1, 1]: column name -> [low, high]."""
    _same_columns("scale_to_bounds", bounds, table.columns)
    low, high = np.array([bounds[name] for name in table.columns], dtype=float).T
    if not (low < high).all():
        name = table.columns[int(np.argmin(low < high))]
        raise ValueError(f"scale_to_bounds: the bounds of {name!r} must be [low, high], low < high")
    X = 2 * (np.clip(table.X, low, high) - low) / (high - low) - 1
    return table._replace(X=X, bound=float(np.sqrt(len(low))))


@step(private_rows=False)
def row_norm(table):
    """Each row divided by its own norm: ||x|| = 1."""
    return table._replace(X=data.normalise_rows(table.X), bound=1.0)


@step(private_rows=False)
def clip(table, radius):
    """Rows longer than a public radius shortened to it, then all divided by it: ||x|| <= 1."""
    if not radius > 0:
        raise ValueError(f"clip: the radius must be positive, not {radius}")
    return table._replace(X=data.clip_rows(table.X / radius), bound=1.0)


@step(private_rows=False)
def constant_feature(table):
    """A further column of ones, a regularised intercept: the bound R becomes sqrt(R^2 + 1)."""
    return table._replace(
        X=np.column_stack([table.X, np.ones(len(table.X))]),
        columns=(*table.columns, "constant"),
        bound=float(np.hypot(table.bound, 1.0)),
    )


def _same_columns(name, given, columns):
    missing = [column for column in columns if column not in given]
    unknown = [column for column in given if column not in columns]
    if missing or unknown:
        problem = f"no values for {missing[0]!r}" if missing else f"no such column: {unknown[0]!r}"
        raise ValueError(f"{name}: {problem}")


def prepare(table, steps):
    """Apply steps in order.

    steps: a list of (name, options). Returns the table and, per step, a dictionary of its name, what
    it does and whether it looked at private rows. Raises where the rows end up without a bound.
    """
    record = []
    for name, options in steps:
        table = STEPS[name].apply(table, **options)
        record.append(
            {"step": name, "what": STEPS[name].what, "private_rows": STEPS[name].private_rows}
        )
    if not np.isfinite(table.bound):
        last = steps[-1][0] if steps else "no step at all"
        raise ValueError(
            f"after {last} the rows have no public bound on their norm: end with row_norm or clip"
        )
    return table, record
