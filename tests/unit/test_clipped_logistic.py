import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import kstest, norm
from test_gaussian_tilt import hockey_stick

from dp.clipped_logistic import ClippedLogistic
from dp.mechanisms import MECHANISMS
from dp.proofs import gaussian_tilt
from dp.proofs.curvature import Curvature
from dp.seeds import generator
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE
from dp_privacy.errors import Refused
from dp_privacy.profiles import gaussian_profile

MECHANISM = MECHANISMS["gaussian_objective_perturbation"]
CAPS = [0.3, 0.5, 0.75, 0.95]


def slopes(z, cap):
    s = expit(-z)
    return np.minimum(s, cap), np.where(s <= cap, s * (1 - s), 0.0)


def deltas_1d(pull, sigma, n_lambda, epsilon, cap, row=1.0, points=40_001):
    """delta of (removing, adding) the record `row`, as in `test_gaussian_tilt.deltas_1d`, with the cap.

    The density jumps where the slope reaches the cap. The grid has this w halfway between two points.
    """
    w = np.linspace(pull - 14 * sigma, pull + row + 14 * sigma, points) / n_lambda
    cell = w[1] - w[0]
    w += ((math.log(1 / cap - 1) / row - w[0]) / cell % 1 - 0.5) * cell
    s, curvature = slopes(w * row, cap)
    norm_ = math.log(sigma * math.sqrt(2 * math.pi))
    without = -((pull - n_lambda * w) ** 2) / (2 * sigma**2) + math.log(n_lambda) - norm_
    record = -((pull - n_lambda * w + s * row) ** 2) / (2 * sigma**2) - norm_
    record += np.log(n_lambda + curvature * row**2)
    return hockey_stick(record, without, epsilon, cell), hockey_stick(
        without, record, epsilon, cell
    )


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("n_lambda", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 4.0])
def test_no_density_in_one_dimension_exceeds_the_profile(cap, n_lambda, epsilon):
    """Some values of `pull` bring w to where the slope reaches the cap: there the Jacobian costs most."""
    for sigma in (0.7 * cap, 4.0 * cap):
        both = gaussian_tilt.profile(cap / sigma, 1 / n_lambda, ADD_REMOVE, "clipped_logistic", cap)
        bend = n_lambda * math.log(1 / cap - 1)
        for row in (1.0, 0.6):
            for pull in bend + sigma * np.array([-30.0, -3.0, -1.0, 0.0, 3.0]):
                remove, add = deltas_1d(pull, sigma, n_lambda, epsilon, cap, row)
                assert remove <= both.remove(epsilon) * (1 + 1e-4) + 1e-12
                assert add <= both.add(epsilon) * (1 + 1e-4) + 1e-12


def test_the_jacobian_has_to_be_paid_for():
    """If a record's slope is just below the cap, its curvature is nearly cap (1 - cap).

    The profile covers this curvature, and the Gaussian mechanism's delta does not.
    """
    cap, sigma, n_lambda, epsilon = 0.5, 1.0, 0.5, 1.0
    gaussian = gaussian_tilt.profile(cap / sigma, 1e-12, ADD_REMOVE, "clipped_logistic", cap)
    paid = gaussian_tilt.profile(cap / sigma, 1 / n_lambda, ADD_REMOVE, "clipped_logistic", cap)
    worst = max(
        deltas_1d(pull, sigma, n_lambda, epsilon, cap)[0] for pull in np.linspace(-6, 6, 61)
    )
    assert 1.3 * gaussian.remove(epsilon) < worst <= paid.remove(epsilon)


def earlier(e, m, r, adjacency):
    """The bounds with log(1 + r/4), from the largest curvature, at every slope."""
    J = math.log1p(r / 4)
    if adjacency == ADD_REMOVE:
        return gaussian_profile(m, np.maximum(e - J, 0.0))
    return gaussian_profile(2 * m, np.minimum(e, np.maximum(m * m, e - J)))


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("cap", [1e-3, 0.3, 0.5, 0.51, 0.75, 0.95, 1 - 1e-9])
def test_the_curvature_at_the_cap_costs_no_more_than_the_largest_one(adjacency, cap):
    e = np.concatenate([[0.0], np.geomspace(1e-3, 30, 400)])
    for m in (1e-3, 0.1, 0.5, 2.0):
        for r in (1e-4, 0.1, 1.0, 20.0, 1e4):
            at = gaussian_tilt.profile(m, r, adjacency, "clipped_logistic", cap).remove(e)
            assert (at <= earlier(e, m, r, adjacency) * (1 + 1e-9)).all()
            assert (np.diff(at) <= 1e-15).all()
    for epsilon in (0.1, 1.0, 4.0):
        for n_lambda in (0.3, 3.0 / epsilon, 100.0):
            r, delta = 1 / n_lambda, 1e-6
            arguments = n_lambda, 1.0, cap, adjacency, "clipped_logistic"
            try:
                sigma = gaussian_tilt.calibrate(epsilon, delta, *arguments)
            except ValueError:
                assert earlier(epsilon, 1e-6, r, adjacency) > delta
                continue
            scaled = np.array(sigma * (1 - 1e-6))  # by the earlier bound, no smaller sigma suffices
            assert earlier(epsilon, float(cap / scaled), r, adjacency) > delta


@pytest.mark.parametrize("cap", [0.75, 0.95])
def test_an_exact_removal_refutes_wrong_conditions(cap):
    """J left out, and the J of the cap from e = J on, whatever the curvature below the cap is."""
    left_out = early = False
    for m, r in ((0.3, 6.0), (0.3, 2.0), (0.6, 12.0)):
        (J, t), _ = Curvature("clipped_logistic", r, cap).tangents
        sigma, n_lambda = cap / m, 1 / r
        for e in J + (t - m * m / 2) * np.array([0.0, 0.2, 0.5, 1.0]):
            at = n_lambda * math.log(1 / cap - 1) + sigma * np.linspace(-20, 6, 53)
            exact = max(deltas_1d(pull, sigma, n_lambda, e, cap)[0] for pull in at)
            bound = gaussian_tilt.removal(e, m, r, "clipped_logistic", cap)
            assert exact <= bound * (1 + 1e-4) + 1e-14
            left_out |= bool(exact > 1.5 * gaussian_profile(m, e))
            early |= bool(exact > 1.5 * gaussian_profile(m, e - J))
    assert left_out
    assert early or cap == 0.75


def delta_2d(angle, pull, sigma, n_lambda, epsilon, cap, points=(601, 201)):
    """delta of replacing a unit row by one `angle` degrees away, as in `test_gaussian_tilt.delta_2d`."""
    half = math.radians(angle / 2)
    across = np.linspace(-10 * sigma - 1, 10 * sigma + 1, points[0]) / n_lambda
    along = np.linspace(-8 * sigma - 1, 8 * sigma + 1, points[1]) / n_lambda
    x, y = across[:, None], along[None, :] - pull / n_lambda

    def log_density(row):
        s, curvature = slopes(row[0] * x + row[1] * y, cap)
        b = -n_lambda * x + s * row[0], -pull - n_lambda * y + s * row[1]
        jacobian = 2 * math.log(n_lambda) + np.log1p(curvature / n_lambda)
        return jacobian - (b[0] ** 2 + b[1] ** 2) / (2 * sigma**2) - 2 * math.log(sigma)

    rows = [np.array([sign * math.sin(half), math.cos(half)]) for sign in (1, -1)]
    cell = (across[1] - across[0]) * (along[1] - along[0]) / (2 * math.pi)
    return hockey_stick(log_density(rows[0]), log_density(rows[1]), epsilon, cell)


@pytest.mark.parametrize("cap", [0.5, 0.75])
@pytest.mark.parametrize("angle", [179.0, 120.0, 20.0])
@pytest.mark.parametrize("n_lambda", [0.3, 4.0])
def test_no_density_in_two_dimensions_exceeds_the_replace_one_profile(cap, angle, n_lambda):
    sigma = 2.0 * cap
    profile = gaussian_tilt.profile(cap / sigma, 1 / n_lambda, loss="clipped_logistic", slope=cap)
    largest = 0.0
    for e in (0.0, 0.2, 0.5, 1.5):
        for pull in (-3.0, 0.0, 1.0, 5.0, 100.0):
            actual = delta_2d(angle, pull * n_lambda, sigma, n_lambda, e, cap)
            assert actual <= profile.delta(e) * (1 + 1e-3) + 1e-10
            largest = max(largest, actual / profile.delta(e))
    assert largest > 0.3 or angle < 179, "some pair comes close"


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 4.0])
def test_the_guarantee_is_met_with_less_noise_than_logistic_loss_needs(adjacency, epsilon):
    settings = {"epsilon": epsilon, "delta": 1e-6, "adjacency": adjacency}
    lam = MECHANISM.rule_lambda(5000, 10, clip=0.75, **settings)
    settings |= {"lam": lam, "tolerance": 1e-8}
    plan = MECHANISM.plan(5000, 10, clip=0.75, **settings)
    usual = MECHANISM.plan(5000, 10, **settings)
    stated = MECHANISM.guarantee(5000, 10, clip=0.75, **settings)
    most = 0.83 if adjacency == REPLACE_ONE else 0.86  # the cap, plus the Jacobian's cost
    assert 0.75 < plan.scale / usual.scale < most
    assert stated.epsilon == epsilon and "Jacobian costs at most" in stated.reason
    assert 0.999e-6 < stated.profile.delta(epsilon) <= 1e-6 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("adjacency", "cap"), [(REPLACE_ONE, 0.75), (ADD_REMOVE, 0.3), (ADD_REMOVE, 0.95)]
)
def test_output_noise_is_composed_although_the_profile_has_kinks_and_jumps(adjacency, cap):
    """In the first case, integrating over unit intervals of z would miss a kink near an interval's end."""
    cases = [(0.00010826662225969308, 0.010405124807501978, 0.02002549786993048, 16.19)]
    cases += [(0.1, 0.05, 0.003, 0.02), (1.0, 0.3, 0.2, 1.5), (4.0, 0.5, 0.02, 30.0)]
    for epsilon, m, mu, r in cases:
        one = gaussian_tilt.profile(m, r, adjacency, "clipped_logistic", cap)
        z = (np.arange(500_000) + 0.5) / 500_000 * 24 - 12
        # A removal and an addition are composed each by itself: the worse of both is between the two.
        weights = np.exp(-z * z / 2) * 24 / 500_000 / math.sqrt(2 * math.pi)
        losses = epsilon - mu * mu / 2 - mu * z
        expected = max((way(losses).clip(0, 1) * weights).sum() for way in one.directions)
        actual = gaussian_tilt.composed_delta(
            epsilon, m, mu, r, adjacency, "clipped_logistic", slope=cap
        )
        # The sum may place a jump wrong by a cell.
        assert actual == pytest.approx(expected, rel=4e-5, abs=1e-30)
        assert actual >= expected * (1 - 4e-5)


def test_the_tilt_that_is_paid_for_is_released():
    rng = generator(3)
    X = rng.standard_normal((200, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(200) > 0, 1, -1)
    arguments = {"epsilon": 1.0, "delta": 1e-5, "lam": 0.02, "clip": 0.75}
    release = MECHANISM.release(X, y, restarts=3000, rng=generator(7), **arguments)
    plan = MECHANISM.plan(200, 4, **arguments)
    assert (release.status == "ok").all()
    s = slopes(release.weights @ X.T * y, 0.75)[0] * y
    b = s @ X - 200 * 0.02 * release.weights
    for column in b.T:
        assert kstest(column / plan.scale, norm.cdf).pvalue > 1e-4


@pytest.mark.parametrize("cap", [0.6, 0.75, 0.9])
@pytest.mark.parametrize("log_odds", [0.0, 0.2, 1.0, 3.0, 8.0])
def test_the_best_score_is_what_is_said_of_calibration(cap, log_odds):
    loss, p = ClippedLogistic(cap), expit(log_odds)

    def risk(z):
        return float(p * loss.value(z) + (1 - p) * loss.value(-z))

    best = minimize_scalar(risk, bounds=(-1, 15), method="bounded", options={"xatol": 1e-9}).x
    bend = math.log(cap / (1 - cap))
    expected = log_odds if log_odds <= bend else math.log(math.exp(log_odds) / cap - 1)
    assert best == pytest.approx(expected, abs=1e-4)
    assert 0 <= expected - log_odds < math.log(1 / cap)


def test_a_clip_is_for_logistic_loss():
    with pytest.raises(Refused, match="clip is for logistic loss"):
        MECHANISM.guarantee(100, 3, epsilon=1.0, delta=1e-5, lam=0.1, clip=0.5, loss="log_cosh")


def test_no_lambda_makes_its_jacobian_free():
    with pytest.raises(ValueError, match="no Lambda"):
        gaussian_tilt.least_regularisation(1.0, 0.2, loss="clipped_logistic")
