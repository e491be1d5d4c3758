"""`counts_knorm_objective_perturbation`: the planned noise is released, and all parts of epsilon add up."""

import math

import numpy as np
import pytest
from scipy.stats import gamma, kstest
from test_counts import LARGEST, rows, targets

from dp.mechanisms import MECHANISMS
from dp.proofs.curvature import Curvature
from dp.proofs.log_concave_tilt import Ball, pure_epsilon
from dp.seeds import generator
from dp_privacy.errors import Refused

MECHANISM = MECHANISMS["counts_knorm_objective_perturbation"]
BOX = {"column_bounds": [1.0] * 4}


def planned(n, **settings):
    return MECHANISM.plan(n, 4, MECHANISM.parameters(n, 4, **settings))


@pytest.mark.parametrize("body", ["ball", "box"])
def test_the_tilt_that_is_paid_for_is_released(body):
    X, k = rows(200)
    settings = {"epsilon": 1.0, "lam": 0.05, "clip": 3.0, "body": body, **BOX}
    release = MECHANISM.release(X, targets(k), restarts=1500, rng=generator(7), **settings)
    plan = planned(200, **settings)
    assert (release.status == "ok").all()
    rate = np.exp(release.info["intercept"])
    C = np.minimum(1.0, 3 * rate)[:, None]
    v = np.minimum(k / LARGEST, C) / C
    q = np.minimum(np.exp(release.weights @ X.T) * rate[:, None] / C, 1.0) - v
    b = -(q @ X) - 200 * 0.05 * release.weights
    assert kstest(plan.body.norm(b), gamma(4, scale=plan.scale).cdf).pvalue > 1e-4
    inside = (rate > rate.min()) & (rate < 1)
    noise = rate - k.mean() / LARGEST
    assert np.std(noise[inside]) == pytest.approx(math.sqrt(2) / (200 * plan.rate), rel=0.2)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("n", [300, 20_000])
def test_all_parts_add_up_to_epsilon(n, epsilon):
    settings = {"epsilon": epsilon, "bound": 2.0}
    for body, facts in (("ball", {}), ("box", BOX)):
        settings["lam"] = MECHANISM.rule_lambda(n, 4, epsilon, 0.0, 2.0, body=body, **facts)
        plan = planned(n, body=body, **settings, **facts)
        R = plan.body.radius
        curvature = Curvature("counts", R**2 / (n * settings["lam"]))
        tilt = pure_epsilon(1 / plan.scale, curvature)
        assert 2 / plan.scale + math.log1p(curvature.r) == pytest.approx(tilt)
        assert tilt + plan.rate + plan.output == pytest.approx(epsilon)
        assert tilt + plan.rate + plan.output <= epsilon * (1 + 1e-12)
        moved = 2 * 1e-9 / settings["lam"]
        assert plan.output_scale == pytest.approx(moved / plan.output)
        stated = MECHANISM.guarantee(n, 4, body=body, **settings, **facts)
        assert stated[:3] == (epsilon, epsilon, 0.0) and stated.adjacency == "replace-one"
    with_delta = settings | {"delta": 1e-6, "body": "ball"}
    plan, stated = planned(n, **with_delta), MECHANISM.guarantee(n, 4, **with_delta)
    ball = Ball(1 / plan.scale, 4, Curvature("counts", 4.0 / (n * settings["lam"])))
    assert ball.replacement(plan.left) <= 1e-6
    assert stated.profile.delta(epsilon) == pytest.approx(ball.replacement(plan.left), rel=1e-6)
    assert "slopes are in an interval of length 1" in stated.reason


def test_what_is_refused():
    asked = {"epsilon": 1.0, "lam": 0.1}
    with pytest.raises(Refused, match="with body box is"):
        MECHANISM.guarantee(100, 4, delta=1e-6, body="box", **asked, **BOX)
    with pytest.raises(Refused, match="double precision"):
        MECHANISM.guarantee(1000, 3, epsilon=1.0, lam=1e-9)
    with pytest.raises(Refused, match="the Jacobian needs more than 50 times"):
        MECHANISM.guarantee(100, 3, epsilon=1.0, lam=5e-3)
    with pytest.raises(Refused, match="below the mean count"):
        MECHANISM.guarantee(100, 3, clip=0.5, **asked)
