"""Accuracy of every cell next to the printed accuracy."""

import math

from study.canonical import epsilon
from study.configuration import printed_values
from study.configuration.inputs import CELLS
from study.configuration.kinds import table
from study.configuration.options import Comparison, Options

COLUMNS = (
    *("dataset", "method", "train_size", "epsilon", "accuracy_mean", "accuracy_sd_folds"),
    *("accuracy_sd", "accuracy_low", "accuracy_high", "published_mean", "published_sd"),
    *("difference", "status"),
)


class PrintedAccuracy(Options):
    published: Comparison | None = None


@table(CELLS, PrintedAccuracy)
def printed_accuracy(experiment, spec, frame):
    """One row per cell. accuracy_sd_folds is what the source calls sd; accuracy_sd is over all draws.

    difference: ours minus the printed mean, empty if the source printed nothing.
    """
    printed = {
        (
            *(value.dataset, value.method, value.train_size),
            math.inf if value.epsilon is None else value.epsilon,
        ): value
        for value in printed_values.values(experiment, spec.options["published"], frame)
    }
    rows = []
    for cell in frame.itertuples():
        theirs = printed.get((cell.dataset, cell.method, cell.train_size, cell.epsilon))
        mean, sd = (theirs.value, theirs.sd) if theirs else (math.nan, math.nan)
        rows.append(
            (
                *(cell.dataset, cell.method, cell.train_size, epsilon(cell.epsilon)),
                *(1 - cell.error_mean, cell.error_sd_folds, cell.error_sd),
                *(1 - cell.error_high, 1 - cell.error_low, mean, sd),
                *(1 - cell.error_mean - mean, cell.status),
            )
        )
    return COLUMNS, rows
