"""Tests sources' cards: how many values and claims hold, and the methods' privacy."""

import math
import re
from types import SimpleNamespace

import pandas as pd

from dp_privacy.accounting import Guarantee, after_preparation
from reporting import dots, ledger, readings, shape, sources
from study import facts, paths
from study.configuration.experiment import Experiment
from study.configuration.experiment_keys import Method
from study.configuration.sources import experiment_files
from study.configuration.validation import read_yaml
from study.jobs.files import write_csv


def test_a_bar_has_every_row_once():
    verdicts = [
        *("reproduced", "reproduced", "reproduced if rows: file", "calibrated", "not run"),
        *("not reproduced by any of 3 readings", "not tested", "not decided yet"),
        *("too wide to decide", "undecided", "not excluded"),
    ]
    actual = sources._bar([{"verdict": verdict} for verdict in verdicts])
    assert {name: count for name, count, *_ in actual} == {
        **{"as stated": 2, "under a reading": 1, "not reproduced": 1, "calibrated": 1},
        **{"too wide to decide": 1, "undecided": 1, "not excluded": 1},
        **{"not tested": 1, "not run": 2},
    }
    assert abs(sum(width for *_, width, _ in actual) - 100) < 0.1


def test_a_printed_number_counts_once_and_apart_from_its_standard_deviation():
    def value(name, at, verdict, quantity="error"):
        fields = {"id": name, "comparison": "t", "published_at": at, "verdict": verdict}
        return fields | {"quantity": quantity}

    rows = [
        value("t/0", "tables/t/0", "not run"),
        value("t/0/sd", "tables/t/0", "reproduced", "error, standard deviation over folds"),
        value("t/1", "tables/t/0", "reproduced"),  # the same number for another method
        value("t/2", "tables/lambda", "reproduced", "setting"),
        value("t/3", "tables/lambda", "not run", "setting"),
        value("u/0", "tables/text", "reproduced") | {"counted": "again"},
        {"id": "c-1", "verdict": "reproduced"},
    ]
    results = [(readings.kind_of(row), row["verdict"]) for row in readings.once(rows)]
    assert results == [
        ("means", "not run"),
        ("standard deviations", "reproduced"),
        ("settings", "reproduced"),
        ("claims", "reproduced"),
    ]


def test_what_holds_at_once_under_a_reading():
    def row(reading, name, holds, concerned="yes", section="published"):
        at = {"published_at": f"tables/{name}", "quantity": "error"} if "/" in name else {}
        fields = {"section": section, "reading": reading, "id": name, "holds": holds}
        return {"published_at": "", "quantity": ""} | fields | at | {"concerned": concerned}

    rows = [
        *(row("as stated", "t/0", "yes"), row("as stated", "t/1", "no")),
        row("as stated", "c", "no", section="claims"),
        # each number holds under some reading, but no reading makes both hold
        *(row("x: y", "t/0", "no"), row("x: y", "t/1", "yes")),
        row("x: y", "c", "yes", section="claims"),
        # A number that the reading does not concern counts as under "as stated". An undecided one
        # does not count.
        *(row("x: z", "t/0", "no", "no"), row("x: z", "t/1", "")),
    ]
    results = {
        name: (cells["means"], cells["claims"], cells["settings"])
        for name, cells in readings.joint(rows, {})
    }
    assert results == {
        "as stated": ("1 of 2", "0 of 1", "0 of 0"),
        "x: y": ("1 of 2", "1 of 1", "0 of 0"),
        "x: z": ("1 of 1", "0 of 1", "0 of 0"),
    }


def part(*cells, printed=()):
    """The report's facts about an experiment from rows (method, claimed, proven).

    printed: the methods with printed numbers; () for all.
    """
    methods = {
        name: Method(mechanism=name, title=f"The {name}", private=name != "plain")
        for name, *_ in cells
    }
    frame = pd.DataFrame(cells, columns=["method", "epsilon_claimed", "epsilon_proven"])
    rows = [{"value": "0.1", "method": name} for name in printed or methods]
    published = {"table": {"title": "Table", "values": "tables/table", "rows": rows}}
    experiment = Experiment("e", {"methods": methods, "published": published})
    return SimpleNamespace(frame=frame, experiment=experiment)


def test_privacy_says_the_worst_of_every_private_method():
    inf = math.inf
    first = part(("plain", inf, inf), ("sound", 1.0, 1.0), ("sound", 0.1, 0.05))
    second = part(("void", 1.0, inf), ("void", 2.0, 2.0), ("more", 1.0, 2.0), ("more", 0.1, 0.3))
    assert sources.privacy([first, second]) == [
        "Proven as claimed: The sound.",
        "Less private than claimed: The void (claimed 1, without a finite epsilon); The more (claimed 0.1, "
        "proven 0.3).",
    ]
    assert sources.privacy([part(("plain", inf, inf))]) == []


def test_a_source_answers_for_its_own_methods_alone():
    actual = part(("its", 1.0, 2.0), ("ours", 1.0, math.inf), printed=["its"])
    assert sources.privacy([actual]) == [
        "Less private than claimed: The its (claimed 1, proven 2)."
    ]


def test_rows_that_were_prepared_by_themselves_count_against_the_preparation():
    sound = Guarantee(1.0, 1.0, 0.0, "replace-one", "noise")
    actual = part(("sound", 1.0, math.inf), ("sound", 1.0, 1.0), ("spoilt", 1.0, math.inf))
    reason = after_preparation(sound, ["standardise"]).reason
    actual.frame["reason"] = [reason, sound.reason, reason]
    held, said = sources.privacy([actual])
    assert held == "Proven as claimed: The sound."
    assert said == (
        "No method has a finite epsilon on rows whose preparation looked at them: standardise."
    )
    assert "spoilt" not in held + said


def test_another_lambda_than_the_published_one_says_nothing_about_the_source():
    actual = part(("sound", 0.1, 0.1), ("sound", 0.1, 0.3))
    actual.frame["lambda"] = [0.01, 0.0001]
    (text,) = sources.privacy([actual])
    assert "Less private" in text and "proven 0.3" in text
    actual.experiment.lambda_published = 0.01
    assert sources.privacy([actual]) == ["Proven as claimed: The sound."]


def test_what_nobody_has_proven_here_is_claimed_and_not_proven():
    assert sources.privacy([part(("own", 1.0, math.nan), ("sound", 1.0, 1.0))]) == [
        "Proven as claimed: The sound.",
        "Claimed, not proven: The own.",
    ]


def test_a_card_says_which_data_and_what_stands_in():
    def gathered(*datasets):
        experiment = SimpleNamespace(datasets=datasets)
        entries = [{"kind": "simulated", "title": name} for name in datasets]
        stand_ins = {"digits": "digits stand in"}
        return SimpleNamespace(experiment=experiment, stand_ins=stand_ins, data=lambda: entries)

    text = sources.data([gathered("mnist"), gathered("digits")])
    assert text == "Data simulated: mnist; digits. Digits stand in."
    text = sources.data([gathered("mnist", "digits"), gathered()])
    assert text == "Data simulated: mnist; digits."


def test_a_printed_number_stands_above_ours_with_all_that_is_known():
    row = {"method": "m", "quantity": "error", "published": "0.2962", "ours": "0.0654"}
    row |= {"verdict": "reproduced if epsilon: 0.02", "reason": "differs by 0.231"}
    row |= {"prediction_low": "0.06", "prediction_high": "0.07"}
    row |= {"read_ours": "0.291", "read_low": "0.28", "read_high": "0.3"}
    spread = row | {"quantity": "error, standard deviation over folds", "published": "0.0617"}
    spread |= {"ours": "0.0035", "verdict": "not reproduced by any of 7 readings", "read_ours": ""}
    other = row | {"method": "n", "ours": "0.3", "verdict": "reproduced", "read_ours": ""}
    actual = sources.cell([row, spread, other], {"m": "the method"})
    # The verdict is about the reading's number. Ours by default, which fails, stands in brackets.
    assert (actual["printed"], actual["ours"]) == ("0.2962 ± 0.0617", "0.291")
    assert actual["default"] == "0.0654 ± 0.0035"
    assert actual["outcome"] == "under a reading"  # the first method's
    for said in (
        "the method): 0.291; a run of the source's size gives 0.28 to 0.3, and by default 0.0654",
        "0.06 to 0.07; reproduced if epsilon: 0.02",
        "(n): 0.3",
    ):
        assert said in actual["says"]
    assert sources.cell([row], {}, scale=100)["printed"] == "29.62"
    assert sources.cell([row], {}, scale=100)["ours"] == "29.1"
    implied = {"implied_epsilon": "0.02", "implied": "about 0.02 (0.019 to 0.021)"}
    untested = other | implied | {"verdict": "not tested"}
    assert sources.cell([untested], {})["implied"] == implied["implied"]
    assert sources.cell([other | implied], {})["implied"] == ""  # it agrees
    agrees = sources.cell([other], {})
    assert (agrees["ours"], agrees["default"], agrees["outcome"]) == ("0.3", "", "as stated")
    nothing = sources.cell([other | {"ours": "", "verdict": "not run"}], {})
    assert (nothing["ours"], nothing["outcome"]) == ("", "not run")


def test_each_outcome_has_its_own_mark():
    assert sources.outcome("not judged") == "not run"
    marks = [mark for mark, *_ in sources.OUTCOMES.values()]
    assert len(set(marks)) == len(marks)
    assert dots.brief("5923") == "5,923"


def test_every_source_is_cited_and_names_a_figure_that_exists():
    experiments = experiment_files()
    for key in facts.files():
        source = facts.read(key)
        for document in source.cited.split("; "):  # with its kind or venue
            assert re.fullmatch(r".+ (\d{4}|undated), [^()]+ \(.+\)", document), document
        experiment, _, figure = (source.headline or "").partition("/")
        assert not experiment or figure in read_yaml(experiments[experiment])["figures"], key


def attack(verdict, audited, arguments):
    numbers = {"epsilon": "1", "epsilon_claimed": "1", "epsilon_proven": "1"}
    numbers |= {"epsilon_audited": str(audited), "epsilon_pair": ""}
    words = {"mechanism": "private_selection", "verdict": verdict, "attack": "some"}
    words |= dict.fromkeys(("replay", "reason", "pair_reason", "adjacency"), "some")
    return words | numbers | {"arguments": arguments}


def test_a_refuted_variant_is_named_by_its_options():
    good = attack("consistent with the claim", 0, '{"lam": 0.1, "runs": 30}')
    bad = attack("refutes the claim", 2, '{"lam": 0.1, "runs": 3, "score": "exact"}')
    other = attack("refutes the claim", 3, '{"lam": 0.1, "law": "poisson", "score": "exact"}')
    assert ledger.entry([good, bad, other])["name"].endswith("(only with score: exact)")
    assert ledger.variant([bad, other]) == ""
    assert "only with" not in ledger.entry([bad, other])["name"]
    kept = good | {"arguments": bad["arguments"]}  # the same options keep a smaller claim
    assert ledger.variant([bad, kept, good, good]) == "runs: 3, score: exact"
    assert ledger.variant([bad, kept, good]) == ""


def test_readings_without_a_file_are_not_shown(project):
    experiment = Experiment("e", {"published": {}})
    assert readings.shown(experiment) is None
    columns = ("section", "reading", "id", "concerned", "holds", "counted", "published_at")
    row = dict.fromkeys((*columns, "distance", "ours"), "")
    row |= {"section": "claims", "reading": "as_stated", "id": "c", "concerned": "yes"}
    write_csv(paths.READINGS(experiment="e"), list(row), [list((row | {"holds": "yes"}).values())])
    left_open = {"open": "which first?", "main": "as_drawn", "others": {"sorted": {}}}
    experiment.readings = {"row_order": left_open}
    actual = readings.shown(experiment)
    ((reading, cells),) = actual["joint"]
    assert reading == "as stated" and cells["claims"] == "1 of 1"


def test_tables_are_written_in_the_papers_shape():
    def value(where, method, stated, ours, verdict, quantity="error", dataset="a"):
        key = {"experiment": "veldhuizen", "section": "published", "dataset": dataset}
        numbers = {"stated": stated, "ours": ours, "verdict": verdict, "quantity": quantity}
        return key | {"where": f"tables/{where}", "method": method, "read_ours": ""} | numbers

    spread = "error, standard deviation over folds"
    rows = [
        value("table_2/separable/0", "plain", "0", "0.001", "reproduced"),
        value("table_2/separable/2", "m", "0.031", "", "not run"),
        value("table_2/inseparable/2", "m", "0.051", "0.09", "not reproduced by any of 2 readings"),
        value("table_2/inseparable/2", "m", "0.01", "0.02", "reproduced", spread),
        value("table_2/inseparable/2", "other", "0.051", "0.05", "reproduced"),
        value("text/percent", "m", "0.14", "0.2", "reproduced if rows: file")
        | {"read_ours": "0.15"},
        # A recorded run has what this one lacks.
        value("table_2/separable/2", "m", "0.031", "0.032", "reproduced", dataset="b"),
    ]
    (name, columns, lines), (text, *_) = shape.tables("veldhuizen_2020", rows)
    assert (name, text) == ("tables/table_2", "tables/text")
    # The columns have the paper's names; cells without a printed number stay empty.
    assert columns == ["logistic_regression", "algorithm_2"]
    assert lines == [
        ("separable", ["0 / 0.001 \N{CHECK MARK}", "0.031 / 0.032 \N{CHECK MARK}"]),
        (
            "inseparable",
            ["", "0.051 \N{PLUS-MINUS SIGN} 0.01 / 0.09 \N{PLUS-MINUS SIGN} 0.02 \N{BALLOT X}"],
        ),
    ]
    document = shape.document("veldhuizen_2020", rows)
    assert (
        document.startswith("# Veldhuizen 2020")
        and "|  | logistic regression | algorithm 2 |" in document
    )
    assert "|  | 0.14 / 0.15 \N{CHECK MARK}* |" in document
    assert "None of its numbers is compared." in shape.document("veldhuizen_2020", [])
