"""Minimisers are certified on every data set, so no release depends on the solver's success."""

import math

import numpy as np
import pytest

from dp import losses
from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from dp.solvers import accelerated, newton
from dp.solvers.elastic_net import minimise_elastic_net, subgradient_norm
from dp.solvers.fits import FITS
from dp_audit import pairs

CERTIFIED = (
    "output_perturbation",
    "laplace_coordinates",
    "laplace_l1",
    "elastic_net_output_perturbation",
)
# Properties of data that make a minimiser hard to find.
KINDS = (
    "separable", "duplicated", "one class", "opposed", "wide", "scales", "axes", "noise", "zeros",
    "ties",
)  # fmt: skip


def hard(kind, bound, rng):
    n, d = (
        (rng.integers(1, 40), rng.integers(41, 80))
        if kind == "wide"
        else (rng.integers(1, 60), rng.integers(1, 8))
    )
    X = rng.standard_normal((n, d))
    y = rng.choice([-1, 1], n)
    if kind == "separable":
        y = np.where(X[:, 0] > 0, 1, -1)
    elif kind == "duplicated":
        X = X[rng.integers(0, 1 + n // 8, n)]
    elif kind == "one class":
        X, y = np.abs(X), np.ones(n, dtype=int)
    elif kind == "opposed":  # one record against near copies of itself
        X, y = X[0] + 1e-3 * X, np.where(np.arange(n) > 0, 1, -1)
    elif kind == "axes":
        X = np.eye(d)[rng.integers(0, d, n)] + 0.0
    elif kind == "zeros":
        X[rng.random(n) < 0.7] = 0
        X[:, rng.random(d) < 0.5] = 0
    elif kind == "ties":
        X = np.round(2 * X)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    if kind in ("scales", "axes"):
        X *= 10.0 ** rng.uniform(-9, 0, (n, 1))
    return bound * X, y


def settings(loss, n, d, bound, rng):
    """Draw a lambda and a tolerance, which is the smallest accepted one in half of the draws."""
    lam = loss.c * bound**2 * 10.0 ** rng.uniform(-10, -1)
    least = newton.least_tolerance(n, d, lam, bound, loss)
    return lam, least * 10.0 ** (rng.choice([0, 1]) * rng.uniform(0, 4))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["logistic", "huber"])
def test_no_data_set_keeps_the_solver_from_its_certificate(kind, name):
    rng = generator(81, kind, name)
    for _ in range(4 if kind == "wide" else 10):
        bound = 10.0 ** rng.uniform(-3, 4)
        loss = losses.get(name, **({"h": 10.0 ** rng.uniform(-5, 1)} if name == "huber" else {}))
        X, y = hard(kind, bound, rng)
        lam, tolerance = settings(loss, *X.shape, bound, rng)
        newton.check_certifiable(*X.shape, lam, bound, loss, tolerance)
        w, info = FITS["l2"](X, y, lam, loss=loss, tolerance=tolerance)
        assert info["status"][0] == "ok" and info["gradient_norm"][0] <= tolerance / 2
        gradient = (loss.derivative(y * (X @ w[0])) * y) @ X / len(y) + lam * w[0]
        assert np.linalg.norm(gradient) <= tolerance


@pytest.mark.parametrize("kind", KINDS)
def test_no_data_set_keeps_the_elastic_net_from_its_certificate(kind):
    rng, loss = generator(82, kind), losses.get("logistic")
    for _ in range(8 if kind == "wide" else 20):
        bound = 10.0 ** rng.uniform(-3, 4)
        X, y = hard(kind, bound, rng)
        lam, tolerance = settings(loss, *X.shape, bound, rng)
        lam = max(lam, 1e-7 * bound**2)  # a smaller lambda would take a million steps
        lambda1 = bound * 10.0 ** rng.uniform(-12, 0)
        w, info = FITS["elastic_net"](X, y, lam, lambda1=lambda1, tolerance=tolerance)
        assert info["status"][0] == "ok" and info["gradient_norm"][0] <= tolerance / 2
        assert subgradient_norm(w[0], X, y, lambda1, lam) <= tolerance


@pytest.mark.parametrize("h", [1e-4, 1e-2])
def test_kinks_of_nearly_linear_pieces_on_wide_rows(h):
    """Newton's method alone fails on some of these data sets."""
    rng, bound = generator(83), 100.0
    loss = losses.get("huber", h=h)
    for _ in range(2):
        X, y = hard("wide", bound, rng)
        lam = 1e-9 * loss.c * bound**2
        tolerance = newton.least_tolerance(*X.shape, lam, bound, loss)
        _, info = FITS["l2"](X, y, lam, loss=loss, tolerance=tolerance)
        assert info["status"][0] == "ok"


@pytest.mark.parametrize("kappa", [1.5, 1e3, 1e6])
@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_descent_alone_keeps_its_promise(kappa, l1):
    values = np.geomspace(1, kappa, 7)
    slope = 5 * generator(84).standard_normal(7)

    def gradient(w):
        return values * w - slope

    def proximal(w):
        return np.sign(w) * np.maximum(np.abs(w) - l1 / kappa, 0)

    results = []
    start = np.full(7, 3.0)
    norm = np.linalg.norm(gradient(start) + l1)
    limit = accelerated.steps(kappa, 1.0, norm, 1e-8)
    assert limit <= 100 * math.sqrt(kappa)
    accelerated.proximal_descent(gradient, kappa, 1.0, start, limit, results.append, proximal)
    w = proximal(results[-1] - gradient(results[-1]) / kappa)
    g = gradient(w)
    rest = np.where(w != 0, g + l1 * np.sign(w), np.maximum(np.abs(g) - l1, 0))
    assert np.linalg.norm(rest) <= 1e-8


def test_descent_alone_finds_the_elastic_net(monkeypatch):
    monkeypatch.setattr("dp.solvers.elastic_net.NEWTON", 0)
    X, y = hard("separable", 1.0, generator(85))
    slow, info = minimise_elastic_net(X, y, 1e-3, 1e-4, 1e-9)
    assert info["status"][0] == "ok" and info["iterations"][0] > 100
    monkeypatch.undo()
    np.testing.assert_allclose(slow, minimise_elastic_net(X, y, 1e-3, 1e-4)[0], atol=2e-5)


@pytest.mark.parametrize("name", CERTIFIED)
def test_neighbours_have_the_same_status(name):
    """A first-order solver without certificates would fail on only one of these neighbours."""
    pair = pairs.find("separable_circle")
    for X, y in pair.sides:
        release = MECHANISMS[name].release(X, y, epsilon=1.0, rng=generator(1), **pair.arguments)
        assert release.status[0] == "ok"


@pytest.mark.parametrize("name", CERTIFIED)
def test_settings_in_which_rounding_could_decide_are_refused_before_data_are_seen(name):
    mechanism = MECHANISMS[name]
    for change in ({"tolerance": 0.0}, {"bound": 1e8}, {"lam": 1e-13}):
        arguments = {"epsilon": 1.0, "lam": 0.01} | change
        with pytest.raises(ValueError, match="double precision certifies"):
            mechanism.guarantee(20, 2, **arguments)
        with pytest.raises(ValueError, match="double precision certifies"):
            # Arguments are refused before these rows, which exceed the bound, are read.
            mechanism.release(np.full((20, 2), 1e9), np.ones(20), rng=generator(1), **arguments)
    assert "a premise" in mechanism.guarantee(20, 2, epsilon=1.0, lam=0.01).reason


@pytest.mark.parametrize("name", CERTIFIED)
def test_what_is_not_certified_is_not_released(name):
    pair = pairs.find("separable_circle")
    X, y = pair.sides[0]
    mechanism = MECHANISMS[name]
    weights, info = FITS[mechanism.fit](X, y, 1e-6)
    fit = weights, info | {"gradient_norm": np.array([2e-9])}
    release = mechanism.release(X, y, epsilon=1.0, rng=generator(1), fit=fit, **pair.arguments)
    assert release.status[0] == "not_converged" and not release.weights.any()


@pytest.mark.parametrize("name", ["output_perturbation", "objective_perturbation"])
@pytest.mark.parametrize(("bound", "lam"), [(1e22, 1e40), (1e20, 1e32), (1e30, 1e50 / 2)])
def test_rows_too_large_for_single_precision_are_certified(name, bound, lam):
    """The rows' squares overflow in single precision, which must not change the release."""
    rng = generator(84, name)
    X, y = rng.standard_normal((3000, 5)), rng.choice([-1, 1], 3000)
    X *= bound * (1 - 1e-14) / np.linalg.norm(X, axis=1, keepdims=True)
    for rows in (X, X * np.where(np.arange(3000) > 0, 1e-200, 1.0)[:, None], 0 * X):
        release = MECHANISMS[name].release(
            rows, y, epsilon=1.0, lam=lam, bound=bound, tolerance=1e-9 * bound, rng=rng, restarts=9
        )
        assert set(release.status) == {"ok"}


def test_lasso_of_rows_that_the_library_refuses_is_released():
    X, y = np.array([[1e40], [0.0], [-1e39]]), np.array([1, -1, 1])
    for rows in (X, 0 * X):
        release = MECHANISMS["lasso_output_perturbation"].release(
            rows, y, epsilon=1.0, lam=1.0, bound=1e40, rng=generator(85)
        )
        assert release.status[0] == "ok"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("dp_gd", {"delta": 1e-6, "lam": 100.0, "iterations": 150}),
        ("dp_sgd", {"lam": 100.0, "batch": 1, "schedule": "constant", "bias": False}),
        ("dp_distributed_lasso", {"delta": 1e-6, "lam": 1e-9, "rounds": 2, "rate": 1e280}),
    ],
)
def test_a_record_has_a_bounded_share_where_margins_overflow(name, options):
    """With weights near 1e300, margins may be inf - inf, but releases stay finite."""
    n = 150 if name == "dp_sgd" else 40
    X = np.full((n, 64), 1e-30)
    other = X.copy()
    other[-1 if name != "dp_sgd" else slice(None)] = 0.12e30
    releases = [
        MECHANISMS[name].release(
            rows, np.ones(n), epsilon=1.0, bound=1e30, restarts=20, rng=generator(86), **options
        )
        for rows in (X, other)
    ]
    for release in releases:
        assert set(release.status) == {"ok"}
        assert np.abs(release.weights).max() > 1e250


def test_rounding_at_the_weights_is_counted_where_there_are_millions_of_columns():
    """The weights' norm may exceed the minimiser's by tolerance/lambda, which adds to margins' errors."""
    for d in (10**4, 10**6):
        lam = 0.25 / newton.STEEPEST * (1 + 1e-9)
        least = newton.least_tolerance(2, d, lam)
        if math.isinf(least):
            assert d == 10**6
            continue
        size = math.sqrt(2 * lam * math.log(2)) / lam + least / lam
        error = np.finfo(float).eps / 2 * d * 0.25 * size  # the error of the margins alone
        assert error <= least / 2
