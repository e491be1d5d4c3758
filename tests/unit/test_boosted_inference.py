import math

import numpy as np
import pytest

from dp import inference
from dp.mechanisms import MECHANISMS
from dp.mechanisms.noise_aware_boosted import residual_means
from dp.seeds import generator
from dp_privacy.accounting import gaussian_mu

MECHANISM = MECHANISMS["noise_aware_boosted"]
THETA = np.array([0.5, -0.4, 0.25, 0.1, 0.0, 0.0])
DELTA = 1e-6


def rows(n, rng):
    X = rng.standard_normal((n, 6))
    X /= np.maximum(math.sqrt(6), np.linalg.norm(X, axis=1))[:, None]
    return X, np.clip(X @ THETA + 0.1 * rng.standard_t(3, n), -1, 1)


def simulated(draws, ridge=30.0, T=6, sigma=8.0):
    """Simulate unconverged recursions (`inference.Steps`) that share P and D, but not s and noise."""
    rng = generator(1, "recursion")
    one = rng.standard_normal((40, 3))
    D, P = one.T @ one, np.linalg.inv(one.T @ one * 1.5 + 40 * np.eye(3))
    J, theta = 4 * D, np.array([1.0, -2.0, 0.5])
    s = rng.multivariate_normal(np.zeros(3), J, draws)
    thetas, moments = [np.zeros((draws, 3))], []
    for _ in range(T):
        noise = sigma * rng.standard_normal((draws, 3))
        moments.append((theta - thetas[-1]) @ D + s - ridge * thetas[-1] + noise)
        thetas.append(thetas[-1] + moments[-1] @ P)
    P, D, J, size = (np.broadcast_to(M, (draws, 3, 3)) for M in (P, D, J, D / 40))
    released = np.array(thetas[:-1]), np.array(moments), thetas[-1], P, D, J
    exact = np.zeros(draws), np.zeros(draws)
    return theta, inference.Steps(*released, *exact, size, sigma, 1e6, ridge)


@pytest.mark.parametrize("way", [inference.last_iterate, inference.late_iterates])
def test_covariance_and_bias_are_those_of_many_recursions(way):
    theta, steps = simulated(20_000)
    actual = way(steps)
    error = np.sqrt(np.diag(actual.covariance[0]) / 20_000)
    assert (np.abs(actual.estimate.mean(axis=0) - theta) < 4.5 * error).all()
    pulled = np.abs(steps.last.mean(axis=0) - theta)
    assert (pulled > 20 * error).any(), "the start and the ridge pull it elsewhere"
    scale = np.sqrt(np.outer(np.diag(actual.covariance[0]), np.diag(actual.covariance[0])))
    difference = (np.cov(actual.estimate.T) - actual.covariance[0]) / scale
    assert np.abs(difference).max() < 5 * math.sqrt(2 / 20_000)
    assert (np.abs(actual.unresolved) < 1e-9).all(), "nothing is clipped, and D is exact"


@pytest.mark.parametrize("way", [inference.last_iterate, inference.late_iterates])
def test_the_noise_on_the_gram_matrix_is_counted(way):
    from dp.proofs.quadratics import coefficients, isotropic

    _, steps = simulated(20_000)
    one = np.zeros(20_000, dtype=int)  # the same recursion every time
    same = {name: getattr(steps, name)[one] for name in ("last", "P", "D", "J", "size")}
    same |= {name: getattr(steps, name)[:, one] for name in ("thetas", "moments")}
    noise = 0.5 * generator(5).standard_normal((20_000, coefficients(3)))
    noisy = steps._replace(**same)
    noisy = noisy._replace(D=noisy.D + isotropic(noise, 3)[0], deviation=np.full(20_000, 0.5))
    actual = way(noisy)
    varied = np.var(actual.estimate, axis=0)
    stated = np.diag(np.median(actual.unresolved, axis=0))
    assert (varied < 1.3 * stated).all() and (stated < 8 * varied).all()


def test_a_first_step_that_is_clipped_counts_as_bias():
    _, steps = simulated(50)
    clipped = steps._replace(clip=1.0)
    for way in (inference.last_iterate, inference.late_iterates):
        part, free = way(clipped).unresolved, way(steps).unresolved
        assert (np.trace(part, axis1=1, axis2=2) > 0.01).all()
        assert (np.trace(free, axis1=1, axis2=2) < 1e-9).all()


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_parts_compose_to_mu(adjacency):
    n, bound, clip, T = 1000, 1.5, 0.3, 7
    options = {"clip": clip, "iterations": T, "adjacency": adjacency, "covariance": 0.2}
    p = MECHANISM.parameters(n, 3, epsilon=1.0, delta=DELTA, bound=bound, **options)
    eigenvalue, gram, moments = MECHANISM._scales(p)
    both = adjacency == "replace-one"
    parts = [bound**2 / eigenvalue, bound**2 * (math.sqrt(2) if both else 1) / gram]
    parts += [(1 + both) * clip * bound / moments] * T
    parts.append(math.sqrt(2) / n / MECHANISM._deviation(n, p))
    assert math.hypot(*parts) == pytest.approx(gaussian_mu(1.0, DELTA), rel=1e-9)
    assert (parts[-1] / math.hypot(*parts)) ** 2 == pytest.approx(0.2)
    reason = MECHANISM.guarantee(n, 3, epsilon=1.0, delta=DELTA, **options).reason
    assert "two means of residuals" in reason and ("taken as public" in reason) == (not both)


def test_both_means_move_by_at_most_their_sensitivity():
    y = np.concatenate([np.linspace(-1, 1, 41), [np.nan]])  # NaN, as from weights that overflow
    each = [
        residual_means(np.zeros((1, 1)), y[i : i + 1], np.zeros((1, 1)), 0.3) for i in range(42)
    ]
    each = np.array(each)[..., 0]
    apart = np.linalg.norm(each[:, None] - each[None], axis=-1)
    for moved in (apart, np.linalg.norm(each, axis=1)):
        assert moved.max() <= math.sqrt(2) * (1 + 1e-12)
    assert apart.max() == pytest.approx(math.sqrt(2))


def test_without_noise_and_clipping_it_is_least_squares():
    import statsmodels.api as sm

    rng = generator(2)
    X, _ = rows(3000, rng)
    y = X @ THETA + 0.05 * rng.standard_normal(3000)
    textbook = sm.OLS(y, X).fit()
    for iterates in ("late", "last"):
        release = MECHANISM.release(
            X, y, epsilon=1e5, delta=DELTA, clip=1.0, iterates=iterates, rng=generator(3)
        )
        np.testing.assert_allclose(release.weights[0], textbook.params, atol=2e-4)
        actual = np.sqrt(np.diagonal(release.info["covariance"][0]))
        np.testing.assert_allclose(actual, textbook.bse, rtol=0.02)
        assert not release.info["coarse"][0]


def covered(n, epsilon, replicates, iterates):
    """Coverage of 95 % intervals, its Monte Carlo error, and the share of draws marked as coarse."""
    rng, result, coarse = generator(4, "coverage", n), [], []
    for _ in range(replicates):
        settings = {"epsilon": epsilon, "delta": DELTA, "restarts": 4, "rng": rng}
        release = MECHANISM.release(*rows(n, rng), iterates=iterates, **settings)
        ends = inference.wald(release.weights, release.info["covariance"])
        result.append(((ends.low < THETA) & (ends.high > THETA)).mean())
        coarse.append(release.info["coarse"].mean())
    return np.mean(result), np.std(result) / math.sqrt(replicates), np.mean(coarse)


@pytest.mark.parametrize("iterates", ["late", "last"])
def test_intervals_cover_where_linearising_holds_and_say_where_not(iterates):
    actual, error, coarse = covered(5000, 1.0, 60, iterates)
    assert error < 0.012 and coarse == 0
    assert actual == pytest.approx(0.95, abs=0.02 + 2 * error)
    actual, error, coarse = covered(300, 0.2, 20, iterates)
    assert coarse > 0.95 and actual > 0.95 - 2 * error
