"""Tests what a source's card says first: headline, failures, what is open and unchecked, and the run."""

import re
from types import SimpleNamespace

from reporting import page, paper, readings
from reporting.collect import Gathered
from study import facts
from study.configuration.experiment_keys import Comparison
from study.jobs.files import write_json

READ = {"id": "c-1", "in_short": "as stated", "verdict": "reproduced", "says": "s", "why": ""}


def test_replicated_is_said_only_of_what_holds_without_the_authors_program():
    def said(program, *outcomes):
        source = SimpleNamespace(program=program)
        return paper.terms(source, [READ | {"in_short": outcome} for outcome in outcomes])

    assert "claims are replicated" in said(None, "as stated", "as stated")
    for program, *outcomes in (
        ("a zip file", "as stated"),
        (None, "as stated", "undecided"),
        (None, "under a reading"),
        (None, "not tested"),
        (None,),
    ):
        assert "replicated" not in said(program, *outcomes)
    assert said("a zip file", "as stated") == "The authors' program: a zip file."


def test_settings_without_a_value_are_not_stated():
    stated, unstated = paper.told(
        {"epsilon_table": None, "folds": 5, "real": {"n": [1, 2], "d": None}}
    )
    assert unstated == ["epsilon table"]
    assert stated == [("folds", "5"), ("real", "n: 1, 2; d: not stated")]


def test_a_reading_that_contradicts_the_text_says_so():
    reading = SimpleNamespace(main="mean", others={"summed": {}, "0p5": {}}, open="why")
    left = paper.choice("scale_of", reading, {})
    assert left == {"name": "scale of", "open": "why", "main": "mean", "stated": [], "against": []}
    told = paper.choice("scale_of", reading, {"summed": "equation 7"})
    assert told["stated"] == [("summed", "equation 7")] and told["against"] == ["mean", "0.5"]
    assert (
        paper.choice("x", reading, dict.fromkeys(("mean", "summed", "0p5"), "s"))["against"] == []
    )
    said = readings._against("scale of: 0.5 and rows: file", {"scale_of": {"summed": "equation 7"}})
    assert said == " (against the text in scale of)"
    assert not readings._against("scale of: summed", {"scale_of": {"summed": "equation 7"}})


def test_readings_that_one_number_may_put_in_the_best_ones_place_are_named():
    rows = [
        {"reading": reading, "id": name, "section": "claims", "holds": holds, "concerned": "yes"}
        | dict.fromkeys(("counted", "published_at", "distance", "ours"), "")
        for reading, holding in {"as stated": "", "x: y": "abc", "x: z": "ab"}.items()
        for name in "abc"
        for holds in ["yes" if name in holding else "no"]
    ]
    said = readings.best(rows, {"x": {"z": "section 2"}})
    assert said.startswith(
        "The best single reading is x: y (against the text in x): 3 of 3 numbers"
    )
    assert "default). x: z cannot be told apart from it" in said


def printed(at, verdict, reason="", quantity="error", **further):
    row = {"comparison": "t", "published_at": f"tables/t/{at}", "quantity": quantity, "method": "m"}
    return row | {"published": "0.5", "ours": "0.1", "verdict": verdict, "reason": reason} | further


def test_what_failed_and_what_is_not_checked_with_reasons():
    spec = Comparison(title="Table", values="tables/t", rows=[{"value": "0", "method": "m"}])
    source = SimpleNamespace(look_up=lambda path: {"columns": ["first", "second"]})
    numbers = [
        (spec, {}, row)
        for row in (
            printed("real/1", "not reproduced by any of 2 readings", "off"),
            printed("real/0", "reproduced"),
            printed("a/0", "not run", cause="this run has no train size", cause_value="470"),
            printed("b/0", "not run", cause="this run has no train size", cause_value="940"),
            printed("c/0", "not tested", "differs by 1", cause="no epsilon is stated"),
            printed("d/0", "undecided", "near an end"),
        )
    ]
    (failed,) = paper._failed_numbers(source, numbers)
    assert failed["text"] == "Table, real, second: printed 0.5, ours 0.1"
    rows = [
        READ,
        READ | {"id": "c-2", "in_short": "not reproduced", "why": "w"},
        READ | {"id": "d-1", "in_short": "not shown"},
        READ | {"id": "c-3", "in_short": "not tested", "verdict": "not tested", "why": "no data"},
    ]
    rows += [
        READ | {"id": name, "in_short": "shown", "verdict": "shown"} for name in ("d-2", "d-3")
    ]
    defects = [
        SimpleNamespace(id="d-2", numbers=["tables/t/a/0"]),
        SimpleNamespace(id="d-3", numbers=None),
    ]
    source.defects = defects
    failed = [row["id"] for row in paper._failed_statements(source, rows)]
    assert failed == ["c-2", "d-1", "d-2"]
    assert [(row["id"], row["text"], row["why"]) for row in paper.unchecked(rows, numbers)] == [
        ("c-3", "s", "no data"),
        ("", "2 printed numbers", "this run has no train size: 470, 940"),
        ("", "1 printed number", "no epsilon is stated"),
    ]


def test_a_card_is_the_page_of_a_paper(decided):
    decided.smaller = []
    write_json(
        Gathered(decided, {}).folder / "provenance.json",
        {"written": "2026-11-28T15:15:14+00:00", "commit": "de06cb864169bcc1"},
    )
    text = page.render([Gathered(decided, {})], 1, {"configuration": "", "experiments": {}})
    card = re.search(r'<article class="card" id="source-chaudhuri.*?</article>', text, re.S)[0]
    source = facts.read(decided.source)
    claim = source.statements("claims")[source.headline_claims[0]]
    parts = [
        f'href="{source.link}"',
        f"It says: {claim.says} (section 6)",
        "new method, unseparable: it prints 0.1903 ± 0.1105, ours is ",
        "<h4>What failed</h4>",
        'href="#cm08-15"',  # arithmetic, which fails whatever the run
        f"In the source, this figure shows: {source.figures['2c']}.",
        "It does not state: epsilon table.",
        "We assume: 0.1, as in the learning curves.",
        "<dt>dimension</dt><dd>10</dd>",
        "What is not checked, and why",
        "--cores all -- cm08</code> on 2026-11-28 at commit de06cb864169, in ",
    ]
    places = [card.find(part) for part in parts]
    assert -1 not in places, parts[places.index(-1)]
    assert places == sorted(places)
