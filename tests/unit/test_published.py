"""Printed values beside the cells that regenerate them, and the tables made of them."""

import copy
import csv

import numpy as np
import pandas as pd
import pytest

from study import published
from study.experiment import Experiment
from tables.published_errors import published_errors
from tables.timing import timing
from tables.tuning import tuning

MAPPING = {
    "table": "table_2",
    "rows": {"separable": "ours", "real": "other"},
    "columns": {"algorithm_1": "one", "algorithm_2": "two"},
}
VALUES = {"source": "veldhuizen_2020", "datasets": ["ours", "other"], "methods": ["one", "two"]}


def experiment(**changes):
    return Experiment("v", VALUES | changes)


def test_printed_values_by_data_set_and_method():
    assert published.cells(experiment(), MAPPING) == {
        ("ours", "one"): 0.029,
        ("ours", "two"): 0.031,
        ("other", "one"): 0.395,
        ("other", "two"): 0.461,
    }


def test_tables_with_methods_as_rows_and_spreads_beside_means():
    mapping = {
        "table": "figure_1",
        "rows": {"sensitivity_method": "one"},
        "columns": {"separable": "ours", "unseparable": "other"},
    }
    cells = published.cells(experiment(source="chaudhuri_monteleoni_2008"), mapping)
    assert cells == {("ours", "one"): 0.2962, ("other", "one"): 0.3257}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": "table_9"}, "no table 'table_9'"),
        ({"rows": {"separabel": "ours"}}, "no row or column 'separabel'"),
        ({"columns": {"algorithm_3": "one"}}, "no row or column 'algorithm_3'"),
        ({"rows": {"separable": "mine"}}, "'mine' and 'one' are not a data set and a method"),
        ({"cells": {}}, "needs exactly the keys"),
    ],
)
def test_wrong_mappings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        published.check(VALUES, copy.deepcopy(MAPPING) | change)


def test_an_experiment_without_a_source_or_file_is_refused():
    with pytest.raises(ValueError, match="names no 'source'"):
        published.check({"datasets": [], "methods": []}, MAPPING)
    with pytest.raises(ValueError, match="cannot be read"):
        published.check(VALUES | {"source": "nobody_1999"}, MAPPING)


def test_errors_beside_printed_values():
    frame = pd.DataFrame(
        {
            "dataset": "ours",
            "method": ["one", "one", "one", "free"],
            "train_size": 8000,
            "epsilon": [0.1, 0.2, 0.5, np.inf],
            "error_mean": [0.07, 0.03, 0.02, 0.0],
            "error_low": 0.0,
            "error_high": 0.1,
            "error_sd_folds": 0.01,
            "error_sd": 0.02,
            "status": "ok",
        }
    )
    columns, rows = published_errors(experiment(), {"options": {"published": MAPPING}}, frame)
    table = pd.DataFrame(rows, columns=columns)
    assert table["epsilon"].tolist() == ["0.1", "0.2", "0.5", "inf"]
    assert table["published"].tolist()[:3] == [0.029] * 3 and np.isnan(table["published"][3])
    np.testing.assert_allclose(table["difference"][:3], [0.041, 0.001, -0.009])
    assert table["closest"].tolist() == [0, 1, 0, ""]


def test_timing_counts_seconds_per_fit(tmp_path):
    path = tmp_path / "timing.csv"
    seconds = {("plain", 1): 0.01, ("scikit_learn", 1): 0.04, ("two", 1): 0.02, ("two", 200): 0.4}
    with path.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(("dataset", "procedure", "draws", "repeat", "seconds"))
        for (procedure, draws), value in seconds.items():
            for repeat, factor in enumerate((1, 0.5, 3)):
                writer.writerow(("ours", procedure, draws, repeat, value * factor))
    columns, rows = timing(None, {}, path)
    table = pd.DataFrame(rows, columns=columns)
    assert table["mode"].tolist() == ["one fit at a time"] * 3 + ["batched"]
    np.testing.assert_allclose(table["seconds_per_fit"], [0.01, 0.04, 0.02, 0.002])
    np.testing.assert_allclose(table["fastest"], table["seconds_per_fit"] / 2)
    np.testing.assert_allclose(table["slowest"], table["seconds_per_fit"] * 3)
    np.testing.assert_allclose(table["times_plain"], [1, 4, 2, 0.2])
    np.testing.assert_allclose(table["times_scikit_learn"], [0.25, 1, 0.5, 0.05])


def test_tuning_beside_the_published_lambda(tmp_path):
    path = tmp_path / "ours.csv"
    path.write_text("lambda,error_mean\n0.001,0.1\n0.01,0.2\n0.1,0.1\n")
    path.with_suffix(".json").write_text(
        '{"lambda": 0.1, "ties": [0.1, 0.001], "error": 0.1, "tuned_on": "a separate holdout"}'
    )
    columns, rows = tuning(experiment(lambda_published=0.01), {}, {"ours": path})
    assert dict(zip(columns, rows[0], strict=True)) == {
        "dataset": "ours",
        "lambda_tuned": 0.1,
        "error_tuned": 0.1,
        "ties": 2,
        "lambdas_tied": "0.001 0.1",
        "lambda_published": 0.01,
        "error_published": 0.2,
        "tuned_on": "a separate holdout",
    }
    row = tuning(experiment(lambda_published=None), {}, {"ours": path})[1][0]
    assert row[5] == "" and np.isnan(row[6])
