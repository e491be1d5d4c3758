"""A search's errors are those of single releases, and simulations that it does not use change nothing."""

import csv
import json
import sys

import numpy as np
import pytest

from dp.evaluation import error_rate
from dp.mechanisms import MECHANISMS
from dp.rows import reshuffle, split_folds
from dp.seeds import generator
from jobs import search

SEED, SIZE, SIMULATIONS, FOLDS = 5, 41, 3, 4
GRID = {"batch": [9, 4], "lambda": [0.1, 0.001]}


@pytest.mark.parametrize(
    "mechanism", ["dp_sgd", "dp_sgd_as_run", "distributed_lasso", "distributed_lasso_as_run"]
)
def test_errors_are_those_of_single_releases(mechanism, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) / 10
    y = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    (tmp_path / "data.json").write_text(json.dumps({"bound": 1.0, "columns": list("abcde")}))
    lasso = mechanism.startswith("distributed_lasso")
    # With this cost difference, unlike the default of 1e-20, no stop depends on rounding.
    fixed = {"cost_difference": 1e-9, "max_iterations": 400} if lasso else {}
    # The last rate diverges, and then every row counts as wrong.
    grid = {"rate": [0.5, 0.01, 1e9], "lambda": GRID["lambda"]} if lasso else GRID
    epsilon, private = ("inf", {}) if lasso else ("2", {"epsilon": 2.0})
    entry = {
        "method": "m",
        "grid": grid,
        "folds": FOLDS,
        "rows": "private",
        "by": "error",
        "simulations": 2,
    }
    words = {
        "data": tmp_path / "data.npz", "meta": tmp_path / "data.json", "experiment": "e",
        "dataset": "d", "search": "s", "grid": json.dumps(entry), "simulations": SIMULATIONS,
        "train-size": SIZE, "mechanism": mechanism, "options": json.dumps(fixed),
        "epsilon": epsilon, "seed": SEED,
        "out-json": tmp_path / "out.json", "out-csv": tmp_path / "out.csv",
    }  # fmt: skip
    argv = ["search", *(str(w) for k, v in words.items() for w in (f"--{k}", v))]
    monkeypatch.setattr(sys, "argv", argv)
    search.main()
    with (tmp_path / "out.csv").open(newline="") as handle:
        results = list(csv.DictReader(handle))
    assert len(results) == (6 if lasso else 4)
    failed = set()
    for row in results:
        option = "rate" if lasso else "batch"
        options = {option: float(row[option]) if lasso else int(row[option])}
        errors = []
        for k in range(2):
            draws = generator(SEED, "e", "d", k, "simulation")
            train, _ = reshuffle(len(y), draws, has_test=False)
            rows, X_ = train[:SIZE], X[train]
            folds = split_folds(SIZE, FOLDS, generator(SEED, "e", "d", "s", k, "search folds"))
            noise = generator(SEED, "e", "d", "s", k, "search noise").spawn(FOLDS)
            size = min(len(fit) for fit, _ in folds)
            for (fit, part), of_part in zip(folds, noise, strict=True):
                all_rows = {"all_rows": X_} if lasso else {}
                release = MECHANISMS[mechanism].release(
                    X[rows][fit[:size]], y[rows][fit[:size]], lam=float(row["lambda"]),
                    rng=of_part, **options, **fixed, **private, **all_rows,
                )  # fmt: skip
                intercept = release.info.get("intercept", 0.0)
                error = error_rate(release.weights, X[rows][part], y[rows][part], intercept)
                if release.status[0] != "ok":
                    failed.add(options[option])
                    error = 1.0
                errors.append(error)
        assert float(row["error_mean"]) == pytest.approx(
            np.mean(errors), abs=1e-8
        )  # nine digits are written
    assert failed == ({1e9} if lasso else set())
    made = [(tmp_path / f"out.{suffix}").read_bytes() for suffix in ("csv", "json")]
    argv[argv.index("--simulations") + 1] = "2"
    search.main()
    assert made == [(tmp_path / f"out.{suffix}").read_bytes() for suffix in ("csv", "json")]
