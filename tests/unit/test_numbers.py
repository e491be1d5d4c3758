import math
import re

import numpy as np
import pytest
from scipy.optimize import minimize as search

from dp import losses
from dp.evaluation import regression
from dp.mechanisms import MECHANISMS
from dp.mechanisms.output_perturbation import sensitivity
from dp.proofs import quadratics
from dp.proofs.laplace_tilt import calibrate, exact_epsilon
from dp.proofs.posterior import loss_range
from dp.seeds import generator
from dp.solvers.newton import minimise
from dp_privacy.sensitivities import gram_and_moment
from reference import OF_CLASSES
from study import arguments

# Mechanisms that do regression, and the options they need. All others refuse numeric targets.
TAKERS = {
    "functional_laplace": {},
    "functional_gaussian": {"delta": 1e-5},
    "noiseless_linear": {},
    "sufficient_statistics": {"delta": 1e-5},
    "adassp": {"delta": 1e-5},
    "subsample_aggregate": {"loss": "squared"},
    "posterior_sampling": {},
    "output_perturbation": {"loss": "huber_residual"},
    "laplace_coordinates": {"loss": "log_cosh"},
    "laplace_l1": {"loss": "log_cosh"},
    "objective_perturbation": {"loss": "log_cosh"},
    "output_perturbation_gaussian": {"loss": "log_cosh", "delta": 1e-5},
    "dp_sgd_poisson": {"loss": "squared", "delta": 1e-5},
    "dp_sgd": {"loss": "squared"},
    "sgd": {"loss": "squared"},
    "distributed_lasso": {},
    "dp_distributed_lasso": {"delta": 1e-5},
    "dp_gd": {"loss": "squared", "delta": 1e-5},
    "boosted_adassp": {"delta": 1e-5},
    "noise_aware_boosted": {"delta": 1e-5},
    "boosted_adassp_released": {"delta": 1e-5, "iterations": 3},
    "iterative_hessian_mixing": {"delta": 1e-5},
    "tukey_em": {"delta": 1e-5},
    "tukey_em_released": {"delta": 1e-5},
    "adassp_released": {"delta": 1e-5},
    "functional_centred_released": {},
    "functional_released": {},
    "least_squares_released": {"delta": 1e-5},
    "gradient_descent": {"loss": "squared"},
    "nonprivate": {"loss": "squared"},
    "nonprivate_sum": {"loss": "squared"},
}


def problem(n=4000, d=3):
    rng = generator(1, "numbers")
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.clip(X @ [0.5, -0.3, 0.4] + 0.1 * rng.standard_normal(n), -1, 1)


def settings(name):
    privacy = {"epsilon": 4.0} if MECHANISMS[name].private else {}
    return {"lam": 0.003, **privacy, **TAKERS[name]}


@pytest.mark.parametrize("name", TAKERS)
def test_regression_comes_near_to_the_fit_without_privacy(name):
    X, y = problem()
    mechanism = MECHANISMS[name]
    assert mechanism.takes_numbers(TAKERS[name])
    release = mechanism.release(X, y, restarts=40, rng=generator(2, name), **settings(name))
    r2 = regression(release.weights, X, y, release.info.get("intercept", 0.0))["r2"]
    best = regression(minimise(X, y, 0.003, loss="squared")[0], X, y)["r2"][0]
    assert (release.status == "ok").all()
    assert 0.8 * best < np.median(r2) <= best + 0.01


@pytest.mark.parametrize("name", TAKERS)
def test_targets_beyond_the_public_range_release_nothing(name):
    X, y = problem(50)
    for wrong in (1.0001, -2, np.nan, np.inf):
        bad = np.where(np.arange(50) == 7, wrong, y)
        with pytest.raises(ValueError, match="targets must be numbers from -1 to 1"):
            MECHANISMS[name].release(X, bad, rng=generator(3), **settings(name))


@pytest.mark.parametrize(
    "name",
    # A user's mechanism may do regression without an entry above.
    sorted(
        name
        for name in set(MECHANISMS) - set(TAKERS) - set(OF_CLASSES)
        if not MECHANISMS[name].takes_numbers({})
    ),
)
def test_the_others_refuse_in_one_sentence(name):
    mechanism = MECHANISMS[name]
    X, y = problem(50)
    delta = {"delta": 1e-5} if mechanism.delta == "needed" else {}
    privacy = {"epsilon": 1.0} if mechanism.private else {}
    with pytest.raises(ValueError, match=r"^labels must be -1 or 1$"):
        mechanism.release(X, y, lam=0.1, rng=generator(4), **privacy, **delta)


@pytest.mark.parametrize("name", ["nonprivate", "output_perturbation", "dp_sgd", "dp_gd"])
def test_a_margin_loss_is_for_classes(name):
    assert not MECHANISMS[name].takes_numbers({})
    with pytest.raises(ValueError, match=r"^labels must be -1 or 1$"):
        MECHANISMS[name].release(
            *problem(50), rng=generator(5), **(settings(name) | {"loss": "logistic"})
        )


def record(rng, d, bound):
    x = rng.standard_normal(d)
    x *= bound * rng.choice([1, 1, rng.random()]) / np.linalg.norm(x)
    return x, rng.choice([-1.0, 1.0, rng.uniform(-1, 1)])


def ascend(gap, d, bound, rng):
    """Largest gap(record, other) found by a local search from random starts."""

    def records(theta):
        parts = []
        for part in np.split(theta, 2):
            norm = np.linalg.norm(part[:d])
            parts.append((part[:d] * min(1, bound / max(norm, 1e-300)), math.sin(part[d])))
        return parts

    best = 0.0
    for _ in range(6):
        start = np.concatenate([np.append(*_angles(record(rng, d, bound))) for _ in range(2)])
        actual = search(
            lambda theta: -gap(*records(theta)), start, method="Nelder-Mead",
            options={"maxiter": 1200, "xatol": 1e-6, "fatol": 1e-9, "adaptive": True},
        )  # fmt: skip
        best = max(best, -actual.fun)
    return best


def _angles(pair):
    return pair[0], math.asin(pair[1])


def statistics_gap(first, second):
    (x, y), (x2, y2) = first, second
    M, L = np.outer(x, x) - np.outer(x2, x2), y * x - y2 * x2
    return math.sqrt((M**2).sum() + (L**2).sum())


@pytest.mark.parametrize("bound", [0.4, 0.7, 1.0, 2.0])
def test_joint_sensitivity_of_sufficient_statistics(bound):
    actual = ascend(statistics_gap, 2, bound, generator(6, bound))
    assert actual <= gram_and_moment(bound) * (1 + 1e-9)
    assert actual >= 0.999 * gram_and_moment(bound)
    formula = math.sqrt(2 * bound**4 + 2 * bound**2 + 0.5) if 2 * bound**2 >= 1 else 2 * bound
    assert gram_and_moment(bound) == pytest.approx(formula)


def test_quadratics_are_those_of_residuals():
    X, y = problem(20)
    gram, moment = quadratics.moments(X, y)
    w = np.array([0.3, -1.0, 2.0])
    total = w @ gram @ w - 2 * moment @ w + y @ y
    assert total == pytest.approx(((y - X @ w) ** 2).sum())


@pytest.mark.parametrize("loss", ["huber_residual", "log_cosh"])
def test_random_neighbours_of_a_minimiser_stay_within_its_sensitivity(loss):
    rng, worst = generator(8, loss), 0.0
    for _ in range(300):
        n, d = int(rng.integers(1, 12)), int(rng.integers(1, 4))
        lam, bound, tau = (
            10 ** rng.uniform(-2, 1),
            10 ** rng.uniform(-0.5, 0.5),
            10 ** rng.uniform(-2, 0),
        )
        kind = losses.get(loss, tau=tau)
        records = [record(rng, d, bound) for _ in range(n + 1)]
        X, y = np.array([x for x, _ in records]), np.array([y for _, y in records])
        sides = [np.arange(n), np.append(np.arange(n - 1), n)]
        w = [minimise(X[rows], y[rows], lam, loss=kind, tolerance=1e-12)[0][0] for rows in sides]
        share = np.linalg.norm(w[0] - w[1]) / sensitivity(n, lam, bound, kind, tolerance=1e-11)
        worst = max(worst, share)
    assert 0.9 < worst <= 1


@pytest.mark.parametrize("reach", [0.2, 0.9, 1.0, 2.5])
def test_range_of_what_depends_on_the_weights(reach):
    """Over scores and targets, s^2/2 - y s, a record's term in the log density, has range `loss_range`."""
    s, y = np.meshgrid(np.linspace(-reach, reach, 801), np.linspace(-1, 1, 801))
    values = s * s / 2 - y * s
    assert values.max() - values.min() <= loss_range("squared", reach) * (1 + 1e-12)
    assert values.max() - values.min() == pytest.approx(loss_range("squared", reach), rel=1e-4)


def test_posterior_densities_of_neighbours_differ_by_at_most_epsilon():
    rng, epsilon, radius, worst = generator(9), 1.0, 0.5, 0.0
    grid = np.linspace(-radius, radius, 4001)
    gamma = epsilon / (2 * loss_range("squared", radius))

    def log_density(x, y):
        log = -gamma * ((y[:, None] - x[:, None] * grid) ** 2 / 2).sum(axis=0)
        return log - log.max() - math.log(np.trapezoid(np.exp(log - log.max()), grid))

    for _ in range(300):
        n = int(rng.integers(1, 9))
        x, y = rng.choice([-1, 1, rng.uniform(-1, 1)], n + 1), rng.uniform(-1, 1, n + 1)
        y[-2:] = rng.choice([-1, 1, rng.uniform(-1, 1)], 2)
        sides = [
            log_density(x[rows], y[rows]) for rows in (np.arange(n), np.append(np.arange(n - 1), n))
        ]
        worst = max(worst, np.abs(sides[0] - sides[1]).max())
    assert 0.4 * epsilon < worst <= epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("n_lambda", [0.01, 1.0, 30.0, 400.0])
@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_the_supremum_is_that_of_slopes_and_curvatures(epsilon, n_lambda, tau):
    bound = 1.3
    z = np.concatenate([np.linspace(0, 40 * tau, 400_001), [np.inf]])
    for name in ("log_cosh", "huber_residual"):
        loss = losses.get(name, tau=tau)
        slope, curvature = loss.derivative(z), loss.curvature(z)
        table = epsilon / 2 * (1 + slope / tau) + np.log1p(curvature * bound**2 / n_lambda)
        actual = exact_epsilon(epsilon, n_lambda, bound, loss)
        assert table.max() <= actual * (1 + 1e-12)
        assert actual == pytest.approx(table.max(), rel=1e-6)
        free = name == "log_cosh" and n_lambda * epsilon >= 4 * bound**2
        assert (actual <= epsilon * (1 + 1e-12)) == free


def log_density(w, X, y, n_lambda, loss, scale):
    """Log density of the exact minimiser at w (m, d), up to a constant, for X (m, n, d) and y (m, n)."""
    residual = np.einsum("mnd,md->mn", X, w) - y
    slope, curvature = loss.derivative(residual), loss.curvature(residual)
    tilt = n_lambda * w + np.einsum("mn,mnd->md", slope, X)
    jacobian = np.einsum("mn,mnd,mne->mde", curvature, X, X) + n_lambda * np.eye(w.shape[1])
    return np.linalg.slogdet(jacobian)[1] - np.linalg.norm(tilt, axis=1) / scale


@pytest.mark.parametrize("calibration", ["cms11", "single_log", "supremum"])
@pytest.mark.parametrize("name", ["log_cosh", "huber_residual"])
def test_no_neighbours_exceed_epsilon(name, calibration):
    rng, tau = generator(10, name, calibration), 0.3
    loss = losses.get(name, tau=tau)
    for epsilon, n_lambda in ((0.5, 20.0), (2.0, 0.5)):
        epsilon_b, ridge = calibrate(epsilon, 10, n_lambda / 10, 1.0, loss, calibration)
        scale, strength = 2 * tau / epsilon_b, n_lambda + 10 * ridge
        m = 40_000
        X, y = rng.standard_normal((m, 4, 2)), rng.uniform(-1, 1, (m, 4))
        length = np.where(rng.random((m, 4, 1)) < 2 / 3, 1.0, rng.random((m, 4, 1)))
        X *= length / np.linalg.norm(X, axis=2, keepdims=True)  # mostly on the bound
        y = np.where(rng.random((m, 4)) < 2 / 3, np.sign(y), y)  # often 1 or -1
        w = rng.standard_normal((m, 2)) * 10 ** rng.uniform(-1, 2, (m, 1))
        both = [
            log_density(w, X[:, rows], y[:, rows], strength, loss, scale)
            for rows in ([0, 1, 2], [0, 1, 3])
        ]
        worst = np.abs(both[0] - both[1]).max()
        assert 0.5 * epsilon < worst <= epsilon * (1 + 1e-9)


def test_the_supremum_is_approached():
    """For `other` near -x and w far out, nearly orthogonal to x, tilts differ by kappa (1 + t) along x."""
    loss, epsilon, n_lambda = losses.get("log_cosh", tau=0.3), 1.0, 0.5
    t = 0.6
    r = 0.3 * math.atanh(t)
    delta = 1e-3
    # Targets are 0. Residuals are r and -r + 100, as `other` is -x turned slightly to the second axis.
    x, other = np.array([1.0, 0.0]), np.array([-math.cos(delta), math.sin(delta)])
    w = np.array([r, 1e5])
    scale = 2 * 0.3 / epsilon
    # Another record cancels n lam w, so the tilt is near 0 except along x.
    gaps = []
    for pull in (-1.0, 1.0):

        def density(X, pull=pull):
            slope, curvature = (f(X @ w) for f in (loss.derivative, loss.curvature))
            tilt = slope @ X + pull * 50 * np.array([1.0, 0.0])
            jacobian = (X.T * curvature) @ X + n_lambda * np.eye(2)
            return np.linalg.slogdet(jacobian)[1] - np.linalg.norm(tilt) / scale

        gaps.append(density(x[None]) - density(other[None]))
    expected = epsilon / 2 * (1 + t) + math.log1p((1 - t * t) / n_lambda)
    assert max(gaps) == pytest.approx(expected, rel=1e-2)
    assert max(gaps) <= exact_epsilon(epsilon, n_lambda, 1.0, loss) * (1 + 1e-6)


@pytest.mark.parametrize(
    "name", sorted(name for name in MECHANISMS if not MECHANISMS[name].takes_numbers({}))
)
def test_a_target_that_is_a_number_names_the_loss_that_learns_it(name):
    mechanism = MECHANISMS[name]
    meta = {"target": {"column": "visits"}, "bound": 1.0, "columns": ["a", "b"]}
    with pytest.raises(ValueError, match=r"learns classes .*'visits' is a number: ") as caught:
        arguments.of_mechanism(mechanism, meta, {})
    named = re.findall("`loss: (\\w+)`", str(caught.value))
    assert named or "these mechanisms do: adassp, " in str(caught.value)
    cell = {"epsilon": 1.0, "delta": 1e-5 if mechanism.delta == "needed" else 0.0}
    for loss in named:
        keyword_arguments = arguments.of_mechanism(mechanism, meta, {"loss": loss}, lam=0.1, **cell)
        mechanism.check(1000, 2, **keyword_arguments)
