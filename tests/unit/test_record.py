"""Tests what the record shows, and what makes its lines stale."""

import copy

import pytest

from checks import by_source
from checks.by_source import STAMPS
from checks.stamps import Stamper
from project import ROOT
from reporting import record, stale
from reporting.recommendations import ACROSS, COLUMNS
from study import facts, paths
from study.configuration.experiment import Experiment
from study.jobs.files import write_csv


def line(**values):
    made = {"commit": "abc", "date": "2026-11-23"} | dict.fromkeys(STAMPS, "same")
    return dict.fromkeys(record.COLUMNS, "") | made | values


CLAIM = {"experiment": "e", "section": "claims"}
VALUE = {"experiment": "e", "section": "published", "method": "m", "quantity": "error"}
RECORD = [
    line(**CLAIM, id="a", verdict="reproduced"),
    line(**CLAIM, id="b", verdict="reproduced"),
    line(**CLAIM, id="c", verdict="undecided"),
    line(
        **VALUE, id="t tables/t/0", dataset="mnist", verdict="reproduced if loss: mean", code="old"
    ),
    line(
        **VALUE, id="u tables/t/0", dataset="mnist", verdict="not reproduced by any of 2 readings"
    ),
]
NUMBER = {"method": "m", "quantity": "error", "train_size": "", "epsilon": "", "dataset": "mnist"}
NOW = {
    "claims": [
        {"id": "a", "verdict": "not reproduced by any of 3 readings"},
        {"id": "b", "verdict": "not tested"},
        {"id": "c", "verdict": "not tested"},
    ],
    "published": [
        {"comparison": "t", "published_at": "tables/t/0", "verdict": "not run", **NUMBER},
        {"comparison": "u", "published_at": "tables/t/0", "verdict": "not tested", **NUMBER},
    ],
}


def test_the_table_by_source_has_all_that_it_says_in_its_order(monkeypatch):
    monkeypatch.chdir(ROOT)
    source = facts.read("patton_linear")
    claim = {"id": "p-2", "verdict": "reproduced", "decided_by": "0.1 < 0.2"}
    claim |= {"number": "0.1", "threshold": "0.2"}
    value = NOW["published"][0] | {"published": "0.9", "ours": "0.8", "reason": "differs"}
    value |= {"prediction_low": "0.7", "prediction_high": "0.85", "read_ours": "0.88"}
    table = list(by_source.rows(source, {"patton": {"claims": [claim], "published": [value]}}))
    stated = [entry["id"] for section in ("claims", "defects") for entry in source.values[section]]
    assert [row["id"] for row in table] == [*stated, "t tables/t/0"]
    results = {row["id"]: row for row in table}
    assert [results["p-2"][key] for key in ("experiment", "ours", "stated", "because")] == [
        *("patton", "0.1", "0.2", "0.1 < 0.2")
    ]
    assert results["p-1"]["verdict"] == "not tested" and results["p-1"]["says"]
    assert [results["t tables/t/0"][key] for key in by_source.NUMBERS] == [
        *("0.9", "0.8", "0.7", "0.85", "0.88", "not run")
    ]


def test_only_what_a_run_does_not_decide_is_shown_from_the_record(monkeypatch):
    other = line(experiment="f", section="claims", id="z", verdict="reproduced")
    monkeypatch.setattr(record, "read", lambda name=None: [other] if name == "f_2020" else RECORD)
    shown = record.beside("e_2020", {"e": NOW}, ["old"])
    assert [row["id"] for row in shown["rows"]] == ["b", "c", "t tables/t/0", "u tables/t/0"]
    assert [row["stale"] for row in shown["rows"]] == ["", "", record.WHY["code"], ""]
    # A number printed for several methods counts once, for the first.
    assert shown["sentence"] == (
        "Not decided by this run; recorded with mnist at abc on 2026-11-23. Of 3 values, claims "
        "and defects: 1 as stated, 1 undecided, 1 under a reading. 1 lines are stale, since the code of "
        "its cells has changed."
    )
    done = {"e": {"claims": [{"id": "a", "verdict": "reproduced"}]}}
    assert record.beside("e_2020", done, []) is None
    # If no experiment of the source ran, all its lines are shown.
    assert [row["id"] for row in record.beside("f_2020", done, [])["rows"]] == ["z"]


def test_the_method_that_loses_least_is_named_per_experiment_and_regime():
    common = {"section": "regret", "quantity": "share of the gain lost, 11 data sets"}
    rows = [
        line(experiment="e", id="x", method="m", ours="0.02", low="0.01", high="0.03", **common)
        | {"verdict": "not beaten in 3 of 4"},
        line(experiment="e", id="x", method="n", ours="0.01", low="", high="", **common)
        | {"verdict": "not beaten in 4 of 4", "judge": "old"},
        line(experiment="f", id="x", method="m", ours="", **common),
    ]
    (said,) = record.answers(rows, ["old"])
    assert "n loses least, 1.0 % of the gain (11 data sets), and is not beaten in 4 of 4" in said
    rows[1] |= {"low": "0", "high": "0.02"}
    (said,) = record.answers(rows)
    assert "1.0 % of the gain (0.0 to 2.0 %, 11 data sets), and is not" in said
    (said,) = record.answers(rows, ["old"])
    assert "not beaten in 4 of 4" in said and record.WHY["judge"] in said


def test_recommendations_are_those_of_the_results(monkeypatch, tmp_path):
    monkeypatch.setenv(paths.VARIABLE, str(tmp_path))
    at = {"regime": "nothing tuned", "adjacency": "replace-one", "experiment": "e", "dataset": "d"}
    rows = [
        at
        | {"method": "m", "standing": "not beaten", "kept": 0.9, "kept_low": 0.8, "kept_high": 1},
        at | {"method": "n", "standing": "beaten", "kept": 0.5, "kept_low": 0.4, "kept_high": 0.6},
    ]
    across = at | {"method": "m", "shared_data_sets": 11, "shared_questions": 4}
    across |= {"shared_not_beaten": 3, "shared_regret": 0.01, "shared_regret_low": 0}
    for place, columns, table in (
        (paths.RECOMMENDATIONS(), COLUMNS, rows),
        (paths.ACROSS(), ACROSS, [across, across | {"experiment": "f"}]),
    ):
        write_csv(place, columns, ([row.get(column) for column in columns] for row in table))
    best, regret = record._recommended("e")
    assert [best[key] for key in ("method", "ours", "low", "high", "verdict")] == [
        *("m", "0.9", "0.8", "1", "not beaten")
    ]
    assert [regret[key] for key in ("method", "ours", "low", "verdict")] == [
        *("m", "0.01", "0", "not beaten in 3 of 4")
    ]


def test_readme_says_what_is_recorded_and_the_record_is_small(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(mark in text for mark in record.MARKS)
    assert record.in_document(text) == text
    assert sum(path.stat().st_size for path in record.files()) <= 1_000_000


@pytest.fixture(scope="module")
def loaded():
    return stale.loaded("config/real.yaml")


ROWS = [
    line(experiment="patton", section="claims", id="p-1"),
    line(
        experiment="patton",
        section="published",
        id="table_1a tables/table_1a",
        dataset="wdbc_bounds",
        method="functional_laplace",
    ),
]


def stamps(loaded, experiments=None, datasets=None, files=None):
    config, known, data = loaded
    files = files or config["files"]
    stamper = Stamper(experiments or known, "patton", datasets or data, files, config["seed"])
    return [stamper.stamps(row) for row in ROWS]


def differs(before, after):
    return [
        {key for key in STAMPS if one[key] != two[key]}
        for one, two in zip(before, after, strict=True)
    ]


def test_stamps_tell_settings_from_data(loaded):
    before = stamps(loaded)
    assert all(all(digests.values()) for digests in before)
    assert stamps(loaded) == before
    _, experiments, datasets = loaded
    values = copy.deepcopy(experiments["patton"].values)
    values["folds"] += 1
    changed = experiments | {"patton": Experiment("patton", values)}
    assert differs(before, stamps(loaded, experiments=changed)) == [{"settings"}] * 2
    values = copy.deepcopy(experiments["patton"].values)
    values["methods"]["functional_gaussian"]["delta"] = 0.1
    changed = experiments | {"patton": Experiment("patton", values)}
    assert differs(before, stamps(loaded, experiments=changed))[1] == set()
    other = datasets | {"wdbc_bounds": datasets["wdbc_bounds"] | {"steps": []}}
    assert differs(before, stamps(loaded, datasets=other)) == [{"data"}] * 2
