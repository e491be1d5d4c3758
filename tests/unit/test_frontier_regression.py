import math

import numpy as np
import pytest
from scipy.special import ndtr

from dp.mechanism import Parameters
from dp.mechanisms import MECHANISMS
from dp.mechanisms.boosted_adassp import boost
from dp.mechanisms.iterative_hessian_mixing import calibrate, wishart
from dp.mechanisms.published.boosted_adassp_released import smallest_positive_eigenvalue
from dp.proofs import quadratics, sketches, tukey
from dp.seeds import generator
from dp_audit import audit, pairs
from dp_privacy.accounting import gaussian_delta, gaussian_epsilon, gaussian_mu, gaussian_sigma
from dp_privacy.profiles import Gaussian, Losses, compose, losses, with_failure

ADJACENCIES = ["replace-one", "add-remove"]


def problem(n=3000, d=4, seed=1):
    rng = generator(seed, "problem")
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.clip(X @ np.linspace(0.6, -0.4, d) + 0.1 * rng.standard_normal(n), -1, 1)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_boosted_parts_compose_to_mu(adjacency):
    """Two orthogonal records with opposite targets attain the sensitivity of each part."""
    mechanism, R, clip, steps = MECHANISMS["boosted_adassp"], 2.0, 0.3, 7
    p = mechanism.parameters(
        50, 3, epsilon=1.0, delta=1e-6, bound=R, clip=clip, iterations=steps, adjacency=adjacency
    )
    eigenvalue, gram, moments = mechanism._scales(p)
    x, z = R * np.eye(3)[0], R * np.eye(3)[1] * (adjacency == "replace-one")
    moved = np.linalg.norm(np.outer(x, x) - np.outer(z, z))
    residuals = clip * R * (2 if adjacency == "replace-one" else 1)
    total = (R**2 / eigenvalue) ** 2 + (moved / gram) ** 2 + steps * (residuals / moments) ** 2
    assert math.sqrt(total) == pytest.approx(gaussian_mu(1.0, 1e-6))
    guarantee = mechanism.guarantee(50, 3, epsilon=1.0, delta=1e-6, adjacency=adjacency)
    assert guarantee.profile.delta(1.0) == pytest.approx(1e-6)


def test_boosting_without_noise_is_least_squares():
    X, y = problem()
    expected = np.linalg.lstsq(X, y, rcond=None)[0]
    for name in ("boosted_adassp", "iterative_hessian_mixing"):
        arguments = {"epsilon": 1e9 if name == "boosted_adassp" else 30.0, "delta": 1e-5}
        X_many, y_many = (np.tile(X, (20, 1)), np.tile(y, 20)) if "hessian" in name else (X, y)
        actual = MECHANISMS[name].release(
            X_many, y_many, iterations=30, clip=2.0, rng=generator(2), **arguments
        )
        np.testing.assert_allclose(actual.weights[0], expected, atol=3e-3)


def test_the_descent_is_stable_where_noise_exceeds_the_signal():
    """For small epsilon, few rows and many columns, preconditioned X'X has a spectral radius below 2."""
    X, _ = problem(300, 12)
    gram, _ = quadratics.moments(X, np.ones(300))
    mechanism = MECHANISMS["boosted_adassp"]
    p = mechanism.parameters(300, 12, epsilon=0.3, delta=1e-6)
    eigenvalue, scale, _ = mechanism._scales(p)
    rng = generator(3)
    from dp_privacy import sensitivities

    least = np.linalg.eigvalsh(gram)[0] + eigenvalue * rng.standard_normal(400)
    ridge = sensitivities.spectral_ridge(
        scale, 12, sensitivities.eigenvalue_lower_bound(least, eigenvalue)
    )
    floor = sensitivities.eigenvalue_floor(scale, 12)
    P = quadratics.inverse(quadratics.noisy(gram, scale, 400, rng), ridge, floor)
    assert np.linalg.eigvalsh(P).max() <= 1 / floor * (1 + 1e-9)
    radius = np.abs(np.linalg.eigvals(P @ gram)).max(axis=1)
    assert (radius < 2).all()


def test_one_records_share_is_bounded_where_scores_overflow():
    """The residual is at most the clip, although weights of both signs exceed a float's range."""
    moments = []

    def step(moment):
        moments.append(moment)
        return np.array([[1e308, -1e308]]) * 1.7

    X = np.array([[60.0, 80.0], [0.0, 0.0]])
    with np.errstate(all="ignore"):
        p = Parameters(iterations=2, clip=0.5, lam=0.0)
        boost(X, np.array([1.0, 0.0]), p, step, 0.0, 1, generator(4))
    assert all(np.linalg.norm(moment) <= 0.5 * 100 for moment in moments)


def test_what_the_released_boosting_gives():
    """The published program releases the smallest positive eigenvalue, so no finite epsilon is proven.

    With the smallest eigenvalue instead, the true epsilon of 100 steps would be 1,112 for a claim of 1.
    """
    mechanism = MECHANISMS["boosted_adassp_released"]
    guarantee = mechanism.guarantee(1000, 1, epsilon=1.0, delta=1e-6)
    assert guarantee.claimed_epsilon == 1.0 and guarantee.adjacency == "add-remove"
    assert math.isinf(guarantee.epsilon) and guarantee.profile is None
    assert "42.6672" in guarantee.reason and "1112.11" in guarantee.reason
    mu = math.sqrt(102) / 0.236704
    assert gaussian_delta(1 / mu, 1112.11) == pytest.approx(1e-6, rel=1e-3)


def test_the_released_boosting_takes_the_smallest_positive_eigenvalue():
    """One more record changes the smallest positive eigenvalue from 20 to 1.

    The ridge, 1.96 sqrt(16) times the noise multiplier, then shrinks the weights along all other axes.
    """
    (X, y), (X_other, y_other) = pairs.find("new_axis").sides
    changed = (X_other != X).any(axis=1) | (y != y_other)
    assert changed.sum() == 1 and not X_other[changed].any()
    for rows, expected in ((X, 1.0), (X_other, 20.0), (np.zeros((3, 2)), None)):
        eigenvalue = smallest_positive_eigenvalue(rows.T @ rows)
        assert eigenvalue == expected or eigenvalue == pytest.approx(expected)
    settings = {"delta": 1e-6, "rng": generator(9), "iterations": 1, "trials": 20_000}
    audited = audit.attack("boosted_adassp_released", "new_axis", 8.0, **settings)
    mu = math.sqrt(3) / gaussian_mu(8.0, 1e-6)
    assert audited["epsilon"] > 6.5 > gaussian_epsilon(1 / mu, 1e-6) + 0.5
    repaired = {"adjacency": "add-remove", "clip": 1.0, "trials": 2000}
    assert audit.attack("boosted_adassp", "new_axis", 8.0, **settings | repaired)["epsilon"] <= 8


def test_the_released_boosting_fails_without_a_positive_eigenvalue():
    mechanism = MECHANISMS["boosted_adassp_released"]
    for sides, status in zip(pairs.find("only_record").sides, ("ok", "failed"), strict=True):
        arguments = {"epsilon": 1.0, "delta": 1e-6, "iterations": 2, "rng": generator(1)}
        assert (mechanism.release(*sides, restarts=5, **arguments).status == status).all()


def test_the_released_boostings_noise_is_as_stated():
    """If all targets are 0, the moment is only noise, with the multiplier as its standard deviation."""
    mechanism, draws = MECHANISMS["boosted_adassp_released"], 20_000
    X, y = np.array([[1.0]]), np.array([0.0])
    arguments = {"epsilon": 1.0, "delta": 1e-6, "iterations": 1}
    weights = mechanism.release(X, y, restarts=draws, rng=generator(5), **arguments).weights[:, 0]
    m = 1 / gaussian_sigma(1.0, 1e-6)
    E, e, z = m * generator(6).standard_normal((3, 200_000))
    least = np.maximum(0, 1 + e - 1.96 * m)
    expected = z / (1 + E + np.maximum(0, 1.96 * m - least))
    for q in (0.05, 0.25, 0.75, 0.95):
        assert np.quantile(weights, q) == pytest.approx(np.quantile(expected, q), abs=0.025)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", [0.1, 4.0])
def test_the_calibration_is_private_and_not_wasteful(adjacency, epsilon):
    rows, steps, delta, tau0 = 60, 3, 1e-5, 5.5
    gamma, gradient, profile = calibrate(rows, steps, epsilon, delta, tau0, 0.5, adjacency)
    assert 0.95 * delta < profile.delta(epsilon) <= delta
    sketch = Losses(losses(sketches.profile(rows * steps, gamma, adjacency=adjacency)))
    mu = math.hypot(sketches.eigenvalue_mu(rows, gamma), math.sqrt(steps) * gradient)
    total = with_failure(compose(sketch, Gaussian(mu)), ndtr(-tau0))
    assert total.delta(epsilon) <= delta * 1.002
    less = sketches.total(rows, steps, gamma / 1.01, gradient * 1.01, tau0, adjacency=adjacency)
    assert less.delta(epsilon) > delta


def test_wishart_matrices_have_their_moments():
    W = wishart(9, 3, 40_000, generator(7))
    np.testing.assert_allclose(W.mean(axis=0), np.eye(3), atol=0.01)
    np.testing.assert_allclose(W[:, 0, 0].var(), 2 / 9, rtol=0.05)
    np.testing.assert_allclose(W[:, 0, 1].var(), 1 / 9, rtol=0.05)
    direct = generator(8).standard_normal((40_000, 9, 3))
    direct = direct.transpose(0, 2, 1) @ direct / 9
    for q in (0.1, 0.5, 0.9):
        expected = np.quantile(np.linalg.det(direct), q)
        assert np.quantile(np.linalg.det(W), q) == pytest.approx(expected, rel=0.04)


@pytest.mark.parametrize("calibration", ["analytic", "published"])
def test_the_spectral_ridge_is_about_the_noises_norm(calibration):
    """On rows of zeros, the spectral ridge is below the published one, but makes most matrices definite."""
    X, y = np.zeros((50, 15)), np.zeros(50)
    arguments = {"epsilon": 1.0, "delta": 1e-6, "restarts": 300, "calibration": calibration}
    results = {
        ridge: MECHANISMS["adassp"].release(X, y, rng=generator(9), ridge=ridge, **arguments)
        for ridge in ("published", "spectral")
    }
    assert not results["published"].info["unbounded"].any()
    assert 0 < results["spectral"].info["unbounded"].mean() < 0.3
    norms = {
        ridge: np.median(np.linalg.norm(each.weights, axis=1)) for ridge, each in results.items()
    }
    assert norms["spectral"] > 1.5 * norms["published"]


def nested(draws=1, m=13, d=2, seed=0):
    points = generator(seed, "points").standard_normal((draws, m, d))
    return np.sort(points, axis=1)


def test_volumes_and_weights_of_the_given_examples():
    """From google-research/google-research, dp_regression/tukey_test.py."""
    P = np.array([[-0.5, -0.4, -0.2, 0.1, 0.5], [-0.1, 0.4, 1, 1.7, 2.5]]).T
    np.testing.assert_allclose(np.exp(tukey.log_volumes(P)), [2.6, 0.65])
    P = np.array([[1, 2, 2.5, 3, 3.5, 4.4], [-8, 3, 4, 7, 11, 13], [-2, 0, 0.1, 0.2, 0.3, 6]]).T
    actual = np.exp(tukey.log_shells(tukey.log_volumes(P), 2, 1.1))
    np.testing.assert_allclose(actual, [3.45 * math.exp(2.2), 0.15 * math.exp(3.3)])


def test_the_distance_moves_by_one_at_most_and_vouches_for_the_draw():
    """If a side's distance is at least 1, its draws' law is within (epsilon, delta) of the other's."""
    rng, epsilon, delta, m, t = generator(10), 1.5, 0.2, 60, 15
    seen = set()
    for _ in range(300):
        points = rng.standard_normal((m, 1)) * np.exp(rng.normal(0, 2 * rng.random(), (m, 1)))
        other = points.copy()
        other[rng.integers(m)] = rng.choice([-3, 0, 3]) * rng.random()
        both = np.sort(np.stack([points, other]), axis=1)
        volumes = tukey.log_volumes(both)
        distance = tukey.distance(volumes, t, epsilon, delta)
        assert abs(distance[0] - distance[1]) <= 1
        seen.add(int(distance[0]))
        for first, second in ((0, 1), (1, 0)):
            if distance[first] < 1:
                continue
            edges = np.unique(np.concatenate([each[t - 1 : m - t + 1, 0] for each in both]))
            middle, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
            mass = []
            for each in both:
                depth = np.minimum(np.searchsorted(each[:, 0], middle), m)
                depth = np.minimum(depth, m - depth)
                weight = np.where(depth >= t, width * np.exp(epsilon * depth / 2), 0.0)
                mass.append(weight / weight.sum())
            excess = np.maximum(mass[first] - math.exp(epsilon) * mass[second], 0).sum()
            assert excess <= delta
    assert {0, 1, 2} <= seen


def test_points_of_a_shell_are_uniform_in_it():
    """Coordinates' quantiles agree with rejection sampling from the i-th box without the box inside it."""
    points, i, draws = nested(), 3, 20_000
    actual = tukey.shell_point(np.repeat(points, draws, axis=0), np.full(draws, i), generator(11))
    low, high, low_in, high_in = (
        points[0, i - 1],
        points[0, 13 - i],
        points[0, i],
        points[0, 12 - i],
    )
    inside = ((actual > low_in) & (actual < high_in)).all(axis=1)
    assert ((actual >= low) & (actual <= high)).all() and not inside.any()
    box = low + (high - low) * generator(12).random((80_000, 2))
    box = box[~((box > low_in) & (box < high_in)).all(axis=1)]
    for j in range(2):
        for q in (0.1, 0.3, 0.5, 0.7, 0.9):
            gap = np.mean(actual[:, j] < np.quantile(box[:, j], q)) - q
            assert abs(gap) < 0.015


def test_tukey_em_refuses_what_it_must_and_answers_near_the_fit():
    X, y = problem(6000, 2)
    mechanism = MECHANISMS["tukey_em"]
    arguments = {"delta": 1e-5, "restarts": 20, "rng": generator(13)}
    refused = mechanism.release(X, y, epsilon=0.05, **arguments)
    assert (refused.status == "refused").all() and not refused.weights.any()
    answered = mechanism.release(X, y, epsilon=5.0, **arguments)
    assert (answered.status == "ok").all() and answered.info["models"] == 1000
    fit = np.linalg.lstsq(X, y, rcond=None)[0]
    assert np.abs(np.median(answered.weights, axis=0) - fit).max() < 0.05
    with pytest.raises(ValueError, match="models of 2 rows"):
        mechanism.release(X[:100], y[:100], epsilon=1.0, models=51, **arguments)


def test_the_threshold_pair_differs_in_the_probability_of_an_answer():
    """At distances 22 and 21, the probabilities of an answer have a ratio of at most e^{1/2}.

    The threshold is 21.64, and the noise's scale 2. The released program's scale of 1/2 gives a ratio
    above e^{3/2}.
    """
    from dp_audit.pairs import find

    tied = 1e-10 * np.linspace(0, 1, 320)[:, None]
    points = [np.sort(y[:, None] + tied, axis=0) for _, y in find("tukey_threshold").sides]
    volumes = [tukey.log_volumes(each) for each in points]
    distances = [int(tukey.distance(each, 80, 0.5, 1e-5)) for each in volumes]
    assert distances == [22, 21]
    assert distances == [int(tukey.distance(each[:-1], 80, 0.5, 1e-5)) for each in volumes]
    ratio = [tukey.answered(k, 0.5, 1e-5) for k in distances]
    assert math.log(ratio[0] / ratio[1]) <= 0.5
    ratio = [tukey.answered(k, 0.5, 1e-5, scale=0.5) for k in distances]
    assert math.log(ratio[0] / ratio[1]) > 1.5
