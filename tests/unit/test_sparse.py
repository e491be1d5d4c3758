import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import gamma, kstest

from dp.evaluation import regularised_risk
from dp.mechanisms import MECHANISMS
from dp.mechanisms.published.lasso_output_perturbation import lasso_sensitivity
from dp.seeds import generator
from dp.solvers.elastic_net import _minimise_quadratic, minimise_elastic_net, subgradient_norm
from dp.solvers.fits import FITS, fit_each, penalties

LASSO, REPAIR = "lasso_output_perturbation", "elastic_net_output_perturbation"


def rows(n=80, d=4, *axes):
    rng = generator(71, n, d, *axes)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] + 0.4 * rng.standard_normal(n) > 0, 1, -1)


def objective(w, X, y, l1, l2):
    return np.mean(np.log1p(np.exp(-y * (X @ w)))) + l1 * np.sum(np.abs(w)) + l2 / 2 * np.sum(w * w)


def reference(X, y, l1, l2):
    """The minimiser, by a smooth problem with bounds: w = p - q with p, q >= 0."""
    d = X.shape[1]

    def value(pq):
        w = pq[:d] - pq[d:]
        gradient = -(X * y[:, None]).T @ (1 / (1 + np.exp(y * (X @ w)))) / len(y) + l2 * w
        smooth = np.mean(np.log1p(np.exp(-y * (X @ w)))) + l2 / 2 * w @ w
        return smooth + l1 * pq.sum(), np.concatenate([gradient + l1, l1 - gradient])

    solution = minimize(
        value, np.zeros(2 * d), jac=True, bounds=[(0, None)] * (2 * d), method="L-BFGS-B",
        options={"ftol": 0, "gtol": 1e-10, "maxiter": 5000},
    )  # fmt: skip
    return solution.x[:d] - solution.x[d:]


@pytest.mark.parametrize("name", FITS)
def test_fits_one_after_the_other_are_those_of_each_alone(name):
    trains = [rows(n, 50) for n in (90, 2500, 3000)]
    results = list(fit_each(name, trains, 0.5, tolerance=1e-10))
    assert len(results) == 3
    for (X, y), (weights, info) in zip(trains, results, strict=True):
        alone, _ = FITS[name](X, y, 0.5, tolerance=1e-10)
        assert info["status"].tolist() == ["ok"]
        np.testing.assert_allclose(weights, alone, atol=2e-6)


def test_columns_far_from_zero_are_fitted_in_a_few_steps():
    """First-order steps and undamped Newton steps both fail on such rows."""
    rng = generator(72)
    X = rng.normal([0.0, 5.0, 150.0, -2000.0], size=(60, 4))
    y = np.where(X @ [1.0, 1.0, 1.0, 0.1] + 45 > 0, 1, -1)
    assert 10 < (y > 0).sum() < 50
    for l1 in (1e-2, 1e-5, np.array([1e-4, 0.0, 1e-4, 1e-2])):
        weights, info = minimise_elastic_net(X, y, l1, 0.0)
        assert info["status"][0] == "ok" and info["iterations"][0] < 60
        w = weights[0]
        gradient = -(X * y[:, None]).T @ (1 / (1 + np.exp(y * (X @ w)))) / len(y)
        rest = np.where(w != 0, gradient + l1 * np.sign(w), np.maximum(np.abs(gradient) - l1, 0))
        assert np.linalg.norm(rest) <= 2e-9


def test_quadratics_with_kinks_against_all_signs():
    """One of the 27 combinations of signs contains the minimiser."""
    rng = generator(73)
    zeros = 0
    for _ in range(200):
        root = rng.standard_normal((3, 3))
        hessian, linear = root @ root.T + 1e-3 * np.eye(3), rng.standard_normal(3)
        l1, start = (
            rng.choice([0.0, 0.3, 1.0], 3),
            rng.choice([0.0, 1.0], 3) * rng.standard_normal(3),
        )

        def value(v, hessian=hessian, linear=linear, l1=l1):
            return v @ hessian @ v / 2 + linear @ v + l1 @ np.abs(v)

        candidates = []
        for signs in itertools.product([-1, 0, 1], repeat=3):
            on, v = np.flatnonzero(signs), np.zeros(3)
            shifted = linear[on] + l1[on] * np.array(signs)[on]
            v[on] = -np.linalg.solve(hessian[np.ix_(on, on)], shifted)
            candidates.append(value(v))
        minimiser = _minimise_quadratic(hessian, linear, l1, start)
        assert value(minimiser) <= min(candidates) + 1e-12 * (1 + abs(min(candidates)))
        zeros += (minimiser == 0).sum()
    assert zeros > 50


@pytest.mark.parametrize("l1", [0.2, 0.03, 1e-3])
@pytest.mark.parametrize("l2", [0.0, 0.05])
def test_fits_against_another_solver(l1, l2):
    X, y = rows()
    weights, info = minimise_elastic_net(X, y, l1, l2)
    assert weights.shape == (1, 4) and info["status"].tolist() == ["ok"]
    assert info["gradient_norm"][0] <= 1e-9
    expected = reference(X, y, l1, l2)
    assert objective(weights[0], X, y, l1, l2) <= objective(expected, X, y, l1, l2) + 1e-12
    np.testing.assert_allclose(weights[0], expected, atol=2e-5)


def test_a_large_l1_penalty_gives_zero_and_a_smaller_one_sparse_weights():
    X, y = rows(200, 10)
    largest = np.abs((X * y[:, None]).mean(axis=0)).max() / 2  # |gradient| at w = 0
    assert not FITS["l1"](X, y, largest * 1.001)[0].any()
    weights = FITS["l1"](X, y, largest * 0.9)[0]
    assert weights.any() and (weights == 0).sum() >= 8


@pytest.mark.parametrize("l1, l2", [(0.1, 0.0), (0.1, 0.3), (0.02, 0.01)])
@pytest.mark.parametrize("w", [(0.0, 0.0), (1.5, 0.0), (0.0, -0.7), (0.4, -2.0)])
def test_certificate_is_the_steepest_descent_rate(w, l1, l2):
    """The smallest subgradient's norm is the largest rate of descent over all directions."""
    X, y = rows(40, 2)
    w = np.array(w)
    angle = np.linspace(0, 2 * np.pi, 4001)
    step = 1e-7
    rates = [
        (objective(w + step * direction, X, y, l1, l2) - objective(w, X, y, l1, l2)) / step
        for direction in np.column_stack([np.cos(angle), np.sin(angle)])
    ]
    assert subgradient_norm(w, X, y, l1, l2) == pytest.approx(max(0.0, -min(rates)), abs=2e-6)


def test_the_certificate_bounds_the_distance_to_the_elastic_net_minimiser():
    X, y = rows()
    lam = 0.05
    best = reference(X, y, lam, lam)
    rng = generator(72)
    for scale in (1e-6, 1e-3, 1e-1, 1.0):
        near = best + scale * rng.standard_normal(4) * (best != 0)
        distance = np.linalg.norm(near - best)
        assert distance <= subgradient_norm(near, X, y, lam, lam) / lam + 1e-6


@pytest.mark.parametrize("fit", ["l1", "elastic_net"])
@pytest.mark.parametrize("label", [1, -1])
def test_one_class_alone_is_fitted(fit, label):
    """scikit-learn refuses a single class."""
    X = np.abs(rows(30, 3)[0])
    weights, info = FITS[fit](X, np.full(30, label), 0.05)
    assert info["status"][0] == "ok" and (np.sign(weights[weights != 0]) == label).all()
    l1, l2 = penalties(fit, 0.05)
    np.testing.assert_allclose(weights[0], reference(X, np.full(30, label), l1, l2), atol=2e-5)


def test_penalties_and_risk_follow_the_fit():
    assert penalties("l2", 0.3) == (0.0, 0.3)
    assert penalties("l1", 0.3) == (0.3, 0.0)
    assert penalties("elastic_net", 0.3) == (0.3, 0.3)
    assert penalties("elastic_net", 0.3, 0.7) == (0.7, 0.3)
    X, y = rows()
    w = np.array([[0.5, -1.0, 0.0, 2.0], [0, 0, 0, 0]])
    actual = regularised_risk(w, X, y, 0.3, "logistic", 0.7)
    np.testing.assert_allclose(actual, [objective(v, X, y, 0.7, 0.3) for v in w], rtol=1e-12)
    for fit, lambda1 in (("l2", None), ("l1", None), ("elastic_net", 0.02)):
        options = {} if lambda1 is None else {"lambda1": lambda1}
        best = FITS[fit](X, y, 0.05, **options)[0]
        l1, l2 = penalties(fit, 0.05, lambda1)
        near = best + 1e-3 * generator(73).standard_normal((50, 4))
        risk = regularised_risk(np.concatenate([best, near]), X, y, l2, "logistic", l1)
        assert (risk[1:] > risk[0]).all()


def test_bad_penalties_are_refused():
    for l1, l2 in ((0.0, 1.0), (-1.0, 0.1), (math.nan, 0.1), (0.1, -1.0), (math.inf, 0.0)):
        with pytest.raises(ValueError, match="penalties"):
            minimise_elastic_net(*rows(), l1, l2)


def counterexample():
    X = np.full((1000, 2), 0.7071)
    other = X.copy()
    X[-1], other[-1] = (1, 0), (0, 1)
    return X, other, np.ones(1000), 0.1


def test_the_l1_minimiser_jumps_as_far_as_was_found():
    X, other, y, lam = counterexample()
    w, v = (FITS["l1"](rows, y, lam) for rows in (X, other))
    assert w[1]["status"][0] == v[1]["status"][0] == "ok"

    def slope(r):  # the objective's slope along the first axis
        return lam - (999 * 0.7071 / (1 + math.exp(0.7071 * r)) + 1 / (1 + math.exp(r))) / 1000

    root = brentq(slope, 0, 10, xtol=1e-12)
    np.testing.assert_allclose(w[0][0], [root, 0], atol=1e-6)
    np.testing.assert_allclose(v[0][0], [0, root], atol=1e-6)
    moved = np.linalg.norm(w[0] - v[0])
    assert root == pytest.approx(2.55, abs=5e-3) and moved == pytest.approx(3.606, abs=5e-4)
    claimed = 2 / (1000 * lam)
    assert moved / claimed == pytest.approx(180.3, abs=0.05)

    guarantee = MECHANISMS[LASSO].guarantee(1000, 2, epsilon=1.0, lam=lam)
    assert moved / claimed <= guarantee.epsilon == pytest.approx(1000 * math.log(2))
    # On the same neighbours, the repaired form's minimiser (elastic net) moves no further than claimed.
    repaired = [FITS["elastic_net"](rows, y, lam)[0] for rows in (X, other)]
    assert np.linalg.norm(repaired[0] - repaired[1]) <= claimed + 2e-9 / lam


@pytest.mark.parametrize("lam", [0.3, 0.05, 2e-3])
def test_sensitivity_bounds_hold_on_random_neighbours(lam):
    rng = generator(74, lam)
    for n in (1, 2, 7, 40):
        for bound in (1.0, 0.4):
            X = rng.standard_normal((n, 3))
            X *= bound / np.linalg.norm(X, axis=1, keepdims=True)
            y = rng.choice([-1, 1], n)
            other, flipped = X.copy(), y.copy()
            other[0] = -X[0] if n % 2 else bound * np.eye(3)[0]
            flipped[0] = -y[0] if n == 2 else y[0]
            pairs = {
                fit: [FITS[fit](*data, lam)[0] for data in ((X, y), (other, flipped))]
                for fit in ("l1", "elastic_net")
            }
            for w in pairs["l1"]:
                assert np.abs(w).sum() <= math.log(2) / lam
            moved = {fit: np.linalg.norm(w - v) for fit, (w, v) in pairs.items()}
            assert moved["l1"] <= lasso_sensitivity(lam)
            assert moved["elastic_net"] <= 2 * bound / (n * lam) + 2e-9 / lam


def test_elastic_net_guarantee_is_epsilon_and_pays_for_its_tolerance():
    mechanism = MECHANISMS[REPAIR]
    guarantee = mechanism.guarantee(500, 4, epsilon=0.5, lam=0.02, lambda1=0.4)
    assert (guarantee.claimed_epsilon, guarantee.epsilon, guarantee.delta) == (0.5, 0.5, 0.0)
    X, y = rows()
    release = mechanism.release(X, y, epsilon=0.5, lam=0.02, rng=generator(1), tolerance=1e-6)
    assert release.info["scale"] == pytest.approx((2 / (80 * 0.02) + 2e-6 / 0.02) / 0.5)


@pytest.mark.parametrize("name, fit", [(LASSO, "l1"), (REPAIR, "elastic_net")])
def test_noise_has_the_stated_law_around_the_fit(name, fit):
    X, y = rows()
    epsilon, lam, draws = 0.7, 0.05, 20_000
    fitted = FITS[fit](X, y, lam)
    release, same = (
        MECHANISMS[name].release(
            X, y, epsilon=epsilon, lam=lam, restarts=draws, rng=generator(75), fit=shared
        )
        for shared in (fitted, None)
    )
    np.testing.assert_array_equal(release.weights, same.weights)
    tau = 1e-9 if name == REPAIR else 0.0
    scale = (2 / (80 * lam) + 2 * tau / lam) / epsilon
    norms = np.linalg.norm(release.weights - fitted[0], axis=1)
    assert kstest(norms, gamma(4, scale=scale).cdf).pvalue > 1e-3
    assert (release.status == "ok").all()


def test_the_lasso_is_released_whatever_the_solver_found():
    """If the solver fails, weights are shortened to the L1 norm log(2)/lambda that the guarantee needs."""
    lam = 0.05
    norm = {"gradient_norm": np.full(1, math.inf), "status": np.array(["not_converged"])}
    direction = np.array([[3.0, 0.0, -2.0, 1.0]])
    for size in (0.0, 0.3, 1.0, 1e3):
        weights = direction / 6 * size * math.log(2) / lam
        release, plain = (
            MECHANISMS[LASSO].release(*rows(), epsilon=1, lam=lam, rng=generator(1), fit=(w, norm))
            for w in (weights, 0 * weights)
        )
        assert release.status[0] == "ok"
        expected = direction / 6 * min(size, 1.0) * math.log(2) / lam
        np.testing.assert_allclose(release.weights - plain.weights, expected, atol=1e-12)


def test_settings_that_cannot_be_certified_are_refused():
    for change in ({"tolerance": 0.0}, {"lam": 1e-12}, {"bound": 1e8}):
        arguments = {"epsilon": 1.0, "lam": 0.05} | change
        for call in (
            lambda a=arguments: MECHANISMS[REPAIR].guarantee(80, 4, **a),
            lambda a=arguments: MECHANISMS[REPAIR].release(*rows(), rng=generator(1), **a),
        ):
            with pytest.raises(ValueError, match="double precision certifies"):
                call()
    MECHANISMS[LASSO].guarantee(80, 4, epsilon=1.0, lam=0.05, tolerance=0.0)


@pytest.mark.parametrize("lambda1", [0.0, -1.0, math.nan, math.inf])
def test_bad_lambda1(lambda1):
    for call in (
        lambda: MECHANISMS[REPAIR].guarantee(80, 4, epsilon=1, lam=0.1, lambda1=lambda1),
        lambda: MECHANISMS[REPAIR].release(
            *rows(), epsilon=1, lam=0.1, lambda1=lambda1, rng=generator(1)
        ),
    ):
        with pytest.raises(ValueError, match="lambda1"):
            call()


@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic_net"])
def test_nonprivate_with_each_penalty(penalty):
    X, y = rows()
    mechanism = MECHANISMS["nonprivate"]
    assert mechanism.shared_fit({"penalty": penalty}) == penalty
    release = mechanism.release(X, y, lam=0.05, restarts=2, penalty=penalty)
    np.testing.assert_array_equal(
        release.weights, np.repeat(FITS[penalty](X, y, 0.05)[0], 2, axis=0)
    )
    assert math.isinf(mechanism.guarantee(80, 4, lam=0.05, penalty=penalty).epsilon)


def test_nonprivate_refuses_what_no_fit_offers():
    mechanism = MECHANISMS["nonprivate"]
    with pytest.raises(ValueError, match="penalty is one of 'l2', 'l1', 'elastic_net'"):
        mechanism.guarantee(80, 4, lam=0.05, penalty="lasso")
    for call in (
        lambda: mechanism.guarantee(80, 4, lam=0.05, penalty="l1", loss="huber"),
        lambda: mechanism.release(*rows(), lam=0.05, penalty="l1", loss="huber"),
    ):
        with pytest.raises(ValueError, match="logistic loss only"):
            call()
