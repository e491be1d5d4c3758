"""claims.csv and defects.csv: statements decided by registered checks, never by hand.

A check is a function (results, **options) -> `Outcome`, registered in `study.kinds.CHECKS`. A claim
with several checks is reproduced if all of them hold, contradicted if one fails, and not tested if
one cannot be decided and none fails. A defect is shown under the same rule.
"""

import importlib
import re
from typing import NamedTuple

from checks.results import Missing
from study import kinds

SECTIONS = {
    "claims": ("reproduced", "contradicted"),
    "defects": ("shown", "not shown"),
}
NOT_TESTED = "not tested"

COLUMNS = ("id", "source", "where", "says", "size", "verdict", "decided_by", "number", "threshold")


class Outcome(NamedTuple):
    """holds: True, False, or None where it cannot be decided. decided_by: the numbers, in words.
    number, threshold: the one number that decides against which limit, where there is one."""

    holds: bool | None
    decided_by: str
    number: float | None = None
    threshold: float | None = None


def run(results, check):
    """`Outcome` of one configured check; a result it needs and does not find leaves it undecided."""
    kind = kinds.CHECKS[check["kind"]]
    function = getattr(importlib.import_module(kind.module), kind.function)
    options = dict(check["options"])
    if "analysis" in check:
        options["analysis"] = check["analysis"]
    try:
        return function(results, **options)
    except Missing as missing:
        return Outcome(None, str(missing))


def combine(outcomes, section):
    """(verdict, decided by, number, threshold) of a statement from its checks' outcomes."""
    yes, no = SECTIONS[section]
    if any(outcome.holds is False for outcome in outcomes):
        verdict = no
    elif outcomes and all(outcome.holds for outcome in outcomes):
        verdict = yes
    else:
        verdict = NOT_TESTED
    marks = {True: "", False: "fails: ", None: "undecided: "}
    text = "; ".join(marks[outcome.holds] + outcome.decided_by for outcome in outcomes)
    first = next((o for o in outcomes if o.number is not None), Outcome(None, ""))
    return verdict, text, first.number, first.threshold


def decide(results, source, section):
    """Rows of claims.csv or defects.csv: what the experiment's configuration checks, in its order."""
    stated = source.statements(section)
    for name, entry in results.experiment.values[section].items():
        statement = stated[name]
        if "not_tested" in entry:
            decided = (NOT_TESTED, entry["not_tested"], None, None)
        else:
            decided = combine([run(results, check) for check in entry["checks"]], section)
        yield {
            "id": name,
            "source": source.short,
            "where": statement.get("where"),
            "says": statement.get("says") or statement.get("what"),
            "size": statement.get("size"),
            **dict(zip(("verdict", "decided_by", "number", "threshold"), decided, strict=True)),
        }


def natural(name):
    """Sort key: cm08-2 before cm08-10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
