import math
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import kstest, norm

from dp.mechanisms import MECHANISMS
from dp.proofs import gaussian_tilt
from dp.seeds import generator
from dp.solvers.newton import minimise
from dp_privacy.accounting import gaussian_delta, gaussian_mu, gaussian_sigma
from dp_privacy.errors import Refused

MECHANISM = MECHANISMS["gaussian_objective_perturbation"]
FREE = [
    case["inputs"] | {"expected": case["expected"]}
    for case in yaml.safe_load(Path("tests/vectors/gaussian_tilt.yaml").read_text())["cases"]
    if case["function"] == "sigma_where_free"
    and set(case["inputs"]) == {"epsilon", "delta", "adjacency"}
]


def rows(n=200, d=4):
    X = generator(3, "rows").standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] > 0, 1, -1)


@pytest.mark.parametrize("case", FREE)
@pytest.mark.parametrize("bound", [1.0, 2.5])
def test_noise_of_the_free_jacobian(case, bound):
    """If output noise takes s mu, the tilt's noise is `expected` * `bound` / sqrt(1 - s^2)."""
    case = dict(case)
    expected = case.pop("expected")
    settings = {"lam": 0.1 * bound**2, "bound": bound, "output": 0.01, "tolerance": 1e-8}
    plan = MECHANISM.plan(10_000, 5, **settings, **case)
    assert plan.scale == pytest.approx(expected * bound / math.sqrt(1 - 1e-4), rel=1e-5)
    mu = gaussian_mu(case["epsilon"], case["delta"])
    assert plan.mu_output == pytest.approx(0.01 * mu, rel=1e-4)
    moved = 2 + (case["adjacency"] == "add-remove") / 10_000
    assert plan.output_scale == pytest.approx(moved * 1e-8 / settings["lam"] / plan.mu_output)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("n_lambda", [0.6, 0.9, 1.5, 3.0, 50.0])
def test_the_profile_meets_delta_and_noise_is_raised_below_the_threshold(adjacency, n_lambda):
    n, epsilon, delta = 1000, 1.0, 1e-5
    settings = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency, "tolerance": 1e-8}
    lam = n_lambda / n
    guarantee, plan = (f(n, 3, lam=lam, **settings) for f in (MECHANISM.guarantee, MECHANISM.plan))
    assert guarantee.profile.delta(epsilon) == pytest.approx(delta, rel=1e-4)
    assert guarantee.profile.delta(epsilon) <= delta * (1 + 1e-9)
    # The tilt without the output noise does not spend all of delta.
    tilt = gaussian_tilt.tilt_delta(epsilon, plan.scale, n_lambda, adjacency=adjacency)
    assert tilt < delta
    free = gaussian_tilt.sigma_where_free(epsilon, delta, adjacency=adjacency)
    threshold = {"replace-one": 1.93064, "add-remove": 0.96532}[adjacency]
    assert ("Jacobian is free" in guarantee.reason) == (n_lambda > threshold)
    if n_lambda < 0.7 * threshold:
        assert plan.scale > 1.01 * free
    else:
        assert free < plan.scale < 1.01 * free
    assert f"standard deviation {plan.scale:.6g}" in guarantee.reason
    assert guarantee.adjacency == adjacency and guarantee.epsilon == epsilon


def test_where_no_noise_helps_it_is_refused():
    with pytest.raises(Refused, match="larger lambda, such as that of the rule"):
        MECHANISM.guarantee(1000, 3, epsilon=1.0, delta=1e-5, lam=1e-4, tolerance=1e-7)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", [1e-20, 1e-13, 1e-9, 1e-5])
@pytest.mark.parametrize("loss", ["logistic", {"log_cosh": {"tau": 0.25}}])
def test_the_rules_lambda_that_a_refusal_names_is_never_refused(adjacency, epsilon, loss):
    arguments = {"epsilon": epsilon, "delta": 1e-5, "adjacency": adjacency, "loss": loss}
    lam = MECHANISM.rule_lambda(300, 5, **arguments)
    MECHANISM.check(300, 5, lam=lam, **arguments)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_rules_lambda_makes_the_jacobian_free(adjacency, epsilon):
    for n, d, bound in ((1000, 3, 1.0), (36_177, 104, 1.0), (500, 30, 3.0)):
        lam = MECHANISM.rule_lambda(n, d, epsilon, 1e-6, bound, adjacency=adjacency)
        arguments = {"epsilon": epsilon, "delta": 1e-6, "lam": lam, "bound": bound}
        plan = MECHANISM.plan(n, d, **arguments, adjacency=adjacency, tolerance=1e-8)
        parts = 2 if adjacency == "replace-one" else 1
        mu = gaussian_mu(epsilon, 1e-6)
        assert plan.scale == pytest.approx(parts * bound / mu / math.sqrt(1 - 0.03**2), rel=1e-4)
        least = 20 / bound * lam * n / (math.sqrt(d) * plan.scale)
        assert least >= 1 - 1e-4  # the tilt moves the minimiser by at most 20/R


@pytest.mark.parametrize(
    "name", ["gaussian_objective_perturbation", "amp", "objective_perturbation_redberg"]
)
def test_tilts_and_output_noise_have_the_laws_that_are_paid_for(name):
    """The release determines the tilt, -n (gradient at w), up to an error from the output noise."""
    (X, y), n, d = rows(), 200, 4
    mechanism, lam = MECHANISMS[name], 0.3
    arguments = {"epsilon": 1.0, "delta": 1e-5, "lam": lam}
    if name == "objective_perturbation_redberg":
        arguments |= {"sigma_output": 1e-6, "gradient_norm": 1e-9 * n}
    release = mechanism.release(X, y, restarts=3000, rng=generator(4), **arguments)
    plan = mechanism.plan(n, d, **arguments)
    assert (release.status == "ok").all() and release.info["scale"] == plan.scale
    s = 1 / (1 + np.exp((release.weights @ X.T) * y))
    b = (s * y) @ X - n * (lam + plan.ridge) * release.weights
    wide = n * (lam + plan.ridge + 0.25) * plan.output_scale / plan.scale
    assert wide < 1e-3 or name == "amp"
    if wide < 1e-3:
        for column in b.T:
            assert kstest(column / plan.scale, norm.cdf).pvalue > 1e-4
    exact = minimise(X, y, lam + plan.ridge, plan.scale * generator(4).standard_normal((3000, d)))[
        0
    ]
    noise = (release.weights - exact) / plan.output_scale
    if plan.output_scale > 1e-5:
        assert kstest(noise.ravel(), norm.cdf).pvalue > 1e-4


def test_published_calibrations_are_what_the_sources_state():
    n, epsilon, delta = 5000, 1.0, 1e-5
    plan = MECHANISMS["amp"].plan(n, 10, epsilon=epsilon, delta=delta)
    share = 0.88671 + 0.0186607
    n_lambda = 2 / (0.99 * (1 - share))
    assert plan.ridge * n == pytest.approx(n_lambda)
    assert plan.tolerance == n**-2
    factors = [1 + math.sqrt(2 * math.log(1 / part)) for part in (0.99 * delta, 0.01 * delta)]
    assert plan.scale == pytest.approx(2 * factors[0] / (share * 0.99))
    assert plan.output_scale == pytest.approx(factors[1] / (n * n_lambda * 0.01))
    actual = MECHANISMS["objective_perturbation_redberg"].plan(n, 10, epsilon=epsilon, delta=delta)
    assert actual.output_scale == 0.15 and actual.tolerance == pytest.approx(5e-4 / n)
    assert actual.scale <= 1.3 * gaussian_sigma(epsilon, delta)
    assert actual.adjacency == "add-remove"


@pytest.mark.parametrize("name", ["amp", "objective_perturbation_redberg"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_published_calibrations_cost_less_than_they_claim(name, epsilon):
    """The tilt alone, as a Gaussian release, has the proven epsilon."""
    guarantee = MECHANISMS[name].guarantee(5000, 10, epsilon=epsilon, delta=1e-5)
    plan = MECHANISMS[name].plan(5000, 10, epsilon=epsilon, delta=1e-5)
    moved = 2 if name == "amp" else 1
    assert guarantee.claimed_epsilon == epsilon > guarantee.epsilon
    assert gaussian_delta(plan.scale, guarantee.epsilon, moved) <= 1e-5 * (1 + 1e-6)
    assert guarantee.profile.delta(guarantee.epsilon) == pytest.approx(1e-5, rel=1e-3)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_gaussian_output_perturbation(adjacency, loss):
    mechanism, (X, y) = MECHANISMS["output_perturbation_gaussian"], rows()
    arguments = {"epsilon": 0.7, "delta": 1e-6, "lam": 0.05, "adjacency": adjacency, "loss": loss}
    arguments |= {"tolerance": 1e-6}
    release = mechanism.release(X, y, restarts=4000, rng=generator(5), **arguments)
    moved = (2 if adjacency == "replace-one" else 1) / (200 * 0.05)
    moved += (2 + (adjacency == "add-remove") / 200) * 1e-6 / 0.05
    assert release.info["scale"] == pytest.approx(moved * gaussian_sigma(0.7, 1e-6))
    centre = minimise(X, y, 0.05, loss=loss)[0]
    noise = (release.weights - centre) / release.info["scale"]
    assert kstest(noise.ravel(), norm.cdf).pvalue > 1e-4
    guarantee = mechanism.guarantee(200, 4, **arguments)
    assert guarantee.profile.epsilon(1e-6) == pytest.approx(0.7)
    assert guarantee.adjacency == adjacency


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_adding_a_record_moves_the_minimiser_by_half_of_what_replacing_does(loss):
    """n lambda is fixed. Other records move the minimiser to where the added record's slope is largest."""
    largest = 0.0
    for others in (1, 30, 300):
        X = np.full((others, 1), 0.05 if loss == "logistic" else 0.0)
        y = -np.ones(others)
        more = np.append(X, [[1.0]], axis=0), np.append(y, 1.0)
        without = minimise(X, y, 1.0 / others, loss=loss, tolerance=1e-12)[0][0, 0]
        with_record = minimise(*more, 1.0 / (others + 1), loss=loss, tolerance=1e-12)[0][0, 0]
        largest = max(largest, abs(with_record - without))
    assert 0.3 < largest <= 1.0


LOG_COSH = {"log_cosh": {"tau": 0.25}}


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_log_cosh_costs_the_gaussian_noise_of_half_of_delta(adjacency, epsilon):
    """An addition costs two tails, a removal one. So replace-one needs less than the noise for delta/2."""
    n, d, bound = 20_000, 10, 2.0
    arguments = {"epsilon": epsilon, "delta": 1e-6, "bound": bound, "adjacency": adjacency}
    lam = MECHANISM.rule_lambda(n, d, loss=LOG_COSH, **arguments)
    arguments |= {"lam": lam, "loss": LOG_COSH, "tolerance": 1e-8}
    plan, actual = MECHANISM.plan(n, d, **arguments), MECHANISM.guarantee(n, d, **arguments)
    parts = 2 if adjacency == "replace-one" else 1
    scale = [parts * 0.25 * bound * gaussian_sigma(epsilon, 1e-6 / k) for k in (1, 2)]
    rise = 1 / math.sqrt(1 - 0.03**2)
    if adjacency == "add-remove":
        assert plan.scale == pytest.approx(scale[1] * rise, rel=1e-4)
    else:
        assert scale[0] * rise < plan.scale < scale[1] * rise * (1 + 1e-4)
    assert actual.profile.delta(epsilon) == pytest.approx(1e-6, rel=1e-4)
    assert actual.profile.delta(epsilon) <= 1e-6 * (1 + 1e-9)
    assert "Jacobian is free" in actual.reason


def test_log_cosh_releases_the_tilt_that_is_paid_for():
    X, _ = rows()
    y = np.clip(X @ [0.5, -0.3, 0.2, 0.0] + 0.1 * generator(6).standard_normal(200), -1, 1)
    arguments = {"epsilon": 1.0, "delta": 1e-5, "lam": 0.3, "loss": LOG_COSH}
    release = MECHANISM.release(X, y, restarts=3000, rng=generator(7), **arguments)
    plan = MECHANISM.plan(200, 4, **arguments)
    assert (release.status == "ok").all()
    slopes = 0.25 * np.tanh((release.weights @ X.T - y) / 0.25)
    b = -(slopes @ X) - 200 * 0.3 * release.weights
    for column in b.T:
        assert kstest(column / plan.scale, norm.cdf).pvalue > 1e-4


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_exact_densities_in_one_dimension_of_log_cosh_stay_below_the_profile(adjacency):
    """A record with a near or far target is removed or replaced, at many gradient sums of the others."""
    n_lambda, epsilon, tau, w = 3.0, 1.0, 0.25, np.linspace(-40, 40, 40_001)
    arguments = {"epsilon": epsilon, "delta": 1e-3, "lam": n_lambda / 100, "adjacency": adjacency}
    arguments |= {"loss": LOG_COSH, "tolerance": 1e-8}
    guarantee, plan = MECHANISM.guarantee(100, 1, **arguments), MECHANISM.plan(100, 1, **arguments)

    def density(pull, target):
        s = 0.0 if target is None else np.tanh((w - target) / tau)
        slope, curvature = (0.0, 0.0) if target is None else (tau * s, 1 - s**2)
        at = np.exp(-((n_lambda * w + pull + slope) ** 2) / (2 * plan.scale**2))
        at = at * (n_lambda + curvature)
        return at / at.sum()

    others = [None] if adjacency == "add-remove" else [-300.0, -1.0, -0.2, 0.5]
    worst = 0.0
    for pull in np.linspace(-6 * plan.scale, 6 * plan.scale, 35):
        for target in (-1.0, 0.0, 1.0, 300.0):  # targets need no bound
            p = density(pull, target)
            for q in (density(pull, other) for other in others):
                for a, b in ((p, q), (q, p)):
                    worst = max(worst, np.maximum(a - math.exp(epsilon) * b, 0).sum())
    assert 0.2 * 1e-3 < worst <= guarantee.profile.delta(epsilon) <= 1e-3 * (1 + 1e-9)


def test_losses_without_a_proof_are_refused():
    for loss in ("huber", "squared", "huber_residual"):
        with pytest.raises(Refused, match=f"logistic and log_cosh loss, not for {loss}"):
            MECHANISM.guarantee(1000, 3, epsilon=1.0, delta=1e-5, lam=0.1, loss=loss)
