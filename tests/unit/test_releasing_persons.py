"""Releases that protect a person: which rows count, and what of theorem 1 has premises for several rows."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_releasing import (
    ERRORS,
    KEY,
    LOSSES,
    exact_delta,
    exact_gradient,
    law_1d,
    prepared,
)
from test_solvers import worst_data

from dp.seeds import generator
from dp_privacy.errors import Refused
from dp_release import card, files, holdout, making, models, persons, rows, statistics, tilt
from dp_release import request as requests
from dp_release.book import Book, Budget
from dp_release.persons import Persons
from dp_release.request import Request

COLUMNS = [
    rows.Unused("patient"),
    rows.Number("age", 0, 100),
    rows.Category("ill", ("no", "yes")),
]
SCHEMA = rows.Schema(COLUMNS, "ill")
THREE = Persons("patient", 4, 3)
ONCE = THREE._replace(count="persons")
VALUES = {"name": "stays", "schema": SCHEMA.facts, "unit": "one row is one stay", "epsilon": 1}
VALUES |= {"delta": 1e-6, "method": "noise_aware_logistic", "premise": "public example"}
PERSON = {"column": "patient", "people": 400, "most": 3}


def parsed(**more):
    return Request.parsed(VALUES | {"person": PERSON} | more)


def blocks(table, most=3):
    """The rows of each slot of people, as a sorted list."""
    parts = [table.V.reshape(-1, most * table.V.shape[1]), table.y.reshape(-1, most)]
    if table.shares is not None:
        parts.append(table.shares.reshape(-1, most))
    return sorted(map(tuple, np.concatenate(parts, axis=1).tolist()))


def apart(first, second):
    """Number of people in which two tables differ, up to the order."""
    rest = list(second)
    for block in first:
        if block in rest:
            rest.remove(block)
    return len(rest)


def line(own, age, label="yes"):
    return f"{own},{age},{label}".encode()


# ---- the rules


def test_the_first_rows_of_a_person_are_kept_and_others_count_nothing():
    lines = [
        line("a", 10),
        line("b", 20),
        line("a", "x"),
        line("a", 30),
        line("a", 40),
        line("a", 50),
    ]
    for kind in (THREE, ONCE):
        table = persons.table(SCHEMA, lines, kind, KEY)
        ages = [v[0] for v in table.V if v.any()]
        read = [SCHEMA.rows([line("p", age)], 1)[0][0][0] for age in (10, 30, 40, 20)]
        assert sorted(ages) == sorted(read)
        assert table.V.shape == (12, 2) and (table.y != 0).sum() == 4
    assert sorted(table.shares[table.shares > 0]) == [(1 << 20) // 3] * 3 + [1 << 20]
    assert persons.read(SCHEMA, lines, THREE).dropped == 1


def test_ids_are_compared_byte_by_byte_and_rows_without_one_count_nothing():
    own = ["7", "07", "7.0", "A", "a", "é".encode(), "é".encode("latin-1"), " 7 ", '"7"']
    lines = [(each if isinstance(each, bytes) else each.encode()) + b",10,yes" for each in own]
    found = persons.read(SCHEMA, lines, THREE)
    assert len(found.people) == 7 and len(found.people[b"7"]) == 3
    nobody = [f"{each},10,yes".encode() for each in ("", "  ", "NA", "null", "?", '""')]
    found = persons.read(SCHEMA, nobody, THREE)
    assert not found.people and found.nameless == len(nobody)
    assert not persons.table(SCHEMA, nobody, THREE, KEY).V.any()


def test_lines_of_others_and_their_order_change_nothing_for_a_person():
    rng = generator(311)
    own = [line("me", age) for age in (11, 22, 33, 44)]
    alone = persons.table(SCHEMA, own, THREE, KEY)
    (me,) = (block for block in blocks(alone) if any(block))
    for _ in range(20):
        others = [line(f"p{rng.integers(3)}", rng.integers(100)) for _ in range(30)]
        at = np.sort(rng.integers(0, 30, 4))
        mixed = list(others)
        for k, each in reversed(list(zip(at, own, strict=True))):
            mixed.insert(k, each)
        assert me in blocks(persons.table(SCHEMA, mixed, THREE, KEY))


LINE = st.one_of(
    st.binary(max_size=30).map(lambda b: b.replace(b"\n", b" ")),
    st.builds(
        lambda own, age, label: f"{own},{age},{label}".encode(),
        st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "", "A"]),
        st.integers(-10, 120),
        st.sampled_from(["yes", "no", "other"]),
    ),
)


@settings(max_examples=200)
@given(st.lists(LINE, max_size=30), st.lists(LINE, max_size=12), st.lists(LINE, max_size=12))
def test_neighbours_differ_in_the_rows_of_one_person(others, first, second):
    """All lines of one person are replaced by any bytes in its name, by more, by fewer or by none."""
    for kind in (THREE, ONCE):
        others = [each for each in others if not each.startswith(b"me")]
        mine = [[b"me," + each.partition(b",")[2] for each in lines] for lines in (first, second)]
        tables = []
        for k, lines in enumerate(mine):
            if k:  # under another name, and in other places
                lines = [b"you" + each[2:] for each in lines]
                mixed = lines + others
            else:
                mixed = others + lines
            for key in (KEY, bytes(32)):
                tables.append(persons.table(SCHEMA, mixed, kind, key))
        for one, other in ((0, 2), (1, 3)):
            assert apart(blocks(tables[one]), blocks(tables[other])) <= 1
        for table in tables:
            assert table.V.shape == (12, 2)
            squares = (table.V.astype(np.int64) ** 2).sum(axis=1)
            assert (squares <= 4**20).all()
            if kind is ONCE:
                assert (table.shares.reshape(-1, 3).sum(axis=1) <= 1 << 20).all()


def test_surplus_people_are_dropped_by_the_key_and_nobody_is_favoured():
    lines = [line(f"p{k}", k) for k in range(10)]
    ids = [f"p{k}".encode() for k in range(10)]
    counts = dict.fromkeys(ids, 0)
    for k in range(2000):
        for own in persons.chosen(ids, 4, k.to_bytes(32, "big")):
            counts[own] += 1
    # 800 expected, with a standard deviation of 22
    assert all(690 < count < 910 for count in counts.values()), counts
    assert persons.chosen(ids, 4, KEY) == persons.chosen(ids[::-1], 4, KEY)
    table = persons.table(SCHEMA, lines, THREE, KEY)
    assert (table.y != 0).sum() == 4
    for dropped in range(10):  # leaving a person out moves one other up at most
        fewer = persons.table(SCHEMA, lines[:dropped] + lines[dropped + 1 :], THREE, KEY)
        assert apart(blocks(table), blocks(fewer)) <= 1


def test_neither_too_few_nor_too_many_lines_or_people_refuse_anything(tmp_path):
    request = parsed(method="gaussian_objective_perturbation")
    header = b"patient,age,ill\n"
    few = header + line("a", 1)
    many = header + b"\n".join(line(f"p{k % 900}", k % 100) for k in range(5000))
    for k, data in enumerate((header, few, many, many + b"\n,,\nmore,than,three,cells\n")):
        book = Book(tmp_path / str(k), Budget.of({"epsilon": 1, "delta": 1e-6}), request.unit)
        making.preview(request, book, data)
        model = files.parse(making.make(request, book, data))
        assert model.document["rows"] == 1200 and model.document["person"]["people"] == 400
    with pytest.raises(Refused, match="header"):
        making.make(
            request._replace(name="x"),
            Book(tmp_path / "y", Budget.of({"epsilon": 1, "delta": 1e-6}), request.unit),
            b"a,b,c\n",
        )


def test_public_numbers_alone_make_the_plan():
    """Lambda, the tilt's reach, tolerance and the descent's steps follow from people times most."""
    plan = parsed().plan()
    assert plan.problem.n == 1200 and plan.persons == Persons("patient", 400, 3)
    again = models.noise_aware_logistic(1200, SCHEMA.d, 1.0, 1e-6, persons=plan.persons)
    assert again == plan


@pytest.mark.parametrize("most", [*range(1, 40), 999, 1000])
def test_rounded_weights_add_up_to_at_most_one(most):
    kind = Persons("patient", 2, most, "persons")
    v = np.array([1, 1], np.int32)
    for count in {1, 2, most // 2, most - 1, most} - {0}:
        table = persons.filled([[(v, 1)] * min(count, most)], 2, kind)
        if most > 1:
            assert 0.999 < table.shares.sum() / (1 << 20) <= 1
            persons.check_shares(table.shares, kind, kind.slots)


def test_weights_that_no_table_has_are_refused():
    plan = models.objective_perturbation(6, 2, 1.0, 1e-6, persons=Persons("p", 2, 3, "persons"))
    V, y = np.zeros((6, 2), np.int32), np.zeros(6, np.int32)
    third = (1 << 20) // 3
    models.release(plan, V, y, KEY, np.full(6, third))
    for shares in ([third + 1, third, third + 1, 0, 0, 0], [-1] * 6, [0.1] * 6, [0] * 5, None):
        with pytest.raises(Refused, match=r"weight"):
            models.release(plan, V, y, KEY, None if shares is None else np.array(shares))
    rows_kind = models.objective_perturbation(6, 2, 1.0, 1e-6, persons=Persons("p", 2, 3))
    for other in (rows_kind, models.objective_perturbation(6, 2, 1.0, 1e-6)):
        with pytest.raises(Refused, match="only if every person counts once"):
            models.release(other, V, y, KEY, np.full(6, third))


def test_the_card_says_person_and_that_it_is_a_claim(tmp_path):
    data = b"patient,age,ill\n" + b"\n".join(
        line(f"p{k // 3}", k % 100, "yes" if k % 100 > 50 else "no") for k in range(1500)
    )
    texts = {}
    for count in ("rows", "persons"):
        request = parsed(person=PERSON | {"count": count}, holdout=0.25)
        book = Book(tmp_path / count, Budget.of({"epsilon": 1, "delta": 1e-6}), request.unit)
        said = making.preview(request, book, data)
        assert "patient: 500 people have a row that is read." in said
        assert not any("a release would stop" in each for each in said)
        document = files.parse(making.make(request, book, data)).document
        texts[count] = text = card.card(document)
        assert "The unit is a person: all rows with the same `patient`" in text
        assert "no two people share one. The data holder claims this" in text
        assert "number of people, 400, is public; the number of rows is not" in text
        assert "at most 3 rows of each of 300 people" in text
        assert "neighbours differ in all rows of one person" in text
        assert "100 people, whom the key chose, were not learnt from" in text
        assert "single row" not in text and "The number of rows is public." not in text
        assert document["holdout"]["people"] == 100 and document["training_rows"] == 900
        assert document["person"] == request.person
    assert "a mean over people, not over rows" in texts["persons"]
    assert "a mean over people" not in texts["rows"]


# ---- requests


@pytest.mark.parametrize(
    "person, message",
    [
        (3, "state column, most and people"),
        ({"column": "patient", "most": 3}, "state column, most and people"),
        (PERSON | {"other": 1}, "state column, most and people"),
        (PERSON | {"most": 0}, "person.most"),
        (PERSON | {"most": 2.5}, "person.most"),
        (PERSON | {"most": True}, "person.most"),
        (PERSON | {"people": "many"}, "person.people"),
        (PERSON | {"people": 10**9}, "are more than"),
        (PERSON | {"count": "stays"}, "person.count"),
        (PERSON | {"column": "age"}, "nothing is learnt from it"),
        (PERSON | {"column": "ill"}, "nothing is learnt from it"),
        (PERSON | {"column": "who"}, "no column 'who'"),
    ],
)
def test_requests_without_a_proof_are_refused(person, message):
    with pytest.raises(Refused, match=message):
        parsed(person=person)


def test_the_number_of_rows_is_not_stated_beside_people():
    with pytest.raises(Refused, match="either rows or person"):
        parsed(rows=1200)
    with pytest.raises(Refused, match="needs the key 'rows'"):
        Request.parsed(VALUES)
    with pytest.raises(Refused, match="one over the 400 people"):
        parsed(delta=0.003)


def test_a_method_that_is_proven_for_one_row_is_refused(monkeypatch):
    method = requests.METHODS["noise_aware_logistic"]._replace(persons=False)
    monkeypatch.setitem(requests.METHODS, "noise_aware_logistic", method)
    with pytest.raises(Refused, match="proven for one row per person"):
        parsed()
    Request.parsed(VALUES | {"rows": 1000})
    assert requests.Method(None, None, ()).persons is False
    with pytest.raises(Refused, match="mean square"):
        models.noise_aware_log_cosh(1200, 3, 1.0, 1e-6, robust=False, persons=THREE)


def test_requests_of_older_releases_keep_their_digests():
    """They were computed before requests had a `person`."""
    schema = rows.Schema([rows.Number("age", 0, 100), rows.Category("ill", ("no", "yes"))], "ill")
    asked = {"name": "first", "schema": schema.facts, "rows": 40, "unit": "one row is one person"}
    asked |= {"epsilon": 1, "delta": 1e-6, "premise": "chosen without these rows"}
    first = Request.parsed(asked | {"method": "gaussian_objective_perturbation"})
    assert first.digest() == "ba49030e0702481126965683dd4277129d27eda2e689c220ce5e92fb1743565d"
    asked |= {"options": {"robust": True}, "holdout": 0.25, "title": "t", "taken_as_public": "p"}
    second = Request.parsed(asked | {"method": "noise_aware_logistic", "rows": 400})
    assert second.digest() == "0666648879d6f572d77210c3b1d1c836648d59392a059cc2dc5bc28c81efc14c"
    digests = {parsed(person=PERSON | {"most": most}).digest() for most in (1, 2, 3)}
    digests.add(parsed(person=PERSON | {"count": "persons"}).digest())
    assert len(digests) == 4
    assert parsed(person=PERSON | {"count": "rows"}).digest() == parsed().digest()


def test_one_row_per_person_costs_what_a_row_costs():
    one = parsed(person=PERSON | {"most": 1}).plan()
    plain = Request.parsed(VALUES | {"rows": 400}).plan()
    assert one._replace(persons=None) == plain
    assert parsed(person=PERSON | {"most": 1, "count": "persons"}).persons.weighted is False


# ---- what is released costs what is stated


@pytest.mark.parametrize("make", [models.noise_aware_logistic, models.noise_aware_log_cosh])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_plans_reach_delta_with_the_noise_of_the_heaviest_person(make, epsilon):
    check_noise(make, epsilon)


def check_noise(make=models.noise_aware_logistic, epsilon=1.0):
    one = make(1000, 4, epsilon, 1e-6, robust=True)
    for kind, factor in ((Persons("p", 1000, 3), 3), (Persons("p", 1000, 3, "persons"), 1)):
        plan = make(3000, 4, epsilon, 1e-6, robust=True, persons=kind)
        assert 0.999e-6 < plan.delta_at(epsilon) <= 1e-6
        tilts = plan.tilt.noise.deviation / one.tilt.noise.deviation
        assert float(tilts) == pytest.approx(factor, rel=0.02)
        for part in ("hessian", "scores"):
            ratio = float(plan.noises[part].deviation / one.noises[part].deviation)
            assert ratio == pytest.approx(factor, rel=0.02)
        Lambda = plan.problem.lam * plan.problem.n
        assert Lambda >= 2 * factor * (1 if make is models.noise_aware_logistic else 2) / epsilon


def check_statistics_of_people():
    """Two people's rows, with weights: never farther apart than the sensitivity, which is reached."""
    rng = generator(312)
    for loss in LOSSES[:2]:
        problem = tilt.Problem(3, 2, 1e-3, loss)
        for kind, weight in ((THREE, 3), (ONCE, 1)):
            for part in ("hessian", "scores"):
                bound, most = weight * float(statistics.sensitivity(part, problem)), 0.0
                for trial in range(200):
                    sums = []
                    for side in range(2):
                        X = rng.standard_normal((3, 2))
                        X /= np.linalg.norm(X, axis=1, keepdims=True)
                        point = (
                            np.array([0.0, 0.0]) if part == "hessian" else np.array([-40.0, -40.0])
                        )
                        if trial % 3 == 0:
                            X = np.eye(2)[[side] * 3]
                        y = np.ones(3) if part == "scores" else rng.choice([-1.0, 1.0], 3)
                        if loss.residual and part == "hessian":
                            y = X @ point
                        shares = None
                        if kind.weighted:
                            count = rng.integers(1, 4)
                            shares = np.where(np.arange(3) < count, ((1 << 20) // count) / 2**20, 0)
                        sums.append(statistics.sums([part], problem, X, y, point, shares)[part])
                    most = max(most, float(np.linalg.norm(sums[0] - sums[1])))
                assert 0.95 * bound <= most <= bound * (1 + 1e-12), (part, loss, weight)


def test_sensitivities_of_statistics_of_people():
    check_statistics_of_people()


# ---- the premises of the lattice theorem


def weighted(rng, n):
    """Weights of rows, as of people with one to three rows."""
    return rng.integers(0, (1 << 20) + 1, n) / 2**20


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_gradients_and_statistics_of_weighted_rows_against_40_digits(loss):
    """The certificate's bound rho covers the rounding of weights."""
    rng, n, d = generator(313, str(loss)), 40, 3
    for name, data in worst_data(n, d, 1.0, rng).items():
        X, y = prepared(*data, loss)
        shares, problem = weighted(rng, n), tilt.Problem(n, d, 1e-6, loss, 10.0)
        point = 10.0 ** rng.uniform(-3, 3) * rng.standard_normal(d)
        pull = 10.0 * rng.uniform(-1, 1, d) / math.sqrt(d)
        hi, lo = tilt.split(point)
        actual = tilt.gradient(problem, X, y, hi, lo, pull, shares)
        bare = tilt.Problem(1, d, 1e-6, loss, 10.0)
        zero = np.zeros(d)
        total = [Fraction(0)] * d
        for k in range(n):
            one = exact_gradient(bare, X[k : k + 1], y[k : k + 1], point, zero)
            ridge = [bare.lam * p for p in point]
            for j in range(d):
                total[j] += Fraction(str(one[j] - ridge[j])) * Fraction(shares[k]) / n
        wrong = [
            float(Fraction(a) - t - Fraction(problem.lam) * Fraction(p) - Fraction(b))
            for a, t, p, b in zip(actual, total, point, pull, strict=True)
        ]
        assert math.hypot(*wrong) <= problem.rounding(float(np.linalg.norm(point))), name


@pytest.mark.parametrize("loss", LOSSES[::2], ids=str)
def test_every_weighted_table_gets_a_certificate(loss, monkeypatch):
    """By Newton's method, and by descent alone, within lemma 3's steps."""
    rng = generator(314, str(loss))
    for n, d, ridge in ((3, 1, 1e-3), (42, 5, 1e-3), (120, 4, 1e-2)):
        for name, data in worst_data(n, d, 1.0, rng).items():
            X, y = prepared(*data, loss)
            shares, B = weighted(rng, n), n * rng.choice([0.0, 0.1]) * rng.standard_normal(d)
            problem = tilt.Problem(n, d, ridge * loss.c, loss, 1.001 * math.hypot(*B) / n)
            _, steps, least = tilt.effort(problem)
            point = tilt.minimiser(problem, X, y, B, least, shares)
            hi, lo, taken = tilt.descend(problem, X, y, B / n, least, None, shares)
            assert taken <= steps, name
            size = float(np.linalg.norm(hi))
            for a in (tilt.split(point), (hi, lo)):
                g = tilt.gradient(problem, X, y, *a, B / n, shares)
                assert math.hypot(*g) <= least, name
            near = [float(p) - h for p, h in zip(point, hi, strict=True)]
            assert math.hypot(*near) <= 2 * least / problem.lam + 1e-6 * size


def test_newtons_method_is_not_believed(monkeypatch):
    rng = generator(315)
    X, y = prepared(*worst_data(30, 3, 1.0, rng)["random labels"], LOSSES[0])
    problem = tilt.Problem(30, 3, 0.01, LOSSES[0], 0.0)
    shares, least = weighted(rng, 30), tilt.effort(problem).least
    right = tilt.minimiser(problem, X, y, np.zeros(3), least, shares)
    for wrong in (np.full((1, 3), 7.0), np.full((1, 3), np.nan)):
        monkeypatch.setattr(tilt, "_newton", lambda *a, wrong=wrong: (wrong, 0.0))
        again = tilt.minimiser(problem, X, y, np.zeros(3), least, shares)
        away = [float(a - b) for a, b in zip(right, again, strict=True)]
        assert math.hypot(*away) <= 2 * least / problem.lam


@pytest.mark.parametrize("loss", LOSSES[:2], ids=str)
@pytest.mark.parametrize("errors", list(ERRORS))
@pytest.mark.parametrize("most", [2, 3])
def test_exact_delta_on_coarse_lattices_is_at_most_the_theorems(loss, errors, most):
    """All rows of a person differ, the solver errs as it may, and the lattices are coarse."""
    rng = generator(316, errors, most)
    kind = Persons("p", 12 // most, most)
    for epsilon, delta, output in ((0.5, 0.1, 0.3), (2.0, 0.08, 0.6)):
        x, sign = rng.uniform(-1, 1, 12), rng.choice([-1.0, 1.0], 12)
        y = sign * rng.uniform(0, 1, 12) if loss.residual else sign
        x[-most:], y[-most:] = 1.0, 1.0
        x2, y2 = x.copy(), y.copy()
        y2[-most:] = -1.0
        x2[-most:] = rng.choice([1.0, 0.37], most)
        plan = models.objective_perturbation(
            *(12, 1, epsilon, delta, loss),
            **{
                "lam": 0.3 * most,
                "output": output,
                "tolerance": 10.0 ** rng.uniform(-6, -2),
                "bits": 4,
                "persons": kind,
            },
        )
        first, second = ERRORS[errors]
        laws = law_1d(plan, x, y, first), law_1d(plan, x2, y2, second)
        for at in (0.5 * epsilon, epsilon, 1.5 * epsilon):
            assert exact_delta(*laws, at) <= plan.delta_at(at)
        assert exact_delta(*laws, epsilon) <= delta


def test_with_the_noise_of_a_row_a_person_exceeds_delta():
    """The same tables, released as if a row were a person."""
    x, y = np.full(12, -1.0), np.ones(12)
    x[-6:] = 1.0
    y2 = y.copy()
    y2[-6:] = -1.0
    settings = {"lam": 2.0, "tolerance": 1e-6, "bits": 4, "output": 0.3}
    exact = {}
    for kind in (None, Persons("p", 2, 6)):
        plan = models.objective_perturbation(12, 1, 1.0, 0.05, persons=kind, **settings)
        laws = [law_1d(plan, x, labels, ERRORS["none"][0]) for labels in (y, y2)]
        exact[kind] = exact_delta(*laws, 1.0)
    assert exact[None] > 0.1 and list(exact.values())[1] <= 0.05


# ---- people are held out


def packaged(count, share=0.25, people=400):
    kind = Persons("patient", people, 3, count)
    held = holdout.size(people, share)
    plan = models.objective_perturbation((people - held) * 3, 2, 1.0, 1e-6, persons=kind)
    return holdout.package(plan, held)


@pytest.mark.parametrize("count", ["rows", "persons"])
def test_whole_people_are_held_out(count, monkeypatch):
    package = packaged(count)
    assert (package.held, package.n) == (100, 1200)
    seen = []
    monkeypatch.setattr(
        models, "release", lambda plan, V, y, key, shares: seen.append((V, y, shares))
    )
    monkeypatch.setattr(holdout, "sums", lambda *a: 1 / 0)
    V = np.repeat(np.arange(1, 401), 3)[:, None] * np.array([[1, 0]])
    shares = None if count == "rows" else np.full(1200, (1 << 20) // 3)
    with pytest.raises((AttributeError, ZeroDivisionError)):
        holdout.release(package, V.astype(np.int32), np.ones(1200, np.int32), KEY, shares)
    trained = seen[0][0][:, 0].reshape(-1, 3)
    assert (trained == trained[:, :1]).all() and len(np.unique(trained)) == 300


def check_noise_on_held_out_people():
    for count, factor in (("rows", 3), ("persons", 1)):
        deviation = float(packaged(count).noise.deviation)
        assert deviation == pytest.approx(factor * 11.94925, rel=1e-4)


def test_sums_over_held_out_people_have_the_noise_of_the_heaviest():
    check_noise_on_held_out_people()


@pytest.mark.parametrize("count", ["rows", "persons"])
def test_another_order_of_people_changes_no_released_number(count):
    """A sorts people, and B's sums are exact."""
    rng, package = generator(317, count), packaged(count, people=200)
    V = rng.integers(-(1 << 19), 1 << 19, (200, 3, 2)).astype(np.int32)
    y = rng.choice([-1, 1], (200, 3)).astype(np.int32)
    shares = None
    if count == "persons":
        shares = ((1 << 20) // rng.integers(1, 4, 200))[:, None] * (np.arange(3) < 1)
    out = holdout.held_out(200, package.held, KEY)
    order = np.arange(200)
    for part in (out, ~out):  # within each part
        order[part] = rng.permutation(order[part])
    results = []
    for p in (np.arange(200), order):
        own = None if shares is None else shares[p].reshape(-1)
        results.append(holdout.release(package, V[p].reshape(-1, 2), y[p].reshape(-1), KEY, own))
    assert results[0].sums == results[1].sums
    assert results[0].model.parts == results[1].model.parts


def test_sums_of_weighted_rows_are_exact_and_within_the_sensitivity():
    rng = generator(318)
    far = 0.0
    for trial in range(200):
        vectors = []
        for _ in range(2):
            count = int(rng.integers(1, 4))
            V = np.zeros((3, 2), np.int32)
            V[:count] = rng.integers(-(1 << 19), 1 << 19, (count, 2))
            if trial % 4 == 0:
                V[:count] = [1 << 19, 0]
            y = np.where(np.arange(3) < count, rng.choice([-1, 1]), 0).astype(np.int32)
            shares = np.where(np.arange(3) < count, (1 << 20) // count, 0)
            vectors.append(holdout.sums(V, y, [1, 0], None, shares))
            by_hand = [
                sum(
                    Fraction(int(s), 1 << 20) * Fraction(v)
                    for s, v in zip(shares[:count], column, strict=True)
                )
                for column in zip(
                    *holdout.summands(
                        holdout.scores(V[:count], [1, 0]), y[:count].astype(np.int64), None
                    ).tolist(),
                    strict=True,
                )
            ]
            assert vectors[-1] == by_hand
        apart = math.dist(*[[float(each) / 2**40 for each in v] for v in vectors])
        far = max(far, apart)
    assert 0.9 * math.sqrt(8) < far <= math.sqrt(8)


def test_intervals_of_held_out_errors_count_people():
    noise = packaged("rows").noise
    args = [round(int(each) / noise.spacing) for each in (-400, 0, 2000)]
    one, three = (holdout.measured(args, noise, together=k) for k in (1, 3))
    assert three["error"] == one["error"]
    assert three["high"] - three["low"] > 1.2 * (one["high"] - one["low"])


def test_covariances_count_rows_of_a_person_as_copies():
    V, y = np.zeros((1200, 2), np.int32), np.zeros(1200, np.int32)
    rng = generator(319)
    V[:, 0], V[:, 1] = rng.integers(-(1 << 19), 1 << 19, 1200), 1 << 19
    y[:] = rng.choice([-1, 1], 1200)
    kind = Persons("p", 400, 3)
    plan = models.noise_aware_logistic(1200, 2, 8.0, 1e-6, persons=kind)
    release = models.release(plan, V, y, KEY)
    plain = release._replace(plan=plan._replace(persons=None))
    with_noise, without = (np.diag(models.described(each).covariance) for each in (release, plain))
    assert (with_noise > 1.5 * without).all() and (with_noise < 3 * without).all()


# ---- scikit-learn's conventions, and the owner's commands


def test_an_estimator_protects_groups(tmp_path):
    pytest.importorskip("sklearn")
    import pandas as pd

    from dp_release.estimators import PrivateClassifier

    rng = np.random.default_rng(3)
    ids = rng.integers(0, 500, 1500)
    age = rng.uniform(0, 100, 1500)
    y = np.where(age > rng.uniform(0, 100, 1500), "yes", "no")
    asked = {"columns": (0, 100), "target": ["no", "yes"], "unit": "one row is one stay"}
    asked |= {"delta": 1e-6, "budget": {"epsilon": 1, "delta": 1e-6}, "premise": "public example"}
    asked |= {"spend": True, "person": {"people": 500, "most": 2}}
    text = ids.astype(str)
    forms = {"text": text, "list": ids.tolist(), "series": pd.Series(text)}
    coefficients = []
    for name, groups in forms.items():
        model = PrivateClassifier("one", book=tmp_path / name, **asked)
        model.preview(age[:, None], y, groups)
        model.fit(age[:, None], y, groups)
        coefficients.append(model.coef_[0, 0])
        document = model.model_.document
        assert document["person"] == {"column": "groups", "people": 500, "most": 2, "count": "rows"}
        assert document["rows"] == 1000 and model.predict([[1.0], [99.0]]).tolist() == ["no", "yes"]
    # a part of the rows is another table, but no other number of rows is public
    few = PrivateClassifier("few", book=tmp_path / "few", **asked)
    few.preview(age[:50, None], y[:50], text[:50])
    few.fit(age[:50, None], y[:50], text[:50])

    refused = PrivateClassifier("two", book=tmp_path / "two", **asked)
    with pytest.raises(Refused, match="whose each row is"):
        refused.preview(age[:, None], y)
    for numbers in (ids, ids.astype(float), pd.Series(ids)):
        with pytest.raises(Refused, match="read them as text"):
            refused.preview(age[:, None], y, numbers)
    with pytest.raises(Refused, match="1500 rows, and 3 groups"):
        refused.preview(age[:, None], y, [1, 2, 3])
    with pytest.raises(Refused, match="either n_rows or person"):
        refused.set_params(n_rows=1500).preview(age[:, None], y, text)
    with pytest.raises(Refused, match="whose each row is"):
        refused.set_params(person=None).preview(age[:, None], y, text)


CONFIGURED = """
clinic:
  source: {csv: stays.csv}
  label: ill
  positive: "yes"
  bounds: {"*": [0, 100]}
"""
ASKED = """
data: clinic
person: {column: patient, most: 3, people: 400}
unit: one row is one stay
book: clinic.book
budget: {epsilon: 1, delta: 1.0e-6}
epsilon: 1
delta: 1.0e-6
method: noise_aware_logistic
premise: chosen without these rows
"""


def test_the_owners_commands(tmp_path, release_tool):
    (tmp_path / "config/releases").mkdir(parents=True)
    (tmp_path / "config/datasets.yaml").write_text(CONFIGURED)
    asked = tmp_path / "config/releases/stays.yaml"
    asked.write_text(ASKED)
    lines = [f"p{k // 2},{k % 100},{'yes' if k % 100 > 40 else 'no'}" for k in range(900)]
    (tmp_path / "stays.csv").write_text("\n".join(["patient,age,ill", *lines]) + "\n")

    said = release_tool("forecast", "stays", "--draws", "9", "--each", "1:0.5,4:0.5")
    assert "50% have 1, 50% have 4." in said
    for start in ("most 1, every row counts (about 400 rows)", "most 5, every person counts once"):
        assert start in said
    assert "most 3, every row counts (about 800 rows)" in said
    assert not (tmp_path / "clinic.book").exists()  # no rows are opened

    assert "450 people have a row" in release_tool("preview", "stays")
    release_tool("make", "stays", "--out", "releases/stays")
    document = json.loads((tmp_path / "releases/stays/model.json").read_text())
    assert document["unit"] == "one row is one stay (a person is all rows with one 'patient')"
    assert document["columns"] == ["age", "constant"]
    (tmp_path / "stays.csv").unlink()
    assert "the model of 20" in release_tool("make", "stays", "--out", "releases/stays")

    asked.write_text(ASKED.replace("person: {column: patient, most: 3, people: 400}", ""))
    assert "`rows`, or `person`" in release_tool("forecast", "stays", fails=True)
