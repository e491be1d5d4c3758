import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from dp.mechanisms import MECHANISMS
from dp.mechanisms.posterior_sampling import MOST
from dp.proofs.posterior import loss_range, most_proposals, truncated_draws
from dp.seeds import generator

MECHANISM = MECHANISMS["posterior_sampling"]


def rows(n, d, seed=3, scale=1.0):
    rng = generator(seed, "rows", d)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(X[:, 0] + 0.4 * rng.standard_normal(n) > 0, 1, -1)
    return scale * X, y


def loss(name, z):
    return (1 - z) ** 2 / 2 if name == "squared" else np.log1p(np.exp(-z))


@pytest.mark.parametrize("name", ["squared", "logistic"])
@pytest.mark.parametrize("reach", [0.2, 1.0, 3.0])
def test_loss_range(name, reach):
    values = loss(name, np.linspace(-reach, reach, 100001))
    assert loss_range(name, reach) == pytest.approx(values.max() - values.min(), rel=1e-6)


@pytest.mark.parametrize("name", ["squared", "logistic"])
@pytest.mark.parametrize(("epsilon", "radius"), [(0.5, 1.0), (20.0, 1.0), (20.0, 0.2), (5.0, 4.0)])
def test_the_draw_in_one_dimension(name, epsilon, radius):
    """Draws have density exp(-epsilon F/(2D)) on [-radius, radius], with objective F and loss range D."""
    X, y = rows(40, 1)
    lam = 0.05
    D = loss_range(name, radius)

    def density(w):
        F = loss(name, y * X[:, 0] * w).sum() + 40 * lam / 2 * w * w
        return math.exp(-epsilon / (2 * D) * (F - reference))

    reference = min(
        loss(name, y * X[:, 0] * w).sum() + 40 * lam / 2 * w * w
        for w in np.linspace(-radius, radius, 999)
    )
    grid = np.linspace(-radius, radius, 801)
    pieces = [quad(density, a, b)[0] for a, b in itertools.pairwise(grid)]
    cumulative = np.concatenate([[0], np.cumsum(pieces)]) / sum(pieces)
    release = MECHANISM.release(
        *(X, y), epsilon=epsilon, lam=lam, restarts=2000, rng=generator(1), loss=name, radius=radius
    )
    assert (release.status == "ok").all()
    draws = release.weights[:, 0]
    assert kstest(draws, lambda w: np.interp(w, grid, cumulative)).pvalue > 0.01


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_the_draw_in_two_dimensions(name):
    X, y = rows(60, 2)
    radius, epsilon, size = 1.5, 8.0, 20000
    gamma = epsilon / (2 * loss_range(name, radius))
    axis = np.linspace(-radius, radius, 301)
    points = np.array([(a, b) for a in axis for b in axis if a * a + b * b <= radius**2])
    log = -gamma * loss(name, (X @ points.T) * y[:, None]).sum(axis=0)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = weight @ points
    covariance = (points - mean).T @ ((points - mean) * weight[:, None])
    release = MECHANISM.release(
        X, y, epsilon=epsilon, restarts=size, rng=generator(2), loss=name, radius=radius
    )
    actual = np.cov(release.weights.T)
    np.testing.assert_allclose(release.weights.mean(axis=0), mean, atol=5 * radius / size**0.5)
    np.testing.assert_allclose(actual, covariance, atol=0.03 * np.trace(covariance))


def test_the_densities_of_neighbours_differ_by_at_most_epsilon():
    X, y = rows(6, 1)
    epsilon, radius = 1.0, 2.0
    grid = np.linspace(-radius, radius, 20001)
    worst = 0.0
    for name in ("squared", "logistic"):
        gamma = epsilon / (2 * loss_range(name, radius))

        def log_density(X, y, name=name, gamma=gamma):
            log = -gamma * loss(name, np.outer(grid, y * X[:, 0])).sum(axis=1)
            peak = log.max()
            total = np.trapezoid(np.exp(log - peak), grid)
            return log - peak - math.log(total)

        for replacement in (-1.0, -0.3, 0.0, 1.0):
            X2 = X.copy()
            X2[0] = replacement
            for label in (-1, 1):
                y2 = y.copy()
                y2[0] = label
                gap = np.abs(log_density(X, y) - log_density(X2, y2)).max()
                assert gap <= epsilon
                worst = max(worst, gap)
    assert worst > 0.3 * epsilon


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_acceptance_at_thirty_dimensions(epsilon):
    """If the ball truncates the posterior, about 2/sqrt(4 pi d) = 10 % of proposals are accepted.

    Without a tilt, almost none would be.
    """
    X, y = rows(400, 30, scale=math.sqrt(30))
    options = {"epsilon": epsilon, "bound": math.sqrt(30), "radius": 1.0, "restarts": 200}
    release = MECHANISM.release(X, y, rng=generator(3), **options)
    assert (release.status == "ok").all()
    assert (np.linalg.norm(release.weights, axis=1) <= 1).all()
    if epsilon == 100.0:
        assert release.info["acceptance"] > 0.9  # the ball contains the posterior
    else:
        assert 0.05 < release.info["acceptance"] < 0.2
        # Without a tilt, proposals come from the posterior before truncation.
        gamma = epsilon / (2 * loss_range("squared", math.sqrt(30)))
        covariance = np.linalg.inv(gamma * X.T @ X)
        plain = generator(4).multivariate_normal(covariance @ (gamma * X.T @ y), covariance, 10000)
        assert (np.linalg.norm(plain, axis=1) <= 1).mean() < 0.001 * epsilon


def test_uniform_on_the_ball_where_the_data_say_nothing():
    """Radii to the power d are uniform, as is the angle of the projection onto a plane."""
    d, size = 5, 3000
    draws, _ = truncated_draws(np.zeros((d, d)), np.zeros(d), 2.0, size, generator(5))
    radii = np.linalg.norm(draws, axis=1)
    assert kstest((radii / 2.0) ** d, "uniform").pvalue > 0.01
    angles = np.arctan2(draws[:, 0], draws[:, 1])
    assert kstest((angles + np.pi) / (2 * np.pi), "uniform").pvalue > 0.01


def test_the_logistic_envelope_is_above_the_density():
    from dp.proofs.posterior import logistic_envelope

    X, y = rows(80, 3)
    gamma, ridge, radius = 2.0, 1.5, 1.2
    precision, linear, log_excess = logistic_envelope(X, y, gamma, ridge, radius)
    rng = generator(6)
    points = rng.standard_normal((500, 3))
    points *= radius * rng.random((500, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    exact = -gamma * (
        loss("logistic", (X @ points.T) * y[:, None]).sum(axis=0)
        + ridge / 2 * (points**2).sum(axis=1)
    )
    gaussian = points @ linear - np.einsum("ij,jk,ik->i", points, precision, points) / 2
    gap = exact - gaussian - log_excess(points)
    np.testing.assert_allclose(gap, gap[0], atol=1e-9)
    assert log_excess(points).max() <= 0
    assert log_excess(points).min() < -0.1


def test_a_draw_that_may_take_too_long_is_refused():
    y = rows(400, 12, scale=1.0)[1]
    options = {"epsilon": 2000.0, "loss": "logistic", "radius": 8.0}
    for call in (
        lambda: MECHANISM.guarantee(400, 12, **options),
        lambda: MECHANISM.release(np.full((400, 12), 99.0), y, rng=generator(7), **options),
    ):  # refused before any data are read
        with pytest.raises(ValueError, match="a draw for logistic loss may take"):
            call()


def test_every_draw_is_made():
    X, y = rows(200, 3)
    options = {"epsilon": 40.0, "loss": "logistic", "radius": 6.0, "restarts": 50}
    free = MECHANISM.release(X, y, rng=generator(8), **options)
    assert (free.status == "ok").all()
    assert MECHANISM.guarantee(200, 3, epsilon=40.0, loss="logistic", radius=6.0).epsilon == 40.0


def extreme(kind, n, d, rng):
    """Rows of norm 1 that are equal, equal except for one label, or random; or rows of zeros."""
    X = rng.standard_normal((n, d))
    y = np.ones(n)
    if kind == "one direction":
        X[:] = X[0]
    elif kind == "one against all":
        X[:] = X[0]
        y[0] = -1
    elif kind == "noise":
        y = rng.choice([-1.0, 1.0], n)
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-12)
    return (0 * X, y) if kind == "nowhere" else (X, y)


@pytest.mark.parametrize("kind", ["one direction", "one against all", "noise", "nowhere"])
@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_no_data_set_needs_more_proposals_than_is_said(name, kind):
    """Refusals depend only on the stated number of proposals, which no data set may exceed by much."""
    rng, worst = generator(9, name, kind), 0.0
    for d, n in ((1, 1), (1, 400), (4, 30), (4, 200), (20, 100)):
        for radius in (0.05, 0.5, 3.0):
            for epsilon in (0.01, 1.0, 100.0):
                said = most_proposals(name, n, d, epsilon, radius)
                if said > 2000:
                    continue
                X, y = extreme(kind, n, d, rng)
                release = MECHANISM.release(
                    X, y, epsilon=epsilon, radius=radius, loss=name, restarts=60, rng=rng
                )
                worst = max(worst, 1 / release.info["acceptance"] / said)
    assert 0.05 < worst < 1
    assert most_proposals(name, 10**6, 50, 10.0, 0.5) < MOST


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"radius": 0}, "radius"),
        ({"loss": "huber"}, "loss"),
        ({"delta": 1e-5}, "delta"),
        ({"lam": -1.0}, "lambda"),
    ],
)
def test_bad_options(options, what):
    with pytest.raises(ValueError, match=what):
        MECHANISM.guarantee(50, 3, epsilon=1.0, **options)
