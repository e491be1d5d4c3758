import math

import numpy as np
import pytest
from scipy.stats import kstest, laplace, norm

from dp.mechanisms import MECHANISMS
from dp.mechanisms.functional import (
    POLYNOMIALS,
    bounds,
    coordinate_sensitivity,
    gaussian_sensitivity,
    l2_sensitivity,
    published_sensitivity,
)
from dp.proofs import quadratics
from dp.seeds import generator
from dp_privacy.accounting import gaussian_epsilon


def coefficients(x, y, loss):
    """One record's polynomial coefficients, by monomial."""
    d = len(x)
    if loss == "squared":
        linear = [-2 * y * x[j] for j in range(d)]
        quadratic = [(1 if j == k else 2) * x[j] * x[k] for j in range(d) for k in range(j, d)]
    else:
        linear = [-y * x[j] / 2 for j in range(d)]
        quadratic = [(1 if j == k else 2) * x[j] * x[k] / 8 for j in range(d) for k in range(j, d)]
    return np.array(linear + quadratic)


def difference(x, y, x2, y2, loss):
    return coefficients(x, y, loss) - coefficients(x2, y2, loss)


def pairs(d, rng, draw, count=400):
    for _ in range(count):
        yield draw(d, rng), rng.choice((-1, 1)), draw(d, rng), rng.choice((-1, 1))


def vertex(d, rng):
    return rng.choice((-1.0, 0.0, 1.0), d, p=(0.45, 0.1, 0.45))


def on_sphere(d, rng):
    x = rng.standard_normal(d)
    return x / np.linalg.norm(x)


@pytest.mark.parametrize("loss", POLYNOMIALS)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_no_neighbours_differ_by_more_than_the_sensitivities(d, loss):
    rng = generator(1, "pairs", d, loss)
    for pair in pairs(d, rng, vertex):
        change = difference(*pair, loss)
        assert np.abs(change).sum() <= coordinate_sensitivity(d, 1.0, loss) * (1 + 1e-12)
        assert np.linalg.norm(change) <= gaussian_sensitivity(math.sqrt(d), loss) * (1 + 1e-12)
    for pair in pairs(d, rng, on_sphere):
        change = difference(*pair, loss)
        assert np.abs(change).sum() <= l2_sensitivity(d, 1.0, loss) * (1 + 1e-12)
        assert np.linalg.norm(change) <= gaussian_sensitivity(1.0, loss) * (1 + 1e-12)
    assert coordinate_sensitivity(d, 1.0, loss) <= published_sensitivity(d, 1.0, loss)
    assert l2_sensitivity(d, 1.0, "squared") <= 2 * (1 + math.sqrt(d)) ** 2
    assert l2_sensitivity(d, 1.0, "logistic") <= 2 * (math.sqrt(d) / 2 + d / 8) + 1e-12


@pytest.mark.parametrize("loss", POLYNOMIALS)
@pytest.mark.parametrize("d", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("size", [0.5, 1.0, 3.0])
def test_the_coordinate_sensitivity_is_reached(d, loss, size):
    alpha, beta, _ = POLYNOMIALS[loss]
    t = min(beta / (2 * alpha) / (d * size), 1.0)
    change = difference(np.full(d, t * size), -1, np.full(d, size), 1, loss)
    assert np.abs(change).sum() == pytest.approx(coordinate_sensitivity(d, size, loss))


@pytest.mark.parametrize("loss", POLYNOMIALS)
@pytest.mark.parametrize("radius", [0.5, 1.0, 3.0, 6.0])
def test_the_gaussian_sensitivity_is_reached(loss, radius):
    """The records' squared coordinates are equal, so no diagonal term changes."""
    alpha, beta, _ = POLYNOMIALS[loss]
    k = min((beta / (2 * alpha)) ** 2, radius**2)
    # x and x2 have norm `radius`, and x.x2 = k up to the rounding of `same`.
    d = 2048
    same = round(d * (1 + k / radius**2) / 2)
    x = np.full(d, radius / math.sqrt(d))
    x2 = np.where(np.arange(d) < same, x, -x)
    M = np.outer(x, x) - np.outer(x2, x2)
    L = x + x2  # labels 1 and -1
    total = alpha**2 * (2 * (M * M).sum() - (np.diag(M) ** 2).sum()) + beta**2 * L @ L
    assert math.sqrt(total) == pytest.approx(gaussian_sensitivity(radius, loss), rel=2e-3)
    assert math.sqrt(total) <= gaussian_sensitivity(radius, loss) * (1 + 1e-9)


@pytest.mark.parametrize("d", [2, 4, 8])
def test_the_l2_sensitivity_is_nearly_reached(d):
    from scipy.optimize import minimize

    def negative(z):
        x, x2 = z[:d] / np.linalg.norm(z[:d]), z[d:] / np.linalg.norm(z[d:])
        return -np.abs(difference(x, 1, x2, -1, "squared")).sum()

    rng = generator(2, "search", d)
    options = {"maxiter": 2000}
    best = max(
        -minimize(negative, rng.standard_normal(2 * d), method="Powell", options=options).fun
        for _ in range(4)
    )
    assert 0.9 * l2_sensitivity(d) <= best <= l2_sensitivity(d) * (1 + 1e-9)


def test_bounds_follow_from_each_other():
    assert bounds(9, 3.0, 1.0) == (3.0, 1.0)
    assert bounds(9, 100.0, 1.0) == (3.0, 1.0)
    assert bounds(9, 1.0, None) == (1.0, 1.0)
    assert bounds(9, 0.5, 1.0) == (0.5, 0.5)


def rows(n=200, d=4, seed=3):
    rng = generator(seed, "rows")
    X = rng.uniform(-1, 1, (n, d))
    y = np.where(X @ np.arange(1, d + 1) + rng.standard_normal(n) > 0, 1, -1)
    return X, y


KNOWN = {"bound": 2.0, "coordinate_bound": 1.0}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("functional_laplace", {}),
        ("functional_laplace", {"sensitivity": "coordinate"}),
        ("functional_gaussian", {"delta": 1e-5}),
        ("functional_gaussian", {"delta": 1e-5, "calibration": "classical"}),
    ],
)
def test_without_noise_it_is_least_squares(name, options):
    X, y = rows()
    release = MECHANISMS[name].release(X, y, epsilon=1e13, rng=generator(1), **KNOWN, **options)
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(release.weights[0], exact, rtol=1e-6)


def test_lambda_stands_beside_the_mean_loss():
    from dp.solvers.newton import minimise

    X, y = rows()
    release = MECHANISMS["functional_laplace"].release(
        X, y, epsilon=1e13, lam=0.3, rng=generator(1), **KNOWN
    )
    expected, _ = minimise(X, y, 0.3, loss="squared")
    np.testing.assert_allclose(release.weights[0], expected[0], rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"delta": 1e-5}])
def test_functional_logistic_tends_to_the_truncated_fit(options):
    from scipy.optimize import minimize

    X, y = rows()
    z = y[:, None] * X

    def truncated(w):
        return np.mean((z @ w) ** 2 / 8 - z @ w / 2) + 0.05 * w @ w

    expected = minimize(truncated, np.zeros(4), tol=1e-12).x
    limit = MECHANISMS["truncated_logistic"].release(X, y, lam=0.1, bound=2.0).weights[0]
    private = MECHANISMS["functional_logistic"].release(
        X, y, epsilon=1e13, lam=0.1, rng=generator(1), **KNOWN, **options
    )
    np.testing.assert_allclose(limit, expected, atol=1e-5)
    np.testing.assert_allclose(private.weights[0], limit, rtol=1e-6)


def test_the_noise_is_symmetric_and_has_its_law():
    d, scale = 3, 2.5
    Q, c = quadratics.unpack(np.arange(18.0).reshape(2, 9), d)
    w = np.array([0.3, -1.2, 2.0])
    monomials = [*w, *(w[j] * w[k] for j in range(d) for k in range(j, d))]
    np.testing.assert_allclose(
        np.einsum("rjk,j,k->r", Q, w, w) + c @ w, np.arange(18.0).reshape(2, 9) @ monomials
    )
    np.testing.assert_array_equal(Q, Q.transpose(0, 2, 1))

    # On rows of zeros, the released minimiser depends only on the noise.
    X, y = np.zeros((5, 1)), np.array([1, 1, -1, 1, -1])
    for name, options, law in (
        ("functional_laplace", {}, laplace(scale=published_sensitivity(1) / scale)),
        ("functional_gaussian", {"delta": 1e-5}, None),
    ):
        mechanism = MECHANISMS[name]
        release = mechanism.release(
            X, y, epsilon=scale, restarts=4000, rng=generator(4), repair="none", **options
        )
        law = law or norm(scale=release.info["scale"])
        # w = -e/(2E) for noise e on the linear and E on the quadratic coefficient. Both are symmetric
        # around 0, so a minimum exists (E > 0) in half of the draws.
        assert abs(release.info["unbounded"].mean() - 0.5) < 0.03
        noise = mechanism.release(
            X, y, epsilon=scale, restarts=4000, rng=generator(4), lam=1e9, **options
        )
        # A large n lam, doubled for squared loss, swamps E: w = -e/(2 n lam).
        assert kstest(-noise.weights[:, 0] * 2 * 5e9, law.cdf).pvalue > 0.01


def test_repairs():
    A = np.array([np.diag([4.0, -1.0]), np.diag([4.0, 2.0])])
    b = np.array([[4.0, 3.0], [4.0, 2.0]])
    none, unbounded = quadratics.solve(A, b, repair="none")
    np.testing.assert_array_equal(unbounded, [True, False])
    assert np.isnan(none[0]).all()
    np.testing.assert_allclose(none[1], [1, 1])
    trim, _ = quadratics.solve(A, b, repair="trim")
    np.testing.assert_allclose(trim, [[1, 0], [1, 1]])
    ridge, _ = quadratics.solve(A, b, 0.5, repair="ridge")
    r = math.sqrt(2) * 0.5
    np.testing.assert_allclose(ridge[0], [4 / (4 + r), 3 / 0.5])  # -1 + r is raised to 0.5
    np.testing.assert_allclose(ridge[1], [4 / (4 + r), 2 / (2 + r)])


def test_an_unbounded_quadratic_left_alone_is_a_status():
    X, y = rows(n=20)
    release = MECHANISMS["functional_laplace"].release(
        X, y, epsilon=0.1, restarts=50, rng=generator(5), repair="none", **KNOWN
    )
    assert (release.status == "unbounded").sum() == release.info["unbounded"].sum() > 30
    assert (release.weights[release.status == "unbounded"] == 0).all()


def test_adam_is_adam():
    A, b = np.array([[[3.0]]]), np.array([[2.0]])
    w = m = v = 0.0
    for t in range(1, 6):
        g = 3 * w - 2
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w -= 0.01 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
    assert quadratics.adam(A, b, 5, 0.01)[0, 0] == pytest.approx(w, rel=1e-12)
    assert quadratics.adam(A, b, 5000, 0.01)[0, 0] == pytest.approx(2 / 3, abs=1e-6)


def test_guarantees_state_what_is_proven():
    laplace_ = MECHANISMS["functional_laplace"]
    published = laplace_.guarantee(100, 30, epsilon=1.0, bound=math.sqrt(30), coordinate_bound=1.0)
    assert (published.claimed_epsilon, published.epsilon) == (1.0, 1.0)
    assert "0.5-DP" in published.reason  # the published sensitivity is twice the tight one
    exact = laplace_.guarantee(
        *(100, 30), epsilon=1.0, bound=9.0, coordinate_bound=1.0, sensitivity="coordinate"
    )
    assert exact.epsilon == pytest.approx(1.0)
    classical = MECHANISMS["functional_gaussian"].guarantee(
        100, 30, epsilon=10.0, delta=1e-5, calibration="classical", coordinate_bound=1.0
    )
    assert classical.epsilon == pytest.approx(10.394, abs=1e-3)


@pytest.mark.parametrize("batches", ["all", "shuffled"])
def test_noise_on_the_mean_is_that_of_an_epsilon_as_many_times_smaller(batches):
    """Noise of scale s on the mean of n polynomials is noise of scale n s on their sum."""
    X, y = rows()
    arguments = {"solver": "adam", "batches": batches, "batch_size": len(y), "restarts": 3, **KNOWN}
    release = MECHANISMS["functional_laplace"].release
    on_mean = release(X, y, epsilon=1.0, rng=generator(6), objective="mean", **arguments)
    on_sum = release(X, y, epsilon=1.0 / len(y), rng=generator(6), **arguments)
    np.testing.assert_allclose(on_mean.weights, on_sum.weights, rtol=1e-9)


def test_gaussian_noise_for_a_sensitivity_of_one_is_smaller_and_says_what_it_gives():
    """Sigma is sqrt(2 ln(1.25/delta))/epsilon, but the coefficients' true sensitivity is 2 (d + 1)."""
    d, epsilon, delta = 3, 0.5, 1e-5
    arguments = {"bound": math.sqrt(d), "coordinate_bound": 1.0, "calibration": "classical"}
    guarantee = MECHANISMS["functional_gaussian"].guarantee(
        100, d, epsilon=epsilon, delta=delta, sensitivity="one", **arguments
    )
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert guarantee.epsilon == pytest.approx(gaussian_epsilon(sigma, delta, 2.0 * (d + 1)))
    assert guarantee.epsilon > 7 * epsilon and guarantee.claimed_epsilon == epsilon


@pytest.mark.parametrize("name", ["functional_laplace", "functional_gaussian"])
def test_data_beyond_a_stated_bound_are_refused(name):
    X, y = rows()
    delta = {} if name == "functional_laplace" else {"delta": 1e-5}
    with pytest.raises(ValueError, match="public bound"):
        MECHANISMS[name].release(
            *(X, y), epsilon=1, rng=generator(1), bound=2.0, coordinate_bound=0.9, **delta
        )
    with pytest.raises(ValueError, match="public bound"):
        MECHANISMS[name].release(
            *(X, y), epsilon=1, rng=generator(1), bound=1.0, coordinate_bound=1.0, **delta
        )
