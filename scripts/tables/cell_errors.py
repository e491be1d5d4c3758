"""Test error, or regression metrics, of every cell, with standard deviations and intervals."""

from dp import metrics
from study.canonical import epsilon
from study.configuration.inputs import CELLS
from study.configuration.kinds import table

CELL = ("dataset", "method", "train_size", "epsilon")
TARGETS = ("r2", "mse", "mae", "d2", "deviance")
SPREADS = ("error_mean", "error_sd_folds", "error_sd", "error_low", "error_high")


@table(CELLS)
def errors(experiment, spec, frame):
    """One row per cell: mean, standard deviation over folds and over all draws, and 95 % interval.

    The metric is the test error; for regression, metrics are r2, mse and mae, and for counts, d2 and
    deviance.
    """
    frame = frame.assign(epsilon=frame["epsilon"].map(epsilon))
    numbers = [name + end for name in TARGETS for end in metrics.ENDS]
    shown = [name for name in (*SPREADS, *numbers) if frame[name].notna().any()]
    columns = (*CELL, *(shown or SPREADS), "status")
    return columns, frame[list(columns)].itertuples(index=False)
