"""Writes readings.csv: an experiment's printed values and claims, as stated and under each reading."""

from collections import Counter
from typing import NamedTuple

from checks import statements
from checks.results import Read, Results
from checks.verdicts import AGAIN, UNDECIDED
from study.configuration import needs

AS_STATED = "as stated"
TURN = 2  # by how much the scores of two readings differ at least if one entry cannot reverse them
COLUMNS = (
    *("section", "id", "reading", "open", "concerned", "published_at", "dataset", "method"),
    *("train_size", "epsilon", "quantity", "published", "ours", "prediction_low"),
    *("prediction_high", "distance", "holds", "reason", "counted"),
)


class Best(NamedTuple):
    """A source's best single reading, and how it fares.

    readings: the labels of its parts, which concern different entries; none if it is the default one.
    agree: how many of the source's printed numbers and claims agree under it. default: the same as we take
    the source by default. decided: how many agree or fail under it. tried: how many readings were tried
    beside the default one. somewhere: how many agree under some reading, if each may have its own. alike:
    further readings, "" for the default one, that cannot be told apart from it.
    """

    readings: tuple
    agree: int
    default: int
    decided: int
    tried: int
    somewhere: int
    alike: tuple = ()


def confront(experiment, readings, source):
    main = Results(experiment)
    decided = needs.decided(experiment, readings)
    yield from _rows(main, decided, source, AS_STATED, "", None)
    for reading in readings:
        results = Read(reading, main)
        own = needs.Decided([*reading.published], [*reading.claims])
        yield from _rows(results, own, source, reading.label, reading.left_open, experiment)


def most_telling_first(rows):
    """Rows of the readings, sorted: readings that explain more values and claims come first.

    rows: all rows of readings.csv, as text. Rows "as stated" are left out. A verdict names the first
    reading that agrees.
    """
    rows = [row for row in rows if row["reading"] != AS_STATED]
    explained = Counter(
        row["reading"] for row in rows if row["concerned"] == "yes" and row["holds"] == "yes"
    )
    return sorted(rows, key=lambda row: -explained[row["reading"]])


def best_single(rows):
    """The `Best` reading of all rows of readings.csv, as text.

    It is the one with the largest number of agreeing entries minus choices that it changes: a choice that
    explains one number explains nothing. Of equals, the one with fewer choices is taken. A reading of other
    choices, which concerns other entries, joins it if it explains more entries than it changes choices. A
    printed number counts once, for the first method compared with it.

    This number is a reading's score. Two readings cannot be told apart if their scores differ by less than
    `TURN`, because chance may turn one entry. So readings whose score is positive and so near are `alike`,
    and so is the default one, whose score is 0. They are named, and explain no entry.
    """
    first, table = {}, {AS_STATED: {}}
    for row in rows:
        if row["counted"] == AGAIN:
            continue
        place = row["published_at"] or row["id"], row["id"].endswith("/sd")
        if first.setdefault(place, row["id"]) != row["id"]:
            continue
        own = table.setdefault(row["reading"], {})
        has_result = row["holds"] or row["distance"] or row["ours"]
        if row["concerned"] == "yes" and (has_result or row["reading"] == AS_STATED):
            own[row["section"], row["id"]] = row["holds"]
    default = table.pop(AS_STATED)
    answers = {reading: _answers(reading, table) for reading in table}

    def gain(reading):
        own = answers[reading]
        more = [*own.values()].count("yes") - [default.get(entry) for entry in own].count("yes")
        return more - len(_choices(reading)), -len(_choices(reading))

    def rivals(reading):
        return [
            other
            for other in chosen
            if not _choices(reading).isdisjoint(_choices(other))
            or not answers[reading].keys().isdisjoint(answers[other])
        ]

    score = {reading: gain(reading)[0] for reading in table}
    chosen, found = (), dict(default)
    good = [each for each in sorted(table, key=gain, reverse=True) if score[each] > 0]
    for reading in good:
        if not rivals(reading):
            chosen, found = (*chosen, reading), found | answers[reading]
    alike = [
        reading
        for reading in good
        if reading not in chosen and sum(map(score.get, rivals(reading))) - score[reading] < TURN
    ]
    if chosen and sum(map(score.get, chosen)) < TURN:
        alike = ["", *alike]
    agree = [*found.values()].count("yes")
    decided = agree + [*found.values()].count("no")
    every = (default, *table.values())
    held = {entry for own in every for entry, holds in own.items() if holds == "yes"}
    of_default = [*default.values()].count("yes")
    return Best(chosen, agree, of_default, decided, len(table), len(held), tuple(alike))


def _answers(reading, table):
    """What a reading gives for each entry that it concerns.

    Where a combination has no result, such as on data that one of its readings leaves alone, the largest
    combination of its other readings has it.
    """
    parts = {*reading.split(" and ")}
    known = sorted(
        (len(own), *own)
        for own in (other.split(" and ") for other in table)
        if parts.issuperset(own)
    )
    found = {}
    for _, *own in known:
        found |= table[" and ".join(own)]
    return found


def _choices(reading):
    """The names of the choices that a reading's label, such as "rows: file and loss: mean", changes."""
    return {part.partition(": ")[0] for part in reading.split(" and ")}


def _rows(results, decided, source, label, left_open, main):
    """Yield the rows of one reading.

    decided: a `needs.Decided`. main: the main experiment; None if the rows are its own.
    """
    experiment = results.experiment
    shown = {"reading": label, "open": left_open}
    for row in [row for row in results.printed if row["comparison"] in decided.published]:
        # A reading of a non-private value also concerns the private values that depend on it.
        about = [row["id"], *([row["given"]] if row["given"] else [])]
        concerned = main is None or any(_concerns_value(results, main, each) for each in about)
        yield row | shown | {"section": "published", "concerned": _yes(concerned)}
    for name in decided.claims:
        entry = experiment.claims[name]
        outcome, checks = statements.outcome(results, entry), entry.checks
        left_out = _data_sets(checks).difference(experiment.datasets)
        if left_out:
            why = f"this reading is not about {', '.join(sorted(left_out))}"
            outcome = statements.Outcome(None, why, tested=False)
        # A reading whose draws failed may hold, so it leaves a claim open.
        open_ = outcome.tested or outcome.lost
        open_ = open_ and not statements.another_model(results, entry)
        concerned = main is None or _concerns_claim(results, main, name)
        if entry.given and not concerned:
            concerned = _concerns_value(results, main, entry.given)
        yield shown | {
            "section": "claims",
            "id": name,
            "concerned": _yes(concerned),
            "counted": statements.counted(entry),
            "holds": {True: "yes", False: "no", None: ""}[outcome.holds],
            "distance": UNDECIDED if open_ and outcome.holds is None else "",
            "reason": outcome.decided_by,
        }


def _data_sets(checks):
    named = [check.options.get("datasets") or [] for check in checks]
    return {name for option in named for name in ([option] if isinstance(option, str) else option)}


def _yes(truth):
    return "yes" if truth else "no"


def _concerns_value(results, main, value):
    """Whether a reading and `main` compare a printed value with different cells, tables or analyses.

    value: <comparison>/<number>.
    """
    name, number = value.split("/")[:2]
    if name not in needs.comparisons(main):
        return True
    theirs = needs.items(main, name)[int(number)]
    ours = needs.items(results.experiment, name)[int(number)]
    return ours != theirs or ours in results.own


def _concerns_claim(results, main, name):
    """Whether a reading and `main` decide a claim from different cells, tables or analyses.

    Using a subset of the same cells does not count.
    """
    if name not in needs.claims(main):
        return True
    ours, theirs = (
        needs.of_checks(experiment, experiment.claims[name].checks)
        for experiment in (results.experiment, main)
    )
    return bool(ours & results.own) or not ours <= theirs
