"""The paid offset: what is released, what it costs, and that it is inside the loss."""

import math

import numpy as np
import pytest
from scipy.stats import kstest, laplace, norm

from dp import losses
from dp.mechanisms import MECHANISMS
from dp.offset import Centre, Offset, gaussian_share
from dp.proofs import gaussian_tilt
from dp.seeds import generator
from dp_audit import replay
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE, gaussian_epsilon, gaussian_mu
from dp_privacy.errors import Refused

GAUSSIAN, KNORM = (MECHANISMS[f"{name}_objective_perturbation"] for name in ("gaussian", "knorm"))


def rows(n, d=3, seed=5):
    rng = generator(seed, "offset")
    X = rng.uniform(-1, 1, (n, d)) / math.sqrt(d)
    return X, np.clip(0.7 + 0.5 * X[:, 0] + 0.2 * rng.standard_normal(n), -1, 1), rng


@pytest.mark.parametrize("mechanism", [GAUSSIAN, KNORM], ids=lambda each: each.name)
@pytest.mark.parametrize("loss", ["logistic", "log_cosh"])
def test_the_released_point_minimises_the_loss_with_its_offset(mechanism, loss):
    X, y, _ = rows(300)
    y = y if loss == "log_cosh" else np.where(y > 0.4, 1, -1)
    asked = {"epsilon": 1e4, "delta": 1e-6, "lam": 0.3, "loss": loss, "offset": "paid"}
    found = mechanism.release(X, y, restarts=3, rng=generator(6), **asked)
    of = losses.get(loss)
    for w, o in zip(found.weights, found.info["intercept"], strict=True):
        expected = y.mean() if loss == "log_cosh" else math.log((y > 0).mean() / (y < 0).mean())
        assert o == pytest.approx(expected, abs=0.02)
        if loss == "log_cosh":
            gradient = of.derivative(X @ w + o - y) @ X / 300
        else:
            gradient = (of.derivative(y * (X @ w + o)) * y) @ X / 300
        assert np.linalg.norm(gradient + 0.3 * w) < 2e-3  # the tilt, at this epsilon
        assert np.linalg.norm(gradient) > 0.01


def test_the_loss_of_numbers_with_an_offset_is_that_of_its_residuals():
    of, y, o = losses.get("log_cosh"), np.array([-1.0, 0.3, 1.0]), 0.8
    loss, X = Offset(of, 2.0), np.array([[0.4], [-1.0], [0.2]])
    targets = loss.targets(y, o)
    assert (np.abs(targets) <= 1).all()
    z = loss.rows(X, y) @ np.array([1.7]) - targets
    residuals = X @ np.array([1.7]) + o - y
    np.testing.assert_allclose(loss.value(z), of.value(residuals), rtol=1e-12)
    slope, curvature = loss.slopes(z.copy())
    np.testing.assert_allclose(slope / 2, of.derivative(residuals), rtol=1e-12)
    np.testing.assert_allclose(curvature / 4, of.curvature(residuals), rtol=1e-12)
    assert loss.at_zero() >= of.value(2.0) * (1 - 1e-12)


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("clip", [None, 0.75])
def test_shares_of_a_gaussian_release_add_up(adjacency, clip):
    asked = {"epsilon": 1.0, "delta": 1e-6, "lam": 0.05, "adjacency": adjacency, "clip": clip}
    plain = GAUSSIAN.plan(500, 4, **asked)
    plan = GAUSSIAN.plan(500, 4, **asked, offset="paid")
    share = gaussian_share(500, gaussian_mu(1.0, 1e-6))
    assert plan.mu_rate**2 / share == pytest.approx(plan.mu_output**2 / 0.03**2)
    assert plan.scale / plain.scale == pytest.approx(1 / math.sqrt(1 - share), rel=0.01)
    guarantee = GAUSSIAN.guarantee(500, 4, **asked, offset="paid")
    slope = clip or 1.0
    delta = gaussian_tilt.composed_delta(
        1.0,
        slope / plan.scale,
        math.hypot(plan.mu_output, plan.mu_rate),
        1 / (500 * 0.05),
        adjacency,
        "clipped_logistic" if clip else "logistic",
        slope=slope,
    )
    assert guarantee.profile.delta(1.0) == pytest.approx(delta)
    assert 0.99e-6 < delta <= 1e-6 * (1 + 1e-9)
    assert "that of the number of labels 1, with Gaussian noise" in guarantee.reason
    assert "tilt of standard deviation" in guarantee.reason


def test_the_share_is_what_resolves_the_mean():
    assert gaussian_share(10, 0.1) == 0.15 and gaussian_share(10**7, 1.0) == 0.01
    share = gaussian_share(2000, 0.8)
    assert 1 / (2000 * 0.8 * math.sqrt(share)) == pytest.approx(0.0025)
    with pytest.raises(Refused, match="leave nothing of mu"):
        GAUSSIAN.plan(10, 2, epsilon=0.1, delta=1e-6, lam=5.0, output=0.95, offset="paid")


@pytest.mark.parametrize(
    ("mechanism", "law"), [(GAUSSIAN, norm), (KNORM, laplace)], ids=("gaussian", "laplace")
)
def test_an_offset_of_numbers_is_the_noisy_mean_and_no_more(mechanism, law):
    n = 1500
    X, y = np.zeros((n, 1)), rows(n)[1]
    asked = {"epsilon": 1.0, "delta": 1e-6, "lam": 1.0, "loss": "log_cosh", "offset": "paid"}
    found = mechanism.release(X, y, restarts=2000, rng=generator(7), **asked)
    plan = mechanism.plan(n, 1, **asked)
    scale = 1 / plan.mu_rate if mechanism is GAUSSIAN else 1 / plan.rate
    variance = scale**2 * (1 if mechanism is GAUSSIAN else 2) / n**2
    rates = 0.5 + found.info["intercept"] / 2 * (1 + 12 * variance)
    noise = rates * n - ((y + 1) / 2).sum()
    assert kstest(noise / scale, law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_a_record_moves_the_sum_by_what_its_noise_covers(law, numbers):
    """By a replay with all targets at one end, of which one goes to the other end, or away."""
    cost = 0.3
    centre = Centre(30, 1 / cost, gaussian=law == "gaussian", numbers=numbers)
    X, y = np.zeros((30, 1)), np.ones(30)
    other = np.where(np.arange(30), y, -1.0)

    def run(X, y, rng):
        return centre.drawn(y, 1, rng)

    for second in ((X, other), (X[1:], y[1:])):
        epsilon = gaussian_epsilon(1 / cost, 1e-6) if law == "gaussian" else cost
        found = replay.replay(run, (X, y), second, epsilon=epsilon * 1.0001, delta=1e-6)
        if law == "laplace" and not numbers:  # whole numbers: counted, not compared
            assert found.finding == "not additive", found.why
            continue
        assert found.finding == "holds", found.why
        assert (found.mu if law == "gaussian" else found.pure) == pytest.approx(cost)


def test_offsets_of_numbers_stay_within_their_bounds():
    centre = Centre(50, 30.0, gaussian=False, numbers=True)
    drawn = centre.drawn(np.full(50, -1.0), 1000, generator(8))
    assert np.abs(drawn).max() <= 1 and drawn.std() > 0.1
    for y in (-1.0, 1.0):
        assert (np.abs(Offset(losses.get("log_cosh"), centre.unit).targets(y, drawn)) <= 1).all()
