"""Tests the non-separable data and breast-cancer rows of Veldhuizen (2020)."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.optimize import minimize

from dp.rows import maximum_margin_separator, simulate_expanded_band, simulate_separable
from dp.seeds import generator
from study.data import readers


@pytest.mark.parametrize("columns", [2, 10])
def test_separator_has_the_largest_margin(columns):
    """The reference is the quadratic program min ||w||^2 with all margins at least 1."""
    X, y, true = simulate_separable(500, columns, 0.05, generator(81, columns))
    actual = maximum_margin_separator(X, y)
    A = X * y[:, None]
    programme = minimize(
        lambda w: w @ w / 2, true / 0.05, jac=lambda w: w, method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: A @ w - 1, "jac": lambda w: A},
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    expected = programme.x / np.linalg.norm(programme.x)
    assert np.linalg.norm(actual) == pytest.approx(1)
    assert (A @ actual).min() == pytest.approx((A @ expected).min(), rel=1e-5)
    assert (A @ actual).min() >= (A @ true).min() >= 0.05
    np.testing.assert_allclose(actual, expected, atol=1e-4)


def test_data_without_a_separator_are_refused():
    X = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    with pytest.raises(ValueError, match="not separable"):
        maximum_margin_separator(X, np.array([1, 1, -1, -1]))


def test_labels_are_flipped_in_the_band_of_the_estimated_separator_only():
    rows = 20_000
    X, y, separator = simulate_expanded_band(rows, 10, 0.03, 0.1, 0.2, generator(82))
    true = simulate_separable(rows, 10, 0.03, generator(82))
    np.testing.assert_array_equal(X, true[0])
    assert (np.abs(X @ true[2]) >= 0.03).all()
    assert np.linalg.norm(separator - true[2]) > 1e-4
    np.testing.assert_array_equal(separator, maximum_margin_separator(X, true[1]))

    flipped = y != true[1]
    band = np.abs(X @ separator) < 0.1
    assert not flipped[~band].any()
    share = flipped[band].mean()
    assert abs(share - 0.2) < 4 * np.sqrt(0.2 * 0.8 / band.sum())
    assert set(np.unique(y)) == {-1, 1} and y.dtype == np.int8


def test_the_estimate_may_be_given():
    estimate = np.eye(3)[0]
    X, y, separator = simulate_expanded_band(
        300, 3, 0.03, 0.2, 1.0, generator(83), estimate=lambda X, y: estimate
    )
    np.testing.assert_array_equal(separator, estimate)
    clean = simulate_separable(300, 3, 0.03, generator(83))[1]
    np.testing.assert_array_equal(y != clean, np.abs(X[:, 0]) < 0.2)


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan")])
def test_a_flip_probability_is_checked(probability):
    with pytest.raises(ValueError, match="flip probability"):
        simulate_expanded_band(10, 2, 0.03, 0.1, probability, generator(84))


def prepared(name, folder):
    entry = yaml.safe_load(Path("config/datasets.yaml").read_text())[name]
    entry.setdefault("steps", [{"row_norm": {}}])
    out = folder / f"{name}.npz"
    subprocess.run(
        [
            sys.executable, "scripts/job.py", "prepare", "--dataset", name, "--entry", json.dumps(entry),
            "--seed", "3", "--out-npz", out, "--out-json", out.with_suffix(".json"),
        ],
        check=True,
    )  # fmt: skip
    with np.load(out) as arrays:
        return dict(arrays), json.loads(out.with_suffix(".json").read_text())


def test_the_real_rows_are_the_same_in_both_forms(tmp_path):
    raw, meta = prepared("v20_real", tmp_path)
    standardised, other = prepared("v20_real_standardised", tmp_path)
    assert raw["X"].shape == standardised["X"].shape == (565, 5)
    np.testing.assert_array_equal(raw["y"], standardised["y"])
    for record in (meta, other):
        assert record["rows"] == 565 and record["bound"] == 1 and not record["private_rows"]
        assert record["columns"][3] == "mean area"
    # Rows are nearly parallel: the area is by far the largest value.
    assert (raw["X"][:, 3] > 0.9).mean() > 0.99
    # scikit-learn's rows differ from these only in their norm.
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    directions = bunch.data[:, [0, 1, 2, 3, 4]]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    nearest = np.abs(raw["X"][:, None] - directions[None]).max(axis=2)
    match = nearest.argmin(axis=1)
    assert nearest.min(axis=1).max() < 1e-12 and len(set(match)) == 565
    np.testing.assert_array_equal(raw["y"] == 1, bunch.target[match] == 0)  # malignant


def test_an_unknown_feature_is_refused():
    with pytest.raises(ValueError, match="no feature 'mean colour'"):
        readers.read_sklearn("breast_cancer", ["mean radius", "mean colour"])
