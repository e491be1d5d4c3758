"""Tests the rules for lambda, steps and delta in the configuration, in jobs and in results."""

import math

import numpy as np
import pytest

from dp.mechanisms import MECHANISMS
from dp.proofs import gaussian_tilt
from dp_privacy.accounting import gaussian_mu, rule_delta
from dp_privacy.errors import Refused
from jobs import run
from jobs.guarantees import Guarantees
from study import arguments, lambdas, paths
from study.configuration import validation
from study.configuration.cell import Cell
from study.configuration.config import ConfigError
from study.configuration.data_set_keys import DataSet
from study.configuration.experiment import data_path
from study.configuration.resolve import experiment
from study.jobs.files import write_json

N, D, EPSILON = 400, 3, 2.0
SETS = paths.HOME / "config/datasets.yaml"
DATA = validation.validate(validation.read_yaml(SETS)["cm08_separable"], DataSet, str(SETS))
META = {"bound": 1.5, "columns": ["a", "b", "c"], "labels": {"-1": "no", "1": "yes"}}


def resolved(**method):
    value = {
        "title": "Rules",
        "datasets": ["cm08_separable"],
        "folds": 2,
        "restarts": 1,
        "lambda": 0.01,
        "methods": {"gaussian_objective_perturbation": {"delta": "rule", **method}},
        "sweeps": {"one": {"train_sizes": [N], "epsilons": [EPSILON]}},
    }
    return experiment("e", value, lambda _: "e.yaml", {"cm08_separable": DATA})


def test_delta_by_rule():
    assert rule_delta(50) == rule_delta(99_999) == 1e-6
    assert rule_delta(400_000) == 1 / 4_000_000
    actual = resolved(**{"lambda": "rule"})
    assert actual.delta("gaussian_objective_perturbation", 10**6) == 1e-7
    actual = resolved(delta="squared", **{"lambda": "rule"})
    assert actual.delta("gaussian_objective_perturbation", 400) == 1 / 160_000
    actual = resolved(delta=1e-4, **{"lambda": "rule"})
    assert actual.delta("gaussian_objective_perturbation", 10**6) == 1e-4


def test_every_kind_of_lambda_is_read_from_its_own_text(tmp_path):
    file = str(tmp_path / "chosen.json")
    write_json(file, {"lambda": 0.5, "options": {"batch": 7}, "private_rows": True})
    kinds = [lambdas.Stated(0.25), lambdas.Chosen(file), lambdas.ByRule(), lambdas.Selected()]
    assert [lambdas.parse(kind.text) for kind in kinds] == kinds
    assert [kind.file for kind in kinds] == [None, file, None, None]
    results = [kind.settings(lambda options: len(options) + 0.125) for kind in kinds]
    assert results == [(0.25, {}), (0.5, {"batch": 7}), (0.125, {}), (None, {})]
    assert "not paid for" in kinds[1].origin()
    write_json(file, {"lambda": None, "options": {"batch": 7}, "private_rows": True})
    assert kinds[1].settings(lambda options: len(options) + 0.125) == (1.125, {"batch": 7})


def test_a_rule_takes_public_numbers_and_reaches_the_guarantee(tmp_path, monkeypatch):
    actual = resolved(**{"lambda": "rule", "options": {"adjacency": "add-remove", "radius": 10}})
    monkeypatch.chdir(tmp_path)
    label = "gaussian_objective_perturbation"
    write_json(data_path("cm08_separable", "json"), META | {"private_rows": []})
    cell = Cell("cm08_separable", label, N, EPSILON)
    lam, options, stated = Guarantees(actual).of(cell)
    expected = gaussian_tilt.rule_lambda(
        N, D, EPSILON, 1e-6, 1.5, adjacency="add-remove", output=0.03, radius=10
    )
    assert lam == pytest.approx(expected) and options["radius"] == 10
    assert (stated.epsilon, stated.delta, stated.adjacency) == (EPSILON, 1e-6, "add-remove")
    assert actual.fit_path(cell) is None  # lambda, and so a fit, would differ between epsilons


def test_rules_look_at_no_row():
    seen = {}

    class Rule:
        name, facts, counts = "rule", (), False

        @staticmethod
        def of_data(meta):
            return {}

        @staticmethod
        def rule_lambda(n, d, **options):
            seen.update(options, n=n, d=d)
            return 0.5

    cell = {"epsilon": EPSILON, "delta": 1e-6}
    lam, _ = arguments.chosen(lambdas.ByRule(), Rule, META, N, {}, **cell)
    assert lam == 0.5
    assert seen == {"n": N, "d": D, "bound": 1.5, **cell}


def test_mechanisms_without_a_rule_say_so():
    with pytest.raises(Refused, match="output_perturbation has no rule for lambda: give a number"):
        MECHANISMS["output_perturbation"].rule_lambda(N, D, EPSILON, 0.0)
    with pytest.raises(ConfigError, match="no rule for lambda"):
        resolved(mechanism="output_perturbation_gaussian", **{"lambda": "rule"})
    assert MECHANISMS["amp"].rule_lambda(N, D, EPSILON, 1e-6) == 0
    with pytest.raises(
        ConfigError, match="must be a number or one of published, tuned, searched, selected, r"
    ):
        resolved(**{"lambda": "rules"})
    with pytest.raises(ConfigError, match="must be a number or one of rule, squared"):
        resolved(**{"delta": "small"})


def test_steps_by_rule_are_those_that_are_stated():
    dp_gd = MECHANISMS["dp_gd"]
    settings = {"epsilon": EPSILON, "delta": 1e-6, "bound": 1.5}
    p = dp_gd.parameters(N, D, steps="rule", **settings)
    steps = round(N * gaussian_mu(EPSILON, 1e-6) / math.sqrt(D))
    assert (p.iterations, p.learning_rate, p.clip) == (steps, 4 / 1.5**2, 1.5)
    stated = {"iterations": steps, "learning_rate": 4 / 1.5**2, "clip": 1.5}
    alike = dp_gd.guarantee(N, D, **settings, **stated)
    assert dp_gd.guarantee(N, D, steps="rule", **settings)[:5] == alike[:5]
    with pytest.raises(Refused, match="finds clip by rule: leave it out"):
        dp_gd.parameters(N, D, steps="rule", clip=1.0, **settings)
    with pytest.raises(Refused, match="no rule for its steps with the squared loss"):
        dp_gd.parameters(N, D, steps="rule", loss="squared", **settings)


def test_a_job_runs_by_rule_as_with_the_number(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(900, D))
    X *= 1.5 / np.linalg.norm(X, axis=1).max()
    y = np.where(X[:, 0] + 0.1 * rng.normal(size=900) > 0, 1, -1).astype(np.int8)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    write_json(tmp_path / "data.json", META)

    def errors(lam, out):
        words = [
            *("run", "--data", tmp_path / "data.npz", "--meta", tmp_path / "data.json"),
            *("--experiment", "e", "--dataset", "d", "--folds", 2, "--train-size", N, "--seed", 1),
            *("--method", "m", "--mechanism", "gaussian_objective_perturbation", "--lam", lam),
            *("--epsilon", EPSILON, "--delta", 1e-6, "--restarts", 3, "--out", tmp_path / out),
        ]
        monkeypatch.setattr("sys.argv", [str(word) for word in words])
        run.main()
        return (tmp_path / out).read_text()

    rule = MECHANISMS["gaussian_objective_perturbation"].rule_lambda(N, D, EPSILON, 1e-6, 1.5)
    assert errors("rule", "a.csv") == errors(repr(rule), "b.csv")
