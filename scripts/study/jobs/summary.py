"""Summarise each cell's run file in one row."""

import math

import numpy as np

from dp import metrics
from dp_privacy import intervals
from study import paths


def read_cell(path):
    """The draws in a run file. Raises ValueError if there are none."""
    import pandas as pd

    draws = pd.read_csv(path)
    if draws.empty:
        raise ValueError(f"{path} has no draws: delete it and run again")
    return draws


def replicate_of(draws):
    """For each draw, the number of its data set or division if there are several, otherwise of its fold."""
    several = "data_set" in draws and draws["data_set"].nunique() > 1
    return draws["data_set" if several else "fold"].to_numpy()


def interval_over(experiment, data_sets):
    if data_sets > 1:
        return experiment.repeated(data_sets)
    return experiment.repetitions


def summarise(draws):
    """Mean and 95 % interval of each metric of `dp.metrics.ALL` for one cell; NaN for missing metrics.

    The interval is Student's t over the means of replicates (see `replicate_of`), limited to the metric's
    range. Draws on one fold are not independent, because they share its rows. Nor are folds of a simulated
    data set. Means leave out failed draws, which `status` counts.
    """
    # For tens of thousands of cells, arrays are faster than pandas.
    status = draws["status"].to_numpy(dtype=str)
    ok = status == "ok"
    replicate, fold = replicate_of(draws), draws["fold"].to_numpy()
    data_sets = int(draws["data_set"].max()) + 1 if "data_set" in draws else 1
    distinct_fold = (
        fold if data_sets == 1 else fold + draws["data_set"].to_numpy() * (fold.max() + 1)
    )
    error, excess_risk = (
        _where(ok, draws[column]) if column in draws else np.full(len(ok), math.nan)
        for column in ("error", "excess_risk")
    )
    summary = {
        "error_sd": _sd(_numbers(error)),
        "error_sd_folds": over_folds(error, distinct_fold)[1],
    }
    for name, ends in (metrics.ALL | {"train_error": (0, 1)}).items():
        values = [math.nan] * 3
        if name in draws:
            values = over_folds(_where(ok, draws[name]), replicate, *ends)
            values = values[0], *values[2:]
        elif name == "train_error":  # not every mechanism reports the training error
            continue
        summary |= dict(zip((name + end for end in metrics.ENDS), values, strict=True))
    return summary | {
        "folds": len(np.unique(fold)),
        "restarts": int(draws["restart"].max()) + 1,
        "data_sets": data_sets,
        "excess_risk_mean": _mean(_numbers(excess_risk)),
        "gradient_norm_max": draws["gradient_norm"].max(),
        "status": _status(status, ok),
    }


def _where(ok, column):
    return np.where(ok, column.to_numpy(dtype=float), math.nan)


def _numbers(values):
    return values[~np.isnan(values)]


def _mean(values):
    return float(values.mean()) if len(values) else math.nan


def _sd(values):
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def over_folds(values, fold, least=-math.inf, most=math.inf):
    """(mean, standard deviation, low, high) of the replicates' means, ignoring NaN."""
    there = ~np.isnan(values)
    counts = np.bincount(fold[there])
    sums = np.bincount(fold[there], weights=values[there])
    means = sums[counts > 0] / counts[counts > 0]
    mean, sd, low, high = intervals.of_mean(means)
    return mean, sd, max(low, least), min(high, most)


def _status(status, ok):
    if ok.all():
        return "ok"
    kinds, counts = np.unique(status[~ok], return_counts=True)
    return ", ".join(
        f"{count} of {len(status)} {kind}" for kind, count in zip(kinds, counts, strict=True)
    )


def cells_frame(experiment, cells):
    import pandas as pd

    rows = [cell._asdict() | summarise(read_cell(experiment.run_path(cell))) for cell in cells]
    return pd.DataFrame(rows)


def results_frame(experiment, cells):
    """The rows of results.csv for these cells. Varied options are strings; NaN if a method lacks them."""
    import pandas as pd

    text = {name: str for name in experiment.varied() if name != "lambda"}
    path = paths.CELLS(experiment=experiment.folder)
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=text)
    keys = ["dataset", "method", "train_size", "epsilon"]
    wanted = pd.DataFrame(cells, columns=keys)
    return wanted.merge(frame, on=keys)


def draws_frame(experiment, cells):
    import pandas as pd

    frames = []
    for cell in cells:
        draws = read_cell(experiment.run_path(cell))
        frames.append(draws.assign(**cell._asdict(), replicate=replicate_of(draws)))
    return pd.concat(frames, ignore_index=True)
