"""Computes differences and slopes with intervals, paired over folds or data sets."""

import math

import numpy as np

from dp_privacy import intervals
from study.configuration.cell import Cell


def cell_of(row):
    """The cell of a row of results.csv."""
    return Cell(*(row[key] for key in Cell._fields))


def interval(values):
    """(mean, low, high) by Student's t over folds; low and high are NaN for a single fold."""
    mean, _, low, high = intervals.of_mean(np.asarray(values, dtype=float))
    return mean, low, high


def fold_means(results, row, column):
    """A cell's mean for each data set or, if there is only one, for each fold; None without draws.

    row: a row with the cell's coordinates.
    column: a column of results.csv; error_sd gives standard deviations of the draws, and error_sd_folds
    pseudo-values of the folds' standard deviation.
    """
    folds = column.endswith("_sd_folds")  # the standard deviation of folds' means
    name, _, what = column.removesuffix("_folds").rpartition("_")
    if what not in ("mean", "sd"):
        return None
    draws = results.draws(cell_of(row), name)
    if draws is None:
        return None
    if folds:
        empty = np.isnan(draws).all(axis=2).any()
        return None if empty else pseudo_values(np.nanmean(draws, axis=2))
    draws = draws[0] if len(draws) == 1 else draws.reshape(len(draws), -1)
    if what == "sd":
        enough = (~np.isnan(draws)).sum(axis=1).min() > 1
        return np.nanstd(draws, axis=1, ddof=1) if enough else None
    return None if np.isnan(draws).all(axis=1).any() else np.nanmean(draws, axis=1)


def pseudo_values(means):
    """Jackknife pseudo-values of the standard deviation of folds' means (data sets, folds).

    Each pseudo-value leaves out one data set or, if there is only one, one fold. Their mean estimates
    the standard deviation, with about the standard error of a mean of independent values (Miller,
    Jackknifing variances, Ann. Math. Statist. 39, 1968). None for fewer than three fold means.
    """
    groups = means if len(means) > 1 else means.T
    n = len(groups)
    if n < 2 or means.size < 3:
        return None
    without = np.array([np.delete(groups, k, axis=0).std(ddof=1) for k in range(n)])
    return n * groups.std(ddof=1) - (n - 1) * without


def difference(results, first, second, column, factor=1.0):
    """(mean, low, high) of first - factor x second, for two rows of the results on one data set.

    If both rows have individual draws, differences are paired by fold or by data set. Otherwise, intervals
    of means are combined as if independent (NaN if one is missing), and other columns are taken as exact.
    """
    pair = [fold_means(results, row, column) for row in (first, second)]
    if all(each is not None for each in pair) and len(pair[0]) == len(pair[1]):
        return interval(pair[0] - factor * pair[1])
    mean = first[column] - factor * second[column]
    name = column.removesuffix("_mean")
    halves = [
        (row.get(f"{name}_high", math.nan) - row.get(f"{name}_low", math.nan)) / 2
        for row in (first, second)
    ]
    half = math.hypot(halves[0], factor * halves[1]) if column.endswith("_mean") else 0.0
    return float(mean), float(mean - half), float(mean + half)


def slope(results, rows, along, column):
    """(slope, low, high) of a column per factor of 10 of `along`, by least squares on every fold.

    rows: points of a curve. If a point has no individual draws, the points' intervals are combined as if
    independent.
    """
    x = np.log10([row[along] for row in rows])
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    folds = [fold_means(results, row, column) for row in rows]
    if all(each is not None for each in folds) and len({len(each) for each in folds}) == 1:
        return interval(weights @ np.array(folds))
    name = column.removesuffix("_mean")
    mean = float(weights @ [row[column] for row in rows])
    halves = np.array([(row[f"{name}_high"] - row[f"{name}_low"]) / 2 for row in rows])
    half = float(np.sqrt(((weights * np.nan_to_num(halves)) ** 2).sum()))
    return mean, mean - half, mean + half
