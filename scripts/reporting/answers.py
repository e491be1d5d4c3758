"""Writes the page's first part, which recommends methods, from recommendations.csv and regret.csv."""

import json
from pathlib import Path

from dp_privacy.accounting import REPLACE_ONE
from reporting import dots
from reporting.recommendations import NO_GAIN, NOT_BEATEN, UNTUNED, VOID
from study import paths
from study.canonical import epsilon
from study.configuration.experiment import data_name
from study.jobs.files import read_csv, read_json

NOUNS = {"classes": "To learn two classes", "numbers": "To learn a number"}
# The mechanisms that a release can use: `dp_release.request.METHODS`, which the page does not import.
RELEASED = (
    *("noise_aware_logistic", "noise_aware_log_cosh", "gaussian_objective_perturbation"),
    "knorm_objective_perturbation",
)
TABLE = ("regime", "task", "adjacency", "experiment")  # columns that identify a table
FEW = 2  # with at most this many data sets, no interval is shown
# Columns that the form needs for every method.
KNOWN = ("title", "mechanism", "standing", "kept", "kept_low", "kept_high")


def answers(smaller=(), outdated=()):
    """The section's content, or None without recommendations.

    smaller: experiments with sizes below the defaults. If recommendations.csv has one of them, no method
    is recommended. outdated: files that do not follow from this run's cells.
    """
    path, across = Path(paths.RECOMMENDATIONS()), Path(paths.ACROSS())
    if not (path.exists() and across.exists()):
        return None
    rows = read_csv(path)
    names = {row["dataset"]: data_name(row["dataset"]) for row in rows}
    small = sorted({row["experiment"] for row in rows}.intersection(smaller))
    groups = [] if small else _groups(read_csv(across))
    main = {}
    for group in groups:
        if (group[0]["regime"], group[0]["adjacency"]) == (UNTUNED, REPLACE_ONE):
            main.setdefault(group[0]["task"], group)
    return {
        "leads": [sentence(group) | {"picture": picture(group)} for group in main.values()],
        "others": [sentence(group) for group in groups if group not in main.values()],
        "smaller": [name.replace("_", " ") for name in small],
        "questions": [] if small else questions(rows, Path(paths.results("data"))),
        "tables": [_matrix(at, own, names) for at, own in _tables(rows)],
        "needed": _needed(rows, names),
        "files": (path, across),
        "path": str(path),
        "stale": str(path) in outdated,
    }


def percent(text):
    return "" if text == "" else f"{100 * float(text):.1f}\u00a0%"


def shipped():
    """`questions` of the workflow's own data sets, if it has run in its own folder.

    A study's form uses these, because a choice by results on the study's own rows would cost privacy.
    """
    path = paths.HOME / "results/recommendations.csv"
    return questions(read_csv(path), path.parent / "data") if path.exists() else []


def questions(rows, folder):
    """The data of the page's form: all questions, with the competing methods that need no tuning.

    workflow/report/report.form.js chooses one of these methods. folder: the folder of prepared data.
    """
    by_question = {}
    for row in rows:
        if row["regime"] == UNTUNED and not row["why"]:
            keys = ("task", "adjacency", "experiment", "dataset", "train_size", "epsilon")
            by_question.setdefault(tuple(row[key] for key in keys), []).append(row)
    facts = {at[3]: read_json(folder / f"{at[3]}.json") for at in by_question}
    return [
        {
            **{"task": task, "adjacency": adjacency, "epsilon": float(e), "rows": int(size)},
            "data": facts[dataset].get("title") or dataset.replace("_", " "),
            "columns": len(facts[dataset]["columns"]),
            "methods": [[*(_plain(row[key]) for key in KNOWN), lacks(row)] for row in own],
        }
        for (task, adjacency, _, dataset, size, e), own in by_question.items()
    ]


def lacks(row):
    """What a release by default lacks of a row's method, such as "clip 0.75"; None if it is another method.

    Releases are for replace-one, n is public, and a rule gives lambda.
    """
    if row["mechanism"] not in RELEASED:
        return None
    options = json.loads(row["options"])
    same = {"lambda": "rule", "adjacency": REPLACE_ONE, "loss": {"log_cosh": {"tau": 0.25}}}
    left = [f"{key} {value}" for key, value in options.items() if same.get(key) != value]
    return " and ".join(left)


def _plain(text):
    try:
        return round(float(text), 4)
    except ValueError:
        return text


def _groups(methods):
    """Groups of methods that answer the same questions on several data sets, in the page's order.

    Within a regime, adjacency and task, groups with more data sets come first.
    """
    by_table = {}
    for row in methods:
        if row["shared_questions"] and int(row["shared_data_sets"]) > 1:
            by_table.setdefault(tuple(row[key] for key in TABLE), []).append(row)
    groups = [group for group in by_table.values() if len(group) > 1]
    return sorted(groups, key=lambda group: (_first(group[0]), -int(group[0]["shared_data_sets"])))


def _first(row):
    return row["regime"] != UNTUNED, row["adjacency"] != REPLACE_ONE, row["task"]


def sentence(group):

    def strength(row):
        return -int(row["shared_not_beaten"]), float(row["shared_regret"])

    first = min(group, key=strength)
    least = min(group, key=lambda row: float(row["shared_regret"]))
    sets, of = int(first["shared_data_sets"]), int(first["shared_questions"])
    ends = [percent(first[f"shared_regret_{end}"]) for end in ("low", "high")]
    interval = f" (95\u00a0% interval {ends[0]} to {ends[1]})" if ends[0] and sets > FEW else ""
    return {
        "task": NOUNS[first["task"]],
        "mechanism": first["mechanism"],
        "how": f"{first['regime']}, {first['adjacency']}",
        "method": first["title"],
        "text": f"No other method is significantly better in {first['shared_not_beaten']} of {of} "
        f"comparisons on {sets} data sets. Against the best of each, it loses "
        f"{percent(first['shared_regret'])} of what can be learnt without privacy{interval}"
        + (
            "."
            if least is first
            else f"; {least['title']} loses {percent(least['shared_regret'])}."
        ),
    }


def picture(group):
    """Each method's regret in a group, the smallest first, and how often the method is unbeaten."""
    rows = []
    for row in sorted(group, key=lambda row: float(row["shared_regret"])):
        mean, low, high = (row[f"shared_regret{end}"] for end in ("", "_low", "_high"))
        count, of = row["shared_not_beaten"], row["shared_questions"]
        bar = (100 * float(low), 100 * float(high)) if low else None
        rows.append(
            {
                "name": row["title"],
                "text": f"{percent(mean)}; {count} of {of}",
                "bar": bar,
                "marks": {"all" if count == of else "some": 100 * float(mean)},
            }
        )
    return dots.scaled(rows, unit="\u00a0%")


def _tables(rows):
    by_table = {}
    for row in sorted(rows, key=_first):
        by_table.setdefault(tuple(row[key] for key in TABLE), []).append(row)

    def order(item):
        return _first(item[1][0]), -len({row["dataset"] for row in item[1]})

    return sorted(by_table.items(), key=order)


def _matrix(at, rows, names):
    """A table of data sets against epsilons, for one regime, task, adjacency and experiment.

    A cell names the unbeaten methods and, in grey, void methods that would be ahead.
    """
    regime, task, adjacency, experiment = at
    epsilons = sorted({float(row["epsilon"]) for row in rows})
    lines = {}
    for row in rows:
        place = lines.setdefault((row["dataset"], int(row["train_size"])), {})
        place.setdefault(float(row["epsilon"]), []).append(row)
    return {
        "title": f"{NOUNS[task]}, {regime}, {adjacency}",
        "experiment": experiment,
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
        "none": "no gain" if any(r["standing"] == NO_GAIN for r in rows) else "none competes",
        "void": [
            (row["title"], percent(-float(row["behind"])), row["why"])
            for row in sorted(ahead, key=lambda row: float(row["behind"]))
        ],
    }


def _needed(rows, names):
    needed = {}
    for row in rows:
        if row["rows_are"] and not row["why"] and row["regime"] == UNTUNED:
            count = f"{float(row['rows_for_95_percent']):,.0f}"
            what = "" if row["rows_are"] == "interpolated" else f"{row['rows_are']} "
            key = tuple(row[k] for k in ("experiment", "dataset", "epsilon", "adjacency", "method"))
            data = names[row["dataset"]]
            needed[key] = (data, row["epsilon"], row["adjacency"], row["title"], what + count)
    return {
        "columns": ("data set", "epsilon", "adjacency", "method", "rows for 95 % of the gain"),
        "rows": sorted(needed.values(), key=lambda row: row[:3]),
    }
