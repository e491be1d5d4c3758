import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from configured import changed, entry
from study.configuration.config import ConfigError
from study.configuration.experiment_keys import Method


def loaded(name, **settings):
    return changed(name, **settings)[name]


def test_patton_is_the_published_protocol():
    experiment = loaded("patton")
    assert experiment.folds * experiment.restarts >= 20
    cells = experiment.cells(["epsilon", "descent"])
    assert {cell.train_size for cell in cells} == {455}
    assert {cell.epsilon for cell in cells} - {math.inf} == {10.0**k for k in range(-3, 4)}
    shown = {m for ms in experiment.figures["figure_1a"].options["panels"].values() for m in ms}
    assert shown | {"linear_regression"} == {cell.method for cell in cells}


def test_hoseinpour_trains_on_400_rows():
    experiment = loaded("hoseinpour")
    assert {cell.train_size for cell in experiment.cells("simulated")} == {400}
    assert experiment.folds * experiment.restarts == 100


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("patton", {"methods": {"functional_gaussian": {"delta": 0}}}, "delta"),
        (
            "patton",
            {"methods": {"functional_laplace": {"options": {"sensitivity": "l1"}}}},
            "sensitivity is one of",
        ),
        (
            "patton",
            {"tables": {"table_1a": {"options": {"published": "table_2"}}}},
            "no comparison 'table_2'",
        ),
        (
            "patton",
            {"figures": {"figure_1a": {"options": {"panels": {"x": ["adaspp"]}}}}},
            "did you mean 'adassp'",
        ),
        (
            "patton",
            {
                "methods": {"dp_gd": {"delta": 1e-5, "options": {"pretrain": True}}},
                "sweeps": {"ball": {"methods": ["dp_gd"]}},
            },
            "wdbc_ball has none",
        ),
        ("hoseinpour", {"methods": {"dp_gd": {"options": {"clip": 0}}}}, "clip"),
        ("hoseinpour", {"methods": {"dp_gd": {"options": {"iterations": 0}}}}, "iterations"),
        (
            "hoseinpour",
            {"figures": {"accuracy": {"options": {"plain": ["dp_gdd"]}}}},
            "did you mean 'dp_gd'",
        ),
        (
            "hoseinpour",
            {"figures": {"accuracy": {"options": {"plain": ["dp_dg"]}}}},
            "options.plain: no method 'dp_dg'",
        ),
        (
            "patton",
            {"figures": {"figure_1a": {"options": {"panels": {"a": "adam"}}}}},
            r"options.panels.a: must be a list, not text \('adam'\)",
        ),
        (
            "patton",
            {"figures": {"figure_1a": {"options": {"panels": {"a": {"adam": 1}}}}}},
            "options.panels.a: must be a list, not a mapping",
        ),
        (
            "patton",
            {"figures": {"figure_1a": {"options": {"baseline": "linear_regresion"}}}},
            "options.baseline: no method .*; did you mean 'linear_regression'",
        ),
        ("hoseinpour", {"sweeps": {"simulated": {"train_sizes": [401]}}}, "more than the 400"),
        ("hoseinpour", {"sweeps": {"real": {"train_sizes": [720]}}}, "more than the 719"),
    ],
)
def test_what_cannot_run_is_refused(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        loaded(name, **settings)


def test_the_majority_class_stands_in_every_panel(tmp_path, monkeypatch):
    import json

    import pandas as pd

    from sources.patton_linear.figures import accuracy_panels

    monkeypatch.chdir(tmp_path)
    (tmp_path / "results" / "data").mkdir(parents=True)
    (tmp_path / "results" / "data" / "d.json").write_text(
        json.dumps({"class_counts": {"-1": 30, "1": 70}})
    )

    class Experiment:
        methods = {
            "base": Method(mechanism="nonprivate", private=False),
            "adassp": Method(mechanism="adassp", private=True),
        }
        repetitions = "simulations"

        @staticmethod
        def repeated(count):
            return "data sets"

    cells = [("base", math.inf, 0.1), *(("adassp", epsilon, 0.3) for epsilon in (0.1, 1.0, 10.0))]
    frame = pd.DataFrame(
        [
            {
                "dataset": "d", "method": method, "epsilon": epsilon, "error_mean": error,
                "error_low": error - 0.1, "error_high": error + 0.1, "folds": 5, "restarts": 2,
            }
            for method, epsilon, error in cells
        ]
    )  # fmt: skip
    options = {"baseline": "base", "panels": {"a": ["adassp"], "b": ["adassp"]}, "published": None}
    options |= {"printed_by": {}}
    figure = accuracy_panels(Experiment, entry(options=options), frame)
    for axes in figure.axes:
        assert axes.get_xscale() == "log"
        levels = [line.get_ydata() for line in axes.get_lines()]
        assert any(len(y) == 2 and np.allclose(y, 0.7) for y in levels)  # the larger class
        assert any(len(y) == 2 and np.allclose(y, 0.9) for y in levels)  # without privacy
        (bars,) = axes.containers
        assert bars.has_yerr
        np.testing.assert_allclose(bars.lines[0].get_ydata(), 0.7)


def test_a_fit_says_how_far_it_is_from_what_it_was_fitted_to():
    from sources.hoseinpour_2023.figures import _residual

    methods = {
        "zero": SimpleNamespace(private=True, options={}),
        "started": SimpleNamespace(private=True, options={"pretrain": {"steps": 1}}),
        "plain": SimpleNamespace(private=False, options={}),
    }
    rows = [("zero", 0.5, 50.0), ("zero", 1.0, 60.0), ("started", 1.0, 70.0), ("plain", 1.0, 0.0)]
    frame = pd.DataFrame(rows, columns=["curve", "epsilon", "mean"])
    printed = {"plain": {0.5: 54.0, 1.0: 61.0}, "pretrained": {1.0: 69.0}}
    said = _residual(SimpleNamespace(methods=methods), frame, printed)
    assert "2.0 points on average, 4.0 at $\\varepsilon$ = 0.5" in said
