"""Metrics of released weights agree with scikit-learn's, draw by draw."""

import numpy as np
import pytest
from sklearn import metrics as reference

from dp import evaluation, metrics
from dp.rows import Rows


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("n, kept", [(400, 1 << 23), (400, 900), (1, 1 << 23), (40, 40)])
@pytest.mark.parametrize("steps", [None, 4.0])  # quarters give many equal scores
def test_classification_is_scikit_learns(n, kept, steps, rng, monkeypatch):
    monkeypatch.setattr(evaluation, "KEPT", kept)
    X, y = rng.standard_normal((n, 3)), rng.choice([-1, 1], n).astype(np.int8)
    weights, intercept = 3 * rng.standard_normal((7, 3)), rng.standard_normal(7)
    if steps:
        X, weights, intercept = (np.round(a * steps) / steps for a in (X, weights, intercept))
    actual = evaluation.classification(weights, X, y, intercept)
    assert list(actual) == list(metrics.CLASSES)
    assert (actual["error"] == evaluation.error_rate(weights, X, y, intercept)).all()
    for k, (w, b) in enumerate(zip(weights, intercept, strict=True)):
        scores = X @ w + b
        assert actual["error"][k] == np.mean(np.where(scores > 0, 1, -1) != y)
        p = 1 / (1 + np.exp(-scores))
        expected = reference.log_loss(y, p, labels=[-1, 1])
        assert actual["log_loss"][k] == pytest.approx(expected, rel=1e-8)
        if len(set(y)) == 2:
            assert actual["auc"][k] == pytest.approx(reference.roc_auc_score(y, scores), abs=1e-15)
        else:
            assert np.isnan(actual["auc"][k])


def test_many_scores_are_counted_in_bins(rng, monkeypatch):
    X, y = rng.standard_normal((5000, 3)), rng.choice([-1, 1], 5000)
    weights = np.vstack(
        [10.0 ** rng.uniform(-9, 9, (6, 3)) * rng.choice([-1, 1], (6, 3)), np.zeros(3)]
    )
    exact = evaluation.classification(weights, X, y, 0.5)
    monkeypatch.setattr(evaluation, "SORTED", 4999)
    actual = evaluation.classification(weights, X, y, 0.5)
    assert (actual["error"] == exact["error"]).all()
    assert actual["log_loss"] == pytest.approx(exact["log_loss"], rel=1e-12)
    assert actual["auc"] == pytest.approx(exact["auc"], abs=1e-5)
    assert actual["auc"][-1] == 0.5
    X = np.round(X)  # each score of these weights has its own bin
    for k, w in enumerate(np.eye(3)):
        auc = evaluation.binned_auc(np.eye(3), X, y > 0)[k]
        assert auc == pytest.approx(reference.roc_auc_score(y, X @ w), abs=1e-14)
    same = evaluation.binned_auc(weights, X[:1] + np.zeros((5000, 1)), y > 0)
    assert (np.abs(same - 0.5) < 0.05).all()
    huge = np.array([[1e308, 1e308, -1e308], [1.0, 0.0, 0.0]])
    with np.errstate(over="ignore", invalid="ignore"):
        actual = evaluation.binned_auc(huge, X, y > 0)
    assert (actual == evaluation.binned_auc(huge / [[1e308], [1.0]], X, y > 0)).all()
    assert np.isnan(evaluation.binned_auc(weights, X, np.ones(5000, bool))).all()


def test_auc_of_ties_and_zeros():
    positive = np.array([True, False, True, False, True])
    scores = np.array([
        [0.0, -0.0, 0.0, -0.0, 0.0],
        [1.0, 1.0, 1.0, 1.0, 2.0],
        [-1.5e308, -1e308, 1.5e308, 1e-320, -1e-320],
        [3.0, 1.0, 3.0, 1.0, 3.0],
        [-3.0, -1.0, -3.0, -1.0, -3.0],
    ])  # fmt: skip
    pairs = scores[:, :, None][:, positive], scores[:, None][:, :, ~positive]
    expected = ((pairs[0] > pairs[1]) + 0.5 * (pairs[0] == pairs[1])).mean(axis=(1, 2))
    assert (evaluation.auc(scores, positive) == expected).all()
    assert expected[0] == 0.5 and expected[3:].tolist() == [1, 0]


def test_log_loss_of_huge_scores_is_finite():
    actual = evaluation.classification(
        np.array([[1e5]]), np.array([[1.0], [2.0]]), np.array([1, -1])
    )
    assert actual["log_loss"][0] == pytest.approx(1e5)


def test_classes_are_scikit_learns(rng):
    X, y = rng.standard_normal((300, 4)), rng.integers(0, 3, 300)
    weights = rng.standard_normal((5, 4, 3))
    actual = evaluation.classification(weights, X, y)
    for k, w in enumerate(weights):
        p = np.exp(X @ w)
        p /= p.sum(axis=1, keepdims=True)
        assert actual["log_loss"][k] == pytest.approx(reference.log_loss(y, p), rel=1e-12)
        assert actual["error"][k] == np.mean((X @ w).argmax(axis=1) != y)
    assert np.isnan(actual["auc"]).all()


@pytest.mark.parametrize("kept", [1 << 23, 700])
def test_regression_is_scikit_learns_on_the_targets_own_scale(kept, rng, monkeypatch):
    monkeypatch.setattr(evaluation, "KEPT", kept)
    X = rng.standard_normal((300, 4))
    weights, intercept = rng.standard_normal((6, 4)), rng.standard_normal(6)
    y = np.clip(X @ weights[0] / 3 + 0.1 * rng.standard_normal(300), -1, 1)
    low, high = 10.0, 50.0
    raw = low + (y + 1) / 2 * (high - low)
    rows = Rows(X, np.arange(300))
    actual = evaluation.regression(weights / 3, rows, y, intercept / 9, unit=(high - low) / 2)
    assert list(actual) == list(metrics.TARGETS)
    for k, (w, b) in enumerate(zip(weights / 3, intercept / 9, strict=True)):
        predicted = low + (X @ w + b + 1) / 2 * (high - low)
        for name, of in {
            "mse": reference.mean_squared_error,
            "mae": reference.mean_absolute_error,
            "r2": reference.r2_score,
        }.items():
            assert actual[name][k] == pytest.approx(of(raw, predicted), rel=1e-10)
    assert evaluation.regression(weights, X, y)["r2"].max() <= 1


def test_targets_that_are_all_the_same_have_no_r2():
    actual = evaluation.regression(np.ones((2, 1)), np.ones((3, 1)), np.full(3, 0.1))
    assert np.isnan(actual["r2"]).all() and actual["mse"] == pytest.approx(0.81)
