import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from dp.mechanisms import MECHANISMS
from dp.proofs.one_number import one_number
from dp.seeds import generator
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE, gaussian_mu
from dp_privacy.errors import Refused

SIMPLE = MECHANISMS["mean_direction"]
GUARDED = MECHANISMS["guarded_objective_perturbation"]
USUAL = MECHANISMS["knorm_objective_perturbation"]
DELTA = 1e-6


def rows(n, rng, strength=0.0, share=0.5):
    X = np.column_stack([rng.standard_normal((n, 9)) / 4, np.full(n, 0.3)])
    X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    z = strength * X[:, 0] + math.log(share / (1 - share))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-z)), 1, -1)


def gain(release, X, y):
    """How far each draw's mean loss is below the best constant's."""
    share = (y > 0).mean()
    scores = X @ release.weights.T + release.info.get("intercept", np.zeros(len(release.weights)))
    best = -share * math.log(share) - (1 - share) * math.log(1 - share)
    return best - np.logaddexp(0, -y[:, None] * scores).mean(axis=0)


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_what_a_record_moves_is_as_stated(adjacency):
    rng, bound, n = generator(1), 1.5, 7
    settings = {"epsilon": 1.0, "delta": DELTA, "bound": bound, "adjacency": adjacency}
    p = SIMPLE.parameters(n, 2, **settings, rate=0.8)
    rate = SIMPLE._rate(n, p)
    shares = np.sqrt([rate, 1 - rate - p.moment, p.moment])
    limits = np.array(SIMPLE._scales(n, p)) * shares * p.mu * n  # n times the sensitivities assumed
    largest = np.zeros(3)
    for _ in range(4000):
        centre, u = rng.uniform(0.02, 0.98), rng.standard_normal(2)
        x = rng.standard_normal((2, 2))
        x *= (bound * rng.choice([1, 0.5]) / np.linalg.norm(x, axis=1))[:, None]
        x[1] = -x[0] if rng.random() < 0.3 else x[1]
        u = x[0] if rng.random() < 0.3 else u
        t, one = rng.choice([0.0, 1.0], 2), 1.0 if adjacency == REPLACE_ONE else 0.0
        size = max(centre, 1 - centre)
        along = (x @ u / np.linalg.norm(u)) ** 2
        moved = [
            abs(t[0] - one * t[1]),
            np.linalg.norm((t[0] - centre) * x[0] - one * (t[1] - centre) * x[1]) / size,
            abs(along[0] - one * along[1]),
        ]
        largest = np.maximum(largest, moved)
    assert (largest <= limits * (1 + 1e-9)).all() and (largest >= 0.95 * limits).all()


@pytest.mark.parametrize("n", [40, 180, 181, 400, 40_000])  # n mu = 22.36 at n = 180.2
def test_the_releases_compose_to_mu(n):
    p = SIMPLE.parameters(n, 3, epsilon=0.5, delta=DELTA)
    scales = SIMPLE._scales(n, p)
    assert (scales is None) == (n < 181)
    if scales is not None:
        rate, *others = scales
        moved = zip((2, 1), others, strict=True)
        total = math.hypot(1 / (n * rate), *(size / (n * scale) for size, scale in moved))
        assert total == pytest.approx(gaussian_mu(0.5, DELTA), rel=1e-12)
        assert rate >= 0.05 * (1 - 1e-9) or n == 40_000, "the rate gets no more than it needs"


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
def test_one_number_has_the_lesser_of_two_noises(epsilon, delta):
    mu, moved = gaussian_mu(epsilon, delta), 0.25
    noise = one_number(moved, epsilon, mu)
    laws = {
        "Laplace": scipy.stats.laplace(scale=moved / epsilon),
        "Gaussian": scipy.stats.norm(scale=moved / mu),
    }
    law = laws[noise.kind]
    assert noise.deviation == pytest.approx(min(other.std() for other in laws.values()), rel=1e-12)
    assert scipy.stats.kstest(noise.draw(4000, generator(5)), law.cdf).pvalue > 1e-3
    z = np.linspace(-60 * noise.deviation, 60 * noise.deviation + moved, 400_001)
    density, shifted = law.pdf(z), law.pdf(z - moved)
    for level in (0.5 * epsilon, epsilon):
        lost = np.maximum(shifted - np.exp(level) * density, 0)
        exact = scipy.integrate.trapezoid(lost, z)
        assert exact <= noise.profile.delta(level) * (1 + 1e-3) + 1e-9
        assert exact <= delta * 1.001 + 1e-9 or level < epsilon


def test_where_noise_hides_even_the_rate_nothing_else_is_released():
    """The intercept ignores X, and its noise uses the whole epsilon."""
    X, y = rows(150, generator(8), 3.0, 0.3)
    settings = {"epsilon": 0.5, "delta": DELTA, "restarts": 4000}
    release = SIMPLE.release(X, y, rng=generator(9), **settings)
    other = SIMPLE.release(X[::-1] / 2, y, rng=generator(9), **settings)
    assert not release.weights.any()
    np.testing.assert_array_equal(release.info["intercept"], other.info["intercept"])
    assert "nothing else" in SIMPLE.guarantee(150, 10, epsilon=0.5, delta=DELTA).reason
    noisy = 1 / (1 + np.exp(-release.info["intercept"]))
    sd = math.sqrt(2) / (150 * 0.5)
    assert release.info["scale"] == pytest.approx(sd)
    usual = (noisy > sd) & (noisy < 1 - sd) & (noisy != 0.5)  # neither clipped nor shrunk away
    assert usual.mean() > 0.8 and abs(noisy[usual].mean() - (y > 0).mean()) < 0.02


def test_without_noise_it_is_the_best_step_of_the_quadratic_bound():
    X, y = rows(3000, generator(2), 2.0, 0.2)
    release = SIMPLE.release(X, y, epsilon=1e7, delta=DELTA, rng=generator(3))
    share = (y > 0).mean()
    a = ((y > 0) - share) @ X / len(y)
    V = ((X @ a) ** 2).mean() / (a @ a)
    np.testing.assert_allclose(release.weights[0], 4 * a / V, atol=1e-4)
    assert release.info["intercept"][0] == pytest.approx(math.log(share / (1 - share)), rel=1e-5)
    assert gain(release, X, y)[0] >= 2 * (a @ a) / V * 0.999, "as the bound says"


def test_the_guard_takes_one_or_the_other_by_public_numbers_alone():
    X, y = rows(500, generator(6), 2.0)
    bounds = {"column_bounds": np.abs(X).max(axis=0).tolist()}
    paid = {"offset": "paid"}
    cases = (0.2, SIMPLE, {}), (4.0, USUAL, {}), (4.0, USUAL, bounds), (4.0, USUAL, bounds | paid)
    for epsilon, chosen, own in cases:
        settings = {"epsilon": epsilon, "delta": DELTA} | own
        settings["lam"] = GUARDED.rule_lambda(500, 10, **settings)
        options = {"clip": 0.75} if chosen is USUAL else {}
        if chosen is USUAL:
            assert settings["lam"] == USUAL.rule_lambda(500, 10, **settings, **options)
        actual, expected = (
            mechanism.release(X, y, rng=generator(7), restarts=3, **settings, **clipped)
            for mechanism, clipped in ((GUARDED, {}), (chosen, options))
        )
        np.testing.assert_array_equal(actual.weights, expected.weights)
        guarded, own = (
            GUARDED.guarantee(500, 10, **settings),
            chosen.guarantee(500, 10, **settings, **options),
        )
        assert own.reason in guarded.reason and guarded.delta == own.delta
    twice = {"epsilon": 0.5, "delta": DELTA, "lam": 0.1}  # n mu = 62
    assert "tilt" in GUARDED.guarantee(500, 10, **twice).reason
    assert "class rate" in GUARDED.guarantee(500, 10, **twice, guard=70).reason
    assert "tilt" in GUARDED.guarantee(500, 10, **twice, guard=70, adjacency=ADD_REMOVE).reason


def test_shares_that_leave_nothing_are_refused():
    with pytest.raises(Refused, match="leave nothing for the direction"):
        SIMPLE.guarantee(100, 2, epsilon=1.0, delta=DELTA, rate=0.6, moment=0.4)
    with pytest.raises(Refused, match="leave nothing for the direction"):
        SIMPLE.guarantee(182, 2, epsilon=0.5, delta=DELTA, moment=0.3)
    assert SIMPLE.guarantee(150, 2, epsilon=0.5, delta=DELTA, moment=0.3).epsilon == 0.5
