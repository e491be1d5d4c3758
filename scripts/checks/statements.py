"""claims.csv and defects.csv: statements decided by registered checks, never by hand.

A check is a function (results, **options) -> `Outcome`, registered in
`study.configuration.kinds.CHECKS`. A claim with several checks is reproduced if all of them hold,
contradicted if one fails, and not tested if one cannot be decided and none fails. A defect is shown
under the same rule.
"""

import importlib
from typing import NamedTuple

from checks.results import Missing
from study.configuration import kinds

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
    options |= {key: check[key] for key in ("analysis", "table") if key in check}
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


def decide(results, source, section, stand_ins):
    """Rows of claims.csv or defects.csv: what the experiment's configuration checks, in its order.

    stand_ins: data set -> why it decides nothing about the source's data. A claim that is decided on
    such data alone is not tested; what they show is said. A defect is one of the method's: where it shows
    on any data it is shown.
    """
    stated = source.statements(section)
    for name, entry in results.experiment.values[section].items():
        statement = stated[name]
        if "not_tested" in entry:
            decided = (NOT_TESTED, entry["not_tested"], None, None)
        else:
            decided = combine([run(results, check) for check in entry["checks"]], section)
            standing_in = _standing_in(results.experiment, entry["checks"], stand_ins)
            if standing_in and decided[0] not in (NOT_TESTED, "shown"):
                said = f"{standing_in}; on them: {decided[0]}: {decided[1]}"
                decided = (NOT_TESTED, said, *decided[2:])
        yield {
            "id": name,
            "source": source.short,
            "where": statement.get("where"),
            "says": statement.get("says") or statement.get("what"),
            "size": statement.get("size"),
            **dict(zip(("verdict", "decided_by", "number", "threshold"), decided, strict=True)),
        }


def _standing_in(experiment, checks, stand_ins):
    """Why none of the data that the checks read are the source's, or None."""
    used = set()
    for check in checks:
        if kinds.CHECKS[check["kind"]].made_of.needs:
            named = check["options"].get("datasets") or experiment.datasets
            used.update([named] if isinstance(named, str) else named)
    used &= set(experiment.datasets)
    if used and all(name in stand_ins for name in used):
        return stand_ins[sorted(used)[0]]
    return None
