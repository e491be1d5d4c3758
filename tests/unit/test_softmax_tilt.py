import math

import numpy as np
import pytest

from dp.proofs import gaussian_tilt, softmax_tilt
from dp.seeds import generator
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE
from dp_privacy.profiles import gaussian_profile

# Orthonormal coordinates of the plane orthogonal to (1, 1, 1). Softmax depends only on them.
# Along (1, 1, 1), the minimiser is -tilt/(n lambda) on every data set.
PLANE = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])


def log_density(w, records, pull, sigma, n_lambda):
    """Log density of the minimiser at w (..., 2). records: (x, class). pull: other records' gradient."""
    W = w @ PLANE
    gradient, H = pull + n_lambda * W, [n_lambda, 0.0, n_lambda]
    for x, label in records:
        p = np.exp(x * W - np.max(x * W, axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        gradient = gradient + x * (p - np.eye(3)[label])
        mean = p @ PLANE.T
        for k, (i, j) in enumerate(((0, 0), (0, 1), (1, 1))):
            H[k] = H[k] + x * x * (p @ (PLANE[i] * PLANE[j]) - mean[..., i] * mean[..., j])
    b = gradient @ PLANE.T
    square = (b * b).sum(axis=-1) / (2 * sigma**2)
    return np.log(H[0] * H[2] - H[1] ** 2) - square - math.log(2 * math.pi * sigma**2)


def exact(one, other, pull, sigma, n_lambda, epsilons, points=281):
    """delta (2, epsilons): of (one, other), then of (other, one), by a sum over the plane."""
    centre = -(PLANE @ pull) / n_lambda
    reach = (9 * sigma + 2 * (len(one) + len(other))) / n_lambda
    u = np.linspace(-reach, reach, points)
    if reach > 20:  # a finer grid near 0, where classes have similar probabilities
        bend = math.asinh(reach)
        u = np.sinh(np.linspace(-bend, bend, points))
    w = np.stack(np.meshgrid(u + centre[0], u + centre[1], indexing="ij"), axis=-1)
    area = np.outer(np.gradient(u), np.gradient(u))
    p, q = (np.exp(log_density(w, rows, pull, sigma, n_lambda)) * area for rows in (one, other))
    assert p.sum() == pytest.approx(1, abs=2e-3) and q.sum() == pytest.approx(1, abs=2e-3)
    p, q = p / p.sum(), q / q.sum()
    return np.array(
        [[np.maximum(a - math.exp(e) * b, 0).sum() for e in epsilons] for a, b in ((p, q), (q, p))]
    )


# Other records' gradient moves the minimiser away from the record's class 0, from 0 to 1, or towards 0.
PULLS = [np.zeros(3)] + [
    np.array(way) * size for way in ((2, -1, -1), (1, -1, 0), (-2, 1, 1)) for size in (0.5, 4, 40)
]
RECORD = [(1.0, 0)]


def worst(one, other, sigma, n_lambda, epsilons):
    return np.max([exact(one, other, g * sigma, sigma, n_lambda, epsilons) for g in PULLS], axis=0)


def bounds(epsilons, sigma, n_lambda, adjacency):
    m = math.sqrt(2) / sigma
    return [softmax_tilt.composed_delta(e, m, 0, 1 / n_lambda, 3, adjacency) for e in epsilons]


@pytest.mark.parametrize("sigma", [1.5, 5.0])
def test_exact_densities_of_one_record_more_are_within_a_factor_of_two_of_the_bound(sigma):
    """At n lambda = 2 sigma^2, delta is nearly the Gaussian one; the bound is classes - 1 = 2 times it."""
    m, n_lambda = math.sqrt(2) / sigma, softmax_tilt.free_regularisation(sigma)
    epsilons = [0.5 * m, 2 * m]
    actual, bound = (
        worst(RECORD, [], sigma, n_lambda, epsilons),
        bounds(epsilons, sigma, n_lambda, ADD_REMOVE),
    )
    np.testing.assert_allclose(bound, 2 * gaussian_profile(m, np.array(epsilons)))
    assert (actual <= np.multiply(bound, 1.002)).all()
    assert (actual >= np.multiply(bound, 0.45)).all()


@pytest.mark.parametrize("share", [0.3, 0.05])
def test_exact_densities_with_less_regularisation_are_within_the_bound_that_pays(share):
    sigma = 1.5
    m, n_lambda = math.sqrt(2) / sigma, share * sigma**2
    epsilons = [0.5 * m, 2 * m, 3.5 * m]
    removing, adding = worst(RECORD, [], sigma, n_lambda, epsilons)
    free = 2 * gaussian_profile(m, np.array(epsilons))
    assert (removing <= np.multiply(bounds(epsilons, sigma, n_lambda, ADD_REMOVE), 1.002)).all()
    assert (adding <= free * 1.002).all()
    if share == 0.05:  # Only removal pays for the Jacobian. Adding nearly attains the free bound.
        assert removing[2] > 5 * free[2] and adding[2] > 0.9 * free[2]


@pytest.mark.parametrize("other", [(-1.0, 0), (1.0, 1)])
@pytest.mark.parametrize("share", [2, 0.3])
def test_exact_densities_of_a_replaced_record_are_within_the_bound(other, share):
    sigma = 2.5
    n_lambda, epsilons = share * sigma**2, [1.0, 2.5]
    actual = worst(RECORD, [other], sigma, n_lambda, epsilons)
    bound = bounds(epsilons, sigma, n_lambda, REPLACE_ONE)
    assert (actual <= np.multiply(bound, 1.002)).all()


def log_jacobian(p, r):
    return np.linalg.slogdet(np.eye(len(p)) + r * (np.diag(p) - np.outer(p, p)))[1]


@pytest.mark.parametrize("K", [2, 3, 10])
def test_every_step_of_the_proof_on_random_probabilities(K):
    rng, y = generator(K), 0
    for _ in range(3000):
        m, r = rng.exponential(0.5) + 1e-3, 10 ** rng.uniform(-3, 1)
        p = rng.dirichlet(np.full(K, 10 ** rng.uniform(-1.5, 1)))
        B = rng.standard_normal(K) * 3
        a = p - np.eye(K)[y]
        s, square = 1 - p[y], a @ a
        assert np.trace(np.diag(p) - np.outer(p, p)) == pytest.approx(2 * s - square)
        assert s * s * K / (K - 1) <= square + 1e-12 and square <= 2 * s * s + 1e-12
        jacobian = log_jacobian(p, r)
        assert jacobian <= r * (2 * s - square) + 1e-9
        t = m * np.delete(B - B[y], y).max() / math.sqrt(2) + m * m / 2
        shift = m * m * square / 4 + m / math.sqrt(2) * (B @ a)
        assert shift <= max(t, 0) + 1e-9
        (everywhere, _), (extra, least) = softmax_tilt.jacobian(m, r, K)
        assert shift + jacobian <= max(t, 0) + everywhere + 1e-9
        assert shift + jacobian <= max(t + extra, least) + 1e-9
        if r <= m * m / 4:
            assert everywhere == extra == 0 and shift + jacobian <= max(t, 0) + 1e-9


def test_a_split_of_probability_attains_what_the_jacobian_costs():
    """For two equally likely classes and a large Gaussian privacy loss t, the total is nearly t + extra."""
    K, m, r, t = 3, 0.2, 0.02, 1.0
    p, U = np.array([0, 0.5, 0.5]), (t - m * m / 2) / m
    B = np.array([0, 1, 1]) * math.sqrt(2) * U
    loss = m * m * 1.5 / 4 + m / math.sqrt(2) * (B @ (p - np.eye(K)[0])) + log_jacobian(p, r)
    _, (extra, least) = softmax_tilt.jacobian(m, r, K)
    assert least < t and loss == pytest.approx(t + extra, rel=1e-4) and loss > t + 0.9 * extra


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_two_classes_have_the_threshold_of_logistic_loss(adjacency):
    """For (w_1 - w_2)/sqrt(2), the tilt is N(0, sigma^2), and rows are sqrt(2) times as long."""
    sigma, epsilon = 8.0, 0.5
    m = math.sqrt(2) / sigma
    mu = m if adjacency == ADD_REMOVE else 2 * m
    least = gaussian_tilt.least_regularisation(epsilon, mu, math.sqrt(2), adjacency)
    for factor, free in ((1.001, True), (0.999, False)):
        actual = softmax_tilt.composed_delta(epsilon, m, 0, 1 / (factor * least), 2, adjacency)
        assert (actual <= gaussian_profile(mu, epsilon) * (1 + 1e-9)) == free


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("n_lambda", [3.0, 40.0, 1e5])
def test_the_calibrated_tilt_is_private_and_nearly_the_gaussian_one(adjacency, epsilon, n_lambda):
    if n_lambda * epsilon < 2:
        with pytest.raises(ValueError, match="larger lambda"):
            softmax_tilt.with_output_noise(epsilon, 1e-6, n_lambda, 10, 1.0, adjacency)
        return
    sigma, mu = softmax_tilt.with_output_noise(epsilon, 1e-6, n_lambda, 10, 1.0, adjacency)
    m = math.sqrt(2) / sigma
    assert softmax_tilt.composed_delta(epsilon, m, mu, 1 / n_lambda, 10, adjacency) <= 1e-6
    free = softmax_tilt.sigma_where_free(epsilon, 1e-6, 10, 1.0, adjacency)
    extra = softmax_tilt.jacobian(m, 1 / n_lambda, 10)[1][0]
    assert 1 <= sigma / free <= 1.01 / (1 - extra / epsilon)
    twice = softmax_tilt.with_output_noise(epsilon, 1e-6, 4 * n_lambda, 10, 2.0, adjacency)[0]
    assert twice == pytest.approx(2 * sigma)


def test_the_composed_delta_is_at_least_what_quadrature_gives():
    from dp_privacy.profiles import Curve, Gaussian, compose, symmetric

    m, r, mu = 0.3, 0.02, 0.1
    for adjacency in (ADD_REMOVE, REPLACE_ONE):

        def alone(epsilon, adjacency=adjacency):
            at = [softmax_tilt.composed_delta(e, m, 0, r, 4, adjacency) for e in np.ravel(epsilon)]
            return np.reshape(at, np.shape(epsilon))

        joint = compose(Curve(symmetric(alone)), Gaussian(mu))
        bound = softmax_tilt.composed_delta(2.0, m, mu, r, 4, adjacency)
        assert bound == pytest.approx(float(joint.delta(2.0)), rel=0.01)
