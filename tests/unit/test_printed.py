"""Published values beside ours: read from the files themselves, refused where a name is wrong."""

import math

import pandas as pd
import pytest

from study import printed

VALUES = {"source": "patton_linear", "methods": {"a": {}, "b": {}}}


def test_accuracies_of_methods():
    found = printed.accuracies(VALUES, "table_1a_breast_cancer", {"none": ["a"], "laplace": ["b"]})
    assert found["a"] == {math.inf: (0.958, 0.017)}
    assert found["b"][1000.0] == (0.857, 0.154)
    assert found["b"][0.001] == (0.843, 0.017)
    assert printed.accuracies(VALUES) == {}


@pytest.mark.parametrize(
    ("table", "rows", "what"),
    [
        ("table_9", {}, "no table"),
        ("table_1a_breast_cancer", {"cauchy": ["a"]}, "no row"),
        ("table_1a_breast_cancer", {"laplace": ["c"]}, "no method"),
    ],
)
def test_wrong_names(table, rows, what):
    with pytest.raises(ValueError, match=what):
        printed.accuracies(VALUES, table, rows)


def test_pairs():
    values = {"source": "hoseinpour_2023", "methods": {}}
    found = printed.pairs(values, "accuracy")
    assert found[0.5] == (53.25, 60.0)
    assert found[math.inf][0] == 67.5
    assert math.isnan(found[math.inf][1])
    with pytest.raises(ValueError, match="no table"):
        printed.pairs(values, "accuracies")
    with pytest.raises(ValueError, match="source"):
        printed.pairs({"methods": {}}, "accuracy")


class Experiment:
    def __init__(self, values):
        self.values = values
        self.methods = values["methods"]


def test_the_table_beside_the_source():
    from tables.printed_accuracy import COLUMNS, printed_accuracy

    frame = pd.DataFrame(
        [
            {
                "dataset": "d", "method": "b", "train_size": 10, "epsilon": epsilon,
                "error_mean": 0.2, "error_sd_folds": 0.01, "error_sd": 0.02, "error_low": 0.1,
                "error_high": 0.3, "status": "ok",
            }
            for epsilon in (0.001, 0.1)
        ]
    )  # fmt: skip
    options = {"table": "table_1a_breast_cancer", "rows": {"laplace": ["b"]}}
    columns, rows = printed_accuracy(Experiment(VALUES), {"options": options}, frame)
    assert columns == COLUMNS
    first, second = (dict(zip(columns, row, strict=True)) for row in rows)
    assert first["accuracy_mean"] == pytest.approx(0.8)
    assert (first["accuracy_low"], first["accuracy_high"]) == (pytest.approx(0.7), 0.9)
    assert first["difference"] == pytest.approx(0.8 - 0.843)
    assert math.isnan(second["published_mean"])


def test_pre_training_is_compared_as_calibrated():
    from tables.pretraining import pretraining

    frame = pd.DataFrame(
        [
            {
                "dataset": "d", "method": method, "train_size": 10, "epsilon": 0.5, "folds": 5,
                "restarts": 20, "error_mean": 0.5, "train_error_mean": error,
                "train_error_low": error - 0.1, "train_error_high": error + 0.1,
            }
            for method, error in (("a", 0.45), ("b", 0.4))
        ]
    )  # fmt: skip
    values = {"source": "hoseinpour_2023", "methods": {"a": {}, "b": {}}}
    options = {"plain": ["a"], "pretrained": ["b"], "table": "accuracy"}
    columns, rows = pretraining(Experiment(values), {"options": options}, frame)
    (row,) = (dict(zip(columns, row, strict=True)) for row in rows)
    assert row["plain"] == pytest.approx(55)
    assert row["enhancement"] == pytest.approx(5)
    assert row["published_enhancement"] == pytest.approx(6.75)
    assert (row["draws"], row["comparison"]) == (100, "calibrated")
