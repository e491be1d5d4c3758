"""Seconds per fit, and how they compare with plain logistic regression."""

import pandas as pd

COLUMNS = (
    *("dataset", "procedure", "draws", "mode", "seconds_per_fit", "fastest", "slowest"),
    *("times_plain", "times_scikit_learn"),
)


def timing(experiment, spec, path):
    """One row per data set, procedure and mode: median, least and largest seconds per fit, and the least
    as a multiple of that of `plain`, this project's certified fit without privacy, and of
    `scikit_learn`, that library's LogisticRegression as it comes.

    Multiples are of the least seconds, because other work on the machine adds to the others.
    """
    raw = pd.read_csv(path)
    rows = []
    for dataset, of_dataset in raw.groupby("dataset", sort=False):
        groups = of_dataset.groupby(["procedure", "draws"], sort=False)["seconds"]
        per_fit = {key: seconds / key[1] for key, seconds in groups}
        plain, library = (per_fit[name, 1].min() for name in ("plain", "scikit_learn"))
        for (procedure, draws), seconds in per_fit.items():
            least = seconds.min()
            rows.append(
                (
                    *(dataset, procedure, draws),
                    "one fit at a time" if draws == 1 else "batched",
                    *(seconds.median(), least, seconds.max(), least / plain, least / library),
                )
            )
    return COLUMNS, rows
