"""claims.csv and defects.csv: statements that registered checks decide, never a person.

A check is a function (results, **options) -> `Outcome`, registered in
`study.configuration.kinds.CHECKS`. A statement with several checks holds if all of them hold, fails if one
fails, and is not tested if one cannot be decided and none fails. A claim that fails as stated is tried
under the readings of what its source leaves open. A defect is shown or not shown.
"""

import importlib
from typing import NamedTuple

from checks import grids, verdicts
from checks.results import Missing
from checks.verdicts import NOT_TESTED
from study.configuration import kinds

SECTIONS = ("claims", "defects")
ANOTHER_MODEL = "decides nothing, as the printed value that it is given is not this model's"

COLUMNS = (
    *(
        "id",
        "source",
        "where",
        "says",
        "size",
        "verdict",
        "readings",
        "luck",
        "decided_by",
        "number",
    ),
    "threshold",
)


class Outcome(NamedTuple):
    """holds: True, False, or None if it cannot be decided. decided_by: the numbers, in words. number,
    threshold: the one number that decides and its limit, if there is one."""

    holds: bool | None
    decided_by: str
    number: float | None = None
    threshold: float | None = None


def run(results, check):
    """The `Outcome` of one configured check. A missing result leaves it undecided."""
    kind = kinds.CHECKS[check["kind"]]
    function = getattr(importlib.import_module(kind.module), kind.function)
    options = dict(check["options"])
    options |= {key: check[key] for key in ("analysis", "table") if key in check}
    try:
        return function(results, **options)
    except Missing as missing:
        return Outcome(None, str(missing))


def join(outcomes):
    """The `Outcome` of several checks that must all hold. number and threshold are those of the first check
    that fails or, if none fails, of the first that has them."""
    if any(outcome.holds is False for outcome in outcomes):
        holds = False
    else:
        holds = True if outcomes and all(outcome.holds for outcome in outcomes) else None
    marks = {True: "", False: "fails: ", None: "undecided: "}
    text = "; ".join(marks[outcome.holds] + outcome.decided_by for outcome in outcomes)
    deciding = [o for o in outcomes if o.holds is holds and o.number is not None]
    first = deciding[0] if deciding else Outcome(None, "")
    return Outcome(holds, text, first.number, first.threshold)


def decide(results, source, section, stand_ins, readings=()):
    """Rows of claims.csv or defects.csv: what the experiment's configuration checks, in that order.

    stand_ins: data set -> why it decides nothing about the source's data. A claim that would be decided
    only on such data is not tested, and its row says what they show. A defect belongs to the method, so
    it is shown if it shows on any data. A claim that fails on searches among fewer values than the source's
    is not tested either. readings: rows of readings.csv, under which a claim that fails is tried.
    """
    stated = source.statements(section)
    for name, entry in results.experiment.values[section].items():
        statement = stated[name]
        row = {
            "id": name,
            "source": source.short,
            "where": statement.get("where"),
            "says": statement.get("says") or statement.get("what"),
            "size": statement.get("size"),
        }
        if "not_tested" in entry:
            yield row | {"verdict": NOT_TESTED, "decided_by": entry["not_tested"]}
            continue
        found = join([run(results, check) for check in entry["checks"]])
        if "given" in entry and not _agrees(results, source, entry["given"], stand_ins):
            others = [o for o in readings if o["id"] == name and o["holds"]]
            text = f"{ANOTHER_MODEL}: {found.decided_by}"
            if "yes" not in [other["holds"] for other in others]:
                text += "".join(f"; as read, {o['reading']}: {o['reason']}" for o in others[:1])
            found = Outcome(False if others else None, text)
        row |= {
            "decided_by": found.decided_by,
            "number": found.number,
            "threshold": found.threshold,
            **_judged(found, section, [other for other in readings if other["id"] == name]),
        }
        why = _standing_in(results.experiment, entry["checks"], stand_ins)
        if not why and row["verdict"].startswith(verdicts.NOT_REPRODUCED):
            methods = grids.methods_of(results.experiment, entry["checks"])
            why = grids.thinned(results.experiment, source, methods)
        if why and row["verdict"] not in (NOT_TESTED, "shown"):
            said = f"{why}; here: {row['verdict']}: {row['decided_by']}"
            row |= {"verdict": NOT_TESTED, "decided_by": said, "readings": None, "luck": None}
        yield row


def _agrees(results, source, given, stand_ins):
    """Whether a printed value, <comparison>/<number of its value>, is the model's as stated."""
    from checks.published import compare

    name = given.partition("/")[0]
    specs = {name: results.experiment.published[name]}
    (row,) = (row for row in compare(results, source, specs, stand_ins) if row["id"] == given)
    return verdicts.matches(row.get("distance"))


def _judged(found, section, readings):
    """The verdict and, for a claim, the number of readings tried and luck."""
    if found.holds is None:
        return {"verdict": NOT_TESTED}
    if section == "defects":
        return {"verdict": "shown" if found.holds else "not shown"}
    tried = [other for other in readings if other["concerned"] == "yes" and other["holds"]]
    others = [(other["reading"], other["holds"] == "yes") for other in tried]
    verdict = verdicts.with_readings(found.holds, others)
    said = {}
    if verdict.startswith(f"{verdicts.REPRODUCED} if"):
        (reason,) = [o["reason"] for o in tried if verdict.endswith(f" if {o['reading']}")][:1]
        said = {"decided_by": f"as stated it {found.decided_by}; as read: {reason}"}
    count = len(tried) + 1
    return said | {"verdict": verdict, "readings": count, "luck": verdicts.coin(count)}


def _standing_in(experiment, checks, stand_ins):
    """Why none of the data that the checks read are the source's, None if some are."""
    used = set()
    for check in checks:
        if kinds.CHECKS[check["kind"]].inputs.needs:
            named = check["options"].get("datasets") or experiment.datasets
            used.update([named] if isinstance(named, str) else named)
    used &= set(experiment.datasets)
    if used and all(name in stand_ins for name in used):
        return stand_ins[sorted(used)[0]]
    return None
