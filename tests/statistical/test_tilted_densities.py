"""Log-concave tilts: likelihood ratios of many draws, a longer search for losses, finer grids."""

import math

import numpy as np
import pytest

from dp.proofs.curvature import Curvature
from dp.proofs.log_concave_tilt import Ball, ball_shift, pure_epsilon
from dp_privacy import l2
from tilted import (
    ADD_REMOVE,
    REPLACE,
    Minimiser,
    in_the_plane,
    largest_loss,
    plane,
    pull,
    record,
)

pytestmark = pytest.mark.slow


def estimate(d, e, m, r, loss, kind, far, angle, draws, seed):
    """An unbiased estimate of delta(e) = E (1 - e^(e - log p/q))_+, and its standard error."""
    rng = np.random.default_rng(seed)
    Lambda, scale = 1 / r, 1 / m
    v, w = np.zeros(d), np.zeros(d)
    v[:2] = math.cos(angle), math.sin(angle)
    w[:2] = -math.cos(angle), math.sin(angle)
    side = np.zeros(d)
    side[1] = -1.0
    if far == 1e9:
        base = (
            pull(loss, 1.0, 20 * Lambda * side) if loss == "log_cosh" else [(tuple(side), 1.0, far)]
        )
    else:
        base = pull(loss, 1.0, -far * Lambda * v)
    P = Minimiser(loss, 1.0, Lambda, scale, [*base, record(loss, v)])
    Q = Minimiser(
        loss, 1.0, Lambda, scale, [*base, *([record(loss, w)] if kind == "replace" else [])]
    )
    P, Q = (Q, P) if kind == "add" else (P, Q)
    b = rng.standard_normal((draws, d))
    b *= (rng.standard_gamma(d, draws) * scale / np.linalg.norm(b, axis=1))[:, None]
    at = P.minimisers(b)
    gain = np.maximum(-np.expm1(np.minimum(e - P.log_density(at) + Q.log_density(at), 0)), 0)
    return gain.mean(), gain.std() / math.sqrt(draws)


@pytest.mark.parametrize(("d", "loss"), [(5, "logistic"), (10, "log_cosh")])
def test_no_estimate_exceeds_its_bound(d, loss):
    """The worst of several bases and angles, drawn again with another seed."""
    for e, kind in (
        (0.5, "remove"),
        (2.0, "remove"),
        (0.5, "add"),
        (0.5, "replace"),
        (2.0, "replace"),
    ):
        threshold = e / (2 if loss == "log_cosh" else 1) / (2 if kind == "replace" else 1)
        m = 1 / l2.scale(d, e, 1e-2) / (2 if kind == "replace" else 1)
        for share in (1.0, 0.2):
            ball = Ball(m, d, Curvature(loss, threshold / share))
            bound = {"remove": ball.removal, "add": ball.addition, "replace": ball.replacement}[
                kind
            ](e)
            settings = [
                (far, angle)
                for far in (0.0, 5.0, 11.0, 17.0, 1e9)
                for angle in ((0.1, 0.3) if kind == "replace" else (0.0, 0.6))
            ]
            found = [
                estimate(d, e, m, threshold / share, loss, kind, *setting, 2000, 1)[0]
                for setting in settings
            ]
            worst = settings[int(np.argmax(found))]
            mean, error = estimate(d, e, m, threshold / share, loss, kind, *worst, 20000, 2)
            print(d, loss, e, kind, share, worst, f"{mean:.5f} +- {error:.5f}, bound {bound:.5f}")
            assert mean < bound + 4 * error
            if kind != "replace" and loss == "logistic" and share == 1:
                assert mean > bound - 4 * error - 2e-4  # met
            if share < 1 and loss == "log_cosh" and kind == "add":
                assert mean > 1.5e-2  # both signs of the slope count
            if share < 1 and kind == "remove":
                assert mean > 1e-2 + 3 * error  # the profile itself is exceeded below the threshold


@pytest.mark.parametrize(
    ("body", "loss", "k"),
    [("ball", "logistic", 1.0), ("box", "clipped_logistic", 0.75), ("ball", "log_cosh", 0.5)],
)
def test_a_longer_search_finds_no_loss_above_the_pure_bound(body, loss, k):
    rng = np.random.default_rng(5)
    for d in (1, 2, 3):
        worst = 0.0
        for e, share in ((0.1, 1.0), (1.0, 1.0), (4.0, 1.0), (1.0, 0.4)):
            r = e / 2 / share / (2 if loss == "log_cosh" else 1)
            for adjacency in (REPLACE, ADD_REMOVE):
                m = e / 2
                bound = pure_epsilon(m, Curvature(loss, r, k), adjacency)
                found = largest_loss(loss, k, r, m, d, body, rng, 12, adjacency)
                assert found <= bound * (1 + 1e-4)
                worst = max(worst, found / bound)
        print(body, loss, d, worst)
        assert worst > 0.8


@pytest.mark.parametrize(("loss", "e"), [("logistic", 0.5), ("log_cosh", 1.0), ("logistic", 2.0)])
def test_finer_grids_in_the_plane(loss, e):
    for kind, share in (
        ("remove", 1.0),
        ("remove", 0.5),
        ("add", 0.5),
        ("replace", 1.0),
        ("replace", 0.5),
    ):
        exact, bound = plane(loss, e, 1e-2, kind, share, points=480, pulls=(2.0, 4.0, 8.0, 14.0))
        print(loss, e, kind, share, exact, bound)
        assert exact <= bound * (1 + 1e-3)
        if kind == "remove" and share == 1:
            assert exact > 0.995 * bound


def test_calibrated_replacements_in_the_plane():
    """A mechanism calibrated by `ball_shift`, below the threshold, too, against exact densities."""
    for loss, k in (("logistic", 1.0), ("clipped_logistic", 0.75), ("log_cosh", 0.5)):
        for r in (0.2, 0.5, 2.0):
            m = ball_shift(1.0, 1e-2, 2, r, loss, k)
            if m < 0.2:
                continue  # so much noise that the grid would have to be wider
            pulls = (2.0, 6.0, 12.0)
            kinds = in_the_plane(loss, k, 1 / r, k / m, 1.0, "replace", 360, pulls)
            print(loss, r, m, kinds)
            assert 0 < kinds < 1e-2
