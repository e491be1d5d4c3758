"""Simulates or reads one data set, prepares its rows, and records the steps."""

import json
from collections import Counter

import numpy as np

from dp import rows as examples
from dp.seeds import generator
from study.configuration.data_set_keys import DataSet
from study.data import readers, simulations
from study.data.components import BLOCK_ROWS
from study.data.preparation import Table, prepare
from study.jobs import script
from study.jobs.files import atomic, write_json


def main():
    parser = script.parser(__doc__, seed=True)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--entry", required=True, help="its entry, as JSON")
    parser.add_argument(
        "--out-npz",
        required=True,
        help="X (n, d), y (n,), separator (d,); study.data.prepared reads it",
    )
    parser.add_argument("--out-json", required=True)
    arguments = parser.parse_args()

    entry = DataSet.model_validate_json(arguments.entry)
    source = entry.source
    missing, clipped = Counter(), Counter()
    table, separator, record = prepared(arguments.dataset, entry, arguments.seed, missing, clipped)
    public = public_rows(arguments.dataset, entry, len(table.y), table.train_rows, arguments.seed)
    parts = split(table, source.holdout, public)
    for k in range(1, source.data_replicates or 1):
        other, _, _ = prepared(arguments.dataset, entry, arguments.seed, missing, clipped, k)
        parts[f"_replicate{k}"] = other.X, other.y
    largest = check(table, parts)
    _, y = parts[""]
    left = len(y) + len(public) * (entry.public_share is not None)
    if entry.rows not in (None, left):
        raise ValueError(
            f"{arguments.dataset}: {left} rows are left after its steps, not the {entry.rows} "
            f"that the configuration says"
        )
    arrays = {}
    for part, (X, y) in parts.items():
        arrays |= {f"X{part}": X, f"y{part}": y}
    if table.later.steps:
        arrays["later"] = json.dumps(table.later._asdict())
    if separator is not None:
        arrays["separator"] = separator
    with atomic(arguments.out_npz, "wb") as handle:
        np.savez(handle, **arrays)
    counts = {part: {} if table.target else class_counts(y) for part, (_, y) in parts.items()}
    write_json(
        arguments.out_json,
        {
            "dataset": arguments.dataset,
            "title": entry.title or arguments.dataset,
            "source": source.plain(),
            "rows": len(parts[""][1]),
            "columns": list(table.columns),
            # category column -> its levels, each a prepared column of zeros and ones
            "categories": {
                name: list(map(str, known)) for name, known in (entry.categories or {}).items()
            },
            # label in y -> its name in the source
            "labels": {} if table.target else label_names(table),
            **target(table, entry),
            "class_counts": counts[""],
            "data_replicates": source.data_replicates or 1,
            "public_rows": len(public),
            "holdout_rows": source.holdout,
            "test_rows": len(parts["_test"][1]) if "_test" in parts else 0,
            "test_class_counts": counts.get("_test", {}),
            "bound": table.bound,
            # None if the bound on the norm implies this bound
            "coordinate_bound": (
                table.coordinate_bound if table.coordinate_bound < table.bound else None
            ),
            # one per column, and the column numbers of each one-hot feature; None if there are none
            "column_bounds": list(table.column_bounds) or None,
            "blocks": list(map(list, table.blocks)) or None,
            "largest_norm": largest,
            # number of missing cells per column, and of rows dropped because of them
            "missing": {name: count for name, count in missing.items() if count},
            # number of cells outside `bounds` per column; many may be codes, such as 999 for missing
            "clipped": {name: count for name, count in clipped.items() if count},
            "steps": record,
            "put_off": [name for name, _ in table.later.steps],
            "private_rows": [step["step"] for step in record if step["private_rows"]],
            # {row, group, rows, source} if the protected unit may have several rows
            "unit": entry.unit.plain() if entry.unit else {},
            # what every guarantee assumes to be public
            "premises": [
                *([] if entry.premise is None else [entry.premise]),
                *([readers.COMPLETE] if readers.drops(entry) else []),
                *([] if entry.positive is None else [readers.BOTH]),
                *(step["premise"] for step in record if "premise" in step),
            ],
        },
    )


def prepared(dataset, entry, seed, missing, clipped, replicate=0):
    """(`study.data.preparation.Table`, weights of a separating hyperplane or None, record of the steps).

    missing, clipped: Counters to which missing and clipped cells are added. replicate: 0 for the data set
    itself, otherwise the index of a further data set from the same distribution, which has no holdout.
    """
    source, separator = entry.source, None
    again = (replicate,) if replicate else ()
    if source.simulate:
        own = source.but(holdout=0) if replicate else source
        table, separator = simulate(dataset, own, seed, *again)
        if entry.target:
            table = table._replace(**readers.target(table.y, entry.target))
    else:
        table = readers.read(entry, dataset, missing)
    if source.first:
        table = first_shuffled(table, source, seed)
    clipped.update(outside(table, entry.bounds or {}))

    def rng_of(number, name):
        return generator(seed, "data", dataset, "step", number, name, *again)

    table, record = prepare(table, entry.all_steps(), rng_of, put_off=True, overwrite=True)
    return table, separator, record


def outside(table, bounds):
    """Column -> number of its cells outside its bounds."""
    one_hot = {name for group in table.groups for name in group}
    counts = {}
    for name, x in zip(table.columns, table.X.T, strict=True):
        pair = None if name in one_hot else bounds.get(name, bounds.get("*"))
        if pair:
            counts[name] = int(np.count_nonzero((x < pair[0]) | (x > pair[1])))
    return counts


def public_rows(dataset, entry, rows, train_rows, seed):
    """The row numbers of public training rows: the first simulated rows, or a random share of real ones."""
    if entry.public_share is None:
        return np.arange(entry.source.public_rows or 0)
    cut = rows if train_rows is None else train_rows
    rng = generator(seed, "data", dataset, "public rows")
    return np.sort(rng.permutation(cut)[: round(entry.public_share * cut)])


def split(table, holdout, public):
    """Part -> (X, y): "" for training rows, and "_holdout", "_test" and "_public" if they exist."""
    cut = len(table.y) if table.train_rows is None else table.train_rows
    rows = {"": slice(holdout, cut), "_holdout": slice(0, holdout), "_test": slice(cut, None)}
    if len(public):
        rows |= {
            "": np.setdiff1d(np.arange(holdout, cut), public, assume_unique=True),
            "_public": public,
        }
    parts = {part: (table.X[where], table.y[where]) for part, where in rows.items()}
    return {part: arrays for part, arrays in parts.items() if part == "" or len(arrays[1])}


def check(table, parts):
    """Return the largest norm of a training row, and refuse rows or labels that no mechanism accepts."""
    classes = examples.NUMBERS if table.target else len(table.classes) or None
    largest = 0.0
    for part, (X, y) in parts.items():
        # Test rows may exceed the bound, because preparation steps are fitted on training rows.
        bound = np.finfo(float).max if part == "_test" else table.bound
        for rows in examples.slices(max(1, len(y)), BLOCK_ROWS):
            floats = table.later.apply(X[rows])
            examples.check_rows(floats, y[rows], bound, classes)
            if part != "_test":
                examples.check_coordinates(floats, table.coordinate_bound)
                if table.column_bounds:
                    examples.check_coordinates(floats, table.column_bounds, table.blocks)
            if part == "" or part.startswith("_replicate"):
                largest = max(largest, float(examples.row_norms(floats).max()))
    return largest


def label_names(table):
    if table.classes:
        return {str(number): str(name) for number, name in enumerate(table.classes)}
    return dict(zip(("-1", "1"), table.pair or ("-1", "1"), strict=True))


def target(table, entry):
    """The column that was scaled to y, its public bounds, and whether it is a count."""
    if not table.target:
        return {}
    column, low, high = table.target
    counts = {"counts": True} if entry.target.counts else {}
    return {"target": {"column": column, "bounds": [low, high], **counts}}


def class_counts(y):
    labels, counts = np.unique(y, return_counts=True)
    return dict(zip(map(str, labels), map(int, counts), strict=True))


def simulate(dataset, source, seed, *again):
    """(`Table`, weights of a separating hyperplane or None).

    The first rows are the holdout or, without one, the public rows.
    """
    rng = generator(seed, "data", dataset, "simulate", *again)
    if source.simulate == "mixture":
        return simulate_mixture(source, rng), None
    needed, optional = simulations.keys(source.simulate)
    given = source.mapping()
    options = {key: given[key] for key in (*needed, *optional) if key in given}
    options["rows"] += source.holdout
    X, y, separator = simulations.KINDS[source.simulate](**options, rng=rng)
    return Table(X, y, tuple(f"x{k}" for k in range(source.columns))), separator


def first_shuffled(table, source, seed):
    """The first `source.first` rows after a shuffle that all data sets from one source share."""
    order = generator(seed, "data", source.sklearn, "shuffle").permutation(len(table.X))
    rows = order[: source.first]
    return table._replace(X=table.X[rows], y=table.y[rows])


def simulate_mixture(source, rng):
    means = np.array([component.mean for component in source.components])
    deviations = np.array([component.deviation for component in source.components])
    shift = np.zeros(means.shape[1]) if source.public_shift is None else source.public_shift
    X_public, y_public = examples.simulate_mixture(
        source.public_rows or 0, means + shift, deviations, rng
    )
    X, y = examples.simulate_mixture(source.rows, means, deviations, rng)
    return Table(
        np.concatenate([X_public, X]),
        np.concatenate([y_public, y]),
        tuple(f"x{k + 1}" for k in range(means.shape[1])),
        classes=tuple(str(component.class_) for component in source.components),
    )
