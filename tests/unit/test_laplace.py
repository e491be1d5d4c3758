import math

import numpy as np
import pytest
from scipy import stats

from dp.mechanisms import MECHANISMS
from dp.solvers.fits import INTERCEPTS, l2, sum_intercept, sum_intercept_path

NAMES = ("laplace_coordinates", "laplace_coordinates_sum", "laplace_l1")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    X[:, 2] = 0.0
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] + 0.3 * rng.standard_normal(80) + 0.2 > 0, 1, -1)


@pytest.mark.parametrize(("intercept", "solver"), [("regularised", "liblinear"), ("free", "lbfgs")])
@pytest.mark.parametrize("lam", [0.01, 0.25, 8.0])
def test_sum_intercept_is_scikit_learns_objective(data, lam, intercept, solver):
    from sklearn.linear_model import LogisticRegression

    weights, info = sum_intercept(*data, lam, intercept=intercept)
    model = LogisticRegression(C=1 / lam, tol=1e-12, max_iter=5000, solver=solver).fit(*data)
    np.testing.assert_allclose(weights[0, :-1], model.coef_[0], atol=2e-5)
    assert weights[0, -1] == pytest.approx(model.intercept_[0], abs=2e-5)
    assert info["status"][0] == "ok" and info["gradient_norm"][0] <= 1e-9
    X, y = data
    slope = -y / (1 + np.exp(y * (X @ weights[0, :-1] + weights[0, -1])))
    of_intercept = slope.mean() + lam / 80 * weights[0, -1] * (intercept == "regularised")
    gradient = np.append(X.T @ slope / 80 + lam / 80 * weights[0, :-1], of_intercept)
    assert np.linalg.norm(gradient) <= 1e-9
    assert weights[0, 2] == 0


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_a_path_of_lambdas_ends_at_the_minimisers_of_each_alone(data, loss, intercept):
    """Fits are certified to within tolerance / ridge, even if single precision cannot resolve the ridge."""
    lams = [4.0, 0.5, 0.25, 1e-3, 1e-5, 0.1]
    path = list(sum_intercept_path(*data, lams, loss=loss, intercept=intercept))
    for lam, (weights, info) in zip(lams, path, strict=True):
        alone, _ = sum_intercept(*data, lam, loss=loss, intercept=intercept)
        assert info["status"][0] == "ok"
        np.testing.assert_allclose(weights, alone, atol=2e-9 * 80 / lam)
    assert sum(info["iterations"][0] for _, info in path) < sum(
        sum_intercept(*data, lam, loss=loss, intercept=intercept)[1]["iterations"][0]
        for lam in lams
    )


def test_a_search_tries_the_same_fits_as_single_releases(data):
    mechanism, lams = MECHANISMS["nonprivate_sum"], (0.5, 0.01)
    candidates = [{"lam": lam} for lam in lams]
    ((_, release),) = mechanism.release_many([(data,)], rngs=[None], candidates=candidates)
    for k, lam in enumerate(lams):
        alone = mechanism.release(*data, lam=lam)
        np.testing.assert_allclose(release.weights[k], alone.weights[0], atol=2e-9 * 80 / lam)
        for name in ("intercept", "weights_mean", "weights_variance"):
            assert release.info[name][k] == pytest.approx(alone.info[name][0], rel=1e-5)


def test_sum_intercept_says_where_it_cannot_converge(data):
    """At zero weights, no row is on the Huber hinge's curved part, so the Hessian ignores the intercept."""
    _, info = sum_intercept(*data, 0.1, loss="huber", intercept="free")
    assert info["status"][0] == "not_converged" and info["gradient_norm"][0] > 1e-9


def test_a_free_intercept_needs_both_classes(data):
    with pytest.raises(ValueError, match="all labels are equal"):
        sum_intercept(data[0], np.ones(80), 0.1, intercept="free")
    assert sum_intercept(data[0], np.ones(80), 0.1)[1]["status"][0] == "ok"


@pytest.mark.parametrize("name", NAMES)
def test_every_coordinate_has_laplace_noise_of_the_stated_scale(data, name):
    mechanism = MECHANISMS[name]
    n, d, lam, epsilon = 80, 6, 0.1, 0.7
    release = mechanism.release(
        *data, epsilon=epsilon, lam=lam, restarts=3000, rng=np.random.default_rng(1)
    )
    weights = (sum_intercept if name == "laplace_coordinates_sum" else l2)(*data, lam)[0][0]
    noise = release.weights - weights[:d]
    scale = 2 / (n * lam * epsilon) * (math.sqrt(d) if name == "laplace_l1" else 1)
    assert stats.kstest(noise.ravel(), stats.laplace(scale=scale).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(np.abs(noise.T))[np.triu_indices(d, 1)]).max() < 0.1
    if name == "laplace_coordinates_sum":
        assert (release.info["intercept"] == weights[d]).all()
    else:
        assert "intercept" not in release.info


def test_a_given_fit_is_used_and_an_uncertified_one_releases_nothing(data):
    for name in NAMES:
        mechanism = MECHANISMS[name]
        fit = (sum_intercept if mechanism.fit == "sum_intercept" else l2)(*data, 0.1)
        arguments = {"epsilon": 1.0, "lam": 0.1, "restarts": 2}
        with_fit = mechanism.release(*data, rng=np.random.default_rng(2), fit=fit, **arguments)
        own = mechanism.release(*data, rng=np.random.default_rng(2), **arguments)
        np.testing.assert_array_equal(with_fit.weights, own.weights)
        bad = (fit[0], {**fit[1], "gradient_norm": np.array([1e-3])})
        refused = mechanism.release(*data, rng=np.random.default_rng(2), fit=bad, **arguments)
        assert (refused.weights == 0).all() and (refused.status == "not_converged").all()


def test_guarantees():
    arguments = {"epsilon": 0.5, "lam": 0.1}
    written = MECHANISMS["laplace_coordinates"].guarantee(1000, 784, **arguments)
    assert written.claimed_epsilon == 0.5
    assert written.epsilon == pytest.approx(28 * 0.5, rel=1e-5)
    assert math.isinf(
        MECHANISMS["laplace_coordinates_sum"].guarantee(1000, 784, **arguments).epsilon
    )
    assert MECHANISMS["laplace_l1"].guarantee(1000, 784, **arguments).epsilon == 0.5


@pytest.mark.parametrize("d", [16, 100])
def test_the_published_scale_is_broken_and_the_repair_holds(d):
    """For a record along (1, ..., 1), the exact privacy loss is the minimisers' L1 distance over the scale.

    Noise whose signs are those of the difference attains this loss.
    """
    epsilon, lam = 0.3, 5.0
    X = np.full((1, d), 1 / math.sqrt(d)) * (1 - 1e-15)
    w, v = (l2(X, np.array([label]), lam)[0][0] for label in (1, -1))
    distance = np.abs(w - v).sum()
    for name, broken in (("laplace_coordinates", True), ("laplace_l1", False)):
        mechanism = MECHANISMS[name]
        release = mechanism.release(
            X, np.array([1]), epsilon=epsilon, lam=lam, rng=np.random.default_rng(0)
        )
        loss = distance / release.info["scale"]
        assert (loss > epsilon) == broken
        assert loss <= mechanism.guarantee(1, d, epsilon=epsilon, lam=lam).epsilon
