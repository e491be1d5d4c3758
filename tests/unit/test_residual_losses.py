import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from sklearn.linear_model import HuberRegressor, Ridge

from dp import losses
from dp.evaluation import regularised_risk
from dp.seeds import generator
from dp.solvers import newton
from dp.solvers.fits import FITS, sum_intercept
from dp.solvers.newton import minimise

TAU = 0.25
# (value, slope) of each loss
FORMULAS = {
    "squared": (lambda r: r * r / 2, lambda r: r),
    "huber_residual": (
        lambda r: np.where(np.abs(r) <= TAU, r * r / 2, TAU * np.abs(r) - TAU**2 / 2),
        lambda r: np.clip(r, -TAU, TAU),
    ),
    "log_cosh": (
        lambda r: TAU**2 * (np.logaddexp(r / TAU, -r / TAU) - np.log(2)),
        lambda r: TAU * np.tanh(r / TAU),
    ),
}
each_loss = pytest.mark.parametrize("loss", FORMULAS)


def problem(n, d, rng, noise=0.2):
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = X @ rng.standard_normal(d) + noise * rng.standard_t(2, n)
    return X, np.clip(y, -1, 1)


def gradient(X, y, lam, w, linear, loss):
    return X.T @ FORMULAS[loss][1](X @ w - y) / len(X) + lam * w + linear / len(X)


@each_loss
@pytest.mark.parametrize(
    "n, d, norm", [(1, 2, 0.0), (300, 5, 20.0), (14000, 8, 900.0), (300, 50, 9.0)]
)
@pytest.mark.parametrize("lam", [1e-3, 0.1])
def test_the_minimiser_is_a_general_solvers(loss, n, d, norm, lam):
    rng = generator(1, loss, n)
    X, y = problem(n, d, rng)
    linear = norm * rng.standard_normal((3, d)) / np.sqrt(d)
    W, info = minimise(X, y, lam, linear, loss=loss)
    assert (info.status == "ok").all() and info.iterations.max() <= 60
    for w, b, reached in zip(W, linear, info.gradient_norm, strict=True):
        assert np.linalg.norm(gradient(X, y, lam, w, b, loss)) == pytest.approx(reached, abs=1e-13)
        other = scipy_minimize(
            lambda v, b=b: FORMULAS[loss][0](X @ v - y).mean() + lam / 2 * v @ v + b @ v / n,
            np.zeros(d),
            jac=lambda v, b=b: gradient(X, y, lam, v, b, loss),
            method="L-BFGS-B",
            options={"gtol": 1e-10, "ftol": 0, "maxiter": 3000, "maxcor": 30},
        )
        left = np.linalg.norm(gradient(X, y, lam, other.x, b, loss))
        assert left < 1e-5 * lam**0.5
        assert np.linalg.norm(w - other.x) <= (reached + left) / lam + 1e-12


@pytest.mark.parametrize("d", [6, 60])
def test_squared_loss_is_scikit_learns_ridge(d):
    X, y = problem(700, d, generator(2))
    W, _ = minimise(X, y, 0.02, loss="squared")
    ridge = Ridge(alpha=0.02 * 700, fit_intercept=False, solver="cholesky").fit(X, y)
    np.testing.assert_allclose(W[0], ridge.coef_, atol=1e-7)


def test_huber_is_scikit_learns_at_its_scale():
    """At scale s, HuberRegressor minimises 2n/s times our objective: tau = epsilon s, lam = alpha s/n."""
    X, y = problem(900, 5, generator(3))
    huber = HuberRegressor(epsilon=1.35, alpha=0.9, fit_intercept=False, tol=1e-9, max_iter=2000)
    huber.fit(X, y)
    s = huber.scale_
    W, info = minimise(X, y, 0.9 * s / 900, loss={"huber_residual": {"tau": 1.35 * s}})
    assert info.status[0] == "ok"
    np.testing.assert_allclose(W[0], huber.coef_, atol=1e-4)


@each_loss
def test_a_free_intercept_too(loss):
    X, y = problem(400, 4, generator(4))
    weights, info = sum_intercept(X, y + 0.0, 2.0, loss=loss, intercept="free")
    assert info["status"][0] == "ok"
    slope = FORMULAS[loss][1](X @ weights[0, :-1] + weights[0, -1] - y)
    left = np.append(X.T @ slope / 400 + 2 / 400 * weights[0, :-1], slope.mean())
    assert np.linalg.norm(left) <= 1e-9


@each_loss
def test_regularised_risk(loss):
    X, y = problem(300, 4, generator(5))
    W = generator(6).standard_normal((7, 4))
    expected = [FORMULAS[loss][0](X @ w - y).mean() + 0.05 * w @ w for w in W]
    np.testing.assert_allclose(regularised_risk(W, X, y, 0.1, loss), expected, rtol=1e-12)


@each_loss
@pytest.mark.parametrize("restarts", [1, 6])
def test_labels_are_targets_as_well(loss, restarts):
    X, y = problem(500, 6, generator(7))
    labels = np.where(y > 0, 1, -1)
    linear = 5 * generator(8).standard_normal((restarts, 6))
    as_labels, _ = minimise(X, labels.astype(np.int8), 0.05, linear, loss=loss)
    as_numbers, _ = minimise(X, labels.astype(float), 0.05, linear, loss=loss)
    np.testing.assert_allclose(as_labels, as_numbers, atol=1e-7)


@pytest.mark.parametrize("loss", ["log_cosh", "huber_residual"])
def test_failed_steps_do_not_end_the_cheap_ones(loss):
    """The fit starts where the loss is linear, at large residuals. It needs few passes and no Hessians."""
    rng = np.random.default_rng(2)
    X = (rng.standard_normal((3000, 60)) + 2) * np.arange(1, 61) ** -0.75
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    labels = np.where((X - X.mean(axis=0)) @ rng.standard_normal(60) > 0, 1, -1)
    _, info = minimise(X, labels, 0.01, 5 * rng.standard_normal((8, 60)), loss=loss)
    assert (info.status == "ok").all() and info.iterations.max() <= 11


@pytest.mark.parametrize("y", [[0.5, 1.01], [0.1, np.nan], [0.2, np.inf]])
def test_targets_beyond_their_range_are_refused(y):
    with pytest.raises(ValueError, match=r"^targets must be numbers from -1 to 1$"):
        minimise(np.ones((2, 1)), np.array(y), 0.1, loss="log_cosh")


@pytest.mark.parametrize(
    ("y", "loss"), [([0.5, 1.0], "logistic"), ([0, 1], "log_cosh"), (["a", "b"], "log_cosh")]
)
def test_a_margin_loss_takes_no_numbers_and_whole_numbers_are_labels(y, loss):
    with pytest.raises(ValueError, match=r"^labels must be -1 or 1$"):
        minimise(np.ones((2, 1)), np.array(y), 0.1, loss=loss)


KINDS = ("usual", "duplicated", "opposed", "wide", "scales", "zeros", "kinks", "extremes")


def hard(kind, bound, rng):
    n, d = (30, 60) if kind == "wide" else (rng.integers(1, 60), rng.integers(1, 8))
    X, y = rng.standard_normal((n, d)), rng.uniform(-1, 1, n)
    if kind == "duplicated":
        X = X[rng.integers(0, 1 + n // 8, n)]
    elif kind == "opposed":
        X, y = X[0] + 1e-3 * X, np.where(np.arange(n) > 0, 1.0, -1.0)
    elif kind == "zeros":
        X[rng.random(n) < 0.7] = 0
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300) * (1 + 1e-13)
    if kind == "scales":
        X *= 10.0 ** rng.uniform(-9, 0, (n, 1))
    elif kind == "kinks":  # residuals at zero, and near where Huber's loss turns linear
        y = np.clip(X[:, 0] + rng.choice([-0.01, 0, 0.01], n), -1, 1)
    elif kind == "extremes":
        y = rng.choice([-1.0, 0.0, 1.0], n)
    return bound * X, y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["huber_residual", "log_cosh"])
def test_no_data_set_keeps_the_solver_from_its_certificate(kind, name):
    rng = generator(9, kind, name)
    for _ in range(20):
        bound = 10.0 ** rng.uniform(-3, 4)
        loss = losses.get(name, tau=10.0 ** rng.uniform(-4, 1))
        X, y = hard(kind, bound, rng)
        lam = bound**2 * 10.0 ** rng.uniform(-9, 0)
        tolerance = 2 * newton.least_tolerance(*X.shape, lam, bound, loss)
        newton.check_certifiable(*X.shape, lam, bound, loss, tolerance)
        w, info = FITS["l2"](X, y, lam, loss=loss, tolerance=tolerance)
        assert info["status"][0] == "ok" and info["gradient_norm"][0] <= tolerance / 2
        assert np.linalg.norm(loss.derivative(X @ w[0] - y) @ X / len(y) + lam * w[0]) <= tolerance


def test_rounding_bounds_the_error_in_extended_precision():
    rng, long = generator(10), np.longdouble
    for tau in (0.01, 0.25, 3.0):
        loss = losses.get("log_cosh", tau=tau)
        for bound in (1.0, 30.0):
            X, y = hard("usual", bound, rng)
            lam = 1e-4 * bound**2
            w, info = minimise(X, y, lam, loss=loss)
            residual = X.astype(long) @ w[0].astype(long) - y
            exact = tau * np.tanh(residual / long(tau)) @ X.astype(long) / len(y) + long(lam) * w[0]
            gap = abs(float(np.sqrt((exact**2).sum())) - info.gradient_norm[0])
            assert gap <= newton.rounding(*X.shape, lam, bound, loss)
