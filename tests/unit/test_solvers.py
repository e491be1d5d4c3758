"""The batched solver against other solvers, closed forms and an independent gradient."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from dp.solvers import minimise


def problem(n, d, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ rng.standard_normal(d) + noise * rng.standard_normal(n) > 0, 1, -1)
    return X, y, rng


def gradient(w, X, y, lam, linear):
    """Of the tilted logistic objective, by the textbook formula."""
    s = expit(-y * (X @ w))
    return -(X.T @ (y * s)) / len(X) + lam * w + linear / len(X)


@pytest.mark.parametrize(
    ("n", "d", "lam"),
    [(300, 5, 0.1), (2000, 10, 0.01), (150, 30, 1e-4), (400, 100, 1e-3), (1, 1, 0.5)],
)
def test_agrees_with_scikit_learn(n, d, lam):
    from sklearn.linear_model import LogisticRegression

    X, y, _ = problem(n, d, noise=0.0 if n > 1 else 1.0)
    X, y = (X, y) if n > 1 else (np.vstack([X, -X]), np.concatenate([y, -y]))
    weights, info = minimise(X, y, lam)
    reference = LogisticRegression(
        C=1 / (len(X) * lam), fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=500
    ).fit(X, y)
    assert info.status.tolist() == ["ok"]
    # two points with gradients below 1e-9 lie within 2e-9 / lam of each other
    assert np.linalg.norm(weights[0] - reference.coef_[0]) <= 1e-8 / lam


def test_every_restart_is_a_minimiser_of_its_own_objective():
    X, y, rng = problem(500, 7)
    linear = rng.standard_normal((40, 7)) * np.geomspace(1e-3, 1e4, 40)[:, None]
    weights, info = minimise(X, y, 0.01, linear=linear)
    assert set(info.status) == {"ok"}
    for w, b, norm in zip(weights, linear, info.gradient_norm, strict=True):
        own = np.linalg.norm(gradient(w, X, y, 0.01, b))
        assert own <= 1e-9 + 1e-15 * np.linalg.norm(b)
        assert norm == pytest.approx(own, abs=1e-12)


def test_agrees_with_a_trust_region_method():
    from scipy.optimize import minimize

    X, y, rng = problem(200, 4)
    b = 30 * rng.standard_normal(4)

    def value(w):
        return np.logaddexp(0, -y * (X @ w)).mean() + 0.05 * w @ w + b @ w / len(X)

    best = minimize(
        value,
        np.zeros(4),
        jac=lambda w: gradient(w, X, y, 0.1, b),
        method="BFGS",
        options={"gtol": 1e-10},
    )
    assert minimise(X, y, 0.1, linear=b)[0][0] == pytest.approx(best.x, abs=1e-7)


def test_squared_loss_is_ridge_regression():
    X, y, rng = problem(100, 6)
    b = rng.standard_normal((3, 6))
    weights, _ = minimise(X, y, 0.2, linear=b, loss="squared")
    for w, tilt in zip(weights, b, strict=True):
        closed = np.linalg.solve(X.T @ X / 100 + 0.2 * np.eye(6), (X.T @ y - tilt) / 100)
        assert w == pytest.approx(closed, abs=1e-8)


def test_huber_hinge_is_stationary():
    X, y, rng = problem(300, 5)
    b = 5 * rng.standard_normal((10, 5))
    weights, info = minimise(X, y, 0.05, linear=b, loss="huber")
    assert set(info.status) == {"ok"}
    for w, tilt in zip(weights, b, strict=True):
        slope = -np.clip((1.5 - y * (X @ w)) / 1.0, 0, 1)  # h = 1/2
        assert np.linalg.norm(X.T @ (y * slope) / 300 + 0.05 * w + tilt / 300) <= 1e-9


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("lam", [1e-8, 1e-3, 1e3])
@pytest.mark.parametrize("size", [0.0, 1e4, 1e8])
def test_extreme_margins_end_with_a_status_and_no_warning(lam, size):
    X, y, rng = problem(200, 3)
    weights, info = minimise(X, y, lam, linear=size * rng.standard_normal((5, 3)))
    assert np.isfinite(weights).all()
    assert set(info.status) <= {"ok", "not_converged"}
    assert (info.gradient_norm[info.status == "ok"] <= 1e-9).all()
    if size <= 1e4:
        assert set(info.status) == {"ok"}


def test_a_bad_restart_harms_no_other():
    X, y, rng = problem(100, 4)
    linear = rng.standard_normal((4, 4))
    good, _ = minimise(X, y, 0.1, linear=linear[[0, 3]])
    linear[1, 2], linear[2, 0] = np.inf, np.nan
    weights, info = minimise(X, y, 0.1, linear=linear)
    assert info.status.tolist() == ["ok", "not_finite", "not_finite", "ok"]
    assert np.isnan(weights[1:3]).all()
    assert weights[[0, 3]] == pytest.approx(good, abs=1e-7)


def test_a_restart_that_may_not_iterate_says_so():
    X, y, _ = problem(100, 4)
    _, info = minimise(X, y, 1e-4, max_iterations=1)
    assert info.status.tolist() == ["not_converged"]
    assert info.gradient_norm[0] > 1e-9


def test_one_lambda_per_restart():
    X, y, _ = problem(200, 5)
    lams = np.array([1e-3, 0.1, 10.0])
    together, _ = minimise(X, y, lams, linear=np.zeros((3, 5)))
    for lam, w in zip(lams, together, strict=True):
        assert w == pytest.approx(minimise(X, y, lam)[0][0], abs=1e-8 / lam)


def test_a_starting_point_changes_nothing():
    X, y, rng = problem(200, 5)
    b = rng.standard_normal((3, 5))
    cold, _ = minimise(X, y, 0.1, linear=b)
    warm, _ = minimise(X, y, 0.1, linear=b, initial=rng.standard_normal(5))
    assert warm == pytest.approx(cold, abs=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_rows_of_other_types_and_from_a_file(tmp_path, dtype):
    rows = np.random.default_rng(3).integers(0, 4, (300, 6)).astype(dtype)
    y = np.where(rows[:, 0] > rows[:, 1], 1, -1)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert np.array_equal(minimise(mapped, y, 0.1)[0], minimise(rows.astype(float), y, 0.1)[0])


def test_equal_inputs_give_equal_bits():
    X, y, rng = problem(700, 8)
    b = rng.standard_normal((20, 8))
    assert np.array_equal(minimise(X, y, 0.01, linear=b)[0], minimise(X, y, 0.01, linear=b)[0])


def test_memory_does_not_grow_with_rows_times_restarts():
    X, y, rng = problem(60_000, 10)
    b = rng.standard_normal((200, 10))
    tracemalloc.start()
    minimise(X, y, 0.1, linear=b)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60_000 * 200 * 8 / 3  # one array of all margins would be 96 MB


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lam": 0.0}, "lambda"),
        ({"lam": np.inf}, "lambda"),
        ({"y": np.zeros(10)}, "labels"),
        ({"y": np.ones(9)}, "y"),
        ({"linear": np.zeros((2, 4))}, "linear"),
        ({"loss": "hinge"}, "loss"),
    ],
)
def test_bad_inputs(change, message):
    arguments = {"X": np.ones((10, 3)), "y": np.ones(10), "lam": 0.1} | change
    with pytest.raises(ValueError, match=message):
        minimise(**arguments)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 60),
    d=st.integers(1, 8),
    # |b| / (n lam) up to 1e6: beyond, margins have too few digits left for a gradient of 1e-9
    lam=st.floats(1e-3, 1e2),
    size=st.floats(0, 1e3),
    seed=st.integers(0, 1000),
)
def test_certificate_holds_on_random_problems(n, d, lam, size, seed):
    X, y, rng = problem(n, d, seed)
    b = size * rng.standard_normal((3, d))
    weights, info = minimise(X, y, lam, linear=b)
    assert set(info.status) == {"ok"}
    for w, tilt in zip(weights, b, strict=True):
        assert (
            np.linalg.norm(gradient(w, X, y, lam, tilt)) <= 1e-9 + 1e-13 * np.linalg.norm(tilt) / n
        )
