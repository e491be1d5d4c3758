"""At its end, a run says what it has found, in at most three sentences."""

import pytest

from checks import verdicts
from reporting import findings
from study import paths
from study.configuration.experiment import Experiment
from study.jobs.files import write_csv


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(paths.VARIABLE, raising=False)


def experiment(name, **values):
    return Experiment(name, {"published": {}, "claims": {}, "defects": {}} | values)


def test_verdicts_are_counted_over_the_experiments_of_full_size():
    words = [verdicts.REPRODUCED, f"{verdicts.REPRODUCED} if x", verdicts.REPRODUCED]
    for name in ("a", "b"):
        published = paths.VERDICTS(experiment=name, section="published")
        rows = [(f"t/{k}", "error", word, "result") for k, word in enumerate(words)]
        # What is said twice counts once, and a setting is no result.
        rows += [("t/9", "error", words[0], "again"), ("t/8", "setting", words[0], "other")]
        write_csv(published, ("published_at", "quantity", "verdict", "counted"), rows)
    claims = paths.VERDICTS(experiment="a", section="claims")
    write_csv(claims, ("id", "verdict", "counted"), [("y", verdicts.UNDECIDED, "result")])
    published = {"x": {"title": "x", "values": "tables/x", "rows": [{"value": "v"}]}}
    asked = [
        experiment("a", published=published, claims={"y": {"not_tested": "because"}}),
        experiment("b", published=published, smaller=["z"]),
    ]
    expected = "Of 4 results: 2 as stated, 1 under a reading, 1 undecided; of 1 other numbers: 1 as stated."
    assert findings.findings(asked, set()) == [expected]
    assert findings.findings(asked[1:], set()) == []


def test_the_ledger_names_how_many_claims_attacks_refute():
    rows = [
        ("m", "exceeds: a"),
        ("m", "consistent"),
        ("n", "refutes the claim"),
        ("o", "consistent"),
    ]
    write_csv(paths.LEDGER(), ("mechanism", "verdict"), rows)
    assert findings.findings([], {paths.LEDGER()}) == [
        "Attacks refute the claimed epsilon of 2 of 3 mechanisms."
    ]
    assert findings.findings([], {paths.TABLE(experiment="a", name="b")}) == []


def test_there_are_three_sentences_at_most_and_recommendations_are_first(monkeypatch):
    leads = [
        {"task": f"To learn {what}", "method": "the best", "text": "It loses 1\u00a0%."}
        for what in ("two classes", "a number")
    ]
    monkeypatch.setattr("reporting.answers.answers", lambda smaller: {"leads": leads})
    write_csv(paths.LEDGER(), ("mechanism", "verdict"), [("m", "consistent")])
    write_csv(
        paths.VERDICTS(experiment="a", section="claims"),
        ("id", "verdict", "counted"),
        [("x", verdicts.UNDECIDED, "result")],
    )
    assert findings.findings(
        [experiment("a", claims={"x": {"not_tested": "because"}})], {paths.REPORT()}
    ) == [
        "To learn two classes: the best. It loses 1 %.",
        "To learn a number: the best. It loses 1 %.",
        "Of 1 results: 1 undecided.",
    ]
