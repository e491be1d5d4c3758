import math

import numpy as np
import pytest
from scipy.stats import kstest, norm

import reference
from dp.mechanisms import MECHANISMS
from dp.proofs import quadratics
from dp.seeds import generator
from dp.solvers.newton import minimise
from dp_privacy.sensitivities import gram_and_moment


def rows(n=300, d=4, seed=3):
    rng = generator(seed, "rows")
    X = rng.standard_normal((n, d))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(X @ np.arange(1, d + 1) + rng.standard_normal(n) > 0, 1, -1)
    return X, y


@pytest.mark.parametrize("radius", [0.3, math.sqrt(0.5), 1.0, 4.0])
def test_the_joint_sensitivity_is_reached(radius):
    k = min(0.5, radius**2)
    cosine = k / radius**2
    x = radius * np.array([1.0, 0.0])
    x2 = radius * np.array([cosine, math.sqrt(1 - cosine**2)])
    M, L = np.outer(x, x) - np.outer(x2, x2), x + x2
    size = math.sqrt((M**2).sum() + (L**2).sum())
    assert size == pytest.approx(gram_and_moment(radius))


def test_isotropic_noise_projects_alike_in_every_direction():
    d, rng = 3, generator(2, "isotropic")
    E, _ = quadratics.isotropic(rng.standard_normal((20000, quadratics.coefficients(d))), d)
    np.testing.assert_array_equal(E, E.transpose(0, 2, 1))
    for S in (np.eye(d), np.ones((d, d)), np.diag([1.0, 0, 0]), np.fliplr(np.eye(d))):
        projection = np.einsum("rij,ij->r", E, S / np.linalg.norm(S))
        assert kstest(projection, norm.cdf).pvalue > 0.001


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_ssp_is_calibrated_by_an_independent_accountant(epsilon):
    from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

    X, y = rows()
    release = MECHANISMS["sufficient_statistics"].release(
        X, y, epsilon=epsilon, delta=1e-5, rng=generator(1)
    )
    multiplier = release.info["scale"] / (1.5 * math.sqrt(2))
    assert get_epsilon_gaussian(multiplier, 1e-5) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("calibration", ["analytic", "published"])
@pytest.mark.parametrize("epsilon", [0.5, 5.0])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_adassp_states_the_composition(calibration, epsilon, adjacency):
    from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

    delta, R = 1e-5, 2.0
    mechanism = MECHANISMS["adassp"]
    settings = {"epsilon": epsilon, "delta": delta, "bound": R, "calibration": calibration}
    settings["adjacency"] = adjacency
    eigenvalue, matrix, vector = mechanism._deviations(mechanism.parameters(300, 4, **settings))
    if calibration == "published":
        unit = math.sqrt(math.log(6 / delta)) / (epsilon / 3)
        assert (eigenvalue, matrix, vector) == pytest.approx((unit * R**2, unit * R**2, unit * R))
    # The parts' mu^2 add up. For matrix and vector, take the largest sum over many neighbouring pairs.
    worst = 0.0
    for k in np.linspace(-1, 1, 2001):
        M2, L2 = 2 * R**4 * (1 - k**2), 2 * R**2 * (1 + k)
        if adjacency == "add-remove":
            M2, L2 = R**4, R**2  # of x x' and x y, for a record with |x| = R and |y| = 1
        worst = max(worst, M2 / matrix**2 + L2 / vector**2)
    mu = math.sqrt(R**4 / eigenvalue**2 + worst)
    guarantee = mechanism.guarantee(300, 4, **settings)
    joint = get_epsilon_gaussian(1 / mu, delta)
    assert guarantee.epsilon == pytest.approx(joint, rel=1e-4)
    assert guarantee.claimed_epsilon == epsilon


@pytest.mark.parametrize(
    ("claimed", "proven"), reference.values("guarantees", "epsilon", function="adassp")
)
def test_adassp_as_printed_under_replace_one(claimed, proven):
    """The printed constants are for add-remove, so claims of an epsilon of about 7 or more are false."""
    guarantee = MECHANISMS["adassp"].guarantee(
        300, 4, epsilon=claimed, delta=1e-5, calibration="published"
    )
    assert guarantee.epsilon == pytest.approx(proven, rel=2e-3)
    assert f"{guarantee.epsilon:.6g}" in guarantee.reason


@pytest.mark.parametrize("claimed", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-5])
def test_adassp_as_printed_keeps_its_claim_for_a_removed_record(claimed, delta):
    guarantee = MECHANISMS["adassp"].guarantee(
        300, 4, epsilon=claimed, delta=delta, calibration="published", adjacency="add-remove"
    )
    assert guarantee.epsilon < claimed and guarantee.adjacency == "add-remove"


@pytest.mark.parametrize("name", ["sufficient_statistics", "adassp"])
def test_without_noise_they_are_least_squares(name):
    X, y = rows()
    release = MECHANISMS[name].release(X, y, epsilon=1e9, delta=1e-5, rng=generator(1))
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(release.weights[0], exact, atol=1e-3)


def test_adassp_tames_what_noise_does_to_small_eigenvalues():
    X, y = rows()

    def norm(name, **options):
        weights = MECHANISMS[name].release(
            *(X, y), epsilon=1.0, delta=1e-5, restarts=100, rng=generator(1), **options
        )
        return np.median(np.linalg.norm(weights.weights, axis=1))

    assert norm("adassp") < norm("sufficient_statistics", repair="trim")


def aggregate(X, y, **options):
    return MECHANISMS["subsample_aggregate"].release(
        X, y, **{"epsilon": 1.0, "lam": 0.1, "rng": generator(1)} | options
    )


def test_the_mean_of_clipped_fits_moves_by_at_most_its_sensitivity():
    X, y = rows(60)
    rng = generator(4, "replace")
    for parts, radius in ((1, 0.1), (6, 0.5), (60, 2.0)):
        options = {"parts": parts, "radius": radius, "epsilon": 1e15}
        centre = aggregate(X, y, **options).weights[0]
        for _ in range(10):
            X2, y2 = X.copy(), y.copy()
            row = rng.integers(60)
            X2[row], y2[row] = -X2[row], -y2[row] * rng.choice((-1, 1))
            moved = np.linalg.norm(aggregate(X2, y2, **options).weights[0] - centre)
            assert moved <= 2 * radius / parts * (1 + 1e-9)


def test_the_mean_is_of_fits_on_blocks():
    X, y = rows(30)
    fits = [minimise(X[k : k + 10], y[k : k + 10], 0.1)[0][0] for k in (0, 10, 20)]
    clipped = [w * min(1, 1.5 / np.linalg.norm(w)) for w in fits]
    actual = aggregate(X, y, parts=3, radius=1.5, epsilon=1e15)
    np.testing.assert_allclose(actual.weights[0], np.mean(clipped, axis=0), atol=1e-9)
    assert actual.info["clipped"] == np.mean([np.linalg.norm(w) > 1.5 for w in fits])


def test_aggregate_noise():
    from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

    X, y = rows(100)
    pure = aggregate(X, y, epsilon=0.5, radius=2.0)
    assert pure.info["scale"] == pytest.approx(2 * 2.0 / 10 / 0.5)
    approximate = aggregate(X, y, epsilon=0.5, delta=1e-6, radius=2.0, parts=20)
    assert get_epsilon_gaussian(approximate.info["scale"] / 0.2, 1e-6) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"parts": 0}, "parts"),
        ({"parts": 2.5}, "parts"),
        ({"parts": 101}, "parts"),
        ({"radius": 0.0}, "radius"),
        ({"radius": math.nan}, "radius"),
        ({"delta": 1.0}, "delta"),
        ({"loss": "hinge"}, "loss"),
    ],
)
def test_aggregate_bad_options(options, what):
    with pytest.raises(ValueError, match=what):
        MECHANISMS["subsample_aggregate"].guarantee(100, 3, epsilon=1.0, lam=0.1, **options)


@pytest.mark.parametrize("name", ["sufficient_statistics", "adassp"])
@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_gaussian_mechanisms_need_a_delta(name, delta):
    with pytest.raises(ValueError, match="delta"):
        MECHANISMS[name].guarantee(100, 3, epsilon=1.0, delta=delta)
