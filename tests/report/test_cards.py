"""Cards of sources: how many printed values and claims hold, and how private their methods are."""

import math
from types import SimpleNamespace

import pandas as pd

from dp.accounting import Guarantee, after_preparation
from reporting import ledger, readings, sources


def test_outcomes_count_every_row_once():
    verdicts = [
        *("reproduced", "reproduced", "reproduced if rows: file", "calibrated", "not run"),
        *("not reproduced by any of 3 readings", "not tested", "not decided yet"),
        *("too wide to decide", "undecided", "not excluded"),
    ]
    found = sources._outcomes([{"verdict": verdict} for verdict in verdicts])
    assert found == {
        **{"as stated": 2, "under a reading": 1, "under none tried": 1, "undecided": 3},
        **{"not tested": 4},
    }


def test_a_printed_number_counts_once_and_apart_from_its_standard_deviation():
    def value(name, at, verdict, quantity="error"):
        given = {"id": name, "comparison": "t", "published_at": at, "verdict": verdict}
        return given | {"quantity": quantity}

    rows = [
        value("t/0", "tables/t/0", "not run"),
        value("t/0/sd", "tables/t/0", "reproduced", "error, standard deviation over folds"),
        value("t/1", "tables/t/0", "reproduced"),  # the same number beside another method
        value("t/2", "tables/lambda", "reproduced", "setting"),
        value("t/3", "tables/lambda", "not run", "setting"),
        value("u/0", "tables/text", "reproduced") | {"comparison": "u"},
        {"id": "c-1", "verdict": "reproduced"},
    ]
    found = [(readings.kind_of(row), row["verdict"]) for row in readings.once(rows, ["u"])]
    assert found == [
        ("means", "not run"),
        ("standard deviations", "reproduced"),
        ("settings", "reproduced"),
        ("claims", "reproduced"),
    ]


def test_what_holds_at_once_under_a_reading():
    def row(reading, name, holds, concerned="yes", section="published"):
        at = {"published_at": f"tables/{name}", "quantity": "error"} if "/" in name else {}
        given = {"section": section, "reading": reading, "id": name, "holds": holds}
        return {"published_at": "", "quantity": ""} | given | at | {"concerned": concerned}

    rows = [
        *(row("as stated", "t/0", "yes"), row("as stated", "t/1", "no")),
        row("as stated", "c", "no", section="claims"),
        # each number holds under some reading, but under none do both
        *(row("x: y", "t/0", "no"), row("x: y", "t/1", "yes")),
        row("x: y", "c", "yes", section="claims"),
        # not concerned: as stated; nothing decided: not counted
        *(row("x: z", "t/0", "no", "no"), row("x: z", "t/1", "")),
    ]
    found = {
        name: (cells["means"], cells["claims"], cells["settings"])
        for name, cells in readings.joint(rows)
    }
    assert found == {
        "as stated": ("1 of 2", "0 of 1", "0 of 0"),
        "x: y": ("1 of 2", "1 of 1", "0 of 0"),
        "x: z": ("1 of 1", "0 of 1", "0 of 0"),
    }


def part(*cells):
    """What the report gathers about an experiment, from rows (method, claimed, proven)."""
    methods = {
        name: {"mechanism": name, "title": f"The {name}", "private": name != "plain"}
        for name, *_ in cells
    }
    frame = pd.DataFrame(cells, columns=["method", "epsilon_claimed", "epsilon_proven"])
    return SimpleNamespace(frame=frame, experiment=SimpleNamespace(methods=methods, values={}))


def test_privacy_says_the_worst_of_every_private_method():
    inf = math.inf
    first = part(("plain", inf, inf), ("sound", 1.0, 1.0), ("sound", 0.1, 0.05))
    second = part(("void", 1.0, inf), ("void", 2.0, 2.0), ("more", 1.0, 2.0), ("more", 0.1, 0.3))
    (text,) = sources.privacy([first, second])
    assert text == (
        "1 of 3 private methods as they ran here hold what they claim. More epsilon than claimed is "
        "needed by The more (claimed 0.1, proven 0.3 at worst). No finite epsilon, in some cell, have "
        "The void."
    )
    assert sources.privacy([part(("plain", inf, inf))]) == []


def test_rows_that_were_prepared_by_themselves_do_not_count_against_the_method():
    sound = Guarantee(1.0, 1.0, 0.0, "replace-one", "noise")
    found = part(("sound", 1.0, math.inf), ("sound", 1.0, 1.0), ("void", 1.0, math.inf))
    reason = after_preparation(sound, ["standardise"]).reason
    found.frame["reason"] = [reason, sound.reason, "no noise"]
    (text,) = sources.privacy([found])
    assert text == (
        "Where standardise looked at the private rows, no method has a finite epsilon: The sound. "
        "1 of 2 private methods as they ran here on other rows hold what they claim. No finite "
        "epsilon, in some cell, have The void."
    )


def test_another_lambda_than_the_published_one_says_nothing_about_the_source():
    found = part(("sound", 0.1, 0.1), ("sound", 0.1, 0.3))
    found.frame["lambda"] = [0.01, 0.0001]
    (text,) = sources.privacy([found])
    assert "more epsilon" in text.lower() and "proven 0.3" in text
    found.experiment.values["lambda_published"] = 0.01
    assert sources.privacy([found]) == [
        "1 of 1 private methods as they ran here hold what they claim."
    ]


def test_a_card_says_first_that_its_data_stand_in():
    def gathered(*datasets):
        experiment = SimpleNamespace(datasets=datasets)
        return SimpleNamespace(experiment=experiment, stand_ins={"digits": "digits stand in"})

    assert sources.standing_in([gathered("mnist"), gathered("digits")]) == ["Digits stand in."]
    assert sources.standing_in([gathered("mnist", "digits"), gathered()]) == []


def attack(verdict, audited, arguments):
    numbers = {"epsilon": "1", "epsilon_claimed": "1", "epsilon_proven": "1"}
    numbers |= {"epsilon_audited": str(audited), "epsilon_pair": ""}
    words = {"mechanism": "private_selection", "verdict": verdict, "attack": "some"}
    return words | numbers | {"arguments": arguments}


def test_a_refuted_variant_is_named_by_its_options():
    good = attack("consistent with the claim", 0, '{"lam": 0.1, "runs": 30}')
    bad = attack("refutes the claim", 2, '{"lam": 0.1, "runs": 3, "score": "exact"}')
    other = attack("refutes the claim", 3, '{"lam": 0.1, "law": "poisson", "score": "exact"}')
    *_, text = ledger.summary({"private_selection": [good, bad, other]})
    name = text.removeprefix("Attacks refute the claims of 1: ")
    assert name.endswith("(only with score: exact).")
    assert ledger.variant([bad, other]) == ""  # nothing else was attacked
    *_, text = ledger.summary({"private_selection": [bad, other]})
    assert "only with" not in text


def test_what_nobody_has_proven_here_is_claimed_and_not_proven():
    (text,) = sources.privacy([part(("own", 1.0, math.nan), ("sound", 1.0, 1.0))])
    assert text == (
        "1 of 2 private methods as they ran here hold what they claim. Claimed, not proven: The own."
    )
