"""Log-concave tilts: every bound against exact densities on explicit records, and claims of wrong bounds.

`tilted` has the exact law of the minimiser. The adversary's other records are tiny ones with large weights,
which move the minimiser without curvature, or one record of weight 1e10.
"""

import itertools
import math

import numpy as np
import pytest

from dp.proofs.curvature import Curvature
from dp.proofs.log_concave_tilt import Ball, ball_shift, pure_epsilon, pure_shift
from dp_privacy import l2
from tilted import (
    ADD_REMOVE,
    REPLACE,
    hockey_stick,
    largest_loss,
    log_ratio,
    mode,
    pair,
    plane,
    pull,
    record,
)

LOSSES = (
    ("logistic", 1.0),
    ("clipped_logistic", 0.75),
    ("clipped_logistic", 0.4),
    ("clipped_logistic", 0.5),
    ("log_cosh", 1.0),
)


def exact_on_line(loss, k, r, m, e, R=1.0, pulls=None):
    """The largest exact deltas of removing and of adding a record in one dimension, over pulls."""
    pulls = np.linspace(-12, 4, 17) if pulls is None else pulls
    Lambda, scale = R * R / r, k * R / m
    removed = added = 0.0
    for force in pulls:
        base = pull(loss, k, np.array([force * Lambda / R]))
        P, Q = pair(loss, k, Lambda, scale, base, [record(loss, [R])])
        for one, other in ((P, Q), (Q, P)):
            delta, mass = hockey_stick(one, other, e, 4001, mode(one, 1))
            assert mass == pytest.approx(1, abs=2e-3 if loss == "clipped_logistic" else 1e-6)
            removed, added = (
                (max(removed, delta), added) if one is P else (removed, max(added, delta))
            )
    return removed, added


def claims(m, r, loss, k, e, d=1):
    ball = Ball(m, d, Curvature(loss, r, k))
    return ball.removal(e), ball.addition(e)


# ---- the curvature


@pytest.mark.parametrize("loss", LOSSES)
def test_largest_is_the_maximum(loss):
    """Against brute force, from no curvature at all to one that overflows when squared."""
    near = np.geomspace(1e-14, 0.5, 6000)
    u = np.concatenate([[0.0], near, 1 - near, [1.0]])
    k = loss[1]
    x = np.concatenate([np.linspace(-9, 9, 37), [-1e-9, 1e-9, -100, 100]])
    for r in (1e-300, 1e-20, 1e-3, 0.3, 1.0, 2.0, 40.0, 1e6, 1e160, 1e300):
        g = 1 - u * u if loss[0] == "log_cosh" else k * u * (1 - k * u)
        brute = (u * x[:, None] + np.log1p(np.maximum(g, 0) * r)).max(axis=1)
        value = Curvature(loss[0], r, k).largest(x)
        assert (value >= brute - 1e-13 * (1 + abs(brute))).all()
        assert (value <= brute + 1e-5 * (1 + abs(brute))).all()
        assert (np.diff(value[:37]) >= -1e-14 * (1 + abs(value[:36]))).all()


@pytest.mark.parametrize("loss", [*LOSSES, ("clipped_logistic", 1e-3), ("clipped_logistic", 0.999)])
def test_tangents_lie_above(loss):
    u = np.linspace(0, 1, 2001)
    k = loss[1]
    for r in (1e-6, 0.1, 1.0, 7.0, 1e5):
        g = 1 - u * u if loss[0] == "log_cosh" else k * u * (1 - k * u)
        exact = np.log1p(np.maximum(g, 0) * r)
        for J, t in Curvature(loss[0], r, k).tangents:
            assert t >= 0
            assert (exact <= (J + (1 - u) * t) * (1 + 1e-12) + 1e-15).all()
        first, flat = Curvature(loss[0], r, k).tangents
        assert first[0] == pytest.approx(exact[-1], rel=1e-9, abs=1e-15)
        assert flat[0] == pytest.approx(exact.max(), rel=1e-5)


@pytest.mark.parametrize("slope", [1e-200, 1e-9, 0.4999999, 0.5, 0.5000001, 1 - 1e-12, 1.0])
def test_clips_at_the_edges(slope):
    """A vanishing clip has no curvature left; one of 1 is no clip; around a half nothing jumps."""
    m = ball_shift(1.0, 1e-6, 3, 0.5, "clipped_logistic", slope)
    near = ball_shift(1.0, 1e-6, 3, 0.5, "clipped_logistic", min(1.0, slope * (1 + 1e-7)))
    assert m == pytest.approx(near, rel=1e-5)
    if slope < 1e-8:
        assert m == pytest.approx(1 / l2.scale(3, 1.0, 1e-6) / 2, rel=1e-6)
    if slope > 0.999:
        assert m == pytest.approx(ball_shift(1.0, 1e-6, 3, 0.5), rel=1e-6)


# ---- one dimension: exact removals and additions of all losses


@pytest.mark.parametrize(("loss", "k"), [*LOSSES, ("log_cosh", 0.3), ("log_cosh", 4.0)])
@pytest.mark.parametrize(("e", "m"), [(1.0, 1.05), (4.0, 4.0), (0.3, 0.5)])
def test_no_exact_delta_exceeds_its_bound_on_the_line(loss, k, e, m):
    for r in (0.5 * e, e, 4 * e):
        removed, added = exact_on_line(loss, k, r, m, e, pulls=(-9.0, -5.0, -2.0, -1.0, 0.0, 2.0))
        removal, addition = claims(m, r, loss, k, e)
        assert removed <= removal * (1 + 1e-3) + 1e-9
        assert added <= addition * (1 + 1e-3) + 1e-9


def test_additions_reach_their_bound_on_the_line():
    for r in (0.1, 8.0):
        _, added = exact_on_line("logistic", 1.0, r, 1.05, 1.0, pulls=(-30.0,))
        assert added == pytest.approx(claims(1.05, r, "logistic", 1.0, 1.0)[1], rel=2e-3)
    removed, _ = exact_on_line("log_cosh", 1.0, 0.5, 1.05, 1.0, pulls=(-12.0,))  # one sign, not two
    assert removed == pytest.approx(l2.delta(1.0, 1.05, 1), rel=1e-6)


def tangent(loss, r, k):
    return Curvature(loss, r, k).tangents[0]


# What a wrong program would claim for removing a record at the tilt's own share e: a delta, or None for no
# claim. Each is shown wrong by an exact density.
def threshold_halved(m, r, loss, k, e):
    J, t = tangent(loss, r, k)
    return l2.delta(e - J, m, 1) if e - J >= t / 2 else None


def threshold_at_epsilon(m, r, loss, k, e):
    J, t = tangent(loss, r, k)
    return l2.delta(e - J, m, 1) if e / 0.8 - J >= t else None  # a fifth of epsilon goes elsewhere


def j_dropped(m, r, loss, k, e):
    J, t = tangent(loss, r, k)
    return l2.delta(e, m, 1) if e - J >= t else None


def wrong_bound(m, r, loss, k, e):
    return Ball(m / 2, 1, Curvature(loss, r / 4, k)).removal(e)  # R taken for R/2


def curvature_of_wrong_bound(m, r, loss, k, e):
    return Ball(m, 1, Curvature(loss, r / 4, k)).removal(e)


def unclipped_threshold(m, r, loss, k, e):
    return l2.delta(e, m, 1) if e >= r else None  # as if J were 0 for a clip


def one_sided_threshold(m, r, loss, k, e):
    return l2.delta(e, m, 1) if e >= r else None  # r for 2 r


@pytest.mark.parametrize(
    ("mutant", "loss", "k", "r", "m", "e"),
    [
        (threshold_halved, "logistic", 1.0, 1.9, 1.0, 1.0),
        (threshold_halved, "log_cosh", 1.0, 0.95, 1.0, 1.0),
        (threshold_at_epsilon, "logistic", 1.0, 4.9, 4.0, 4.0),
        (threshold_at_epsilon, "log_cosh", 1.0, 2.45, 4.0, 4.0),
        (j_dropped, "clipped_logistic", 0.75, 0.5, 1.05, 1.0),
        (j_dropped, "clipped_logistic", 0.4, 0.5, 1.05, 1.0),
        (unclipped_threshold, "clipped_logistic", 0.75, 0.5, 1.0, 1.0),
        (one_sided_threshold, "log_cosh", 1.0, 1.0, 1.0, 1.0),
        (wrong_bound, "logistic", 1.0, 0.5, 1.05, 1.0),
        (wrong_bound, "log_cosh", 1.0, 0.4, 1.05, 1.0),
        (curvature_of_wrong_bound, "logistic", 1.0, 3.9, 1.0, 1.0),
    ],
)
def test_an_exact_removal_refutes_wrong_bounds(mutant, loss, k, r, m, e):
    wrong = mutant(m, r, loss, k, e)
    removed, _ = exact_on_line(loss, k, r, m, e, pulls=np.arange(-11, 0.1, 1.0))
    assert wrong is not None
    assert removed > wrong * (1 + 1e-2) + 1e-4
    assert removed <= claims(m, r, loss, k, e)[0] * (1 + 1e-3)


@pytest.mark.parametrize("R", [0.25, 3.0])
@pytest.mark.parametrize("k", [0.5, 2.0])
def test_m_and_r_carry_the_slope_and_the_radius(k, R):
    """m = k R/s for the scale s of ||b||: with 1 for k or for R, the bound is exceeded, or met by far."""
    e, m = 1.0, 1.05
    removed, added = exact_on_line("log_cosh", k, 0.4, m, e, R=R, pulls=(-30.0,))
    assert removed == pytest.approx(claims(m, 0.4, "log_cosh", k, e)[0], rel=1e-5)
    assert added <= claims(m, 0.4, "log_cosh", k, e)[1]
    for factor in (k, R):
        wrong = claims(m / factor, 0.4, "log_cosh", k, e)[0]
        assert wrong < 0.9 * removed if factor > 1 else wrong > 1.1 * removed


def test_the_solvers_share_of_epsilon_counts():
    """Output noise after a solver whose error depends on the data: their losses add up.

    One dimension, no other record. The solver stops `error` to the right of the minimiser with the record,
    and to the left without. Without subtracting e_out, delta would be 0, since e > m.
    """
    m, r, e_out, e = 1.0, 20.0, 1.0, 1.2
    Lambda, scale = 1 / r, 1 / m
    spread = scale / Lambda  # of the minimiser; the output noise decays a little more slowly
    noise = spread / 0.8
    error = noise * e_out / 2
    P, Q = pair("logistic", 1.0, Lambda, scale, [], [], [record("logistic", [1.0])])
    w, out = np.linspace(-40, 40, 4001) * spread, np.linspace(-60, 60, 601) * spread
    densities = []
    for data, shift in ((P, -error), (Q, error)):
        exact = np.exp(data.log_density(w[:, None])) / (2 * scale) * (w[1] - w[0])
        assert exact.sum() == pytest.approx(1, abs=1e-3)
        densities.append(np.exp(-abs(out[:, None] - w - shift) / noise) / (2 * noise) @ exact)
    p, q = densities
    delta = np.maximum(p - math.exp(e) * q, 0).sum() * (out[1] - out[0])
    ball = Ball(m, 1, Curvature("logistic", r))
    assert ball.addition(e) == 0.0  # e_out not subtracted
    assert 1e-2 < delta < ball.addition(e - e_out)


# ---- two dimensions


@pytest.mark.parametrize("e", [0.5, 2.0])
def test_removal_meets_its_bound_at_the_threshold_only(e):
    exact, bound = plane("logistic", e, 1e-2, "remove", 1.0)
    assert bound == pytest.approx(1e-2, rel=1e-6)
    assert 0.995 * bound < exact < 1.001 * bound
    exact, bound = plane("logistic", e, 1e-2, "remove", 0.25, pulls=(6.0, 12.0))
    assert 2e-2 < exact < bound


@pytest.mark.parametrize(
    ("loss", "share"), [("logistic", 1.0), ("logistic", 0.25), ("log_cosh", 1.0)]
)
def test_additions_and_replacements_in_the_plane(loss, share):
    exact, bound = plane(loss, 0.5, 1e-2, "add", share)
    assert (0.99 if loss == "logistic" else 0.49) * bound < exact < 1.001 * bound
    exact, bound = plane(loss, 0.5, 1e-2, "replace", share)
    assert 0.1 * bound < exact < bound
    if share < 1:
        assert exact > 1.1e-2  # the profile of twice the shift: not free below the threshold


def test_removal_of_log_cosh_costs_one_sign_in_the_plane():
    exact, bound = plane("log_cosh", 0.5, 1e-2, "remove", 1.0, k=0.5)
    assert bound == pytest.approx(1e-2, rel=1e-6)
    assert 0.99 * bound < exact < 1.001 * bound
    exact, bound = plane("log_cosh", 0.5, 1e-2, "remove", 0.25, k=0.5, pulls=(1.0, 2.5))
    assert 2e-2 < exact < bound


# ---- counts


def exact_of_counts(d, m, r, e, old, new=(), pulls=(-40.0, -3.0, -1.0, 0.0, 1.0, 3.0, 40.0)):
    """The largest exact delta of (`old` -> `new`) and of the reverse, in d = 1 or 2, over pulls."""
    Lambda, scale, found = 1 / r, 1 / m, [0.0, 0.0]
    for at in pulls:
        direction = np.ones(1) if d == 1 else np.array([0.0, 1.0])
        base = pull("counts", 1.0, at * scale * direction)
        P, Q = pair("counts", 1.0, Lambda, scale, base, old, new)
        for k, (one, other) in enumerate(((P, Q), (Q, P))):
            w = np.array(mode(one, 1) if d == 1 else [0.0, 0.0])
            for _ in range(200 * (d - 1)):  # no record has a curvature of more than 1
                w = w + one.parts(w)[0] / (Lambda + 1)
            delta, mass = hockey_stick(one, other, e, 4001 if d == 1 else 240, list(w))
            assert mass == pytest.approx(1, abs=1e-2)
            found[k] = max(found[k], delta)
    return found


@pytest.mark.parametrize("c", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("x", [1.0, -0.6])
def test_no_exact_delta_of_a_count_exceeds_its_bound_on_the_line(c, x):
    for m, r, e in ((1.05, 0.2, 1.0), (4.0, 3.0, 2.0), (1.0, 5.0, 0.5)):
        removed, added = exact_of_counts(1, m, r, e, [((x,), c, 1.0)])
        removal, addition = claims(m, r, "counts", None, e)
        assert removed <= removal * (1 + 1e-2) + 1e-9
        assert added <= addition * (1 + 1e-2) + 1e-9


def test_counts_reach_their_bound_and_refute_one_without_the_jacobian():
    m, r, e = 1.05, 1.5, 1.0
    removed, added = exact_of_counts(1, m, r, e, [((1.0,), 0.0, 1.0)])
    removal, addition = claims(m, r, "counts", None, e)
    assert added == pytest.approx(addition, rel=1e-3)
    assert 3 * l2.delta(e, m, 1) < removed < removal


@pytest.mark.parametrize(("c", "other"), [(0.0, 0.0), (0.4, 0.7)])
def test_no_exact_delta_of_a_count_exceeds_its_bound_in_the_plane(c, other):
    for m, r, e in ((0.6, 0.4, 0.5), (1.5, 2.0, 1.5)):
        ball, a, pulls = Ball(m, 2, Curvature("counts", r)), 0.1, (-3.0, 0.0, 9.0)
        sides = [((math.cos(a) * sign, math.sin(a)), y, 1.0) for sign, y in ((1, c), (-1, other))]
        found = exact_of_counts(2, m, r, e, sides[:1], sides[1:], pulls)
        assert 0 < max(found) <= ball.replacement(e) * (1 + 1e-2)
        removed, added = exact_of_counts(2, m, r, e, sides[:1], (), pulls)
        assert removed <= ball.removal(e) * (1 + 1e-2)
        assert added <= ball.addition(e) * (1 + 1e-2)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_slopes_of_two_signs_cost_no_more_than_those_of_one(d):
    """E (1 - e^(e - max(l_(c x), l_(-(1-c) x))))_+ for draws of the l2 law: largest at c = 0 or c = 1."""
    rng, m, draws = np.random.default_rng(3), 1.3, 200_000
    b = rng.standard_normal((draws, d))
    b *= (rng.gamma(d, size=draws) / np.linalg.norm(b, axis=1))[:, None]

    def moved(by):
        return np.linalg.norm(b + by * m * np.eye(d)[0], axis=1) - np.linalg.norm(b, axis=1)

    for e in (-0.3, 0.0, 0.4, 1.0):  # below 0, too: e - J of a removal
        values = []
        for c in (0.0, 0.1, 0.3, 0.5, 0.8, 1.0):
            gain = -np.expm1(np.minimum(e - np.maximum(moved(c), moved(c - 1)), 0))
            values.append((gain.mean(), gain.std() / math.sqrt(draws)))
        ends = max(values[0][0], values[-1][0])
        assert all(mean <= ends + 4 * (error + values[0][1]) for mean, error in values)
        if e >= 0:
            assert ends == pytest.approx(l2.delta(e, m, d), rel=0.03)


def test_the_pure_bound_of_counts():
    """Attained in two dimensions, where both slopes are 1 at once; J left out is exceeded."""

    def norm(b):
        return np.linalg.norm(b, axis=-1)

    for m, r in ((0.5, 0.3), (1.0, 4.0)):
        bound = pure_epsilon(m, Curvature("counts", r))
        assert bound == pytest.approx(2 * m + math.log1p(r))
        assert pure_epsilon(m, Curvature("counts", r), ADD_REMOVE) == pytest.approx(
            m + math.log1p(r)
        )
        # w.x = 0 for the old record, whose rate is just below its cap. The new one's rate is capped.
        old, new = ((1.0, 1e-3), 0.0, 1.0), ((-1.0, 1e-3), 0.0, 1.0)
        w = np.array([-1e-3 * (1 + 1e-9), 1.0])
        base = pull("counts", 1.0, w / r + np.array([1e5, 0.0]) / m)
        at = log_ratio("counts", 1.0, 1 / r, 1 / m, norm, base, [old], [new])(w)
        assert 0.99 * bound < at <= bound * (1 + 1e-4)
        assert at > 2 * m + 1.5 * math.log1p(r / 4)


# ---- the pure bound


@pytest.mark.parametrize("body", ["ball", "box"])
@pytest.mark.parametrize(
    ("loss", "k"), [("logistic", 1.0), ("clipped_logistic", 0.75), ("log_cosh", 0.5)]
)
def test_no_loss_found_exceeds_the_pure_bound(body, loss, k):
    rng = np.random.default_rng(11)
    for r, m in ((0.5, 1.0), (3.0, 1.0)):
        for adjacency in (REPLACE, ADD_REMOVE):
            bound = pure_epsilon(m, Curvature(loss, r, k), adjacency)
            found = largest_loss(loss, k, r, m, 2, body, rng, 6, adjacency)
            assert 0.3 * bound < found <= bound * (1 + 1e-4)


def test_pure_bound_is_attained_by_one_pair():
    """Two vertices of the box with one coordinate in common, far along it: both slopes at once.

    So J left out, the threshold halved, or k of a smaller clip claims less than an exact loss.
    """

    def norm(b):
        return np.abs(b).max(-1) * math.sqrt(2)

    a = 1 / math.sqrt(2)
    for loss, k, r, m in (
        ("logistic", 1.0, 2.0, 1.0),
        ("clipped_logistic", 0.75, 1.0, 1.0),
        ("log_cosh", 0.7, 1.0, 1.0),
    ):
        scale, Lambda = k / m, 1 / r
        old, new = (record(loss, (a, a)), record(loss, (-a, a)))
        worst = 0.0
        for s in np.linspace(-6, 8, 57):  # z of `old`; `new` is saturated
            w = (
                np.array([15 - s, -15 - s]) * a
                if loss == "log_cosh"
                else np.array([s + 15, s - 15]) * a
            )
            base = pull(loss, k, Lambda * w + np.array([-3.0, 0.0]) * scale)
            worst = max(worst, abs(log_ratio(loss, k, Lambda, scale, norm, base, [old], [new])(w)))
        bound = pure_epsilon(m, Curvature(loss, r, k))
        assert 0.98 * bound < worst <= bound * (1 + 1e-4)
        assert worst > 2 * m * 1.01  # what a halved threshold, or no J, would claim


def test_pure_bound_in_closed_form():
    for e in (1e-3, 0.1, 1.0, 60.0):
        assert pure_shift(e, Curvature("logistic", e / 2)) == e / 2
        assert pure_shift(e, Curvature("log_cosh", e / 4)) == e / 2
        assert pure_shift(e, Curvature("logistic", e), ADD_REMOVE) == e
        assert pure_shift(e, Curvature("log_cosh", e / 2), ADD_REMOVE) == e
        assert pure_shift(e, Curvature("logistic", e * 0.51)) < e / 2
        clipped = Curvature("clipped_logistic", e / 3, 0.75)
        assert pure_shift(e, clipped) == pytest.approx(
            (e - math.log1p(0.1875 * e / 3)) / 2, rel=1e-12
        )
    # m/epsilon below the threshold, from a derivation of its own
    for loss, c, m in (
        *(("logistic", c, m) for c, m in zip((0.5, 1, 1.5), (0.379, 0.473, 0.496), strict=True)),
        *(("log_cosh", c, m) for c, m in zip((1, 2, 3), (0.271, 0.452, 0.493), strict=True)),
    ):
        assert pure_shift(1.0, Curvature(loss, 1 / c)) == pytest.approx(m, abs=6e-4)
    assert pure_shift(1.0, Curvature("log_cosh", 2.0)) == 0.0  # log 3 > 1
    assert pure_shift(1.0, Curvature("logistic", 1e200)) == 0.0


# ---- the integral below the threshold


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize(("loss", "k"), LOSSES)
def test_the_integral_against_polar_coordinates(d, loss, k):
    m, r, e = 1.3, 2.5, 0.6
    u = np.linspace(0, 1, 4001)
    g = 1 - u * u if loss == "log_cosh" else k * u * (1 - k * u)
    x = np.linspace(-m, m, 801)
    f = (u * x[:, None] + np.log1p(np.maximum(g, 0) * r)).max(axis=1)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    radius = (nodes + 1) * 25
    density = radius ** (d - 1) * np.exp(-radius) / math.gamma(d) * weights * 25
    if d == 1:
        cosine, share = np.array([1.0, -1.0]), np.array([0.5, 0.5])
    else:
        angle = (nodes + 1) * math.pi / 2
        cosine, share = np.cos(angle), np.sin(angle) ** (d - 2) * weights
        share = share / share.sum()
    loss_at = (
        np.sqrt(radius[:, None] ** 2 + 2 * radius[:, None] * m * cosine + m * m) - radius[:, None]
    )
    gain = np.maximum(-np.expm1(e - np.interp(loss_at, x, f)), 0)
    expected = float(density @ gain @ share)
    curvature = Curvature(loss, r, k)
    assert Ball(m, d, curvature)._integrated(e) == pytest.approx(expected, rel=2e-4)


# ---- profiles and calibration


@pytest.mark.parametrize(("loss", "k"), LOSSES)
@pytest.mark.parametrize("d", [1, 2, 20])
def test_delta_falls_with_e_and_grows_with_m_and_r(loss, k, d):
    for adjacency in (ADD_REMOVE, REPLACE):
        for r in (0.2, 2.0):
            curve = [
                Ball(0.8, d, Curvature(loss, r, k)).delta(e, adjacency)
                for e in np.linspace(0, 2.5, 10)
            ]
            assert (np.diff(curve) <= 1e-9).all()
            assert curve[0] > 0 and min(curve) >= 0 and max(curve) <= 1
        grown = [
            Ball(m, d, Curvature(loss, 0.5, k)).delta(0.9, adjacency)
            for m in np.geomspace(0.05, 5, 7)
        ]
        assert (np.diff(grown) >= -1e-9).all()


@pytest.mark.parametrize(
    ("loss", "k"),
    [("logistic", 1.0), ("clipped_logistic", 0.9), ("clipped_logistic", 0.4), ("log_cosh", 1.0)],
)
@pytest.mark.parametrize(("d", "e", "delta"), [(2, 1.0, 1e-2), (30, 2.0, 1e-4)])
def test_m_grows_with_lambda_and_epsilon(loss, k, d, e, delta):
    """Around the threshold, too, where another split of the chain becomes the best."""
    for adjacency in (ADD_REMOVE, REPLACE):
        m = [ball_shift(e, delta, d, e / c, loss, k, adjacency) for c in np.geomspace(0.8, 5, 5)]
        assert all(b >= a * (1 - 1e-6) for a, b in itertools.pairwise(m))
        m = [ball_shift(x, delta, d, 0.5, loss, k, adjacency) for x in np.geomspace(0.4, 4, 4)]
        assert all(b >= a * (1 - 1e-6) for a, b in itertools.pairwise(m))


@pytest.mark.parametrize(("loss", "k"), LOSSES)
@pytest.mark.parametrize("d", [1, 3, 40])
def test_calibration_is_safe_and_tight(loss, k, d):
    for adjacency, (r, delta) in itertools.product(
        (ADD_REMOVE, REPLACE), ((0.05, 1e-9), (0.5, 1e-3), (0.5, 1e-9), (3.0, 1e-3))
    ):
        curvature = Curvature(loss, r, k)
        m = ball_shift(1.0, delta, d, r, loss, k, adjacency)
        pure = pure_shift(1.0, curvature, adjacency)
        assert m >= pure
        if m > pure:
            assert Ball(m, d, curvature).delta(1.0, adjacency) <= delta
        more = Ball(m * (1 + 1e-8), d, curvature).delta(1.0, adjacency)
        assert more > delta * (1 - 1e-12)


def test_chain_costs_next_to_nothing_at_its_threshold():
    """At Lambda = 2 R^2/epsilon, at most .07 % more scale than for twice the shift."""
    for d, e in itertools.product((1, 3, 10, 20, 100), (0.1, 1.0, 4.0)):
        m, most = ball_shift(e, 1e-6, d, e / 2), 1 / l2.scale(d, e, 1e-6) / 2
        assert most / 1.0011 < m <= most
        assert ball_shift(e, 1e-6, d, e / 100) == pytest.approx(most, rel=7e-4)


@pytest.mark.parametrize(("loss", "k"), LOSSES)
@pytest.mark.parametrize("d", [1, 1000])
def test_extreme_settings(loss, k, d):
    for e, r in itertools.product((1e-3, 60.0), (1e-300, 1e-6, 1e300)):
        for adjacency in (ADD_REMOVE, REPLACE):
            curvature = Curvature(loss, r, k)
            m = ball_shift(e, 1e-6, d, r, loss, k, adjacency)
            assert 0 <= m < math.inf
            assert m >= pure_shift(e, curvature, adjacency)
            if m and m > pure_shift(e, curvature, adjacency):
                assert Ball(m, d, curvature).delta(e, adjacency) <= 1e-6
            if r < 1e-5 and e > 1:
                assert m == pytest.approx(e if adjacency == ADD_REMOVE else e / 2, rel=1e-5)


def test_refusals():
    ball = Ball(1.0, 2, Curvature("logistic", 1.0))
    for delta in (ball.removal, ball.addition, ball.replacement, ball.delta):
        with pytest.raises(ValueError, match="at least 0"):
            delta(-0.1)  # e - e_out, for instance
    for wrong in (
        ("hinge", 1.0),
        ("clipped_logistic", 1.0),  # without its cap, it might be taken for logistic loss
        ("logistic", 0.0),
        ("logistic", math.inf),
        ("clipped_logistic", 1.0, 0.0),
    ):
        with pytest.raises(ValueError, match=r"needs|proven"):
            Curvature(*wrong)
