import csv
import math

import numpy as np
import pandas as pd
import pytest

from configured import changed, entry
from sources.hoseinpour_2023.tables import by_column, pretraining
from sources.patton_linear.tables import COLUMNS, printed_accuracy
from sources.veldhuizen_2020.tables import published_errors, timing
from study.configuration import printed_values
from study.configuration.experiment import Experiment
from tables.tuned_values import tuning


@pytest.fixture(scope="module")
def experiments():
    return {name: changed(name)[name] for name in ("veldhuizen", "patton", "hoseinpour")}


def test_printed_values_with_their_cells(experiments):
    values = printed_values.values(experiments["veldhuizen"], "table_2")
    results = {(v.dataset, v.method): (v.value, v.train_size) for v in values}
    assert results["v20_separable", "lasso_output_perturbation"] == (0.029, 8000)
    assert results["v20_real", "objective_perturbation_cm08"] == (0.461, 452)
    assert {(v.sd, v.epsilon) for v in values} == {(None, 0.1)}
    assert printed_values.values(experiments["veldhuizen"], None) == []


def test_means_with_their_spread_once_per_method(experiments):
    values = printed_values.values(experiments["patton"], "table_1a")
    results = {(v.method, v.epsilon): v for v in values}
    assert results["adam", None][:2] == (0.958, 0.017)
    assert results["functional_laplace_adam", 1000][:2] == (0.857, 0.154)
    # The one printed value is compared with both the source's optimiser and the exact minimiser.
    assert (
        results["functional_laplace", 0.001].path == results["functional_laplace_adam", 0.001].path
    )


def test_pairs_without_and_with_pre_training(experiments):
    ran = pd.DataFrame(experiments["hoseinpour"].cells())
    actual = by_column(experiments["hoseinpour"], "accuracy", ran)
    assert (actual["plain"][0.5], actual["pretrained"][0.5]) == (53.25, 60.0)
    assert actual["plain"][math.inf] == 67.5
    assert math.inf not in actual["pretrained"]


def test_accuracies_beside_the_source(experiments):
    frame = pd.DataFrame(
        [
            {
                "dataset": "wdbc_bounds", "method": "functional_laplace", "train_size": 455,
                "epsilon": epsilon, "error_mean": 0.2, "error_sd_folds": 0.01, "error_sd": 0.02,
                "error_low": 0.1, "error_high": 0.3, "status": "ok",
            }
            for epsilon in (0.001, 0.1)
        ]
    )  # fmt: skip
    spec = entry(options={"published": "table_1a"})
    columns, rows = printed_accuracy(experiments["patton"], spec, frame)
    assert columns == COLUMNS
    first, second = (dict(zip(columns, row, strict=True)) for row in rows)
    assert first["accuracy_mean"] == pytest.approx(0.8)
    assert (first["accuracy_low"], first["accuracy_high"]) == (pytest.approx(0.7), 0.9)
    assert first["difference"] == pytest.approx(0.8 - 0.843)
    assert math.isnan(second["published_mean"])


def test_pre_training_is_compared_as_calibrated(experiments):
    frame = pd.DataFrame(
        [
            {
                "dataset": "d", "method": method, "train_size": 400, "epsilon": 0.5, "folds": 5,
                "restarts": 20, "error_mean": 0.5, "train_error_mean": error,
                "train_error_low": error - 0.1, "train_error_high": error + 0.1,
            }
            for method, error in (("mean_clip", 0.45), ("mean_clip_pretrained", 0.4))
        ]
    )  # fmt: skip
    names = {"plain": ["mean_clip"], "pretrained": ["mean_clip_pretrained"]}
    options = names | {"public_only": "a", "converged": None, "published": "accuracy"}
    columns, rows = pretraining(experiments["hoseinpour"], entry(options=options), frame)
    (row,) = (dict(zip(columns, row, strict=True)) for row in rows)
    assert row["plain"] == pytest.approx(55)
    assert row["enhancement"] == pytest.approx(5)
    assert row["published_enhancement"] == pytest.approx(6.75)
    assert (row["draws"], row["comparison"]) == (100, "calibrated")


def test_errors_beside_printed_values(experiments):
    method = "lasso_output_perturbation"
    frame = pd.DataFrame(
        {
            "dataset": "v20_separable",
            "method": [method, method, method, "nonprivate_l1"],
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
    spec = entry(options={"published": "table_2"})
    columns, rows = published_errors(experiments["veldhuizen"], spec, frame)
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
    path.write_text("lambda,error_mean\n0.0001,0.1\n0.01,0.2\n0.1,0.1\n")
    path.with_suffix(".json").write_text(
        '{"lambda": 0.1, "ties": [0.1, 0.0001], "error": 0.1, "tuned_on": "a separate holdout"}'
    )
    columns, rows = tuning(Experiment("v", {"lambda_published": 0.01}), {}, {"ours": path})
    assert dict(zip(columns, rows[0], strict=True)) == {
        "dataset": "ours",
        "lambda_tuned": 0.1,
        "error_tuned": 0.1,
        "ties": 2,
        "lambdas_tied": "0.0001 0.1",
        "lambda_published": 0.01,
        "error_published": 0.2,
        "lambda_nearest": 0.1,
        "tuned_on": "a separate holdout",
    }
    row = tuning(Experiment("v", {"lambda_published": None}), {}, {"ours": path})[1][0]
    assert row[5] == "" and np.isnan(row[6]) and np.isnan(row[7])
