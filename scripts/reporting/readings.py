"""Summarises, for the report, how many numbers and claims hold under each reading of a source."""

from pathlib import Path

from checks import verdicts
from checks.under_readings import best_single
from checks.verdicts import AGAIN, OTHER
from study import facts, paths
from study.jobs.files import read_csv

MEANS, SPREADS, SETTINGS, CLAIMS = "means", "standard deviations", "settings", "claims"
TRIVIA = "trivia"
KINDS = (MEANS, SPREADS, SETTINGS, CLAIMS, TRIVIA)
RESULTS = (MEANS, CLAIMS)  # the others are other numbers


def kind_of(row):
    section = row.get("section", "published" if "published_at" in row else "claims")
    kind = CLAIMS if section != "published" else MEANS
    if section == "published" and row["quantity"] == "setting":
        return SETTINGS
    if section == "published" and "standard deviation" in row["quantity"]:
        return SPREADS
    return TRIVIA if row.get("counted") == OTHER else kind


def once(rows):
    """The rows with each printed number and statement once, even if several methods compare with it."""
    unique = {}
    for row in rows:
        if row.get("counted") == AGAIN:
            continue
        kind = kind_of(row)
        if not row.get("published_at"):
            unique[kind, row["id"]] = row
            continue
        unique.setdefault((kind, row["published_at"]), row)
    return list(unique.values())


def shown(experiment):
    """{kinds: `KINDS`, joint: how many entries hold under each reading, best}.

    best: a sentence on the best single reading.

    Without readings.csv, return None.
    """
    path = Path(paths.READINGS(experiment=experiment.folder))
    if not path.exists():
        return None
    rows = read_csv(path)
    stated = facts.read(experiment.source).stated if experiment.source else {}
    return {
        "kinds": KINDS,
        "joint": joint(rows, stated),
        "best": best(rows, stated),
    }


def best(rows, stated):
    """The source's score: how its best single reading fares, and what combinations would add.

    stated: what the source's text says of its choices (`Document.stated`).
    """
    found = best_single(rows)
    named = f"The best single reading is {verdicts.named(found.readings)}"
    named += _against(" and ".join(found.readings), stated)
    beside = f" ({found.default} as we take the source by default)" if found.readings else ""
    alike = "".join(
        f" {label or 'The default one'} cannot be told apart from it: if chance turns one number, it may "
        "be the best."
        for label in found.alike
    )
    return (
        f"{named}: {found.agree} of {found.decided} numbers and claims that it decides agree{beside}."
        f"{alike} "
        f"{found.tried} other readings were tried, and each choice must explain more than one of them. "
        f"If each could have its own reading, {found.somewhere} would agree."
    )


def _against(label, stated):
    """What follows a reading's label if parts of it, such as "rows: file", contradict the text; else ""."""
    said = {facts.in_words(name): {*map(facts.in_words, values)} for name, values in stated.items()}
    parts = [part.partition(": ")[::2] for part in label.split(" and ")]
    wrong = [name for name, value in parts if value not in said.get(name, {value})]
    return f" (against the text in {' and '.join(wrong)})" if wrong else ""


def joint(rows, stated):
    """[(reading, {kind: "k of n"})]: k of the n decided entries hold under a reading.

    rows: rows of readings.csv. stated: as for `best`. An entry that a reading does not concern counts as it
    does under the stated reading.
    """
    numbers, table = {row["id"] for row in once(rows)}, {}
    for row in rows:
        if row["id"] in numbers and row["concerned"] == "yes":
            table.setdefault(row["reading"], {})[row["section"], row["id"]] = row
    default, summary = next(iter(table.values()), {}), []
    for reading, own in table.items():
        held = {kind: [] for kind in KINDS}
        for row in (default | own).values():
            held[kind_of(row)] += [row["holds"] == "yes"] * bool(row["holds"])
        cells = {kind: f"{sum(holds)} of {len(holds)}" for kind, holds in held.items()}
        summary.append((reading.replace("_", " ") + _against(reading, stated), cells))
    return summary
