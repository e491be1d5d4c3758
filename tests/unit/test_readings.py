"""Readings of what a source leaves open become separate experiments, and decide claims."""

import json
import math
from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from checks import statements
from checks import under_readings as confronted
from checks.published import compare
from checks.results import Read, Results
from configured import changed
from dp.mechanisms import MECHANISMS
from dp.solvers.lasso_scales import minimise_lasso
from study import facts, paths
from study.configuration import needs
from study.configuration.cell import Cell
from study.configuration.config import ConfigError
from study.configuration.experiment import Experiment, Reading
from study.jobs import folds
from study.jobs.files import write_json

NAME = "veldhuizen"
LASSO = "lasso_output_perturbation"


def loaded(**changes):
    return changed(NAME, **changes)


@pytest.fixture(scope="module")
def experiments():
    return loaded()


def test_a_reading_runs_what_differs_and_is_needed(experiments):
    base, read = experiments[NAME], experiments[f"{NAME}__penalty_summed"]
    cells = read.cells()
    assert cells and {cell.method for cell in cells} == {LASSO}
    assert set(cells) <= needs.cells(read.plain()) < set(read.plain().cells())
    assert base.methods[LASSO].options == {}
    assert read.methods[LASSO].options == {"penalty_scale": "summed"}
    assert not read.figures and not read.tables and not read.analyses and not read.readings
    assert "v20-5" in base.claims
    assert "v20-5" not in read.claims  # the reading's `decides` omits it


def test_it_has_the_draws_of_its_experiment_and_a_folder_of_its_own(experiments):
    base, read = experiments[NAME], experiments[f"{NAME}__penalty_summed"]
    cell = read.cells()[0]
    assert read.split(LASSO) == f"{base.split(LASSO)} --experiment {NAME}"
    assert f"/{NAME}/readings/penalty_summed/runs/" in read.run_path(cell)
    again = Experiment.from_json(read.to_json("methods"))
    assert (again.name, again.folder) == (read.name, read.folder)
    assert "folder" not in json.loads(base.to_json())
    log = Path(paths.log_of(read.run_path(cell)))
    assert log.is_relative_to(paths.results(read.folder, "logs"))
    assert paths.split(log) == (read.folder, log.relative_to(paths.results(read.folder)).parts)
    assert paths.split(paths.READINGS(experiment=NAME)) == (NAME, ("readings.csv",))
    assert read.tuned_path("v20_real") == base.tuned_path("v20_real")


def test_a_reading_of_the_comparison_alone_runs_nothing(experiments):
    read = experiments[f"{NAME}__regression_l1"]
    assert read.cells() == []
    assert needs.items(read, "table_2")[0].method == "nonprivate_l1"


def test_a_reading_of_sizes_runs_those_that_are_new(experiments):
    base, read = experiments[NAME], experiments[f"{NAME}__batches_before_folding"]
    sizes = {cell.train_size for cell in read.cells()}
    assert sizes == set(range(800, 8001, 800)) - {4000, 8000}
    assert {cell.method for cell in read.cells()} == {LASSO, "objective_perturbation_cm08"}
    assert not sizes & {cell.train_size for cell in base.cells()}


def test_a_reading_may_tune_otherwise(experiments):
    base, read = experiments[NAME], experiments[f"{NAME}__tuning_lasso_mean"]
    assert read.cells() == [] and [*read.published] == ["tuned_lambda"]
    assert read.tune == base.tune.but(lasso="mean")
    own = read.tuned_path("v20_real", "json")
    assert own != base.tuned_path("v20_real", "json")
    made = needs.files_of_readings(base, [read])
    assert paths.TABLE(experiment=read.folder, name="tuning") in made


def test_readings_together(experiments):
    read = experiments[f"{NAME}__row_order_file__labels_benign_one"]
    assert read.split().startswith("--folds 5 --divisions 20 --whole --zero=1 ")
    assert {cell.dataset for cell in read.cells()} == {"v20_real_file"}
    assert needs.items(read, "table_2")[-1].train_size == 500
    assert read.trained_rows(read.cells()[0]._replace(train_size=52)) == 41
    assert experiments[NAME].trained_rows(Cell("v20_real", LASSO, 52, 1.0)) == 52


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"together": [["penalty.summed", "labels.none"]]}, "together: .*no reading 'labels.none'"),
        ({"divisions": 25}, "divisions: v20_separable is 25 data sets from one"),
        ({"readings": {"penalty": {"main": "summed"}}}, "has the main value 'summed' too"),
        ({"readings": {"penalty": {"decides": ["v20-99"]}}}, "no comparison or claim 'v20-99'"),
        (
            {
                "claims": {"v20-9": {"checks": None, "not_tested": "why"}},
                "readings": {"penalty": {"decides": ["v20-9"]}},
            },
            "'v20-9' is not tested",
        ),
        (
            {"readings": {"labels": {"others": {"benign_one": {"labels": "two"}}}}},
            "labels.benign_one: labels: must be one of ",
        ),
        (
            {
                "lambda": "tuned",
                "readings": {"penalty": {"others": {"summed": {"tune": {"folds": 3}}}}},
            },
            "a reading shares 'tune'",
        ),
    ],
)
def test_faults_are_told_in_a_sentence(changes, problem):
    with pytest.raises(ConfigError, match=problem):
        loaded(**changes)


# ---- a handmade study with two methods; a reading changes one of them


def study(tmp_path, monkeypatch):
    monkeypatch.setenv("DP_RESULTS", str(tmp_path))
    method = {"private": True, "mechanism": "output_perturbation"}
    checks = [{"kind": "lower_than", "options": {"lower": "a", "higher": "b"}}]
    values = {
        "source": "s",
        "datasets": ["d"],
        "folds": 5,
        "methods": {"a": method, "b": method},
        "sweeps": {"all": {"train_sizes": [100], "epsilons": [1.0]}},
        "analyses": {},
        "tables": {},
        "published": {
            "t": {
                "title": "t", "values": "tables/t", "layout": "number", "quantity": "error",
                "implied_epsilon": False, "epsilon": 1.0, "train_size": 100,
                "rows": [
                    {"value": "0", "dataset": "d", "method": "a"},
                    {"value": "1", "dataset": "d", "method": "b"},
                ],
            }
        },
        "claims": {"c": {"checks": checks}},
    }  # fmt: skip
    base = Experiment("made", values)
    about = {"of": "made", "label": "x: y", "left_open": "?", "tunes": False}
    about |= {"own": [Cell("d", "a", 100, 1.0)], "shared": [Cell("d", "b", 100, 1.0)]}
    read = Reading("made__x_y", dict(values), paths.reading("made", "x_y"), **about)
    rng = np.random.default_rng(2)
    for experiment, errors in ((base, {"a": 0.4, "b": 0.3}), (read, {"a": 0.2})):
        rows = []
        for cell in experiment.cells():
            mean = errors[cell.method]
            rows.append(
                cell._asdict()
                | {"error_mean": mean, "error_low": mean - 0.01, "error_high": mean + 0.01}
                | {"error_sd_folds": 0.01, "folds": 5, "status": "ok"}
            )
            path = tmp_path / experiment.run_path(cell)
            path.parent.mkdir(parents=True)
            draws = mean + rng.normal(0, 0.01, 10)
            frame = {"fold": np.repeat(range(5), 2), "error": draws, "status": "ok"}
            pd.DataFrame(frame).to_csv(path, index=False)
        pd.DataFrame(rows).to_csv(tmp_path / experiment.folder / "results.csv", index=False)
    return base, read


def confront(base, read, source):
    main = Results(base)
    rows = {
        each.experiment.name: list(compare(each, source, each.experiment.published, {}))
        for each in (main, Read(read, main))
    }
    write_json(paths.COMPARED(experiment=base.name), rows)
    return list(confronted.confront(base, [read], source))


def test_a_reading_has_its_own_cells_and_those_that_it_does_not_change(tmp_path, monkeypatch):
    base, read = study(tmp_path, monkeypatch)
    assert [cell.method for cell in read.cells()] == ["a"]
    # Errors are shares of rows, so the file with the number of rows is needed.
    assert needs.preparations([base, read]) == [paths.DATA("json", dataset="d")]
    source = facts.Source(key="s", short="S", tables={"t": [0.2, 0.3]}, claims=[])
    rows = confront(base, read, source)
    table = {(row["id"], row["reading"]): row for row in rows}
    assert len(table) == len(rows) == 6
    assert table["t/0", "as stated"]["distance"] == "off"
    assert table["t/0", "x: y"]["distance"] == "equal to the printed precision"
    assert table["t/0", "x: y"]["concerned"] == "yes"
    assert table["t/1", "x: y"]["concerned"] == "no"
    assert (table["c", "as stated"]["holds"], table["c", "x: y"]["holds"]) == ("no", "yes")
    # the interval is from the reading's own draws
    assert table["t/0", "x: y"]["prediction_high"] < 0.3


def test_a_claim_about_noise_is_decided_only_if_the_model_without_it_is_the_printed_one(
    tmp_path, monkeypatch
):
    base, read = study(tmp_path, monkeypatch)
    for experiment in (base, read):
        claim = experiment.claims["c"].but(given="t/0")
        experiment.claims = {"c": claim}
    compared = paths.COMPARED(experiment="made")
    assert compared in needs.files_of_checks(base, "claims", [])
    printed = {"c": {"id": "c", "says": "a is below b"}}
    for value, holds, verdict in (
        (
            0.4,
            ("no", ""),
            "not reproduced by any of 1 reading",
        ),  # method a's error is 0.4 as stated, and 0.2 under the reading
        (0.2, ("", "yes"), "reproduced if x: y"),
        (0.7, ("", ""), "undecided"),
    ):
        source = facts.Source(key="s", short="S", tables={"t": [value, 0.3]}, claims=[printed["c"]])
        rows = confront(base, read, source)
        results = {row["reading"]: row["holds"] for row in rows if row["id"] == "c"}
        assert tuple(results.values()) == holds
        rows = [{key: row.get(key) or "" for key in confronted.COLUMNS} for row in rows]
        tried = confronted.most_telling_first(rows)
        best = ("x: y",)
        (row,) = statements.decide(Results(base), source, "claims", {}, tried, best)
        assert row["verdict"] == verdict


def test_a_reading_whose_draws_failed_leaves_a_failing_claim_open(tmp_path, monkeypatch):
    base, read = study(tmp_path, monkeypatch)
    file = tmp_path / read.folder / "results.csv"
    pd.read_csv(file).assign(status="1 of 10 diverged").to_csv(file, index=False)
    claims = [{"id": "c", "says": "a is below b"}]
    source = facts.Source(key="s", short="S", tables={"t": [0.2, 0.3]}, claims=claims)
    rows = [{k: r.get(k) or "" for k in confronted.COLUMNS} for r in confront(base, read, source)]
    assert [row["holds"] for row in rows if row["id"] == "c"] == ["no", ""]
    tried = confronted.most_telling_first(rows)
    (row,) = statements.decide(Results(base), source, "claims", {}, tried)
    assert row["verdict"] == "undecided" and "1 of 10 diverged" in row["decided_by"]


def test_a_table_of_its_own_decides_what_a_reading_names(tmp_path, monkeypatch):
    base, read = study(tmp_path, monkeypatch)
    spec = {"title": "t", "kind": "errors", "sweep": "all"}
    check = {"kind": "table", "table": "sums", "options": {"column": "sum", "at_most": 0.5}}
    printed = base.published["t"].plain() | {
        "quantity": "value", "table": "sums", "column": "sum", "implied_epsilon": False,
        "rows": [{"value": "0", "dataset": "d"}], "epsilon": None,
    }  # fmt: skip
    del printed["train_size"]
    for experiment, number in ((base, 0.7), (read, 0.2)):
        experiment.tables = {"sums": spec}
        experiment.published = base.published | {"s": printed}
        experiment.claims = base.claims | {"d": {"checks": [check]}}
        folder = tmp_path / experiment.folder / "tables"
        folder.mkdir(parents=True)
        pd.DataFrame({"dataset": ["d"], "sum": [number]}).to_csv(folder / "sums.csv", index=False)
    assert [cell.method for cell in read.entry_cells(read.tables["sums"])] == ["a", "b"]
    tables = {f"{tmp_path}/{name}/tables/sums.csv" for name in ("made", "made/readings/x_y")}
    # A claim about errors also needs the number of rows.
    record = paths.DATA("json", dataset="d")
    assert {*needs.files_of_readings(base, [read])} == tables | {record}
    assert record in needs.files_of_checks(base, "claims", [])
    source = facts.Source(key="s", short="S", tables={"t": [0.2, 0.3]}, claims=[])
    rows = {(row["id"], row["reading"]): row for row in confront(base, read, source)}
    assert len(rows) == 10
    assert rows["s/0", "as stated"]["ours"] == 0.7 and rows["s/0", "x: y"]["ours"] == 0.2
    assert rows["s/0", "x: y"]["distance"] == "equal to the printed precision"
    assert rows["s/0", "x: y"]["concerned"] == rows["d", "x: y"]["concerned"] == "yes"
    assert (rows["d", "as stated"]["holds"], rows["d", "x: y"]["holds"]) == ("no", "yes")


def test_an_analysis_is_a_readings_where_it_decides(experiments):
    check = {"kind": "time_ratio", "analysis": "timing"}
    check["options"] = {"first": "general_purpose", "second": "general_purpose_plain"}
    claims = {"v20-7": {"not_tested": None, "checks": [check]}}
    decides = {"readings": {"penalty": {"decides": ["v20-1", "v20-7"]}}, "claims": claims}
    actual = loaded(**decides)
    read = actual[f"{NAME}__penalty_summed"]
    assert list(read.analyses) == ["timing"] and not read.tables and "v20-7" in read.claims
    assert read.published == {}
    assert "v20-7" in needs.decided(actual[NAME], [read])[1]
    assert "v20-7" not in needs.decided(experiments[NAME], [])[1]


def prepared(tmp_path, rows):
    X = np.linspace(0.1, 0.9, rows)[:, None]
    y = np.where(np.arange(rows) % 2, 1, -1).astype(np.int8)
    np.savez(tmp_path / "d.npz", X=X, y=y)
    arguments = {"data": tmp_path / "d.npz", "dataset": "d", "experiment": "e", "seed": 1}
    return X[:, 0], Namespace(**arguments, folds=5, simulations=None, train_size=20)


def test_whole_batches_are_the_first_rows_in_their_order(tmp_path):
    X, arguments = prepared(tmp_path, 50)
    results = list(folds.training_folds(Namespace(**vars(arguments), whole=True)))
    tested = np.concatenate([test[0][:, 0] for _, test in results])
    np.testing.assert_array_equal(np.sort(tested), X[:20])
    assert [len(train[1]) for train, _ in results] == [16] * 5
    nested = list(folds.training_folds(arguments))
    assert [len(train[1]) for train, _ in nested] == [20] * 5
    assert sum(len(test[1]) for _, test in nested) == 50


def test_a_label_of_zero_leaves_the_loss_alone(tmp_path):
    _, arguments = prepared(tmp_path, 50)
    for (X, y), test in folds.training_folds(Namespace(**vars(arguments), zero=-1)):
        assert not X[y == -1].any() and X[y == 1].all()
        assert test[0].all()


def test_scales_of_the_penalty_against_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 4)) * [1, 0.1, 0.5, 0.02] + [1, 2, 0, 0]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ [1, -2, 1, 3] + 0.3 * rng.normal(size=300) > 0, 1, -1)
    deviation = X.std(axis=0)
    for scale, rows, C, intercept in (
        ("summed", X, 1 / 0.01, False),
        ("standardised", X / deviation, 1 / (300 * 0.01), False),
        ("lassoglm", (X - X.mean(axis=0)) / deviation, 1 / (300 * 0.01 / 2), True),
    ):
        weights, info = minimise_lasso(X, y, 0.01, scale)
        model = LogisticRegression(
            C=C, l1_ratio=1.0, solver="saga", tol=1e-9, max_iter=50_000, fit_intercept=intercept
        ).fit(rows, y)
        expected = model.coef_[0] / (1 if scale == "summed" else deviation)
        np.testing.assert_allclose(weights[0], expected, atol=2e-3 * np.abs(expected).max())
        assert info["status"][0] == "ok" and info["gradient_norm"][0] <= 1e-9


def test_what_is_proven_of_each_scale():
    lasso = MECHANISMS[LASSO]
    proven = {
        scale: lasso.guarantee(100, 5, epsilon=1, lam=0.1, penalty_scale=scale).epsilon
        for scale in ("mean", "summed", "standardised", "lassoglm")
    }
    assert proven["mean"] == pytest.approx(100 * math.log(2))
    # Beside the summed loss, lambda weighs n times less than beside the mean, so minimisers may move n
    # times as far.
    assert proven["summed"] == pytest.approx(100 * proven["mean"])
    assert proven["standardised"] == proven["lassoglm"] == math.inf


def test_the_reading_that_explains_most_is_named():
    row = {"concerned": "yes", "holds": "yes"}
    rows = [
        row | {"reading": "as stated", "id": "a"},
        row | {"reading": "first", "id": "a"},
        row | {"reading": "best", "id": "a"},
        row | {"reading": "best", "id": "b"},
        # "first" explains neither line: it does not concern "b", and leaves "c" open
        row | {"reading": "first", "id": "b", "concerned": "no"},
        row | {"reading": "first", "id": "c", "holds": ""},
    ]
    actual = confronted.most_telling_first(rows)
    assert [r["reading"] for r in actual if r["id"] == "a"] == ["best", "first"]


def answer(reading, name, holds, **changes):
    row = dict.fromkeys(confronted.COLUMNS, "") | {"reading": reading, "id": name, "holds": holds}
    return row | {"section": "claims", "concerned": "yes", "counted": "result"} | changes


def test_each_choice_of_a_reading_must_explain_more_than_one_entry():
    stated = [answer("as stated", name, "no") for name in "abcd"]
    one = [answer("x: y", "a", "yes")]
    assert confronted.best_single([*stated, *one]) == ((), 0, 0, 4, 1, 1, ())
    two = [*one, answer("x: y", "b", "yes")]
    assert confronted.best_single([*stated, *two])[:2] == (("x: y",), 2)
    # A combination that explains one more is no better, and one that explains two more is.
    both = [answer("x: y and v: w", name, "yes") for name in "abc"]
    assert confronted.best_single([*stated, *two, *both]).readings == ("x: y",)
    both.append(answer("x: y and v: w", "d", "yes"))
    assert confronted.best_single([*stated, *two, *both])[:4] == (("x: y and v: w",), 4, 0, 4)


def test_the_best_reading_is_that_of_all_numbers_each_counted_once():
    printed = {"section": "published", "published_at": "t/0"}
    rows = [
        answer("as stated", "a", "yes"),
        answer("as stated", "b", "no"),
        answer("as stated", "t/0", "no", **printed),
        answer("as stated", "t/1", "yes", **printed),  # another method, for the same number
        answer("as stated", "t/2", "yes", published_at="t/2", counted="again"),
        # The reading explains two entries, and refutes one that agrees by default.
        answer("x: y", "a", "no"),
        answer("x: y", "b", "yes"),
        answer("x: y", "t/0", "yes", **printed),
        answer("x: y", "t/1", "yes", **printed),
    ]
    assert confronted.best_single(rows) == ((), 1, 1, 3, 1, 3, ())
    rows.append(answer("as stated", "c", "no"))
    rows.append(answer("x: y", "c", "yes"))
    assert confronted.best_single(rows) == (("x: y",), 3, 1, 4, 1, 4, ("",))
    rows[-1]["concerned"] = "no"  # then it counts as it does by default
    assert confronted.best_single(rows).agree == 1
    assert confronted.best_single([]) == ((), 0, 0, 0, 0, 0, ())


def test_readings_whose_scores_one_entry_may_reverse_cannot_be_told_apart():
    def alike(first, second):
        rows = [answer("as stated", name, "no") for name in "abcdef"]
        rows += [answer("x: y", name, "yes") for name in first]
        rows += [answer("x: z", name, "yes") for name in second]
        return confronted.best_single(rows)[::6]

    assert alike("abcde", "abcd") == (("x: y",), ("x: z",))  # scores of 4 and 3
    assert alike("abcde", "abc") == (("x: y",), ())
    assert alike("ab", "cd") == (("x: y",), ("", "x: z"))  # 1, 1 and, of the default one, 0
    assert alike("ab", "c") == (("x: y",), ("",))  # one that explains one number explains nothing
    assert alike("a", "b") == ((), ())


def test_readings_of_other_choices_and_entries_join_the_best_one():
    rows = [answer("as stated", name, "no") for name in "abcdef"]
    rows += [answer("x: y", name, "yes") for name in "abc"]
    rows += [answer("v: w", name, "yes") for name in "de"]
    assert confronted.best_single(rows)[:2] == (("x: y", "v: w"), 5)
    # It concerns an entry of the best one, or is another value of its choice.
    shared = [*rows, answer("v: w", "a", "no")]
    assert confronted.best_single(shared).readings == ("x: y",)
    other = [row | {"reading": row["reading"].replace("v: w", "x: z")} for row in rows]
    assert confronted.best_single(other).readings == ("x: y",)


def test_a_combination_without_a_result_has_that_of_its_parts():
    rows = [answer("as stated", name, "no") for name in "abc"] + [answer("as stated", "d", "yes")]
    rows += [answer("x: y", "d", "no"), answer("v: w", "a", "no")]
    both = [answer("x: y and v: w", name, "yes") for name in "abc"]
    # Both choices cost two entries, and the combination's part x refutes the fourth.
    assert confronted.best_single([*rows, *both]).readings == ()
    assert confronted.best_single([*rows[:4], *rows[5:], *both]).agree == 4
    not_run = answer("x: y and v: w", "d", "")
    assert confronted.best_single([*rows, *both, not_run]).readings == ()
