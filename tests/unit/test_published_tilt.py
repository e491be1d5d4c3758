import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dp.proofs import gaussian_tilt, published_tilt
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE, gaussian_sigma, renyi_epsilon

DELTA = 1e-5


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0, 8.0])
def test_amp_is_private_and_noisier_than_needed(epsilon):
    n = 30_000
    tilt = published_tilt.amp(epsilon, DELTA, n)
    sensitivity = (
        2 * n * tilt.gradient_norm / tilt.n_lambda
    )  # factor 2: both data sets' minimisers are approximate
    delta = gaussian_tilt.composed_delta(
        epsilon, 1 / tilt.sigma, sensitivity / tilt.sigma_output, 1 / tilt.n_lambda, REPLACE_ONE
    )
    assert delta < DELTA
    assert tilt.sigma > 1.2 * gaussian_tilt.calibrate(epsilon, DELTA, tilt.n_lambda)
    share = tilt.n_lambda * 0.99 * epsilon * (1 - published_tilt.amp_share(epsilon))
    assert share == pytest.approx(2)


def test_amp_refuses_what_its_proof_does_not_cover():
    with pytest.raises(ValueError, match="Jacobian"):
        published_tilt.amp(8.0, DELTA, 1000, share=0.5)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("n_lambda", [0.6, 3.0, 50.0])
def test_redberg_bounds_the_exact_profile(epsilon, n_lambda):
    for m in (0.2, 0.6, 1.5):
        ours = gaussian_tilt.tilt_delta(epsilon, 1 / m, n_lambda, adjacency=ADD_REMOVE)
        theirs = published_tilt.redberg_delta(epsilon, 1 / m, n_lambda)
        assert ours <= theirs * (1 + 1e-9)


def test_redberg_delta_is_its_expectation():
    """In all branches, delta is E (1 - e^(epsilon - j - m^2/2 - m |u|))_+ with u ~ N(0, 1).

    m: 1/sigma. j: the Jacobian's privacy loss.
    """
    for epsilon, m, n_lambda in ((1.0, 0.4, 2.0), (0.3, 0.9, 5.0), (0.2, 0.3, 0.4)):
        j = -math.log1p(-0.25 / n_lambda)

        def over(u, epsilon=epsilon, m=m, j=j):
            return max(0.0, -math.expm1(epsilon - j - m * m / 2 - m * u)) * 2 * norm.pdf(u)

        kink = max(0.0, (epsilon - j - m * m / 2) / m)
        expected = quad(over, kink, kink + 12)[0]
        actual = published_tilt.redberg_delta(epsilon, 1 / m, n_lambda)
        assert actual == pytest.approx(expected, rel=1e-6)
    assert published_tilt.redberg_delta(1.0, 1.0, 0.2) == 1.0
    assert published_tilt.redberg_sigma(0.1, DELTA, 2.4) == math.inf


def test_redberg_renyi_is_its_expectation():
    sigma, n_lambda, order = 2.0, 3.0, 4.0
    m = 1 / sigma
    moment = quad(lambda u: math.exp((order - 1) * m * u) * 2 * norm.pdf(u), 0, 30)[0]
    expected = -math.log1p(-0.25 / n_lambda) + m * m / 2 + math.log(moment) / (order - 1)
    assert published_tilt.redberg_renyi(order, sigma, n_lambda) == pytest.approx(expected)
    orders = np.array([1.5, 3.0])
    assert published_tilt.redberg_renyi(orders, sigma, n_lambda).shape == (2,)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_redberg_calibration(epsilon):
    tilt = published_tilt.redberg(epsilon, DELTA)
    gauss = gaussian_sigma(epsilon, DELTA, math.sqrt(2))
    assert gauss < tilt.sigma <= 1.3 * gauss * (1 + 1e-9)
    assert tilt.n_lambda >= 2 * 0.5 / epsilon
    mu = 2 * tilt.gradient_norm / tilt.n_lambda / tilt.sigma_output

    def both(a):
        return (
            published_tilt.redberg_renyi(a, tilt.sigma, tilt.n_lambda, math.sqrt(2), 0.5)
            + a * mu**2 / 2
        )

    assert renyi_epsilon(both, DELTA) == pytest.approx(epsilon, rel=1e-6)
    m, r = math.sqrt(2) / tilt.sigma, 2 / tilt.n_lambda  # rows of norm sqrt(2): R^2 = 2
    assert gaussian_tilt.composed_delta(epsilon, m, mu, r, ADD_REMOVE) < DELTA
