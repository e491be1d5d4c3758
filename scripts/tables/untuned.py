"""Compares a method with all others and counts the cells in which the method is not worse."""

from dp_privacy.intervals import largest_share, least_share
from study.canonical import epsilon
from study.configuration.inputs import DRAWS
from study.configuration.kinds import table
from study.configuration.options import Method, Options
from study.jobs import paired

EVERY = "every other"


class UntunedCells(Options):
    method: Method | None = None
    metric: str = "log_loss"


@table(DRAWS, UntunedCells)
def untuned_cells(experiment, spec, draws):
    """One row per cell and other method: the method's metric minus the other's, paired over replicates.

    options["metric"]: a metric for which smaller values are better. verdict: "better" or "worse" if the
    95 % interval of the difference excludes 0, else "within noise".
    """
    comparisons = _against(spec, draws)
    columns = ("dataset", "train_size", "epsilon", "other")
    columns += ("difference", "difference_low", "difference_high", "folds", "verdict")
    return columns, [(*at, epsilon(e), *rest) for *at, e, rest in comparisons]


class UntunedCount(Options):
    method: Method | None = None
    metric: str = "log_loss"


@table(DRAWS, UntunedCount)
def untuned_count(experiment, spec, draws):
    """The number of cells in which the method is not worse: one row per other method, and one for all.

    In the row for all other methods, the method is "worse" in a cell if another is better, and "better" if
    it beats them all. share_low, share_high: 95 % interval (Clopper, Pearson) of the share of cells in
    which it is not worse. Cells of a data set share rows, so a valid interval would be no narrower.
    """
    verdicts = {}
    for *at, e, (other, *_, verdict) in _against(spec, draws):
        verdicts.setdefault(other, {})[(*at, e)] = verdict
    cells = {at for by_cell in verdicts.values() for at in by_cell}
    together = {}
    for at in cells:
        there = {by_cell[at] for by_cell in verdicts.values() if at in by_cell}
        all_better = there == {"better"}
        together[at] = "worse" if "worse" in there else "better" if all_better else "within noise"
    rows = []
    for other, by_cell in (verdicts | {EVERY: together}).items():
        counts = [sum(v == name for v in by_cell.values()) for name in _VERDICTS]
        held, total = counts[0] + counts[1], len(by_cell)
        rows.append((other, total, *counts, held / total, *_interval(held, total)))
    columns = ("other", "cells", "better", "within_noise", "worse", "share_not_worse")
    return (*columns, "share_low", "share_high"), rows


_VERDICTS = ("better", "within noise", "worse")


def _against(spec, draws):
    """Rows (dataset, train_size, epsilon, (other, difference, low, high, folds, verdict))."""
    method, metric = spec.options["method"], spec.options["metric"]
    if method not in set(draws["method"]):
        raise ValueError(f"options.method must name a method of the sweep, not {method!r}")
    means = paired.fold_means(draws, metric)
    others = [name for name in dict.fromkeys(draws["method"]) if name != method]
    comparisons = []
    for other in others:
        rows = paired.differences(means[means["method"].isin([method, other])], other)
        for row in rows.itertuples(index=False):
            verdict = _VERDICTS[0 if row.high < 0 else 2 if row.low > 0 else 1]
            at = row.dataset, row.train_size, row.epsilon
            comparisons.append((*at, (other, row.mean, row.low, row.high, row.folds, verdict)))
    return comparisons


def _interval(held, total):
    return float(least_share(held, total)), float(largest_share(held, total))
