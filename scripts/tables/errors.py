"""Test error of every cell, as papers print it and with its interval."""

from study.canonical import epsilon

COLUMNS = (
    *("dataset", "method", "train_size", "epsilon", "error_mean", "error_sd_folds", "error_sd"),
    *("error_low", "error_high", "status"),
)


def errors(experiment, spec, frame):
    """One row per cell: mean, standard deviation over folds and over all draws, 95 % interval."""
    frame = frame.assign(epsilon=frame["epsilon"].map(epsilon))
    return COLUMNS, frame[list(COLUMNS)].itertuples(index=False)
