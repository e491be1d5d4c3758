"""Computes differences between methods, paired by folds or data sets."""

import numpy as np

from study.jobs.summary import over_folds

AT = ["dataset", "train_size", "epsilon"]


def fold_means(draws, metric):
    """The mean per cell and replicate, without failed draws. Columns: AT, method, fold, value.

    draws: `study.jobs.summary.draws_frame`. fold: the number of the fold or, if there are several data
    sets, of the data set.
    """
    ok = draws[draws["status"] == "ok"]
    ok = ok.assign(fold=ok["replicate"]) if "replicate" in ok else ok
    means = ok.groupby([*AT, "method", "fold"], sort=False)[metric].mean()
    return means.rename("value").reset_index()


def differences(means, other):
    """One row per cell: its mean minus the mean of `other` on the same rows, with a 95 % interval.

    means: `fold_means`. other: a method's label; without privacy, it is the same at every epsilon. Columns:
    AT, method, mean, low, high, folds. Intervals are Student's t over folds, NaN for one fold. Folds that
    either method lacks are left out.
    """
    theirs = means[means["method"] == other].drop(columns="method")
    keys = [*AT, "fold"]
    if np.isinf(theirs["epsilon"]).all():
        theirs = theirs.drop(columns="epsilon")
        keys.remove("epsilon")
    both = means[means["method"] != other].merge(theirs, on=keys, suffixes=("", "_other"))
    both["difference"] = both["value"] - both["value_other"]
    rows = []
    for at, cell in both.groupby([*AT, "method"], sort=False):
        mean, _, low, high = over_folds(cell["difference"].to_numpy(), cell["fold"].to_numpy())
        rows.append((*at, mean, low, high, len(cell)))
    return type(means)(rows, columns=[*AT, "method", "mean", "low", "high", "folds"])
