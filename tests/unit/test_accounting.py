import math

import pytest
from dp_accounting import gaussian_mechanism
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from dp_privacy import accounting


@pytest.mark.parametrize("sigma", [0.2, 1.0, 3.7, 50.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 8.42, 60.0])
@pytest.mark.parametrize("sensitivity", [0.5, 1.0, 4.0])
def test_delta_is_the_hockey_stick_divergence(sigma, epsilon, sensitivity):
    start = epsilon * sigma**2 / sensitivity + sensitivity / 2
    expected = norm.sf(start, sensitivity, sigma) - math.exp(epsilon) * norm.sf(start, 0, sigma)
    actual = accounting.gaussian_delta(sigma, epsilon, sensitivity)
    assert actual == pytest.approx(expected, rel=1e-6, abs=1e-14)
    p, q = norm(sensitivity, sigma).pdf, norm(0, sigma).pdf
    end, peak = max(start, sensitivity) + 12 * sigma, max(start, sensitivity)
    integral = quad(lambda x: p(x) - math.exp(epsilon) * q(x), start, end, points=[peak])[0]
    assert actual == pytest.approx(integral, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 5.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.01, 0.4])
def test_sigma_against_dp_accounting(epsilon, delta):
    ours = accounting.gaussian_sigma(epsilon, delta)
    theirs = gaussian_mechanism.get_sigma_gaussian(epsilon, delta)
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert accounting.gaussian_delta(ours, epsilon) <= delta
    assert accounting.gaussian_delta(ours * (1 - 1e-9), epsilon) > delta
    assert accounting.gaussian_sigma(epsilon, delta, 3.0) == pytest.approx(3 * ours, rel=1e-12)


@given(
    st.floats(1e-3, 1e3), st.floats(0, 300), st.floats(1e-3, 1e3), st.floats(1.001, 10)
)  # sigma, epsilon, sensitivity, factor
@settings(max_examples=200)
def test_delta_is_a_probability_and_falls_with_noise_and_epsilon(sigma, epsilon, sens, factor):
    delta = accounting.gaussian_delta(sigma, epsilon, sens)
    assert 0 <= delta <= 1
    assert accounting.gaussian_delta(sigma * factor, epsilon, sens) <= delta * (1 + 1e-9) + 1e-15
    assert accounting.gaussian_delta(sigma, epsilon * factor, sens) <= delta * (1 + 1e-9) + 1e-15


def test_extremes_are_limits_and_never_nan():
    assert accounting.gaussian_delta(1.0, math.inf) == 0
    assert accounting.gaussian_delta(1e200, 1e200) == 0
    assert accounting.gaussian_delta(1e-300, 1.0) == pytest.approx(1)


@pytest.mark.parametrize(
    "arguments",
    [(0.0, 1.0), (-1.0, 1.0), (math.nan, 1.0), (math.inf, 1.0), (1.0, -0.1), (1.0, math.nan)],
)
def test_delta_refuses(arguments):
    with pytest.raises(ValueError, match="gaussian_delta needs"):
        accounting.gaussian_delta(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        (0.0, 0.1),
        (-1.0, 0.1),
        (math.inf, 0.1),
        (math.nan, 0.1),
        (1.0, 0.0),
        (1.0, 1.0),
        (1, 0.1, 0),
    ],
)
def test_sigma_refuses(arguments):
    with pytest.raises(ValueError, match="gaussian_sigma needs"):
        accounting.gaussian_sigma(*arguments)


def test_what_is_taken_as_public_ends_the_reason():
    guarantee = accounting.Guarantee(1.0, 1.0, 0.0, accounting.REPLACE_ONE, "noise")
    assert accounting.given_that(guarantee, []) == guarantee
    stated = accounting.given_that(guarantee, ["the bounds", "n", "the bounds"])
    assert stated == guarantee._replace(reason="noise; taken as public: the bounds, and n")
    nothing = accounting.none(1.0, "exact")
    assert accounting.given_that(nothing, ["n"]) == nothing


def test_steps_that_look_at_private_rows_void_a_guarantee():
    guarantee = accounting.Guarantee(1.0, 1.5, 1e-6, accounting.REPLACE_ONE, "because")
    assert accounting.after_preparation(guarantee, []) == guarantee
    voided = accounting.after_preparation(guarantee, ["min_max", "tuning of lambda"])
    assert (voided.claimed_epsilon, voided.epsilon, voided.delta) == (1.0, math.inf, 0.0)
    assert "min_max, tuning of lambda" in voided.reason and "1.5" in voided.reason
    nothing = accounting.none(2.0, "exact")
    assert nothing.epsilon == math.inf and nothing.claimed_epsilon == 2.0
    assert accounting.after_preparation(nothing, ["min_max"]) == nothing


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
@pytest.mark.parametrize("sigma", [0.05, 0.4, 1.0, 5.0, 100.0])
def test_gaussian_epsilon_against_dp_accounting(sigma, delta):
    actual = accounting.gaussian_epsilon(3 * sigma, delta, sensitivity=3.0)
    assert actual == pytest.approx(
        gaussian_mechanism.get_epsilon_gaussian(sigma, delta), rel=1e-6, abs=1e-9
    )
    if actual > 0:
        assert accounting.gaussian_delta(sigma, actual) <= delta


def test_classical_gaussian():
    assert accounting.classical_gaussian_sigma(0.5, 1e-5, 2.0) == pytest.approx(
        math.sqrt(2 * math.log(1.25e5)) * 4
    )
    for claimed, true in ((1.0, 0.751), (10.0, 10.394)):
        sigma = accounting.classical_gaussian_sigma(claimed, 1e-5)
        assert accounting.gaussian_epsilon(sigma, 1e-5) == pytest.approx(true, abs=2e-3)
    assert accounting.gaussian_epsilon(accounting.classical_gaussian_sigma(8.41, 1e-5), 1e-5) < 8.41
    assert accounting.gaussian_epsilon(accounting.classical_gaussian_sigma(8.43, 1e-5), 1e-5) > 8.43
    for epsilon, delta in ((0.0, 1e-5), (math.inf, 1e-5), (1.0, 0.0), (1.0, 1.0)):
        with pytest.raises(ValueError, match="classical_gaussian_sigma"):
            accounting.classical_gaussian_sigma(epsilon, delta)
    with pytest.raises(ValueError, match="delta"):
        accounting.gaussian_epsilon(1.0, 0.0)
