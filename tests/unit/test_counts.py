import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import kstest, norm
from sklearn.metrics import d2_tweedie_score, mean_poisson_deviance
from test_gaussian_tilt import hockey_stick

from configured import changed
from dp.capped_exponential import CappedExponential
from dp.evaluation import counts
from dp.mechanisms import MECHANISMS
from dp.proofs import counts_tilt
from dp.seeds import generator
from dp_audit.replay import replay
from dp_privacy.accounting import ADD_REMOVE, gaussian_mu
from dp_privacy.errors import Refused
from dp_privacy.profiles import gaussian_profile
from study import arguments
from study.configuration.config import ConfigError

PRIVATE = ["counts_rate", "counts_gd", "counts_objective_perturbation"]
LARGEST = 12


def rows(n=3000, d=4, seed=1):
    """Rows in the unit ball with a constant last column, and counts of at most LARGEST."""
    rng = generator(seed, "counts")
    X = np.column_stack([rng.uniform(-1, 1, (n, d - 1)), np.ones(n)]) / math.sqrt(d)
    k = rng.poisson(2 * np.exp(X[:, 0] - 2 * X[:, 1]))
    return X, np.minimum(k, LARGEST)


def targets(k):
    return 2 * k / LARGEST - 1


def rates(release, X):
    return LARGEST * np.exp(release.weights @ X.T + release.info["intercept"][:, None])


@pytest.mark.parametrize("offset", [0.0, -0.7, -6.0])
def test_the_loss_has_the_slopes_of_its_values(offset):
    loss, z = CappedExponential(offset), np.linspace(-9, 9, 400)
    step = 1e-6
    slope, curvature = loss.slopes(z.copy())
    np.testing.assert_allclose(
        (loss.value(z + step) - loss.value(z - step)) / (2 * step), slope, atol=1e-8
    )
    smooth = np.abs(z + offset) > 2 * step
    change = (loss.derivative(z + step) - loss.derivative(z - step)) / (2 * step)
    np.testing.assert_allclose(change[smooth], curvature[smooth], atol=1e-8)
    assert (slope >= 0).all() and slope.max() <= loss.kappa and curvature.max() <= loss.c
    assert curvature.min() >= 0 and loss.value(-offset) == 1.0
    single = loss.slopes(z.astype(np.float32))
    assert single[0].dtype == single[1].dtype == np.float32


def test_below_the_cap_it_is_poissons_likelihood():
    from scipy.stats import poisson

    offset, k, z = -1.2, 5, np.linspace(-2, 1.2, 7)
    own = LARGEST * (CappedExponential(offset).value(z) - k / LARGEST * z)
    other = -poisson.logpmf(k, LARGEST * np.exp(offset + z))
    np.testing.assert_allclose(own - own[0], other - other[0], rtol=1e-10)


def test_the_fit_without_privacy_is_that_of_statsmodels():
    X, k = rows()
    release = MECHANISMS["counts_regression"].release(X, targets(k), lam=1e-10)
    reference = sm.GLM(k, X, family=sm.families.Poisson()).fit(tol=1e-14)
    fitted = rates(release, X)[0]
    assert release.status[0] == "ok" and fitted.max() < LARGEST
    np.testing.assert_allclose(fitted, reference.fittedvalues, rtol=1e-5)
    # The constant column is 1/2, and statsmodels' rates are not in units of LARGEST.
    weights = release.weights[0].copy()
    weights[3] += 2 * (release.info["intercept"][0] + math.log(LARGEST))
    np.testing.assert_allclose(weights, reference.params, rtol=1e-4)
    values = counts(release.weights, X, targets(k), release.info["intercept"], LARGEST)
    assert values["deviance"][0] == pytest.approx(reference.deviance / len(k), rel=1e-9)
    assert values["d2"][0] == pytest.approx(1 - reference.deviance / reference.null_deviance)


def test_metrics_are_those_of_scikit_learn():
    X, k = rows(500)
    weights, b = generator(2).standard_normal((3, 4)), np.array([-1.0, -2.0, 0.5])
    values = counts(weights, X, targets(k), b, LARGEST)
    capped = 0
    for each in range(3):
        predicted = LARGEST * np.minimum(np.exp(X @ weights[each] + b[each]), 1.0)
        capped += (predicted == LARGEST).sum()
        expected = mean_poisson_deviance(k, predicted)
        assert values["deviance"][each] == pytest.approx(expected, rel=1e-10)
        expected = d2_tweedie_score(k, predicted, power=1)
        assert values["d2"][each] == pytest.approx(expected, rel=1e-10)
    assert 0 < capped < 1500
    same = counts(weights, X, targets(np.full(500, 3)), b, LARGEST)
    assert np.isnan(same["d2"]).all() and (same["deviance"] > 0).all()
    zero = counts(weights, X, targets(np.zeros(500)), b, LARGEST)
    expected = 2 * LARGEST * np.minimum(np.exp(X @ weights[0] + b[0]), 1.0).mean()
    assert zero["deviance"][0] == pytest.approx(expected)


def slopes(z, v, offset):
    rate = np.exp(np.minimum(offset + z, 0.0))
    return rate - v, np.where(offset + z <= 0, rate, 0.0)


def deltas_1d(pull, v, offset, sigma, n_lambda, epsilon, row=1.0, points=40_001):
    """delta of (removing, adding) a one-column record; other records' gradients sum to -pull at any w.

    The density jumps where the rate reaches its cap of 1, which is halfway between two grid points.
    """
    w = np.linspace(pull - 14 * sigma - row, pull + row + 14 * sigma, points) / n_lambda
    cell = w[1] - w[0]
    w += ((-offset / row - w[0]) / cell % 1 - 0.5) * cell
    q, curvature = slopes(w * row, v, offset)
    scale = math.log(sigma * math.sqrt(2 * math.pi))
    without = -((pull - n_lambda * w) ** 2) / (2 * sigma**2) + math.log(n_lambda) - scale
    record = -((pull - n_lambda * w - q * row) ** 2) / (2 * sigma**2) - scale
    record += np.log(n_lambda + curvature * row**2)
    return hockey_stick(record, without, epsilon, cell), hockey_stick(
        without, record, epsilon, cell
    )


@pytest.mark.parametrize("v", [0.0, 0.2, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("n_lambda", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 4.0])
def test_no_density_in_one_dimension_exceeds_the_profile(v, n_lambda, epsilon):
    for sigma, offset in ((0.3, -0.5), (0.7, 0.0), (4.0, -1.5)):
        both = counts_tilt.profile(1 / sigma, 1 / n_lambda, ADD_REMOVE)
        for row in (1.0, 0.6):
            for at in (-30.0, -3.0, -1.0, 0.0, 3.0):
                pull = -offset * n_lambda + sigma * at
                remove, add = deltas_1d(pull, v, offset, sigma, n_lambda, epsilon, row)
                assert remove <= both.remove(epsilon) * (1 + 1e-4) + 1e-12
                assert add <= both.add(epsilon) * (1 + 1e-4) + 1e-12


def test_the_jacobian_has_to_be_paid_for():
    """Slope and curvature are largest just below the rate's cap. Gaussian noise covers only the slope."""
    sigma, n_lambda, epsilon = 1.0, 0.05, 1.0
    paid = counts_tilt.profile(1 / sigma, 1 / n_lambda, ADD_REMOVE)
    worst = max(
        deltas_1d(pull, 0.0, 0.0, sigma, n_lambda, epsilon)[0] for pull in np.linspace(-6, 6, 61)
    )
    assert 2 * gaussian_profile(1 / sigma, epsilon) < worst <= paid.remove(epsilon)


def two_tails(v, m, epsilon):
    """D(v) of `counts_tilt`, by quadrature."""
    c = np.linspace(-14 - m, 14 + m, 100_001)
    least = np.minimum(norm.pdf(c + m * v), norm.pdf(c - m * (1 - v)))
    return np.maximum(norm.pdf(c) - math.exp(epsilon) * least, 0.0).sum() * (c[1] - c[0])


@pytest.mark.parametrize("m", [0.05, 0.7, 8.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 5.0])
def test_slopes_of_two_signs_cost_no_more_than_those_of_one(m, epsilon):
    most = float(gaussian_profile(m, epsilon))
    deltas = [two_tails(v, m, epsilon) for v in (0.0, 0.03, 0.2, 0.4, 0.5, 0.7, 0.95, 1.0)]
    assert max(deltas) <= most * (1 + 1e-6) + 1e-9
    assert deltas[0] == pytest.approx(most, rel=1e-6, abs=1e-9) == deltas[-1]


def delta_2d(angle, shares, pull, sigma, n_lambda, epsilon, points=(601, 201)):
    """delta of replacing a row and its count/LARGEST, as in `test_gaussian_tilt.delta_2d`."""
    half, offset = math.radians(angle / 2), -0.7
    across = np.linspace(-10 * sigma - 1, 10 * sigma + 1, points[0]) / n_lambda
    along = np.linspace(-8 * sigma - 1, 8 * sigma + 1, points[1]) / n_lambda
    x, y = across[:, None], along[None, :] - pull / n_lambda

    def log_density(row, v):
        q, curvature = slopes(row[0] * x + row[1] * y, v, offset)
        b = -n_lambda * x - q * row[0], -pull - n_lambda * y - q * row[1]
        jacobian = 2 * math.log(n_lambda) + np.log1p(curvature / n_lambda)
        return jacobian - (b[0] ** 2 + b[1] ** 2) / (2 * sigma**2) - 2 * math.log(sigma)

    pair = [np.array([sign * math.sin(half), math.cos(half)]) for sign in (1, -1)]
    densities = [log_density(row, v) for row, v in zip(pair, shares, strict=True)]
    cell = (across[1] - across[0]) * (along[1] - along[0]) / (2 * math.pi)
    return hockey_stick(*densities, epsilon, cell)


@pytest.mark.parametrize(("angle", "shares"), [(179.0, (1, 1)), (120.0, (0.3, 1)), (0.0, (0, 1))])
@pytest.mark.parametrize("n_lambda", [0.3, 4.0])
def test_no_density_in_two_dimensions_exceeds_the_replace_one_profile(angle, shares, n_lambda):
    profile, largest = counts_tilt.profile(0.5, 1 / n_lambda), 0.0
    for e in (0.0, 0.2, 0.5, 1.5):
        for pull in (-3.0, 0.0, 1.0, 5.0, 100.0):
            actual = delta_2d(angle, shares, pull * n_lambda, 2.0, n_lambda, e)
            assert actual <= profile.delta(e) * (1 + 1e-3) + 1e-10
            largest = max(largest, actual / profile.delta(e))
    assert largest > 0.3 or angle < 179, "some pair comes close"


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
def test_all_releases_together_cost_what_is_stated(name, epsilon):
    settings = {"epsilon": epsilon, "delta": 1e-6, "bound": 2.0}
    settings["lam"] = MECHANISMS[name].rule_lambda(5000, 6, **settings)
    stated = MECHANISMS[name].guarantee(5000, 6, **settings)
    assert stated.epsilon == epsilon and stated.adjacency == "replace-one"
    spent = stated.profile.delta(epsilon)
    if name == "counts_rate":  # a pure guarantee
        assert spent == 0 < 1e-6 < stated.profile.delta(epsilon * 0.99)
    else:
        assert 0.99e-6 < spent <= 1e-6 * (1 + 1e-9)


def test_steps_and_rate_compose_to_mu():
    mechanism, settings = MECHANISMS["counts_gd"], {"epsilon": 1.0, "delta": 1e-6, "bound": 2.0}
    p = mechanism.parameters(5000, 6, **settings)
    own, steps, T, sigma = mechanism.plan(5000, p)
    assert math.hypot(own, steps) == pytest.approx(gaussian_mu(1.0, 1e-6))
    assert math.sqrt(T) * 2 * 2.0 / (5000 * sigma) == pytest.approx(steps)  # (2CR/n) / (sigma C)
    assert round(5000 * steps / 12) == T
    few, many = (
        mechanism.plan(n, mechanism.parameters(n, 6, epsilon=e, delta=1e-6))[2]
        for n, e in ((10, 0.1), (10**6, 8.0))
    )
    assert (few, many) == (1, 200)


@pytest.mark.parametrize("clip", [0.3, 2.0, 50.0])
def test_a_replaced_record_moves_what_gets_noise_by_its_sensitivity_at_most(clip):
    """The move reaches mu if a row's count goes from 0 to the maximum, and both slopes are clipped."""
    mechanism = MECHANISMS["counts_gd"]
    settings = {"epsilon": 1.0, "delta": 1e-5, "clip": clip, "iterations": 3}
    X, k = rows(40)
    y, mu, largest = targets(k), gaussian_mu(1.0, 1e-5), 0.0

    def released(X, y, rng):
        return mechanism.release(X, y, rng=rng, **settings).weights

    for row in (np.array([0.0, 0, 0, 1]), np.array([0.6, -0.8, 0, 0]), np.zeros(4)):
        for first, second in (
            ((row, -1), (-row, -1)),
            ((row, 1), (-row, 1)),
            ((row, -1), (row, 1)),
        ):
            neighbours = []
            for own_row, target in (first, second):
                own, other = X.copy(), y.copy()
                own[0], other[0] = own_row, target
                neighbours.append((own, other))
            replayed = replay(released, *neighbours, epsilon=1.0, delta=1e-5)
            assert replayed.finding == "holds" and replayed.mu <= mu * (1 + 1e-9), replayed.why
            largest = max(largest, replayed.mu)
    assert largest > 0.5 * mu
    assert clip > 1 or largest == pytest.approx(mu)


def test_the_tilt_that_is_paid_for_is_released():
    X, k = rows(200)
    mechanism = MECHANISMS["counts_objective_perturbation"]
    settings = {"epsilon": 1.0, "delta": 1e-5, "lam": 0.05, "clip": 3.0}
    release = mechanism.release(X, targets(k), restarts=1500, rng=generator(7), **settings)
    plan = mechanism.plan(200, 4, mechanism.parameters(200, 4, **settings))
    assert (release.status == "ok").all()
    rate = np.exp(release.info["intercept"])
    C = np.minimum(1.0, 3 * rate)[:, None]
    v = np.minimum(k / LARGEST, C) / C
    q = np.minimum(np.exp(release.weights @ X.T) * rate[:, None] / C, 1.0) - v
    b = -(q @ X) - 200 * 0.05 * release.weights
    for column in b.T:
        assert kstest(column / plan.scale, norm.cdf).pvalue > 1e-4
    noise = rate - k.mean() / LARGEST
    inside = rate < 1  # the released rate is clipped to (0, 1]
    assert inside.mean() > 0.9
    assert np.std(noise[inside]) == pytest.approx(1 / (200 * plan.mu_rate), rel=0.2)


@pytest.mark.parametrize("name", PRIVATE)
def test_it_learns_the_counts(name):
    X, k = rows(20_000)
    y = targets(k)
    plain = MECHANISMS["counts_regression"].release(X, y, lam=1e-9)
    best = counts(plain.weights, X, y, plain.info["intercept"], LARGEST)["d2"][0]
    settings = {"epsilon": 4.0, "delta": 1e-6}
    settings["lam"] = MECHANISMS[name].rule_lambda(20_000, 4, **settings)
    release = MECHANISMS[name].release(X, y, rng=generator(3), restarts=5, **settings)
    d2 = counts(release.weights, X, y, release.info["intercept"], LARGEST)["d2"]
    if name == "counts_rate":
        np.testing.assert_allclose(d2, 0, atol=1e-3)
    else:
        assert (d2 > 0.8 * best).all() and (d2 <= best + 1e-9).all()
    assert best > 0.2


def test_settings_whose_minimiser_cannot_be_certified_are_refused():
    settings = {"epsilon": 1.0, "delta": 1e-5}
    with pytest.raises(Refused, match="double precision"):
        MECHANISMS["counts_objective_perturbation"].guarantee(1000, 3, lam=1e-9, **settings)


NUMBER = {"bound": 1.0, "target": {"column": "visits", "bounds": [0, 20]}}
COUNT = NUMBER | {"target": NUMBER["target"] | {"counts": True}}


@pytest.mark.parametrize("name", [*PRIVATE, "counts_regression"])
def test_they_learn_what_is_declared_as_a_count(name):
    cell = {"epsilon": 1.0, "delta": 1e-6}
    assert arguments.of_mechanism(MECHANISMS[name], COUNT, {}, **cell)["bound"] == 1.0
    for meta in (NUMBER, {"bound": 1.0}):
        with pytest.raises(Refused, match=f"{name} learns counts alone"):
            arguments.of_mechanism(MECHANISMS[name], meta, {}, **cell)


def test_others_refuse_counts_and_counts_are_not_proposed_for_numbers():
    for name in ("adassp", "mean_direction"):
        with pytest.raises(Refused, match="'visits' is one: these mechanisms do: counts_gd, "):
            arguments.of_mechanism(MECHANISMS[name], COUNT, {}, epsilon=1.0, delta=1e-6)
    with pytest.raises(Refused, match="these mechanisms do") as caught:
        arguments.of_mechanism(MECHANISMS["mean_direction"], NUMBER, {}, epsilon=1.0, delta=1e-6)
    assert "adassp" in str(caught.value) and "counts" not in str(caught.value)


def test_lambda_is_not_tuned_by_a_metric_of_numbers():
    tune = {"grid": {"low": 0.1, "high": 1, "values": 3}, "folds": 2}
    with pytest.raises(ConfigError, match="tune: the target of randhie_counts is a count"):
        changed("counts", tune=tune)


@pytest.mark.parametrize("d", [64, 1000])
def test_a_record_does_not_decide_whether_scores_that_overflow_are_numbers(d):
    """On only one of two neighbours, a score has infinite terms of both signs, which sum to NaN."""
    finite = []
    for first in (np.eye(d)[0], np.full(d, 1 / np.sqrt(d))):
        X = np.zeros((3, d))
        X[0], X[1, 0], X[2, 1] = first, 1, 1
        settings = {"learning_rate": 1.5e308, "iterations": 2, "bound": 1e6, "restarts": 50}
        with np.errstate(all="ignore"):
            release = MECHANISMS["counts_gd"].release(
                1e6 * X,
                np.array([1.0, -1, 1]),
                epsilon=1.0,
                delta=1e-5,
                rng=np.random.default_rng(0),
                **settings,
            )
        finite.append((release.status == "ok").mean())
    assert finite[0] == finite[1]


@pytest.mark.parametrize("n", [300, 17_000, 1_000_000])
@pytest.mark.parametrize("d", [10, 200])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_the_rules_lambda_is_never_refused(n, d, epsilon):
    mechanism, budget = MECHANISMS["counts_objective_perturbation"], (epsilon, 1e-6)
    lam = mechanism.rule_lambda(n, d, *budget)
    mechanism.check(n, d, epsilon=epsilon, delta=1e-6, lam=lam)
    assert lam >= 1 / (n * np.expm1(epsilon / 10))


@pytest.mark.parametrize(
    ("n", "lam", "delta", "options", "said"),
    [
        (100, 1e-3, 1e-10, {}, "the Jacobian needs more than 50 times"),
        (1000, 1e-4, 1e-6, {"tolerance": 1e-3}, "the Jacobian needs more than 50 times"),
        (1000, 0.1, 1e-6, {"clip": 0.5}, "clip = 0.5 is below the mean count: give 1 or more"),
    ],
)
def test_useless_noise_and_clips_below_the_mean_are_refused(n, lam, delta, options, said):
    with pytest.raises(Refused, match=said):
        MECHANISMS["counts_objective_perturbation"].check(
            n, 3, epsilon=1.0, delta=delta, lam=lam, **options
        )
