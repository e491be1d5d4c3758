"""Tables of Veldhuizen (2020)."""

import math

from study.canonical import epsilon
from study.configuration import printed_values
from study.configuration.inputs import ANALYSIS, CELLS
from study.configuration.kinds import table
from study.configuration.options import Comparison, Options

COLUMNS = (
    *("dataset", "method", "train_size", "epsilon", "error_mean", "error_low", "error_high"),
    *("error_sd_folds", "error_sd", "published", "difference", "closest", "status"),
)


class PublishedErrors(Options):
    published: Comparison | None = None


@table(CELLS, PublishedErrors)
def published_errors(experiment, spec, frame):
    """One row per cell, with our error, the printed error and their difference (ours minus printed).
    The column closest is 1 at the epsilon whose error is nearest to the printed error, and 0 elsewhere.
    published, difference and closest are empty if the source printed nothing. If the source does not
    state its epsilon, the printed value is repeated at every epsilon, and closest marks the epsilon that
    this value implies.
    """
    printed = {
        (value.dataset, value.method, value.train_size): value.value
        for value in printed_values.values(experiment, spec.options["published"], frame)
    }
    rows = []
    for at, cells in frame.groupby(["dataset", "method", "train_size"], sort=False):
        value = printed.get(at, math.nan)
        cells = cells.assign(published=value, difference=cells["error_mean"] - value)
        distance = cells["difference"].abs()
        cells["closest"] = "" if distance.isna().all() else (distance == distance.min()).astype(int)
        cells["epsilon"] = cells["epsilon"].map(epsilon)
        rows += cells[list(COLUMNS)].itertuples(index=False)
    return COLUMNS, rows


SECONDS = (
    *("dataset", "procedure", "draws", "mode", "seconds_per_fit", "fastest", "slowest"),
    *("times_plain", "times_scikit_learn"),
)


@table(ANALYSIS)
def timing(experiment, spec, path):
    """One row per data set, procedure and mode: median, least and largest seconds per fit, and ratios.

    mode: one fit at a time, or batched. Ratios compare minimum times, because other work on the machine
    can only lengthen a run. They are relative to `plain`, this project's certified non-private fit, and to
    scikit-learn's LogisticRegression.
    """
    import pandas as pd

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
    return SECONDS, rows
