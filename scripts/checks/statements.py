"""Decides the claims and defects of claims.csv and defects.csv by registered checks.

A check is a function (results, **options) -> `Outcome`, registered in `study.configuration.kinds.CHECKS`.
A statement holds if all its checks hold, and fails if one fails. Otherwise it is undecided, or not tested
if this run lacks a check's inputs. A claim that fails as stated is tried under its source's readings.
"""

from typing import NamedTuple

from checks import grids, verdicts
from checks.results import Lost, Missing
from checks.verdicts import NOT_TESTED, UNDECIDED
from study.configuration import kinds
from study.configuration.experiment import Experiment

SECTIONS = ("claims", "defects")
ANOTHER_MODEL = "not decidable, since the printed model without noise is not ours"
ANOTHER_LEVEL = "not decidable, since ours is not near the number that it is about, {:g}"

COLUMNS = (
    *("id", "source", "where", "says", "size", "verdict", "readings", "decided_by", "number"),
    *("threshold", "counted"),
)


class Outcome(NamedTuple):
    """The result of a check.

    holds: True, False, or None if not decidable. decided_by: the numbers, in words. number, threshold:
    the deciding number and its limit. tested: False if this run lacks inputs. lost: whether it lacks them
    because too many draws failed.
    """

    holds: bool | None
    decided_by: str
    number: float | None = None
    threshold: float | None = None
    tested: bool = True
    lost: bool = False


def run(results, check):
    kind = kinds.CHECKS[check.kind]
    named = {key: name for key, name in check.mapping().items() if key in ("analysis", "table")}
    options = check.options | named
    try:
        return kind.function(results, **options)
    except Missing as missing:
        return Outcome(None, str(missing), tested=False, lost=isinstance(missing, Lost))


def join(outcomes):
    """The `Outcome` of checks that must all hold; its text marks those that fail, and counts them.

    Its number and threshold are those of the first check that has a number and agrees with the result.
    """
    if any(outcome.holds is False for outcome in outcomes):
        holds = False
    else:
        holds = True if outcomes and all(outcome.holds for outcome in outcomes) else None
    marks = {True: "", False: "fails: ", None: "undecided: "}
    text = "; ".join(marks[outcome.holds] + outcome.decided_by for outcome in outcomes)
    if len(outcomes) > 1 and holds is False:
        failed = sum(outcome.holds is False for outcome in outcomes)
        text = f"{failed} of {len(outcomes)} conditions fail: {text}"
    deciding = [o for o in outcomes if o.holds is holds and o.number is not None]
    first = deciding[0] if deciding else Outcome(None, "")
    tested = all(outcome.tested for outcome in outcomes)
    lost = any(outcome.lost for outcome in outcomes)
    return Outcome(holds, text, first.number, first.threshold, tested, lost)


def another_model(results, entry):
    """Whether a statement depends on a printed non-private value that our model does not reproduce.

    The statement names the value, <comparison>/<number>, under its key `given`.
    """
    return any(not row["near"] for row in _given(results, entry))


def _given(results, entry):
    wanted = entry.given
    return [row for row in results.printed if row["id"] == wanted] if wanted else []


def outcome(results, entry):
    """The `Outcome` of a statement's checks; not decidable if our non-private model is not the source's."""
    joint_outcome = join([run(results, check) for check in entry.checks])
    if another_model(results, entry):
        (row,) = _given(results, entry)
        known = ANOTHER_LEVEL.format(row["published"]) if row["epsilon"] else ANOTHER_MODEL
        tested = row["distance"] != ""
        return Outcome(None, f"{known}: {joint_outcome.decided_by}", tested=tested)
    return joint_outcome


def counted(entry):
    """Whether a statement is a result, trivia, or counted elsewhere."""
    return verdicts.AGAIN if entry.again else verdicts.OTHER if entry.trivia else verdicts.RESULT


def listed(experiment: Experiment, source, section):
    stated = source.statements(section)
    for name in experiment.section(section):
        statement = stated[name]
        yield {
            "id": name,
            "source": source.short,
            "where": statement.where,
            "says": statement.says,
            "size": statement.size,
            "counted": counted(experiment.section(section)[name]),
        }


def decide(results, source, section, stand_ins, readings=(), best=()):
    """Yield rows of claims.csv or defects.csv, in the configuration's order.

    A claim or defect that only stand-ins decide gets the verdict "not tested", and its row states the
    outcome on the stand-ins. A claim that fails also gets this verdict if its searches tried fewer values
    or simulations than the source's.
    stand_ins: data set -> why the data set cannot replace the source's data.
    readings: rows of readings.csv. best: the best single one (`under_readings.best_single`).
    """
    for row in listed(results.experiment, source, section):
        name = row["id"]
        entry = results.experiment.section(section)[name]
        if entry.not_tested is not None:
            yield row | {"verdict": NOT_TESTED, "decided_by": entry.not_tested}
            continue
        result = outcome(results, entry)
        row |= {
            "decided_by": result.decided_by,
            "number": result.number,
            "threshold": result.threshold,
            **_judged(
                result,
                section,
                [
                    o
                    for o in readings
                    if o["id"] == name
                    and o["concerned"] == "yes"
                    and (o["holds"] or o["distance"] == UNDECIDED)
                ],
                another_model(results, entry),
                best,
            ),
        }
        why = _standing_in(results.experiment, entry.checks, stand_ins)
        if not why and row["verdict"].startswith(verdicts.NOT_REPRODUCED):
            methods = grids.methods_of(results.experiment, entry.checks)
            why = grids.thinned(results.experiment, source, methods)
        if why and row["verdict"] != NOT_TESTED:
            said = f"{why}; here: {row['verdict']}: {row['decided_by']}"
            row |= {"verdict": NOT_TESTED, "decided_by": said, "readings": None}
        yield row


def _judged(result, section, readings, another, best):
    """The verdict, its reason and, for a claim, the number of readings that decide it.

    readings: rows of readings.csv that decide the claim or leave it open. If a reading leaves the claim
    open, the claim does not fail.
    another: `another_model` of the claim as stated. If false, the stated reading is tried, too.
    """
    if not result.tested and result.holds is None:
        return {"verdict": NOT_TESTED}
    if section == "defects":
        return {"verdict": {True: "shown", False: "not shown", None: UNDECIDED}[result.holds]}
    stated = {"reading": "", "holds": {True: "yes", False: "no", None: ""}[result.holds]}
    tried = [*([] if another else [stated]), *readings]
    answers = [(r["reading"], r["holds"]) for r in tried]
    verdict = verdicts.with_readings(answers, UNDECIDED, best)
    if verdict == UNDECIDED:
        if said := verdicts.elsewhere(answers, best):
            return {"verdict": verdict, "decided_by": f"{result.decided_by}; {said}"}
        still = [
            f"{r['reading']}: {r['reason']}" for r in tried if r["holds"] == "" and r["reading"]
        ]
        said = f"{result.decided_by}; as read, {still[0]}" if still else result.decided_by
        return {"verdict": verdict, "decided_by": said}
    said = result.decided_by
    if not result.holds and readings:
        named = [r for r in readings if verdict.endswith(f" if {r['reading']}")] or readings
        if another or verdict.startswith(verdicts.REPRODUCED):
            said = f"as stated: {said}; as read, {named[0]['reading']}: {named[0]['reason']}"
    deciding = sum(r["holds"] != "" for r in tried)
    holding = sum(r["holds"] == "yes" for r in tried)
    if holding and deciding > 1:
        under = f"all {deciding}" if holding == deciding else f"{holding} of {deciding}"
        model = " with the printed model without noise" if another else ""
        said += f"; it holds under {under} readings that decide it{model}"
    return {"verdict": verdict, "decided_by": said, "readings": deciding}


def _standing_in(experiment: Experiment, checks, stand_ins):
    used: set[str] = set()
    for check in checks:
        if kinds.CHECKS[check.kind].inputs.needs:
            named = check.options.get("datasets") or experiment.datasets
            used.update([named] if isinstance(named, str) else named)
    used &= set(experiment.datasets)
    if used and all(name in stand_ins for name in used):
        return stand_ins[sorted(used)[0]]
    return None
