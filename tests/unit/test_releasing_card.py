"""Tests model.json and what follows from it: coefficients in columns' units, table, card, figure."""

import csv
import hashlib
import io
import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

from dp_privacy.errors import Refused
from dp_release import card, draws, files, meaning, models, rows
from dp_release.request import Request
from plots import releases as figures

N = 400
SPENT = {"epsilon": 1.5, "delta": 2e-6, "of_epsilon": 2.0, "of_delta": 4e-6, "releases": 2}
MADE_BY = {"code": "c" * 64, "libraries": {"numpy": "2"}}
MEANING = meaning.Meaning(0.5, (0.01,), (0.02,), (0.7,), 0.6)
COLUMNS = (
    rows.Number("age", "17.5", 42),
    rows.Category("ward", ("a|b", "c", "d"), "c"),
    rows.Unused("note"),
)
TARGETS = {
    "classes": rows.Label("ill", ("yes",), ("no",)),
    "numbers": rows.Number("cost", -5, 20),
}


def lines(numbers):
    rng = np.random.default_rng(5)
    for _ in range(N):
        age, ward = rng.uniform(17.5, 42), COLUMNS[1].values[rng.integers(3)]
        score = (age - 30) / 5 + (ward == "d")
        end = (
            f"{5 + 3 * score:.3f}"
            if numbers
            else ("yes" if rng.random() < 0.5 + score / 8 else "no")
        )
        yield f"{age:.4f},{ward},x,{end}".encode()


@pytest.fixture(scope="module")
def made():
    cache = {}

    def make(kind, method, previews=0, epsilon=1.0, **options):
        key = kind, method, previews, epsilon, *options
        if key not in cache:
            schema = rows.Schema((*COLUMNS, TARGETS[kind]), TARGETS[kind].name)
            values = {
                "name": "r",
                "schema": schema.facts,
                "rows": N,
                "unit": "one row is one person",
            }
            values |= {"epsilon": epsilon, "delta": 1e-6, "method": method, "options": options}
            values |= {
                "premise": "public example",
                "title": "Who is ill",
                "taken_as_public": "ends",
            }
            request = Request.parsed(values)
            V, y = schema.rows(lines(kind == "numbers"), N)
            release = models.release(request.plan(), V, y, bytes(draws.KEY_BYTES))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(files, "PROFILE", (1.0,))
                if not previews:  # the best attack takes seconds to compute
                    patch.setattr(files.meaning, "meaning", lambda profile: MEANING)
                content = files.content(
                    request, release, SPENT | {"previews": previews}, MADE_BY, "2026-11-28"
                )
            cache[key] = json.loads(content), files.parse(content)
        return cache[key]

    return make


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_coefficients_are_in_own_units(made, kind):
    document, model = made(kind, "gaussian_objective_perturbation")
    V, _ = model.schema.rows(lines(kind == "numbers"), N)
    scores = V / rows.ONE @ model.weights
    raw = [line.decode().split(",") for line in lines(kind == "numbers")]
    ages = np.array([float(cells[0]) for cells in raw])
    wards = np.array([cells[1] for cells in raw])
    age, first, last, constant = model.coefficients
    assert document["columns"] == ["age", "ward=a|b", "ward=d", "constant"]
    actual = constant + age * ages + first * (wards == "a|b") + last * (wards == "d")
    if kind == "numbers":
        assert model.target == (-5, 20)
        scores = -5 + 25 * (scores + 1) / 2
    np.testing.assert_allclose(actual, scores, atol=1e-4 * np.abs(model.coefficients).max())


@pytest.mark.parametrize(
    ("kind", "method"),
    [("classes", "noise_aware_logistic"), ("numbers", "noise_aware_log_cosh")],
)
def test_the_table_has_estimates_or_a_sentence(made, kind, method):
    document, _ = made(kind, method, epsilon=20.0)
    results = list(csv.DictReader(io.StringIO(card.table_csv(document))))
    assert [row["column"] for row in results] == document["columns"]
    deviations = np.sqrt(np.diag(document["covariance"]))
    for row, estimate, deviation in zip(results, document["estimates"], deviations, strict=True):
        assert float(row["estimate"]) == pytest.approx(estimate, rel=1e-8)
        assert float(row["high"]) - estimate == pytest.approx(1.959964 * deviation, rel=1e-6)
        assert row["says"] == ""
    silent = made(kind, method, epsilon=0.02)[0]
    results = list(csv.DictReader(io.StringIO(card.table_csv(silent))))
    if kind == "classes":
        assert {(row["estimate"], row["says"]) for row in results} == {("", files.SILENT)}
        assert files.SILENT in card.card(silent)
    else:  # intervals include the tilt's known noise
        wide = np.sqrt(np.diag(silent["covariance"]))
        assert (wide > 20 * deviations).all()


def test_the_card_says_what_is_promised(made):
    document, _ = made("classes", "noise_aware_logistic", previews=2)
    text = card.card(document)
    for part in (
        *(
            "# Who is ill\n",
            "Premise: public example",
            "one row is one person",
            "`ill`: yes against no",
        ),
        *(
            "epsilon = 1.5 of 2",
            "delta = 2e-06 of 4e-06",
            "2 releases",
            "looked at the rows 2 times",
        ),
        *(
            "ward=a\\|b",
            "`ward=c`",
            "Taken as public: ends",
            "HMAC-SHA512",
            "May be published".lower(),
        ),
        *("no effect because its interval", "`cccccccccccc`, numpy 2"),
    ):
        assert part in text, part
    actual = document["guarantee"]["meaning"]
    assert 0.5 < actual["right"] < 0.56 and 0.01 < actual["power"][0] < 0.0273  # e^1/100 + delta
    alone = card.card(made("numbers", "gaussian_objective_perturbation")[0])
    assert "releases no interval" in alone and "between -5 and 20" in alone and "`cost`" in alone


def test_the_card_promises_no_more_than_holds(made):
    document, _ = made("classes", "noise_aware_logistic", previews=2)
    guarantee = document["guarantee"]

    def text(right=0.6, epsilon=1.0, **changes):
        meaning = guarantee["meaning"] | {"right": right}
        changed = guarantee | {"meaning": meaning, "epsilon": epsilon}
        return card.card(document | {"guarantee": changed} | changes)

    words = {0.55: "learns little", 0.7: "may learn something", 0.98: "may learn much"}
    for right, much in words.items():
        assert [w for w in words.values() if w in text(right)] == [much]
        assert ("nearly the same" in text(right)) == (right < 0.6)
    assert text(epsilon=1.0000001).count("epsilon = 1.0000001") == 3
    # For 2 and 10 rows, delta is 1e-6 (1 + e) and 1e-6 (e^10 - 1)/(e - 1) = 0.01282, rounded up. At
    # epsilon 3, delta for 10 rows exceeds 1.
    for part in ("| 2 | 2 | 3.72e-06 |", "| 10 | 10 | 0.0129 |"):
        assert part in text()
    assert "| 10 | nothing is promised | |" in text(epsilon=3.0)
    assert "The guarantee is for one row" in text()
    assert "disks and backups may keep it" in text()
    counted = "That every row was used: some may have a missing or unknown cell. "
    assert f"{counted}Such rows count nothing, and nobody is told how many" in text()
    schema = document["schema"]
    columns = [c | {"missing": 30} if c["name"] == "age" else dict(c) for c in schema["columns"]]
    columns[-1]["negative"] = []
    own = text(schema=schema | {"columns": columns}, classes=["not yes", "yes"])
    for part in (
        f"{counted}A missing cell of `age` counts as 30. Every label in `ill` that is not missing and "
        "not yes counts as not yes.",
        "Other rows with such a cell count nothing",
    ):
        assert part in own
    held = {"rows": 80, "records": 83.4, "error": 0.2, "low": 0.1, "high": 0.3, "positives": 0.5}
    own = text(holdout=held)
    assert "About 80 of them" in own and "nobody is told how many" not in own


def test_the_summary_says_by_whom_when_and_how_to_check(made):
    document, _ = made("classes", "noise_aware_logistic")
    stated = document | {"released_by": "A clinic", "contact": "dpo@example.org"}
    summary = card.card(stated).partition("## What is promised")[0]
    digest = hashlib.sha256(files.written(stated)).hexdigest()
    for part in (
        *(
            "A clinic, dpo@example.org",
            "2026-11-28",
            f"SHA-256 `{digest}`",
            "| Rows | 400 rows, a public",
        ),
        *("Rows of each class | not released", "yes against no", "**epsilon = 1, delta = 1e-06"),
        # Phi(mu/2) = 0.6
        *("worth 0.507 standard deviations (mu)", "right at most 60 in 100 times"),
    ):
        assert part in summary, part
    older = {key: value for key, value in document.items() if key != "date"}
    assert "not recorded" in card.card(older) and "Released by | not stated" in card.card(older)


def test_the_trade_off_is_a_bound_and_close_to_the_best_attack(made):
    schema = rows.Schema((*COLUMNS, TARGETS["classes"]), "ill")
    values = {"name": "r", "schema": schema.facts, "rows": N, "unit": "a person", "epsilon": 1.0}
    values |= {"delta": 1e-6, "method": "noise_aware_logistic", "premise": "public example"}
    plan = Request.parsed(values).plan()
    guarantee = {"profile": [[e, plan.delta_at(e)] for e in files.PROFILE]}
    for false in (0.0, 1e-3, 0.05, 0.6, 1.0):
        actual = card.tradeoff({"guarantee": guarantee}, false)
        best = meaning.power(plan.guarantee().profile, false)
        assert best - 1e-9 <= actual <= min(1, best + 0.02)


def test_labels_and_odds_ratios_are_in_table_card_and_figure(made):
    document, _ = made("classes", "noise_aware_logistic", epsilon=20.0)
    document = document | {"labels": {"age": "Age | years", "ward": "Ward", "ward=d": "Dialysis"}}
    results = list(csv.DictReader(io.StringIO(card.table_csv(document))))
    assert [row["label"] for row in results] == [
        "Age | years",
        "Ward: a|b",
        "Dialysis",
        "intercept",
    ]
    assert [row["unit"] for row in results] == [
        *("log odds per unit", "log odds against ward=c", "log odds against ward=c", "log odds"),
    ]
    for row in results:
        for odds, value in (("odds_ratio", "estimate"), ("odds_low", "low"), ("odds_high", "high")):
            assert float(row[odds]) == pytest.approx(np.exp(float(row[value])), rel=1e-7)
        assert (row["epsilon"], row["rows"]) == ("20", "400")
    assert "| Age \\| years |" in card.card(document) and "| Dialysis |" in card.card(document)
    figure = figures.coefficients(document, card.labels(document))
    assert list(drawn(figure)) == ["Dialysis", "Ward: a|b", "Age | years"]
    plt.close(figure)
    numbers = card.table_csv(made("numbers", "gaussian_objective_perturbation")[0])
    assert "odds" not in numbers and "cost per unit" in numbers


def test_words_are_checked_and_leave_older_digests_alone():
    schema = rows.Schema((*COLUMNS, TARGETS["classes"]), "ill")
    values = {"name": "r", "schema": schema.facts, "rows": N, "unit": "a person", "epsilon": 1.0}
    values |= {"delta": 1e-6, "method": "noise_aware_logistic", "premise": "public example"}
    plain = Request.parsed(values)
    # Made before these keys existed.
    assert plain.digest() == "ed908e46d0f1c80ed42727d8613cc5cd86f15c82f4ee160c2db2730405895b6d"
    worded = Request.parsed(values | {"contact": "x", "labels": {"ward=a|b": "A"}})
    assert worded.digest() != plain.digest() and worded.settings() == plain.settings()
    for labels in ({"wards": "W"}, {"ill": "I"}, {"age": " "}, {"age": 3}, ["age"]):
        with pytest.raises(Refused, match="labels"):
            Request.parsed(values | {"labels": labels})


def drawn(figure):
    """Label -> numbers of a row: its dot, and the ends of its line."""
    rows = {}
    for axes in figure.axes:
        labels = [label.get_text() for label in axes.get_yticklabels()]
        for line in axes.lines[1:]:  # the first one is zero
            label = labels[round(line.get_ydata()[0])]
            rows.setdefault(label, []).extend(map(float, line.get_xdata()))
        rows |= {label: [] for label in labels if label not in rows}
    return rows


@pytest.mark.parametrize("epsilon", [0.02, 20.0])
def test_the_figure_has_the_numbers_of_the_table(made, epsilon):
    document, _ = made("classes", "noise_aware_logistic", epsilon=epsilon)
    figure = figures.coefficients(document)
    said = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert said == ([files.SILENT] * 3 if epsilon < 1 else [])
    keys = ("low", "high", "estimate")
    assert drawn(figure) == {
        row["column"]: [row[key] for key in keys if row[key] is not None]
        for row in document["table"]
        if row["column"] != "constant"
    }
    plt.close(figure)


def test_a_figure_of_weights_alone_has_the_coefficients_in_the_columns_units(made):
    document, _ = made("classes", "gaussian_objective_perturbation")
    figure = figures.coefficients(document)
    rows = dict(zip(document["columns"], document["coefficients"], strict=True))
    assert drawn(figure) == {name: [value] for name, value in rows.items() if name != "constant"}
    plt.close(figure)


def test_rows_of_other_sizes_have_axes_of_their_own(made):
    document, _ = made("classes", "noise_aware_logistic", epsilon=20.0)
    sizes = {"age": 0.02, "visits": 0.09, "income": 1e-5, "a": 0.4, "none": None, "b": 0.1, "c": 3}
    ends = {"estimate": 1, "low": 0.5, "high": 1}
    document["table"] = [
        {"column": name, "says": "" if size else "none"}
        | {key: size and share * size for key, share in ends.items()}
        for name, size in sizes.items()
    ]
    figure = figures.coefficients(document)
    labels = [[label.get_text() for label in axes.get_yticklabels()] for axes in figure.axes]
    assert labels == [["visits", "age"], ["income"], ["b", "none", "a"], ["c"]]
    plt.close(figure)
    document["table"] = [
        document["table"][0] | {"column": f"x{k}", "estimate": 10.0 ** (k % 7)} for k in range(100)
    ]
    figure = figures.coefficients(document)
    assert len(figure.axes) == figures.MOST and len(drawn(figure)) == 100
    plt.close(figure)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"format": "other"}'])
def test_what_is_no_model(tmp_path, content):
    path = tmp_path / "m.json"
    path.write_bytes(content)
    with pytest.raises(Refused, match=r"m\.json: "):
        files.load(path)
    with pytest.raises(Refused, match="cannot be read"):
        files.load(tmp_path / "none.json")
