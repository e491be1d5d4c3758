"""One method against each of the others, cell by cell, and in how many cells it holds its own."""

from scipy.special import betaincinv

from study.canonical import epsilon
from study.jobs import paired

CONFIDENCE = 0.95
EVERY = "every other"


def untuned_cells(experiment, spec, draws):
    """One row per cell and other method: the method's metric less the other's, paired over replicates.

    options: method; metric, less of which is better. verdict: "better" or "worse" where the 95 % interval
    leaves out 0, else "within noise".
    """
    found = _against(spec, draws)
    columns = ("dataset", "train_size", "epsilon", "other")
    columns += ("difference", "difference_low", "difference_high", "folds", "verdict")
    return columns, [(*at, epsilon(e), *rest) for *at, e, rest in found]


def untuned_count(experiment, spec, draws):
    """One row per other method, and one for all: in how many cells the method is not worse.

    Against every other it is "worse" in a cell where it is worse than some, "better" where it is better
    than all. share_low, share_high: 95 % interval (Clopper, Pearson) of the share of cells in which it
    is not worse, as if cells were drawn independently; those of one data set share their rows, so that
    it is the narrowest interval that could hold.
    """
    verdicts = {}
    for *at, e, (other, *_, verdict) in _against(spec, draws):
        verdicts.setdefault(other, {})[(*at, e)] = verdict
    cells = {at for each in verdicts.values() for at in each}
    together = {}
    for at in cells:
        there = {each[at] for each in verdicts.values() if at in each}
        all_better = there == {"better"}
        together[at] = "worse" if "worse" in there else "better" if all_better else "within noise"
    rows = []
    for other, each in (verdicts | {EVERY: together}).items():
        counts = [sum(v == name for v in each.values()) for name in _VERDICTS]
        held, total = counts[0] + counts[1], len(each)
        rows.append((other, total, *counts, held / total, *_interval(held, total)))
    columns = ("other", "cells", "better", "within_noise", "worse", "share_not_worse")
    return (*columns, "share_low", "share_high"), rows


_VERDICTS = ("better", "within noise", "worse")


def _against(spec, draws):
    """(dataset, train_size, epsilon, (other, difference, low, high, folds, verdict)) in order."""
    method, metric = spec["options"]["method"], spec["options"]["metric"]
    if method not in set(draws["method"]):
        raise ValueError(f"options.method must name a method of the sweep, not {method!r}")
    means = paired.fold_means(draws, metric)
    others = [name for name in dict.fromkeys(draws["method"]) if name != method]
    found = []
    for other in others:
        rows = paired.differences(means[means["method"].isin([method, other])], other)
        for row in rows.itertuples(index=False):
            verdict = _VERDICTS[0 if row.high < 0 else 2 if row.low > 0 else 1]
            at = row.dataset, row.train_size, row.epsilon
            found.append((*at, (other, row.mean, row.low, row.high, row.folds, verdict)))
    return found


def _interval(held, total):
    """Clopper and Pearson's, of a share."""
    tail = (1 - CONFIDENCE) / 2
    low = betaincinv(held, total - held + 1, tail) if held else 0.0
    high = betaincinv(held + 1, total - held, 1 - tail) if held < total else 1.0
    return float(low), float(high)
