"""Summarises, for the report, how many numbers and claims hold under each reading of a source."""

from pathlib import Path

from study import paths
from study.jobs.files import read_csv

MEANS, SPREADS, SETTINGS, CLAIMS = "means", "standard deviations", "settings", "claims"
KINDS = (MEANS, SPREADS, SETTINGS, CLAIMS)


def kind_of(row):
    section = row.get("section", "published" if "published_at" in row else "claims")
    if section != "published":
        return CLAIMS
    if row["quantity"] == "setting":
        return SETTINGS
    return SPREADS if "standard deviation" in row["quantity"] else MEANS


def once(rows, again=()):
    """The rows with each printed number once, even if several methods are compared with it.

    again: comparisons to leave out, because the source also prints their numbers elsewhere.
    """
    unique = {}
    for row in rows:
        kind = kind_of(row)
        if kind == CLAIMS:
            unique[kind, row["id"]] = row
            continue
        comparison = row.get("comparison") or row["id"].partition("/")[0]
        if comparison not in again:
            unique.setdefault((kind, row["published_at"]), row)
    return list(unique.values())


def again(experiment):
    return [name for name, spec in experiment.published.items() if spec.again]


def shown(experiment):
    """{open: settings left open, kinds: `KINDS`, joint: how many entries hold under each reading}.

    Without readings.csv, return None.
    """
    path = Path(paths.READINGS(experiment=experiment.folder))
    if not path.exists():
        return None
    sections = experiment.readings
    return {
        "open": [
            (name.replace("_", " "), entry.open, entry.main.replace("_", " "))
            for name, entry in sections.items()
        ],
        "kinds": KINDS,
        "joint": joint(read_csv(path), again(experiment)),
    }


def joint(rows, again=()):
    """[(reading, {kind: "k of n"})]: k of the n decided entries hold under a reading.

    rows: rows of readings.csv. An entry that a reading does not concern counts as it does under
    the stated reading.
    """
    numbers, table = {row["id"] for row in once(rows, again)}, {}
    for row in rows:
        if row["id"] in numbers and row["concerned"] == "yes":
            table.setdefault(row["reading"], {})[row["section"], row["id"]] = row
    stated, summary = next(iter(table.values()), {}), []
    for reading, own in table.items():
        held = {kind: [] for kind in KINDS}
        for row in (stated | own).values():
            held[kind_of(row)] += [row["holds"] == "yes"] * bool(row["holds"])
        cells = {kind: f"{sum(holds)} of {len(holds)}" for kind, holds in held.items()}
        summary.append((reading.replace("_", " "), cells))
    return summary
