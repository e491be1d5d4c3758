import math

import numpy as np
import pytest

from dp import losses
from dp.mechanisms import MECHANISMS
from dp.mechanisms.second_order import _weights
from dp.proofs.quadratics import inverse, noisy
from dp.seeds import generator
from dp.solvers.newton import minimise
from dp_privacy.accounting import gaussian_mu

ADJACENCIES = ["replace-one", "add-remove"]


def rows(n=400, d=3, classes=None):
    X = generator(3, "rows").standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    score = X[:, 0] + 0.3 * generator(4).standard_normal(n)
    return X, np.where(score > 0, 1, -1) if classes is None else np.digitize(score, [-0.3, 0.3])


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("loss", "classes"), [("logistic", None), ("softmax", 3)])
def test_preconditioned_parts_compose_to_mu(adjacency, loss, classes):
    """mu^2 is the sum, over all parts, of (a record's largest change / the noise's scale)^2."""
    n, bound, mechanism = 50, 2.0, MECHANISMS["preconditioned_gd"]
    settings = {"epsilon": 1.0, "delta": 1e-6, "bound": bound, "adjacency": adjacency, "loss": loss}
    settings |= {"classes": classes, "share": 0.4, "iterations": 7}
    steps, matrix, gradient = mechanism._scales(n, 3, mechanism.parameters(n, 3, **settings))
    parts = 2 if adjacency == "replace-one" else 1
    frobenius = (0.25 if loss == "logistic" else 0.5) * math.sqrt(parts) * bound**2 / n
    moved = parts * bound * (1 if loss == "logistic" else math.sqrt(2)) / n
    total = (frobenius / matrix) ** 2 + steps * (moved / gradient) ** 2
    assert math.sqrt(total) == pytest.approx(gaussian_mu(1.0, 1e-6))
    assert (frobenius / matrix) ** 2 / total == pytest.approx(0.4)
    guarantee = mechanism.guarantee(n, 3, **settings)
    assert guarantee.profile.epsilon(1e-6) == pytest.approx(1.0)
    assert guarantee.adjacency == adjacency


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_newtons_parts_compose_to_mu(adjacency):
    n, bound, steps = 50, 2.0, 6
    mechanism = MECHANISMS["dp_newton"]
    arguments = {"epsilon": 1.0, "delta": 1e-6, "bound": bound, "adjacency": adjacency}
    p = mechanism.parameters(n, 3, **arguments, iterations=steps)
    gradient, trace, direction = mechanism._scales(n, p)
    parts = 2 if adjacency == "replace-one" else 1
    each = (parts * bound / n / gradient) ** 2 + (bound**2 / 4 / n / trace) ** 2 + direction**2
    assert math.sqrt(steps * each) == pytest.approx(gaussian_mu(1.0, 1e-6))


def test_newton_does_not_depend_on_the_unit_of_rows():
    X, y = rows()
    arguments = {"epsilon": 1.0, "delta": 1e-6, "restarts": 3}
    results = [
        MECHANISMS["dp_newton"]
        .release(unit * X, y, bound=unit, rng=generator(5), **arguments)
        .weights
        for unit in (1.0, 2.0)
    ]
    np.testing.assert_allclose(results[0], 2 * results[1], rtol=1e-6)


def test_newtons_ridge_is_the_sources_and_bounds_the_noise_on_a_direction():
    from dp_privacy.sensitivities import newton_direction

    n, mechanism = 288, MECHANISMS["dp_newton"]
    for bound in (1.0, 3.0):
        p = mechanism.parameters(n, 5, epsilon=0.5, delta=1e-6, bound=bound)
        _, deviation, mu = mechanism._scales(n, p)
        traces = np.array([-5.0, 0.0, 0.5, 1.0]) * deviation
        # With the published floor of 0 for the trace, the noise may be five times as long as the direction.
        for least, most in ((deviation, 0.28), (0.0, math.inf)):
            ridge = mechanism._ridge(n, p, traces, least, mu)
            taken = np.maximum(traces, least) / bound**2
            expected = np.maximum((0.5 * taken / (n**2 * mu**2 / 2)) ** (1 / 3), 1 / n)
            np.testing.assert_allclose(ridge, bound**2 * expected)
            noise = [n * newton_direction(n * each, bound) / mu * each for each in ridge]
            assert max(noise) < most and (noise[0] > 5) == (least == 0)


def test_neighbours_directions_differ_by_what_their_noise_covers():
    from dp_privacy.sensitivities import newton_direction

    rng, n, ridge, largest = generator(7), 5, 0.05, 0.0
    for _ in range(300):
        X = rng.standard_normal((n, 2))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        X[1:] *= rng.random() * 0.2
        other, w = X.copy(), rng.standard_normal(2) * 0.1
        other[0] = rng.standard_normal(2)
        other[0] /= np.linalg.norm(other[0])
        inverses = [
            np.linalg.inv((rows.T * _weights(rows @ w)) @ rows / n + ridge * np.eye(2))
            for rows in (X, other)
        ]
        largest = max(largest, np.linalg.norm(inverses[0] - inverses[1], 2))
    bound = n * newton_direction(n * ridge)
    assert 0.8 * bound < largest <= bound
    assert bound == pytest.approx(0.25 / (n * ridge**2 + 0.25 * ridge))


def test_the_upper_bound_is_above_the_loss_and_touches_it():
    """l(z) <= l(a) + l'(a)(z - a) + weight(a) (z - a)^2/2 for all z, with equality at a and -a."""
    logistic, z = losses.get("logistic"), np.linspace(-30, 30, 601)
    for a in (-20.0, -3.0, -0.5, 0.0, 1e-9, 0.7, 5.0):
        weight = _weights(np.array([a]))[0]
        parabola = logistic.value(a) + logistic.derivative(a) * (z - a) + weight * (z - a) ** 2 / 2
        assert (parabola >= logistic.value(z) - 1e-9).all()
        assert logistic.curvature(np.array([a]))[0] - 1e-12 <= weight <= 0.25


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("preconditioned_gd", {"iterations": 400}),
        ("dp_newton", {"iterations": 60}),
    ],
)
def test_without_much_noise_they_find_the_minimiser(name, options):
    X, y = rows()
    expected = minimise(X, y, 0.05)[0]
    arguments = {"epsilon": 1e9, "delta": 1e-5, "lam": 0.05} | options
    release = MECHANISMS[name].release(X, y, restarts=3, rng=generator(1), **arguments)
    np.testing.assert_allclose(release.weights, np.repeat(expected, 3, axis=0), atol=2e-3)


def test_preconditioned_softmax_of_two_classes_is_logistic():
    X, y = rows()
    arguments = {"epsilon": 1e9, "delta": 1e-5, "iterations": 300}
    release = MECHANISMS["preconditioned_gd"].release
    softmax = release(
        X, (y + 1) // 2, loss="softmax", classes=2, rng=generator(1), **arguments
    ).weights
    logistic = release(X, y, rng=generator(1), **arguments).weights
    np.testing.assert_allclose(softmax[0, :, 1] - softmax[0, :, 0], logistic[0], atol=5e-3)


@pytest.mark.parametrize(("n", "steps"), [(1000, 5), (10_000, 10)])
def test_steps_by_rule(n, steps):
    """In the two cases, n mu/sqrt(d) is 118 and 1184."""
    mechanism = MECHANISMS["preconditioned_gd"]
    p = mechanism.parameters(n, 4, epsilon=1.0, delta=1e-6)
    assert mechanism._scales(n, 4, p)[0] == steps


def test_noisy_inverses_are_definite_and_isotropic():
    A = np.diag([3.0, 1.0, 0.0])
    np.testing.assert_allclose(
        inverse(noisy(A, 0.0, 2, generator(1)), 0.5)[1], np.diag([1 / 3.5, 1 / 1.5, 2.0])
    )
    actual = np.linalg.inv(inverse(noisy(A + 9 * np.eye(3), 0.1, 20_000, generator(1)), 0.5))
    noise = actual - A - 9.5 * np.eye(3)
    assert noise[:, 0, 0].std() == pytest.approx(0.1, rel=0.03)
    assert noise[:, 0, 1].std() == pytest.approx(0.1 / math.sqrt(2), rel=0.03)
    wild = inverse(noisy(A, 5.0, 500, generator(1)), 0.5)
    values = np.linalg.eigvalsh(wild)
    assert values.min() > 0 and values.max() <= 2.0 + 1e-9


@pytest.mark.parametrize("name", ["preconditioned_gd", "dp_newton"])
def test_overflow_of_one_records_margin_moves_no_more_than_its_share(name):
    """Infinite products of both signs sum to NaN, which must not reach every weight."""
    from dp.descents import full_batch
    from dp.mechanisms.second_order import gradient_norm

    X, y = np.array([[0.6, 0.8], [0.0, 0.5]]), np.array([1, -1])
    W = np.array([[[1e308], [-1e308]]]) * 1.7
    p = MECHANISMS[name].parameters(2, 2, epsilon=1.0, delta=1e-6)
    with np.errstate(all="ignore"):
        _, gradient = full_batch.mean_gradient(X * 2, y, W, "logistic", gradient_norm(p))
        weights = _weights(np.array([np.nan, np.inf, -np.inf]))
    assert np.isfinite(gradient).all() and np.linalg.norm(gradient) <= 1.0
    assert ((weights >= 0) & (weights <= 0.25)).all()
