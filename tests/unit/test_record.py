"""Tests what records show, and what makes them stale."""

from types import SimpleNamespace

import pytest

from checks import by_source
from project import ROOT
from reporting import record, stale
from reporting.recommendations import ACROSS, COLUMNS
from study import facts, paths
from study.configuration.experiment import Experiment
from study.jobs.files import write_csv, write_json


def line(**values):
    made = {"record": "e_2020", "commit": "abc", "date": "2026-11-23"}
    return dict.fromkeys(by_source.COLUMNS, "") | made | values


CLAIM = {"experiment": "e", "section": "claims"}
VALUE = {"experiment": "e", "section": "published", "method": "m", "quantity": "error"}
RECORD = [
    line(**CLAIM, id="a", verdict="reproduced"),
    line(**CLAIM, id="b", verdict="reproduced", because="0.1 < 0.2"),
    line(**CLAIM, id="c", verdict="undecided"),
    line(**VALUE, id="t tables/t/0", dataset="mnist", verdict="reproduced if loss: mean"),
    line(
        **VALUE, id="u tables/t/0", dataset="mnist", verdict="not reproduced by any of 2 readings"
    ),
]
OLD = {"e_2020": ["settings", "code"]}
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
    claim |= {"number": "0.1", "threshold": "0.2", "counted": "result"}
    value = NOW["published"][0] | {"published": "0.9", "ours": "0.8", "reason": "differs"}
    value |= {"prediction_low": "0.7", "prediction_high": "0.85", "read_ours": "0.88"}
    table = list(by_source.rows(source, {"patton": {"claims": [claim], "published": [value]}}))
    stated = [name for section in ("claims", "defects") for name in source.statements(section)]
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
    other = line(record="f_2020", experiment="f", section="claims", id="z", verdict="reproduced")
    monkeypatch.setattr(
        record, "read", lambda table, name=None: [other] if name == "f_2020" else RECORD
    )
    shown = record.beside("e_2020", {"e": NOW}, OLD)
    assert [row["id"] for row in shown["rows"]] == ["b", "c", "t tables/t/0", "u tables/t/0"]
    assert shown["rows"][0]["because"] == "0.1 < 0.2"
    assert all(row["stale"] for row in shown["rows"])
    # A number printed for several methods counts once, for the first.
    says = (
        "Not decided by this run; recorded with mnist at abc on 2026-11-23. Of 3 results: 1 as stated, "
        "1 undecided, 1 under a reading."
    )
    assert shown["sentence"] == (
        f"{says} The record e_2020 is stale, since its settings have changed and the code of its "
        "cells has changed."
    )
    current = record.beside("e_2020", {"e": NOW}, {"f_2020": ["data"]})
    assert current["sentence"] == says and not any(row["stale"] for row in current["rows"])
    done = {"e": {"claims": [{"id": "a", "verdict": "reproduced"}]}}
    assert record.beside("e_2020", done, {}) is None
    # If no experiment of the source ran, all its lines are shown.
    assert [row["id"] for row in record.beside("f_2020", done, {})["rows"]] == ["z"]


def regret(**values):
    common = {"record": "e", "commit": "abc", "date": "2026-11-23", "experiment": "e"}
    common |= {"regime": "nothing tuned", "adjacency": "replace-one", "shared_questions": "4"}
    return dict.fromkeys(ACROSS, "") | common | values


def test_the_method_that_loses_least_is_named_per_experiment_and_regime():
    rows = [
        regret(method="m", shared_regret="0.02", shared_data_sets="11", shared_not_beaten="3"),
        regret(method="n", shared_regret="0.01", shared_data_sets="11", shared_not_beaten="4"),
        regret(method="o", experiment="f"),
    ]
    (said,) = record.answers(rows)
    assert said.startswith("e (nothing tuned, replace-one), recorded at abc on 2026-11-23: n loses")
    assert "1.0 % of the gain (11 data sets), and is not beaten in 4 of 4 comparisons." in said
    rows[1] |= {"shared_regret_low": "0", "shared_regret_high": "0.02"}
    (said,) = record.answers(rows, {"e": ["judge"]})
    assert "1.0 % of the gain (0.0 to 2.0 %, 11 data sets), and is not" in said
    assert said.endswith(f"stale, since {record.WHY['judge']}.")


def test_recommendations_are_those_of_the_results(monkeypatch, tmp_path):
    monkeypatch.setenv(paths.VARIABLE, str(tmp_path))
    best = {"experiment": "e", "method": "m", "standing": "not beaten", "kept": 0.9}
    rows = [best, best | {"method": "n", "standing": "beaten"}, best | {"experiment": "f"}]
    across = [{"experiment": "e", "method": "m", "shared_regret": 0.01}]
    across.append(across[0] | {"experiment": "f"})
    for place, columns, table in (
        (paths.RECOMMENDATIONS(), COLUMNS, rows),
        (paths.ACROSS(), ACROSS, across),
    ):
        write_csv(place, columns, ([row.get(column) for column in columns] for row in table))
    tables = record._tables([SimpleNamespace(name="e", recommends=True, source=None)])
    (recommended,), (regret,) = tables["recommendations"], tables["regret"]
    assert [recommended[key] for key in ("method", "kept")] == ["m", "0.9"]
    assert [regret[key] for key in ("experiment", "shared_regret")] == ["e", "0.01"]
    assert list(recommended) == list(COLUMNS) and list(regret) == list(ACROSS)


def test_readme_says_what_is_recorded_and_the_record_is_small(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = (record.FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(mark in text for mark in record.MARKS)
    assert record.in_document(text) == text
    assert sum(path.stat().st_size for path in record.files()) <= 1_000_000


def test_each_recorded_verdict_belongs_to_an_experiment_of_its_run():
    for name in record.names():
        run = record.run(name)
        for row in record.read("verdicts", name):
            assert row["experiment"] in run["experiments"] and row["verdict"], (name, row["id"])
        assert set(run["digests"]) == set(record.WHY)


@pytest.fixture(scope="module")
def loaded():
    return stale.loaded("config/real.yaml", ["patton"])


def different(loaded, experiment=None, datasets=None, seed=None):
    """The digests of patton's record that differ after a change."""
    config, known, data = loaded
    before = stale.digests(["patton"], *loaded)
    changed = known | ({"patton": Experiment("patton", experiment)} if experiment else {})
    config = config.but(seed=seed) if seed else config
    now = stale.digests(["patton"], config, changed, datasets or data)
    return {key for key in record.WHY if before[key] != now[key]}


def test_digests_tell_settings_from_data(loaded):
    _, experiments, datasets = loaded
    assert different(loaded) == set()
    assert different(loaded, seed=2**20) == {"settings"}
    values = experiments["patton"].settings()
    values["title"] = "other words"
    assert different(loaded, values) == set()
    values["methods"]["functional_gaussian"]["delta"] = 0.1
    assert different(loaded, values) == {"settings"}
    other = datasets | {"wdbc_bounds": datasets["wdbc_bounds"].but(steps=[])}
    assert different(loaded, datasets=other) == {"data"}
    unused = datasets | {"digits": datasets["digits"].but(steps=[])}
    assert different(loaded, datasets=unused) == set()


def test_digests_tell_the_code_of_cells_from_that_of_verdicts(loaded, monkeypatch):
    real = stale.digest

    def edited(*scripts):
        return lambda script, *modules: real(script, *modules) + "+" * (script in scripts)

    for script, changed in (
        ("jobs/run.py", {"code"}),
        ("jobs/prepare.py", {"code"}),
        ("jobs/check.py", {"judge"}),
        ("jobs/recommend.py", set()),  # no recommendation depends on this experiment
    ):
        before = stale.digests(["patton"], *loaded)
        with monkeypatch.context() as patch:
            patch.setattr(stale, "digest", edited(script))
            now = stale.digests(["patton"], *loaded)
        assert {key for key in record.WHY if before[key] != now[key]} == changed, script


def test_what_has_changed_is_said_of_the_whole_record(loaded, monkeypatch, tmp_path):
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    now = stale.digests(["patton"], *loaded)
    run = {"experiments": ["patton"], "configfile": "config/real.yaml", "digests": now}
    write_json(tmp_path / "current/run.json", run)
    write_json(tmp_path / "edited/run.json", run | {"digests": now | {"code": "", "data": None}})
    write_json(tmp_path / "removed/run.json", run | {"experiments": ["none"]})
    write_json(tmp_path / "lost/run.json", run | {"configfile": "config/none.yaml"})
    assert stale.changed.__wrapped__() == {
        "edited": ["data", "code"], "removed": list(record.WHY), "lost": list(record.WHY)
    }  # fmt: skip
