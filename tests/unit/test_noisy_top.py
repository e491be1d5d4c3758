import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from dp.proofs import noisy_top
from dp.seeds import generator
from dp_privacy.accounting import gaussian_mu, renyi_epsilon


def law(values, rate, count):
    """Probability of every ordered choice of `count` values, drawn in turn without replacement."""
    weights = np.exp(rate * np.asarray(values))
    probabilities = {}
    for chosen in itertools.permutations(range(len(values)), count):
        left, probability = weights.sum(), 1.0
        for k in chosen:
            probability *= weights[k] / left
            left -= weights[k]
        probabilities[chosen] = probability
    return probabilities


@pytest.mark.parametrize("count", [1, 2, 3])
def test_choices_have_the_law_of_choices_in_turn(count):
    values, rate, draws = [0.3, -0.2, 0.9, 0.0], 1.7, 200_000
    repeated = np.tile(values, (draws, 1))
    chosen = noisy_top.noisy_top(repeated, count, rate, generator(1))
    expected = law(values, rate, count)
    assert math.isclose(sum(expected.values()), 1)
    keys, counts = np.unique(chosen, axis=0, return_counts=True)
    seen = dict(zip(map(tuple, keys.tolist()), counts.tolist(), strict=True))
    observed = [seen.get(key, 0) for key in expected]
    assert chisquare(observed, draws * np.array(list(expected.values()))).pvalue > 1e-3


def test_each_row_has_its_own_rate():
    values = np.tile([0.0, 1.0, 2.0], (40_000, 1))
    rates = np.repeat([0.0, 50.0], 20_000)
    chosen = noisy_top.noisy_top(values, 1, rates, generator(2))[:, 0]
    assert (chosen[20_000:] == 2).all()
    assert np.allclose(np.bincount(chosen[:20_000]) / 20_000, 1 / 3, atol=0.015)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("rho", [0.02, 0.5])
def test_no_neighbours_need_more_than_is_stated(count, rho):
    """Tests the loss's range, Rényi divergences and delta with each value moved up, down or not at all."""
    moved, m = 0.3, 4
    rate = noisy_top.choice_rate(rho, count, moved)
    profile, orders = noisy_top.Concentrated(rho), np.array([1.001, 1.5, 2.0, 8.0, 64.0])
    epsilons = np.array([0.0, 0.05, 0.3, 1.0, 3.0])
    largest, most = 0.0, 2 * rate * moved
    for values in ([0.0] * m, [0.4, 0.0, -0.1, 0.2], [2.0, 0.0, 0.0, 0.0]):
        first = np.array(list(law(values, rate, count).values()))
        for signs in itertools.product([-1, 0, 1], repeat=m):
            other = np.array(values) + moved * np.array(signs)
            second = np.array(list(law(other, rate, count).values()))
            loss = np.log(first / second)
            # For several choices, the sum of their ranges is no bound, because normalising constants
            # depend on earlier choices.
            assert count > 1 or np.ptp(loss) <= most * (1 + 1e-12)
            with np.errstate(all="raise"):
                renyi = [math.log((second * np.exp(a * loss)).sum()) / (a - 1) for a in orders]
            assert (np.array(renyi) <= orders * rho * (1 + 1e-9)).all()
            largest = max(largest, renyi[0] / (orders[0] * rho))
            delta = np.maximum(first - np.exp(epsilons)[:, None] * second, 0).sum(axis=1)
            assert (delta <= profile.delta(epsilons)).all()
    least = 0.85 if count == 1 else 0.6  # largest if values with half of the probability rise
    assert largest > least


def test_half_of_the_noise_would_be_seen():
    rate = 2 * noisy_top.choice_rate(0.02, 1, 0.3)  # twice the rate halves the noise
    first = np.array(list(law([0.0] * 4, rate, 1).values()))
    second = np.array(list(law([0.3, 0.3, -0.3, -0.3], rate, 1).values()))
    renyi = math.log((first**2 / second).sum())
    assert renyi > 2 * 0.02 * 2


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
@pytest.mark.parametrize("epsilon", [1e-40, 1e-3, 1.0, 4.0, 50.0, 1e40])
def test_rho_gives_the_epsilon_that_was_asked_for(epsilon, delta):
    rho = noisy_top.rho(epsilon, delta)
    simple = rho + 2 * math.sqrt(-rho * math.log(delta))  # Bun, Steinke
    proven_epsilon = min(simple, renyi_epsilon(lambda a: a * rho, delta, noisy_top.ORDERS))
    assert rho > 0 and proven_epsilon <= epsilon * (1 + 1e-9)
    if 1e-3 <= epsilon <= 50:
        # A Gaussian release of the same epsilon has a larger rho, because its exact curve is below any
        # bound derived from rho.
        least = 0.7 if epsilon >= 1 else 0.0
        assert least < rho / (gaussian_mu(epsilon, delta) ** 2 / 2) <= 1
        assert noisy_top.Concentrated(rho).epsilon(delta) <= epsilon * (1 + 1e-6)


def test_the_profile_is_that_of_the_conversion_and_above_the_gaussian_one():
    from dp_privacy.profiles import Gaussian

    profile, gaussian = noisy_top.Concentrated(0.02), Gaussian(math.sqrt(0.04))
    for delta in (1e-8, 1e-4, 0.01):
        epsilon = profile.epsilon(delta)
        assert epsilon == pytest.approx(renyi_epsilon(lambda a: 0.02 * a, delta), rel=1e-3)
        assert epsilon >= gaussian.epsilon(delta)
    x = np.linspace(-2, 2, 41)
    assert (profile.delta(x) >= gaussian.delta(x)).all() and (np.diff(profile.delta(x)) <= 0).all()


def test_scales():
    assert noisy_top.gaussian_scale(0.5, 3.0) == pytest.approx(3.0)  # rho = moved^2/(2 scale^2)
    a = noisy_top.choice_rate(0.5, 4, 2.0)
    assert 4 * (2 * a * 2.0) ** 2 / 8 == pytest.approx(0.5)
