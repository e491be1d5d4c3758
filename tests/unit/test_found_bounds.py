"""Bounds that releases find: their cost, their rule, and what may not go wrong."""

import hashlib
import json
import math
import os
import signal
from fractions import Fraction
from functools import partial
from itertools import combinations, count

import numpy as np
import pytest
from scipy.stats import norm

from dp.proofs import gaussian_tilt
from dp_privacy.accounting import REPLACE_ONE, gaussian_epsilon, gaussian_mu
from dp_privacy.errors import Refused
from dp_release import book as books
from dp_release import bounds, card, files, forecast, holdout, lattice, making, meaning, rows, using
from dp_release.book import Book, Budget
from dp_release.estimators import PrivateClassifier, PrivateRegressor
from dp_release.request import Request
from project import ROOT

UNIT = "one row is one person"
SCHEMA = rows.Schema(
    [
        bounds.number("income", {"least": 0}),
        rows.Category("sex", ("f", "m"), "f"),
        rows.Number("age", 0, 100),
        rows.Category("ill", ("no", "yes")),
    ],
    "ill",
)
ASKED = {"name": "ill", "schema": SCHEMA.facts, "rows": 1500, "unit": UNIT, "epsilon": 2}
ASKED |= {"delta": 1e-6, "method": "noise_aware_logistic", "premise": "chosen without these rows"}
REQUEST = Request.parsed(ASKED)
HEADER = b"income,sex,age,ill\n"
ROWS = [
    b"%d,%s,%d,%s" % (1100 + k % 900, b"fm"[k % 2 :][:1], k % 90, b"yes" if k % 3 else b"no")
    for k in range(1500)
]
TABLE = HEADER + b"\n".join(ROWS) + b"\n"


def fixed_keys(patch, name):
    """Make a book's keys follow from a test's name: with fresh ones, an empty bin stands out at times."""
    numbers = count()
    patch.setattr(
        books, "new_key", lambda: hashlib.sha256(f"{name} {next(numbers)}".encode()).digest()
    )


@pytest.fixture(autouse=True)
def keys(monkeypatch, request):
    fixed_keys(monkeypatch, request.node.name)


MEANING = meaning.Meaning(0.5, (0.01,), (0.02,), (0.7,), 0.6)


@pytest.fixture(autouse=True, scope="module")
def quick():
    """Compute only what of a document these tests read, and the code's description once."""
    maker = making.made_by()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "PROFILE", (1.0,))
        patch.setattr(files.meaning, "meaning", lambda profile: MEANING)
        patch.setattr(making, "made_by", lambda: maker)
        yield


def book_in(folder):
    return Book(folder / "book", Budget.of({"epsilon": 10, "delta": 1e-5}), UNIT)


def made(folder, data=TABLE, request=REQUEST, look=True):
    account = book_in(folder)
    if look:
        making.preview(request, account, data)
    return json.loads(making.make(request, account, data))


def events(folder):
    return [json.loads(line) for line in (folder / "book/book.jsonl").read_bytes().splitlines()]


def noises(scale, **columns):
    """Noises of spacing 1, for tests of the rule. columns: their numbers of bins."""
    return {
        name: lattice.Noise(0, scale, count + bounds.PARTS, Fraction(1))
        for name, count in columns.items()
    }


def counted(schema, lines):
    """Exact first counts."""
    ends = {name: bounds.edges(column) for name, column in bounds.columns(schema).items()}
    return bounds.counts(schema, lines, ends)


# The bins.


def test_edges_are_powers_of_two_of_both_signs_and_zero():
    edges = bounds.edges(bounds.number("x", True))
    powers = {2.0**j for j in range(-30, 30)}
    assert {float(e) for e in edges} == {-1e9, 1e9, 0.0, *powers, *(-p for p in powers)}
    assert bounds.edges(bounds.number("x", {"least": 1, "most": 1e9}))[:4] == [1, 2, 4, 8]
    assert bounds.edges(bounds.number("x", {"least": -3, "most": 5}))[-3:] == [2, 4, 5]


@pytest.mark.parametrize(
    ("least", "most"),
    [(-1e100, 1e100), (0, 1e-90), (-1, 1), (1950, 2050), (-1e-70, 1e-80), (1e-9, 1e9), ("0.1", 3)],
)
def test_any_two_edges_are_bounds_that_a_release_reads(least, most):
    """After rows are read nothing may be refused, so all bounds that can be found must be valid."""
    edges = bounds.edges(bounds.number("x", {"least": least, "most": most}))
    exact = list(map(rows.fraction, edges))
    assert exact == sorted(set(exact))
    for low, high in combinations([*edges[:-1][:: max(len(edges) // 12, 1)], edges[-1]], 2):
        for target in ("x", "y"):
            own = [rows.Number("x", low, high), rows.Category("y", (0, 1))]
            own = own if target == "y" else [own[0], rows.Number("y", 0, 1)]
            read = rows.Schema(own, target)
            assert np.isfinite(files.own_units(read)[0]).all()


def test_a_cell_is_in_the_bin_of_its_exact_number():
    """Decimals are compared exactly: floats would put the second and third cell into one bin."""
    schema = rows.Schema(
        [bounds.number("x", {"least": 0, "most": 16}), rows.Category("y", (0, 1))], "y"
    )
    cells = [
        b"4",
        b"3.99999999999999999999",
        b"4.00000000000000000001",
        b"-7",
        b"1e300",
        b"0",
        b"16",
    ]
    exact = counted(schema, [each + b",1" for each in cells])["x"]
    edges = bounds.edges(schema.columns[0])
    own = dict(zip(edges, exact, strict=False))
    assert sum(exact) == len(cells)
    assert (own[0], own[2], own[4], own[8]) == (
        2,
        1,
        2,
        2,
    )  # below least and above most: the end bins


def test_cells_without_a_number_and_invalid_lines_are_in_no_bin():
    lines = [b"x,f,3,yes", b",f,3,yes", b"5,f,3", b'"5,f,3,yes', b"nan,f,3,yes", b"5,f,3,what"]
    assert sum(counted(SCHEMA, lines)["income"]) == 1  # other cells of the last line do not count


def test_missing_cells_count_as_the_number_that_replaces_them():
    schema = rows.Schema(
        [bounds.number("x", {"least": 0, "most": 16}, missing=5), rows.Category("y", (0, 1))], "y"
    )
    assert counted(schema, [b",1", b"NA,1", b"5,1"])["x"][-2] == 3


# What it costs. Pitfalls 1, 9 and 11.


def test_one_row_changes_counts_by_at_most_the_sensitivity():
    """Replace any line by any other: sqrt(2) per column, and K sqrt(2) for K lines of a person."""
    schema = rows.Schema(
        [bounds.number("a", True), bounds.number("b", True), bounds.number("y", {"least": 0})], "y"
    )
    cells = [b"0", b"1e9", b"-1e9", b"3", b"-0.001", b"", b"no", b"7,8"]
    lines = [b"%s,%s,%s" % (a, b, y) for a in cells for b in cells[::2] for y in cells[1::3]]
    one = [np.concatenate(list(counted(schema, [line]).values())) for line in lines]
    apart = [np.square(x - z).sum() for x, z in combinations(one, 2)]
    assert max(apart) == 2 * len(bounds.columns(schema))
    cut = dict.fromkeys("aby", bounds.parts(-4, 4))
    one = [np.concatenate(list(bounds.counts(schema, [line], cut).values())) for line in lines]
    assert max(np.square(x - z).sum() for x, z in combinations(one, 2)) == 2 * len(cut)
    assert bounds.columns(schema).keys() == {"a", "b", "y"}  # the target's bins are one more column
    check_noise()


def check_noise():
    own, persons = (bounds.noise(Fraction(1, 5), 9, most=k) for k in (1, 3))
    # Both counts change by sqrt(2), so together by 2.
    assert float(own.deviation) == pytest.approx(5 * 2, rel=1e-9)
    assert float(persons.deviation) == pytest.approx(3 * 5 * 2, rel=1e-9)
    assert own.deviation * own.mu >= 2


def check_columns_have_their_own_noise():
    schema = rows.Schema([bounds.number(name, True) for name in "xy"], "y")
    bins = len(bounds.edges(schema.columns[0])) - 1
    own = {name: bounds.noise(Fraction(1), bins) for name in "xy"}
    found = bounds.find(schema, own, partial(bounds.counts, schema, [b"5,5"] * 99), bytes(32))
    released = [set(each) for own in found.values() for each in (own.integers, own.parts)]
    assert all(not a & b for a, b in combinations(released, 2))


def test_columns_have_their_own_noise():
    check_columns_have_their_own_noise()


@pytest.mark.parametrize(
    ("columns", "deviation", "tau"), [(1, 51.3, 217), (5, 114.8, 525), (10, 162.4, 766)]
)
def test_thresholds_are_those_of_an_independent_table(columns, deviation, tau):
    """83 bins, epsilon .1 and delta 1e-6 for all columns together, beta 1e-3, computed by others."""
    mu = gaussian_mu(0.1, 1e-6) / math.sqrt(columns) * math.sqrt(2)  # of both counts
    own = {f"c{k}": bounds.noise(Fraction(mu), 83) for k in range(columns)}
    assert float(own["c0"].deviation) == pytest.approx(deviation, abs=0.06)
    assert bounds.stands_out(own, "c0") == pytest.approx(tau, abs=1)
    empty = norm.sf(float(bounds.threshold(own, "c0")) / own["c0"].scale)
    assert columns * 83 * empty <= bounds.BETA * (1 + 1e-9)


@pytest.mark.parametrize("method", ["noise_aware_logistic", "gaussian_objective_perturbation"])
def test_bounds_and_model_together_cost_what_is_asked(method):
    """delta at epsilon, composed anew from the parts: a tilt and one Gaussian of all other parts."""
    request = Request.parsed(ASKED | {"method": method, "rows": 5000})
    plan = request.plan()
    (noise,) = plan.found.values()
    mus = [float(each.mu) for each in (*plan.noises.values(), noise)]
    r = 1 / (plan.problem.n * plan.problem.lam)
    composed = gaussian_tilt.composed_delta(
        2.0, float(plan.tilt.noise.mu), math.hypot(*mus), r, REPLACE_ONE, "logistic", exact=True
    )
    assert composed <= 1e-6
    assert plan.delta_at(2.0) <= 1e-6
    assert plan.delta_at(2.0) >= 0.98e-6  # nothing is wasted
    total = math.hypot(2 * float(plan.tilt.noise.mu), *mus)
    assert float(noise.mu) ** 2 / total**2 == pytest.approx(bounds.SHARE, rel=1e-6)
    without = Request.parsed(
        ASKED | {"method": method, "rows": 5000, "schema": stated().facts}
    ).plan()
    assert plan.tilt.noise.scale > without.tilt.noise.scale
    cheaper = plan._replace(found={})
    assert cheaper.delta_at(2.0) < 0.9 * plan.delta_at(2.0)


def stated(low=0, high=4096):
    return rows.from_facts(
        bounds.settled(SCHEMA.facts, {"income": bounds.Found(low, high, [], [])})
    )


def test_shares_are_public():
    own = [bounds.number("a", {"share": 0.2}), bounds.number("b", True), rows.Number("y", 0, 1)]
    schema = rows.Schema(own, "y")
    assert bounds.shares(schema) == {"a": 0.2, "b": bounds.SHARE / 2}
    asked = ASKED | {"schema": schema.facts, "method": "noise_aware_log_cosh", "rows": 5000}
    plan = Request.parsed(asked).plan()
    assert float(plan.found["a"].mu / plan.found["b"].mu) == pytest.approx(2.0, rel=1e-6)
    assert plan.delta_at(2.0) <= 1e-6


@pytest.mark.parametrize(
    ("find", "said"),
    [
        ({"share": 0}, "find.share"),
        ({"share": True}, "find.share"),
        ({"outside": 0.5}, "find.outside"),
        ({"outside": "x"}, "find.outside"),
        ({"low": 3}, "some of the keys share, outside, least, most"),
        (False, "`find` is true"),
        ({"share": 0.99}, "the shares of mu leave nothing for the tilt"),
        ({"least": 3, "most": 3}, r"must be \[low, high\]"),
    ],
)
def test_settings_without_a_proof_are_refused_before_rows(find, said):
    with pytest.raises(Refused, match=said):
        own = [bounds.number("x", find), rows.Category("ill", ("no", "yes"))]
        Request.parsed(ASKED | {"schema": rows.Schema(own, "ill").facts}).plan()


def test_a_threshold_of_labels_is_not_found():
    """Pitfall 11. A label `above` a number, and lists of categories (pitfall 8), are public alone."""
    with pytest.raises(TypeError):
        rows.Label("y", above=0, find={})
    with pytest.raises(TypeError):
        rows.Category("y", ("a", "b"), find={})


# The rule.


def column(least=0, most=256, **find):
    return rows.Schema(
        [bounds.number("x", {"least": least, "most": most, **find}), rows.Number("y", 0, 1)], "y"
    )


def rule(*heights, schema=None, scale=10, above=3):
    """Bounds of noisy counts. heights: of the last bins; the others are 0."""
    schema = schema or column()
    bins = len(bounds.edges(schema.columns[0])) - 1
    own = noises(scale, x=bins)
    noisy = [0] * (bins - len(heights) - above) + list(heights) + [0] * above
    return bounds.within(schema, "x", own, bounds.edges(schema.columns[0]), noisy)


def test_bounds_are_the_ends_of_the_bins_that_stand_out():
    tau = bounds.threshold(noises(10, x=62), "x")
    assert 40 < tau < 50
    assert rule(tau) == (16, 32)
    assert rule(tau, tau) == (8, 32)
    assert rule(tau, 0, tau) == (4, 32)  # what is between them is inside
    assert rule(tau - 1, 0, tau) == (16, 32)
    assert rule(16, tau, 15, above=2) == (8, 64)  # the next bins of 1.5 deviations belong to it
    assert rule(14, tau, 14, above=2) == (16, 32)


def test_nothing_stands_out():
    assert rule(40) is None
    assert rule(40, schema=column(-7.5, 256)) is None
    found = bounds.find(column(-7.5), {"x": bounds.noise(Fraction(1, 9), 120)}, empty, bytes(32))[
        "x"
    ]
    assert (found.low, found.high, found.parts) == (-7.5, 256, [])


def empty(ends):
    return {name: [0] * (len(each) - 1) for name, each in ends.items()}


def cut(*counts, scale=10, ends=None, **find):
    """The range of noisy counts of the eight parts of [0, 64]."""
    ends = ends or bounds.parts(0, 64)
    return bounds.within(column(**find), "x", noises(scale, x=60), ends, counts, again=True)


def test_empty_parts_of_the_range_are_left_out():
    assert cut(0, 0, 0, 0, 500, 500, 0, 0) == (32, 48)
    assert cut(9, -9, 2, 9, 500, 500, 9, 9) == (32, 48)  # within one deviation of the noise
    assert cut(9, 9, 2, 11, 500, 500, 11, 9) == (24, 56)
    assert cut(200, 100, 50, 60, 70, 80, 90, 300) == (0, 64)
    assert cut(6, 9, 500, 500, 500, 500, 0, 20, scale=1) == (8, 64)  # 6 of half of 1 %, 10 rows
    assert cut(6, 9, 500, 500, 500, 500, 0, 20, scale=1, outside=0) == (0, 64)
    assert cut(*[30] * 8) is None  # the range stays as it is
    assert cut(900, ends=[3, 4]) == (3, 4)


def test_parts_that_floats_do_not_tell_apart_are_not_made():
    assert bounds.parts(1, 9) == list(range(1, 10))
    assert bounds.parts(0, 1)[1] == 0.125
    assert bounds.parts(2.0**53, 2.0**53 + 2) == [
        2.0**53,
        *range(2**53 + 1, 2**53 + 1),
        2.0**53 + 2,
    ]


def test_columns_without_bounds_get_no_interval():
    row = {
        "estimate": 1.0,
        "standard_error": 1.0,
        "low": 0.0,
        "high": 2.0,
        "p_value": 0.3,
        "says": "",
    }
    table = [{"column": name, **row} for name in ("a", "b", "constant")]
    found = {"a": bounds.Found(0, 1, [1], []), "b": bounds.Found(0, 1, [1], [5])}
    said = bounds.silenced(table, found)
    assert [each["low"] for each in said] == [None, 0.0, None]
    assert said[0] == dict.fromkeys(row) | {"column": "a", "says": bounds.NOTHING}
    assert bounds.silenced(table, {"b": found["b"]}) == table


def test_a_column_far_from_zero_gets_bounds_of_its_size():
    """Pitfall 4. Powers of two alone would give a year [1024, 2048]."""
    schema = rows.Schema([bounds.number("x", True), rows.Category("y", (0, 1))], "y")
    lines = [b"%d,1" % (1950 + k % 71) for k in range(3000)]
    own = {"x": bounds.noise(Fraction(1, 15), len(bounds.edges(schema.columns[0])) - 1)}
    for k in range(1, 6):
        found = bounds.find(schema, own, partial(bounds.counts, schema, lines), bytes([k]) * 32)[
            "x"
        ]
        assert found.high == 2048 and found.low >= 1664
        assert len(found.parts) == bounds.PARTS


def test_bins_at_the_ends_are_left_out_up_to_the_share():
    assert rule(40, 8000, 50, above=2) == (
        16,
        64,
    )  # 40 are less than half of 1 % of 8,090; 90 are more
    assert rule(50, 8000, 40, above=2) == (8, 32)
    assert rule(20, 9000, 22, above=2) == (16, 32)
    assert rule(20, 9000, 22, schema=column(outside=0), above=2) == (8, 64)
    assert rule(150, 850, schema=column(outside=0.3), above=2) == (32, 64)
    assert rule(150, 850, schema=column(outside=0.29), above=2) == (16, 64)


def test_one_sided_columns_end_at_zero():
    """Pitfall 5: 0 is an edge, so small positive numbers do not make a bound negative."""
    schema = rows.Schema([bounds.number("x", True), rows.Category("y", (0, 1))], "y")
    lines = [b"%d,1" % (k % 3) for k in range(3000)]
    own = {"x": bounds.noise(Fraction(1), len(bounds.edges(schema.columns[0])) - 1)}
    (found,) = bounds.find(schema, own, partial(bounds.counts, schema, lines), bytes(32)).values()
    assert found.low == 0 and 2 < found.high <= 4


def test_an_empty_bin_seldom_stands_out_and_a_full_one_nearly_always_does():
    schema, key = column(), b"of tests alone, 32 bytes in all."
    bins = len(bounds.edges(schema.columns[0])) - 1
    own = {"x": bounds.noise(Fraction(1, 10), bins)}
    tau = bounds.stands_out(own, "x")
    lines = [b"40,0"] * (2 * tau)
    count = partial(bounds.counts, schema, lines)
    found = [
        bounds.find(schema, own, count, key[:-2] + bytes([k // 250, k % 250]))["x"]
        for k in range(300)
    ]
    assert all(f.low <= 40 <= f.high for f in found)
    ends = bounds.edges(schema.columns[0])
    ranges = [bounds.within(schema, "x", own, ends, f.integers) for f in found]
    beside = np.mean([each != (32, 64) for each in ranges])
    assert 0.05 < beside < 0.2  # an empty neighbour of either side has 1.5 deviations, less 1 %
    # Of the eight parts, [40, 44) is kept. Others are mostly left out.
    assert np.mean([f.high - f.low for f in found]) < 16


# The release. Pitfalls 2 to 4, 6, 7, 10.


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    with pytest.MonkeyPatch.context() as patch:
        fixed_keys(patch, "release")
        return folder, made(folder)


def test_bounds_are_in_book_model_and_card(release):
    folder, document = release
    kinds = [event["event"] for event in events(folder)]
    assert kinds == ["open", "preview", "begin", "bounds", "done"]
    (kept,) = (event["columns"] for event in events(folder) if event["event"] == "bounds")
    (said,) = document["found"]["columns"]
    assert {key: said[key] for key in ("low", "high", "integers", "parts")} == kept["income"]
    assert (said["low"], said["high"]) == (1024, 2048)  # 80 rows and more are in every part
    facts = {c["name"]: c for c in document["schema"]["columns"]}
    low, high = said["low"], said["high"]
    assert facts["income"] == {"kind": "number", "name": "income", "low": low, "high": high}
    assert files.parse(json.dumps(document).encode()).schema.columns[0].find is None
    told = card.card(document)
    alone = gaussian_epsilon(1 / float(REQUEST.plan().found["income"].mu), 1e-6)
    assert (
        f"epsilon = {card._above(alone)} at the same delta" in told
    )  # pitfall 6: with which epsilon
    assert f"| income | {low} to {high} | 0 to 1e+09 |" in told
    assert "small groups with unusual numbers" in told  # pitfall 7
    assert "bounds of `income` were found in the rows, which is paid for" in told
    assert "stated bounds and categories were chosen without" in told  # pitfall 10
    assert "bounds from counts of rows in public bins" in document["guarantee"]["reason"]
    assert document["guarantee"]["epsilon"] == 2


def test_nothing_else_of_the_rows_is_told(release):
    """Pitfall 3: no exact count, least or largest number, and no number of cells that are no numbers."""
    folder, document = release
    exact = counted(SCHEMA, ROWS)["income"]
    (said,) = document["found"]["columns"]
    noisy = np.array(said["integers"]) * 2.0 ** said["step"]
    assert (noisy != np.array(exact)).all()  # also empty bins have noise
    assert set(said) == {
        *("column", "least", "most", "outside", "low", "high"),
        *("stands_out", "step", "scale", "integers", "parts"),
    }
    other = [b"x,%b" % line.split(b",", 1)[1] for line in ROWS]  # no cell of income is a number
    for name, data in (("empty", []), ("other", other)):
        table = HEADER + b"\n".join(data or [b",,,"] * 1500) + b"\n"
        request = Request.parsed(ASKED | {"name": name})
        there = made(folder, table, request)
        assert there.keys() == document.keys()
        assert there["found"]["columns"][0].keys() == said.keys()
        own = there["found"]["columns"][0]
        assert (own["low"], own["high"]) == (0, 10**9)  # least and most, and no refusal
        assert own["parts"] == [] and there["table"][0]["says"] == bounds.NOTHING


def test_the_same_name_gives_the_same_bounds(release):
    """Pitfall 2: other rows and other draws need another name, and are paid for."""
    folder, document = release
    assert made(folder, look=False) == document
    assert made(folder, TABLE.replace(b"1100", b"9999"), look=False) == document
    again = Request.parsed(ASKED | {"name": "again"})
    other = made(folder, request=again)
    assert other["found"]["columns"][0]["integers"] != document["found"]["columns"][0]["integers"]
    begun = sum(event["event"] == "begin" for event in events(folder))
    assert other["spent"]["epsilon"] == 2 * begun > document["spent"]["epsilon"]


def test_settings_that_change_after_a_preview_are_counted(tmp_path):
    """Pitfall 10."""
    making.preview(REQUEST._replace(schema=stated(1000, 2000).facts), book_in(tmp_path), TABLE)
    document = made(tmp_path)
    assert document["spent"]["settings_changed"] == 1
    assert "but for what a preview shows" in document["guarantee"]["premises"][0]


def test_a_preview_does_not_tell_what_would_be_found(tmp_path):
    said = "\n".join(making.preview(REQUEST, book_in(tmp_path), TABLE))
    assert "income: the release finds its bounds" in said
    assert "1024" not in said and "1999" not in said


def test_predictions_take_the_bounds_that_were_found(release):
    """Pitfall 4 and 6: numbers beyond the bounds count as the bound."""
    model = files.parse(json.dumps(release[1]).encode())
    cells = [[b"2048", b"f", b"30"], [b"1e6", b"f", b"30"], [b"1500", b"f", b"30"]]
    scores = using.scores(model, using.design(model, cells))
    assert scores[0] == scores[1] != scores[2]


# A killed release.


def die_in(function):
    child = os.fork()
    if child == 0:
        try:
            function()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("where", ["counts", "keep_bounds", "rows", "content"])
def test_a_killed_release_resumes_with_its_bounds(tmp_path, monkeypatch, where):
    making.preview(REQUEST, book_in(tmp_path), TABLE)
    places = {
        "counts": (bounds, "counts"),
        "keep_bounds": (Book, "keep_bounds"),
        "rows": (rows.Schema, "rows"),
        "content": (files, "content"),
    }
    with monkeypatch.context() as patch:
        patch.setattr(*places[where], kill)
        assert die_in(lambda: made(tmp_path, look=False))
    before = [event for event in events(tmp_path) if event["event"] == "bounds"]
    assert len(before) == (where in ("rows", "content"))
    if before:  # it reads the book, and counts nothing again
        monkeypatch.setattr(bounds, "counts", None)
    document = made(tmp_path, look=False)
    (kept,) = (event["columns"] for event in events(tmp_path) if event["event"] == "bounds")
    assert kept["income"]["integers"] == document["found"]["columns"][0]["integers"]
    assert sum(event["event"] == "begin" for event in events(tmp_path)) == 1  # one key, one draw


def test_a_model_that_was_stored_before_done_is_adopted(tmp_path, monkeypatch):
    making.preview(REQUEST, book_in(tmp_path), TABLE)
    with monkeypatch.context() as patch:
        patch.setattr(Book, "_done", kill)
        assert die_in(lambda: made(tmp_path, look=False))
    stored = json.loads((tmp_path / "book/ill/model.json").read_bytes())
    assert made(tmp_path, look=False) == stored
    assert stored["schema"]["columns"][0]["high"] == 2048


def test_bounds_of_another_release_are_not_adopted(tmp_path, monkeypatch):
    making.preview(REQUEST, book_in(tmp_path), TABLE)
    with monkeypatch.context() as patch:
        patch.setattr(Book, "_done", kill)
        assert die_in(lambda: made(tmp_path, look=False))
    path = tmp_path / "book/ill/model.json"
    document = json.loads(path.read_bytes())
    document["schema"]["columns"][0]["high"] = 4096
    path.chmod(0o600)
    path.write_text(json.dumps(document))
    with pytest.raises(Refused, match="is not what was begun"):
        made(tmp_path, look=False)


def test_held_out_rows_have_no_part_in_the_bounds(tmp_path):
    """Theorem 2 needs bounds and model to be of the same rows."""
    request = Request.parsed(ASKED | {"holdout": 0.25})
    package, seen = making.planned(request), []
    with pytest.MonkeyPatch.context() as patch:
        exact = bounds.counts
        patch.setattr(bounds, "counts", lambda *a: seen.append(exact(*a)) or seen[-1])
        masks = []
        mask = holdout.held_out
        patch.setattr(holdout, "held_out", lambda *a: masks.append(mask(*a)) or masks[-1])
        document = made(tmp_path, request=request)
    assert package.model.found and package.delta_at(2.0) <= 1e-6
    assert sum(seen[0]["income"]) == 1125 == document["training_rows"]
    assert (masks[0] == masks[1]).all()
    training = [line for line, out in zip(ROWS, masks[0], strict=True) if not out]
    assert seen[0] == counted(SCHEMA, training)


# Numbers as targets, estimators, forecasts.


def test_bounds_of_a_target_are_found(tmp_path):
    schema = rows.Schema([rows.Number("age", 0, 100), bounds.number("cost", {"least": 0})], "cost")
    request = Request.parsed(ASKED | {"schema": schema.facts, "method": "noise_aware_log_cosh"})
    table = b"age,cost\n" + b"".join(
        b"%d,%d\n" % (k % 90, 1100 + 9 * (k % 90)) for k in range(1500)
    )
    document = made(tmp_path, table, request)
    low, high = (document["target"][key] for key in ("low", "high"))
    assert low == 1024 and high in (1920, 2048)  # the last part is empty
    assert f"between 1024 and {high:g}" in card.card(document)


def test_estimators_find_bounds(tmp_path):
    rng = np.random.default_rng(1)
    X = np.stack([rng.lognormal(10, 0.5, 1000), rng.uniform(0, 90, 1000)], axis=1)
    y = np.where(rng.random(1000) < 0.5, "yes", "no")
    asked = {"book": tmp_path / "a", "budget": {"epsilon": 2, "delta": 1e-6}, "n_rows": 1000}
    asked |= {"epsilon": 2, "delta": 1e-6, "unit": UNIT, "premise": "public example", "spend": True}
    model = PrivateClassifier("a", columns="find", target=["no", "yes"], **asked)
    model.preview(X, y)
    model.fit(X, y)
    income, age = model.model_.schema.columns[:2]
    assert 1024 <= income.low < 22026 < income.high <= 2**18
    assert age.low <= 40 < 60 <= age.high <= 256
    assert np.isfinite(model.predict_proba([[3e4, 20.0]])).all()
    loaded = PrivateClassifier("a", columns="find", target=["no", "yes"], **asked).fit(X, y)
    assert loaded.model_.document == model.model_.document
    asked |= {"book": tmp_path / "b"}
    columns = {"x0": {"find": {"least": 0, "most": 1e7}}, "x1": (0, 100)}
    numbers = PrivateRegressor("b", columns=columns, target="find", **asked)
    numbers.preview(X, X[:, 1] + 300)
    numbers.fit(X, X[:, 1] + 300)
    assert {c["column"] for c in numbers.model_.document["found"]["columns"]} == {"x0", "target"}


def test_a_forecast_shows_the_price():
    expected = forecast.Expected({"income": {"mean": 30_000, "deviation": 15_000}})
    request = Request.parsed(ASKED | {"rows": 5000})
    study = forecast.Study(SCHEMA, expected)
    outlook = forecast.outlook(request, study, 9)
    said = forecast.price(request, study, outlook, 9)
    noise = request.plan().found
    assert f"stands out from about {bounds.stands_out(noise, 'income')} rows on" in said[0]
    (income,) = (each for each in said if each.startswith("income: under stated"))
    times = float(income.rpartition("found ones, ")[2].split()[0])
    assert 0.9 < times < 3
    assert forecast.price(request._replace(schema=stated().facts), study, outlook, 9) == []


def test_a_forecast_asks_what_is_expected():
    with pytest.raises(Refused, match="--expect income=MEAN,DEVIATION"):
        forecast.Study(SCHEMA)


def test_forecasts_convert_rows_as_the_release_reads_them():
    """Rows under found bounds, from simulated rows, are those of their lines under these bounds."""
    wide, narrow = stated(0, 100_000), stated(16_384, 65_536)
    x = np.array([0, 10_000, 16_384, 30_000.5, 65_536, 90_000])
    lines = [b"%.4f,m,50,yes" % each for each in x]
    (V, y), (W, labels) = (s.rows(lines, len(x)) for s in (wide, narrow))
    got = forecast._under(narrow, wide, V, y)
    assert np.abs(got[0] - W).max() <= 2 * narrow.each * 100_000 / 49_152 / wide.each + 2
    assert (got[1] == labels).all()


# Requests and models of before.


def test_models_without_found_bounds_have_the_keys_of_before(tmp_path):
    document = made(tmp_path, request=Request.parsed(ASKED | {"schema": stated().facts}))
    assert "found" not in document
    assert set(document) == {"format", "date", *files.KEYS}
    assert "Bounds that were found" not in card.card(document)


def test_a_book_of_before_opens_again(tmp_path):
    """Files of a release by the first code that kept books: the same model, and nothing is computed."""
    content = json.loads((ROOT / "tests/vectors/book.json").read_text())
    folder = tmp_path / "book"
    (folder / "first").mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    (folder / "book.jsonl").write_text(content["book.jsonl"])
    (folder / "key").write_bytes(bytes.fromhex(content["key"]))
    for path in (folder / "book.jsonl", folder / "key"):
        path.chmod(0o600)
    (folder / "first/model.json").write_text(content["first/model.json"])
    schema = rows.Schema([rows.Number("age", 0, 100), rows.Category("ill", ("no", "yes"))], "ill")
    asked = {"name": "first", "schema": schema.facts, "rows": 200, "unit": UNIT, "epsilon": 1}
    asked |= {"delta": 1e-6, "method": "noise_aware_logistic", "premise": "public example"}
    book = Book(folder, Budget.of({"epsilon": 2, "delta": "2e-6"}), UNIT)
    stored = making.make(Request.parsed(asked), book, tmp_path / "no rows")
    assert stored.decode() == content["first/model.json"]
    model = files.parse(stored)
    assert model.schema.columns[0] == rows.Number("age", 0, 100)
    assert "Bounds that were found" not in card.card(model.document)
    with book.locked():
        assert book.spent().releases[0][0] == "first"
    other = Request.parsed(
        asked
        | {
            "schema": rows.Schema(
                [bounds.number("age", True), rows.Category("ill", ("no", "yes"))], "ill"
            ).facts
        }
    )
    with pytest.raises(Refused, match="a release cannot change"):
        making.make(other, book, tmp_path / "no rows")
