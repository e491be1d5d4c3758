"""Preparation steps, each with its privacy status.

A step is a function (Table, **options) -> Table. If its result for one row depends on other private rows,
it spends privacy that is not accounted for: later releases have no finite epsilon
(`dp_privacy.accounting.after_preparation`).
"""

import inspect
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dp.rows import clip_rows, normalise_rows, row_norms, slices
from study.data.components import BLOCK_ROWS, blocks, moments, principal_components


class PutOff(NamedTuple):
    """Deferred steps (name, options), and the columns of the rows that they will be applied to."""

    columns: tuple = ()
    steps: tuple = ()

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Rows (n, d') as floats, after the steps."""
        if self.steps:
            y = np.zeros(len(X), np.int8)
            X = apply_row_wise(Table(X, y, tuple(self.columns)), self.steps).X  # type: ignore[arg-type]
        return np.asarray(X, dtype=float)


class Table(NamedTuple):
    """Rows on their way to a mechanism.

    X: (n, d) numbers, integers until a step needs floats.
    y: (n,) labels -1 and 1, or the index of a class in `classes`, or numbers in [-1, 1].
    columns: d names.
    bound: the public bound on ||x||_2 after the steps so far, infinite if there is none.
    train_rows: the number of training rows, which come first, and on which steps may be fitted;
        further rows are an official test part. None: no test part.
    classes: names of the classes, () if the labels are -1 and 1.
    pair: names of the labels -1 and 1, if known.
    groups: per one-hot categorical feature, its column names; each row is 1 in one of them and 0
        in the others.
    later: steps still to be applied to X. `columns` and the bounds describe rows after these steps.
    coordinate_bound: the public bound on every |x_j|, infinite if none is known besides `bound`.
    column_bounds: d public bounds, one per |x_j|, () if there are none.
    blocks: column numbers of each one-hot feature with `column_bounds`; each row has at most one of them
        that is not 0.
    target: for numeric y, (name, low, high) of the target in its own units.
    """

    X: np.ndarray
    y: np.ndarray
    columns: tuple
    bound: float = np.inf
    train_rows: int | None = None
    classes: tuple = ()
    pair: tuple = ()
    groups: tuple = ()
    later: PutOff = PutOff()
    coordinate_bound: float = np.inf
    column_bounds: tuple = ()
    blocks: tuple = ()
    target: tuple = ()


class Step(NamedTuple):
    """apply: the function. what: what it does, in a phrase.

    private_rows: whether a new row depends on other rows. selects: whether the step removes rows.
    premise: what a guarantee after the step takes as public, "" if nothing.
    """

    apply: Callable
    private_rows: bool
    what: str
    selects: bool
    premise: str

    @property
    def row_wise(self) -> bool:
        """Whether each new row comes from one old row alone."""
        return not self.private_rows and not self.selects

    @property
    def random(self) -> bool:
        """Whether the step draws random numbers and is called with `rng`."""
        return "rng" in inspect.signature(self.apply).parameters


STEPS = {}  # type: ignore[var-annotated]


def step(private_rows: bool, selects: bool = False, premise: str = "") -> Callable:
    """Decorator that registers a step by its function's name. Arguments: fields of `Step`."""

    def decorate(function):
        STEPS[function.__name__] = Step(
            function,
            private_rows,
            function.__doc__.partition("\n")[0].rstrip("."),
            selects,
            premise,
        )
        return function

    return decorate


@step(
    private_rows=False,
    selects=True,
    premise="how many rows are of the two classes (a record whose class changes can change it), and that "
    "each class has one",
)
def binary(table: Table, negative: str | int, positive: str | int) -> Table:
    """Only the rows of two classes, with labels -1 and 1; how many there are is public."""
    classes = [str(name) for name in table.classes]
    if not classes:
        raise ValueError("binary: the labels are two classes already: leave 'positive' out")
    wanted = [str(negative), str(positive)]
    for name in wanted:
        if name not in classes:
            raise ValueError(f"binary: no class {name!r} (classes: {', '.join(classes)})")
    if wanted[0] == wanted[1]:
        raise ValueError(f"binary: negative and positive are both {wanted[0]!r}")
    chosen = np.isin(table.y, [classes.index(name) for name in wanted])
    y = np.where(table.y[chosen] == classes.index(wanted[1]), 1, -1).astype(np.int8)
    train = chosen[: table.train_rows]
    for name, label in zip(wanted, (-1, 1), strict=True):
        if not (y[: int(train.sum())] == label).any():
            raise ValueError(f"binary: no training row is of the class {name!r}")
    return table._replace(
        X=table.X[chosen],
        y=y,
        classes=(),
        pair=tuple(wanted),
        train_rows=None if table.train_rows is None else int(train.sum()),
    )


@step(private_rows=False, selects=True)
def subset(
    table: Table,
    rows: int,
    test_rows: int | None = None,
    shuffle: bool = False,
    rng: np.random.Generator | None = None,
) -> Table:
    """The first rows, or with shuffle a choice by a public random permutation, whatever they hold."""
    parts = []
    for part, wanted, what in zip(
        _parts(table), (rows, test_rows), ("training", "test"), strict=False
    ):
        if wanted is not None and not 1 <= wanted <= len(part):
            raise ValueError(f"subset: {wanted} of {len(part)} {what} rows cannot be chosen")
        parts.append((rng.permutation(part) if shuffle else part)[:wanted])  # type: ignore[union-attr]
    chosen = np.concatenate(parts)
    train_rows = None if table.train_rows is None else len(parts[0])
    return table._replace(X=table.X[chosen], y=table.y[chosen], train_rows=train_rows)


@step(private_rows=False)
def scale_by_constants(table: Table, /, **constants) -> Table:
    """Each column minus a public constant, divided by another: column name -> [centre, scale].

    "*" stands for all columns not named.
    """
    constants = _per_column("scale_by_constants", constants, table.columns)
    centre, scale = np.array([constants[name] for name in table.columns], dtype=float).T
    if not (scale > 0).all():
        raise ValueError(
            f"scale_by_constants: the scale of {table.columns[int(np.argmin(scale > 0))]!r} "
            f"must be positive"
        )
    return _changed(table, _finite(table.X, lambda X: (X - centre) / scale))


@step(private_rows=False)
def scale_to_bounds(table: Table, /, **bounds) -> Table:
    """Each column clipped to its public bounds and mapped to [-1, 1]: column name -> [low, high].

    "*" stands for all columns not named. One-hot columns take no bounds and stay 0 and 1. In each row, one
    column per group is 1, so a group counts as one column in the bound on the norm.
    """
    one_hot = {name for group in table.groups for name in group}
    scaled = [name for name in table.columns if name not in one_hot]
    bounds = _per_column("scale_to_bounds", bounds, scaled)
    X = np.array(table.X, dtype=float)
    if scaled:
        low, high = np.array([bounds[name] for name in scaled], dtype=float).T
        if not (low < high).all():
            name = scaled[int(np.argmin(low < high))]
            raise ValueError(
                f"scale_to_bounds: the bounds of {name!r} must be [low, high] with low < high"
            )
        where = [table.columns.index(name) for name in scaled]
        X[:, where] = 2 * (np.clip(X[:, where], low, high) - low) / (high - low) - 1
    bound = float(np.sqrt(len(scaled) + len(table.groups)))
    blocks = tuple(tuple(map(table.columns.index, group)) for group in table.groups)
    ones = (1.0,) * len(table.columns)
    return table._replace(X=X, bound=bound, coordinate_bound=1.0, column_bounds=ones, blocks=blocks)


@step(private_rows=False)
def one_hot(table: Table, groups: list) -> Table:
    """In each group of columns, all but the entry of the largest size become 0.

    It declares features that the source has as columns of zeros and ones, so it changes no row of these. A
    group then counts as one column in the bound on the norm.
    """
    if not table.column_bounds:
        raise ValueError("one_hot: the columns have no bounds: it must follow `bounds`")
    X, bounds = np.array(table.X, dtype=float), np.array(table.column_bounds)
    declared = [column for block in table.blocks for column in block]
    blocks, singles = list(table.blocks), np.ones(len(table.columns), dtype=bool)
    for group in groups:
        unknown = [name for name in group if name not in table.columns]
        if unknown:
            raise ValueError(f"one_hot: no such column: {unknown[0]!r}")
        block = list(map(table.columns.index, group))
        repeated = [name for name, column in zip(group, block, strict=True) if column in declared]
        if repeated or len(set(block)) < len(block):
            raise ValueError(
                f"one_hot: {(repeated or group)[0]!r} is in two groups, or twice in one"
            )
        declared += block
        blocks.append(tuple(block))
        size = np.abs(X[:, block])
        others = np.arange(len(block)) != size.argmax(axis=1)[:, None]
        X[:, block] = np.where(others, 0.0, X[:, block])
    singles[declared] = False
    squares = [bounds[list(block)].max() ** 2 for block in blocks]
    bound = min(table.bound, float(np.sqrt((bounds[singles] ** 2).sum() + sum(squares))))
    kept = {"coordinate_bound": table.coordinate_bound, "column_bounds": table.column_bounds}
    return _changed(table, X, bound, blocks=tuple(blocks), **kept)


@step(private_rows=False)
def row_norm(table: Table) -> Table:
    """Each row divided by its own norm: ||x|| = 1."""
    return _changed(table, normalise_rows(table.X), bound=1.0)


@step(private_rows=False)
def clip(table: Table, radius: float) -> Table:
    """Rows longer than a public radius shortened to it, then all divided by it: ||x|| <= 1."""
    if not radius > 0:
        raise ValueError(f"clip: the radius must be positive, not {radius}")
    clipped = clip_rows(_finite(table.X, lambda X: X / radius))
    # A shorter row obeys the bounds and blocks of a longer one in its direction.
    bounds = tuple(min(bound / radius, 1.0) for bound in table.column_bounds)
    return _changed(table, clipped, bound=1.0, column_bounds=bounds, blocks=table.blocks)


@step(private_rows=False)
def constant_feature(table: Table) -> Table:
    """A further column of ones, a regularised intercept: the bound R becomes sqrt(R^2 + 1)."""
    return table._replace(
        X=np.column_stack([table.X, np.ones(len(table.X))]),
        columns=(*table.columns, "constant"),
        bound=float(np.hypot(table.bound, 1.0)),
        coordinate_bound=max(1.0, table.coordinate_bound),
        column_bounds=(*table.column_bounds, 1.0) if table.column_bounds else (),
    )


@step(private_rows=False)
def random_projection(
    table: Table, dimension: int, rng: np.random.Generator | None = None
) -> Table:
    """Rows times a Gaussian matrix drawn from the public seed, not from the data.

    Entries are independent normal with variance 1/dimension, which preserves squared norms on average
    (Johnson, Lindenstrauss 1984). Individual rows may grow, so they have no bound: clip or normalise again.
    """
    matrix = rng.standard_normal((len(table.columns), dimension)) / np.sqrt(dimension)  # type: ignore[union-attr]
    X = np.concatenate([_finite(block, lambda X: X @ matrix) for block in blocks(table.X)])
    return _changed(table, X, columns=tuple(f"projection{k}" for k in range(dimension)))


@step(private_rows=True)
def standardise(table: Table) -> Table:
    """Each column minus the training rows' mean, divided by their standard deviation.

    The standard deviation has divisor n. A constant column becomes zeros.
    """
    mean, deviation = moments(_train(table))
    X = np.array(table.X, dtype=float)
    X -= mean
    X /= np.where(deviation == 0, 1.0, deviation)
    return _changed(table, X)


@step(private_rows=True)
def min_max(table: Table) -> Table:
    """Each column mapped to [-1, 1] by its smallest and largest value in the training rows.

    Test values outside that range are clipped; a constant column becomes zeros.
    """
    low, high = _train(table).min(axis=0), _train(table).max(axis=0)
    middle, half = (low + high) / 2, (high - low) / 2
    X = np.clip((table.X - middle) / np.where(half == 0, 1.0, half), -1.0, 1.0)
    d = len(table.columns)
    ones = (1.0,) * d
    return _changed(table, X, float(np.sqrt(d)), coordinate_bound=1.0, column_bounds=ones)


@step(private_rows=True)
def max_norm(table: Table) -> Table:
    """All rows divided by the largest norm of a training row: their norms are at most 1."""
    largest = np.abs(_train(table)).max(initial=0.0)
    if not largest > 0:
        raise ValueError("max_norm: every training row is zero")
    X = table.X / largest  # so squares neither underflow nor overflow
    X /= row_norms(X[: table.train_rows]).max()
    long = np.flatnonzero(row_norms(X[: table.train_rows]) > 1)  # from rounding
    X[long] = clip_rows(X[long])
    return _changed(table, X, bound=1.0)


@step(private_rows=True)
def pca(table: Table, components: int) -> Table:
    """The training rows' leading principal components: scores of the centred rows.

    The bound R on norms becomes 2 R, since the mean also obeys R and projection lengthens no vector. Each
    component's largest weight in magnitude is positive.
    """
    if not 1 <= components <= min(len(table.columns), len(_train(table))):
        raise ValueError(
            f"pca: {components} components are not available from {len(_train(table))} training rows "
            f"with {len(table.columns)} columns"
        )
    fitted = principal_components(_train(table))
    columns = tuple(f"component{k + 1}" for k in range(components))
    return _changed(table, fitted.scores(table.X, components), 2 * table.bound, columns=columns)


def _changed(table, X, bound=np.inf, **other):
    """The table with other rows. Columns are no longer one-hot, and have no bounds unless given."""
    none = {"coordinate_bound": np.inf, "column_bounds": (), "blocks": (), "groups": ()}
    return table._replace(X=X, bound=bound, **none | other)


def _finite(X, change):
    """change(X), where finite rows stay finite: overflow becomes the largest float, or 0.

    The 0 replaces NaN. Without this step, one extreme record would make `check_rows` refuse all rows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        changed = change(X)
    if not np.isfinite(changed).all():
        finite = np.isfinite(X).all(axis=1)
        changed[finite] = np.nan_to_num(changed[finite])
    return changed


def _train(table):
    return table.X[: table.train_rows]


def _parts(table):
    """Row numbers of the training part and of the test part."""
    everything = np.arange(len(table.y))
    cut = len(everything) if table.train_rows is None else table.train_rows
    return everything[:cut], everything[cut:]


def _per_column(name, values, columns):
    """Column name -> values. "*" stands for all columns without values."""
    missing = [column for column in columns if column not in values and "*" not in values]
    unknown = [column for column in values if column not in columns and column != "*"]
    if missing or unknown:
        problem = f"no values for {missing[0]!r}" if missing else f"no such column: {unknown[0]!r}"
        raise ValueError(f"{name}: {problem}")
    return {column: values[column] if column in values else values["*"] for column in columns}


def apply_row_wise(table: Table, steps: list[tuple[str, dict]], overwrite: bool = False) -> Table:
    """Apply row-wise steps in blocks, so that few integers become floats at a time.

    overwrite: write into table.X if the result has its type and shape.
    """
    if not steps or not len(table.y):
        return table
    X, block = None, table
    for rows in slices(len(table.y), BLOCK_ROWS):
        block = table._replace(X=table.X[rows], y=table.y[rows], train_rows=None)
        for name, options in steps:
            block = STEPS[name].apply(block, **options)
        if X is None:
            shape = (len(table.y), block.X.shape[1])
            fits = table.X.dtype == float and table.X.shape == shape
            X = table.X if overwrite and fits else np.empty(shape)
        X[rows] = block.X
    return block._replace(X=X, y=table.y, train_rows=table.train_rows)  # type: ignore[arg-type]


def prepare(
    table: Table,
    steps: list[tuple[str, dict]],
    rng_of: Callable | None = None,
    put_off: bool = False,
    overwrite: bool = False,
) -> tuple[Table, list[dict]]:
    """Apply steps in order.

    steps: (name, options). rng_of: (number, name) -> the generator of a random step. put_off:
    rows of integers remain integers, and the last row-wise steps become `Table.later`. overwrite: table.X
    may be overwritten, to save a copy.

    Returns the table and, per step, a dictionary: step, what, private_rows, and premise and options if any.
    Raises ValueError if the rows end up without a bound.
    """
    record = [
        {
            **{"step": name, "what": STEPS[name].what, "private_rows": STEPS[name].private_rows},
            **({"premise": STEPS[name].premise} if STEPS[name].premise else {}),
            **({"options": options} if options else {}),
        }
        for name, options in steps
    ]
    resolved = []
    for number, (name, options) in enumerate(steps):
        rng = {"rng": rng_of(number, name)} if STEPS[name].random and rng_of else {}
        resolved.append((name, options | rng))
    waiting = []
    for name, options in resolved:
        if STEPS[name].row_wise and not STEPS[name].random:
            waiting.append((name, options))
            continue
        table, waiting = apply_row_wise(table, waiting, overwrite), []
        table = STEPS[name].apply(table, **options)
    left = waiting if put_off and np.issubdtype(table.X.dtype, np.integer) else []
    if left:
        one = apply_row_wise(table._replace(X=table.X[:1], y=table.y[:1]), left)
        later = PutOff(table.columns, tuple(left))
        table = one._replace(X=table.X, y=table.y, train_rows=table.train_rows, later=later)
    else:
        table = apply_row_wise(table, waiting, overwrite)
    if not np.isfinite(table.bound):
        last = steps[-1][0] if steps else "no step at all"
        raise ValueError(
            f"after {last} the rows have no public bound on their norm: end with row_norm or clip"
        )
    return table, record
