"""Simulate or read one data set, prepare its rows, and write down what the steps looked at."""

import argparse
import json

import numpy as np

from dp import data
from dp.preparation import Table, prepare
from dp.seeds import generator
from study import jobs, readers
from study.files import atomic, write_json


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--entry", type=json.loads, required=True, help="its entry, as JSON")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument(
        "--out-npz",
        required=True,
        help="X (n, d) floats, y (n,) in {-1, 1}; separator (d,) of simulated rows",
    )
    parser.add_argument("--out-json", required=True)
    arguments = parser.parse_args()

    entry = arguments.entry
    source = entry["source"]
    separator = None
    if "simulate" in source:
        table, separator = simulate(arguments.dataset, source, arguments.seed)
    else:
        table = readers.read(entry, arguments.dataset)
    if "first" in source:
        table = first_shuffled(table, source, arguments.seed)
    steps = [(name, options or {}) for step in entry["steps"] for name, options in step.items()]
    if "bounds" in entry:
        steps.insert(0, ("scale_to_bounds", entry["bounds"]))
    table, record = prepare(table, steps)

    holdout = source.get("holdout", 0)
    X, y = table.X[holdout:], table.y[holdout:]
    data.check_rows(X, y, table.bound)
    arrays = {"X": X, "y": y}
    if holdout:
        arrays |= {"X_holdout": table.X[:holdout], "y_holdout": table.y[:holdout]}
    if separator is not None:
        arrays["separator"] = separator
    with atomic(arguments.out_npz, "wb") as handle:
        np.savez(handle, **arrays)
    classes, counts = np.unique(y, return_counts=True)
    write_json(
        arguments.out_json,
        {
            "dataset": arguments.dataset,
            "source": source,
            "rows": len(X),
            "columns": list(table.columns),
            "class_counts": dict(zip(map(str, classes), map(int, counts), strict=True)),
            "holdout_rows": holdout,
            "bound": table.bound,
            "largest_norm": float(data.row_norms(X).max()),
            "steps": record,
            "private_rows": [step["step"] for step in record if step["private_rows"]],
        },
    )


def simulate(dataset, source, seed):
    """The holdout's rows first, then the experiment's: one separator for both, returned too."""
    rng = generator(seed, "data", dataset, "simulate")
    rows, columns = source["rows"] + source.get("holdout", 0), source["columns"]
    if source["simulate"] == "separable":
        X, y, separator = data.simulate_separable(rows, columns, source["margin"], rng)
    elif source["simulate"] == "expanded_band":
        X, y, separator = data.simulate_expanded_band(
            rows, columns, source["margin"], source["band"], source["flip_probability"], rng
        )
    else:
        X, y, separator = data.simulate_unseparable(
            rows, columns, source["band"], source["flip_probability"], rng
        )
    return Table(X, y, tuple(f"x{k}" for k in range(columns))), separator


def first_shuffled(table, source, seed):
    """The first rows of a shuffle that has no axis for the data set: the same rows of one source."""
    order = generator(seed, "data", source["sklearn"], "shuffle").permutation(len(table.X))
    rows = order[: source["first"]]
    return table._replace(X=table.X[rows], y=table.y[rows])


if __name__ == "__main__":
    jobs.run(main)
