"""Compute differences between methods, paired by folds or data sets."""

import numpy as np

from study.jobs.summary import over_folds

AT = ["dataset", "train_size", "epsilon"]


def fold_means(draws, metric):
    """A frame with the mean of a metric per cell and replicate, without failed draws.

    draws: the result of `summary.draws_frame`. Columns are AT, method, value and fold: the number of the
    fold or, if there are several data sets, of the data set.
    """
    ok = draws[draws["status"] == "ok"]
    ok = ok.assign(fold=ok["replicate"]) if "replicate" in ok else ok
    means = ok.groupby([*AT, "method", "fold"], sort=False)[metric].mean()
    return means.rename("value").reset_index()


def differences(means, other):
    """Each cell's mean minus the mean of the method `other` on the same rows, with a 95 % interval.

    means: the result of `fold_means`. If `other` is not private, it is compared at every epsilon. Columns
    are AT, method, mean, low, high and folds. Intervals are Student's t over the folds that both methods
    have, or NaN for a single fold.
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
