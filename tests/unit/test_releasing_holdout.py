import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import binomtest, chi2

from dp import losses
from dp_privacy.errors import Refused
from dp_privacy.profiles import Gaussian
from dp_release import book as books
from dp_release import card, files, holdout, lattice, making, meaning, models, rows
from dp_release.book import Book, Budget
from dp_release.draws import new_key
from dp_release.request import CHOSEN_WITHOUT, Request
from lattices import from_floats

KEY = bytes(range(32))
ONE = rows.ONE


def key(k):
    return k.to_bytes(32, "big")


def test_every_set_of_positions_is_as_likely():
    check_positions()


def check_positions():
    count = 4000
    results = Counter(tuple(np.flatnonzero(holdout.held_out(6, 3, key(k)))) for k in range(count))
    assert len(results) == 20
    statistic = sum((seen - count / 20) ** 2 / (count / 20) for seen in results.values())
    assert statistic < chi2.isf(1e-4, 19)


def test_the_key_alone_decides_and_the_number_is_exact():
    first = holdout.held_out(1000, 137, KEY)
    assert first.sum() == 137
    assert (first == holdout.held_out(1000, 137, KEY)).all()
    assert (first != holdout.held_out(1000, 137, key(5))).any()


@pytest.mark.parametrize(("n", "share"), [(1000, 0.0), (1000, 1.0), (200, 0.1), (100, 0.9)])
def test_both_parts_need_rows(n, share):
    with pytest.raises(Refused):
        holdout.size(n, share)
    assert holdout.size(3000, 0.1) == 300


def test_sums_of_classes_by_hand():
    V = np.array([[ONE // 2, 5], [-ONE // 2, 7], [0, 9], [0, 0], [3, -3]], np.int32)
    y = np.array([1, 1, -1, 1, 0], np.int32)
    # In order: a right prediction, a wrong one, a right one (a score of 0 means the first class), a row of
    # zeros (no record), and a row without a label.
    assert holdout.sums(V, y, [1 << 60, 0], None) == [-1 << 40, 1 << 40, 6 << 40]


def test_sums_of_numbers_by_hand():
    V = np.array([[ONE // 2, 0], [-ONE // 4, 0], [ONE, 0]], np.int32)
    y = np.array([5 * ONE // 8, ONE // 4, -ONE], np.int32)
    # The weight is 4, so the predictions are 2, -1 and 4, clipped to [-1, 1].
    actual = holdout.sums(V, y, [1 << 32, 0], -30)
    e = 8 * Fraction(3, 8) ** 2 - 1 + 1 + 1
    unit = Fraction(1, 1 << 40)
    truth = [e, Fraction(5, 8) + Fraction(1, 4) - 1, Fraction(25, 64) + Fraction(1, 16) + 1, 6]
    assert [each * unit for each in actual] == truth


@pytest.mark.parametrize("step", [None, -70])
def test_sums_are_exact_in_every_order(step):
    rng = np.random.default_rng(2)
    V = rows.shortened(rng.integers(-(1 << 18), 1 << 18, (800, 6)))
    V[::7] = V[1::7][: len(V[::7])] * np.array([1, -1, 1, -1, 1, -1])
    weights = [int(w) for w in rng.integers(-(1 << 62), 1 << 62, 6)]
    y = rng.integers(-1, 2, 800) if step is None else rng.integers(-ONE, ONE + 1, 800)
    actual = holdout.sums(V, y, weights, step)
    for _ in range(2):
        order = rng.permutation(800)
        assert holdout.sums(V[order], y[order], weights, step) == actual
    one_by_one = np.sum(
        [holdout.sums(V[i : i + 1], y[i : i + 1], weights, step) for i in range(800)], axis=0
    )
    assert one_by_one.tolist() == actual


def test_predictions_by_integers_are_those_by_fractions():
    rng = np.random.default_rng(3)
    V, step = rng.integers(-ONE, ONE, (50, 3)), -61
    weights = [int(w) for w in rng.integers(-(1 << 61), 1 << 61, 3)]
    actual = holdout.numbers(holdout.scores(V, weights), step)
    for v, value in zip(V.tolist(), actual, strict=True):
        exact = sum(a * b for a, b in zip(v, weights, strict=True)) * lattice.spacing(step)
        assert value == min(max(math.floor(exact), -ONE), ONE)


def every_record(step):
    """What a record adds to the sums, for all signs of score and label, or a grid of scores and targets."""
    if step is None:
        return [
            holdout.summands(np.array([s]), np.array([t]), None)[0]
            for s in (-1, 0, 1)
            for t in (-1, 1)
        ]
    grid = [round(k * ONE / 16) for k in range(-16, 17)]
    scores = np.array([each << 30 for each in (-2 * ONE, *grid, 2 * ONE)], dtype=object)
    pairs = list(itertools.product(range(len(scores)), grid))
    return list(
        holdout.summands(scores[[i for i, _ in pairs]], np.array([t for _, t in pairs]), -30)
    )


@pytest.mark.parametrize("step", [None, -30])
def test_two_records_are_at_most_root_8_apart_and_some_are(step):
    values = [np.zeros_like(every_record(step)[0]), *every_record(step)]
    V = np.array(sorted(set(map(tuple, values)))) / 2**40
    squares = ((V[:, None] - V[None]) ** 2).sum(axis=2)
    assert squares.max() == 8
    none = (V == 0).all(axis=1)
    assert none.sum() == 1 and squares[none].max() <= 7


def test_any_bytes_as_rows_stay_within_the_sensitivity():
    rng = np.random.default_rng(4)
    for step in (None, -40):
        for _ in range(200):
            V = rng.integers(-(2**31), 2**31, (2, 3))
            y = rng.integers(-(2**31), 2**31, 2)
            weights = [int(w) for w in rng.integers(-(1 << 62), 1 << 62, 3)]
            one, other = (holdout.sums(V[i : i + 1], y[i : i + 1], weights, step) for i in (0, 1))
            assert math.dist(one, other) <= float(holdout.APART) * 2**40


def answers(records, epsilon):
    """Law of a toy release: randomised response on whether most records are 1."""
    most = 2 * sum(records) > len(records)
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    return {True: right if most else 1 - right, False: 1 - right if most else right}


def counted(records, answer, scale):
    """Law of the number of held-out records that differ from the answer, plus discrete Gaussian noise."""
    reach = np.arange(-12 * scale, 12 * scale + len(records) + 1)
    p = np.exp(-((reach - sum(r != answer for r in records)) ** 2) / (2 * scale**2))
    return p / p.sum()


def law(records, sets, epsilon, scale, order=None):
    """Joint law of a toy release's answer and its holdout's count."""
    records = records if order is None else [records[i] for i in order]
    total = 0
    for out in sets:
        held = [records[i] for i in out]
        rest = [r for i, r in enumerate(records) if i not in out]
        parts = [p * counted(held, a, scale) for a, p in sorted(answers(rest, epsilon).items())]
        total = total + np.concatenate(parts) / len(sets)
    return total


def divergence(p, q, epsilon):
    return max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p)))


def test_exact_neighbours_pay_the_maximum():
    """On all data sets of 5 records, in 3 orders, a replacement costs no more than the costlier part."""
    n, held, rr, scale = 5, 2, 0.8, 2
    sets = list(itertools.combinations(range(n), held))
    reach = range(-12 * scale, 12 * scale + 2)
    # Neighbours' counts differ by one, so p and q are the exact laws of the count alone.
    p, q = (np.array([math.exp(-((k - c) ** 2) / (2 * scale**2)) for k in reach]) for c in (0, 1))
    p, q = p / p.sum(), q / q.sum()
    for epsilon in (0.0, 0.8, 1.2):
        alone = max(math.expm1(max(rr - epsilon, 0)) * math.exp(epsilon) / (1 + math.exp(rr)), 0.0)
        most = max(alone, divergence(p, q, epsilon))
        worst, fixed = 0.0, 0.0
        for records in itertools.product((0, 1), repeat=n):
            base = law(records, sets, rr, scale)
            whole = law(records, sets[:1], rr, scale)
            for i in range(n):
                other = list(records)
                other[i] = 1 - other[i]
                for order in ((0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 0, 4, 1, 3)):
                    actual = law(other, sets, rr, scale, order)
                    worst = max(worst, divergence(base, actual, epsilon))
                    actual = law(other, sets[:1], rr, scale, order)
                    fixed = max(fixed, divergence(whole, actual, epsilon))
        assert worst <= most + 1e-12
        # If positions are fixed, a neighbour in another order changes both parts, so its divergence
        # can exceed the costlier part's.
        assert fixed > most + 0.01


@cache
def model():
    return models.objective_perturbation(900, 3, 1.0, 1e-6)


@pytest.fixture(scope="module")
def plan():
    return holdout.package(model(), 100)


def data(rng, n=1000):
    X = rng.standard_normal((n, 2)) / 3
    V, _ = from_floats(np.c_[X, np.full(n, 0.5)], np.ones(n))
    return V, np.where(V[:, 0] + rng.normal(0, ONE / 4, n) > 0, 1, -1).astype(np.int32)


def test_a_package_costs_no_more_than_its_model(plan):
    assert plan.delta_at(1.0) <= 1e-6
    assert plan.n == 1000
    for epsilon in (0.0, 0.5, 2.0):
        assert plan.delta_at(epsilon) >= plan.model.delta_at(epsilon)
    check_scale()
    guarantee = plan.guarantee()
    assert "a row is in one part" in guarantee.reason.lower()
    assert guarantee.profile.delta(0.5) == plan.delta_at(0.5)


def check_scale():
    """The noise is for a sensitivity of sqrt(8) at (1, 1e-6), slightly increased for rounding."""
    actual = float(holdout.package(model(), 100).noise.deviation) / (math.sqrt(8) / 0.2367044)
    assert 1 <= actual * (1 + 1e-7) <= 1 + 1e-5


def test_a_replaced_record_changes_one_part():
    check_one_part()


def check_one_part():
    """Under one key, replacing a held-out record keeps the weights, and moves sums by at most sqrt(8)."""
    plan = holdout.package(model(), 100)
    rng = np.random.default_rng(6)
    V, y = data(rng)
    base = holdout.release(plan, V, y, KEY)
    out = holdout.held_out(1000, 100, KEY)
    outside, inside = np.flatnonzero(~out)[5], np.flatnonzero(out)[5]
    for position, held in ((outside, False), (inside, True)):
        other, labels = V.copy(), y.copy()
        other[position], labels[position] = -other[position], -labels[position]
        release = holdout.release(plan, other, labels, KEY)
        assert (release.model.parts == base.model.parts) == held
        # Other orders within parts give the same release.
        order = np.arange(1000)
        order[~out], order[out] = order[~out][::-1], order[out][::-1]
        again = holdout.release(plan, other[order], labels[order], KEY)
        assert again.model.parts == release.model.parts and again.sums == release.sums
        apart = math.dist(release.sums, base.sums) * float(plan.noise.spacing)
        if held:
            assert apart <= math.sqrt(8) * (1 + 1e-9)


def test_releases_have_the_noise_that_is_paid_for(plan):
    rng = np.random.default_rng(7)
    V, y = data(rng)
    errors = []
    for k in range(60):
        release = holdout.release(plan, V, y, key(k))
        out = holdout.held_out(1000, 100, key(k))
        truth = holdout.sums(V[out], y[out], release.model.parts["weights"], None)
        spacing = float(plan.noise.spacing)
        errors.append([a * spacing - b / 2**40 for a, b in zip(release.sums, truth, strict=True)])
    errors = np.array(errors) / float(plan.noise.deviation)
    statistic = (errors**2).sum()
    assert chi2.isf(1 - 1e-4, errors.size) < statistic < chi2.isf(1e-4, errors.size)
    assert abs(errors.mean()) < 4 / math.sqrt(errors.size)


def check_measured(noise, contributions, truth, keys, count):
    rng, inside, said = np.random.default_rng(8), 0, []
    for _ in range(keys):
        total = np.zeros(len(contributions(rng, 1)[0]))
        total = contributions(rng, count).sum(axis=0) / 2**40
        noisy = (total + rng.normal(0, float(noise.deviation), len(total))) / float(noise.spacing)
        actual = holdout.measured([int(each) for each in noisy], noise)
        inside += actual["low"] <= truth <= actual["high"]
        said.append(actual["error"])
    assert inside >= 0.91 * keys
    assert np.mean(said) == pytest.approx(truth, rel=0.03)


def test_measured_errors_of_classes(plan):
    def contributions(rng, count):
        wrong, label = rng.random(count) < 0.2, np.where(rng.random(count) < 0.3, 1, -1)
        return holdout.summands(np.where(wrong, -label, label), label, None)

    check_measured(plan.noise, contributions, 0.2, 300, 1000)
    noisy = [-600 << 40, 400 << 40, 2000 << 40]
    exact = holdout.measured(noisy, plan.noise._replace(step=-40, scale=1))
    assert exact["records"] == 1000 and exact["error"] == 0.2 and exact["positives"] == 0.7


def test_measured_errors_of_numbers():
    model = models.objective_perturbation(2000, 2, 1.0, 1e-6, losses.LogCosh(0.25))
    package = holdout.package(model, 1000)
    assert package.noise.count == 4

    def contributions(rng, count):
        target = rng.uniform(-0.4, 0.4, count)
        actual = target + rng.normal(0, 0.12, count)
        scores = (actual * ONE).astype(np.int64).astype(object)
        return holdout.summands(scores, (target * ONE).astype(np.int64), 0)

    check_measured(package.noise, contributions, 0.12, 100, 4000)
    many = contributions(np.random.default_rng(9), 200_000).sum(axis=0) // 200
    actual = holdout.measured(
        [int(each) for each in many], package.noise._replace(step=-40, scale=1)
    )
    assert actual["r2"] == pytest.approx(1 - 0.0144 / (0.64 / 12), abs=0.02)
    assert holdout.measured([0, 0, 0, 0], package.noise)["r2"] is None


LAWS = {
    "normal": (lambda rng, size: rng.normal(0, 0.12, size), 0.97),
    "exponential": (lambda rng, size: rng.exponential(0.2, size), 0.96),
    "lognormal": (lambda rng, size: rng.lognormal(-3, 1, size), 0.96),
    "rare": (lambda rng, size: 0.5 * (rng.random(size) < 0.02), 0.92),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("count", [100, 2000])
@pytest.mark.parametrize("deviation", [0.0, 12.0])
def test_intervals_hold_for_errors_of_any_law(law, count, deviation):
    """At least 96 % of 500 intervals cover the truth, or 92 % if the few nonzero errors are at the cap."""
    rng = np.random.default_rng(12)
    errors, least = LAWS[law]
    truth = np.minimum(errors(rng, 1 << 20) ** 2, 0.25).mean()
    inside = 0
    for _ in range(500):
        u = np.minimum(errors(rng, count) ** 2, 0.25)
        total, twice = rng.normal([(8 * u - 1).sum(), 2 * count], deviation)
        mean = min(max((1 + total / (twice / 2)) / 8, 0), 0.25)
        low, high = holdout.between(mean, 0.25, twice / 2, deviation)
        inside += low <= truth <= high
    assert inside >= least * 500


def test_intervals_of_classes_are_those_of_wilson():
    actual = holdout.between(0.2, 1.0, 50, 0.0)
    truth = binomtest(10, 50).proportion_ci(method="wilson")
    assert actual == pytest.approx((truth.low, truth.high), rel=1e-12)
    noisy = holdout.between(0.2, 1.0, 50, 5.0)
    assert noisy[0] < actual[0] and noisy[1] > actual[1]
    assert holdout.between(0.0, 0.25, 100, 0.0)[0] == 0 < holdout.between(0.0, 0.25, 100, 0.0)[1]
    assert holdout.between(0.1, 0.25, 1.0, 100.0) == (0.0, 0.25)


def test_a_fresh_key_gives_another_partition_and_other_noise(plan):
    V, y = data(np.random.default_rng(10))
    first, second = (holdout.release(plan, V, y, new_key()) for _ in range(2))
    assert first.sums != second.sums
    with pytest.raises(Refused, match="1000 rows"):
        holdout.release(plan, V[1:], y[1:], KEY)
    document = first.document()
    assert document["rows"] == 100 and document["integers"] == first.sums


@pytest.fixture
def quick(monkeypatch):
    """All releases share one key and one meaning of epsilon."""
    meant = meaning.meaning(Gaussian(1.0))
    monkeypatch.setattr(books, "new_key", lambda: KEY)
    monkeypatch.setattr(meaning, "meaning", lambda profile: meant)
    monkeypatch.setattr(files, "PROFILE", (0.5, 1.0))


def made(folder, target, cells, method):
    """The document in model.json for 600 lines, a quarter of them held out."""
    schema = rows.Schema([rows.Number("x", 0, 10), target], target.name)
    rng = np.random.default_rng(11)
    x = rng.uniform(0, 10, 600)
    lines = [f"{a:.3f},{cells(a, rng)}" for a in x]
    (folder / "rows.csv").write_text("x,y\n" + "\n".join(lines) + "\n")
    request = Request.parsed(
        {"name": "one", "schema": schema.facts, "rows": 600, "unit": "a row", "epsilon": 2}
        | {"delta": 1e-6, "method": method, "premise": CHOSEN_WITHOUT, "holdout": 0.25}
    )
    book = Book(folder / "book", Budget.of({"epsilon": 2, "delta": 1e-6}), request.unit)
    making.preview(request, book, folder / "rows.csv")
    return files.parse(making.make(request, book, folder / "rows.csv")).document


def test_a_release_says_what_was_held_out(tmp_path, quick):
    target = rows.Category("y", ("no", "yes"))
    document = made(
        tmp_path,
        target,
        lambda a, rng: "yes" if a + rng.normal() > 5 else "no",
        "gaussian_objective_perturbation",
    )
    actual = document["holdout"]
    assert document["rows"] == 600 and document["training_rows"] == 450 and actual["rows"] == 150
    assert 0.0 <= actual["low"] < 0.12 < actual["high"] < 0.5 and 100 < actual["records"] < 200
    assert "150 rows, which the key chose, were not learnt from" in card.card(document)
    model = models.objective_perturbation(450, 2, 2.0, 1e-6)
    package = holdout.package(model, 150)
    for epsilon, delta in document["guarantee"]["profile"]:
        assert delta == package.delta_at(epsilon)


def test_a_release_of_numbers_says_their_error_in_own_units(tmp_path, quick):
    document = made(
        tmp_path,
        rows.Number("y", 100, 300),
        lambda a, rng: f"{120 + 16 * a + rng.normal(0, 10):.2f}",
        "gaussian_objective_perturbation",
    )
    said = holdout.said(document)
    assert "where an error counts 50 at most" in said
    low, high = (100 * document["holdout"][key] for key in ("low", "high"))
    assert low < 15 < high < 51
