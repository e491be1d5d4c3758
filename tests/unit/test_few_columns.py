"""Tests descents that choose columns with noise, and simulated rows with many columns."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dp.mechanisms import MECHANISMS
from dp.proofs import noisy_top
from dp.seeds import generator
from dp_privacy.errors import Refused
from study.data.simulations import simulate_signs

NAMES = ("frank_wolfe", "coordinate_descent", "iterative_thresholding")
ASKED = {"epsilon": 1.0, "delta": 1e-6}
NO_NOISE = {"epsilon": 1e12, "delta": 1e-6}


def logistic(w, X, y):
    return np.logaddexp(0, -y * (X @ w)).mean()


def small(n=400, d=6):
    X, y, w = simulate_signs(n, d, 2, 1.0, generator(3, "few"))
    return X.astype(float), y, w


@pytest.mark.parametrize("coordinate_bound", [None, 1.0, 0.5])
@pytest.mark.parametrize("clip", [0.3, 0.5, 0.9])
def test_what_a_record_moves_is_as_stated(clip, coordinate_bound):
    rng, bound, n, d = generator(1, "moved"), 1.25, 3, 4
    mechanism = MECHANISMS["iterative_thresholding"]
    settings = ASKED | {"bound": bound, "coordinate_bound": coordinate_bound, "clip": clip}
    p = mechanism.parameters(n, d, **settings)
    limit = min(bound, coordinate_bound or bound)
    reached, together = 0.0, 0.0
    for _ in range(1000):
        W = rng.choice([0.0, 0.1, 1.0, 30.0]) * rng.standard_normal((1, d))
        rows = rng.choice([-1.0, 1.0], (2, d)) * limit * rng.choice([0.3, 1, 1, 1], (2, d))
        if rng.random() < 0.5:
            rows[1] = -rows[0]
        rows /= np.maximum(1, np.linalg.norm(rows, axis=1) / bound)[:, None]
        y = rng.choice([-1.0, 1.0], 2)
        others = rng.standard_normal((n - 1, d)) / 9
        sides = []
        for row, label in zip(rows, y, strict=True):
            X, labels = np.vstack([row, others]), np.array([label, 1.0, -1.0])
            gradient, moved = mechanism._gradient(X, labels, W, X @ W.T, p)
            sides.append(gradient[0])
        change = np.abs(sides[0] - sides[1])
        ratio = change.max() / moved[0]
        share = np.linalg.norm(change) / (min(math.sqrt(d), bound / limit) * moved[0])
        assert ratio <= 1 + 1e-9 and share <= 1 + 1e-9
        reached, together = max(reached, ratio), max(together, share)
    if coordinate_bound:
        assert reached > 0.95 and together > 0.95


@pytest.mark.parametrize("name", NAMES)
def test_the_noise_is_that_of_the_proof(name, monkeypatch):
    spent = []

    def top(values, count, rate, rng):
        spent.append(count * (2 * np.max(rate * moved[-1])) ** 2 / 8)
        return np.argsort(-values, axis=1, kind="stable")[:, :count]

    moved, mechanism = [], MECHANISMS[name]
    original = type(mechanism)._gradient

    def gradient(self, *arguments):
        result = original(self, *arguments)
        factor = self._rate(arguments[-1]) if name == "iterative_thresholding" else 1.0
        moved.append(result[1] * factor)
        return result

    def scale(rho, sensitivity):
        spent.append(rho)
        return sensitivity / math.sqrt(2 * rho)

    monkeypatch.setattr(noisy_top, "noisy_top", top)
    monkeypatch.setattr(noisy_top, "gaussian_scale", scale)
    monkeypatch.setattr(type(mechanism), "_gradient", gradient)
    X, y, _ = small()
    settings = ASKED | {"bound": math.sqrt(6), "coordinate_bound": 1.0, "iterations": 10}
    mechanism.release(X, y, rng=generator(2), restarts=2, **settings)
    assert len(moved) == 10
    assert sum(spent) == pytest.approx(noisy_top.rho(1.0, 1e-6), rel=1e-9)
    stated = mechanism.guarantee(*X.shape, **settings)
    assert stated.epsilon == 1.0 and stated.profile.epsilon(1e-6) <= 1 + 1e-6


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_few_choices_add_up_epsilons(epsilon, steps, monkeypatch):
    """With T steps, no choice is more than e^(epsilon/T) times as likely as on a neighbouring data set."""
    laws = []

    def top(values, count, rate, rng):
        weights = np.exp(np.reshape(rate, (-1, 1)) * values)
        laws[-1].append(np.log(weights / weights.sum(axis=1, keepdims=True))[0])
        return np.zeros((len(values), 1), dtype=int)  # the same vertex on both data sets

    monkeypatch.setattr(noisy_top, "noisy_top", top)
    settings = {"epsilon": epsilon, "delta": 1e-6, "iterations": steps, "radius": 1e-6}
    random, y = generator(4, "neighbours").uniform(-1, 1, size=(20, 4)), np.ones(20)
    corner = np.zeros((20, 4))
    corner[:, 0] = 1.0
    largest = 0.0
    for X in (random / 2, corner):
        laws.clear()
        for change in (1.0, -1.0):
            laws.append([])
            X[7] = change * np.eye(4)[0]
            MECHANISMS["frank_wolfe"].release(X, y, rng=generator(1), **settings)
        for first, second in zip(*laws, strict=True):
            largest = max(largest, np.abs(first - second).max())
    assert 0.4 * epsilon / steps < largest <= epsilon / steps * (1 + 1e-9)
    stated = MECHANISMS["frank_wolfe"].guarantee(20, 4, **settings)
    assert stated.epsilon == epsilon and stated.profile.delta(epsilon) == 0
    assert "0)-DP" in stated.reason


@pytest.mark.parametrize("epsilon", [1e-8, 1e-4, 1.0, 100.0])
@pytest.mark.parametrize("delta", [1e-14, 1e-6, 0.1])
def test_what_is_claimed_is_a_point_of_the_profile(epsilon, delta):
    profile = noisy_top.Concentrated(noisy_top.rho(epsilon, delta))
    assert profile.delta(epsilon) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_delta_grows_with_the_number_of_noisy_values(name):
    """NumPy's uniform numbers are multiples of 2^-53, so no Gumbel draw exceeds 36.8."""
    largest = -math.log(-math.log(1 - 2.0**-53))
    assert 36 < largest < 37
    mechanism, settings = MECHANISMS[name], {"epsilon": 1.0, "iterations": 20}
    draws = 20 * 10_000 * (2 if name == "frank_wolfe" else 1)
    beyond = -math.expm1(-draws * math.exp(-largest))  # one of them would be larger
    for delta in (1e-14, 50 * beyond):
        with pytest.raises(Refused, match=r"needs a delta of at least 4\.44\d+e-09, not"):
            mechanism.guarantee(2000, 10_000, delta=delta, **settings)
    assert mechanism.guarantee(2000, 10_000, delta=4.5e-9, **settings).epsilon == 1.0
    assert mechanism.guarantee(2000, 1, delta=1e-12, **settings).epsilon == 1.0


def test_without_noise_frank_wolfe_finds_the_minimiser_in_the_ball():
    X, y, _ = small()
    parts = minimize(  # w = u - v with u, v >= 0
        lambda uv: logistic(uv[:6] - uv[6:], X, y),
        np.full(12, 0.1),
        bounds=[(0, None)] * 12,
        constraints={"type": "ineq", "fun": lambda uv: 1.0 - uv.sum()},
    )
    settings = {"radius": 1.0, "clip": 1 - 1e-9, "iterations": 3000, "bound": math.sqrt(6)}
    settings |= {"coordinate_bound": 1.0, "step": "published"}
    release = MECHANISMS["frank_wolfe"].release(X, y, rng=generator(4), **NO_NOISE, **settings)
    assert np.abs(release.weights).sum() <= 1 + 1e-12
    assert logistic(release.weights[0], X, y) == pytest.approx(parts.fun, abs=1e-4)


@pytest.mark.parametrize("name", ["coordinate_descent", "iterative_thresholding"])
def test_without_noise_all_columns_give_the_minimiser(name):
    X, y, _ = small()
    minimum = minimize(logistic, np.zeros(6), args=(X, y)).fun
    settings = {"clip": 1 - 1e-9, "iterations": 400, "bound": math.sqrt(6), "coordinate_bound": 1.0}
    settings |= {"columns": 6} if name == "iterative_thresholding" else {}
    release = MECHANISMS[name].release(X, y, rng=generator(6), **NO_NOISE, **settings)
    assert logistic(release.weights[0], X, y) == pytest.approx(minimum, abs=1e-4)


def test_thresholding_keeps_so_many_weights():
    X, y, w = small()
    settings = ASKED | {"bound": math.sqrt(6), "coordinate_bound": 1.0, "iterations": 2}
    for columns in (1, 2, 5, 60):
        release = MECHANISMS["iterative_thresholding"].release(
            X, y, rng=generator(7), restarts=20, columns=columns, **settings
        )
        assert ((release.weights != 0).sum(axis=1) == min(columns, 6)).all()
    strong = settings | {"epsilon": 50.0, "columns": 2}
    release = MECHANISMS["iterative_thresholding"].release(X, y, rng=generator(8), **strong)
    np.testing.assert_array_equal(release.weights[0] != 0, w != 0)


def test_rules_use_public_numbers_alone():
    known = {"bound": 100.0, "coordinate_bound": 1.0}
    expected = {1.0: (8, 6, 1), 4.0: (30, 30, 3), 0.1: (1, 1, 1)}
    for epsilon, steps in expected.items():
        for name, count in zip(NAMES, steps, strict=True):
            mechanism = MECHANISMS[name]
            p = mechanism.parameters(2000, 10_000, epsilon=epsilon, delta=1e-6, **known)
            assert mechanism._steps(2000, 10_000, p) == count
    with pytest.raises(Refused, match="coordinate"):
        MECHANISMS["frank_wolfe"].release(
            np.array([[0.6, 0.8], [0.0, 1.0]]),
            [1, -1],
            rng=generator(1),
            coordinate_bound=0.7,
            **ASKED,
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_bound_near_a_float_s_smallest_number_is_refused(name):
    """A sensitivity rounded to 0 would leave the choice without noise."""
    mechanism = MECHANISMS[name]
    X, y = np.full((100, 1), 1e-273), np.where(np.arange(100) < 38, 1, -1)
    options = {"clip": 1.1e-50, "iterations": 1, "coordinate_bound": 1e-273}
    with pytest.raises(Refused, match="coordinate_bound must be a number strictly between 1e-50"):
        mechanism.release(X, y, rng=generator(1), **options, **ASKED)
    with pytest.raises(Refused, match="coordinate_bound"):
        mechanism.guarantee(100, 1, **options, **ASKED)
    smallest = options | {"coordinate_bound": 1.1e-50}
    weights = [
        mechanism.release(
            X / 1e-273 * 1.1e-50,
            np.where(np.arange(100) < positive, 1, -1),
            rng=generator(1),
            restarts=1000,
            bound=1.0,
            **smallest,
            **ASKED,
        ).weights
        for positive in (37, 38)
    ]
    shares = [(w > 0).mean() for w in weights]
    assert abs(shares[1] - shares[0]) < 0.1


def test_simulated_signs_have_their_law():
    X, y, w = simulate_signs(40_000, 30, 4, 0.8, generator(10))
    assert X.dtype == np.int8 and set(np.unique(X)) == {-1, 1}
    assert (w != 0).sum() == 4 and set(np.abs(w[w != 0])) == {0.8}
    assert np.abs(X.mean(axis=0, dtype=float)).max() < 0.03
    score = X @ w
    for value in np.unique(score):
        at = score == value
        share = 1 / (1 + math.exp(-value))
        assert (y[at] == 1).mean() == pytest.approx(
            share, abs=5 * math.sqrt(share * (1 - share) / at.sum()) + 1e-3
        )
    assert np.abs((y @ X)[w == 0] / len(y)).max() < 0.03
    with pytest.raises(ValueError, match="true"):
        simulate_signs(10, 3, 4, 1.0, generator(1))
