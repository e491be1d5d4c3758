"""Writes cells and recommendations as one versioned file (workflow/schemas/frontier.schema.yaml)."""

import json
import math

import pandas as pd

from dp import metrics
from reporting import recommendations
from study import paths
from study.configuration.experiment import data_path
from study.jobs.files import read_json

VERSION = 1  # increase this if readers of older files would misread newer files
MADE_WITH = ("commit", "uncommitted_changes", "python", "system", "packages")


def of(experiments, rows, across, seed):
    """The file's content. across: the rows that `recommendations.across` returned."""
    return plain(
        {
            "format": "frontier of differentially private linear models",
            "version": VERSION,
            "seed": seed,
            "experiments": [_experiment(experiment) for experiment in experiments],
            "data_sets": {
                name: _data(name)
                for experiment in experiments
                for name in sorted(experiment.datasets)
            },
            "cells": [cell for experiment in experiments for cell in _cells(experiment, rows)],
            "recommendations": _questions(rows),
            "across_data_sets": across,
        }
    )


def plain(value):
    """A value for JSON, with "inf" or "-inf" for infinities and null for NaN."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _experiment(experiment):
    made = read_json(paths.PROVENANCE(experiment=experiment.folder))
    return {
        "name": experiment.name,
        "title": experiment.title,
        "repetitions": {
            "of": experiment.repetitions,
            "count": experiment.values[experiment.repetitions],
        },
        "draws": experiment.restarts,
        "made_with": {key: made[key] for key in MADE_WITH},
    }


def _data(name):
    meta = read_json(data_path(name, "json"))
    return {
        "rows": meta["rows"],
        "columns": len(meta["columns"]),
        "bound": meta["bound"],
        "looked_at_private_rows": list(meta["private_rows"]),
        **({"unit": meta["unit"]} if meta.get("unit") else {}),
    }


def _cells(experiment, rows):
    costs = {
        tuple(row[key] for key in ("dataset", "method", "train_size", "epsilon")): row
        for row in rows
        if row["experiment"] == experiment.name
    }
    frame = pd.read_csv(paths.CELLS(experiment=experiment.folder))
    for row in frame.to_dict("records"):
        cost = costs.get(
            tuple(row[key] for key in ("dataset", "method", "train_size", "epsilon")), {}
        )
        yield {
            **{key: row[key] for key in ("experiment", "dataset", "method", "mechanism")},
            "options": json.loads(row["options"]),
            **{key: row[key] for key in ("train_size", "epsilon", "delta", "lambda", "status")},
            "metrics": {
                name: [row[name + end] for end in metrics.ENDS]
                for name in metrics.ALL
                if not math.isnan(row[f"{name}_mean"])
            },
            "guarantee": {
                "epsilon_claimed": row["epsilon_claimed"],
                "epsilon_proven": row["epsilon_proven"],
                "delta_proven": row["delta_proven"],
                "adjacency": row["adjacency"],
                "reason": row["reason"],
            },
            "cost": {
                key: cost.get(key, math.nan) for key in ("cpu_seconds_per_release", "peak_mb")
            },
        }


def _questions(rows):
    questions = {}
    for row in rows:
        at = tuple(row[key] for key in recommendations.QUESTION)
        questions.setdefault(at, []).append(
            {k: v for k, v in row.items() if k not in recommendations.QUESTION}
        )
    return [
        dict(zip(recommendations.QUESTION, at, strict=True)) | {"methods": methods}
        for at, methods in questions.items()
    ]
