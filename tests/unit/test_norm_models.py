"""Releases with noise of a norm's law: theorems against exact laws, plans, rows of map 2, and tables."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from test_releasing import ERRORS, minimisers_1d, neighbours_1d

from dp import losses
from dp.inference import linearise, logistic_change
from dp.mechanisms.gaussian_objective_perturbation import kind
from dp.proofs.log_concave_tilt import Ball, Curvature, pure_epsilon
from dp.seeds import generator
from dp_privacy.errors import Refused
from dp_privacy.intervals import largest_share, least_share
from dp_privacy.profiles import Gaussian, approximate, compose
from dp_release import (
    contrasts,
    files,
    lattice,
    models,
    norm_draws,
    norm_models,
    norm_noise,
    norm_tables,
    rows,
    statistics,
    tilt,
)
from dp_release.draws import Stream
from dp_release.norm_noise import Body, Noise
from norm_rows import Rows, schema, u_of

LOGISTIC, LOG_COSH = losses.get("logistic"), losses.LogCosh(0.25)
HOSPITAL = Body(12, ((3, 4), tuple(range(5, 12))))


PLANS = {
    "weights": norm_models.weights_alone,
    "pure": norm_models.pure_table,
    "mixed": lambda n, body, u, e, loss: norm_models.mixed_table(n, body, u, e, 1e-6, loss),
}


# ---- theorem 2, exactly in one dimension


def coarse(loss, scale, output, tolerance=1e-3, lam=0.3, n=12, step=-2):
    """A plan for one column with few lattice points in its scales."""
    problem = tilt.Problem(n, 1, lam, loss, pull=100.0)
    noise = Noise(step, scale, Body(1))
    spread = Noise(-9, output, Body(1), "hull")
    points = (2 * Fraction(tolerance) / Fraction(lam) + noise.spacing / (n * Fraction(lam))) / (
        spread.spacing
    ) + 1
    noises = {"weights": spread._replace(paid=points / output)}
    u = Fraction(1)
    return norm_models.Plan(
        *(problem, 1.0, 0.0, tolerance, tilt.Tilt(noise, Fraction(1000)), noises, 10.0, Body(1), u),
        norm_models.entries(Body(1), True),
    )


def laplace_masses(scale, reach):
    p = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return p / p.sum()


def law(plan, x, y, errors, noisy=True):
    """The first lattice point and the probabilities from there on."""
    scale = plan.tilt.noise.scale
    k = np.arange(-60 * scale, 60 * scale + 1)
    w = minimisers_1d(
        *(x, y, plan.problem.lam, plan.problem.loss, float(plan.tilt.noise.spacing) * k)
    )
    w = w + errors(k) * plan.tolerance / plan.problem.lam
    noise = plan.noises["weights"]
    centre = np.rint(w / float(noise.spacing)).astype(int)
    first = centre.min()
    at = np.bincount(centre - first, weights=laplace_masses(scale, 60 * scale))
    if not noisy:
        return first, at
    reach = 45 * noise.scale
    return first - reach, np.convolve(at, laplace_masses(noise.scale, reach))


def log_ratios(one, other, floor=1e-13):
    """(least, largest) log ratio where both laws have some probability; truncation makes ends uncertain."""
    first = min(one[0], other[0])
    size = max(one[0] + len(one[1]), other[0] + len(other[1])) - first
    p, q = np.zeros(size), np.zeros(size)
    p[one[0] - first :][: len(one[1])] = one[1]
    q[other[0] - first :][: len(other[1])] = other[1]
    some = np.maximum(p, q) > floor
    with np.errstate(divide="ignore"):
        found = np.log(p[some]) - np.log(q[some])
    return found.min(), found.max()


def largest_ratio(one, other):
    return max(map(abs, log_ratios(one, other)))


def test_exact_losses_are_at_most_the_theorems():
    largest = 0.0
    for loss, scale, name in itertools.product((LOGISTIC, LOG_COSH), (5, 160), ERRORS):
        rng = generator(301, loss.name, scale, name)
        x, y, x2, y2 = neighbours_1d(loss, rng, share=1.0)
        step, tolerance = (-3 if loss.residual else -1), 1e-3
        if scale > 5:
            # All others pull to one side, so the last record changes the tilt's size by 2 kappa.
            x[:-1] = x2[:-1] = y[:-1] = y2[:-1] = 1.0
            step, tolerance = step - 4, 1e-5
        plan = coarse(loss, scale, 40, tolerance, step=step)
        first, second = ERRORS[name]
        found = largest_ratio(law(plan, x, y, first), law(plan, x2, y2, second))
        assert found <= float(plan.certain)
        largest = max(largest, found / float(plan.certain))
    assert largest > 0.65  # the bound is nearly attained, so half of it would be refuted


def test_without_the_output_noise_nothing_is_pure():
    x, y, x2, y2 = neighbours_1d(LOGISTIC, generator(302), share=0.37)
    plan = coarse(LOGISTIC, 8, output=40, tolerance=1e-9)
    bare = [law(plan, *data, ERRORS["none"][0], noisy=False) for data in ((x, y), (x2, y2))]
    assert largest_ratio(*bare) == math.inf


def test_given_the_minimiser_the_output_noise_hides_every_error():
    """Given the minimiser, the solver's error and the tilt's rounding cost no more than is paid."""
    for epsilon, tolerance in itertools.product((1e-3, 0.1, 1.0), (1e-9, 1e-3, 1.0)):
        problem = tilt.Problem(30, 3, 0.2, LOGISTIC)
        noise = Noise(-30, 2**40, Body(3))
        made = norm_noise.output(problem, noise, tolerance, Fraction(epsilon))
        off = Fraction(tolerance) / Fraction(0.2)
        off += noise.spacing * lattice.root(Fraction(3)) / (2 * 30 * Fraction(0.2))
        for start in np.linspace(0, 1, 41):
            at = Fraction(start) * made.spacing
            low, high = lattice.nearest([at - off, at + off], made.step)
            assert Fraction(high - low, made.scale) <= made.paid <= Fraction(epsilon)


def test_lemma_1_for_norms_against_integrals():
    """Mass ratios of the lattice's law and the rounded continuous one, for an interval and a block."""
    S, far = 3, 60
    k = np.arange(-far, far + 1)
    on = np.exp(-np.abs(k) / S)
    edge = np.arange(-far, far + 2) - 0.5
    below = np.where(edge < 0, 0.5 * np.exp(edge / S), 1 - 0.5 * np.exp(-edge / S))
    ratio = np.log(on / on.sum() / np.diff(below))
    assert np.abs(ratio[10:-10]).max() <= 1 / S
    sub = (np.arange(10) + 0.5) / 10 - 0.5
    x, y = (each.ravel() for each in np.meshgrid(np.arange(-25, 26), np.arange(-25, 26)))
    cells = np.exp(-(np.abs(x[:, None, None] + sub[:, None]) + np.abs(y[:, None, None] + sub)) / S)
    points = np.exp(-(np.abs(x) + np.abs(y)) / S)
    cells = cells.mean(axis=(1, 2))
    ratio = np.log(points / points.sum() / (cells / cells.sum()))
    assert np.abs(ratio).max() <= 2 / S  # c = 2
    assert norm_noise.rounding(Noise(0, S, Body(2, ((0, 1),)))) == Fraction(4, S)


# ---- theorem 4


def valid_rows(body, u, count, rng):
    X = np.zeros((count, body.count))
    for column in body.singles:
        X[:, column] = rng.choice([-1, -0.3, 0, 0.7, 1], count)
    for block in body.blocks:
        X[np.arange(count), rng.choice(block, count)] = 1
    X[rng.random(count) < 0.1] = 0
    return X * float(u)


def test_a_row_moves_no_part_of_a_matrix_by_more_than_is_paid():
    rng = np.random.default_rng(303)
    for body in (Body(3), Body(4, ((1, 2, 3),)), Body(6, ((0, 1), (3, 4, 5))), Body(2, ((0, 1),))):
        which, u = norm_models.entries(body, pure=True), u_of(body.parts)
        rows_ = valid_rows(body, u, 300, rng)
        vectors = np.array([which.vector(np.outer(x, x)) for x in rows_])
        vectors *= rng.choice([0, 0.2, 1], 300)[:, None]
        most = 2 * float(u) ** 2
        parts = [[k] for k in which.body.singles] + [list(b) for b in which.body.blocks]
        reached = 0.0
        for part in parts:
            own = vectors[:, part]
            apart = np.abs(own[:, None] - own[None]).sum(axis=2).max()
            reached = max(reached, apart)
            assert apart <= most * (1 + 1e-12)
        assert reached == pytest.approx(most)
        x = rows_[0]
        assert np.allclose(which.matrix(which.vector(np.outer(x, x))), np.outer(x, x))
        problem = tilt.Problem(1000, body.count, 0.01, LOGISTIC)
        noise = norm_models._by_norm("hessian", problem, which, u, Fraction(1, 5), 10.0)
        assert noise.scale * noise.paid >= Fraction(most * 0.25) / noise.spacing
        assert noise.paid <= Fraction(1, 5) and noise.scale >= 2**40


@pytest.mark.parametrize("body", [Body(4), HOSPITAL], ids=["box", "hull"])
def test_released_matrices_are_the_rows_plus_noise_of_the_stated_variance(body):
    rng, u = np.random.default_rng(304), u_of(body.parts)
    n = 400
    V = np.trunc(valid_rows(body, u, n, rng) * rows.ONE).astype(np.int32)
    y = rng.choice([-1, 1], n).astype(np.int32)
    for plan in (
        norm_models.pure_table(n, body, u, 1.0, share=0.3),
        norm_models.mixed_table(n, body, u, 1.0, 1e-6, share=0.1),
    ):
        found = [models.release(plan, V, y, bytes([k]) * 32) for k in range(40)]
        errors = []
        for each in found:
            point = statistics.within(each.floats("weights"), plan.longest)
            X = V / rows.ONE
            s = 1 / (1 + np.exp(-X @ point))
            exact = plan.beside.vector((X.T * (s * (1 - s))) @ X)
            errors.append(each.floats("hessian") - exact)
        errors = np.array(errors) / np.sqrt(norm_models._variances(plan.noises["hessian"]))
        size = np.linalg.norm(errors, axis=1) / math.sqrt(errors.shape[1])
        assert 0.8 < size.mean() < 1.2
        assert abs(errors.mean()) < 0.2


def test_released_parts_move_by_no_more_than_is_paid():
    """With the same key and point, a statistic's integers differ as the values before noise do."""
    rng = np.random.default_rng(311)
    for body in (Body(3), Body(6, ((0, 1), (3, 4, 5)))):
        u, n = u_of(body.parts), 30
        plan = norm_models.pure_table(n, body, u, 8.0, robust=True, share=0.2)
        V = np.trunc(valid_rows(body, u, 60, rng) * rows.ONE).astype(np.int32)
        y = rng.choice([-1, 1], 60).astype(np.int32)
        point = rng.standard_normal(body.count)
        for k in range(30):
            values = []
            for other in (0, 30 + k):
                X, labels = (
                    np.concatenate([each[1:n], each[other : other + 1]]) for each in (V, y)
                )
                X, labels = rows.bounded(X, labels, False)
                sums = statistics.sums(
                    ["hessian", "scores"], plan.problem, X, labels, point, None, plan.entries
                )
                values.append(sums)
            for part in ("hessian", "scores"):
                noise = plan.noises[part]
                one, two = (lattice.nearest(each[part].tolist(), noise.step) for each in values)
                apart = [abs(a - b) for a, b in zip(one, two, strict=True)]
                moved = [apart[j] for j in noise.body.singles]
                moved += [sum(apart[j] for j in block) for block in noise.body.blocks]
                assert max(moved) <= noise.paid * noise.scale


def found_by(scores):
    """A lower bound on epsilon, with probability 0.999, from statistics of releases of both sides.

    scores: (2, releases, statistics). Thresholds are chosen on one half, and tested on the other.
    """
    half, best = scores.shape[1] // 2, (-math.inf, None)
    for j, sign in itertools.product(range(scores.shape[2]), (1, -1)):
        chosen = np.quantile(sign * scores[:, :half, j], np.linspace(0.02, 0.98, 25))
        p, q = ((sign * side[:half, j, None] >= chosen).mean(axis=0) for side in scores)
        for own, other, flip in ((p, q, 0), (q, p, 1)):
            gain = np.log(own + 0.03) - np.log(other + 0.03)
            k = int(np.argmax(gain))
            if gain[k] > best[0]:
                best = gain[k], (j, sign, chosen[k], flip)
    j, sign, at, flip = best[1]
    one, two = ((sign * side[half:, j] >= at).sum() for side in (scores[::-1] if flip else scores))
    low = float(least_share(np.array(one), half, 1 - 5e-4))
    high = float(largest_share(np.array(two), half, 1 - 5e-4))
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["weights", "pure"])
def test_attacks_find_no_more_than_is_paid(name):
    body, u, n, epsilon = Body(2), u_of(2), 8, 2.0
    plan = PLANS[name](n, body, u, epsilon, LOGISTIC)
    e = round(float(u) * rows.ONE)
    V = np.zeros((n, 2), np.int32)
    V[: n // 2] = e, e
    V[-1] = e, e
    other, y = V.copy(), np.ones(n, np.int32)
    other[-1] = -e, -e
    scores = []
    for side, rows_ in enumerate((V, other)):
        keys = (bytes([side]) + k.to_bytes(31, "big") for k in range(2000))
        weights = [models.release(plan, rows_, y, key).floats("weights") for key in keys]
        scores.append(np.array(weights) @ np.ones((2, 1)))
    found = found_by(np.array(scores))
    assert found <= epsilon
    if name == "weights":  # the attack works: of opposite records, half is the most
        assert found > 0.1


# ---- composition


@pytest.mark.parametrize(
    "epsilon, mu, at, value", [(0.65, 0.09, 1.0, 8.18219e-7), (0.8, 0.05, 1.0, 2.72350e-7)]
)
def test_a_pure_and_a_gaussian_release_together(epsilon, mu, at, value):
    assert norm_models.pure_and_gaussian(epsilon, mu, at) == pytest.approx(value, rel=1e-5)
    other = compose(approximate(epsilon), Gaussian(mu))
    for e in (0.2, 0.6, 0.9, 1.5):
        found = norm_models.pure_and_gaussian(epsilon, mu, e)
        assert found == pytest.approx(float(other.delta(e)), rel=1e-4)
    assert norm_models.pure_and_gaussian(epsilon, 0.0, 0.3) == pytest.approx(
        (math.exp(epsilon) - math.exp(0.3)) / (1 + math.exp(epsilon))
    )


# ---- plans


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("loss", [LOGISTIC, LOG_COSH], ids=str)
@pytest.mark.parametrize("name", PLANS)
def test_plans_keep_their_guarantee_and_spend_it(name, loss, epsilon):
    for body in (Body(5), HOSPITAL):
        plan = PLANS[name](20_000, body, u_of(body.parts), epsilon, loss)
        assert plan.tilt.noise.scale >= 2**40
        guarantee = plan.guarantee()
        assert guarantee.epsilon == epsilon and guarantee.delta == (1e-6 if name == "mixed" else 0)
        proven = plan.delta_at(epsilon)
        if name == "mixed":
            assert 0.999e-6 < proven <= 1e-6
            assert plan.delta_at(epsilon / 2) > 1e-6
        else:
            assert 0.999999 * epsilon < plan.certain <= Fraction(epsilon)
            assert proven <= (1 + math.exp(epsilon)) * 1.01e-26
        # The tilt's cost by its own formula, at the rounded scale.
        noise, problem = plan.tilt.noise, plan.problem
        m = loss.kappa * float(u_of(body.parts)) / (noise.scale * float(noise.spacing))
        r = 1 / (problem.n * problem.lam)
        one = m + m if r * (2 if loss.residual else 1) <= m else None
        if one is not None:
            paid = sum(float(each.paid) for each in plan.noises.values() if hasattr(each, "paid"))
            assert float(plan.certain) == pytest.approx(one + paid, rel=1e-9)


def test_below_the_threshold_the_jacobian_is_paid_for():
    """Below the threshold, at the rounded scale, the Jacobian is paid for."""
    plan = norm_models.weights_alone(5000, Body(4), u_of(4), 1.0)
    assert plan.certain <= 1
    for share in (0.5, 0.25):
        problem = plan.problem._replace(lam=plan.problem.lam * share)
        below = plan._replace(problem=problem)
        m = float(norm_noise.shift(plan.tilt.noise, 1.0, u_of(4)))
        r = 1 / (problem.n * problem.lam)
        assert r > m and below.certain > 1.004
        assert float(below.certain) >= pure_epsilon(m, Curvature("logistic", r))
    assert kind("logistic").slope == 1.0


def test_small_epsilons_pay_for_the_tilts_rounding():
    """The rounding of large blocks does not shrink with epsilon, as margins do."""
    levels = Body(302, (tuple(range(300)),))
    for body, epsilon in ((levels, 0.01), (Body(3), 1e-5)):
        plan = norm_models.weights_alone(10_000, body, u_of(3), epsilon)
        rounding = norm_noise.rounding(plan.tilt.noise)
        assert rounding > Fraction(epsilon) * (1 - norm_models.LESS)
        assert plan.certain <= Fraction(epsilon) < plan.certain + 2 * rounding
    with pytest.raises(Refused, match="rounding costs"):
        norm_models.weights_alone(10_000, levels, u_of(3), 1e-10)


def test_a_plan_that_keeps_no_guarantee_is_a_fault(monkeypatch):
    monkeypatch.setattr(norm_models, "LESS", Fraction(101, 100))
    with pytest.raises(RuntimeError, match="fault of the program"):
        norm_models.weights_alone(5000, Body(4), u_of(4), 1.0)


def test_refusals_come_from_public_numbers():
    u = u_of(5)
    for arguments, message in {
        (0, Body(5), u, 1.0): "needs rows",
        (100, Body(5), u, 0.0): "needs rows",
        (100, Body(5), u, 51.0): "needs rows",
        (100, Body(norm_noise.MOST + 1), u, 1.0): "are more than",
    }.items():
        with pytest.raises(Refused, match=message):
            norm_models.weights_alone(*arguments)
    with pytest.raises(Refused, match="nothing for the tilt"):
        norm_models.pure_table(100, Body(5), u, 1.0, share=1.0)
    with pytest.raises(Refused, match="nothing for the tilt"):
        norm_models.mixed_table(100, Body(5), u, 1.0, 1e-6, share=1.0)
    with pytest.raises(Refused, match="delta in"):
        norm_models.mixed_table(100, Body(5), u, 1.0, 0.0)


def test_the_tilts_reach():
    """T is at least the norm with all but a probability of 1e-26."""
    for body in (Body(3), HOSPITAL):
        made = norm_noise.tilt(Fraction(2), body)
        far = stats.gamma(body.count).isf(math.exp(-60))
        assert float(made.reach) >= 2 * far * math.sqrt(body.parts)
        z = np.array([made.noise.draw(Stream(bytes(32), f"reach {k}")) for k in range(300)], float)
        lengths = np.linalg.norm(z, axis=1) * float(made.noise.spacing)
        assert lengths.max() < float(made.reach)


def test_a_pure_table_is_chosen_where_it_is_hardly_wider():
    few = norm_models.table(3000, Body(5), u_of(5), 1.0, 1e-6)
    assert few.plan.delta == 0 and few.why.startswith("The law is pure")
    many = norm_models.table(3000, Body(11), u_of(11), 1.0, 1e-6)
    assert many.plan.delta == 1e-6 and many.why.startswith("The law is mixed")
    large = norm_models.table(2_000_000, Body(11), u_of(11), 1.0, 1e-6)
    assert large.plan.delta == 0


def test_hessians_get_a_larger_share_where_rows_are_few():
    def share(n, epsilon=1.0):
        return float(norm_models.pure_table(n, Body(6), u_of(6), epsilon).noises["hessian"].paid)

    assert share(2000) > share(20_000) > share(500_000) and share(2000, 4.0) / 4 < share(2000)


# ---- the l2 tilt, for many numbers


@pytest.fixture(scope="module")
def ball_plan():
    return norm_models.mixed_table(20_000, Body(20), u_of(20), 1.0, 1e-6)


def test_many_numbers_have_an_l2_tilt(ball_plan):
    noise = ball_plan.tilt.noise
    assert noise.law == "l2" and noise.scale >= 2**40
    assert 0.95e-6 < ball_plan.delta_at(1.0) <= 1e-6
    assert ball_plan.variation >= norm_draws.l2_variation(noise.scale, 20)
    few = norm_models.mixed_table(20_000, Body(10), u_of(10), 1.0, 1e-6)
    assert few.tilt.noise.law == "hull"
    assert "ball of radius 1" in ball_plan.guarantee().reason
    # Narrower than with a box, by the same prediction.
    problem, mu = ball_plan.problem, float(ball_plan.gaussian[0].mu)
    certain = norm_models._pure_beside(1.0, 1e-6, mu)
    m = Fraction(certain) / 2
    box = ball_plan._replace(tilt=norm_noise.tilt(u_of(20) / m, Body(20)))
    assert norm_models.predicted(ball_plan) < norm_models.predicted(box)
    assert float(norm_noise.shift(noise, problem.loss.kappa, Fraction(1))) > 0.4


@pytest.mark.parametrize("loss, d, m, r, mu", [("logistic", 5, 0.45, 1 / 3, 0.05)])
def test_chords_are_just_above_the_expectation(loss, d, m, r, mu):
    """E delta_t(e - L) by quadrature over L, with reflection below 0."""
    ball = Ball(m, d, Curvature(loss, r))

    def delta_t(x):
        if x < 0:
            return 1 - math.exp(x) + math.exp(x) * ball.replacement(-x)
        return ball.replacement(x)

    z = np.linspace(-6, 7, 131)
    weights = np.exp(-z * z / 2) / np.exp(-z * z / 2).sum()
    for e in (0.8, 1.0):
        direct = sum(
            w * delta_t(e - mu * mu / 2 - mu * at) for w, at in zip(weights, z, strict=True)
        )
        found = float(norm_models.ball_and_gaussian(m, d, loss, r, mu).delta(e))
        assert direct * 0.999 <= found <= direct * 1.05


def test_releases_with_an_l2_tilt(ball_plan):
    rng = np.random.default_rng(312)
    V = np.trunc(valid_rows(Body(20), u_of(20), 20_000, rng) * rows.ONE).astype(np.int32)
    y = rng.choice([-1, 1], 20_000).astype(np.int32)
    release = models.release(ball_plan, V, y, bytes(32))
    found = ball_plan.described(release)
    assert found.weights.shape == (20,) and (np.diagonal(found.covariance) > 0).all()
    pull = tilt.draw(ball_plan.tilt, Stream(bytes(32), "tilt"))
    assert np.linalg.norm(pull) < float(ball_plan.tilt.reach)
    wrong = ball_plan._replace(
        tilt=ball_plan.tilt._replace(noise=ball_plan.tilt.noise._replace(scale=2**39))
    )
    assert wrong.delta_at(1.0) > 1e-6


# ---- rows of map 2, and the linear map to a table

SCHEMA = rows.Schema(
    [
        rows.Number("age", 18, 98),
        rows.Category("sex", ("f", "m")),
        rows.Unused("name"),
        rows.Category("ward", ("a", "b", "c"), "b", "c"),
        rows.Number("visits", 0, 20, 0),
        rows.Label("ill", ("yes",), ("no",)),
    ],
    "ill",
)
LINES = [
    b"30,f,x,a,3,yes",
    b"98,m,y,b,40,no",
    b"18,q,z,c,1,no",
    b"55,m,,,,yes",
    b"nothing",
    b"70,f,x,c,20,no",
]


def in_the_body(V, body, each):
    for block in body.blocks:
        assert ((V[:, list(block)] != 0).sum(axis=1) <= 1).all()
    assert (np.abs(V) <= each).all()


def test_rows_of_map_2_by_hand():
    levels = contrasts.all_levels(SCHEMA)
    assert levels.names == ["age", "sex=f", "sex=m", "ward=a", "ward=b", "ward=c", "visits"]
    assert levels.each == math.isqrt(4**20 // 4) and levels.constant is None
    assert contrasts.body(levels) == Body(7, ((1, 2), (3, 4, 5)))
    V, y = levels.rows(LINES, len(LINES))
    e = levels.each
    assert V[1].tolist() == [e, 0, e, 0, e, 0, e] and y[1] == -1
    assert V[3].tolist()[1:] == [0, e, 0, 0, e, -e] and not V[2].any() and not V[4].any()
    in_the_body(V, contrasts.body(levels), e)
    numbers = contrasts.all_levels(schema((1, 1, 1)))
    assert numbers.names[-1] == "constant" and contrasts.body(numbers) == Body(4)


@pytest.mark.parametrize("radius", [1, 0.5, "0.1"])
def test_any_lines_give_rows_in_the_body(radius):
    """Also where rows are longer than a radius and are shortened: entries only shrink."""
    levels = contrasts.all_levels(rows.from_facts(SCHEMA.facts | {"radius": radius}))
    rng = np.random.default_rng(305)
    cells = [b"18", b"98", b"f", b"m", b"a", b"b", b"c", b"", b"1e9", b"-1e9", b"x", b"yes", b"no"]
    lines = [b",".join(rng.choice(cells, 6)) for _ in range(500)]
    ends = ((b"18", b"98", b"50"), (b"f", b"m"), (b"a", b"b", b"c", b""), (b"0", b"20", b"-9"))
    lines += [
        b"%b,%b,n,%b,%b,%b" % (*z, label)
        for z in itertools.product(*ends)
        for label in (b"yes", b"no")
    ]
    V, y = levels.rows(lines, len(lines))
    assert (y != 0).sum() > 100
    in_the_body(V, contrasts.body(levels), levels.each)
    for k, line in enumerate(lines[:100]):  # a row depends on its own line alone
        alone, label = levels.rows([line], 1)
        assert (alone[0] == V[k]).all() and label[0] == y[k]


@pytest.mark.parametrize("stated", [SCHEMA, schema((1, 1)), schema((3, 1), numbers=True)])
def test_coefficients_give_the_scores_of_weights(stated):
    told, levels = contrasts.with_references(stated), contrasts.all_levels(stated)
    T, shift = contrasts.own_units(told, levels)
    rng = np.random.default_rng(306)
    weights = rng.standard_normal(levels.d)
    coefficients = T @ weights + shift
    names = dict(zip(told.names, coefficients, strict=True))
    numbers = [c for c in stated.columns if isinstance(c, rows.Number) and c.name != "y"]
    categories = [c for c in stated.columns if isinstance(c, rows.Category)]
    for _ in range(20):
        cells, score = {}, names["constant"]
        for column in numbers:
            cells[column.name] = x = rng.integers(float(column.low), float(column.high) + 1)
            score += names[column.name] * x
        for column in categories:
            cells[column.name] = level = str(rng.choice(column.values))
            score += names.get(f"{column.name}={level}", 0.0)
        v = np.zeros(levels.d, np.int32)
        used = [levels.columns[k].name for k in levels.used]
        assert levels.row([str(cells[name]).encode() for name in used], v)
        found = v / rows.ONE @ weights
        if stated.numbers:
            found = (found + 1) / 2 * 2 - 1
        assert found == pytest.approx(score, abs=1e-5)


def test_directions_that_change_no_score_change_no_coefficient():
    levels = contrasts.all_levels(SCHEMA)
    body, told = contrasts.body(levels), contrasts.with_references(SCHEMA)
    T, _ = contrasts.own_units(told, levels)
    basis = contrasts.span(body)
    assert basis.shape == (7, 6) and np.allclose(basis.T @ basis, np.eye(6))
    lost = np.zeros(7)
    lost[[1, 2]], lost[[3, 4, 5]] = 1, -1
    V, _ = levels.rows(LINES, len(LINES))
    assert np.allclose(V @ lost, 0) and np.allclose(T @ lost, 0) and np.allclose(basis.T @ lost, 0)
    assert np.allclose(basis @ (basis.T @ V.T), V.T)
    assert np.linalg.matrix_rank(T) == 6 == len(T)


def test_rows_outside_the_body_count_nothing():
    """`models.release` may get any integers: the guarantee does not depend on who prepared them."""
    body, u = HOSPITAL, u_of(5)
    plan = norm_models.weights_alone(6, body, u, 1.0)
    e = int(u * rows.ONE)
    V = np.zeros((6, 12), np.int32)
    V[0, [0, 3, 5]] = e
    V[1, 0] = e + 1
    V[2, [3, 4]] = e
    V[3, [5, 6]] = -e, 1
    V[4, [1, 4, 11]] = -e
    V[5] = -(2**31)
    found = plan.within(V)
    assert (found[[0, 4]] == V[[0, 4]]).all() and not found[[1, 2, 3, 5]].any()
    y = np.ones(6, np.int32)
    outside = models.release(plan, V, y, bytes(32)).parts
    assert outside == models.release(plan, found, y, bytes(32)).parts


# ---- intervals


def test_isotropic_noise_gives_the_covariance_of_linearise():
    rng = np.random.default_rng(307)
    d, n, lam = 4, 3000, 1e-3
    A = rng.standard_normal((50, d)) / 5
    H, w = A.T @ A / 50 + 0.01 * np.eye(d), rng.standard_normal(d)
    deviation, level = 0.002, 0.1
    variances = np.full((d, d), deviation**2 / 2) + np.diag(np.full(d, deviation**2 / 2))
    noise = Noise(-40, 2**41, Body(d), "l2")
    spread = math.sqrt(noise.variances[0])
    own = norm_tables.scaled(variances)
    assert own.deviation == pytest.approx(deviation) and np.allclose(own.scales, 1)
    found = norm_tables.linearised(
        *(w, H, n, lam, noise, np.full(d, 0.01**2), own, np.eye(d)), level=level
    )
    other = linearise(
        *(w[None], H[None], n, lam, spread, 0.01, None, deviation),
        lambda hessian, U: logistic_change(hessian, U, np.array([level])),
    )
    assert np.allclose(found.weights, other.estimate[0])
    # Besides, the ridge's bias to first order, times the mean square change of log l''.
    added = other.estimate[0] - w
    assert np.linalg.norm(added) > 1e-3
    values, vectors = np.linalg.eigh(found.covariance - other.covariance[0])
    assert np.allclose(values[:-1], 0, atol=1e-9) and 0 < values[-1] <= added @ added
    assert abs(vectors[:, -1] @ added) == pytest.approx(np.linalg.norm(added))
    assert np.allclose(found.unresolved, other.unresolved[0])


def test_scaled_noise_is_within_isotropic_noise():
    rng = np.random.default_rng(308)
    for body in (Body(5), HOSPITAL):
        u = u_of(body.parts)
        plan = norm_models.pure_table(6000, body, u, 1.0, share=0.2)
        own = plan.noise_of("hessian")
        v = rng.standard_normal((500, body.count))
        squares = v**2
        exact = 2 * np.einsum("ki,ij,kj->k", squares, own.variances, squares) - squares**2 @ (
            np.diagonal(own.variances)
        )
        most = own.deviation * (squares @ own.scales**2)
        assert (np.sqrt(exact) <= most * (1 + 1e-9)).all()
        assert (np.sqrt(exact) / most).max() > 0.3


def test_quantiles_of_the_mixture():
    """Exact ones for the l2 tilt and an exponential one; for a level of seven, close to the exact 2.110."""
    for d, value in ((2, 2.080), (5, 2.028), (10, 1.999)):
        assert norm_tables.quantile(1.0, 6 / (d + 1)) == pytest.approx(value, abs=1e-3)
    assert norm_tables.quantile(0.75, 2.0) == pytest.approx(2.020, abs=1e-3)
    assert norm_tables.quantile(1.0, 3.0) == pytest.approx(math.log(20) / math.sqrt(2), abs=1e-3)
    level = Body(11, (tuple(range(4, 11)),)).kurtosis(np.eye(11)[4:5])[0]
    assert norm_tables.quantile(1.0, level) == pytest.approx(2.110, rel=0.01)
    assert norm_tables.quantile(1.0, -0.5) == pytest.approx(1.95996, abs=1e-4)
    assert norm_tables.outside(10.0, 1.0, 3.0) == pytest.approx(math.exp(-10 * math.sqrt(2)), 1e-6)


def test_a_small_trace_is_mostly_noise():
    """The share is that of the mean of a normal variable whose mean above `least` is the released one."""
    for mean in (2.0, 3.5, 5.0):
        above = stats.truncnorm(3.0 - mean, math.inf, loc=mean).mean()
        assert norm_tables.unselected_share(above, 3.0) * above == pytest.approx(mean, abs=0.01)
    assert norm_tables.unselected_share(20.0, 3.0) == pytest.approx(1, abs=1e-6)
    assert norm_tables.unselected_share(2.9, 3.0) == 1.0
    assert norm_tables.unselected_share(3.01, 3.0) < 0.5


@pytest.mark.parametrize("rate", [0.3, 0.02, 0.001])
def test_the_ridges_bias_is_within_the_interval_as_long_as_there_is_one(rate):
    """An intercept of many rows without noise: the exact minimiser is off by the ridge's bias alone."""
    true, noise, seen = math.log(rate / (1 - rate)), Noise(-60, 2**41, Body(1)), []
    for bias in (0.3, 0.6, 0.9, 1.2, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 6.8):
        w = true + bias * abs(true) / 7
        p = 1 / (1 + math.exp(-w))
        lam, curvature = (p - rate) / -w, p * (1 - p)
        own = norm_tables.scaled(np.zeros((1, 1)))
        about = np.array([w]), np.array([[curvature]]), 10**12, lam, noise, np.zeros(1), own
        found = norm_tables.linearised(*about, np.eye(1), level=curvature)
        seen.append(bool(found.answered[0]))
        error = abs(true - found.weights[0])
        assert error <= 1.96 * math.sqrt(found.covariance[0, 0]) or not seen[-1], bias
    assert seen[:5] == [True] * 5 and (not seen[-1] or rate == 0.3)


def test_the_bound_on_a_change_of_scores_is_never_an_error():
    """It depends on released numbers alone, and any may come."""
    for change, slope in itertools.product((0.0, 1e-9, 0.3, 1.0, 1.5, 1e3, 1e200), (0.0, 0.4, 1.0)):
        found = norm_tables.grown(change, slope)
        assert found >= 1 and (change < 1 or slope < 1 or found == math.inf)
        assert norm_tables.lacking(0.1, change, slope) >= 0.1
    assert norm_tables.grown(math.nan, 0.4) == math.inf == norm_tables.grown(1e200, 0.0)
    assert norm_tables.grown(0.5, 0.2) < norm_tables.grown(0.5, 0.9) < norm_tables.grown(0.5, 1.0)


def coverage(name, n, epsilon, law, releases):
    """Covered share of each coefficient's printed intervals, and how many were printed."""
    made = Rows(name)
    about = n, made.body, made.u, epsilon
    plan = (
        norm_models.pure_table(*about) if law == "pure" else norm_models.mixed_table(*about, 1e-6)
    )
    covered = []
    for k in range(releases // 2):
        rng = generator(309, name, n, k)
        _, V, y = made.draw(n, rng)
        for _ in range(2):
            release = models.release(plan, V, y, rng.bytes(32))
            table = files.table_of(release, made.stated.names, *made.units[1])[0]
            covered.append(
                [
                    math.nan if row["low"] is None else row["low"] <= true <= row["high"]
                    for row, true in zip(table, made.truth, strict=True)
                ]
            )
    covered = np.array(covered, dtype=float)
    return np.nanmean(covered, axis=0), np.isfinite(covered).sum(axis=0)


@pytest.mark.parametrize("law", ["pure", "mixed"])
@pytest.mark.parametrize("name", ["plain_five", "two_categories"])
def test_intervals_cover(name, law):
    share, count = coverage(name, 3000, 1.0, law, 60)
    assert (count > 50).all() and share.mean() >= 0.9
    assert (share >= 0.9 - 3 * np.sqrt(0.09 / count)).all()


@pytest.mark.slow
@pytest.mark.parametrize("law", ["pure", "mixed"])
@pytest.mark.parametrize(
    "name", ["rare_level", "rare_class", "dominated", "collinear", "strong", "skewed", "hospital"]
)
def test_intervals_of_uneven_designs_cover(name, law):
    share, count = coverage(name, 5000, 1.0, law, 150)
    some = count > 50
    assert (share[some] >= 0.9 - 3 * np.sqrt(0.09 / count[some])).all(), (share, count)


def test_weights_are_quieter_than_those_of_gaussian_releases():
    """Root mean square of weights about the minimiser, times rows: as the laws' formulas say."""
    body = Body(5)
    plan = norm_models.weights_alone(3000, body, u_of(5), 1.0)
    old = models.objective_perturbation(3000, 5, 1.0, 1e-6)
    new = math.sqrt(plan.tilt.noise.variances.mean())
    assert 0.38 < new / float(old.tilt.noise.deviation) < 0.42
