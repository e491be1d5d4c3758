"""Private tuning: its choice, its cost, and the total that results state."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from dp import tuning
from dp.accounting import REPLACE_ONE, Guarantee
from dp.evaluation import error_rate
from dp.mechanisms import MECHANISMS, Mechanism
from dp.seeds import generator
from dp.solvers.lasso_scales import minimise_lasso
from study.configuration.experiment import Cell, Experiment


def rows(n=600, d=3):
    rng = generator(61)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] > 0, 1, -1)


@pytest.mark.parametrize("scale", ["mean", "summed", "lassoglm"])
def test_a_lasso_is_tuned_at_its_own_scale(scale):
    X, y = rows(300)
    X[:, 1:] *= 0.3
    cut = [(np.arange(100, 300), np.arange(100)), (np.arange(200), np.arange(200, 300))]
    grid = [0.001, 0.1, 30.0]
    errors, status = tuning.cross_validate(X, y, grid, cut, lasso=scale)
    assert (status == "ok").all()
    train, test = cut[1]
    for k, lam in enumerate(grid):
        weights, _ = minimise_lasso(X[train], y[train], lam, scale)
        assert errors[k, 1] == pytest.approx(error_rate(weights, X[test], y[test])[0])
    ridge, _ = tuning.cross_validate(X, y, grid, cut)
    assert (ridge[2] < 0.1).all()
    # lambda = 30 beside the mean loss makes all weights zero; beside the sum it acts as 0.15
    assert (errors[2] > 0.4).all() == (scale != "summed")


def test_exponential_mechanism_draws_with_the_right_probabilities():
    utilities, epsilon = np.array([0.0, 1.0, 3.0, -1.0]), 1.2
    expected = np.exp(epsilon * utilities / 4)
    rng = generator(62)
    drawn = [tuning.exponential_mechanism(utilities, epsilon, 2.0, rng) for _ in range(20_000)]
    counts = np.bincount(drawn, minlength=4)
    assert chisquare(counts, 20_000 * expected / expected.sum()).pvalue > 1e-3


@given(st.lists(st.integers(0, 30), min_size=2, max_size=8), st.floats(0.01, 5), st.data())
@settings(max_examples=100, deadline=None)
def test_exponential_mechanism_is_private(mistakes, epsilon, data):
    """One record changes every count by at most 1, so no probability changes by more than e^epsilon."""
    change = data.draw(st.lists(st.integers(-1, 1), min_size=len(mistakes), max_size=len(mistakes)))

    def probabilities(counts):
        weights = np.exp(-epsilon * (counts - counts.min()) / 2)
        return weights / weights.sum()

    p = probabilities(np.array(mistakes))
    q = probabilities(np.array(mistakes) + change)
    assert np.abs(np.log(p / q)).max() <= epsilon * (1 + 1e-9)


class Recording(Mechanism):
    """Predicts well at one lambda only, and records the rows on which it was trained."""

    name, delta = "recording", "optional"

    def __init__(self, good, proven):
        self.good, self.proven, self.seen = good, proven, []

    def _guarantee(self, n, d, p):
        return Guarantee(p.epsilon, self.proven, p.delta, REPLACE_ONE, "recorded")

    def _release(self, X, y, p, draws, rng):
        self.seen.append(X)
        return np.array([[1 if p.lam == self.good else -1, 0.0, 0.0]])


def test_every_lambda_trains_on_its_own_rows_and_none_on_the_last_part():
    X, y = rows(65)
    mechanism = Recording(good=0.1, proven=2.0)
    grid = [0.01, 0.1, 1.0]
    choice = tuning.private_tuning(X, y, grid, mechanism, epsilon=50.0, rng=generator(63))
    assert choice.index == 1
    sizes = [len(part) for part in mechanism.seen]
    assert sizes == [17, 16, 16]
    together = np.concatenate(mechanism.seen)
    assert len(np.unique(together, axis=0)) == sum(sizes) == 49
    # the whole cost is the larger of the exponential mechanism's and the training's
    assert choice.guarantee.epsilon == 50.0
    small = tuning.private_tuning(X, y, grid, mechanism, epsilon=0.5, rng=generator(63), delta=1e-6)
    assert (small.guarantee.epsilon, small.guarantee.delta) == (2.0, 1e-6)
    assert small.guarantee.claimed_epsilon == 0.5


def test_the_cut_does_not_depend_on_the_rows():
    first, second = Recording(0.1, 1.0), Recording(0.1, 1.0)
    X, y = rows(40)
    tuning.private_tuning(X, y, [0.1, 1.0], first, epsilon=1.0, rng=generator(64))
    tuning.private_tuning(-X, -y, [0.1, 1.0], second, epsilon=1.0, rng=generator(64))
    for a, b in zip(first.seen, second.seen, strict=True):
        np.testing.assert_array_equal(a, -b)


def test_real_mechanisms_choose_a_lambda_that_is_not_absurd():
    X, y = rows(2000)
    grid = [1e-6, 0.01, 1e4]
    for name in ("output_perturbation", "objective_perturbation"):
        choice = tuning.private_tuning(X, y, grid, MECHANISMS[name], epsilon=5.0, rng=generator(65))
        assert grid[choice.index] < 1e4
        assert choice.guarantee.epsilon == 5.0


def test_too_few_rows():
    X, y = rows(3)
    with pytest.raises(ValueError, match="fewer lambdas"):
        tuning.private_tuning(
            X, y, [0.1, 1, 10], MECHANISMS["output_perturbation"], epsilon=1.0, rng=generator(66)
        )


def tune(tmp_path, private, holdout=False):
    X, y = rows(400)
    arrays = {"X": X, "y": y}
    if holdout:
        arrays |= {"X_holdout": X[:100], "y_holdout": y[:100]}
    np.savez(tmp_path / "data.npz", **arrays)
    (tmp_path / "data.json").write_text(json.dumps({"bound": 1.0}))
    command = [
        *(sys.executable, "scripts/tune.py", "--data", tmp_path / "data.npz"),
        *("--meta", tmp_path / "data.json", "--experiment", "e", "--dataset", "d"),
        *("--grid", "0.001", "1", "4", "--folds", "4", "--seed", "1"),
        *("--out-json", tmp_path / "out.json", "--out-csv", tmp_path / "out.csv"),
        *(("--private", json.dumps(private)) if private else ()),
    ]
    subprocess.run([str(word) for word in command], check=True, env={"OMP_NUM_THREADS": "1"})
    return json.loads((tmp_path / "out.json").read_text())


# The part of an experiment that a row's guarantee needs.
ONE_METHOD = Experiment(
    "e",
    {
        "datasets": ["d"],
        "methods": {
            "output_perturbation": {
                "mechanism": "output_perturbation",
                "lambda": "tuned",
                "delta": 0.0,
                "options": {},
            }
        },
    },
)


@pytest.mark.parametrize(
    ("private", "holdout", "total"),
    [
        (None, False, math.inf),
        (None, True, 1.0),
        ({"default": 0.05}, False, 1.0),
        ({"epsilon": 0.25, "delta": 0.0, "mechanism": "objective_perturbation"}, False, 1.25),
        ({"epsilon": 0.25, "delta": 0.0, "mechanism": "objective_perturbation"}, True, 1.0),
        ({"epsilon": 3.0, "delta": 0.0, "mechanism": "objective_perturbation"}, True, 3.0),
    ],
)
def test_results_state_the_total(tmp_path, monkeypatch, private, holdout, total):
    """Unpaid tuning on private rows voids the guarantee. On a holdout, or by default, it costs nothing."""
    import guarantees

    tuned = tune(tmp_path, private, holdout)
    if private and "default" in private:
        assert tuned["lambda"] == 0.05
    assert "error" not in tuned or not private
    meta = {"bound": 1.0, "columns": ["a", "b", "c"], "private_rows": []}
    path = str(tmp_path / "out.json")
    monkeypatch.setattr(Experiment, "tuned_path", lambda *_: path)
    monkeypatch.setattr(guarantees, "read_json", lambda name: meta)
    cell = Cell("d", "output_perturbation", 300, 1.0)
    lam, _, guarantee = guarantees.Guarantees(ONE_METHOD).of(cell)
    assert lam == tuned["lambda"]
    assert guarantee.epsilon == pytest.approx(total)
    if private and "epsilon" in private:
        assert "exponential mechanism" in guarantee.reason
    free = holdout and private is None
    assert ("taken as public: the holdout rows" in guarantee.reason) == free


def test_settings_that_results_changed_are_taken_as_public(monkeypatch):
    import guarantees

    meta = {"bound": 1.0, "columns": ["a", "b", "c"], "private_rows": []}
    monkeypatch.setattr(guarantees, "read_json", lambda name: meta)
    cell = Cell("d", "output_perturbation", 300, 1.0)
    [(label, method)] = ONE_METHOD.methods.items()
    for changed in ({}, {"after_results": True}):
        stated = {label: method | {"lambda": 0.1} | changed}
        experiment = Experiment("e", ONE_METHOD.values | {"methods": stated})
        _, _, guarantee = guarantees.Guarantees(experiment).of(cell)
        assert guarantee.epsilon == 1.0
        assert ("changed after results had been seen" in guarantee.reason) == bool(changed)


def test_private_tuning_is_for_replacing_a_record_alone():
    X, y = np.full((400, 2), 0.5), np.where(np.arange(400) % 2, 1, -1)
    given = {"epsilon": 1.0, "delta": 1e-5, "rng": generator(1)}
    choice = tuning.private_tuning(X, y, [0.1, 1.0], MECHANISMS["amp"], **given)
    assert choice.guarantee.adjacency == REPLACE_ONE
    with pytest.raises(ValueError, match="private for add-remove"):
        tuning.private_tuning(
            X, y, [0.1, 1.0], MECHANISMS["objective_perturbation_redberg"], **given
        )
