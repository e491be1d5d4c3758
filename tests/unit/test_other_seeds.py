"""Tests which changes of verdicts between two seeds can be due to chance."""

import csv
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts/tools"))

from other_seeds import changes, most, said, verdicts, word

from checks import published, statements

KEY = ("made", "claims", "c")


@pytest.mark.parametrize(
    ("before", "after", "explained"),
    [
        ("reproduced", "too wide to decide", True),
        ("undecided", "not reproduced by any of 3 readings", True),
        ("reproduced if a: b", "reproduced if c: d", True),
        ("reproduced", "not reproduced by any of 3 readings", False),
        ("reproduced", "reproduced if a: b", False),  # the value agreed as stated, and now fails
        ("reproduced if a: b", "not reproduced by any of 3 readings", False),
        ("shown", "not shown", False),
        ("shown", "undecided", True),
        ("reproduced", "not tested", False),
    ],
)
def test_a_verdict_may_become_open_but_not_its_opposite(before, after, explained):
    for pair in ((before, after), (after, before)):
        first, second = ({KEY: {"verdict": verdict}} for verdict in pair)
        ((where, _, _, by_chance),) = changes(first, second)
        assert (where, by_chance) == ("claims, c", explained)


def test_the_number_of_readings_is_no_other_word():
    assert word("not reproduced by any of 2 readings") == "not reproduced"
    same = [{KEY: {"verdict": f"not reproduced by any of {n} readings"}} for n in (2, 3)]
    assert list(changes(*same)) == []
    ((_, _, after, explained),) = changes({KEY: {"verdict": "reproduced"}}, {})
    assert after["verdict"] == "missing" and not explained
    assert said({"verdict": "undecided", "reason": "near"}) == "undecided (near)"


def test_verdicts_are_those_of_all_three_files(tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    for file, columns in (("published", published.COLUMNS), ("claims", statements.COLUMNS)):
        with (folder / f"{file}.csv").open("w", newline="") as handle:
            writer = csv.DictWriter(handle, columns, restval="")
            writer.writeheader()
            own = {"comparison": "t", "published_at": "t/0", "method": "m", "dataset": "d"}
            writer.writerow(own if file == "published" else {"id": "c", "verdict": "reproduced"})
    actual = verdicts(folder)
    assert [key[1:3] for key in actual] == [("published", "t t/0"), ("claims", "c")]
    assert actual[("made", "claims", "c", *[""] * 5)]["verdict"] == "reproduced"


def test_powers_predict_how_many_numbers_change():
    rows = [{"verdict": "reproduced", "power": "0.5"}] * 8
    others = [
        {"verdict": "reproduced", "power": "1"},
        {"verdict": "not reproduced by any of 1 reading", "power": "0.5"},
        {"verdict": "reproduced", "power": ""},
        {"verdict": "shown"},
    ]
    # A fair coin for each of eight, so four change on average, with a standard deviation of sqrt(2).
    assert most([*rows, *others]) == pytest.approx(4 + 2 * 2**0.5)
