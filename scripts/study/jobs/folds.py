"""Divide rows into training and test rows, for every fold or simulation of a job."""

import itertools
import math
from functools import cache, partial
from itertools import product

import numpy as np

from dp.evaluation import bounded_loss, error_rate, mean_squared_error
from dp.rows import reshuffle, split_folds
from dp.seeds import generator
from study import canonical
from study.data.prepared import Prepared


def training_folds(arguments, *, first=None, in_blocks=False):
    """Yield (X, y) of `train_size` training rows and (X, y) of test rows, for every fold or simulation.

    first: the maximum number of folds or simulations. in_blocks: see `Prepared.floats`.
    """
    data = Prepared(arguments.data)
    size = arguments.train_size
    whole_folds, zero = (vars(arguments).get(key) for key in ("whole", "zero"))
    has_test = _has_test(arguments, data)
    official = data.floats(part="test", in_blocks=in_blocks) if has_test else None
    # Deferred preparation steps treat each row by itself, so all rows may be prepared once. If the
    # splits need more rows in total than the data set has, this is faster than preparing each split,
    # unless rows are read in blocks.
    count = min(first or math.inf, per_data_set(arguments))
    again = size * count > len(data.y) and not (in_blocks and data.large())

    @cache
    def whole(part):
        return data.floats(part=part)

    def rows(chosen, part):
        if not again:
            return data.floats(chosen, part, in_blocks=in_blocks)
        X, y = whole(part)
        return X[chosen], y[chosen]

    for part, train, test in itertools.islice(_splits(arguments, data), first):
        if size > len(train) and not whole_folds:
            where = f" in each of {arguments.folds} folds" if arguments.folds else ""
            raise ValueError(
                f"{arguments.dataset} has {len(train)} training rows{where}, "
                f"not the {size} asked for in train_sizes"
            )
        X, y = rows(train if whole_folds else train[:size], part)
        if zero:  # with any weights, the logistic loss of a row of zeros is log 2
            X = np.where((y == zero)[:, None], 0.0, np.asarray(X))
        yield (X, y), official or rows(test, part)


def per_data_set(arguments):
    return arguments.simulations or arguments.folds


def all_training_rows(arguments):
    """For every fold or simulation, yield X of all rows from which `training_folds` takes training rows.

    If every split trains on all rows, each X is the same array.
    """
    data = Prepared(arguments.data)
    for part, splits in itertools.groupby(_splits(arguments, data), key=lambda split: split[0]):
        X, _ = data.floats(part=part)
        for _, train, _ in splits:
            yield X if _has_test(arguments, data) else X[train]


def _has_test(arguments, data):
    return bool(arguments.simulations) and "X_test" in data


def _splits(arguments, data):
    """Yield (part of `Prepared`, training row numbers, test row numbers) for every fold or simulation."""
    split = _simulations if arguments.simulations else _folds
    for part, division in _repetitions(arguments, data.replicates):
        again = [f"division {division}"] * (division > 0) + [part] * bool(part)
        for train, test in split(arguments, data, *again):
            yield part, train, test


def _repetitions(arguments, parts):
    """(part, number of the division) for every division."""
    divisions = vars(arguments).get("divisions") or 1
    return [(part, 0) for part in parts] if len(parts) > 1 else [*product(parts, range(divisions))]


def _folds(arguments, data, *again):
    # The seed does not depend on the method, so all methods share folds and nested training subsets.
    rng = generator(arguments.seed, arguments.experiment, arguments.dataset, "folds", *again)
    rows = len(data.y)
    if vars(arguments).get("whole"):
        if arguments.train_size > rows:
            raise ValueError(f"{arguments.dataset} has {rows} rows, not {arguments.train_size}")
        rows = arguments.train_size
    return split_folds(rows, arguments.folds, rng)


def _simulations(arguments, data, *again):
    for simulation in range(arguments.simulations):
        # Each simulation has its own generator, so more simulations do not change earlier ones.
        axes = (arguments.experiment, arguments.dataset, simulation, "simulation", *again)
        rng = generator(arguments.seed, *axes)
        yield reshuffle(len(data.y), rng, has_test="X_test" in data)


def noise_axes(fresh, train_size, epsilon):
    """What the seed of a cell's noise depends on, besides data set, method and fold.

    By default, all points of a curve share draws of standardised noise, so the curve is smooth, but its
    points are not independent evidence. fresh: whether every point has new draws.
    """
    return (f"n={train_size}", f"eps={canonical.epsilon(epsilon)}") if fresh else ()


def draws_on_each(arguments, meta):
    """Draws per fold: `restarts` divided by the number of data sets or divisions, rounded up."""
    parts = range(meta.get("data_replicates", 1))
    return -(-arguments.restarts // len(_repetitions(arguments, parts)))


def measure(meta, by="error"):
    """The metric of tuning and searches: the error in classification, the mean squared error in regression.

    by: "bounded_loss" chooses the metric of private selection instead.
    """
    if by == "bounded_loss":
        return partial(bounded_loss, numbers="target" in meta)
    return mean_squared_error if "target" in meta else error_rate


def public_rows(path, parts=("public",)):
    """(X, y) of the first of `parts` that a prepared data set has; None if it has none."""
    data = Prepared(path)
    there = [part for part in parts if f"X_{part}" in data]
    return data.floats(part=there[0]) if there else None
