"""Which changes of verdicts between seeds can be explained by chance."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts/tools"))

from other_seeds import changes, margin

VALUE = {
    "published_at": "t/0", "dataset": "d", "method": "m", "quantity": "error", "published": "0.30",
    "prediction_low": "0.20", "prediction_high": "0.29", "ours_low": "0.23", "ours_high": "0.27",
    "verdict": "reproduced",
}  # fmt: skip


def test_a_value_may_change_near_the_end_of_its_interval():
    # 0.01 beyond the end, with a standard error of 0.01
    assert abs(margin(VALUE) - 1) < 1e-9
    other = VALUE | {"verdict": "not reproduced by any of 1 reading"}
    assert [found[-1] for found in changes("published", [VALUE], [other])] == [True]
    far = {"published": "0.35"}
    assert [found[-1] for found in changes("published", [VALUE | far], [other | far])] == [False]
    assert list(changes("published", [VALUE], [VALUE])) == []
    assert list(changes("published", [VALUE], [VALUE | {"verdict": "not run"}])) == []
    assert margin(VALUE | {"ours_low": ""}) is None
    # the error of a standard deviation is that of a run's: a quarter of 0.09
    spread = {"quantity": "error, standard deviation over folds", "ours_low": "", "ours_high": ""}
    assert abs(margin(VALUE | spread) - 0.01 / 0.0225) < 1e-9


def test_a_claim_may_change_where_it_was_open():
    claim = {"id": "c", "verdict": "reproduced", "decided_by": "1 of 1 curves fall"}
    failed = {"verdict": "not reproduced by any of 1 reading", "decided_by": "fails: it rises"}
    open_claim = {"verdict": "not tested", "decided_by": "undecided: 0 of 1 curves fall"}
    assert [found[-1] for found in changes("claims", [claim], [claim | failed])] == [False]
    assert [found[-1] for found in changes("claims", [claim], [claim | open_claim])] == [True]
