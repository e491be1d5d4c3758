"""Tests previews, and compares forecasts with releases on independent copies of a study."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dp_privacy.errors import Refused
from dp_release import files, forecast, models, preview, rows
from dp_release.forecast import Expected, Study
from dp_release.request import CHOSEN_WITHOUT, Request
from project import Tool

WARDS = {"surgery": 0.3, "medicine": 0.35, "icu": 0.1, "other": 0.25}
TRUE = {
    "age": 0.03,
    "ward=surgery": -0.8,
    "ward=medicine": 0.5,
    "ward=icu": -0.5,
    "visits": 0.1,
    "constant": -2.0,
}
SCHEMA = rows.Schema(
    [
        rows.Number("age", 18, 90),
        rows.Category("ward", tuple(WARDS), "other"),
        rows.Number("visits", 0, 40),
        rows.Label("ill", ("yes",), ("no",)),
    ],
    "ill",
)
NUMBERS = rows.Schema(
    [rows.Number("x", 0, 10), rows.Unused("name"), rows.Number("y", 100, 300)], "y"
)
KNOWN = Expected(
    {
        "age": {"mean": 52, "deviation": 13},
        "ward": WARDS,
        "visits": {"mean": 4, "deviation": 3.7},
    },
    {name: value for name, value in TRUE.items() if name != "constant"},
    positives=0.44,
)


def request(n=3000, epsilon=4.0, schema=SCHEMA, method="noise_aware_logistic", **more):
    values = {"name": "visits", "schema": schema.facts, "rows": n, "unit": "one row is one patient"}
    values |= {"epsilon": epsilon, "delta": 1e-6, "method": method, "premise": CHOSEN_WITHOUT}
    return Request.parsed(values | more)


def copy(rng, n):
    """Lines of a simulated copy of the study."""
    age = np.clip(rng.normal(52, 13, n), 18, 90).round()
    ward = rng.choice(list(WARDS), n, p=list(WARDS.values()))
    visits = np.minimum(rng.negative_binomial(1.6, 1.6 / 5.6, n), 40)
    score = TRUE["constant"] + TRUE["age"] * age + TRUE["visits"] * visits
    for level in ("surgery", "medicine", "icu"):
        score = score + TRUE[f"ward={level}"] * (ward == level)
    ill = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
    return [
        f"{a:.0f},{w},{v},{i}".encode() for a, w, v, i in zip(age, ward, visits, ill, strict=True)
    ]


def realised(study_request, copies, seed):
    """Geometric mean width, covered share and answered share over independent copies, each (d,)."""
    rng, plan, units = np.random.default_rng(seed), study_request.plan(), files.own_units(SCHEMA)
    widths, covered = [], []
    for _ in range(copies):
        V, y = SCHEMA.rows(copy(rng, study_request.rows), study_request.rows)
        release = models.release(plan, V, y, rng.bytes(32))
        table = files.table_of(release, SCHEMA.names, *units)[0]
        widths.append([math.inf if r["low"] is None else r["high"] - r["low"] for r in table])
        covered.append(
            [
                math.nan if r["low"] is None else r["low"] <= TRUE[r["column"]] <= r["high"]
                for r in table
            ]
        )
    covered = np.array(covered, dtype=float)
    finite = np.where(np.isfinite(widths), widths, np.nan)
    typical = np.exp(np.nanmean(np.log(finite), axis=0))
    return typical, np.nanmean(covered, axis=0), np.isfinite(covered).mean(axis=0)


def check_copies(epsilon, copies, draws, near):
    study_request = request(epsilon=epsilon)
    widths, covered, answered = realised(study_request, copies, 5)
    assert (answered > 0.9).all()
    # If the true share is at least 0.93, this fails less than once in 700 times.
    assert (covered >= 0.93 - 3 * math.sqrt(0.93 * 0.07 / copies)).all(), covered
    actual = forecast.outlook(study_request, Study(SCHEMA, KNOWN), draws)
    ratio = np.array([actual.widths[name] for name in SCHEMA.names]) / widths
    assert (abs(np.log(ratio)) <= math.log(1 + near)).all(), ratio


def test_a_forecast_and_coverage_at_one_epsilon():
    check_copies(8.0, 30, 25, 0.2)


@pytest.mark.slow
def test_forecasts_are_within_a_tenth_and_intervals_cover():
    check_copies(1.0, 300, 300, 0.1)


def test_simulated_rows_have_the_expected_moments():
    study = Study(SCHEMA, KNOWN)
    V, y = study.rows(40_000, 3)
    X = V / study.schema.each
    age, visits = (X[:, SCHEMA.names.index(name)] for name in ("age", "visits"))
    age, visits = 54 + 36 * age, 20 + 20 * visits
    assert age.mean() == pytest.approx(52, abs=0.3) and age.std() == pytest.approx(13, rel=0.02)
    assert visits.mean() == pytest.approx(4, abs=0.1) and visits.std() == pytest.approx(
        3.7, rel=0.03
    )
    levels = X[:, 1:4].mean(axis=0)
    assert levels == pytest.approx([0.3, 0.35, 0.1], abs=0.01)
    assert (y > 0).mean() == pytest.approx(0.44, abs=0.01)
    coefficients = dict(zip(SCHEMA.names, study.coefficients(), strict=True))
    assert all(coefficients[name] == pytest.approx(b) for name, b in KNOWN.effects.items())
    assert (V.astype(np.int64) ** 2).sum(axis=1).max() <= rows.ONE**2
    again, labels = Study(SCHEMA, KNOWN).rows(40_000, 3)
    assert (again == V).all() and (labels == y).all()


def test_simulated_rows_have_the_expected_correlations():
    together = KNOWN._replace(correlations={("age", "visits"): -0.9})
    V, _ = Study(SCHEMA, together).rows(40_000, 3)
    age, visits = (V[:, SCHEMA.names.index(name)] / SCHEMA.each for name in ("age", "visits"))
    assert (54 + 36 * age).std() == pytest.approx(13, rel=0.02)
    assert (20 + 20 * visits).mean() == pytest.approx(4, abs=0.1)
    ranks = [np.argsort(np.argsort(x)) for x in (age, visits)]
    of_ranks = 6 / math.pi * math.asin(-0.9 / 2)  # Spearman's correlation of normal scores
    assert np.corrcoef(*ranks)[0, 1] == pytest.approx(of_ranks, abs=0.01)
    wide, narrow = (
        forecast.outlook(request(epsilon=8.0), Study(SCHEMA, known), 9).widths["age"]
        for known in (together, KNOWN)
    )
    assert wide > 1.3 * narrow


def test_numbers_have_the_expected_moments_and_explained_share():
    study = Study(NUMBERS, Expected({"y": {"mean": 180, "deviation": 20}}, explained=0.4))
    V, y = study.rows(40_000, 0)
    y = 200 + 100 * y / rows.ONE
    assert y.mean() == pytest.approx(180, abs=0.5) and y.std() == pytest.approx(20, rel=0.02)
    assert np.corrcoef(V[:, 0], y)[0, 1] ** 2 == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize(
    ("expected", "match"),
    [
        (Expected({"weight": {"mean": 1, "deviation": 1}}), "no column 'weight'"),
        (Expected({"age": {"mean": 5, "deviation": 1}}), "the mean 5"),
        (Expected({"age": {"mean": 50, "deviation": 60}}), "deviation 60"),
        (Expected({"age": {"mean": 50}}), "a mean and a deviation"),
        (Expected({"ward": {"hall": 0.5}}), "levels of 'ward'"),
        (Expected({}, {"weight": 1.0}), "no column 'weight' to have an effect"),
        (Expected({}, positives=1.0), "positives is a share"),
        (Expected({}, strength=0.0), "the strength is"),
        (Expected(correlations={("age", "ward"): 0.5}), "no two columns of numbers"),
        (Expected(correlations={("age", "visits"): 1.5}), "no columns have all these"),
    ],
)
def test_refuses_what_no_rows_can_have(expected, match):
    with pytest.raises(Refused, match=match):
        Study(SCHEMA, expected)


def test_effects_explain_no_more_than_the_variance():
    with pytest.raises(Refused, match="more than the target's variance"):
        Study(NUMBERS, Expected({}, {"x": 90.0}))


def test_a_rare_class_makes_wide_intervals():
    """A tenth of positives, which is not assumed unless it is stated, widens intervals by half or more."""
    even, rare = (
        forecast.outlook(request(6000, 1.0), Study(SCHEMA, Expected(positives=p)), 40).widths["age"]
        for p in (None, 0.1)
    )
    assert rare > 1.4 * even


@pytest.fixture(scope="module")
def study():
    return Study(SCHEMA, KNOWN)


def test_more_epsilon_tells_more(study):
    low, high = (forecast.outlook(request(epsilon=e), study, 12) for e in (1.0, 8.0))
    assert all(high.widths[name] < low.widths[name] for name in SCHEMA.names)
    assert low.accuracy["auc"] < high.accuracy["auc"] < high.without["auc"] + 0.01
    assert low.kept < high.kept <= 1.01
    assert low.without == high.without
    said = "\n".join(high.sentences(0.2))
    assert "age: its 95 % interval is" in said and "20%" in said and "accuses" in said


def test_the_epsilon_that_a_width_needs_gives_it(study):
    study_request, wanted = request(2000), 0.05
    actual = forecast.needed(study_request, study, forecast.width("age", wanted), 20)
    assert 0.1 < actual.epsilon < 20
    back = forecast.outlook(study_request._replace(epsilon=actual.epsilon), study, 20).widths["age"]
    assert back == pytest.approx(actual.widths["age"])
    assert 0.5 * wanted < back <= wanted
    with pytest.raises(Refused, match="more rows"):
        forecast.needed(study_request, study, forecast.width("age", 1e-4), 5)
    with pytest.raises(Refused, match="no interval"):
        forecast.needed(study_request, study, forecast.width("weight", 1), 5)


def test_a_release_with_a_holdout(study):
    actual = forecast.outlook(request(holdout=0.2), study, 5)
    alone = math.sqrt(0.25 * 0.75 / 600) * 1.96  # half-width from sampling only, if 1/4 are wrong
    assert alone * 0.9 < actual.held < 2 * alone


def test_numbers():
    study_request = request(2000, 2.0, NUMBERS, "noise_aware_log_cosh")
    actual = forecast.outlook(study_request, Study(NUMBERS), 5)
    assert set(actual.accuracy) == {"mse", "mae", "r2"} and 0 < actual.kept < 1.1
    assert actual.held is None and set(actual.widths) == {"x", "constant"}
    plain = request(2000, 2.0, NUMBERS, "gaussian_objective_perturbation")
    assert forecast.outlook(plain, Study(NUMBERS), 5).widths == {}


def test_a_preview_by_hand():
    schema = rows.Schema(
        [
            rows.Number("age", 18, 90, 50),
            rows.Category("ward", ("a", "b"), "a"),
            rows.Unused("name"),
            rows.Label("ill", ("yes",), ("no",)),
        ],
        "ill",
    )
    lines = [
        b"20,a,x,yes",
        b"17,b,x,no",
        b"95,b,x,no",
        b",a,x,yes",
        b"41 (HIV+),a,x,yes",
        b"30,c,x,no",
        b"30,a,x,",
        b"30,a,x",
        b'30,"a",x,yes',
    ]
    actual = preview.preview(schema, lines, 10, ["no", "yes"])
    assert (actual.lines, actual.stated, actual.uneven, actual.nothing, actual.shortened) == (
        9,
        10,
        1,
        4,
        0,
    )
    assert actual.labels == {"yes": 3, "no": 2}
    age, ward, ill = actual.columns
    assert (age.read, age.missing, age.replaced) == (6, 1, True)
    assert age.below == {"17": 1} and age.above == {"95": 1}
    assert age.unread == {"41 (HIV+)": 1} and ward.unread == {"c": 1} and ward.read == 7
    assert (ill.read, ill.missing, ill.replaced) == (7, 1, False) and not ill.unread
    said = actual.sentences(["no", "yes"])
    code = "If this is a code for a missing value, state it: `missing: {{age: {{codes: [{}]}}}}`.".format
    assert said == [
        "The file has 9 lines, and 10 are stated: a release would stop.",
        "4 lines (44.4%) of 9 would count nothing, 1 for another number of cells.",
        "1 lines (11.1%) have 3 cells, and the header has another number.",
        "age: 6 cells are read.",
        "age: 1 cells are missing, replaced by the stated value.",
        "age: 1 cells are no number or in no category, so their lines count nothing: '41 (HIV+)'",
        "age: 1 numbers are below the bounds, and are clipped.",
        f"age: 1 of them are 17. {code(17)}",
        "age: 1 numbers are above the bounds, and are clipped.",
        f"age: 1 of them are 95. {code(95)}",
        "ward: 7 cells are read.",
        "ward: 1 cells are no number or in no category, so their lines count nothing: 'c'",
        "ill: 7 cells are read.",
        "ill: 1 cells are missing, so their lines count nothing.",
        "Of the others, 2 are 'no' and 3 are 'yes'.",
    ]


def said_of(columns, target, lines, classes):
    schema = rows.Schema(columns, target)
    return preview.preview(schema, lines, len(lines), classes).sentences(classes)


def test_a_preview_shows_labels_that_are_neither():
    age, lines = rows.Number("age", 0, 100), [b"1,Yes", b"2,No", b"3,No", b"4,yes", b"5,"]
    said = said_of([age, rows.Label("ill", ("yes",), ("no",))], "ill", lines, ["no", "yes"])
    assert said[3:] == [
        "ill: 1 cells are missing, so their lines count nothing.",
        "ill: 3 cells are neither 'no' nor 'yes', so their lines count nothing: 'No', 'Yes'",
        "Of the others, 0 are 'no' and 1 are 'yes'.",
        "No line is 'no': a model of one class learns nothing.",
    ]
    said = said_of([age, rows.Category("ill", (0, 1))], "ill", [b"1,-1", b"2,1"], ["0", "1"])
    assert "ill: 1 cells are neither '0' nor '1', so their lines count nothing: '-1'" in said
    said = said_of([age, rows.Label("ill", ("yes",))], "ill", lines, ["not yes", "yes"])
    assert said[4:] == [
        "ill: 3 labels are 'not yes' because they are not listed: 'No' (2), 'Yes' (1)",
        "Of the others, 3 are 'not yes' and 1 are 'yes'.",
    ]


def test_a_listed_category_that_looks_missing_is_read():
    ward = rows.Category("ward", ("NA", "a"), "a", "a")
    said = said_of([ward, rows.Number("y", 0, 1)], "y", [b"NA,0", b"a,1", b",1", b"na,1"], None)
    assert said[1:] == [
        "ward: 2 cells are read.",
        "ward: 2 cells are missing, replaced by the stated value.",
        "y: 4 cells are read.",
    ]


@pytest.mark.parametrize("target", ["x", "y"])
@pytest.mark.parametrize("bounds", [(0, 1), ("-0.1", "0.3"), (-3, "1e-9"), (10**6, "1000000.5")])
def test_clipped_numbers_are_those_beyond_the_bounds(target, bounds):
    """Also where a number is nearer to a bound than rows of integers resolve."""
    schema = rows.Schema([rows.Number("x", *bounds), rows.Number("y", *bounds)], target, radius=0.7)
    low, high = map(rows.fraction, bounds)
    near = [low, high, (low + high) / 2]
    near += [
        end + step for end in (low, high) for step in (Fraction(1, 10**12), -Fraction(1, 10**12))
    ]
    near += [low - 5, high + 5]
    cells = [f"{Decimal(n.numerator) / Decimal(n.denominator):f}".encode() for n in near]
    looked = preview.preview(schema, [cell + b"," + cell for cell in cells], len(cells)).columns
    for column in looked:
        assert column.below.total() == sum(rows.fraction(c.decode()) < low for c in cells) == 2
        assert column.above.total() == sum(rows.fraction(c.decode()) > high for c in cells) == 2
        assert column.read == len(cells)


def test_a_preview_says_what_is_probably_wrong():
    """Decimal commas, Latin-1, codes, delimiters at the ends of lines, and line feeds in quotes."""
    columns = [
        rows.Number("age", 0, 100),
        rows.Category("sex", ("weiblich", "männlich"), "weiblich"),
    ]
    columns += [rows.Number("y", 0, 1)]
    lines = [b'"1,5",weiblich,1', b'"1.234,5",weiblich,1', b"x,weiblich,1"]
    said = said_of(columns, "y", lines, None)
    hint = "a decimal comma, or marks between thousands; write numbers in the file like 1234.5"
    assert f"age: 2 cells have {hint}." in said
    said = said_of(
        columns, "y", [f"5,{sex},1".encode("latin-1") for sex in columns[1].values], None
    )
    assert (
        "sex: such a cell is not UTF-8: in line 2 below the names, it is likely 'männlich', so set "
        "`encoding: latin-1`." in said
    )
    lines = (
        [b"50,weiblich,1"] * 985
        + [b"999,weiblich,1"] * 12
        + [b"-%d,weiblich,1" % k for k in (1, 2, 3)]
    )
    said = said_of(columns, "y", lines, None)
    assert [line for line in said if "missing value" in line] == [
        "age: 12 of them are 999. If this is a code for a missing value, state it: "
        "`missing: {age: {codes: [999]}}`."
    ]
    said = said_of(columns, "y", [b"5,weiblich,1,,", b'5,"a', b'b",1', b"5,weiblich,1"], None)
    assert said[1:3] == [
        "In 2 lines (50.0%) quotes are invalid. A record is one line: replace line feeds in quotes by "
        "spaces.",
        "1 lines (25.0%) have 5 cells, and the header has another number.",
    ]


def test_a_preview_counts_what_a_release_does():
    """If the preview does not count a line, the release turns it into zeros, whatever its bytes."""
    rng = np.random.default_rng(1)
    pieces = [
        b"50",
        b"a,b",
        b"surgery",
        b"icu",
        b"yes",
        b"no",
        b"",
        b"1e3",
        b'"',
        b"\xff",
        b"-4",
        b"na",
    ]
    lines = [b",".join(rng.choice(pieces, rng.integers(3, 6))) for _ in range(2000)]
    lines += [b"50,icu,3,yes", b"500,icu,3,no"]
    V, _ = SCHEMA.rows(lines, len(lines))
    actual = preview.preview(SCHEMA, lines, len(lines))
    assert actual.nothing == (~V.any(axis=1)).sum() and 0 < actual.nothing < len(lines)
    short = rows.Schema(SCHEMA.columns, "ill", radius=0.6)
    actual = preview.preview(short, lines[-2:], 2)
    assert actual.shortened == 2 and actual.labels == {}
    assert "2 lines (100.0%) would be shortened to the radius." in actual.sentences(None)


DATASETS = """
clinic:
  source: {csv: clinic.csv}
  label: ill
  positive: "yes"
  bounds: {age: [18, 90]}
  categories: {smoker: [0, 1]}
"""
RELEASE = """
data: clinic
rows: 600
unit: one row is one patient
book: clinic.book
budget: {epsilon: 9, delta: 2.0e-6}
epsilon: 8
delta: 1.0e-6
method: gaussian_objective_perturbation
premise: chosen without these rows
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("study")
    (path / "config/releases").mkdir(parents=True)
    (path / "config/datasets.yaml").write_text(DATASETS)
    (path / "config/releases/clinic.yaml").write_text(RELEASE)
    (path / "clinic.csv").write_text("age,smoker,ill\n" + "17,1,yes\n" * 3 + "50,2,no\n" * 5)
    return path


@pytest.fixture
def release_tool(folder):
    return Tool("release", folder)


def test_a_preview_is_private_and_the_book_keeps_that_it_was_run(folder, release_tool):
    said = release_tool("preview", "clinic").splitlines()
    assert said[0].startswith("PRIVATE") and not any("PRIVATE" in line for line in said[1:])
    assert "The file has 8 lines, and 600 are stated: a release would stop." in said
    assert "age: 3 numbers are below the bounds, and are clipped." in said
    assert any(line.startswith("smoker: 5 cells are no number or in no category") for line in said)
    assert said[-1] == (
        "The release would cost epsilon 8 and delta 1e-06. Spent are epsilon 0 of 9 and delta 0 of 2e-06."
    )
    assert release_tool("book", "clinic").splitlines()[-1] == "previews: 1"


def test_a_forecast_opens_no_rows(folder, release_tool):
    """The file contains 8 meaningless lines, but the forecast is for the stated 600 rows."""
    options = ["--expect", "age=50,10", "smoker=0:0.8,1:0.2", "--effect", "age=0.1", "smoker=1=0.5"]
    words = ("--epsilon", "4", "--prior", "0.2", "--draws", "9")
    said = release_tool("forecast", "clinic", *options, *words).splitlines()
    assert said[:3] == [
        "Assumed: 0.5 of the rows are 'yes', because no share is stated. Which share is it? State it with "
        "--positives, such as --positives 0.1: the rarer a class, the wider are the intervals.",
        "Assumed: effects are as stated, and 0 where none is stated.",
        "Assumed: columns are independent (--correlation). Where they are not, intervals are much wider.",
    ]
    assert "at epsilon = 4:" in said[3] and len(said) == 14
    assert [line.partition(":")[0] for line in said[9:12]] == ["`law"] * 3
    assert "no delta" in said[10] and "widths" in said[11] and "The law is" in said[13]
    assert "If he put the probability at 20%" in said[5]
    assert not list(folder.glob("*.book/clinic"))
    for words, match in (
        (["--expect", "age=x,1"], "'x' is not a number"),
        (["--width", "age=0.1"], "there is no interval for a column 'age'"),
    ):
        assert match in release_tool("forecast", "clinic", *words, "--draws", "9", fails=True)
