"""What the report says about readings: a map of printed values and claims against them, and conclusions."""

from collections import Counter

from checks import verdicts
from study import paths
from study.jobs.files import read_csv

# A cell's name in the map, and its look.
LOOKS = {
    verdicts.EQUAL: ("equal", "good"),
    verdicts.INSIDE: ("inside", "good"),
    verdicts.CLOSE: ("close", "mild"),
    verdicts.OFF: ("off", "bad"),
    "yes": ("holds", "good"),
    "no": ("fails", "bad"),
}


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
            open_claim = ("open", "mild") if row["section"] == "claims" else ("", "")
            text, look = LOOKS.get(row["distance"] or row["holds"], open_claim)
            entry["cells"][row["reading"]] = {
                "text": text,
                "look": look,
                "ours": row["ours"],
                "why": row["reason"],
            }
    for entry in rows.values():
        entry["cells"] = [entry["cells"].get(name) for name in readings]
    sections = experiment.values.get("readings", {})
    return {
        "columns": list(readings),
        "open": [
            (name.replace("_", " "), entry["open"], entry["main"].replace("_", " "))
            for name, entry in sections.items()
        ],
        "rows": list(rows.values()),
    }


def _what(row):
    if row["section"] == "claims":
        return row["id"]
    method = f", {row['method']}" if row["method"] else ""
    spread = ", standard deviation" if row["id"].endswith("/sd") else ""
    return f"{row['published_at'].removeprefix('tables/')}{method}{spread}"


def path_of(experiment):
    return paths.READINGS(experiment=experiment.name)


def conclusions(published, claims):
    """Sentences about one source. published, claims: its rows of published.csv and claims.csv, of all
    experiments that regenerate it."""
    found = (_sentence(published, "printed values"), _sentence(claims, "claims"))
    return [sentence for sentence in found if sentence]


def _sentence(rows, what):
    counted = Counter(row["verdict"] for row in rows)
    plain = (verdicts.NOT_TESTED, verdicts.NOT_RUN, verdicts.CALIBRATED)
    decided = sum(count for verdict, count in counted.items() if verdict not in plain)
    if not counted:
        return ""
    if not decided:
        return f"None of its {len(rows)} {what} is decided: {_listed(counted, plain)}."
    parts = [f"{counted[verdicts.REPRODUCED]} reproduced as stated"]
    for verdict, count in counted.items():
        if verdict.startswith(f"{verdicts.REPRODUCED} if"):
            parts.append(f"{count} {verdict}")
    failed = [row for row in rows if row["verdict"].startswith(verdicts.NOT_REPRODUCED)]
    if failed:
        tried = [int(row["readings"]) for row in failed]
        ends = f"{min(tried)}" if min(tried) == max(tried) else f"{min(tried)} to {max(tried)}"
        parts.append(f"{len(failed)} under none of the readings tried ({ends} of each)")
    rest = _listed(counted, plain)
    return (
        f"Of {decided} {what} that were decided, {'; '.join(parts)}"
        f"{f' ({rest} beside them)' if rest else ''}."
    )


def _listed(counted, names):
    return ", ".join(f"{counted[name]} {name}" for name in names if counted[name])
