"""A class rate that is released first: theorem 5 against exact laws, certificates, attacks and the rule."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from test_norm_models import (
    HOSPITAL,
    LOGISTIC,
    PLANS,
    coarse,
    found_by,
    laplace_masses,
    log_ratios,
)

from dp import losses
from dp.offset import Centre
from dp.seeds import generator
from dp_privacy.errors import Refused
from dp_release import contrasts, files, holdout, models, norm_models, norm_noise, rate, rows, tilt
from dp_release.draws import Stream
from dp_release.forecast import Study, compared
from dp_release.norm_noise import Body, Noise
from dp_release.request import ALONE, Request
from norm_rows import Rows, u_of
from norm_rows import schema as rows_of

# ---- theorem 5, exactly in one dimension


def minimisers(x, y, lam, offset, tilts):
    """The minimiser for every tilt, with the losses and scores written down once more."""
    low, high = np.full(len(tilts), -1e4), np.full(len(tilts), 1e4)
    for _ in range(120):
        w = (low + high) / 2
        z = y * (np.multiply.outer(w, x) + offset)
        slope = (-y * x * 0.5 * (1 - np.tanh(z / 2))).sum(axis=1) + len(x) * lam * w + tilts
        low, high = np.where(slope < 0, w, low), np.where(slope < 0, high, w)
    return (low + high) / 2


def law_of_weights(plan, x, y, offset):
    """The first lattice point and the probabilities from there on, given an offset."""
    scale, noise = plan.tilt.noise.scale, plan.noises["weights"]
    k = np.arange(-60 * scale, 60 * scale + 1)
    w = minimisers(x, y, plan.problem.lam, offset, float(plan.tilt.noise.spacing) * k)
    centre = np.rint(w / float(noise.spacing)).astype(int)
    at = np.bincount(centre - centre.min(), weights=laplace_masses(scale, 60 * scale))
    reach = 45 * noise.scale
    return centre.min() - reach, np.convolve(at, laplace_masses(noise.scale, reach))


def joint_loss(made, plan, first, second):
    """The largest |log ratio| of the rate and the weights together, on data sets of one column."""
    n, centres = len(first[0]), []
    for _, y in (first, second):
        centres.append(round(rate.total(y) / made.spacing))
    largest = 0.0
    for released in range(min(centres) - 3 * made.scale, max(centres) + 3 * made.scale + 1, 12):
        own = (abs(released - centres[1]) - abs(released - centres[0])) / made.scale
        offset = rate.offset(released, made, n)
        low, high = log_ratios(*(law_of_weights(plan, *data, offset) for data in (first, second)))
        largest = max(largest, own + high, -own - low)
    return largest


def test_exact_joint_losses_are_at_most_the_theorems():
    rng, n = generator(401), 12
    made = Noise(-3, 8, Body(1), paid=Fraction(9, 8))
    for share in (1.0, 0.37):
        x, y = rng.uniform(-1, 1, n), rng.choice([-1.0, 1.0], n)
        x[-1] = y[-1] = 1.0
        x2, y2 = np.append(x[:-1], share), np.append(y[:-1], -1.0)
        plan = coarse(LOGISTIC, 20, 40, 1e-9, step=-3)
        found = joint_loss(made, plan, (x, y), (x2, y2))
        both = float(plan._replace(noises={"rate": made, **plan.noises}).certain)
        assert max(float(made.paid), float(plan.certain)) < found <= both


def test_a_row_moves_the_rate_by_no_more_than_is_paid():
    rng = np.random.default_rng(402)
    for _ in range(50):
        y = rng.integers(-1, 2, 40).astype(float)
        other = y.copy()
        other[rng.integers(40)] = rng.integers(-1, 2)
        moved = abs(rate.total(y) - rate.total(other))
        assert moved <= 1 and rate.total(y) == Fraction(int((y == 1).sum()) * 2 + (y == 0).sum(), 2)
        for epsilon in (1e-3, 0.1, 4.0):
            made = rate.noise(Fraction(epsilon))
            points = round(moved / made.spacing)  # both are on the lattice, or within half a point
            assert points / made.scale <= made.paid <= Fraction(epsilon)
    extreme = [rate.total(np.full(40, sign)) for sign in (-1.0, 1.0)]
    assert extreme == [0, 40]


def test_offsets_are_within_their_public_bound():
    made = rate.noise(Fraction(1, 10))
    for n in (5, 50, 3000, 10**6):
        most, steps = rate.largest(made, n), 1 / float(made.spacing)
        centre = Centre(n, float(made.unit), gaussian=False, numbers=False)
        found = []
        for count in (-(10**9), -5, 0, 0.01 * n, n / 2, n, n + 40, 10**9):
            offset = rate.offset(round(count * steps), made, n)
            assert abs(offset) <= most and (offset * rows.ONE).is_integer()
            assert offset == pytest.approx(centre.offsets(np.array([count / n]))[0], abs=1e-6)
            found.append(offset)
        assert found == sorted(found) and found[4] == pytest.approx(0, abs=1e-6)
    assert found[3] == pytest.approx(math.log(0.01 / 0.99), abs=0.01)


# ---- the solver's certificate


def exact_gradient(problem, X, y, point, pull, offset):
    with mpmath.workdps(40):
        w = [mpmath.mpf(float(each)) for each in point]
        total = [mpmath.mpf(0)] * problem.d
        for x, label in zip(X.tolist(), y.tolist(), strict=True):
            score = mpmath.fdot(x, w) + mpmath.mpf(offset)
            slope = -label / (1 + mpmath.exp(score * label))
            total = [a + slope * b for a, b in zip(total, x, strict=True)]
        rest = zip(total, w, pull.tolist(), strict=True)
        return [t / len(X) + problem.lam * v + b for t, v, b in rest]


@pytest.mark.parametrize("offset", [-16.0, -5.25, 3.0])
def test_gradients_with_an_offset_are_within_the_bound(offset):
    rng = generator(403, offset)
    n, d = 300, 3
    X = np.trunc(rng.uniform(-1, 1, (n, d)) / math.sqrt(d) * rows.ONE) / rows.ONE
    y, pull = rng.choice([-1.0, 1.0], n), rng.normal(size=d)
    problem = tilt.Problem(n, d, 1e-3, LOGISTIC, 2.0, 16.0)
    assert problem.rounding(1.0) > problem._replace(most=0.0).rounding(1.0)
    for size in (0.1, 20.0, 1e4):
        point = size * rng.normal(size=d)
        hi, lo = tilt.split(point)
        found = tilt.gradient(problem, X, y, hi, lo, pull, None, offset)
        with mpmath.workdps(40):
            exact = exact_gradient(problem, X, y, point, pull, offset)
            error = mpmath.sqrt(
                mpmath.fsum((a - b) ** 2 for a, b in zip(found, exact, strict=True))
            )
        assert error <= problem.rounding(math.hypot(*point))
        without = tilt.gradient(problem, X, y, hi, lo, pull)
        assert np.linalg.norm(without - found) > 1e-3 or size > 100


def test_minimisers_with_an_offset_are_certified_on_extreme_data():
    rng, n, d = generator(404), 200, 2
    X = np.trunc(rng.uniform(-1, 1, (n, d)) / math.sqrt(d) * rows.ONE) / rows.ONE
    X[:, 1] = np.trunc(rows.ONE / math.sqrt(d)) / rows.ONE
    problem = tilt.Problem(n, d, 0.01, LOGISTIC, 1.0, 8.0)
    tolerance, pull = tilt.effort(problem).least, np.array([3.0, -40.0])
    for label, offset in itertools.product((-1.0, 1.0), (-8.0, 0.0, 8.0)):
        y = np.full(n, label)
        points = [tilt.minimiser(problem, X, y, pull, tolerance, None, offset)]
        if label * offset < 0:
            descended = tilt.descend(problem, X, y, pull / n, tolerance, offset=offset)
            points.append(tilt._exact(*descended[:2]))
        for point in points:
            exact = exact_gradient(problem, X, y, np.array(point, float), pull / n, offset)
            assert mpmath.sqrt(mpmath.fsum(v * v for v in exact)) <= tolerance + 1e-13


def test_offsets_beyond_the_bound_are_no_offsets():
    problem = tilt.Problem(2, 1, 0.1, LOGISTIC, 1.0, 4.0)
    with pytest.raises(ValueError, match="public bound"):
        tilt.minimiser(problem, np.ones((2, 1)), np.ones(2), np.zeros(1), 1e-6, None, 4.5)


# ---- plans and releases


def check_costs(plan):
    """The parts' costs add up to the plan's, and each part is paid for with those before it."""
    costs = plan.costs()
    assert list(costs) == list(plan.noises)
    totals = tuple(map(sum, zip(*costs.values(), strict=True)))
    assert totals == (Fraction(str(plan.epsilon)), Fraction(str(plan.delta)))
    assert costs["rate"][0] >= plan.noises["rate"].paid and costs["rate"][1] == 0
    rest = plan._replace(noises={k: v for k, v in plan.noises.items() if k in ("rate", "weights")})
    (rate_, _), (weights, delta) = costs["rate"], costs["weights"]
    assert rest.delta_at(float(rate_ + weights) * (1 + 1e-12)) <= max(float(delta), 1e-20)
    if "hessian" in costs and not plan.delta:
        assert costs["hessian"][0] >= plan.noises["hessian"].paid


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("name", PLANS)
def test_plans_with_a_rate_keep_their_guarantee_and_spend_it(name, epsilon):
    for body in (Body(5), HOSPITAL):
        about = (20_000, body, u_of(body.parts), epsilon)
        about += (1e-6,) if name == "mixed" else ()
        make = {"weights": norm_models.weights_alone, "pure": norm_models.pure_table}
        plan = make.get(name, norm_models.mixed_table)(*about, LOGISTIC, offset=True)
        first = plan.noises["rate"]
        assert next(iter(plan.noises)) == "rate"
        assert 0.0999 * epsilon < first.paid <= Fraction(epsilon) / 10
        assert plan.problem.most == rate.largest(first, 20_000) >= 1
        if name == "mixed":
            assert 0.999e-6 < plan.delta_at(epsilon) <= 1e-6
            cheaper = plan._replace(noises={k: v for k, v in plan.noises.items() if k != "rate"})
            assert cheaper.certain == plan.certain - first.paid
        else:
            assert 0.999999 * epsilon < plan.certain <= Fraction(epsilon)
        assert "the rate is of class 1" in plan.guarantee().reason
        check_costs(plan)
        # Lambda is at the threshold of what the tilt alone costs.
        m = norm_noise.shift(plan.tilt.noise, 1.0, plan.u)
        assert plan.problem.n * Fraction(plan.problem.lam) * m >= 1 - Fraction(1, 10**6)


@pytest.mark.slow
def test_a_rate_beside_an_l2_tilt():
    about = 20_000, Body(20), u_of(20), 1.0, 1e-6
    plan = norm_models.mixed_table(*about, offset=True)
    assert plan.tilt.noise.law == "l2" and 0.95e-6 < plan.delta_at(1.0) <= 1e-6
    without = plan._replace(noises={k: v for k, v in plan.noises.items() if k != "rate"})
    assert without.delta_at(1.0) < 0.9e-6
    check_costs(plan)


def test_an_offset_is_for_two_classes():
    with pytest.raises(Refused, match="two classes"):
        norm_models.weights_alone(1000, Body(2), u_of(2), 1.0, losses.LogCosh(0.25), offset=True)


def test_all_parts_are_around_the_released_offset():
    """The rate is exact counts plus its own stream's noise, and all later parts are around its offset."""
    made = Rows("rare_class")
    n, key = 4000, bytes(range(32))
    _, V, y = made.draw(n, generator(405))
    plan = norm_models.pure_table(n, made.body, made.u, 8.0, offset=True)
    release = models.release(plan, V, y, key)
    noise = plan.noises["rate"]
    z = noise.draw(Stream(key, "rate"))
    assert list(release.parts) == ["rate", "weights", "hessian"]
    assert release.parts["rate"] == [int(rate.total(y.astype(float)) / noise.spacing) + z[0]]
    assert release.offset() == rate.offset(*release.parts["rate"], noise, n) < -3
    assert models.release(plan, V, y, key).parts == release.parts  # a replay
    X, w = V / rows.ONE, release.floats("weights")
    p = 1 / (1 + np.exp(-X @ w - release.offset()))
    exact = plan.beside.vector((X.T * (p * (1 - p))) @ X)
    spread = np.sqrt(norm_models._variances(plan.noises["hessian"]))
    assert np.abs((release.floats("hessian") - exact) / spread).max() < 8
    b = tilt.draw(plan.tilt, Stream(key, "tilt"))
    gradient = X.T @ (p - (y > 0)) + n * plan.problem.lam * w + b
    output = math.sqrt(norm_models._variances(plan.noises["weights"])[0]) * n
    assert np.linalg.norm(gradient) < 10 * output + 1e-3


def test_the_rates_integers_of_neighbours_differ_as_their_labels_do():
    made = Rows("plain_five")
    plan = norm_models.weights_alone(60, made.body, made.u, 1.0, offset=True)
    _, V, y = made.draw(60, generator(406))
    other = y.copy()
    other[-1] = -other[-1]
    one, two = (models.release(plan, V, each, bytes(32)).parts["rate"][0] for each in (y, other))
    noise = plan.noises["rate"]
    assert abs(one - two) == 1 / noise.spacing <= noise.paid * noise.scale


# ---- attacks


def test_the_attack_on_the_rate_alone_finds_what_is_paid():
    """It works, so less noise would be found."""
    made = rate.noise(Fraction(2))
    exact = [Fraction(0), Fraction(1)]

    def attacked(noise):
        streams = [Stream(bytes([side]) * 32, "rate") for side in range(2)]
        scores = [
            [[float(total + noise.draw(stream)[0] * noise.spacing)] for _ in range(1500)]
            for total, stream in zip(exact, streams, strict=True)
        ]
        return found_by(np.array(scores))

    assert 1.2 < attacked(made) <= 2
    assert attacked(made._replace(scale=made.scale // 3)) > 2


LAWS = {
    "weights": lambda about, offset: norm_models.weights_alone(*about, offset=offset),
    "pure": lambda about, offset: norm_models.pure_table(*about, share=0.2, offset=offset),
    "mixed": lambda about, offset: norm_models.mixed_table(*about, 1e-6, share=0.1, offset=offset),
}
LINE, ODD = b"98,f,yes", [b"", b"98,f,", b"9 8,f,yes", b"98,\xff,yes", b'"', b"nan,f,yes"]


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("law", LAWS)
def test_odd_lines_are_not_told_apart_by_parity_or_size(law, offset):
    """Releases of two files that differ in one line, which is odd in one of them.

    The attacker looks at sizes and at low bits of all released integers, the rest of the files known.
    """
    schema = rows.Schema(
        [rows.Number("age", 18, 98), rows.Category("sex", ("f", "m")), rows.Label("ill", ("yes",))],
        "ill",
    )
    levels = contrasts.all_levels(schema)
    epsilon, trials, common = 0.5, 60, [b"98,f,yes", b"18,m,no"] * 6
    about = 13, contrasts.body(levels), Fraction(levels.each, rows.ONE), epsilon
    plan = LAWS[law](about, offset)
    for k, odd in enumerate(ODD if law == "weights" and offset else ODD[:1]):
        scores = []
        for side, line in enumerate((LINE, odd)):
            V, y = levels.rows([*common, line], 13)
            assert V[-1].any() == (side == 0)
            each = []
            for trial in range(trials):
                key = bytes([k, side]) + trial.to_bytes(30, "big")
                parts = models.release(plan, V, y, key).parts
                integers = [number for part in parts.values() for number in part]
                bits = [float(i >> shift & 1) for i in integers for shift in (0, 1, 20)]
                each.append([float(i) for i in integers] + bits)
            scores.append(each)
        assert found_by(np.array(scores)) <= epsilon


# ---- what it is worth


def test_the_rule_takes_a_rate_where_it_costs_little():
    def made(maker, n, body, epsilon, *more):
        return lambda first: maker(n, body, u_of(body.parts), epsilon, *more, offset=first)

    def taken(*about):
        return "rate" in norm_models.with_offset(made(*about), "rule").noises

    assert taken(norm_models.weights_alone, 1000, Body(5), 1.0)
    assert not taken(norm_models.weights_alone, 300, Body(10), 0.5)
    assert taken(norm_models.pure_table, 20_000, Body(5), 1.0)
    assert not taken(norm_models.pure_table, 3000, Body(5), 1.0)
    assert not taken(norm_models.mixed_table, 3000, HOSPITAL, 1.0, 1e-6)
    numbers = made(norm_models.weights_alone, 10**5, Body(3), 1.0, losses.LogCosh(0.25))
    assert "rate" not in norm_models.with_offset(numbers, "rule").noises
    few = made(norm_models.weights_alone, 300, Body(10), 0.5)
    assert "rate" in norm_models.with_offset(few, "paid").noises
    many = made(norm_models.weights_alone, 10**5, Body(5), 1.0)
    assert "rate" not in norm_models.with_offset(many, "none").noises


def asked(sizes, n, **more):
    values = {"name": "first", "schema": rows_of(sizes).facts, "rows": n, "epsilon": 0.5}
    values |= {"unit": "one row is one person", "premise": "public example"}
    return Request.parsed(values | more)


def test_a_request_that_insists_on_a_rate_is_told_where_it_is_predicted_to_lose():
    ten, few = (1,) * 9, (1,) * 4
    alone = {"method": ALONE, "options": {"offset": "paid"}}
    said = asked(ten, 1000, **alone).warning()
    made = [norm_models.weights_alone(1000, Body(10), u_of(10), 0.5, offset=o) for o in (0, 1)]
    # The tilt's variance, and with it the loss to second order, is that of 0.9 epsilon.
    more = norm_models.noise_loss(made[0]) * (1 / 0.81 - 1)
    told = float(said.split("loss of predictions by ")[1].split(" ")[0])
    assert told == pytest.approx(more, rel=0.05) and 0.002 < told < 0.004
    assert "the rule pays up to 0.002" in said
    assert asked(few, 1000, **alone).warning() == ""  # here the rule pays
    for option in ("rule", "none"):
        assert asked(ten, 1000, method=ALONE, options={"offset": option}).warning() == ""
    table = {"method": "noise_aware_logistic", "options": {"offset": "paid"}}
    for law in ({"law": "pure"}, {"law": "mixed", "delta": 1e-6}, {"law": "rule", "delta": 1e-6}):
        said = asked(ten, 20_000, **table, **law).warning()
        assert 1.06 < float(said.split("intervals ")[1].split(" ")[0]) < 1.5, law
    study = Study(rows_of(ten))
    lines = compared(asked(ten, 1000, **alone), study, draws=9)
    assert sum("is predicted to" in line for line in lines) == 3


def intercepts(name, n, law, releases, offset, seed=409):
    """(covered share, number) of printed intercepts at epsilon 1."""
    made = Rows(name)
    about = n, made.body, made.u, 1.0
    plan = (
        norm_models.pure_table(*about, offset=offset)
        if law == "pure"
        else norm_models.mixed_table(*about, 1e-6, offset=offset)
    )
    covered = []
    for k in range(releases):
        rng = generator(seed, name, k)
        _, V, y = made.draw(n, rng)
        release = models.release(plan, V, y, rng.bytes(32))
        row = files.table_of(release, made.stated.names, *made.units[1])[0][-1]
        if row["low"] is not None:
            covered.append(row["low"] <= made.truth[-1] <= row["high"])
    return np.mean(covered), len(covered)


# Of 4,000 releases of `rarer_class` under the law mixed, those that print an intercept.
@pytest.mark.parametrize("offset", [False, True])
def test_intercepts_of_a_rare_class_cover(offset):
    share, count = intercepts("rare_class", 3000, "pure", 60, offset)
    assert count > 30 and share >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("law", ["pure", "mixed"])
@pytest.mark.parametrize("name", ["fresh_three", "fresh_condition", "fresh_two"])
def test_intercepts_of_fresh_designs_with_rarer_classes_cover(name, law):
    """The widening by the ridge's bias was chosen on `rarer_class` and `rare_class`, not on these."""
    for offset in (False, True):
        share, count = intercepts(name, 3000, law, 160, offset)
        assert count < 10 or share >= 0.9 - 3 * math.sqrt(0.09 / count), (share, count)


def test_held_out_scores_have_the_offset_exactly():
    rng = np.random.default_rng(410)
    V = rng.integers(-(2**18), 2**18, (400, 3)).astype(np.int32)
    y = rng.choice([-1, 1], 400).astype(np.int32)
    for step in (-45, -3, 2):
        weights, offset = [int(v) for v in rng.integers(-50, 50, 3)], -1234567 / rows.ONE
        unit = Fraction(2) ** step
        shift = Fraction(offset) * rows.ONE / unit
        exact = [
            sum(Fraction(int(a), rows.ONE) * b * unit for a, b in zip(v, weights, strict=True))
            + Fraction(offset)
            for v in V.tolist()
        ]
        wrong = sum((1 if s > 0 else -1) != label for s, label in zip(exact, y, strict=True))
        found = holdout.sums(V, y, weights, None, None, shift)
        assert found[0] == (2 * wrong - 400) << 40
        assert holdout.scores(V, weights, shift)[0] * unit / rows.ONE == exact[0]
        assert holdout.sums(V, y, weights, None) != found or step != -45
