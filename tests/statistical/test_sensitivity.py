import numpy as np
import pytest
from scipy.optimize import minimize

from dp.losses import get
from dp.mechanisms import MECHANISMS
from dp.mechanisms.output_perturbation import sensitivity
from dp.seeds import generator


def reference_minimiser(X, y, lam, counts=None, loss="logistic"):
    """argmin of the weighted mean loss + lam/2 ||w||^2."""
    loss = get(loss)
    counts = np.ones(len(X)) if counts is None else counts
    n, A = counts.sum(), X * y[:, None]

    def value(w):
        return counts @ loss.value(A @ w) / n + lam / 2 * w @ w

    def gradient(w):
        return (counts * loss.derivative(A @ w)) @ A / n + lam * w

    def hessian(w):
        return (A * (counts * loss.curvature(A @ w))[:, None]).T @ A / n + lam * np.eye(len(w))

    solution = minimize(
        value, np.zeros(X.shape[1]), jac=gradient, hess=hessian, method="trust-exact",
        options={"gtol": 1e-10, "maxiter": 500},
    )  # fmt: skip
    assert np.linalg.norm(gradient(solution.x)) < 1e-7
    return solution.x


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_random_neighbours_stay_within_the_bound(loss):
    rng = generator(31, loss)
    for _ in range(40):
        n, d = int(rng.integers(1, 30)), int(rng.integers(1, 6))
        lam, bound = 10 ** rng.uniform(-3, 1), 10 ** rng.uniform(-0.5, 0.5)
        X = rng.standard_normal((n, d))
        X *= bound / np.linalg.norm(X, axis=1, keepdims=True)
        y = rng.choice([-1, 1], n)
        w = reference_minimiser(X, y, lam, loss=loss)
        for replaced in (-X[0], bound * rng.standard_normal(d)):
            other = X.copy()
            other[0] = replaced * min(1.0, bound / np.linalg.norm(replaced))
            moved = np.linalg.norm(w - reference_minimiser(other, y, lam, loss=loss))
            assert moved <= sensitivity(n, lam, bound, loss) + 2e-7 / lam


def test_the_bound_is_reached_by_a_loss_with_a_linear_part():
    """For the Huber hinge, both records have the slope -1 if both margins stay below 1 - h."""
    X, y = np.array([[1.0, 0], [0, 0.1]]), np.array([1, 1])
    lam = 5.0
    moved = reference_minimiser(X, y, lam, loss="huber") - reference_minimiser(
        X, np.array([-1, 1]), lam, loss="huber"
    )
    assert np.linalg.norm(moved) == pytest.approx(sensitivity(2, lam), rel=1e-6)


def test_the_bound_is_nearly_reached_by_logistic_loss_on_worst_case_data():
    """The other records keep w far out along the second axis.

    There, the loss of the replaced record and that of its replacement have slopes near -1.
    """
    ratios = []
    for others, lam in ((1e3, 1e-1), (1e5, 1e-3), (1e9, 1e-7), (1e13, 1e-11)):
        counts = np.array([others - 1, 1.0])
        best = 0
        for sine in (0.2, 0.3, 0.4, 0.5):
            ends = [
                reference_minimiser(
                    np.array([[0, 1.0], [sign * np.sqrt(1 - sine**2), -sine]]),
                    np.ones(2), lam, counts,
                )
                for sign in (1, -1)
            ]  # fmt: skip
            best = max(best, np.linalg.norm(ends[0] - ends[1]) / sensitivity(others, lam))
        ratios.append(best)
    assert ratios == sorted(ratios)
    assert 0.9 < ratios[-1] <= 1


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_noise_is_added_to_the_minimiser(loss):
    rng = generator(33)
    X = rng.standard_normal((80, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X[:, 0] > 0.1, 1, -1)
    release = MECHANISMS["output_perturbation"].release(
        X, y, epsilon=10.0, lam=0.1, restarts=20_000, rng=generator(34), loss=loss
    )
    w = reference_minimiser(X, y, 0.1, loss=loss)
    sd = release.info["scale"] * np.sqrt(3 + 1)  # per coordinate: E norm^2/d = scale^2 (d + 1)
    np.testing.assert_allclose(release.weights.mean(axis=0), w, atol=5 * sd / np.sqrt(20_000))


def test_nonprivate_is_the_reference_minimiser():
    rng = generator(35)
    X = rng.standard_normal((50, 4)) / 4
    y = np.where(X[:, 1] > 0, 1, -1)
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    release = MECHANISMS["nonprivate"].release(X, y, lam=0.01)
    np.testing.assert_allclose(release.weights[0], reference_minimiser(X, y, 0.01), atol=1e-6)
