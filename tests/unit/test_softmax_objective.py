import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

from dp.mechanisms import MECHANISMS
from dp.mechanisms.gaussian_objective_perturbation import moved
from dp.proofs import softmax_tilt
from dp.seeds import generator
from dp.solvers import newton, softmax
from dp_privacy.accounting import ADD_REMOVE
from dp_privacy.errors import Refused

MECHANISM = MECHANISMS["softmax_objective_perturbation"]
ASKED = {"epsilon": 2.0, "delta": 1e-6, "classes": 4}


def rows(n=300, d=5, classes=4, seed=1):
    rng = generator(seed)
    y = np.arange(n) % classes
    X = rng.standard_normal((classes, d))[y] + rng.standard_normal((n, d))
    return X / np.maximum(np.linalg.norm(X, axis=1), 1)[:, None] / (1 + 1e-12), y


def objective(W, X, y, lam, linear):
    scores = X @ W
    top = scores.max(axis=1)
    p = np.exp(scores - top[:, None])
    total = p.sum(axis=1)
    value = np.log(total) + top - scores[np.arange(len(y)), y]
    p = p / total[:, None] - np.eye(W.shape[1])[y]
    value = value.mean() + lam / 2 * (W * W).sum() + (linear * W).sum() / len(y)
    return value, X.T @ p / len(y) + lam * W + linear / len(y)


@pytest.mark.parametrize(("n", "d", "lam"), [(300, 5, 0.01), (40, 60, 1e-4), (3000, 30, 1e-4)])
def test_minimisers_are_those_of_scipy_and_are_certified(n, d, lam):
    X, y = rows(n, d)
    linear = generator(2).standard_normal((3, d, 4)) * 2
    W, info = softmax.minimise(X, y, 4, lam, linear, 1e-10)
    assert (info.status == "ok").all() and (info.gradient_norm <= 1e-10).all()
    for w, tilt in zip(W, linear, strict=True):
        value, gradient = objective(w, X, y, lam, tilt)
        assert np.linalg.norm(gradient) <= 1.1e-10

        def flat(v, tilt=tilt):
            value, gradient = objective(v.reshape(d, 4), X, y, lam, tilt)
            return value, gradient.ravel()

        reference = minimize(flat, np.zeros(4 * d), jac=True, method="L-BFGS-B")
        assert value <= reference.fun + 1e-12
        apart = np.linalg.norm(w.ravel() - reference.x)  # by strong convexity
        assert apart <= np.linalg.norm(flat(reference.x)[1]) / lam + 1e-9 / lam


def test_descent_ends_where_quasi_newton_steps_stall(monkeypatch):
    """Rows are separable, and penalties tiny. The last fit may make only one quasi-Newton step."""
    X = np.repeat(np.eye(4)[:, :3], 25, axis=0)
    y = np.repeat(np.arange(4), 25)
    for lam in (1e-5, 1e-3):
        _, info = softmax.minimise(X, y, 4, lam, np.zeros((1, 3, 4)), 1e-9)
        assert info.status[0] == "ok"
    monkeypatch.setattr(softmax, "LIMIT", 1)
    _, info = softmax.minimise(X, y, 4, 1e-2, np.zeros((1, 3, 4)), 1e-9)
    assert info.status[0] == "ok" and info.iterations[0] > 20


def test_two_classes_are_logistic_regression():
    X, y = rows(classes=2)
    tilt = generator(3).standard_normal((1, 5))
    W, _ = softmax.minimise(X, y, 2, 0.02, np.stack([-tilt, tilt], axis=2), 1e-11)
    # With w_1 = -w_0 = w/2, the penalty is lambda/4 ||w||^2.
    w, _ = newton.minimise(X, 2 * y - 1, 0.01, tilt, tolerance=1e-11)
    np.testing.assert_allclose(W[0, :, 1] - W[0, :, 0], w[0], atol=1e-7)


def test_the_tilt_and_the_output_noise_have_the_planned_sizes():
    """With a large lambda, the minimiser is nearly linear in the tilt."""
    X, y = rows(60, 2)
    lam = 500.0
    release = MECHANISM.release(X, y, rng=generator(4), restarts=4000, lam=lam, **ASKED)
    sigma, mu = softmax_tilt.with_output_noise(2.0, 1e-6, 60 * lam, 4)
    assert release.info["scale"] == sigma
    assert release.info["output_scale"] == pytest.approx(moved(60, lam, 1e-9, "replace-one") / mu)
    spread = release.weights.std(axis=0) * 60 * lam
    np.testing.assert_allclose(spread, sigma, rtol=0.05)
    assert sigma >= 2 * math.sqrt(2) / MECHANISM.parameters(60, 2, lam=lam, **ASKED).mu


def test_the_guarantee_holds_what_is_asked_and_no_more():
    for options in ({}, {"adjacency": ADD_REMOVE}, {"adjacency": ADD_REMOVE, "public_n": 3000}):
        lam = MECHANISM.rule_lambda(2000, 7, **ASKED, **options)
        guarantee = MECHANISM.guarantee(2000, 7, lam=lam, **ASKED, **options)
        assert guarantee.epsilon == 2.0 and guarantee.adjacency == options.get(
            "adjacency", "replace-one"
        )
        assert guarantee.profile.delta(2.0) <= 1e-6 < guarantee.profile.delta(1.98)
        assert "3 times the profile" in guarantee.reason
    assert "3000, a number that was stated" in guarantee.reason


def test_the_rule_is_of_public_numbers():
    n, classes = 48_000, 10
    arguments = {"epsilon": 1.0, "delta": 1 / n**2, "classes": classes}
    lam = MECHANISM.rule_lambda(n, 784, **arguments)
    assert lam == MECHANISM.rule_lambda(n, 5, **arguments)
    sigma = softmax_tilt.sigma_where_free(1.0, 1 / n**2, classes)
    assert lam * n == pytest.approx(sigma) and 16.8 < sigma < 17.0
    assert MECHANISM.rule_lambda(n, 5, bound=2.0, **arguments) == pytest.approx(4 * lam)


def test_what_is_refused():
    X, y = rows()
    with pytest.raises(ValueError, match="public number of classes"):
        MECHANISM.release(X, y, rng=generator(1), lam=0.1, epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="leaves nothing of epsilon"):
        MECHANISM.guarantee(300, 5, lam=1e-5, **ASKED)
    with pytest.raises(ValueError, match="certifies"):
        MECHANISM.guarantee(300, 5, lam=0.1, tolerance=1e-16, **ASKED)
    with pytest.raises(ValueError, match="at least their number"):
        stated = {"adjacency": ADD_REMOVE, "public_n": 200}
        MECHANISM.release(X, y, rng=generator(1), lam=0.1, **stated, **ASKED)
    with pytest.raises(ValueError, match="label"):
        MECHANISM.release(X, y + 1, rng=generator(1), lam=0.1, **ASKED)


def test_a_refusal_names_a_lambda_that_works():
    """The refusal names no lambda if epsilon is so far below delta that no tilt is proven."""

    def refusal(**changes):
        with pytest.raises(Refused) as caught:
            MECHANISM.guarantee(300, 5, **ASKED | changes)
        return str(caught.value)

    said = refusal(lam=1e-5)
    advice = float(said.rpartition(" ")[2])
    assert "that of the rule" in said and MECHANISM.guarantee(300, 5, lam=advice, **ASKED)
    low = {"epsilon": 1e-13, "delta": 1e-5}
    rule = MECHANISM.rule_lambda(300, 5, **ASKED | low)
    for lam in (1e-5, rule, 1e3 * rule):
        said = refusal(lam=lam, **low)
        assert "rule" not in said and "no lambda helps" in said and "larger epsilon" in said
    assert MECHANISM.guarantee(300, 5, lam=rule, **ASKED | low | {"epsilon": 1e-6})


def test_rounding_of_softmax_gradients_is_within_its_bound():
    """The reference has 40 digits, and weights are as long as a minimiser can be."""
    X, y = rows(200, 6)
    lam, constants = 0.01, softmax.Constants(4)
    W = generator(5).standard_normal((6, 4))
    W *= math.sqrt(2 * lam * constants.at_zero()) / lam / np.linalg.norm(W)
    actual = softmax.mean_gradient(X, y, W[None], "softmax")[1][0]
    with mpmath.workdps(40):
        exact = mpmath.zeros(6, 4)
        for x, label in zip(mpmath.matrix(X).tolist(), y, strict=True):
            scores = (mpmath.matrix([x]) * mpmath.matrix(W)).tolist()[0]
            powers = [mpmath.exp(s) for s in scores]
            for k in range(4):
                share = (powers[k] / mpmath.fsum(powers) - int(k == label)) / 200
                for j in range(6):
                    exact[j, k] += share * x[j]
        error = mpmath.norm(exact - mpmath.matrix(actual), 2)
    assert 0 < error <= newton.rounding(200, 6, lam, 1.0, constants)


@pytest.mark.parametrize("present", [4, 3, 1])
def test_regression_without_privacy_is_the_minimiser(present):
    """A class without rows also gets weights, which are finite because of lambda."""
    X, y = rows(200)
    y = y % present
    release = MECHANISMS["softmax_regression"].release(X, y, lam=1e-3, classes=4, tolerance=1e-9)
    _, gradient = objective(release.weights[0], X, y, 1e-3, np.zeros((5, 4)))
    assert release.status == ["ok"] and np.abs(gradient).max() <= 1.1e-9
    assert np.linalg.norm(gradient) == pytest.approx(release.info["gradient_norm"][0], abs=1e-14)
    if present == 4:
        from sklearn.linear_model import LogisticRegression

        fitted = LogisticRegression(C=1 / (200 * 1e-3), fit_intercept=False, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(release.weights[0], fitted.coef_.T, atol=1e-6)
    few = MECHANISMS["softmax_regression"].release(X, y, lam=1e-3, classes=4, iterations=1)
    assert few.status == ["not_converged"]
