"""What the report says about readings: a map of printed values and claims against them."""

from checks import verdicts
from study import paths
from study.jobs.files import read_csv

# A cell's name in the map, and how it looks.
NAMES = {
    verdicts.EQUAL: "equal",
    verdicts.INSIDE: "inside",
    verdicts.CLOSE: "close",
    verdicts.OFF: "off",
    "yes": "holds",
    "no": "fails",
}
LOOKS = {"yes": "good", "no": "bad", "": "mild"}
# What a source printed and claimed, counted apart.
MEANS, SPREADS, SETTINGS, CLAIMS = "means", "standard deviations", "settings", "claims"
KINDS = (MEANS, SPREADS, SETTINGS, CLAIMS)


def kind_of(row):
    """Which of KINDS a row of published.csv, claims.csv or readings.csv is counted among."""
    if "published_at" not in row or row.get("section") == "claims":
        return CLAIMS
    if row["quantity"] == "setting":
        return SETTINGS
    return SPREADS if "standard deviation" in row["quantity"] else MEANS


def once(rows, again=()):
    """The rows without those of a number that an earlier row has: a source prints it once, but it may stand
    beside several methods. again: comparisons with what the source prints elsewhere too."""
    found = {}
    for row in rows:
        kind = kind_of(row)
        if kind == CLAIMS:
            found[kind, row["id"]] = row
            continue
        comparison = row.get("comparison") or row["id"].partition("/")[0]
        if comparison not in again:
            found.setdefault((kind, row["published_at"]), row)
    return list(found.values())


def again(experiment):
    """Comparisons of an experiment with what its source prints elsewhere too."""
    return [
        name for name, spec in experiment.values.get("published", {}).items() if spec.get("again")
    ]


def heat_map(experiment, path):
    """{columns, open, rows} of readings.csv: a row per printed value and claim, a column per reading. None
    without the file. A cell is empty if the reading does not change the value."""
    if not path.exists():
        return None
    found = read_csv(path)
    readings = dict.fromkeys(row["reading"] for row in found)
    rows = {}
    for row in found:
        key = (row["section"], row["id"])
        entry = rows.setdefault(key, {"what": _what(row), "printed": row["published"], "cells": {}})
        if row["concerned"] == "yes":
            text = NAMES.get(row["distance"] or row["holds"], "open")
            text += ", open" * bool(row["distance"] and not row["holds"])
            entry["cells"][row["reading"]] = {
                "text": text,
                "look": LOOKS[row["holds"]],
                "ours": row["ours"],
            }
    for entry in rows.values():
        entry["cells"] = [entry["cells"].get(name) for name in readings]
    sections = experiment.values.get("readings", {})
    return {
        "columns": [name.replace("_", " ") for name in readings],
        "open": [
            (name.replace("_", " "), entry["open"], entry["main"].replace("_", " "))
            for name, entry in sections.items()
        ],
        "rows": list(rows.values()),
        "kinds": KINDS,
        "joint": joint(found, again(experiment)),
    }


def joint(rows, again=()):
    """[(reading, {one of KINDS: "k of n"})]: how much holds under one reading at once, of what it decides.

    rows: of readings.csv. What a reading does not concern is as stated.
    """
    numbers, table = {row["id"] for row in once(rows, again)}, {}
    for row in rows:
        if row["id"] in numbers and row["concerned"] == "yes":
            table.setdefault(row["reading"], {})[row["section"], row["id"]] = row
    stated, found = next(iter(table.values()), {}), []
    for reading, own in table.items():
        held = {kind: [] for kind in KINDS}
        for row in (stated | own).values():
            held[kind_of(row)] += [row["holds"] == "yes"] * bool(row["holds"])
        cells = {kind: f"{sum(each)} of {len(each)}" for kind, each in held.items()}
        found.append((reading.replace("_", " "), cells))
    return found


def _what(row):
    if row["section"] == "claims":
        return row["id"]
    method = f", {row['method']}" if row["method"] else ""
    spread = ", standard deviation" if row["id"].endswith("/sd") else ""
    place = ", ".join(row["published_at"].split("/")[1:])
    return f"{place}{method}{spread}".replace("_", " ")


def path_of(experiment):
    return paths.READINGS(experiment=experiment.folder)
