import math

import numpy as np
import pytest
from scipy.stats import norm

from dp_privacy.accounting import gaussian_mu
from dp_privacy.profiles import Curve, Gaussian, approximate
from dp_release import meaning, models

FALSE = [0.001, 0.01, 0.05, 0.5, 0.99]


@pytest.mark.parametrize("mu", [0.05, 0.24, 1.0, 3.0])
@pytest.mark.parametrize("false", FALSE)
def test_a_gaussian_release(mu, false):
    truth = norm.cdf(norm.ppf(false) + mu)
    assert meaning.power(Gaussian(mu), false) == pytest.approx(truth, rel=1e-7)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("false", [0.0, *FALSE, 1.0])
def test_randomised_response(epsilon, false):
    truth = min(math.exp(epsilon) * false, 1 - math.exp(-epsilon) * (1 - false))
    actual = meaning.power(approximate(epsilon), false)
    assert truth - 1e-12 <= actual <= truth * (1 + 1e-4) + 1e-12


def test_a_failure_that_tells_all():
    """Revealing the row with probability 0.02 adds 0.02 to the power of a random guess."""
    nothing = Curve(lambda e: np.maximum(0.02, 1 - 0.98 * np.exp(e)))
    assert meaning.power(nothing, 0.01) == pytest.approx(0.02 + 0.01, rel=1e-4)
    assert meaning.power(Gaussian(0.0), 0.05) == pytest.approx(0.05, rel=1e-4)


@pytest.mark.parametrize("prior", [0.02, 0.3, 0.5, 0.9])
def test_right_answers_of_the_best_test_of_two_normals(prior):
    mu = 0.8
    cut = math.log((1 - prior) / prior) / mu + mu / 2  # accuse if the odds are at least even
    truth = prior * norm.sf(cut - mu) + (1 - prior) * norm.cdf(cut)
    assert meaning.right_answers(Gaussian(mu), prior) == pytest.approx(truth, rel=1e-9)


def test_a_posterior_is_the_share_of_accused_that_are_x():
    rng = np.random.default_rng(5)
    mu, prior, count = 1.5, 0.2, 400_000
    is_x = rng.random(count) < prior
    accused = rng.standard_normal(count) + mu * is_x > norm.isf(0.05)
    actual = meaning.meaning(Gaussian(mu), prior)
    assert is_x[accused].mean() == pytest.approx(actual.posterior[1], abs=0.01)
    assert actual.posterior[0] > actual.posterior[1] > prior
    assert actual.right >= 1 - prior


def test_the_profile_says_less_than_its_epsilon_alone():
    profile = Gaussian(gaussian_mu(1.0, 1e-6))
    exact = meaning.meaning(profile).power
    alone = meaning.meaning(approximate(1.0, 1e-6)).power
    assert exact[0] < 0.0184 and alone[0] > 0.027
    assert all(a < b for a, b in zip(exact, alone, strict=True))


def test_a_plan_for_a_model():
    plan = models.noise_aware_logistic(2000, 4, 1.0, 1e-6)
    beside = math.hypot(*(float(noise.mu) for noise in plan.noises.values()))
    tilt = float(plan.tilt.noise.mu)
    profile = plan.guarantee().profile
    actual = meaning.power(profile, 0.05)
    least = max(meaning.power(Gaussian(mu), 0.05) for mu in (beside, tilt))
    assert least < actual < meaning.power(approximate(1.0, 1e-6), 0.05)


def test_sentences_say_the_numbers():
    first, second, third = meaning.meaning(Gaussian(1.0), 0.1).sentences()
    assert "1% of the time accuses rightly at most 9.3%" in first and "raises it to 50.7%" in first
    assert "5% of the time accuses rightly at most 26.0%" in second
    assert "His answers are right at most" in third and "90% without" in third


def test_what_is_said_is_a_bound():
    """Numbers are always rounded up: 1.834 % is not at most 1.8 %."""
    actual = meaning.Meaning(0.5, (0.01, 0.05), (0.01834, 0.25), (0.6472, 0.8333), 0.50001)
    first, second, third = actual.sentences()
    assert "at most 1.9% of" in first and "raises it to 64.8% at most" in first
    assert "at most 25.0% of" in second and "raises it to 83.4% at most" in second
    assert "at most 50.1% of" in third
    whole = meaning.Meaning(0.5, (0.05,), (1.0,), (1.0,), 1.0).sentences()
    assert "at most 100.0% of" in whole[0] and "at most 100.0% of" in whole[1]


@pytest.mark.parametrize("prior", [0.0, 1.0, math.nan])
def test_a_prior_is_a_probability_that_leaves_doubt(prior):
    with pytest.raises(ValueError, match="strictly between"):
        meaning.meaning(Gaussian(1.0), prior)


def test_false_accusations_are_a_share():
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        meaning.power(Gaussian(1.0), 1.5)
