"""Tests the program that prints a source's verdicts."""

import os
import subprocess
import sys

import verdicts

from checks import by_source
from project import ROOT
from reporting import record
from study import paths
from study.jobs.files import write_csv

KEY = "chaudhuri_monteleoni_2008"


def row(section, name, verdict, **changes):
    values = dict.fromkeys(by_source.COLUMNS, "") | {"section": section, "id": name}
    return values | {"experiment": "cm08", "verdict": verdict} | changes


def test_a_source_has_three_names():
    assert {verdicts.key_of(name) for name in (KEY, "CM08", "cm08", "cm08_regularisation")} == {KEY}


def test_a_reader_that_closes_its_pipe_gets_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "scripts/tools/verdicts.py", "e18"]
    done = subprocess.run(command, cwd=ROOT, stdout=writer, stderr=-1, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_run_is_shown_and_a_record_where_it_leaves_a_line_open(tmp_path, monkeypatch):
    monkeypatch.setenv(paths.VARIABLE, str(tmp_path))
    number = {"comparison": "t", "dataset": "", "train_size": "", "epsilon": "", "read_ours": ""}
    number |= {"method": "m", "quantity": "error", "prediction_low": "", "prediction_high": ""}
    number |= {"published": "", "ours": "", "reason": "", "counted": "result"}
    files = {  # what a run of one experiment leaves, without the table of all its source's experiments
        "claims": [
            {"id": "cm08-1", "verdict": "reproduced", "decided_by": "1 < 2", "counted": "result"},
            {"id": "cm08-2", "verdict": "not tested", "decided_by": "", "counted": "result"},
        ],
        "published": [
            number | {"published_at": "tables/t/1", "verdict": "not run"},
            number
            | {"published_at": "tables/t/2", "verdict": "reproduced if rows: file"}
            | {"published": "0.25", "ours": "0.3", "read_ours": "0.2504"},
        ],
    }
    for section, rows in files.items():
        path = paths.VERDICTS(experiment="cm08", section=section)
        write_csv(path, [*rows[0]], (each.values() for each in rows))
    old = [
        row("claims", "cm08-1", "not reproduced by any of 2 readings"),
        row("claims", "cm08-2", "reproduced"),
        row("claims", "c-3", "reproduced"),
    ]
    dated = [each | {"date": "2026-01-02"} for each in old]
    monkeypatch.setattr(record, "read", lambda table, name: dated)
    own, further = verdicts.decided(KEY)
    assert [each["id"] for each in further] == ["c-3"]  # not counted: this run does not have it
    rows = [*own, *further]
    known = {each["id"]: (each["verdict"], each["date"]) for each in rows}
    assert known["cm08-1"] == ("reproduced", "") and known["c-3"] == ("reproduced", "2026-01-02")
    assert known["cm08-2"] == ("reproduced", "2026-01-02")
    assert known["t tables/t/1"] == ("not run", "")
    assert known["cm08-3"] == ("not tested", "")  # nothing decides it here
    said = list(verdicts.statements([each for each in rows if each["section"] == "claims"], 300))
    assert said[0] == "cm08-1: reproduced" and said[1].endswith("(section 6)")
    assert said[2] == "    because 1 < 2" and "cm08-2: reproduced, recorded 2026-01-02" in said
    lines = list(verdicts.numbers([each for each in rows if each["section"] == "published"]))
    assert lines[0].split() == ["where", "method", "printed", "ours", "verdict"]
    assert lines[2].split(maxsplit=4) == ["t/2", "m", "0.25", "0.25", "reproduced if rows: file"]


def test_a_number_says_its_residual_and_what_a_certain_verdict_would_cost(tmp_path, monkeypatch):
    monkeypatch.setenv(paths.VARIABLE, str(tmp_path))
    cell = {"dataset": "d", "method": "m", "train_size": "100", "epsilon": "0.1"}
    at = cell | {"quantity": "error", "where": "tables/t/1", "stated": "0.25", "ours": "0.3"}
    timed = [*cell.values(), "7.2"]
    write_csv(paths.TIMING(experiment="cm08"), (*cell, "cpu_seconds"), [timed])
    rows = [
        row("published", "t 1", "undecided", **at, power="0.55", replicates="5", more="1000"),
        row("published", "t 2", "too wide to decide", **at, power="0", replicates="5", more="inf"),
        row("published", "t 3", "reproduced", **at, power="0.9", replicates="5", more="0"),
        row("published", "t 4", "calibrated", **at),
    ]
    for each in rows:
        each["date"] = ""
    said = [line.split(maxsplit=4)[4] for line in verdicts.numbers(rows)][1:]
    assert said == [
        # 7.2 seconds for five replicates
        "undecided; power 55 %, needs about 1,000 more replicates, 0.4 hours",
        "too wide to decide; power 0 %, whatever the number of replicates",
        "reproduced",
        "calibrated, residual +0.05",
    ]


def test_results_and_other_numbers_have_denominators_of_their_own():
    rows = [
        row("claims", "c-1", "reproduced", counted="result"),
        row("claims", "c-2", "not tested", counted="other"),
        row("claims", "c-3", "reproduced", counted="again"),
        row("defects", "d-1", "shown", counted="result"),
        row("published", "t 1", "undecided", quantity="error", counted="result"),
        row("published", "t 2", "reproduced", quantity="setting", counted="other"),
    ]
    assert record.counts(record.once(rows)) == (
        "Of 2 results: 1 as stated, 1 undecided; of 2 other numbers: 1 not tested, 1 as stated; of 1 "
        "defects: 1 shown."
    )


def test_no_number_fails_by_the_rules_of_an_older_record(monkeypatch):
    own = [row("claims", "c-1", "not tested"), row("claims", "c-2", "not tested")]
    fails = row("claims", "c-1", "not reproduced by any of 2 readings", date="2026-01-02")
    older = {key: value for key, value in fails.items() if key != "counted"} | {"id": "c-2"}
    monkeypatch.setattr(record, "read", lambda table, name: [fails, older])
    shown = {each["id"]: each["verdict"] for each in record.instead(KEY, own)[0]}
    assert shown == {"c-1": fails["verdict"], "c-2": "not tested"}


def test_without_the_environment_a_tool_says_how_to_activate_it():
    program = [
        sys.executable,
        "-S",
        "scripts/tools/verdicts.py",
        "cm08",
    ]  # -S: without its libraries
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("error: this Python lacks")
    assert "activate" in done.stderr and len(done.stderr.splitlines()) == 1
