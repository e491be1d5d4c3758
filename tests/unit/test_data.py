import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dp.rows import (
    check_rows,
    clip_rows,
    normalise_rows,
    row_norms,
    simulate_linear,
    simulate_mixture,
    simulate_separable,
    simulate_unseparable,
    smallest_training_fold,
    split_folds,
)
from dp.seeds import generator

ROWS = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=20),
    elements=st.floats(allow_nan=False, allow_infinity=False),
)
BOUNDS = st.floats(1e-50, 1e50)


@given(ROWS, BOUNDS)
@settings(max_examples=150)
def test_normalised_rows_never_exceed_the_bound(X, bound):
    """Rows contain any finite floats, even subnormal or huge."""
    before = X.copy()
    with np.errstate(under="ignore"):
        norms = row_norms(normalise_rows(X, bound))
    assert (norms <= bound).all()
    assert (norms[X.any(axis=1)] >= bound * (1 - 1e-12)).all()
    assert not norms[~X.any(axis=1)].any()
    np.testing.assert_array_equal(X, before)


@given(ROWS, BOUNDS)
@settings(max_examples=150)
def test_clipped_rows_never_exceed_the_bound(X, bound):
    with np.errstate(under="ignore", over="ignore"):
        before = row_norms(X)
        clipped = clip_rows(X, bound)
        norms = row_norms(clipped)
    assert (norms <= bound).all()
    short = before < bound * (1 - 1e-12)
    np.testing.assert_array_equal(clipped[short], X[short])
    assert (norms[before > bound * (1 + 1e-12)] >= bound * (1 - 1e-12)).all()


@given(ROWS.filter(lambda X: len(X) > 1))
@settings(max_examples=100)
def test_a_row_depends_on_itself_alone(X):
    with np.errstate(all="ignore"):
        for step in (normalise_rows, clip_rows):
            np.testing.assert_array_equal(step(X)[:1], step(X[:1]))


def test_normalise_keeps_directions_and_takes_integers():
    X = np.array([[3, 4], [0, 0], [5, 12]], dtype=np.uint8)
    expected = [[1.2, 1.6], [0, 0], [10 / 13, 24 / 13]]
    np.testing.assert_allclose(normalise_rows(X, 2.0), expected)
    np.testing.assert_allclose(clip_rows([[3.0, 4.0], [0.3, 0.4]]), [[0.6, 0.8], [0.3, 0.4]])


@pytest.mark.parametrize("bound", [0.0, -1.0, np.nan, np.inf])
def test_bad_bound(bound):
    for step in (normalise_rows, clip_rows):
        with pytest.raises(ValueError, match="bound"):
            step(np.ones((2, 2)), bound)


@given(ROWS, BOUNDS, st.integers(0, 19))
@settings(max_examples=200)
def test_rows_beyond_the_bound_are_refused(X, bound, index):
    with np.errstate(all="ignore"):
        X = normalise_rows(X, bound)
    y = np.where(np.arange(len(X)) % 2, -1, 1)
    check_rows(X, y, bound)
    X[index % len(X)] = 0
    X[index % len(X), 0] = -bound * (1 + 1e-9)
    with pytest.raises(ValueError, match=f"row {index % len(X)} has norm"):
        check_rows(X, y, bound)


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (np.ones(3), np.ones(3), r"X \(n, d\)"),
        (np.ones((0, 3)), np.ones(0), r"X \(n, d\)"),
        (np.ones((3, 1)), np.ones(2), r"X \(n, d\)"),
        (np.ones((2, 1)), np.array([1, 0]), "labels"),
        (np.ones((2, 1)), np.array([1, np.nan]), "labels"),
        (np.ones((2, 1)), np.array([1, 2]), "labels"),
        (np.array([[0.1], [np.nan]]), np.array([1, -1]), "row 1 has a value that is not finite"),
        (np.array([[np.inf], [0.1]]), np.array([1, -1]), "row 0 has a value that is not finite"),
    ],
)
def test_check_rows_refuses(X, y, match):
    with pytest.raises(ValueError, match=match):
        check_rows(X, y, 1.0)


def test_a_bound_that_is_no_number_bounds_nothing():
    with pytest.raises(ValueError, match="bound"):
        check_rows(np.ones((2, 1)), np.ones(2), np.nan)


def test_separable_data():
    X, y, u = simulate_separable(5000, 10, 0.03, generator(0))
    assert X.shape == (5000, 10) and y.dtype == np.int8
    np.testing.assert_allclose(row_norms(X), 1, rtol=1e-12)
    assert np.linalg.norm(u) == pytest.approx(1)
    assert (y * (X @ u) >= 0.03).all()
    again = simulate_separable(5, 10, 0.03, generator(1), separator=u)
    assert again[2] is u and (again[1] * (again[0] @ u) >= 0.03).all()


def test_unseparable_data_flip_only_inside_the_band():
    X, y, u = simulate_unseparable(40_000, 10, 0.1, 0.2, generator(2))
    score = X @ u
    wrong = y * score < 0
    inside = np.abs(score) < 0.1
    assert not wrong[~inside].any()
    share = wrong[inside].mean()
    assert abs(share - 0.2) < 4 * np.sqrt(0.2 * 0.8 / inside.sum())


@pytest.mark.parametrize("condition", [1, 20])
def test_linear_data(condition):
    X, y, w = simulate_linear(50_000, 4, condition, 0.1, generator(3), outliers=0.1)
    assert row_norms(X).max() <= 1
    values = np.linalg.eigvalsh(X.T @ X)
    assert math.sqrt(values[-1] / values[0]) == pytest.approx(condition, rel=0.05)
    assert (X @ w).std() == pytest.approx(0.3, rel=0.02)
    odd = np.abs(y) == 1
    assert odd.mean() == pytest.approx(0.1, abs=0.01) and y[odd].mean() == pytest.approx(
        0, abs=0.05
    )
    assert (y - X @ w)[~odd].std() == pytest.approx(0.1, rel=0.02)
    X, y, w = simulate_linear(50_000, 4, 1, 0.1, generator(4), degrees=2)
    tail = np.mean(np.abs(y - X @ w) > 0.5)  # P(|t_2| > 5) = 0.0377
    assert tail == pytest.approx(0.0377, rel=0.1)


@pytest.mark.parametrize(
    "simulate",
    [
        lambda rows, rng: simulate_linear(rows, 10, 5, 0.1, rng),
        lambda rows, rng: simulate_separable(rows, 10, 0.03, rng),
        lambda rows, rng: simulate_unseparable(rows, 10, 0.1, 0.2, rng),
        lambda rows, rng: simulate_mixture(rows, np.eye(10), 1 + np.eye(10), rng),
    ],
    ids=["linear", "separable", "unseparable", "mixture"],
)
def test_simulations_hold_their_rows_once(simulate):
    tracemalloc.start()
    try:
        X = simulate(1_000_000, np.random.default_rng(8))[0]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert X.shape == (1_000_000, 10)
    assert peak < 1.5 * X.nbytes


def test_folds_partition_and_prefixes_nest():
    folds = split_folds(103, 5, generator(3))
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(103))
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(103))
    assert min(len(train) for train, _ in folds) == smallest_training_fold(103, 5)
    again = split_folds(103, 5, generator(3))
    assert all(
        (a == b).all() for x, z in zip(folds, again, strict=True) for a, b in zip(x, z, strict=True)
    )
    with pytest.raises(ValueError, match="folds"):
        split_folds(4, 5, generator(3))


def test_generators_depend_on_their_axes_and_on_nothing_else():
    axes = [("a",), ("b",), ("a", "b"), ("b", "a"), ("ab",), ("a", 0), ("a", 1), ()]
    first = [generator(7, *a).random() for a in axes]
    assert len(set(first)) == len(axes)
    assert [generator(7, *a).random() for a in reversed(axes)] == first[::-1]
    assert generator(8, "a").random() != first[0]
    # This recorded value must not change between versions, processes or machines.
    seeded = generator(20081208, "cm08", "cm08_separable", 0, "noise")
    assert seeded.integers(10**9) == 412421695
