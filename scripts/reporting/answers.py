"""The first part of the page (which method to use), from recommendations.csv and regret.csv."""

import math
from pathlib import Path

from dp.accounting import REPLACE_ONE
from reporting.recommendations import BEATEN, NOT_BEATEN, UNTUNED, VOID
from study import paths
from study.canonical import epsilon
from study.configuration.experiment import data_name
from study.jobs.files import read_csv

NOUNS = {"classes": "To learn classes", "numbers": "To learn a number"}
SETTINGS = {
    "rule": "by a rule of public numbers",
    "fixed": "a constant stated beforehand",
    "public": "chosen on public rows",
    "selected": "selected privately, and paid for",
    VOID: "not private, or seen before",
}
TABLE = ("regime", "task", "adjacency", "experiment")  # whose methods stand in one table
FEW = 2  # data sets, whose interval says hardly anything
FULL = (
    *("regime", "data set", "training rows", "epsilon", "adjacency", "standing", "method"),
    *("setting", "gain kept", "behind the best", "p", "beaten by", "excess", "metric"),
    *("delta", "CPU seconds", "MB", "rows for 95 %", "why"),
)
ACROSS = (
    *("regime", "task", "adjacency", "method", "data sets", "questions", "not beaten in"),
    *("regret", "relative rank", "shared questions", "not beaten in shared", "regret in shared"),
    *("CPU seconds", "MB"),
)


def answers(smaller=()):
    """What the section shows, None if nothing was recommended. smaller: names of experiments that ran at
    smaller sizes than the default run's, from which no method is recommended."""
    path, across = Path(paths.RECOMMENDATIONS()), Path(paths.ACROSS())
    if not (path.exists() and across.exists()):
        return None
    rows, methods = read_csv(path), read_csv(across)
    names = {row["dataset"]: data_name(row["dataset"]) for row in rows}
    small = sorted({row["experiment"] for row in rows}.intersection(smaller))
    return {
        "sentences": []
        if small
        else [*filter(None, map(sentence, _groups(methods))), *_voids(rows)],
        "smaller": [name.replace("_", " ") for name in small],
        "tables": [_matrix(at, own, names) for at, own in _tables(rows)],
        "across": {"columns": ACROSS, "rows": [_across(row) for row in methods]},
        "needed": _needed(rows, names),
        "full": {"columns": FULL, "rows": [_full(row, names) for row in rows]},
        "figure": paths.ACROSS("png"),
        "files": (path, across),
        "path": str(path),
        "stale": _stale(path, {row["experiment"] for row in rows}),
    }


def _stale(path, experiments):
    """Whether cells are newer than the recommendations from them, as after a run of one experiment."""
    cells = (Path(paths.CELLS(experiment=name)) for name in experiments)
    made = path.stat().st_mtime
    return any(cell.exists() and cell.stat().st_mtime > made for cell in cells)


def percent(text):
    """A share as a percentage with one decimal."""
    return "" if text == "" else f"{100 * float(text):.1f}\u00a0%"


def _groups(methods):
    """Methods that were compared with one another, on the most data sets first."""
    found = {}
    for row in methods:
        at = tuple(row[key] for key in TABLE)
        found.setdefault(at, []).append(row)
    groups = [group for group in found.values() if len(group) > 1]
    return sorted(groups, key=lambda group: (_first(group[0]), -_sets(group)))


def _first(row):
    """Sort key of a row's table: untuned methods come first, and replace-one before add-remove."""
    return row["regime"] != UNTUNED, row["adjacency"] != REPLACE_ONE, row["task"]


def _sets(group):
    return max(int(row["data_sets"]) for row in group)


def sentence(group):
    """A sentence about the method that is beaten least often, among methods that answer the same questions;
    None if no two do."""
    group = [row for row in group if row["shared_questions"]]
    if len(group) < 2:
        return None

    def strength(row):
        return -int(row["shared_not_beaten"]), float(row["shared_regret"])

    first = min(group, key=strength)
    second = min(group, key=lambda row: float(row["shared_regret"]))
    least = ", the least of all."
    if second is not first:
        least = (
            f"; the least is lost by {second['title']}, {percent(second['shared_regret'])}, which is "
            f"not beaten in {second['shared_not_beaten']} of {second['shared_questions']}."
        )
    sets = int(first["shared_data_sets"])
    ends = [percent(first[f"shared_regret_{end}"]) for end in ("low", "high")]
    interval = f" (95 % interval {ends[0]} to {ends[1]})" if ends[0] and sets > FEW else ""
    return {
        "task": NOUNS[first["task"]],
        "how": f"{first['regime']}, {first['adjacency']}",
        "method": first["title"],
        "text": f"is not beaten in {first['shared_not_beaten']} of {first['shared_questions']} "
        f"questions on {sets} data set{'s' if sets > 1 else ''}, which {len(group)} methods answer, "
        f"and loses {percent(first['shared_regret'])} of the gain against the best of each"
        f"{interval}{least}{_in_all(first)}{_cost(first)}",
    }


def _in_all(row):
    """The same of all questions that the method answers, if others do not answer them all."""
    if row["questions"] == row["shared_questions"]:
        return ""
    return (
        f" In all questions that it answers: not beaten in {row['not_beaten']} of "
        f"{row['questions']}, on {row['data_sets']} data sets."
    )


def _cost(row):
    seconds, memory = (float(row[k] or "nan") for k in ("cpu_seconds_per_release", "peak_mb"))
    if math.isnan(seconds) or math.isnan(memory):
        return ""
    return f" One of its releases takes {seconds:.2g} CPU seconds, and its jobs {memory:.0f} MB."


def _voids(rows):
    void = [row for row in rows if row["standing"] == VOID]
    if not void:
        return []
    ahead = sum(bool(row["behind_high"]) and float(row["behind_high"]) < 0 for row in void)
    return [
        {
            "task": "Void",
            "how": "not recommended whatever they reach",
            "method": f"{len({(r['experiment'], r['method']) for r in void})} methods",
            "text": f"stand in grey beside the others in {len(void)} places; in {ahead} of these they "
            "would have won.",
        }
    ]


def _tables(rows):
    found = {}
    for row in sorted(rows, key=_first):
        found.setdefault(tuple(row[key] for key in TABLE), []).append(row)

    def order(item):
        return _first(item[1][0]), -len({row["dataset"] for row in item[1]})

    return sorted(found.items(), key=order)


def _matrix(at, rows, names):
    """A table per regime, task, adjacency and experiment, of data sets against epsilons. Each cell has the
    methods that are not beaten and, in grey, the void ones that would have been ahead of them."""
    regime, task, adjacency, experiment = at
    epsilons = sorted({float(row["epsilon"]) for row in rows})
    lines = {}
    for row in rows:
        place = lines.setdefault((row["dataset"], int(row["train_size"])), {})
        place.setdefault(float(row["epsilon"]), []).append(row)
    return {
        "title": f"{NOUNS[task]}, {regime}, {adjacency}",
        "experiment": experiment,
        "main": regime == UNTUNED and adjacency == REPLACE_ONE,
        "epsilons": [epsilon(e) for e in epsilons],
        "rows": [
            {
                "dataset": names[dataset],
                "size": size,
                "cells": [_cell(place.get(e)) for e in epsilons],
            }
            for (dataset, size), place in sorted(lines.items(), key=lambda item: names[item[0][0]])
        ],
    }


def _cell(rows):
    if not rows:
        return None
    best = [row for row in rows if row["standing"] == NOT_BEATEN]
    ahead = [r for r in rows if r["standing"] == VOID and r["behind"] and float(r["behind"]) < 0]
    return {
        "best": [(row["title"], percent(row["kept"])) for row in best],
        "beaten": sum(row["standing"] == BEATEN for row in rows),
        "void": [
            (row["title"], f"{-100 * float(row['behind']):.2g} points more", row["why"])
            for row in sorted(ahead, key=lambda row: float(row["behind"]))
        ],
    }


def _needed(rows, names):
    """How many rows each competing method needs, once per data set, epsilon and adjacency."""
    found = {}
    for row in rows:
        if row["rows_are"] and not row["why"] and row["regime"] == UNTUNED:
            count = f"{float(row['rows_for_95_percent']):,.0f}"
            what = "" if row["rows_are"] == "interpolated" else f"{row['rows_are']} "
            key = tuple(row[k] for k in ("experiment", "dataset", "epsilon", "adjacency", "method"))
            found[key] = (
                names[row["dataset"]],
                row["epsilon"],
                row["adjacency"],
                row["title"],
                what + count,
            )
    return {
        "columns": ("data set", "epsilon", "adjacency", "method", "rows for 95 % of the gain"),
        "rows": sorted(found.values(), key=lambda row: row[:3]),
    }


def _interval(row, name, show):
    ends = [show(row[f"{name}_{end}"]) for end in ("low", "high")]
    return f"{show(row[name])} [{ends[0]}, {ends[1]}]" if all(ends) else show(row[name])


def _number(text):
    return "" if text == "" or math.isnan(float(text)) else f"{float(text):.3g}"


def _full(row, names):
    return (
        *(row["regime"], names[row["dataset"]], row["train_size"], row["epsilon"]),
        *(row["adjacency"], row["standing"], row["title"], SETTINGS[row["setting"]]),
        _interval(row, "kept", percent),
        _interval(row, "behind", percent),
        *(_number(row["p"]), row["beaten_by"].replace("_", " ")),
        _interval(row, "excess", _number),
        *(row["metric"].replace("_", " "), _number(row["delta_proven"])),
        *(_number(row["cpu_seconds_per_release"]), _number(row["peak_mb"])),
        f"{row['rows_are']} {row['rows_for_95_percent']}".strip(),
        row["why"],
    )


def _across(row):
    return (
        *(row["regime"], f"{row['task']} ({row['experiment'].replace('_', ' ')})"),
        *(row["adjacency"], row["title"], row["data_sets"], row["questions"], row["not_beaten"]),
        _interval(row, "regret", percent),
        _interval(row, "rank", _number),
        *(row["shared_questions"], row["shared_not_beaten"]),
        _interval(row, "shared_regret", percent),
        *(_number(row["cpu_seconds_per_release"]), _number(row["peak_mb"])),
    )
