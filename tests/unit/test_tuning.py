import json
import math
import subprocess
import sys

import numpy as np
import pytest

from dp.evaluation import error_rate
from dp.seeds import generator
from dp.solvers.lasso_scales import minimise_lasso
from study.configuration.cell import Cell
from study.configuration.experiment import Experiment
from study.jobs import cross_validation as tuning


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
    # Added to the mean loss, a penalty with lambda = 30 makes all weights zero. Added to the sum,
    # it acts like lambda = 0.15.
    assert (errors[2] > 0.4).all() == (scale != "summed")


def tune(tmp_path, holdout):
    X, y = rows(400)
    arrays = {"X": X, "y": y}
    if holdout:
        arrays |= {"X_holdout": X[:100], "y_holdout": y[:100]}
    np.savez(tmp_path / "data.npz", **arrays)
    (tmp_path / "data.json").write_text(json.dumps({"bound": 1.0}))
    command = [
        *(sys.executable, "scripts/job.py", "tune", "--data", tmp_path / "data.npz"),
        *("--meta", tmp_path / "data.json", "--experiment", "e", "--dataset", "d"),
        *("--grid", "0.001", "1", "4", "--folds", "4", "--seed", "1"),
        *("--out-json", tmp_path / "out.json", "--out-csv", tmp_path / "out.csv"),
    ]
    subprocess.run([str(word) for word in command], check=True, env={"OMP_NUM_THREADS": "1"})
    return json.loads((tmp_path / "out.json").read_text())


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


@pytest.mark.parametrize(("holdout", "total"), [(False, math.inf), (True, 1.0)])
def test_results_state_the_total(tmp_path, monkeypatch, holdout, total):
    """Unpaid tuning on private rows voids the guarantee; tuning on a holdout costs nothing."""
    from jobs import guarantees

    tuned = tune(tmp_path, holdout)
    meta = {"bound": 1.0, "columns": ["a", "b", "c"], "private_rows": []}
    path = str(tmp_path / "out.json")
    monkeypatch.setattr(Experiment, "tuned_path", lambda *_: path)
    monkeypatch.setattr(guarantees, "read_json", lambda name: meta)
    cell = Cell("d", "output_perturbation", 300, 1.0)
    lam, _, guarantee = guarantees.Guarantees(ONE_METHOD).of(cell)
    assert lam == tuned["lambda"]
    assert guarantee.epsilon == pytest.approx(total)
    assert ("taken as public: the holdout rows" in guarantee.reason) == holdout


def test_settings_that_results_changed_are_taken_as_public(monkeypatch):
    from jobs import guarantees

    meta = {"bound": 1.0, "columns": ["a", "b", "c"], "private_rows": []}
    monkeypatch.setattr(guarantees, "read_json", lambda name: meta)
    cell = Cell("d", "output_perturbation", 300, 1.0)
    settings = ONE_METHOD.settings()
    [(label, method)] = settings["methods"].items()
    for changed in ({}, {"after_results": True}):
        stated = {label: method | {"lambda": 0.1} | changed}
        experiment = Experiment("e", settings | {"methods": stated})
        _, _, guarantee = guarantees.Guarantees(experiment).of(cell)
        assert guarantee.epsilon == 1.0
        assert ("changed after results had been seen" in guarantee.reason) == bool(changed)
