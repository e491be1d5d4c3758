"""The tuned regularisation of every data set beside the published one."""

import csv
from pathlib import Path

from study.canonical import number
from study.jobs.files import read_json

COLUMNS = (
    *("dataset", "lambda_tuned", "error_tuned", "ties", "lambdas_tied", "lambda_published"),
    *("error_published", "tuned_on"),
)


def tuning(experiment, spec, paths):
    """One row per data set: the best lambda (the largest of its ties), all ties, their error, and the
    error at the published lambda, empty where the grid has no such value."""
    published = experiment.values.get("lambda_published")
    rows = []
    for dataset, path in paths.items():
        tuned = read_json(Path(path).with_suffix(".json"))
        with Path(path).open(newline="") as handle:
            errors = {float(row["lambda"]): row["error_mean"] for row in csv.DictReader(handle)}
        ties = sorted(tuned["ties"])
        rows.append(
            (
                *(dataset, tuned["lambda"], tuned["error"], len(ties)),
                " ".join(number(float(lam)) for lam in ties),
                "" if published is None else published,
                float(errors.get(published) or "nan"),
                tuned["tuned_on"],
            )
        )
    return COLUMNS, rows
