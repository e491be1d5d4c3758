"""The mechanisms `*_released` behave like the published programs that they imitate."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest, laplace

from analyses.accounting_methods import gaussians, zero_concentrated
from dp.mechanisms import MECHANISMS
from dp.mechanisms.published.released import zero_concentrated as released_rho
from dp.seeds import generator
from dp_audit import pairs, replay
from dp_audit.recorder import Recorder, Tape
from dp_privacy.accounting import ADD_REMOVE, gaussian_sigma
from dp_privacy.composition import sampled_multiplier
from plots.curves import left_out
from study.configuration.data_set_keys import Target
from study.data.readers import target

RELEASED = ("amp", "adassp", "functional", "least_squares", "poisson_sgd", "newton", "cells")


def rows(n=200, d=2):
    rng = generator(1, "released")
    X = rng.random((n, d)) / math.sqrt(d)
    return X, np.clip(X @ np.linspace(0.8, -0.5, d) + 0.1 * rng.standard_normal(n), -1, 1)


def release(name, X, y, draws, seed=2, **options):
    mechanism = MECHANISMS[f"{name}_released"]
    delta = {"delta": 1e-6} if mechanism.delta == "needed" else {}
    arguments = {"epsilon": 1.0, "lam": 0.0, "restarts": draws, "rng": generator(seed)} | delta
    return mechanism.release(X, y, **arguments | options)


@pytest.mark.parametrize("name", RELEASED)
def test_nothing_finite_is_proven_of_them(name):
    mechanism = MECHANISMS[f"{name}_released"]
    options = {"delta": 1e-6} if mechanism.delta == "needed" else {}
    options |= {"records": "private"} if name == "poisson_sgd" else {}
    guarantee = mechanism.guarantee(100, 2, epsilon=1.0, lam=0.1, **options)
    assert guarantee.claimed_epsilon == 1.0 and math.isinf(guarantee.epsilon)


def test_amp_has_256_releases():
    X, y = rows()
    weights = release("amp", X, np.where(y > 0, 1, -1), 4000).weights
    assert 250 < len(np.unique(weights.round(9), axis=0)) <= 256


def test_adassp_scales_by_the_rows_own_targets_and_columns():
    X, y = rows()
    first = release("adassp", X, y, 5).weights
    np.testing.assert_allclose(release("adassp", X, 0.01 * y, 5).weights, first, rtol=1e-9)
    moved = X * [0.5, 0.1] + [0.01, 0.2]
    np.testing.assert_allclose(release("adassp", moved, y, 5).weights, first, rtol=1e-9)


def test_the_sum_of_squares_has_no_noise_and_the_moment_has():
    """In one dimension, x y has sensitivity 2 and a third of epsilon = 1, so its noise has scale 6."""
    X, y = rows(50, 1)
    weights = release("functional", X, y, 4000).weights[:, 0]
    noise = weights * (X.T @ X).item() - X[:, 0] @ y
    assert kstest(noise, laplace(scale=6).cdf).pvalue > 1e-4


def test_centring_is_least_squares_with_an_intercept_and_spends_a_share_twice():
    mechanism, rng = MECHANISMS["functional_centred_released"], generator(3, "centred")
    X = rng.uniform(0, 0.7, (300, 2))
    y = np.clip(X @ [1.0, -1.0] + 0.1 * rng.standard_normal(300), -1, 1)
    release = mechanism.release(X, y, epsilon=1e9, rng=rng)
    expected = np.linalg.lstsq(np.column_stack([X, np.ones(300)]), y, rcond=None)[0]
    np.testing.assert_allclose(release.weights[0], expected[:2], atol=1e-5)
    assert release.info["intercept"][0] == pytest.approx(expected[2], abs=1e-5)
    # With one column, mean x, mean y, x y and x^2 get noise. A share of epsilon goes to y^2, which the
    # weights do not use.
    shares = []

    class Followed(Recorder):
        def law(self, function, dimension, scale, size):
            shares.append((dimension, scale))
            return super().law(function, dimension, scale, size)

    x = np.full((50, 1), 0.5)
    rng = Followed(np.random.PCG64(1), Tape())
    mechanism.release(x, np.zeros(50), epsilon=1.0, rng=rng)
    (_, of_x), (_, of_y), (count, of_sums) = shares
    assert (1 / 50 / of_x, 2 / 50 / of_y) == pytest.approx((0.5, 0.5))
    assert (1 + count) / of_sums == pytest.approx(0.5)
    replayed, _ = replay.of_mechanism(mechanism, "least_eigenvalue", 1.0)
    assert replayed.epsilon > 500


def test_the_noise_on_least_squares_has_the_rows_own_scale():
    X, y = rows()
    least = np.linalg.eigvalsh(X.T @ X)[0]
    weights = release("least_squares", X, y, 20_000).weights
    fit = np.linalg.lstsq(X, y, rcond=None)[0]
    sigma = gaussian_sigma(1.0, 1e-6, 3 * 2 / least)
    np.testing.assert_allclose(((weights - fit) / sigma).std(axis=0), 1, atol=0.03)
    assert (release("least_squares", X[:, [0, 0]], y, 3).status == "refused").all()


def test_steps_and_divisor_of_poisson_batches_follow_the_number_of_records():
    """Releases of tiny rows are noise, whose variance is steps * (sigma / divisor)^2."""
    for n, steps, sampling, divisor in ((128, 2, 1 / 2, 64), (129, 3, 1 / 3, 43), (60, 1, 1, 60)):
        actual = release("poisson_sgd", np.full((n, 4), 1e-9), np.ones(n), 20_000).weights.std()
        sigma = gaussian_sigma(1.0, 1e-6)
        if steps > 1:
            sigma, _ = sampled_multiplier(1.0, 1e-6, steps, sampling, ADD_REMOVE)
        assert actual == pytest.approx(math.sqrt(steps) * sigma / divisor, rel=0.02)


def test_where_n_is_public_the_claim_on_poisson_batches_is_proven():
    """`dp_sgd_poisson` without `public_n` shares the program's assumption and accounting."""
    program, ours = MECHANISMS["poisson_sgd_released"], MECHANISMS["dp_sgd_poisson"]
    guarantee = program.guarantee(129, 8, epsilon=1.0, delta=1e-6)
    same = {"adjacency": "add-remove", "sampling": 1 / 3, "iterations": 3}
    stated = ours.guarantee(129, 8, epsilon=1.0, delta=1e-6, **same)
    assert guarantee.epsilon == stated.epsilon == 1.0 and guarantee.adjacency == stated.adjacency
    for epsilon in (0.1, 0.5, 1.0):
        assert guarantee.profile.delta(epsilon) == stated.profile.delta(epsilon)
    premise = "n is the number of records, taken as public: the same with or without a record"
    assert premise in guarantee.reason and premise in stated.reason


def test_the_length_of_newtons_step_follows_the_exact_direction():
    """Noisy directions hide a tiny row. The exact one is long, so the step is shorter than for zeros."""
    y = np.ones(40, dtype=np.int8)
    spread = []
    for size in (0.0, 0.01):
        X = np.zeros((40, 3))
        X[0, 0] = size
        w = release("newton", X, y, 4000, iterations=1).weights
        spread.append(np.median(np.abs(np.linalg.norm(w, axis=1))))
    assert spread[0] > 10 * spread[1]


def test_rho_is_that_of_the_conversions():
    for epsilon in (0.1, 1.0, 8.0):
        rho = released_rho(epsilon, 1e-6)
        back = rho + math.sqrt(4 * rho * math.log(math.sqrt(math.pi * rho) / 1e-6))
        assert back == pytest.approx(epsilon)
        rho = zero_concentrated(epsilon, 1e-6)
        assert rho + 2 * math.sqrt(rho * math.log(1e6)) == pytest.approx(epsilon)


def test_noise_by_each_accounting():
    one = gaussians([2.0], 1.0, 1e-6)
    assert one["split"] == pytest.approx(2 * gaussian_sigma(1.0, 1e-6)) == one["gdp"]
    assert one["exact"] == one["gdp"] < one["zcdp"]
    four = gaussians([1.0] * 4, 1.0, 1e-6)
    assert four["gdp"] == pytest.approx(2 * gaussian_sigma(1.0, 1e-6))
    assert four["split"] == pytest.approx(gaussian_sigma(0.25, 2.5e-7))
    assert four["gdp"] < four["zcdp"] < four["split"]


def test_targets_may_be_logarithms_on_the_scale_of_one():
    spec = Target(column="c", bounds=[0, 2], log=True, scaled=True)
    actual = target(np.exp([0.0, 0.5, 3.0]), spec)
    np.testing.assert_allclose(actual["y"], [-1, -0.5, 1])
    assert actual["target"] == ("c", -1, 1)
    with pytest.raises(ValueError, match="without a logarithm"):
        target([1.0, 0.0], spec)


def test_draws_that_the_mean_leaves_out_are_told_in_the_legend():
    frame = pd.DataFrame(
        {
            "method": ["a", "a", "b"],
            "status": ["3 of 10 refused, 1 of 10 diverged", "ok", "2 of 10 diverged"],
            "folds": 2,
            "restarts": 5,
        },
        index=[0, 0, 1],
    )
    looks = {"a": {"label": "A"}, "b": {"label": "B"}}
    lines = [line.replace("\n", " ") for line in left_out(frame, looks).split(";\n")]
    assert lines == [
        "",
        "A: 1 of 20 draws diverged, mean of the others",
        "A: 3 of 20 draws refused, mean of the others",
        "B: 2 of 10 draws diverged, mean of the others",
    ]
    assert left_out(frame.iloc[[1]], looks) == ""


def test_the_jacobian_of_long_rows_costs_more_than_is_set_aside():
    """The exact loss on one pair, from the density written out here; for R = 1, the claim holds."""
    bound, epsilon = 100.0, 1.0
    ridge = 0.25 * bound / math.expm1(epsilon / 4)  # as 2 log(1 + c R) leaves nothing of epsilon
    scale = 2 * bound / (epsilon / 2)
    w = np.linspace(-1, 1, 2_000_001)

    def density(x):
        share = 1 / (1 + np.exp(-w * x))
        slope = (share - 1) * x + ridge * w
        return np.exp(-abs(slope) / scale) * (share * (1 - share) * x * x + ridge)

    loss = np.log(density(bound) / density(0.0)).max()
    assert loss == pytest.approx(3.2607, abs=1e-3)
    pair, mechanism = (
        pairs.find("curvature_of_a_long_row"),
        MECHANISMS["objective_unscaled_released"],
    )
    settings = pair.arguments | {"epsilon": epsilon, "tolerance": 1e-6}
    assert pair.exact(pair, mechanism, **settings) == pytest.approx(loss, abs=1e-3)
    stated = mechanism.guarantee(1, 1, **settings)
    assert loss < stated.epsilon < 4
    short = mechanism.guarantee(100, 3, epsilon=1.0, lam=0.1, bound=1.0)
    assert short.epsilon == 1.0


def test_standard_errors_of_a_row_of_zeros_are_the_ridge_s():
    (X, y), (Z, z) = pairs.find("lone_row_of_zeros").sides
    errors = [
        release("logit_with_errors", *side, 5, lam=0.01).info["intercept"]
        for side in ((X, y), (Z, z))
    ]
    np.testing.assert_allclose(errors[1], 10.0, rtol=1e-12)
    assert (errors[0] < 9.999).all()


def test_the_moments_noise_is_the_program_s():
    """Solving with targets of 0 gives the noise on X'y, at a huge ridge of data."""
    X = np.full((4000, 1), 1.0)
    weights = release("moments_in_fifths", X, np.zeros(4000), 4000).weights[:, 0] * 4000
    expected = math.sqrt(2 * math.log(1.25 / (1e-6 / 3))) / 0.4
    assert weights.std() == pytest.approx(expected, rel=0.05)


def test_a_record_on_a_border_is_counted_twice():
    (X, y), (Z, z) = pairs.find("on_a_border").sides
    totals = [release("cells", *side, 20).info["intercept"] for side in ((X, y), (Z, z))]
    np.testing.assert_allclose(totals[1], 60.0)
    assert (totals[0] > 60.5).all()
