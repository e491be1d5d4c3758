import math

import numpy as np
import pytest
from scipy.special import expit

from dp.proofs import gaussian_tilt
from dp.solvers.newton import minimise
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE, gaussian_mu, gaussian_sigma
from dp_privacy.profiles import Gaussian, gaussian_profile

DELTA = 1e-5


def slopes(z):
    s = expit(-z)
    return s, s * expit(z)


def hockey_stick(log_p, log_q, epsilon, cell):
    """Integral of (p - e^epsilon q)_+ on a grid."""
    gap = epsilon + log_q - log_p
    inside = gap < 0
    return float(-np.dot(np.exp(log_p[inside]), np.expm1(gap[inside])) * cell)


def deltas_1d(pull, sigma, n_lambda, epsilon, row=1.0, points=40_001):
    """delta of (removing, adding) a logistic record v = row; the other records' gradients sum to -pull.

    Many other records with small rows can have any such sum and no curvature. So the tilt is b = pull -
    n_lambda w, plus s v if the record, of slope s, is there. The density of w is that of b times |db/dw|.
    """
    w = np.linspace(pull - 14 * sigma, pull + row + 14 * sigma, points) / n_lambda
    s, curvature = slopes(w * row)
    cell = w[1] - w[0]
    without = -((pull - n_lambda * w) ** 2) / (2 * sigma**2) + math.log(n_lambda)
    record = -((pull - n_lambda * w + s * row) ** 2) / (2 * sigma**2) + np.log(
        n_lambda + curvature * row**2
    )
    norm = math.log(sigma * math.sqrt(2 * math.pi))
    return (
        hockey_stick(record - norm, without - norm, epsilon, cell),
        hockey_stick(without - norm, record - norm, epsilon, cell),
    )


def worst_1d(sigma, n_lambda, epsilon):
    pulls = -np.concatenate([np.linspace(-2, 3, 26), np.geomspace(3, 3000, 40)]) * max(n_lambda, 1)
    return np.max([deltas_1d(pull, sigma, n_lambda, epsilon) for pull in pulls], axis=0)


def test_densities_in_one_dimension_are_those_of_the_solver():
    """The density is a valid reference: it integrates to 1, and minimisers follow it."""
    rng = np.random.default_rng(5)
    sigma, n_lambda, row = 2.0, 1.5, 1.0
    b = rng.normal(0, sigma, 4000)
    weights, _ = minimise(np.array([[row]]), np.array([1.0]), n_lambda, linear=b[:, None])
    w = np.linspace(-20, 20, 40001)
    s, curvature = slopes(w * row)
    tilt = -(n_lambda * w - s * row)
    density = np.exp(-(tilt**2) / (2 * sigma**2)) * (n_lambda + curvature) / sigma
    density /= math.sqrt(2 * math.pi)
    assert density.sum() * (w[1] - w[0]) == pytest.approx(1, abs=1e-6)
    empirical = np.searchsorted(np.sort(weights[:, 0]), w) / len(b)
    assert np.abs(empirical - np.cumsum(density) * (w[1] - w[0])).max() < 1.95 / math.sqrt(4000)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_add_remove_is_exact_at_the_threshold_and_too_much_below(epsilon):
    """At the smallest n lambda where the Jacobian costs nothing, removal's exact delta is DELTA.

    At half of this n lambda, delta is 1.26 to 1.37 times DELTA, and at a quarter 31 to 34 times.
    """
    sigma = gaussian_tilt.sigma_where_free(epsilon, DELTA, adjacency=ADD_REMOVE)
    least = gaussian_tilt.least_regularisation(epsilon, 1 / sigma, adjacency=ADD_REMOVE)
    remove, add = worst_1d(sigma, least, epsilon)
    assert remove / DELTA == pytest.approx(1, abs=2e-4) and add / DELTA < 1 + 2e-4
    for share, low, high in ((0.5, 1.24, 1.39), (0.25, 30, 35)):
        remove, add = worst_1d(sigma, share * least, epsilon)
        assert low < remove / DELTA < high
        assert add / DELTA < 1 + 2e-4, "adding is free for every Lambda"
        bound = gaussian_tilt.tilt_delta(epsilon, sigma, share * least, adjacency=ADD_REMOVE)
        assert remove <= bound


@pytest.mark.parametrize("row", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 4.0])
def test_no_density_in_one_dimension_exceeds_the_profile(row, share, epsilon):
    sigma = gaussian_tilt.sigma_where_free(1.0, DELTA, adjacency=ADD_REMOVE)
    n_lambda = share * gaussian_tilt.least_regularisation(1.0, 1 / sigma, adjacency=ADD_REMOVE)
    both = gaussian_tilt.profile(1 / sigma, 1 / n_lambda, ADD_REMOVE)
    for pull in (-300.0, -20.0, -3.0, 0.0, 3.0):
        remove, add = deltas_1d(pull, sigma, n_lambda, epsilon, row)
        assert remove <= both.remove(epsilon) * (1 + 1e-5) + 1e-13
        assert add <= both.add(epsilon) * (1 + 1e-5) + 1e-13


def delta_2d(angle, pull, sigma, n_lambda, epsilon, points=(1201, 161)):
    """delta of replacing v by v', unit vectors `angle` degrees apart.

    Other records' gradients sum to `pull` along the bisector. Density factors common to both sides cancel.
    w runs over a rotated grid around both means.
    """
    half = math.radians(angle / 2)
    v, other = (
        np.array([math.sin(half), math.cos(half)]),
        np.array([-math.sin(half), math.cos(half)]),
    )
    across = np.linspace(-10 * sigma - 1, 10 * sigma + 1, points[0]) / n_lambda
    along = np.linspace(-8 * sigma - 1, 8 * sigma + 1, points[1]) / n_lambda
    x, y = across[:, None], along[None, :] - pull / n_lambda

    def log_density(row):
        s, curvature = slopes(row[0] * x + row[1] * y)
        b = (-n_lambda * x + s * row[0], -pull - n_lambda * y + s * row[1])
        jacobian = 2 * math.log(n_lambda) + np.log1p(curvature / n_lambda)
        return jacobian - (b[0] ** 2 + b[1] ** 2) / (2 * sigma**2) - 2 * math.log(sigma)

    cell = (across[1] - across[0]) * (along[1] - along[0]) / (2 * math.pi)
    return hockey_stick(log_density(v), log_density(other), epsilon, cell)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_replace_one_is_nearly_reached_at_179_degrees_and_never_exceeded(epsilon):
    """With v and v' nearly 180 degrees apart, other records can make both slopes 1. At 180, they cannot."""
    sigma = gaussian_tilt.sigma_where_free(epsilon, DELTA)
    least = gaussian_tilt.least_regularisation(epsilon, 2 / sigma)
    reach = np.geomspace(100, 30_000, 4) * least
    near = max(delta_2d(179.0, pull, sigma, least, epsilon) for pull in reach)
    assert 0.99 * DELTA < near <= DELTA * (1 + 1e-4)
    flip = max(delta_2d(180.0, pull, sigma, least, epsilon) for pull in reach)
    assert flip < 1e-3 * DELTA
    for angle in (165.0, 120.0, 60.0):
        assert max(delta_2d(angle, pull, sigma, least, epsilon) for pull in reach) < near
    half = max(delta_2d(179.0, pull, sigma, least / 2, epsilon) for pull in reach / 2)
    assert half <= gaussian_tilt.tilt_delta(epsilon, sigma, least / 2)


@pytest.mark.parametrize("angle", [179.0, 150.0, 90.0, 20.0])
@pytest.mark.parametrize("share", [0.15, 1.0])
def test_no_density_in_two_dimensions_exceeds_the_replace_one_profile(angle, share):
    """The noise is so small that delta is positive at all angles."""
    sigma, epsilon = 2.5, 0.5
    n_lambda = share * gaussian_tilt.least_regularisation(epsilon, 2 / sigma)
    profile = gaussian_tilt.profile(1 / sigma, 1 / n_lambda)
    for e in (0.0, epsilon, 1.2):
        for pull in (0.0, 5.0, 100.0, 2000.0):
            actual = delta_2d(angle, pull, sigma, n_lambda, e, points=(601, 201))
            assert actual <= profile.delta(e) * (1 + 1e-4) + 1e-12


def test_split_of_two_normals_is_exact():
    """G(m)(a) + e^a G(m)(eps - a) = G(2m)(eps) at a = eps/2 - m^2/2, which has either sign.

    G(m)(eps) is the delta of m-GDP at eps.
    """
    for m in (0.05, 0.4, 1.3):
        for epsilon in (0.0, 0.01, 0.7, 3.0):
            e1 = epsilon / 2 - m * m / 2
            both = gaussian_profile(m, e1) + math.exp(e1) * gaussian_profile(m, epsilon - e1)
            assert both == pytest.approx(gaussian_profile(2 * m, epsilon), rel=1e-9, abs=1e-300)


def test_free_profiles_are_gaussian_from_the_threshold_on():
    epsilon, mu = 0.8, 0.6
    for adjacency, m in ((ADD_REMOVE, mu), (REPLACE_ONE, mu / 2)):
        least = gaussian_tilt.least_regularisation(epsilon, mu, adjacency=adjacency)
        profile = gaussian_tilt.profile(m, 1 / least, adjacency)
        for e in (0.8, 1.0, 3.0):
            assert profile.delta(e) == pytest.approx(Gaussian(mu).delta(e), rel=1e-9)
        below = profile.delta(0.7) / Gaussian(mu).delta(0.7)
        assert below > 1
        everywhere = gaussian_tilt.gaussian_dp_regularisation(mu, adjacency=adjacency)
        profile = gaussian_tilt.profile(m, 1 / everywhere, adjacency)
        for e in (0.0, 0.05, 0.09, 0.1, 0.3, 1.0):
            assert profile.delta(e) == pytest.approx(Gaussian(mu).delta(e), rel=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "log_cosh"])
@pytest.mark.parametrize("r", [0.2, 2.0, 20.0])
def test_the_largest_loss_is_found(loss, r):
    s = np.linspace(0, 1, 200_001)
    for m in (0.05, 0.7, 2.0):
        for u in (-3.0, -0.5, 0.0, 1.0, 6.0):
            g = s * (1 - s) if loss == "logistic" else 1 - s * s
            expected = (m * s * u + m * m * s * s / 2 + np.log1p(g * r)).max()
            actual = float(gaussian_tilt.largest_loss(np.array(u), m, r, loss))
            assert actual == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("loss", ["logistic", "log_cosh"])
def test_the_removal_integral_against_quadrature(loss):
    for m, r, epsilon in ((0.25, 2.0, 1.0), (0.5, 6.0, 3.0), (1.0, 0.5, 2.0), (0.9, 30.0, 4.0)):
        u = np.linspace(-12, 12, 50_001)
        gain = -np.expm1(np.minimum(epsilon - gaussian_tilt.largest_loss(u, m, r, loss), 0.0))
        gain[[0, -1]] /= 2  # trapezoids
        expected = (gain * np.exp(-u * u / 2)).sum() * (u[1] - u[0]) / math.sqrt(2 * math.pi)
        actual = gaussian_tilt.removal(np.array(epsilon), m, r, loss)
        assert actual == pytest.approx(expected, rel=1e-5)
        assert actual >= expected * (1 - 1e-7), "interpolated from above"


def log_cosh_deltas_1d(pull, y, sigma, n_lambda, epsilon, curvature=0.0, points=60_001):
    """delta of (removing, adding) a record x = 1 with target y and log-cosh loss of width 1.

    The tilt is b = pull - (n_lambda + curvature) w, plus tanh(y - w) if the record is there. The others'
    curvatures sum to `curvature` at any w: their residuals stay where the loss is quadratic.
    """
    steep = n_lambda + curvature
    w = np.linspace(pull - 14 * sigma - 1, pull + 14 * sigma + 1, points) / steep
    s = np.tanh(y - w)
    cell = (w[1] - w[0]) / (sigma * math.sqrt(2 * math.pi))
    without = -((pull - steep * w) ** 2) / (2 * sigma**2) + math.log(steep)
    record = -((pull - steep * w + s) ** 2) / (2 * sigma**2) + np.log(steep + 1 - s * s)
    return (
        hockey_stick(record, without, epsilon, cell),
        hockey_stick(without, record, epsilon, cell),
    )


def test_log_cosh_adding_has_two_tails_and_removing_one():
    """If n lambda is small, adding a record costs nearly twice the Gaussian delta, in two tails.

    The record's slope changes its sign, at w = 0, quickly relative to the noise. If the Jacobian costs
    nothing, removing has one tail, and costs at most the Gaussian delta.
    """
    epsilon, m = 1.0, 1.0
    n_lambda = 0.02
    add = log_cosh_deltas_1d(0.0, 0.0, 1 / m, n_lambda, epsilon)[1]
    assert 1.9 < add / gaussian_profile(m, epsilon) < 2
    for share in (1.0, 1.5):
        n_lambda = share * gaussian_tilt.least_regularisation(
            epsilon, m, adjacency=ADD_REMOVE, loss="log_cosh"
        )
        both = gaussian_tilt.profile(m, 1 / n_lambda, ADD_REMOVE, "log_cosh")
        worst = 0.0
        for pull in (0.0, 1.0, 30.0, 1000.0):
            for y in (0.0, 1.0, -3.0, pull / n_lambda, -1e4, 1e4):
                remove, add = log_cosh_deltas_1d(pull, y, 1 / m, n_lambda, epsilon)
                worst = max(worst, remove / gaussian_profile(m, epsilon))
                assert remove <= both.remove(epsilon) * (1 + 1e-5)
                assert add <= both.add(epsilon) * (1 + 1e-5)
        assert worst == pytest.approx(1, abs=1e-3), "one tail is reached"


def test_output_noise_is_free_at_twice_the_threshold_and_costs_at_it():
    epsilon, delta = 1.0, 1e-6
    mu = gaussian_mu(epsilon, delta)
    for adjacency, parts in ((ADD_REMOVE, 1), (REPLACE_ONE, 2)):
        m, out = mu * math.sqrt(0.85) / parts, mu * math.sqrt(0.15)
        least = gaussian_tilt.least_regularisation(epsilon, m * parts, adjacency=adjacency)
        for share, low, high in ((2, 1 - 1e-9, 1 + 1e-6), (1, 1.02, 1.09)):
            r = 1 / (share * least)
            actual = gaussian_tilt.composed_delta(epsilon, m, out, r, adjacency)
            assert low < actual / delta < high
        sigma, out = gaussian_tilt.with_output_noise(
            epsilon, delta, 2 * least, adjacency=adjacency, output=0.03
        )
        assert math.hypot(parts / sigma, out) == pytest.approx(mu, rel=1e-8)
        exact = gaussian_tilt.composed_delta(
            epsilon, 1 / sigma, out, 1 / (2 * least), adjacency, exact=True
        )
        assert exact <= delta * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["logistic", "log_cosh", "huber", "clipped_logistic"])
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_calibration_is_private_and_no_larger_than_needed(loss, adjacency):
    for epsilon, n_lambda in ((0.5, 2.0), (2.0, 0.4), (1.0, 50.0)):
        arguments = (n_lambda, 1.0, 0.5, adjacency, loss)
        sigma = gaussian_tilt.calibrate(epsilon, DELTA, *arguments)
        assert gaussian_tilt.tilt_delta(epsilon, sigma, *arguments) <= DELTA * (1 + 1e-9)
        assert gaussian_tilt.tilt_delta(epsilon, 0.999 * sigma, *arguments) > DELTA
        least = gaussian_sigma(epsilon, DELTA) * (0.5 if adjacency == ADD_REMOVE else 1.0)
        assert sigma >= least * (1 - 1e-12)


def test_the_rule_looks_at_public_numbers_and_bounds_the_shift():
    n, d, epsilon, delta = 36_177, 104, 1.0, 1e-6
    sigma = gaussian_tilt.sigma_where_free(epsilon, delta)
    lam = gaussian_tilt.rule_lambda(n, d, epsilon, delta)
    assert lam == pytest.approx(math.sqrt(d) * sigma / (n * 20))
    few = gaussian_tilt.rule_lambda(n, 2, epsilon, delta)
    assert n * few == pytest.approx(gaussian_tilt.least_regularisation(epsilon, 2 / sigma))
    assert gaussian_tilt.rule_lambda(n, 2, epsilon, delta, output=0.03) == pytest.approx(
        2 * few, rel=1e-3
    )


def test_refusals():
    with pytest.raises(ValueError, match="proven for"):
        gaussian_tilt.calibrate(1.0, DELTA, 1.0, loss="hinge")
    with pytest.raises(ValueError, match="adjacency"):
        gaussian_tilt.calibrate(1.0, DELTA, 1.0, adjacency="swap")
    with pytest.raises(ValueError, match="no Lambda"):
        gaussian_tilt.least_regularisation(1.0, 0.2, loss="huber")
    with pytest.raises(ValueError, match="larger lambda"):
        gaussian_tilt.calibrate(0.1, 1e-10, 0.01)
