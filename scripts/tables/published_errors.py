"""Test error of every cell beside the value that the source printed."""

import math

from study.canonical import epsilon
from study.configuration import printed_values

COLUMNS = (
    *("dataset", "method", "train_size", "epsilon", "error_mean", "error_low", "error_high"),
    *("error_sd_folds", "error_sd", "published", "difference", "closest", "status"),
)


def published_errors(experiment, spec, frame):
    """One row per cell. difference: ours minus the printed value. closest: 1 at the epsilon whose error
    is nearest to it, 0 at the others; all three are empty where the source printed nothing.

    If the source does not state the epsilon of its table, the printed value stands beside every epsilon,
    and `closest` shows which one it implies.
    """
    printed = {
        (value.dataset, value.method): value.value
        for value in printed_values.values(experiment, spec["options"]["published"])
    }
    rows = []
    for (dataset, method), cells in frame.groupby(["dataset", "method"], sort=False):
        value = printed.get((dataset, method), math.nan)
        cells = cells.assign(published=value, difference=cells["error_mean"] - value)
        distance = cells["difference"].abs()
        cells["closest"] = "" if distance.isna().all() else (distance == distance.min()).astype(int)
        cells["epsilon"] = cells["epsilon"].map(epsilon)
        rows += cells[list(COLUMNS)].itertuples(index=False)
    return COLUMNS, rows
