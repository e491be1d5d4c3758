"""Tables that describe the data."""

import csv
from pathlib import Path


def class_counts(experiment, spec, path):
    """One row per data set and part: the rows of every class, and all."""
    rows = _read(path)
    classes = list(dict.fromkeys(row["class"] for row in rows))
    found = {}
    for row in rows:
        found.setdefault((row["dataset"], row["part"]), {})[row["class"]] = int(row["rows"])
    return ("dataset", "part", *classes, "all"), [
        (*key, *(counts.get(name, "") for name in classes), sum(counts.values()))
        for key, counts in found.items()
    ]


def explained_variance(experiment, spec, path):
    """Share of the variance that the first components explain together, for the numbers asked for."""
    counts = spec["options"]["components"]
    return ("dataset", "components", "explained"), [
        (row["dataset"], int(row["components"]), float(row["explained"]))
        for row in _read(path)
        if int(row["components"]) in counts
    ]


def _read(path):
    with Path(path).open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))
