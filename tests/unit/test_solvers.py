import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.optimize import minimize as scipy_minimize
from scipy.special import expit, log_expit
from sklearn.linear_model import LogisticRegression

from dp import losses
from dp.solvers import newton, passes, quasi_newton
from dp.solvers.newton import minimise

TOLERANCE = 1e-9
EPS = np.finfo(float).eps

# l' without dp.losses
SLOPES = {
    "logistic": lambda z: -expit(-z),
    "huber": lambda z: -np.clip(1.5 - z, 0, 1),  # h = 0.5
    "squared": lambda z: z - 1,
}


def gradient(X, y, lam, w, linear=0.0, loss="logistic"):
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    return X.T @ (SLOPES[loss](y * (X @ w)) * y) / len(X) + lam * w + linear / len(X)


def residuals(X, y, lam, W, linear, loss="logistic"):
    lam = np.broadcast_to(lam, len(W))
    parts = zip(lam, W, np.broadcast_to(linear, W.shape), strict=True)
    return np.array([np.linalg.norm(gradient(X, y, k, w, b, loss)) for k, w, b in parts])


def problem(n, d, rng, decay=1.0, noise=0.3):
    """Rows of norm 1, and labels that no linear rule predicts without error."""
    X = rng.standard_normal((n, d)) * np.geomspace(1, decay, d)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    score = X @ rng.standard_normal(d) + noise * rng.standard_normal(n)
    return X, np.where(score > 0, 1, -1)


def directions(restarts, d, rng):
    u = rng.standard_normal((restarts, d))
    return u / np.linalg.norm(u, axis=1, keepdims=True)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("n, d", [(1, 3), (60, 1), (500, 7), (5000, 12), (400, 100), (3000, 60)])
@pytest.mark.parametrize("lam", [1e-4, 1e-2, 1.0])
def test_equals_scikit_learn(n, d, lam, rng):
    X, y = problem(n, d, rng)
    if n == 1:  # scikit-learn needs both classes, so the negated row and label are added
        X, y = np.vstack([X, -X]), np.append(y, -y)
    W, info = minimise(X[:n], y[:n], lam)
    other = LogisticRegression(
        C=1 / (len(X) * lam), fit_intercept=False, solver="newton-cholesky", tol=1e-12
    ).fit(X, y)
    assert W.shape == (1, d) and list(info.status) == ["ok"]
    # Each solution's distance from the minimiser is at most its gradient norm divided by lambda.
    reached = info.gradient_norm[0] + np.linalg.norm(gradient(X, y, lam, other.coef_[0]))
    assert np.linalg.norm(W - other.coef_) <= reached / lam + 1e-13
    assert np.linalg.norm(W - other.coef_) <= 1e-5 * np.linalg.norm(W)


@pytest.mark.parametrize("n, d, norm", [(200, 5, 30.0), (3000, 8, 600.0), (300, 50, 40.0)])
def test_a_linear_term_as_a_general_solver_has_it(n, d, norm, rng):
    X, y = problem(n, d, rng)
    lam, linear = 0.02, norm * directions(2, d, rng)
    W, info = minimise(X, y, lam, linear)
    for w, b, reached in zip(W, linear, info.gradient_norm, strict=True):
        other = scipy_minimize(
            lambda v, b=b: -log_expit(y * (X @ v)).mean() + lam / 2 * v @ v + b @ v / n,
            np.zeros(d),
            jac=lambda v, b=b: gradient(X, y, lam, v, b),
            hess=lambda v: (X.T * (expit(X @ v) * expit(-X @ v))) @ X / n + lam * np.eye(d),
            method="trust-exact",
            options={"gtol": 1e-11},
        )
        left = np.linalg.norm(gradient(X, y, lam, other.x, b))
        assert left < 1e-8
        assert np.linalg.norm(w - other.x) <= (reached + left) / lam + 1e-13


@pytest.mark.parametrize("d", [1, 9, 70])
def test_squared_loss_is_ridge_regression(d, rng):
    X, y = problem(800, d, rng)
    linear = 50 * directions(3, d, rng)
    W, info = minimise(X, y, 0.05, linear, loss="squared")
    exact = np.linalg.solve(X.T @ X / 800 + 0.05 * np.eye(d), (X.T @ y - linear).T / 800).T
    assert (info.status == "ok").all()
    assert np.abs(W - exact).max() < 2 * TOLERANCE / 0.05


@pytest.mark.parametrize("linear", [0.0, 0.3, -4.0])
def test_one_row_and_one_column(linear):
    W, info = minimise([[0.8]], [-1], 0.1, [linear])
    root = brentq(lambda w: 0.8 * expit(0.8 * w) + 0.1 * w + linear, -100, 100, xtol=1e-13)
    assert info.status[0] == "ok" and W[0, 0] == pytest.approx(root, abs=2e-8)


@pytest.mark.parametrize("loss", SLOPES)
@pytest.mark.parametrize("n, d", [(14000, 10), (30000, 3), (5000, 50)])
def test_levels_end_in_a_certificate(loss, n, d, rng):
    """With so many rows, the solver samples and uses single precision, but the result is certified."""
    X, y = problem(n, d, rng)
    linear = np.concatenate([np.zeros((1, d)), 0.1 * n * directions(6, d, rng)])
    W, info = minimise(X, y, 0.01, linear, loss=loss)
    left = residuals(X, y, 0.01, W, linear, loss)
    assert (info.status == "ok").all() and (left <= TOLERANCE + 1e-14).all()
    assert np.abs(left - info.gradient_norm).max() < 1e-13
    assert info.iterations.max() <= 10


@given(
    n=st.integers(1, 120),
    d=st.integers(1, 9),
    lam=st.floats(-8, 3).map(lambda e: 10**e),
    norm=st.floats(-3, 8).map(lambda e: 10**e) | st.just(0.0),
    loss=st.sampled_from(list(SLOPES)),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=150)
def test_the_certificate_is_the_gradient_at_the_weights(n, d, lam, norm, loss, seed):
    """For tiny to huge lambda and linear terms, no failure is silent.

    The reported gradient norm equals that of plain formulas, up to rounding. It is within the tolerance
    unless rounding the weights can exceed it.
    """
    rng = np.random.default_rng(seed)
    X, y = problem(n, d, rng)
    linear = norm * directions(2, d, rng)
    W, info = minimise(X, y, lam, linear, loss=loss)
    left = residuals(X, y, lam, W, linear, loss)
    length = np.linalg.norm(W, axis=1)
    c = losses.get(loss).c
    rounding = 16 * EPS * (1 + norm / n + (lam + c) * length) * d
    assert (np.abs(left - info.gradient_norm) <= rounding).all()
    assert ((info.gradient_norm <= TOLERANCE) == (info.status == "ok")).all()
    assert ((info.status == "ok") | (info.gradient_norm <= rounding)).all()


@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize("d", [10, 80])
def test_separable_rows_and_a_tiny_lambda(loss, d, rng):
    """The objective is nearly flat far out and steep near small margins, so the line search is needed."""
    X, y = problem(400, d, rng, noise=0.0)
    for norm in (0.0, 10.0):
        linear = norm * directions(3, d, rng)
        W, info = minimise(X, y, 1e-7, linear, loss=loss)
        assert (info.status == "ok").all()
        assert (residuals(X, y, 1e-7, W, linear, loss) <= 1.01 * TOLERANCE).all()


def test_ill_conditioned_wide_rows_use_the_preconditioner(rng, monkeypatch):
    X, y = problem(900, 150, rng, decay=1e-3)
    made = []
    eigen = passes.Implicit.eigen
    monkeypatch.setattr(
        passes.Implicit, "eigen", lambda *arguments: made.append(1) or eigen(*arguments)
    )
    linear = 0.5 * directions(4, 150, rng)
    lam = np.array([1e-6, 1e-5, 1e-3, 1.0])
    W, info = minimise(X, y, lam, linear)
    assert made and (info.status == "ok").all()
    assert (residuals(X, y, lam, W, linear) <= 1.01 * TOLERANCE).all()


def test_main_directions_are_those_of_the_singular_values(rng):
    rows = rng.standard_normal((4000, 20)) * np.geomspace(1, 1e-2, 20)
    X = rows @ np.linalg.qr(rng.standard_normal((90, 20)))[0].T  # rows span 20 of 90 dimensions
    vectors, values, rest = quasi_newton.main_directions(X, rng)
    singular = np.linalg.svd(X, compute_uv=False)[:20]
    assert np.sort(values)[::-1][:20] == pytest.approx(singular**2 / len(X), rel=1e-9)
    assert rest == pytest.approx(0, abs=1e-12)
    assert np.abs(vectors.T @ vectors - np.eye(vectors.shape[1])).max() < 1e-12


@pytest.mark.parametrize("d", [20, 60])
def test_approximate_inverses_of_a_quadratics_hessians(d, rng):
    """If main directions span all columns, the inverse is exact. It always meets BFGS's secant equation."""
    X, _ = problem(500, d, rng)
    lam = np.array([0.1, 0.3])
    hessians = [X.T @ X / len(X) + ridge * np.eye(d) for ridge in lam]
    inverse = quasi_newton.InverseHessians(quasi_newton.main_directions(X, rng), np.ones(2), lam)
    for active in (np.arange(2), np.arange(2), np.array([1])):
        step = rng.standard_normal((d, len(active)))
        change = np.stack([hessians[j] @ s for j, s in zip(active, step.T, strict=True)], axis=1)
        if d <= quasi_newton.MAIN:
            assert np.allclose(inverse.times(active, change), step)
        inverse.learn(active, step, change)
        assert np.allclose(inverse.times(active, change), step)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize("n, d", [(300, 6), (14000, 6), (3000, 50)])
def test_huge_margins_raise_no_warning(loss, n, d, rng):
    X, y = problem(n, d, rng)
    linear = np.concatenate([1e8 * directions(3, d, rng), directions(1, d, rng)])
    W, info = minimise(X, y, 1e-4, linear, loss=loss, initial=1e12 * X[0])
    assert np.abs(X @ W[0]).max() > 1e6
    assert (info.status == "ok").all()
    assert (residuals(X, y, 1e-4, W, linear, loss) <= 1.1 * TOLERANCE).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n, d", [(200, 4), (14000, 4), (3000, 45)])
def test_a_bad_restart_is_a_row_with_a_status(n, d, rng):
    X, y = problem(n, d, rng)
    linear = 20 * directions(6, d, rng)
    alone, _ = minimise(X, y, 0.01, linear[[0, 3, 5]])
    linear[1, 0], linear[2, 1], linear[4] = np.inf, np.nan, 1e300
    W, info = minimise(X, y, 0.01, linear)
    assert list(info.status) == ["ok", *["not_finite"] * 2, "ok", "not_finite", "ok"]
    bad = info.status == "not_finite"
    assert np.isnan(W[bad]).all() and np.isnan(info.gradient_norm[bad]).all()
    assert (residuals(X, y, 0.01, W[~bad], linear[~bad]) <= TOLERANCE + 1e-14).all()
    assert np.abs(W[~bad] - alone).max() <= 2 * TOLERANCE / 0.01


def test_rows_that_are_not_finite(rng):
    X, y = problem(100, 3, rng)
    X[50, 1] = np.nan
    W, info = minimise(X, y, 0.1, np.zeros((2, 3)))
    assert list(info.status) == ["not_finite"] * 2 and np.isnan(W).all()


def test_a_starting_point_that_is_not_finite(rng):
    X, y = problem(100, 3, rng)
    _, info = minimise(X, y, 0.1, np.zeros((2, 3)), initial=[[0, 0, 0], [0, np.inf, 0]])
    assert list(info.status) == ["ok", "not_finite"]


def test_what_double_precision_cannot_reach_is_not_converged(rng):
    """At ||w|| = 1e10, rounding the weights is enough to change the gradient by 1e-8."""
    X, y = problem(1, 5, rng)
    linear = 1e8 * directions(30, 5, rng)
    W, info = minimise(X, y, 0.01, linear)
    failed = info.status == "not_converged"
    assert failed.any() and (info.status[~failed] == "ok").all()
    assert info.gradient_norm.max() < 1e-6 and info.iterations.max() < 60
    assert np.abs(residuals(X, y, 0.01, W, linear) - info.gradient_norm).max() < 1e-7


@pytest.mark.parametrize("n, d", [(500, 5), (14000, 5), (500, 50)])
def test_a_tolerance_of_zero_ends_in_a_status(n, d, rng):
    X, y = problem(n, d, rng)
    _, info = minimise(X, y, 1e-3, tolerance=0.0)
    assert info.status[0] == "not_converged" and info.iterations[0] < 60
    assert info.gradient_norm[0] < 1e-14


def test_too_few_iterations_are_not_converged(rng):
    X, y = problem(500, 5, rng)
    W, info = minimise(X, y, 1e-3, max_iterations=2)
    assert list(info.status) == ["not_converged"] and list(info.iterations) == [2]
    assert info.gradient_norm[0] > TOLERANCE
    assert info.gradient_norm[0] == pytest.approx(residuals(X, y, 1e-3, W, 0.0)[0], rel=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_settings_in_which_data_could_decide_the_status_are_refused(loss):
    settings = {"n": 1000, "d": 10, "lam": 1e-4, "loss": loss}
    least = 4 * newton.rounding(**settings)
    assert 1e-13 < least < 1e-10
    newton.check_certifiable(**settings, tolerance=least)
    for change in ({"tolerance": 0.99 * least}, {"tolerance": 0.0}, {"tolerance": np.inf},
                   {"tilt": 1e9}, {"n": 10**12}):  # fmt: skip
        with pytest.raises(ValueError, match="larger tolerance"):
            newton.check_certifiable(**settings | {"tolerance": least} | change)
    for change in ({"lam": 1e-12}, {"bound": 1e7}, {"bound": 1e200}):
        with pytest.raises(ValueError, match="larger lambda"):
            newton.check_certifiable(**settings | {"tolerance": 1.0} | change)


SIZES = [(1, 1, 1.0), (20, 3, 0.1), (100, 8, 1.0), (10, 11, 1.0), (3000, 3, 30.0)]


def worst_data(n, d, bound, rng):
    """Data sets by name: rows on the bound, and labels that are hard to fit or can be fitted exactly."""
    X, shrinking = rng.standard_normal((n, d)), np.geomspace(1, 1e-6, d)
    X *= bound / np.linalg.norm(X, axis=1, keepdims=True)
    skewed = X * shrinking
    skewed *= bound / np.linalg.norm(skewed, axis=1, keepdims=True)
    direction = rng.standard_normal(d)
    separable = np.where(X @ direction > 0, 1, -1)
    outlier = separable.copy()
    outlier[0] *= -1
    random, one = np.where(rng.random(n) < 0.5, 1, -1), np.ones(n, dtype=int)
    pairs = X.copy()
    pairs[1::2] = X[::2][: n // 2] * (1 - 1e-7)  # get opposite labels below
    every_tenth = X.copy()
    every_tenth[::10] = X[0]
    alone = np.zeros_like(X)
    alone[0] = X[0]
    return {
        "separable": (X, separable),
        "one wrong": (X, outlier),
        "one class": (X, one),
        "random labels": (X, random),
        "one row": (np.repeat(X[:1], n, axis=0), random),
        "one row, one class": (np.repeat(X[:1], n, axis=0), one),
        "nearly equal": (pairs, np.where(np.arange(n) % 2, -1, 1)),
        "one row of many": (alone, one),
        "all scales": (X * 10 ** -rng.uniform(0, 9, (n, 1)), separable),
        "skewed": (skewed, random),
        "skewed, separable": (skewed, np.where(skewed @ (direction / shrinking) > 0, 1, -1)),
        "every tenth differs": (every_tenth, np.where(np.arange(n) % 10 == 0, 1, -1)),
    }


@pytest.mark.parametrize(
    "n, d, bound, loss",  # a number is h of the Huber hinge
    [
        *((n, d, bound, "logistic") for n, d, bound in SIZES),
        *((n, d, bound, 1e-4) for n, d, bound in SIZES),
        (300, 8, 1.0, 1.0),
    ],
)
def test_what_is_not_refused_is_certified_on_the_worst_data(n, d, bound, loss, rng):
    """For a zero, small or large tilt, extended precision confirms the result, and few passes suffice."""
    loss = losses.get(loss) if loss == "logistic" else losses.get("huber", h=loss)
    lam = loss.c * bound**2 / 1e6
    tilts = (
        np.zeros((1, d)),
        1e3 * bound * np.geomspace(1, 1e-4, 3)[:, None] * directions(3, d, rng),
    )
    for name, (X, y) in worst_data(n, d, bound, rng).items():
        fit = None
        for linear, tilt in zip(tilts, (0.0, 1e3 * bound), strict=True):
            tolerance = 4 * newton.rounding(n, d, lam, bound, loss, tilt)
            newton.check_certifiable(n, d, lam, bound, loss, tolerance, tilt)
            for warm in (False, True):
                start = fit if warm else None
                W, info = minimise(X, y, lam, linear, loss, start, tolerance / 2)
                assert (info.status == "ok").all() and info.iterations.max() < 5000, name
                fit = W[0] if fit is None else fit  # the minimiser without a tilt
            exact = [extended_norm(X, y, lam, w, b, loss) for w, b in zip(W, linear, strict=True)]
            assert max(exact) <= tolerance
            assert np.abs(exact - info.gradient_norm).max() <= tolerance / 4


def extended_norm(X, y, lam, w, linear, loss):
    X, w = X.astype(np.longdouble), w.astype(np.longdouble)
    z = y * (X @ w)
    if loss.name == "logistic":
        slope = -1 / (1 + np.exp(np.minimum(z, 10000)))
    else:
        slope = -np.clip((1 + loss.h - z) / (2 * np.longdouble(loss.h)), 0, 1)
    total = X.T @ (slope * y) / len(X) + np.longdouble(lam) * w + linear / np.longdouble(len(X))
    return float(np.sqrt(total @ total))


@pytest.mark.parametrize("n, d", [(700, 6), (14000, 6), (700, 50)])
@pytest.mark.parametrize("kind", [np.float32, np.uint8, np.int8, np.int64])
def test_any_type_of_rows_mapped_or_not(n, d, kind, rng, tmp_path):
    X, y = problem(n, d, rng)
    X = np.round(X * 100 + 100 * (kind == np.uint8)).astype(kind)
    linear = 10 * directions(3, d, rng)
    expected, _ = minimise(X.astype(float), y, 5.0, linear)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for rows, labels in ((X, y), (mapped, y.astype(np.int8)), (np.asfortranarray(X), list(y))):
        W, info = minimise(rows, labels, 5.0, linear)
        assert (info.status == "ok").all() and np.array_equal(W, expected)


@pytest.mark.parametrize("d", [6, 60])
def test_one_lambda_per_restart(d, rng):
    X, y = problem(3000, d, rng)
    lam = np.array([1e-4, 1e-2, 1.0, 100.0])
    linear = 30 * directions(4, d, rng)
    W, info = minimise(X, y, lam, linear)
    assert (info.status == "ok").all()
    for j in range(4):
        alone, _ = minimise(X, y, lam[j], linear[j])
        assert np.linalg.norm(W[j] - alone[0]) <= 2 * TOLERANCE / lam[j]
    grid, info = minimise(X, y, lam)
    assert grid.shape == (4, d) and (residuals(X, y, lam, grid, 0.0) <= TOLERANCE + 1e-14).all()


@pytest.mark.parametrize("d", [6, 60])
def test_starting_points(d, rng):
    X, y = problem(1500, d, rng)
    linear = 30 * directions(3, d, rng)
    cold, info = minimise(X, y, 0.01, linear)
    most = info.iterations
    assert most.min() > 2
    again, info = minimise(X, y, 0.01, linear, initial=cold)
    assert np.array_equal(again, cold) and list(info.iterations) == [1, 1, 1]
    near, info = minimise(X, y, 0.01, linear, initial=cold + 1e-6)
    assert (info.iterations < most).all() and np.abs(near - cold).max() <= 2e-7
    common, info = minimise(X, y, 0.01, linear, initial=cold[0])
    assert (info.status == "ok").all() and np.abs(common - cold).max() <= 2e-7
    assert info.iterations[0] == 1


def test_a_good_start_is_not_spoilt_by_the_sample(rng):
    X, y = problem(20000, 5, rng)
    W, info = minimise(X, y, 0.01)
    again, warm = minimise(X, y, 0.01, initial=W)
    assert warm.iterations[0] <= info.iterations[0] and warm.status[0] == "ok"
    assert np.abs(again - W).max() <= 2e-7


@pytest.mark.parametrize("d", [5, 60])
@pytest.mark.parametrize("restarts", [1, 6])
def test_nested_sizes_start_near_the_one_before(d, restarts, rng):
    X, y = problem(6000, d, rng, decay=0.1)
    lam, linear = 0.01, 20 * directions(restarts, d, rng)
    near, passes_near, passes_alone = None, 0, 0
    for n in range(600, 6001, 600):
        W, near = minimise(X[:n], y[:n], lam, linear, near=near)
        assert (residuals(X[:n], y[:n], lam, W, linear) <= TOLERANCE + 1e-14).all()
        alone, info = minimise(X[:n], y[:n], lam, linear)
        assert np.linalg.norm(W - alone, axis=1).max() <= 2 * TOLERANCE / lam
        passes_near += near.iterations.sum()
        passes_alone += info.iterations.sum()
    assert passes_near < 0.9 * passes_alone


@pytest.mark.parametrize("n, d", [(300, 6), (3000, 50)])
def test_a_start_from_another_problem_costs_only_time(n, d, rng):
    """The start is from another lambda, another loss or a failed restart."""
    X, y = problem(n, d, rng)
    linear = 0.5 * n * directions(5, d, rng)
    other = linear.copy()
    other[1] = np.nan
    _, near = minimise(-X, y, 1e-3, other, "huber")
    _, again = minimise(X, y, 0.1, linear, near=near)
    for loss in ("logistic", "huber"):
        W, info = minimise(X, y, 0.05, linear, loss, near=again)
        assert (info.status == "ok").all()
        assert (residuals(X, y, 0.05, W, linear, loss) <= TOLERANCE + 1e-14).all()
    with pytest.raises(ValueError, match="starting point"):
        minimise(X, y, 0.1, linear[:3], near=near)
    before = near.learnt[0].copy()
    minimise(X, y, 0.1, linear, near=near)
    assert np.array_equal(near.learnt[0], before)


def test_shapes_of_the_linear_term(rng):
    X, y = problem(50, 3, rng)
    plain, _ = minimise(X, y, 0.1)
    for linear in (np.zeros(3), np.zeros((1, 3)), [0, 0, 0]):
        assert np.array_equal(minimise(X, y, 0.1, linear)[0], plain)
    W, info = minimise(X, y, 0.1, np.zeros((0, 3)))
    assert W.shape == (0, 3) and info.status.shape == (0,)


def test_arguments_stay_as_they_are(rng):
    X, y = problem(300, 3, rng)
    linear, start = directions(2, 3, rng), directions(2, 3, rng)
    copies = [array.copy() for array in (X, y, linear, start)]
    minimise(X, y, 0.1, linear, initial=start)
    for array, copy in zip((X, y, linear, start), copies, strict=True):
        assert np.array_equal(array, copy)


@pytest.mark.parametrize("n", [300, 4000])
def test_a_loss_derived_from_a_quadratic_one(n, rng):
    """The curvature is not taken as constant, so the solver converges as for other losses."""

    class Quartic(losses.Squared):
        def slopes(self, z):
            return z**3 + z, 3 * z**2 + 1

    assert not Quartic().quadratic
    X, y = problem(n, 4, rng)
    linear = 30 * n / 300 * directions(3, 4, rng)
    W, info = minimise(X, y, 0.01, linear, Quartic())
    assert (info.status == "ok").all() and info.iterations.max() <= 12
    for w, tilt in zip(W, linear, strict=True):
        z = y * (X @ w) - 1
        actual = X.T @ ((z**3 + z) * y) / n + 0.01 * w + tilt / n
        assert np.linalg.norm(actual) <= TOLERANCE + 1e-13


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"X": np.ones(4)}, r"X must be \(n, d\)"),
        ({"X": np.ones((0, 3)), "y": np.ones(0)}, r"n and d > 0"),
        ({"X": np.ones((4, 3)) * 1j}, "real numbers"),
        ({"X": np.full((4, 3), "a")}, "real numbers"),
        ({"y": np.ones(3)}, r"y \(n,\)"),
        ({"y": np.array([0, 1, 1, 0])}, "labels must be -1 or 1"),
        ({"y": np.array([np.nan, 1, 1, 1])}, "labels must be -1 or 1"),
        ({"lam": 0.0}, "lambda must be finite and > 0"),
        ({"lam": -1.0}, "lambda must be finite and > 0"),
        ({"lam": np.inf}, "lambda must be finite and > 0"),
        ({"lam": np.nan}, "lambda must be finite and > 0"),
        ({"lam": [0.1, 0.1, 0.1]}, "lambda must be one number or 2"),
        ({"linear": np.zeros((2, 4))}, r"linear term must be \(restarts, 3\)"),
        ({"linear": np.zeros((1, 1, 3))}, r"linear term must be \(restarts, 3\)"),
        ({"initial": np.zeros(2)}, "starting point must be"),
        ({"initial": np.zeros((3, 3))}, "starting point must be"),
        ({"tolerance": -1.0}, "tolerance must be >= 0"),
        ({"tolerance": np.nan}, "tolerance must be >= 0"),
        ({"loss": "hinge"}, "no loss 'hinge'"),
    ],
)
def test_invalid_arguments_are_one_plain_sentence(changes, said):
    arguments = {"X": np.ones((4, 3)), "y": np.array([1, -1, 1, 1]), "lam": 0.1}
    arguments["linear"] = np.zeros((2, 3))
    with pytest.raises(ValueError, match=said) as error:
        minimise(**(arguments | changes))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("loss", ["logistic", "huber", "squared"])
def test_restarts_at_one_point_share_a_pass(loss, rng):
    X, y = problem(500, 6, rng)
    w = rng.standard_normal(6)
    rows = passes.Direct(X, y, losses.get(loss), 1.0, np.float64, np.float64)
    apart, together = np.stack([w, -w, w], axis=1), np.repeat(w[:, None], 3, axis=1)
    hessians = [rows.hessians(3), rows.hessians(3)]
    actual = [rows.gradient(W, H) for W, H in zip((apart, together), hessians, strict=True)]
    assert actual[1] == pytest.approx(actual[0][:, [0, 0, 2]], rel=1e-12)
    assert hessians[1] == pytest.approx(hessians[0][:, [0, 0, 2]], rel=1e-12)
    assert actual[1][:, 1] == pytest.approx(gradient(X, y, 0.0, w, loss=loss), rel=1e-9)
    curvature = losses.get(loss).curvature(losses.get(loss).arguments(X @ w, y))
    expected = (X.T * curvature) @ X
    assert hessians[1][:, 1] == pytest.approx(expected[np.triu_indices(6)], rel=1e-9)


@pytest.mark.parametrize("n, d", [(500, 4), (14000, 4), (2500, 50)])
def test_same_arguments_same_bits(n, d, rng):
    X, y = problem(n, d, rng)
    linear = 50 * directions(20, d, rng)
    first, one = minimise(X, y, 0.01, linear)
    second, two = minimise(X.copy(), y.copy(), 0.01, linear.copy())
    assert np.array_equal(first, second)
    for key in ("iterations", "gradient_norm", "status"):
        assert np.array_equal(one[key], two[key])


def test_more_restarts_than_are_solved_together(rng):
    X, y = problem(100, 3, rng)
    linear = 20 * directions(2 * newton.TOGETHER + 3, 3, rng)
    W, info = minimise(X, y, 0.05, linear)
    assert (info.status == "ok").all()
    assert (residuals(X, y, 0.05, W, linear) <= TOLERANCE + 1e-14).all()


def peak(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_rows_times_restarts(rng):
    n, d = 120_000, 4
    X, y = problem(n, d, rng)
    X, y = X.astype(np.float32), y.astype(np.int8)
    few, many = (0.01 * n * directions(restarts, d, rng) for restarts in (5, 100))
    minimise(X, y, 0.01, few)
    used = [peak(lambda linear=linear: minimise(X, y, 0.01, linear)) for linear in (few, many)]
    assert max(used) < n * 100 * 8 / 10  # an array of n x restarts would take 96 MB
    assert used[1] < used[0] + 6e6
    half = peak(lambda: minimise(X[::2], y[::2], 0.01, many))
    assert used[1] < half + 2e6


def test_memory_of_wide_problems_is_bounded(rng, monkeypatch):
    """Curvatures are kept for as many restarts as fit into memory; the others wait."""
    monkeypatch.setattr(newton, "KEPT", 1 << 16)
    monkeypatch.setattr(passes, "COPIED", 1 << 20)  # smaller than the rows
    n, d, restarts = 16_000, 45, 60
    X, y = problem(n, d, rng)
    linear = 0.01 * n * directions(restarts, d, rng)
    used = peak(lambda: minimise(X, y, 0.1, linear))
    assert used < n * restarts * 8 / 2
    _, info = minimise(X, y, 0.1, linear)
    assert (info.status == "ok").all()


@pytest.mark.parametrize("lam", [1e-3, 0.05])
def test_a_copy_in_single_precision_changes_nothing_but_time(lam, rng, monkeypatch):
    """Products with the copy equal those of rows converted block by block."""
    X, y = problem(3000, 60, rng)
    linear = 20 * directions(3, 60, rng)
    copied, info = minimise(X, y, lam, linear)
    monkeypatch.setattr(passes, "COPIED", 0)
    converted, same = minimise(X, y, lam, linear)
    assert np.array_equal(copied, converted)
    assert np.array_equal(info.iterations, same.iterations)


@pytest.mark.parametrize("n, d", [(20000, 6), (5000, 50)])
@pytest.mark.parametrize("restarts", [4, 12])
def test_the_way_of_double_precision_alone_ends_at_the_same_point(n, d, restarts, rng, monkeypatch):
    X, y = problem(n, d, rng)
    lam = 0.01
    linear = n * np.geomspace(1e-4, 1, restarts)[:, None] * directions(restarts, d, rng)
    predicted, predict = [], newton._predict
    monkeypatch.setattr(
        newton, "_predict", lambda *inputs: predicted.append(predict(*inputs)) or predicted[-1]
    )
    quick, info = minimise(X, y, lam, linear)
    if d < newton.DIRECT:  # many restarts begin from a common centre
        near = predicted[0][1]
        assert list(np.unique(near)) == ([False] if restarts == 4 else [False, True])
    start = minimise(X[: n // 2], y[: n // 2], lam)[0][0]
    warm, started = minimise(X, y, lam, linear, initial=start)
    monkeypatch.setattr(newton, "SPREAD", np.inf)  # single precision is never trusted
    plain, same = minimise(X, y, lam, linear)
    for fit_info in (info, started, same):
        assert (fit_info.status == "ok").all()
    assert not np.array_equal(quick, plain)
    for W, fit_info in ((quick, info), (warm, started)):
        apart = np.linalg.norm(W - plain, axis=1)
        assert (apart <= (fit_info.gradient_norm + same.gradient_norm) / lam + 1e-13).all()
