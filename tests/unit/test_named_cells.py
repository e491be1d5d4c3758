"""Every check of a claim or defect names cells, or rows of a table, that some run of the project has."""

import math

import pytest

from configured import configured
from study.configuration import inputs, kinds, options
from study.configuration.experiment import Reading
from study.configuration.experiment_keys import Check

OVERLAYS = ((), ("real",), ("real", "full"))
# Options of checks whose values are epsilons.
EPSILONS = ("epsilon", "epsilons", "first", "second", "widens", "narrows")
# Columns of tables whose values depend on the data, and all values that they can have.
KNOWN = {"class": range(10), "part": ("train", "test")}


def listed(value):
    return value if isinstance(value, list) else [value]


def methods_and_sweeps(experiment, check):
    """(methods, sweeps) that a check on cells names; a check on all cells of a sweep names no method."""
    kind = kinds.CHECKS[check.kind].options
    methods = options.named(kind, check.options, options.Method)
    return list(methods) or [None], list(options.named(kind, check.options, options.Sweep))


def missing_cells(experiment, check):
    """What a check on cells names and this run lacks."""
    values, lacking = check.options, []
    methods, sweeps = methods_and_sweeps(experiment, check)
    lacking += [f"sweep {name}" for name in sweeps if name not in experiment.sweeps]
    if lacking:
        return lacking
    for method in methods:
        cells = experiment.plain().cells(sweeps or None, None, method and [method])
        if not cells:
            lacking.append(f"method {method} in {sweeps or 'any sweep'}")
        for field, names in (("train_size", ("train_size",)), ("epsilon", EPSILONS)):
            here = {getattr(cell, field) for cell in cells} - {math.inf}
            wanted = [v for name in names if name in values for v in listed(values[name])]
            for number in wanted:
                if isinstance(number, str) or number is None or not here:
                    continue  # "smallest" and "largest" are always there, and epsilon without privacy
                if not any(math.isclose(number, value) for value in here):
                    lacking.append(f"{field} {number} of {method}")
    return lacking


def missing_rows(experiment, check):
    """Rows of a table or analysis that a check names, and that this run's table cannot have."""
    section = "analyses" if check.analysis else "tables"
    name = check.analysis or check.table
    if name not in experiment.section(section):
        return [f"{section} {name}"]
    entry = experiment.section(section)[name]
    lacking = []
    for key in ("where", "lower", "higher"):
        rows = check.options.get(key)
        if isinstance(rows, dict):
            lacking += _missing_row(experiment, entry, rows)
    return lacking


def _missing_row(experiment, entry, row):
    if entry.sweep:
        cells = experiment.entry_cells(entry)
        for column in set(row) & {"dataset", "method", "train_size"}:
            cells = [cell for cell in cells if getattr(cell, column) in listed(row[column])]
        named = {cell.method for cell in cells}
        cells_there = cells and named >= set(listed(row.get("method", [])))
        lacking = [] if cells_there else [f"a cell with {row}"]
    else:
        of = experiment.analyses.get(entry.analysis, entry)
        datasets = of.datasets or experiment.datasets
        wanted = listed(row["dataset"]) if "dataset" in row else []
        lacking = [f"data set {name}" for name in wanted if name not in datasets]
    for column in set(row) - {"dataset", "method", "train_size"}:
        # A table lists the values of such a column; an analysis has all of them.
        values = entry.options.get(column, KNOWN.get(column))
        if values is None and entry.analysis:
            lacking.append(f"values of {column}")
        elif values is not None:
            lacking += [f"{column} {v}" for v in listed(row[column]) if v not in values]
    return lacking


def missing(name, check, overlays):
    experiments = configured(*overlays)[1]
    if name not in experiments:
        return [f"experiment {name}"]
    kind = kinds.CHECKS[check.kind]
    if kind.inputs is inputs.RESULTS:
        return missing_cells(experiments[name], check)
    if kind.inputs.needs == "analysis":
        return missing_rows(experiments[name], check)
    return []


@pytest.mark.parametrize("section", ["claims", "defects"])
def test_every_check_reads_cells_that_some_run_has(section):
    seen = 0
    for name, experiment in configured()[1].items():
        if isinstance(experiment, Reading):  # it may leave out data sets, and then sweeps
            continue
        for key, entry in experiment.section(section).items():
            for check in entry.checks or ():
                lacking = [missing(name, check, overlays) for overlays in OVERLAYS]
                assert [] in lacking, (name, key, check, lacking)
                seen += 1
    assert seen > 20


def test_a_row_that_no_run_has_is_told():
    where = {"dataset": "mnist_4_9", "components": 100}
    for changes, lacking in (
        ({}, []),
        ({"components": 10}, ["components 10"]),
        ({"dataset": "mnist_7"}, ["data set mnist_7"]),
        ({"rank": 1}, ["values of rank"]),
    ):
        options = {"column": "explained", "where": where | changes}
        changed = Check(kind="table", table="explained_variance", options=options)
        assert missing("einarsson_data", changed, ("real",)) == lacking
    options = {"lower": "dp_sgd_as_run", "higher": "sgd_as_run"}
    for changes, lacking in (
        ({"sweep": "as_run", "epsilon": 10}, []),
        ({"sweep": "as_runs"}, ["sweep as_runs"]),
        ({"sweep": "as_run", "epsilon": 7}, ["epsilon 7 of dp_sgd_as_run"]),
        ({"sweep": "as_run", "lower": "dp_sgd"}, ["method dp_sgd in ['as_run']"]),
    ):
        changed = Check(kind="lower_than", options=options | changes)
        assert missing("einarsson_sgd", changed, ()) == lacking
