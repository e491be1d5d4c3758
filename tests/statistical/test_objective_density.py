"""Computes the privacy loss of objective perturbation by change of variables on explicit data sets.

The released minimiser's density follows from the tilt's law and Jacobian, not from the closed form
under test.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

import reference
from dp.losses import get
from dp.mechanisms import MECHANISMS
from dp.proofs.laplace_tilt import calibrate, exact_epsilon
from dp.seeds import generator


def tilt(w, X, y, counts, n_lambda, loss):
    """The tilt b for which w minimises the objective."""
    return -(n_lambda * w + (counts * loss.derivative(y * (X @ w)) * y) @ X)


def log_density(w, X, y, counts, n_lambda, epsilon_b, bound, loss):
    """The log density of w, up to a constant that all data sets share."""
    curvature = counts * loss.curvature(y * (X @ w))
    jacobian = n_lambda * np.eye(len(w)) + (X * curvature[:, None]).T @ X
    norm = np.linalg.norm(tilt(w, X, y, counts, n_lambda, loss))
    return -epsilon_b * norm / (2 * loss.kappa * bound) + np.linalg.slogdet(jacobian)[1]


def privacy_loss(w, others, counts, old, new, n_lambda, epsilon_b, bound=1.0, loss="logistic"):
    """log p(w | others + old) - log p(w | others + new); all labels +1."""
    counts = np.append(counts, 1.0)
    a, b = (
        log_density(
            w, np.vstack([others, record]), np.ones(len(counts)), counts,
            n_lambda, epsilon_b, bound, get(loss),
        )
        for record in (old, new)
    )  # fmt: skip
    return a - b


def worst_pair(s, n_lambda, bound=1.0):
    """Two-dimensional data whose privacy loss at a far point w = (0, t) is nearly the supremum.

    Many equal records, just below the first axis, have slope -1 at w and no curvature. Their gradients
    dominate the tilt b and turn it along the first axis. The new record equals one of them. The old record
    points the other way, and has slope -s at w.
    """
    t, depth = 4000.0, 40.0
    w = np.array([0.0, t])
    sine = depth / (t * bound)
    other = bound * np.array([np.sqrt(1 - sine**2), -sine])
    z = np.log((1 - s) / s)
    old = np.array([-np.sqrt(bound**2 - (z / t) ** 2), z / t])
    return w, other[None, :], np.array([1e7]), old, other, n_lambda


@pytest.mark.parametrize(
    ("epsilon", "n_lambda", "expected"),
    reference.values("objective_perturbation", "epsilon_b", "n_lambda")[:3],
)
def test_supremum_is_reached_in_two_dimensions(epsilon, n_lambda, expected):
    losses = [privacy_loss(*worst_pair(s, n_lambda), epsilon) for s in np.linspace(0.01, 0.99, 99)]
    assert max(losses) <= exact_epsilon(epsilon, n_lambda)
    assert max(losses) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("bound", [0.5, 2.0])
def test_supremum_scales_with_the_bound(bound):
    losses = [
        privacy_loss(*worst_pair(s, 0.3, bound), 0.7, bound) for s in np.linspace(0.01, 0.99, 99)
    ]
    assert max(losses) == pytest.approx(exact_epsilon(0.7, 0.3, bound), abs=1e-3)
    assert max(losses) <= exact_epsilon(0.7, 0.3, bound)


def test_published_form_is_private_at_its_own_setting():
    losses = [privacy_loss(*worst_pair(s, 140.0), 0.1) for s in np.linspace(0.01, 0.99, 99)]
    assert 0.099 < max(losses) <= 0.1 + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_no_pair_exceeds_the_supremum(loss, dimension):
    rng = generator(21, loss, dimension)
    largest = 0.0
    for _ in range(30):
        epsilon, n_lambda = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-2, 1)
        limit = exact_epsilon(epsilon, n_lambda, 1.0, loss)
        others = rng.standard_normal((4, dimension))
        others /= np.linalg.norm(others, axis=1, keepdims=True)
        counts = rng.integers(0, 50, 4).astype(float)

        def negative(p, others=others, counts=counts, n_lambda=n_lambda, epsilon=epsilon):
            w, old, new = p.reshape(3, -1)
            old, new = (x / max(1.0, np.linalg.norm(x)) for x in (old, new))
            return -privacy_loss(w, others, counts, old, new, n_lambda, epsilon, loss=loss)

        start = rng.standard_normal(3 * dimension) * 2
        best = minimize(negative, start, method="Nelder-Mead", options={"maxfev": 400})
        assert -best.fun <= limit * (1 + 1e-9)
        largest = max(largest, -best.fun / limit)
    assert largest > 0.5


@pytest.mark.parametrize("calibration", ["cms11", "single_log", "supremum"])
@pytest.mark.parametrize(
    ("epsilon", "n_lambda"), [(0.1, 1.0), (1.0, 0.1), (1.0, 0.01), (0.1, 14.0)]
)
def test_repaired_forms_stay_below_epsilon_on_the_worst_pair(calibration, epsilon, n_lambda):
    epsilon_b, ridge = calibrate(epsilon, 1, n_lambda, calibration=calibration)
    losses = [
        privacy_loss(*worst_pair(s, n_lambda + ridge), epsilon_b)
        for s in np.linspace(0.01, 0.99, 99)
    ]
    assert max(losses) <= epsilon
    if calibration == "supremum" and not ridge:
        assert max(losses) == pytest.approx(epsilon, rel=1e-2)


def test_jacobian_by_finite_differences():
    rng = generator(22)
    X, w = rng.standard_normal((5, 3)), rng.standard_normal(3)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y, counts, loss = np.array([1, -1, 1, 1, -1]), np.array([1.0, 2, 5, 1, 3]), get("logistic")
    h = 1e-6
    columns = [
        (tilt(w + h * e, X, y, counts, 0.3, loss) - tilt(w - h * e, X, y, counts, 0.3, loss))
        / (2 * h)
        for e in np.eye(3)
    ]
    jacobian = np.array(columns)
    expected = np.linalg.slogdet(jacobian)[1]
    actual = log_density(w, X, y, counts, 0.3, 1.0, 1.0, loss) + np.linalg.norm(
        tilt(w, X, y, counts, 0.3, loss)
    ) / (2 * loss.kappa)
    assert actual == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["objective_perturbation", "objective_perturbation_cm08"])
@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_released_weights_are_stationary_for_tilts_of_the_right_law(name, loss):
    """A release determines its tilt, b = -n (gradient at w), whose norm must follow the Gamma law."""
    from scipy import stats

    rng = generator(23)
    n, d, lam, epsilon = 200, 4, 0.05, 0.8
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X[:, 0] > 0, 1, -1)
    release = MECHANISMS[name].release(
        X, y, epsilon=epsilon, lam=lam, restarts=4000, rng=generator(24), loss=loss
    )
    assert (release.status == "ok").all()
    n_lambda = n * (lam + release.info["ridge"])
    b = np.array([tilt(w, X, y, np.ones(n), n_lambda, get(loss)) for w in release.weights])
    if name.endswith("cm08"):
        epsilon_b = epsilon
        assert release.info["ridge"] == 0
    else:  # the output noise's share of epsilon is below a thousandth
        epsilon_b = epsilon - 2 * np.log1p(get(loss).c / (n * lam))
        if epsilon_b <= 0:
            epsilon_b = epsilon / 2
    law = stats.gamma(d, scale=2 / epsilon_b)
    assert stats.kstest(np.linalg.norm(b, axis=1), law.cdf).pvalue > 1e-3
    half = (d - 1) / 2
    cosine = b[:, 1] / np.linalg.norm(b, axis=1)
    assert stats.kstest((1 + cosine) / 2, stats.beta(half, half).cdf).pvalue > 1e-3
