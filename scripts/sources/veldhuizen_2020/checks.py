"""Checks of Veldhuizen (2020): two data sets, ratios of printed errors, and an L1 minimiser that jumps."""

import math

from checks.cells import ok, spell
from checks.printed import numbers
from checks.results import Missing
from checks.statements import Outcome
from study.configuration.inputs import NOTHING, RESULTS
from study.configuration.kinds import check
from study.configuration.options import At, DataSet, Methods, Options, Sweeps


class Easier(Options):
    methods: Methods
    easier: DataSet
    harder: DataSet
    sweep: Sweeps | None = None
    train_size: At | None = None
    epsilon: At | None = None


@check(RESULTS, Easier)
def easier(results, *, methods, easier, harder, **where):
    """Every method's mean error is lower on the data set `easier` than on `harder`, at all common points.

    A point decides if the 95 % interval of the difference, from the two means' intervals as if they were
    independent, does not contain zero.
    """
    frames = [
        ok(results.cells(datasets=name, methods=methods, **where)) for name in (easier, harder)
    ]
    keys = ["method", "train_size", "epsilon"]
    pairs = frames[0].merge(frames[1], on=keys, suffixes=("", "_harder"))
    lacking = set(methods) - set(pairs["method"])
    if lacking:
        raise Missing(f"{', '.join(sorted(lacking))} has no point on both {easier} and {harder}")
    verdicts, texts, gaps = [], [], []
    for row in pairs.to_dict("records"):
        gap = row["error_mean"] - row["error_mean_harder"]
        halves = [(row[f"error_high{end}"] - row[f"error_low{end}"]) / 2 for end in ("", "_harder")]
        half = math.hypot(*(0.0 if math.isnan(each) else each for each in halves))
        verdicts.append(True if gap + half < 0 else False if gap - half >= 0 else None)
        gaps.append(gap)
        errors = f"{spell(row['error_mean'])} and {spell(row['error_mean_harder'])}"
        texts.append(f"{row['method']}: {errors}, difference {spell(gap)} +- {spell(half)}")
    holds = False if False in verdicts else None if None in verdicts else True
    return Outcome(holds, f"on {easier} and {harder}, {'; '.join(texts)}", max(gaps), 0.0)


class PrintedRatio(Options):
    numerators: list
    denominators: list
    at_least: float
    at_most: float


@check(NOTHING, PrintedRatio)
def printed_ratio(results, *, numerators, denominators, at_least, at_most):
    """The geometric mean of ratios of printed numbers lies in [at_least, at_most]."""
    pairs = zip(numbers(results, *numerators), numbers(results, *denominators), strict=True)
    ratios = [first / second for first, second in pairs]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    text = f"{mean:.3g} times on average, {min(ratios):.3g} to {max(ratios):.3g}"
    threshold = at_least if mean < at_least else at_most
    return Outcome(at_least <= mean <= at_most, text, mean, threshold)


class L1Jump(Options):
    n: int = 1000
    lam: float = 0.1


@check(NOTHING, L1Jump)
def l1_jump(results, *, n, lam):
    """The L1-regularised minimiser moves by more than 2/(n lam) when one record is replaced.

    The example has n - 1 records at (1, 1)/sqrt(2) with label 1, for which the two weights are
    interchangeable. The last record, which decides which weight is used, moves from (1, 0) to (0, 1).
    """
    import numpy as np

    from dp.solvers.fits import l1

    y = np.ones(n)
    minimisers = []
    for record in ((1.0, 0.0), (0.0, 1.0)):
        X = np.full((n, 2), np.sqrt(0.5))
        X[-1] = record
        weights, info = l1(X, y, lam)
        if info["status"][0] != "ok":
            return Outcome(None, f"the L1 fit did not converge: {info['status'][0]}")
        minimisers.append(weights[0])
    moved = float(np.linalg.norm(minimisers[0] - minimisers[1]))
    claimed = 2 / (n * lam)
    places = " to ".join(f"({w[0]:.4g}, {w[1]:.4g})" for w in minimisers)
    text = (
        f"one record of {n} replaced moves the L1 minimiser from {places}, by {moved:.4g}, "
        f"{moved / claimed:.4g} times the claimed {claimed:g}"
    )
    return Outcome(moved > claimed, text, moved, claimed)
