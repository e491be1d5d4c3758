import math
from functools import partial

import numpy as np
import pytest

from dp import inference
from dp.losses import get
from dp.mechanisms import MECHANISMS
from dp.mechanisms.noise_aware import mean_square, second_moments
from dp.seeds import generator
from dp.solvers import minimise
from dp_privacy.accounting import gaussian_mu
from dp_privacy.errors import Refused

MECHANISM, NUMBERS = MECHANISMS["noise_aware_logistic"], MECHANISMS["noise_aware_log_cosh"]
THETA = np.array([2.0, -1.5, 1.0, 0.5, 0.0, 0.0])
DELTA = 1e-6


def rows(n, rng):
    X = rng.standard_normal((n, 6))
    X /= np.maximum(math.sqrt(6), np.linalg.norm(X, axis=1))[:, None]
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-X @ THETA)), 1, -1)


def coverage(n, epsilon, replicates, draws=4, **options):
    """Coverage of 95 % intervals, its Monte Carlo error, and the mean share of draws marked as coarse."""
    rng = generator(1, "coverage", n)
    lam = MECHANISM.rule_lambda(n, 6, epsilon, DELTA, **options)
    settings = {"epsilon": epsilon, "delta": DELTA, "lam": lam, "restarts": draws, "rng": rng}
    covered, coarse = [], []
    for _ in range(replicates):
        release = MECHANISM.release(*rows(n, rng), **settings, **options)
        intervals = inference.wald(release.weights, release.info["covariance"])
        covered.append(((intervals.low < THETA) & (intervals.high > THETA)).mean())
        coarse.append(release.info["coarse"].mean())
    return np.mean(covered), np.std(covered) / math.sqrt(replicates), np.mean(coarse)


@pytest.mark.parametrize("robust", [False, True])
def test_intervals_cover_where_the_linearisation_holds(robust):
    actual, error, coarse = coverage(5000, 1.0, 60, robust=robust)
    assert error < 0.012 and coarse == 0
    assert actual == pytest.approx(0.95, abs=0.02 + 2 * error)


def test_with_little_budget_most_releases_lack_an_interval_and_none_is_too_narrow():
    actual, error, coarse = coverage(500, 0.1, 20)
    assert coarse > 0.6 and actual > 0.95 - 2 * error


def hospital(n, rng):
    """Rows with a score, a category and a condition that one in 30 has; labels; the true coefficients."""
    score = np.clip(rng.normal(-0.3, 0.35, n), -1, 1)
    condition = np.where(rng.random(n) < 1 / 30, 1.0, -1.0)
    level = rng.choice(3, n, p=[0.6, 0.3, 0.1])[:, None] == [1, 2]
    X = np.column_stack([score, condition, level, np.ones(n)]) / math.sqrt(5)
    theta = math.sqrt(5) * np.array([1.5, 0.5, 0.6, -0.4, -0.5])
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-X @ theta)), 1, -1), theta


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_rare_levels_are_covered_or_say_that_they_are_not(epsilon):
    """With eigenvalues floored at the noise's norm, intervals would cover rare levels too rarely."""
    rng = generator(31)
    lam = MECHANISM.rule_lambda(3000, 5, epsilon, DELTA)
    settings = {"epsilon": epsilon, "delta": DELTA, "lam": lam, "restarts": 8, "rng": rng}
    hits, printed = [], []
    for _ in range(25):
        X, y, theta = hospital(3000, rng)
        info = (release := MECHANISM.release(X, y, **settings)).info
        ends = inference.wald(release.weights, info["covariance"])
        hits.append((ends.low <= theta) & (theta <= ends.high))
        printed.append(info["answered"])
    hits, printed = np.concatenate(hits), np.concatenate(printed)
    assert printed.mean() > 0.3
    for covered, shown in zip(hits.T, printed.T, strict=True):
        assert covered[shown].mean() > 0.9, "of each coefficient's, those that are printed"
        assert covered.mean() > 0.9, "and all of them: the rule selects no bad ones"


def test_the_rule_uses_nothing_but_what_was_released():
    X, y = rows(500, generator(32))
    lam = MECHANISM.rule_lambda(500, 6, 0.2, DELTA)
    settings = {"epsilon": 0.2, "delta": DELTA, "lam": lam}
    release = MECHANISM.release(X, y, restarts=40, rng=generator(33), **settings)
    info, p = release.info, MECHANISM.parameters(500, 6, **settings)
    plan = MECHANISM.plan(500, 6, **settings)
    deviation, _ = MECHANISM._scales(500, p, plan)
    actual = inference.linearise(
        info["minimiser"],
        info["hessian"],
        500,
        lam,
        plan.scale,
        plan.output_scale,
        deviation=deviation,
        change=partial(inference.logistic_change, level=info["level"]),
    )
    np.testing.assert_array_equal(actual.answered(), info["answered"])
    np.testing.assert_allclose(actual.covariance, info["covariance"])
    assert 0 < info["answered"].mean() < 1
    np.testing.assert_array_equal(info["coarse"], ~info["answered"].all(axis=1))


def test_symmetric_noise_has_the_covariance_that_is_stated():
    from dp.proofs.quadratics import coefficients, isotropic

    rng, u = generator(34), np.array([1.0, -2.0, 0.5])
    E, _ = isotropic(0.7 * rng.standard_normal((200_000, coefficients(3))), 3)
    stated = inference.symmetric_noise(np.outer(u, u)[None], 0.7)[0]
    np.testing.assert_allclose(np.cov((E @ u).T), stated, atol=0.02)


@pytest.mark.parametrize("mean", [0.6, 1.0, 1.7, 3.0])
def test_selected_eigenvalues_are_lowered_to_the_mean_they_have_without_selection(mean):
    """`unselected` turns a truncated normal variable's mean (by scipy) into the mean without truncation."""
    from scipy.stats import truncnorm

    deviation, t = 0.004, inference.SELECTED
    seen = mean + truncnorm.mean(t - mean, np.inf)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    released = deviation * turn @ np.diag([seen, 30.0]) @ turn.T
    actual = np.linalg.eigvalsh(inference.unselected(released[None], deviation)[0])
    np.testing.assert_allclose(actual, [deviation * mean, deviation * 30], rtol=1e-5)
    least = np.linalg.eigvalsh(inference.unselected(deviation * np.eye(2)[None], deviation)[0])
    np.testing.assert_allclose(least, deviation * inference.FLOOR)
    np.testing.assert_allclose(inference.unselected(released[None], 0.0)[0], released, rtol=1e-12)


def visits(n, rng):
    """Rows with age, ward, a count from 0 to 40 that is mostly near 0, and a constant; numeric targets."""
    age = np.clip(rng.normal(52, 13, n), 18, 90)
    ward = rng.choice(4, n, p=[0.3, 0.35, 0.1, 0.25])
    count = np.minimum(rng.negative_binomial(1.6, 1.6 / 5.6, n), 40)
    X = np.column_stack([(age - 54) / 36, ward[:, None] == range(3), count / 20 - 1, np.ones(n)])
    z = 0.005 * (age - 52) + np.array([-0.1, 0.08, -0.06, 0])[ward] + 0.015 * (count - 4) - 0.1
    return X / math.sqrt(6), np.clip(z + 0.15 * rng.standard_normal(n), -1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_count_is_covered_among_the_intervals_that_are_printed(epsilon):
    """In the count's direction, the Hessian is as small as its noise.

    Without `unselected`, 0.87 to 0.90 of 900 intervals cover the truth.
    """
    rng, loss = generator(41, int(2 * epsilon)), get("log_cosh", tau=0.25)
    (truth,), _ = minimise(*visits(500_000, rng), 1e-9, loss=loss)
    settings = {"epsilon": epsilon, "delta": DELTA, "loss": {"log_cosh": {"tau": 0.25}}}
    settings["lam"] = NUMBERS.rule_lambda(3000, 6, **settings)
    hits, printed = [], []
    for _ in range(1000):
        release = NUMBERS.release(*visits(3000, rng), restarts=2, rng=rng, **settings)
        ends = inference.wald(release.weights, release.info["covariance"])
        hits.append((ends.low <= truth) & (truth <= ends.high))
        printed.append(release.info["answered"])
    hits, printed = np.concatenate(hits), np.concatenate(printed)
    assert (printed.mean(axis=0) > 0.35).all()
    for covered, shown in zip(hits.T, printed.T, strict=True):
        least = 0.93 - 2 * math.sqrt(0.93 * 0.07 / shown.sum())
        assert covered[shown].mean() >= least and covered.mean() >= 0.93


def test_the_hessians_noise_is_counted():
    from dp.proofs.quadratics import coefficients, isotropic

    rng, n, lam, deviation = generator(35), 10**12, 0.03, 0.004
    H, w = np.diag([0.06, 0.1, 0.2]), np.array([[1.0, -2.0, 3.0]])
    E, _ = isotropic(deviation * rng.standard_normal((50_000, coefficients(3))), 3)
    weights = np.repeat(w, len(E), axis=0)
    actual = inference.linearise(weights, H + E, n, lam, 0.0, 0.0, deviation=deviation)
    stated = inference.linearise(w, H[None], n, lam, 0.0, 0.0, deviation=deviation)
    np.testing.assert_allclose(
        np.var(actual.estimate, axis=0), np.diag(stated.unresolved[0]), rtol=0.06
    )
    np.testing.assert_allclose(stated.covariance, stated.unresolved, rtol=1e-6)


def test_the_change_of_curvature_is_bounded_by_the_trace():
    rng, theta, u = generator(36), np.array([4.0, -2.0, 1.0]), np.array([0.3, 0.2, -0.1])
    X = rng.uniform(-1, 1, (200_000, 3)) / math.sqrt(3)
    z = X @ theta
    weight = 1 / (1 + np.exp(-z)) / (1 + np.exp(z))
    H = (X.T * weight) @ X / len(X)
    slope = np.tanh(z / 2) ** 2  # (d log l''/dz)^2
    moved = (weight * slope * (X @ u) ** 2).sum() / weight.sum()
    level = inference.curvature_level(H[None], 0.0)
    assert 0 < level[0] < weight.mean()
    bound = inference.logistic_change(H[None], np.outer(u, u)[None], level)[0]
    assert moved < bound < 20 * moved
    assert inference.logistic_change(H[None], np.outer(u, u)[None], -level)[0] == np.inf


def test_the_level_of_curvature_is_below_the_rows_own():
    from dp.proofs.quadratics import coefficients, isotropic

    H, rng = np.diag([0.03, 0.01, 0.02]), generator(38)
    noisy = H + isotropic(0.01 * rng.standard_normal((50_000, coefficients(3))), 3)[0]
    actual = inference.curvature_level(noisy, 0.01, bound=2.0)
    assert (actual < np.trace(H) / 4).mean() == pytest.approx(0.977, abs=0.004)


def test_without_an_answer_nothing_but_the_estimate_is_printed():
    answered = np.array([[True, False]])
    intervals = inference.wald(np.ones((1, 2)), np.eye(2)[None], answered=answered)
    for values in intervals[1:]:
        np.testing.assert_array_equal(np.isfinite(values), answered)
    assert (intervals.estimate == 1).all()


def test_the_debiased_bootstrap_finds_the_model_whose_mean_release_is_the_one_that_was_found():
    """A release of 1 implies a model of (1 - 0.2)/0.5 = 1.6."""

    def fit(X, y, rng):
        return 0.5 * y.mean(keepdims=True) + 0.2

    def draw(scores, rng):
        return scores + rng.standard_normal(len(scores))

    released, ones = np.array([1.0]), np.ones((400, 1))
    low, high = inference.bootstrap(released, ones, fit, generator(37), 400, draw=draw, rounds=12)
    assert (low + high) / 2 == pytest.approx(1.6, abs=0.02)
    assert high - low == pytest.approx(2 * 1.96 * 0.5 / 20, rel=0.15)
    low, high = inference.bootstrap(released, ones, fit, generator(37), 400, draw=draw)
    assert (low + high) / 2 == pytest.approx(1.3, abs=0.02)  # one step of the search


def test_variances_of_many_releases_of_the_same_rows_are_the_noise():
    rng = generator(3)
    X, y = rows(20_000, rng)
    lam = MECHANISM.rule_lambda(20_000, 6, 1.0, DELTA)
    release = MECHANISM.release(
        X, y, epsilon=1.0, delta=DELTA, lam=lam, restarts=600, rng=generator(4)
    )
    s = 1 / (1 + np.exp(-X @ release.weights.mean(axis=0)))
    sampling = np.linalg.inv((X.T * (s * (1 - s))) @ X)
    stated = release.info["covariance"].mean(axis=0) - sampling
    np.testing.assert_allclose(np.var(release.weights, axis=0), np.diag(stated), rtol=0.2)


def test_without_noise_and_ridge_it_is_the_textbooks_covariance():
    X, y = rows(3000, generator(5))
    (weights,), _ = minimise(X, y, 1e-8)
    import statsmodels.api as sm

    textbook = sm.Logit((y + 1) / 2, X).fit(disp=False)
    (hessian,) = second_moments(X, y, weights[None])
    actual = inference.linearise(weights[None], hessian / 3000, 3000, 1e-8, 0.0, 0.0)
    intervals = inference.wald(actual.estimate, actual.covariance)
    np.testing.assert_allclose(intervals.estimate[0], textbook.params, rtol=1e-4)
    np.testing.assert_allclose(intervals.standard_error[0], textbook.bse, rtol=1e-4)
    np.testing.assert_allclose(intervals.p_value[0], textbook.pvalues, rtol=1e-3)
    ends = np.stack([intervals.low[0], intervals.high[0]], axis=1)
    np.testing.assert_allclose(ends, textbook.conf_int(), rtol=1e-3)
    robust = sm.Logit((y + 1) / 2, X).fit(disp=False, cov_type="HC0")
    hessian, scores = second_moments(X, y, weights[None], scores=True)
    actual = inference.linearise(weights[None], hessian / 3000, 3000, 1e-8, 0.0, 0.0, scores / 3000)
    errors = inference.wald(actual.estimate, actual.covariance).standard_error[0]
    np.testing.assert_allclose(errors, robust.bse, rtol=1e-4)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("robust", [False, True])
def test_shares_of_the_budget_add_up(adjacency, robust):
    """Tilt, output noise and matrices compose to mu if n lambda is far above the Jacobian's threshold."""
    n, d, epsilon, bound = 4000, 3, 1.0, 1.5
    settings = {"epsilon": epsilon, "delta": DELTA, "lam": 0.2, "bound": bound}
    options = {"adjacency": adjacency, "robust": robust, "tolerance": 1e-8}
    p = MECHANISM.parameters(n, d, **settings, **options)
    plan = MECHANISM.plan(n, d, **settings, **options)
    one = 2 if adjacency == "replace-one" else 1
    moved = (2 + (one == 1) / n) * p.tolerance / p.lam
    frobenius = bound**2 * (math.sqrt(2) if one == 2 else 1) / n
    hessian, scores = MECHANISM._scales(n, p, plan)
    parts = [one * bound / plan.scale, moved / plan.output_scale, frobenius / 4 / hessian]
    if robust:
        parts.append(frobenius / scores)
    total = math.hypot(*parts)
    assert total == pytest.approx(gaussian_mu(epsilon, DELTA), rel=1e-6)
    assert (parts[2] / total) ** 2 == pytest.approx(0.15, rel=1e-4)
    guarantee = MECHANISM.guarantee(n, d, **settings, **options)
    assert guarantee.profile.delta(epsilon) <= DELTA * (1 + 1e-9)


def test_second_moments_move_by_at_most_their_sensitivities():
    rng = generator(6)
    largest = np.zeros(2)
    for _ in range(300):
        w = rng.standard_normal((1, 2)) * rng.choice([0.1, 1, 10])
        X = rng.standard_normal((2, 2))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        y = rng.choice([-1, 1], size=2)
        one, other = (second_moments(X[[k]], y[[k]], w, scores=True) for k in (0, 1))
        moved = [np.linalg.norm(a - b) for a, b in zip(one, other, strict=True)]
        largest = np.maximum(largest, moved)
    bounds = np.array([math.sqrt(2) / 4, math.sqrt(2)])
    assert (largest <= bounds).all() and (largest > 0.8 * bounds).all()


def test_second_moments_are_sums_over_all_blocks_of_rows():
    X, y = rows(70_000, generator(7))
    w = THETA[None] / 2
    hessian, scores = second_moments(X, y, w, scores=True)
    z = y * (X @ w[0])
    expected = (X.T * get("logistic").curvature(z)) @ X
    np.testing.assert_allclose(hessian[0], expected, rtol=1e-10)
    expected = (X.T * get("logistic").derivative(z) ** 2) @ X
    np.testing.assert_allclose(scores[0], expected, rtol=1e-10)


def test_bootstrap_intervals_of_an_exact_fit_are_the_textbooks():
    rng = generator(8)
    X, y = rows(2000, rng)
    (weights,), _ = minimise(X, y, 1e-6)
    (hessian,) = second_moments(X, y, weights[None])
    error = np.sqrt(np.diag(np.linalg.inv(hessian[0])))

    def fit(X, y, rng):
        return minimise(X, y, 1e-6)[0][0]

    low, high = inference.bootstrap(weights, X, fit, rng, replicates=300)
    np.testing.assert_allclose((high - low) / (2 * 1.96 * error), 1, atol=0.15)
    simulated = inference.logistic_rows(hessian[0] / 2000, weights, 20_000, 1.0, rng)
    assert np.linalg.norm(simulated, axis=1).max() <= 1 + 1e-12
    s = 1 / (1 + np.exp(-simulated @ weights))
    actual = (simulated.T * (s * (1 - s))) @ simulated / 20_000
    np.testing.assert_allclose(np.diag(actual), np.diag(hessian[0] / 2000), rtol=0.15)


@pytest.mark.parametrize("name", ["log_cosh", "huber_residual"])
@pytest.mark.parametrize("deviation", [0.02, 0.3, 2.0])
def test_the_spread_of_normal_errors_is_that_of_their_slopes(name, deviation):
    loss = get(name, tau=0.25)
    errors = deviation * generator(9).standard_normal(400_000)
    slope, curvature = loss.slopes(errors.copy())
    ratio = (slope**2).mean() / curvature.mean()
    actual, flat = inference.normal_errors(ratio, loss)
    assert actual == pytest.approx(deviation, rel=0.01)
    assert flat == pytest.approx(curvature.mean(), rel=0.01)


def test_simulated_rows_have_the_released_moment_and_keep_the_bound():
    moment = np.diag([0.1, 0.05, 0.01])
    X = inference.normal_rows(moment, 50_000, 1.0, generator(10))
    assert np.linalg.norm(X, axis=1).max() <= 1 + 1e-12
    np.testing.assert_allclose(X.T @ X / 50_000, moment, atol=0.004)


def linear_rows(n, rng):
    X, _ = rows(n, rng)
    return X, np.clip(X @ THETA / 4 + 0.1 * rng.standard_t(3, n), -1, 1)


WIDTH = {"loss": {"log_cosh": {"tau": 0.5}}}


def test_intervals_of_numbers_are_not_of_logistic_loss():
    X, y = linear_rows(100, generator(21))
    with pytest.raises(Refused, match="needs the loss log_cosh"):
        NUMBERS.release(X, y, epsilon=1.0, delta=DELTA, lam=0.1, rng=generator(22), loss="logistic")


@pytest.mark.parametrize("robust", [False, True])
def test_moments_of_residuals_move_by_at_most_their_sensitivities(robust):
    """The curvature's sensitivity is sqrt(2) c R^2, for l'' <= c and rows of norm at most R.

    The scores' sensitivity is sqrt(2) tau^2 R^2 if robust, else tau^2. Orthogonal rows attain
    those with a factor of sqrt(2).
    """
    tau, rng = 0.5, generator(23)
    loss = get("log_cosh", tau=tau)
    p = NUMBERS.parameters(50, 2, epsilon=1.0, delta=DELTA, lam=1.0, robust=robust, **WIDTH)
    plan = NUMBERS._plan(50, 2, p)
    mu = plan.mu_output * math.sqrt(p.covariance) / NUMBERS._second(vars(p))
    limits = np.array(NUMBERS._scales(50, p, plan)) * 50 * mu
    tilt_and_output = 2 * tau / plan.scale, plan.mu_output
    assert plan.mu_output**2 > 2 * mu**2  # mu_output composes both moments and the output noise
    assert math.hypot(*tilt_and_output) < gaussian_mu(1.0, DELTA)
    largest = np.zeros(2)
    for _ in range(2000):
        X = rng.standard_normal((2, 2))
        X /= np.linalg.norm(X, axis=1)[:, None]
        X[1] = X[0, ::-1] * [1, -1] if rng.random() < 0.3 else X[1]
        y, w = rng.choice([-1.0, 0.0, 1.0], 2), rng.standard_normal((1, 2)) * rng.choice([0.01, 3])
        each = [second_moments(X[i : i + 1], y[i : i + 1], w, True, loss) for i in (0, 1)]
        if not robust:
            for i in (0, 1):
                each[i][1] = mean_square(X[i : i + 1], y[i : i + 1], w, loss)
        moved = [np.linalg.norm(a - b) for a, b in zip(*each, strict=True)]
        largest = np.maximum(largest, moved)
    assert (largest <= limits * (1 + 1e-9)).all()
    assert (largest >= 0.95 * limits).all()


def test_one_number_stands_for_the_slopes_if_errors_do_not_depend_on_rows():
    """At large epsilon, non-robust intervals agree with robust ones unless residuals grow with a column."""
    rng = generator(26)
    X, y = linear_rows(40_000, rng)
    settings = {"epsilon": 50.0, "delta": DELTA, "lam": 1e-4, **WIDTH}

    def errors(y, robust, n=40_000):
        release = NUMBERS.release(X[:n], y[:n], rng=generator(27), robust=robust, **settings)
        intervals = inference.wald(release.weights, release.info["covariance"])
        return intervals.standard_error[0], release.info["coarse"][0]

    (one, coarse), (other, _) = errors(y, False), errors(y, True)
    np.testing.assert_allclose(one, other, rtol=0.03)
    assert not coarse
    uneven = np.clip(X @ THETA / 4 + 0.5 * X[:, 0] * rng.standard_normal(len(y)), -1, 1)
    (one, _), (other, _) = errors(uneven, False), errors(uneven, True)
    assert other[0] > 1.2 * one[0]
    settings |= {"epsilon": 0.05, "lam": 1.0}  # the noise is as large as the slopes' mean square
    assert errors(0 * y, False, n=2000)[1]


@pytest.mark.slow
@pytest.mark.parametrize("robust", [False, True])
def test_intervals_of_numbers_cover(robust):
    mechanism, rng = NUMBERS, generator(24)
    settings = {"epsilon": 1.0, "delta": DELTA, "loss": {"log_cosh": {"tau": 0.25}}}
    settings["robust"] = robust
    settings["lam"] = mechanism.rule_lambda(5000, 6, **settings)
    (truth,), _ = minimise(*linear_rows(300_000, rng), 1e-8, loss=get("log_cosh", tau=0.25))
    covered = []
    for _ in range(50):
        release = mechanism.release(*linear_rows(5000, rng), restarts=2, rng=rng, **settings)
        intervals = inference.wald(release.weights, release.info["covariance"])
        covered.append(((intervals.low < truth) & (intervals.high > truth)).mean())
        assert not release.info["coarse"].any()
    error = np.std(covered) / math.sqrt(len(covered))
    assert np.mean(covered) == pytest.approx(0.95, abs=0.02 + 2 * error)


def test_the_covariance_of_residuals_is_the_textbooks():
    """The reference uses numerical derivatives, since statsmodels has no log-cosh M-estimator."""
    X, y = linear_rows(4000, generator(25))
    loss = get("log_cosh", tau=0.25)
    (weights,), _ = minimise(X, y, 1e-9, loss=loss)

    def gradient(w):
        return X.T @ loss.derivative(X @ w - y)

    steps = 1e-6 * np.eye(6)
    H = np.array([(gradient(weights + s) - gradient(weights - s)) / 2e-6 for s in steps])
    each = X * loss.derivative(X @ weights - y)[:, None]
    expected = np.linalg.inv(H) @ (each.T @ each) @ np.linalg.inv(H)
    moments = second_moments(X, y, weights[None], True, loss)
    hessian, scores = (m / 4000 for m in moments)
    actual = inference.linearise(weights[None], hessian, 4000, 1e-9, 0.0, 0.0, scores)
    np.testing.assert_allclose(actual.covariance[0], expected, rtol=1e-4, atol=1e-9)
