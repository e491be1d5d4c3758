"""Requests, books, models, cards and predictions of releases with noise of a norm's law."""

import csv
import io
import json
from fractions import Fraction

import numpy as np
import pytest

from dp_privacy.errors import Refused
from dp_release import card, files, holdout, making, models, norm_models, rows
from dp_release.book import Book, Budget
from dp_release.forecast import Expected, Study, compared, outlook
from dp_release.request import ALONE, Request
from dp_release.using import of_file

N = 3000
SCHEMA = rows.Schema(
    [
        rows.Number("age", 18, 98),
        rows.Category("sex", ("f", "m"), "f"),
        rows.Category("ward", ("a", "b", "c"), "b"),
        rows.Label("ill", ("yes",), ("no",)),
    ],
    "ill",
)
VALUES = {
    "name": "first",
    "schema": SCHEMA.facts,
    "rows": N,
    "unit": "one row is one person",
    "epsilon": 4,
    "method": "noise_aware_logistic",
    "premise": "public example",
}
LAWS = {
    "pure": {"law": "pure"},
    "mixed": {"law": "mixed", "delta": 1e-6},
    "rule": {"law": "rule", "delta": 1e-6},
    "weights": {"method": ALONE},
    "without": {"law": "pure", "options": {"offset": "none"}},
}
TRUE = {"age": 0.03, "sex=m": 0.6, "ward=a": -0.7, "ward=c": 0.4, "constant": -1.5}


def lines(rng, n=N):
    age, sex = rng.integers(18, 99, n), rng.choice(["f", "m"], n)
    ward = rng.choice(["a", "b", "c"], n)
    score = TRUE["constant"] + TRUE["age"] * age + TRUE["sex=m"] * (sex == "m")
    score = score + TRUE["ward=a"] * (ward == "a") + TRUE["ward=c"] * (ward == "c")
    ill = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
    return [f"{a},{s},{w},{i}".encode() for a, s, w, i in zip(age, sex, ward, ill, strict=True)]


DATA = b"age,sex,ward,ill\n" + b"\n".join(lines(np.random.default_rng(1))) + b"\n"


def request(law, **more):
    return Request.parsed(VALUES | LAWS[law] | more)


def book(folder, budget):
    return Book(folder / "b.book", Budget.of(budget), VALUES["unit"])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Function from a law to (request, book, content)."""
    known = {}

    def make(law):
        if law not in known:
            asked, folder = request(law), tmp_path_factory.mktemp(law)
            budget = {"epsilon": 9} | ({"delta": 1e-5} if "delta" in LAWS[law] else {})
            account = book(folder, budget)
            making.preview(asked, account, DATA)
            known[law] = asked, account, making.make(asked, account, DATA)
        return known[law]

    return make


@pytest.mark.parametrize("law", LAWS)
def test_a_release_is_made_once_and_costs_what_it_says(made, law):
    asked, account, content = made(law)
    assert making.make(asked, account, b"other rows") == content
    with account.locked():
        spent = account.spent()
    delta = Fraction(1, 10**6) if law == "mixed" else 0
    assert (spent.epsilon, spent.delta) == (4, delta) == asked.cost
    parts = spent.parts["first"]
    assert tuple(map(sum, zip(*parts.values(), strict=True))) == asked.cost
    assert all(epsilon > 0 for epsilon, _ in parts.values())
    assert [part for part, (_, each) in parts.items() if each] == ["hessian"] * (law == "mixed")
    said = spent.lines()[1 : len(parts) + 1]
    assert [line.strip().partition(":")[0] for line in said] == list(json.loads(content)["parts"])
    if law != "without":
        assert said[0] == "    rate: epsilon 0.4, delta 0"
    document = json.loads(content)
    assert document["format"] == (files.LEVELS if law == "without" else files.OFFSET)
    assert (document["guarantee"]["epsilon"], document["guarantee"]["delta"]) == (4, float(delta))
    for part in document["parts"].values():
        assert all(type(each) is int for each in part["integers"])
    laws = {part: each.get("law") for part, each in document["parts"].items()}
    first = [] if law == "without" else ["rate"]
    assert list(laws) == [*first, "weights", "hessian"][: len(first) + 2 - (law == "weights")]
    assert (document["table"] is None) == (law == "weights")
    assert {part for part, each in laws.items() if each is None} == (
        {"hessian"} if law == "mixed" else set()
    )
    # Two categories: within a block, entries of the Hessian off its diagonal are 0 and not released.
    if law != "weights":
        assert len(document["parts"]["hessian"]["integers"]) == 6 * 7 // 2 - 1 - 3
    assert document["weight_columns"] == [*("age", "sex=f", "sex=m", "ward=a", "ward=b", "ward=c")]
    assert document["columns"] == ["age", "sex=m", "ward=a", "ward=c", "constant"]


@pytest.mark.parametrize("law", LAWS)
def test_estimates_are_near_the_truth_and_predictions_agree(made, law):
    model = files.parse(made(law)[2])
    names = model.document["columns"]
    wide = {"age": 0.02, "constant": 0.9}
    for name, value in zip(names, model.coefficients, strict=True):
        assert abs(value - TRUE[name]) < wide.get(name, 0.5)
    if law != "weights":
        for row in model.document["table"]:
            assert row["low"] < row["estimate"] < row["high"] and row["p_value"] <= 1
    told = list(of_file(model, b"ward,age,sex\nb,50,f\na,98,m\nc,1e9,m\nq,30,f\n"))
    coefficients = dict(zip(names, model.coefficients, strict=True))
    scores = [
        coefficients["constant"] + 50 * coefficients["age"],
        coefficients["constant"]
        + 98 * coefficients["age"]
        + coefficients["sex=m"]
        + coefficients["ward=a"],
        coefficients["constant"]
        + 98 * coefficients["age"]
        + coefficients["sex=m"]
        + coefficients["ward=c"],
    ]
    found = [float(line[1]) for line in told[1:4]]
    assert found == pytest.approx(1 / (1 + np.exp(-np.array(scores))), abs=1e-4)
    assert told[4] == ("", "")


def test_a_model_and_its_card_have_the_rate(made):
    document = json.loads(made("pure")[2])
    counted = sum(line.endswith(b"yes") for line in DATA.splitlines())
    part = document["parts"]["rate"]
    noisy = part["integers"][0] * 2.0 ** part["step"]
    assert abs(noisy - counted) < 60 and abs(noisy - counted) > 1e-6
    rate = 1 / (1 + np.exp(-document["offset"]))
    assert rate == pytest.approx(noisy / N, abs=1e-3)
    said = card.card(document)
    assert "The first part of the release is the number of rows of yes (" in said
    assert f"The log odds of this share, {document['offset']:.4g}, are part of every score" in said
    assert "noise of a norm's law on the rate, for 0.4 of epsilon" in said
    assert "first part" not in card.card(json.loads(made("without")[2]))
    model = files.parse(made("pure")[2])
    moved = json.dumps(document | {"offset": document["offset"] + 1}).encode()
    row = b"age,sex,ward\n50,f,a\n"
    odds = []
    for each in (made("pure")[2], moved):
        p = float(list(of_file(files.parse(each), row))[1][1])
        odds.append(np.log(p / (1 - p)))
    assert odds[1] - odds[0] == pytest.approx(1, abs=1e-5) and model.offset == document["offset"]


def test_a_card_says_what_a_delta_of_0_means(made):
    pure, mixed = (json.loads(made(law)[2]) for law in ("pure", "mixed"))
    said = card.card(pure)
    assert "Delta is 0: no outcome" in said and "delta = 0 of 0" in said
    assert "noise of a norm's law on a lattice, exactly drawn" in said and "below 1e-26" in said
    assert "| 10 | 40 | 0 |" in said
    other = card.card(mixed)
    assert "Delta is 0" not in other and "1e-26 is never drawn" not in other
    assert "noise of a norm's law on a lattice and discrete Gaussian noise, exactly" in other
    results = list(csv.DictReader(io.StringIO(card.table_csv(pure))))
    assert [row["unit"] for row in results][1:3] == [
        "log odds against sex=f",
        "log odds against ward=b",
    ]
    why = json.loads(made("rule")[2])["why"]
    assert why.startswith("The law is pure") and why in card.card(json.loads(made("rule")[2]))


def test_profiles_are_those_of_the_laws(made):
    for law in ("pure", "mixed"):
        for epsilon, delta in json.loads(made(law)[2])["guarantee"]["profile"]:
            whole = 4.0
            least = max(0.0, (np.exp(whole) - np.exp(epsilon)) / (1 + np.exp(whole)))
            if law == "pure":
                assert least * 0.999 <= delta <= least * (1 + 1.1e-6) + 1e-15
            else:
                assert delta <= least + 1e-6


def test_models_that_were_changed_are_no_models(made):
    document = json.loads(made("pure")[2])
    for change in (
        {"weight_columns": document["columns"]},
        {"format": files.FORMAT},
        {"format": "dp-release 4"},
        {"offset": None},
        {"weights": document["weights"][:-1]},
    ):
        with pytest.raises(Refused, match="not the model of a release"):
            files.parse(json.dumps(document | change).encode())


# ---- requests


def test_the_law_of_today_is_left_out_of_the_digest():
    """The digests are those of code that knew no law. So its finished releases open."""
    schema = rows.Schema([rows.Number("age", 0, 100), rows.Category("ill", ("no", "yes"))], "ill")
    values = VALUES | {"schema": schema.facts, "rows": 4000, "epsilon": 1, "delta": 1e-6}
    values |= {"premise": "chosen without these rows"}
    for more in ({}, {"law": "gaussian"}):
        asked = Request.parsed(values | more)
        assert asked.digest() == "3957e2f1051fc208603817b39a457045eb91edb093107173447b1d46f6b97bfa"
        assert asked.settings() == (
            "5d34192a3d4d6d4f46aa34dbdb9e7e0eb630688952f786d3aefa9d995a0f8256"
        )
    digests = {Request.parsed(values | {"law": law}).digest() for law in ("mixed", "rule")}
    assert len({*digests, asked.digest()}) == 3


def test_a_book_without_parts_opens_as_before(tmp_path):
    """A line of older code has the cost alone, as one of a release with Gaussian noise still has."""
    asked = request("mixed")
    account = book(tmp_path, {"epsilon": 9, "delta": 1e-5})
    making.preview(asked, account, DATA)
    with account.locked():
        begun = account.begin(asked, DATA, making.made_by())
        content = b"{}"
        account.finish(asked, content)
        spent = account.spent()
    (line,) = (e for e in account._events if e["event"] == "begin")
    assert "parts" not in line and spent.parts == {}
    assert begun.spent["epsilon"] == 4 and spent.lines() == [
        "first: epsilon 4, delta 1e-06, done",
        "spent: epsilon 4 of 9, delta 1e-06 of 1e-05",
        "previews: 1",
    ]
    assert making.make(asked, account, b"other rows") == content
    gaussian = Request.parsed(VALUES | {"name": "second", "delta": 1e-6})
    making.preview(gaussian, account, DATA)
    making.make(gaussian, account, DATA)
    with account.locked():
        assert account.spent().parts == {}


def test_parts_that_do_not_add_up_to_the_cost_are_not_spent(tmp_path):
    asked = request("mixed")
    account = book(tmp_path, {"epsilon": 9, "delta": 1e-5})
    making.preview(asked, account, DATA)
    parts = {"weights": (Fraction(3), Fraction(0)), "hessian": (Fraction(1), Fraction(0))}
    with account.locked(), pytest.raises(RuntimeError, match="nothing was spent"):
        account.begin(asked, DATA, making.made_by(), parts)
    with account.locked():
        assert account.spent().releases == []


def test_a_finished_release_of_today_is_never_drawn_again(tmp_path, monkeypatch):
    asked = Request.parsed(VALUES | {"delta": 1e-6})
    account = book(tmp_path, {"epsilon": 9, "delta": 1e-5})
    making.preview(asked, account, DATA)
    content = making.make(asked, account, DATA)
    document = json.loads(content)
    assert document["format"] == files.FORMAT and "law" not in document["tilt"]
    assert "law" not in document and "weight_columns" not in document
    monkeypatch.setattr(models, "release", None)
    again = Request.parsed(VALUES | {"delta": 1e-6, "law": "gaussian"})
    assert making.make(again, account, b"") == content
    assert files.parse(content).reads.names == document["columns"]
    other = Request.parsed(VALUES | {"delta": 1e-6, "law": "mixed"})
    with pytest.raises(Refused, match="another release named"):
        making.make(other, account, DATA)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"law": "laplace", "delta": 1e-6}, "has the law gaussian or pure or mixed or rule"),
        ({"law": "pure", "delta": 1e-6}, "spends no delta: leave it out"),
        ({"method": ALONE, "delta": 1e-6}, "spends no delta: leave it out"),
        ({"method": ALONE, "law": "mixed", "delta": 1e-6}, "has the law pure"),
        ({"method": "gaussian_objective_perturbation", "law": "pure"}, "has the law gaussian"),
        ({"law": "mixed"}, "needs the key 'delta'"),
        ({"law": "rule"}, "needs the key 'delta'"),
        ({}, "needs the key 'delta'"),
        ({"law": "mixed", "delta": 0}, "delta must be a positive number"),
        ({"law": "pure", "options": {"covariance": 0.2}}, "'covariance' is for the law gaussian"),
        ({"method": ALONE, "options": {"robust": True}}, "takes no option 'robust'"),
        ({"delta": 1e-6, "options": {"offset": "paid"}}, "'offset' is not for the law gaussian"),
        ({"law": "pure", "options": {"offset": "free"}}, "is rule, paid, none, not 'free'"),
        ({"law": "pure", "options": {"offset": True}}, "is rule, paid, none, not True"),
    ],
)
def test_refusals(change, message):
    with pytest.raises(Refused, match=message):
        Request.parsed(VALUES | change)


def test_the_laws_are_for_one_row_per_person():
    schema = rows.Schema([rows.Unused("id"), *SCHEMA.columns], "ill")
    values = {key: value for key, value in VALUES.items() if key != "rows"}
    values |= {"schema": schema.facts, "person": {"column": "id", "people": 1000, "most": 3}}
    for law in LAWS.values():
        with pytest.raises(Refused, match="one row per person"):
            Request.parsed(values | law)


def test_the_laws_need_stated_bounds():
    columns = [rows.Number("age", -(10**6), 10**6, find={}), *SCHEMA.columns[1:]]
    values = VALUES | {"schema": rows.Schema(columns, "ill").facts}
    for law in LAWS.values():
        with pytest.raises(Refused, match="bounds that are found need the law gaussian"):
            Request.parsed(values | law)


def test_budgets_may_be_pure(tmp_path):
    assert Budget.of({"epsilon": 2}) == Budget(Fraction(2), Fraction(0))
    account = book(tmp_path, {"epsilon": 5})
    asked = request("mixed")
    making.preview(asked, account, DATA)
    with pytest.raises(Refused, match="more cannot be spent"):
        making.make(asked, account, DATA)
    for wrong in ({"epsilon": 1, "delta": -1e-9}, {"epsilon": 1, "delta": 1}, {"delta": 0.1}):
        with pytest.raises(Refused, match="the budget needs"):
            Budget.of(wrong)


def test_without_a_reference_the_first_level_is_it():
    columns = [c._replace(reference=None) if hasattr(c, "reference") else c for c in SCHEMA.columns]
    schema = rows.Schema(columns, "ill")
    asked = Request.parsed(VALUES | {"schema": schema.facts, "law": "pure"})
    found = rows.from_facts(asked.schema).names
    assert found == ["age", "sex=m", "ward=b", "ward=c", "constant"]


@pytest.mark.parametrize("robust", [False, True])
def test_numbers(tmp_path, robust):
    """Log-cosh likewise: at its threshold, with the second statistic, in the target's own units."""
    schema = rows.Schema(
        [
            rows.Number("x", 0, 10),
            rows.Category("g", ("a", "b", "c"), "c"),
            rows.Number("y", -5, 20),
        ],
        "y",
    )
    rng = np.random.default_rng(5)
    x, g = rng.uniform(0, 10, 6000), rng.choice(["a", "b", "c"], 6000)
    y = 2 + 0.8 * x - 3 * (g == "a") + rng.standard_normal(6000)
    data = [f"{a:.4f},{b},{c:.4f}".encode() for a, b, c in zip(x, g, y, strict=True)]
    values = VALUES | {"schema": schema.facts, "rows": 6000, "method": "noise_aware_log_cosh"}
    for law in ("pure", "mixed"):
        asked = Request.parsed(values | LAWS[law] | {"options": {"robust": robust}})
        plan = asked.plan()
        assert list(plan.noises) == ["weights", "hessian", "scores" if robust else "square"]
        assert plan.problem.n * plan.problem.lam >= 4 / 4 and plan.delta_at(4.0) <= 1e-6
        V, labels = asked.read_as().rows(data, 6000)
        release = models.release(plan, V, labels, bytes(range(32)))
        told = rows.from_facts(asked.schema)
        T, shift = files.told(asked, told)
        table = {row["column"]: row for row in files.table_of(release, told.names, T, shift)[0]}
        for name, value in {"x": 0.8, "g=a": -3.0, "g=b": 0.0, "constant": 2.0}.items():
            row = table[name]
            assert row["low"] - 0.3 < value < row["high"] + 0.3, (law, name, row)
            assert row["high"] - row["low"] < 4


def test_the_public_rule_is_the_requests(monkeypatch):
    asked = request("rule")
    chosen = norm_models.table(
        *(N, norm_models.Body(6, ((1, 2), (3, 4, 5))), Fraction(asked.read_as().each, rows.ONE)),
        *(4.0, 1e-6, "logistic", False, "rule"),
    )
    assert asked.plan() == chosen.plan and asked.why() == chosen.why
    assert asked.cost == (4, Fraction(str(chosen.plan.delta)))
    assert request("pure").why() == ""


@pytest.mark.parametrize("law", ["pure", "mixed", "rule", "weights"])
def test_a_holdout_costs_no_more(tmp_path, law):
    asked = request(law, name="held", holdout=0.2)
    assert asked.training == N - N // 5
    paid = making.planned(asked)
    noise = paid.noise
    assert noise.paid <= 4 and noise.scale * noise.paid >= 2 / noise.spacing
    assert paid.delta_at(4.0) <= max(asked.plan(asked.training).delta, 1e-22)
    assert paid.guarantee().delta == float(asked.cost[1])
    account = book(tmp_path, {"epsilon": 9, "delta": 1e-5})
    making.preview(asked, account, DATA)
    document = json.loads(making.make(asked, account, DATA))
    held = document["holdout"]
    assert held["law"] == "hull" and document["training_rows"] == N - N // 5
    assert 0.25 < held["low"] < held["error"] < held["high"] < 0.5
    assert abs(held["records"] - N // 5) < 20
    assert "are predicted wrongly" in card.card(document)


def test_noise_on_held_out_sums_has_the_stated_deviation():
    paid = making.planned(request("pure", holdout=0.2))
    stream = models.Stream(bytes(32), "sums")
    z = np.array([paid.noise.draw(stream) for _ in range(3000)], dtype=float)
    z *= float(paid.noise.spacing)
    assert np.allclose(z.std(axis=0), holdout._deviation(paid.noise), rtol=0.08)
    beyond = np.abs(z) > 1.96 * holdout.TAILS * holdout._deviation(paid.noise)
    assert beyond.mean() < 0.055


# ---- forecasts


def test_forecasts_show_every_product_before_anything_is_spent():
    asked = Request.parsed(VALUES | {"delta": 1e-6})
    study = Study(SCHEMA, Expected(effects={k: v for k, v in TRUE.items() if k != "constant"}))
    said = compared(asked, study, draws=9)
    assert [line.partition(":")[0] for line in said[1:4]] == ["`law"] * 3
    assert "no delta" in said[2] and "widths: age" in said[2] and "delta 1e-06" in said[3]
    assert ["the class rate first" in line for line in said[1:5]] == [False, True, True, True]
    pure = asked._replace(law="pure", delta=0.0, options={"offset": "none"})
    assert not any("class rate" in line for line in compared(pure, study, draws=9)[1:5])
    assert "no intervals" in said[4] and said[5].startswith("The rule (`law: rule`): The law is")
    widths = {law: outlook(request(law), study, 12).widths for law in ("pure", "mixed")}
    today = outlook(asked, study, 12).widths
    for found in widths.values():
        assert list(found) == list(today)
        assert all(found[name] < today[name] for name in ("sex=m", "ward=a", "ward=c"))


def test_simulated_rows_of_map_2_have_the_scores_of_map_1():
    study = Study(SCHEMA)
    levels = request("pure").read_as()
    first, y = study.rows(500, 3)
    second, labels = study.rows(500, 3, levels)
    assert (y == labels).all() and second.shape == (500, 6)
    T, shift = files.own_units(SCHEMA)
    told = rows.from_facts(request("pure").schema)
    T2, _ = files.told(request("pure"), told)
    weights = np.random.default_rng(1).standard_normal(6)
    coefficients = T2 @ weights
    assert np.allclose(
        second / rows.ONE @ weights, first / rows.ONE @ np.linalg.solve(T, coefficients), atol=1e-4
    )
    assert told.names == SCHEMA.names and not shift.any()


def test_an_estimator_fits_without_a_delta(tmp_path):
    estimators = pytest.importorskip("dp_release.estimators")
    cells = [line.decode().split(",") for line in lines(np.random.default_rng(2))]
    X, y = [row[:3] for row in cells], [row[3] for row in cells]
    stated = {
        "book": tmp_path / "b.book",
        "budget": {"epsilon": 5},
        "n_rows": N,
        "columns": {"x0": (18, 98), "x1": ["f", "m"], "x2": ["b", "a", "c"]},
        "target": ["no", "yes"],
        "unit": "one row is one person",
        "epsilon": 4,
        "premise": "public example",
        "spend": True,
    }
    with pytest.raises(Refused, match="state delta"):
        estimators.PrivateClassifier("x", **stated).preview(X, y)
    model = estimators.PrivateClassifier("x", **stated, law="pure")
    model.preview(X, y)
    model.fit(X, y)
    assert model.guarantee_["delta"] == 0 and len(model.table_) == 5
    assert list(model.coefficient_names_) == ["x0", "x1=m", "x2=a", "x2=c"]
    found = model.predict_proba([["50", "f", "b"], ["90", "m", "c"]])
    assert found.sum(axis=1) == pytest.approx([1, 1]) and found[1, 1] > found[0, 1] + 0.2
