"""Run files of cells to one row per cell."""

import math

import pandas as pd
from scipy.special import stdtrit

CONFIDENCE = 0.95


def read_cell(path):
    """Draws of one run file, a data frame with the columns that `scripts/run.py` writes.

    Raises ValueError where it has none.
    """
    draws = pd.read_csv(path)
    if draws.empty:
        raise ValueError(f"{path} has no draws: delete it and run again")
    return draws


def summarise(draws):
    """Mean, spread and 95 % interval of the test error of one cell.

    Where its mechanism reports the training error, the same of that.

    The fold is the replicate: draws of the noise on one fold share its training and test rows, so
    they are not independent data. The interval is Student's t over the folds' means, at least 0 and
    at most 1. Failed draws are counted in `status` and enter no mean.
    """
    ok = draws["status"] == "ok"
    mean, sd_folds, low, high = _over_folds(draws, "error", ok)
    training = {}
    if "train_error" in draws:  # of mechanisms that report it
        train, _, train_low, train_high = _over_folds(draws, "train_error", ok)
        training = {
            "train_error_mean": train,
            "train_error_low": train_low,
            "train_error_high": train_high,
        }
    return training | {
        "folds": draws["fold"].nunique(),
        "restarts": int(draws["restart"].max()) + 1,
        "error_mean": mean,
        "error_sd": draws["error"].where(ok).std(ddof=1),
        "error_sd_folds": sd_folds,
        "error_low": low,
        "error_high": high,
        "excess_risk_mean": draws["excess_risk"].where(ok).mean(),
        "gradient_norm_max": draws["gradient_norm"].max(),
        "status": _status(draws["status"]),
    }


def _over_folds(draws, column, ok):
    """(mean, standard deviation, low, high) of the folds' means of a column."""
    folds = draws[column].where(ok).groupby(draws["fold"]).mean().dropna()
    mean = folds.mean() if len(folds) else math.nan
    sd = folds.std(ddof=1) if len(folds) > 1 else math.nan
    half = stdtrit(len(folds) - 1, (1 + CONFIDENCE) / 2) * sd / math.sqrt(len(folds) or 1)
    if math.isnan(half):
        return mean, sd, math.nan, math.nan
    return mean, sd, max(0.0, mean - half), min(1.0, mean + half)


def _status(status):
    failed = status[status != "ok"]
    if failed.empty:
        return "ok"
    counts = sorted(failed.value_counts().items())
    return ", ".join(f"{count} of {len(status)} {kind}" for kind, count in counts)


def cells_frame(experiment, cells):
    """One row per cell: its coordinates and `summarise` of its run file."""
    rows = [cell._asdict() | summarise(read_cell(experiment.run_path(cell))) for cell in cells]
    return pd.DataFrame(rows)


def draws_frame(experiment, cells):
    """One row per draw: its cell's coordinates and the columns of its run file."""
    frames = [read_cell(experiment.run_path(cell)).assign(**cell._asdict()) for cell in cells]
    return pd.concat(frames, ignore_index=True)
