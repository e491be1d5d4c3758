"""Which changes of verdicts between seeds can be explained by chance."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts/tools"))

from other_seeds import changes, decisions, margin

DRAWS = 20
VALUE = {
    "section": "published", "id": "t/0", "reading": "as stated", "published_at": "t/0", "method": "m",
    "quantity": "error", "published": "0.21", "prediction_low": "0.20", "prediction_high": "0.30",
    "distance": "inside", "holds": "yes",
}  # fmt: skip
CLAIM = VALUE | {"section": "claims", "id": "c", "distance": "", "holds": "yes"}


def test_the_error_of_an_intervals_end_is_that_of_many_simulated_runs():
    rng = np.random.default_rng(1)
    runs = rng.standard_normal((20_000, DRAWS))
    ends = runs.mean(axis=1) + 2 * runs.std(axis=1, ddof=1)
    # a printed value one such error inside the upper end of an interval of width 4
    printed = str(2 - ends.std())
    row = VALUE | {"published": printed, "prediction_low": "-2", "prediction_high": "2"}
    assert margin(row, DRAWS) == pytest.approx(1, rel=0.03)
    assert margin(VALUE | {"prediction_low": ""}, DRAWS) is None


def test_a_value_may_change_near_the_end_of_its_interval():
    other = VALUE | {"distance": "off", "holds": "no", "published": "0.195"}
    assert [found[-1] for found in changes([VALUE], [other], DRAWS)] == [True]
    inside, outside = (
        VALUE | {"published": "0.25"},
        VALUE | {"published": "0.15", "distance": "off", "holds": "no"},
    )
    assert [found[1:3] + found[-1:] for found in changes([inside], [outside], DRAWS)] == [
        ("reproduced", "not reproduced", False)
    ]
    assert list(changes([VALUE], [VALUE], DRAWS)) == []
    assert list(changes([VALUE], [VALUE | {"holds": ""}], DRAWS)) == []
    assert list(changes([VALUE], [VALUE | {"reading": "another"}], DRAWS)) == []


def test_a_claim_may_become_undecided_but_not_fail():
    assert [found[-1] for found in changes([CLAIM], [CLAIM | {"holds": "no"}], DRAWS)] == [False]
    assert list(changes([CLAIM], [CLAIM | {"holds": ""}], DRAWS)) == []


def test_without_readings_verdicts_are_those_as_stated(tmp_path):
    def write(name, row):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, row)
            writer.writeheader()
            writer.writerow(row)

    write(
        "published",
        {k: v for k, v in VALUE.items() if k not in ("section", "reading", "id")} | {"verdict": ""},
    )
    write("claims", {"id": "c", "verdict": "not reproduced by any of 1 reading"})
    value, claim = decisions(tmp_path)
    assert (value["section"], value["distance"]) == ("published", "inside")
    assert (claim["section"], claim["id"], claim["holds"]) == ("claims", "c", "no")
