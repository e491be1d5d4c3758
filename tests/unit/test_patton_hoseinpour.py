import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from checks.results import Missing, Results
from configured import changed, entry
from sources.patton_linear import checks
from study.configuration.config import ConfigError
from study.configuration.experiment import Experiment
from study.configuration.experiment_keys import Method


def loaded(name, **settings):
    return changed(name, **settings)[name]


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("patton", {"methods": {"functional_gaussian": {"delta": 0}}}, "delta"),
        (
            "patton",
            {"tables": {"table_1a": {"options": {"published": "table_2"}}}},
            "no comparison 'table_2'",
        ),
        (
            "patton",
            {
                "methods": {"dp_gd": {"delta": 1e-5, "options": {"pretrain": True}}},
                "sweeps": {"ball": {"methods": ["dp_gd"]}},
            },
            "wdbc_ball has none",
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
            {"figures": {"figure_1a": {"options": {"baseline": "linear_regresion"}}}},
            "options.baseline: no method .*; did you mean 'linear_regression'",
        ),
        ("hoseinpour", {"sweeps": {"simulated": {"train_sizes": [401]}}}, "more than the 400"),
    ],
)
def test_what_cannot_run_is_refused(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        loaded(name, **settings)


def test_the_majority_class_stands_in_every_panel(tmp_path, monkeypatch):
    import json

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


class Runs(Results):
    """Errors of single runs: method and epsilon -> (divisions, folds, draws)."""

    def __init__(self, errors):
        rows = [("d", method, 9, epsilon) for method, epsilon in errors]
        columns = ["dataset", "method", "train_size", "epsilon"]
        super().__init__(Experiment("made", {}), pd.DataFrame(rows, columns=columns))
        self.errors = errors

    def draws(self, cell, column):
        return self.errors[cell.method, cell.epsilon]


def flat(share, above=0.02, runs=60):
    """Runs of which a share has the same errors at all epsilons but the last."""
    rng = np.random.default_rng(3)
    first = rng.uniform(0.1, 0.4, (10, 5, runs // 10))
    other = rng.uniform(0.1, 0.4, first.shape)
    equal = (np.arange(runs) < share * runs).reshape(10, 1, -1)
    errors = {0.01: first, 1.0: np.where(equal, first, other), 10.0: np.full_like(first, above)}
    return Runs({("m", epsilon): each for epsilon, each in errors.items()})


@pytest.mark.parametrize(("share", "holds"), [(0.4, True), (0.07, None), (0.0, False)])
def test_equal_rows_are_counted_over_runs_of_one_seed(share, holds):
    options = {"method": "m", "dataset": "d", "epsilons": [0.01, 1], "decimals": 9}
    actual = checks.equal_rows(flat(share), **options)
    assert actual.holds is holds and actual.number == pytest.approx(share, abs=0.02)
    then = {"then": 10.0, "at_least": 0.93}
    assert checks.equal_rows(flat(share), **options, **then).holds is holds
    assert checks.equal_rows(flat(share, above=0.2), **options, **then).holds is False


def test_few_runs_leave_it_open():
    options = {"method": "m", "dataset": "d", "epsilons": [0.01, 1], "decimals": 9}
    assert checks.equal_rows(flat(0.0, runs=20), **options).holds is None
    with pytest.raises(Missing):
        checks.equal_rows(flat(0.0), **options | {"epsilons": [0.01, 7.0]})


@pytest.mark.parametrize(("away", "holds"), [(0.0, True), (0.2, False)])
def test_a_single_seed_is_judged_by_single_runs(away, holds):
    rng = np.random.default_rng(5)
    # On average, the method is far off, but some runs are near.
    errors = 0.1 + away + rng.exponential(0.15, (10, 1, 6)) * np.ones((1, 5, 1))
    made = Runs({("m", 0.001): errors, ("none", math.inf): np.full((10, 5, 1), 0.1)})
    options = {"method": "m", "other": "none", "dataset": "d", "epsilon": 0.001, "within": 0.02}
    actual = checks.near_in_single_runs(made, **options)
    assert errors.mean() - 0.1 > 0.1 and actual.holds is holds


@pytest.mark.parametrize(
    ("errors", "holds"),
    [
        ((0.3, 0.3, 0.1), True),
        ((0.3, 0.3, 0.3), None),
        ((0.3, 0.2, 0.1), False),  # it had begun before
        ((0.3, 0.3, 0.4), False),
    ],
)
def test_where_a_curve_begins_to_fall(errors, holds):
    rng = np.random.default_rng(6)
    noise = 0.01 * rng.standard_normal((3, 10, 5, 6))
    made = Runs(
        {
            ("m", epsilon): error + each
            for epsilon, error, each in zip((0.1, 1.0, 10.0), errors, noise, strict=True)
        }
    )
    options = {"method": "m", "dataset": "d", "epsilons": [0.1, 1], "first": 10}
    assert checks.falls_from(made, **options).holds is holds


def test_which_noise_is_less_depends_on_a_sensitivity_that_is_not_stated():
    actual = checks.laplace_is_less(None, columns=30, deltas=[1e-5])
    assert actual.holds is None and actual.number == pytest.approx(2718, rel=1e-3)
    assert "9312/epsilon" in actual.decided_by and "300.4/epsilon" in actual.decided_by
    # With a huge delta, Gaussian noise is less whatever its sensitivity.
    assert checks.laplace_is_less(None, columns=30, deltas=[0.9]).holds is False
    assert checks.laplace_is_less(None, columns=0, deltas=[1e-5]).holds
