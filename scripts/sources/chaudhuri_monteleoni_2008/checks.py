"""Checks of Chaudhuri and Monteleoni (2008): bounds, the cost of privacy, and a printed spread."""

import itertools
import math

from checks.paired import fold_means, interval
from checks.printed import numbers
from checks.results import Missing
from checks.statements import Outcome
from sources.chaudhuri_monteleoni_2008 import excess_risk
from study.configuration.inputs import NOTHING, RESULTS
from study.configuration.kinds import check
from study.configuration.options import Method, Options, Point, Printed


class BoundRatio(Options):
    first: str
    second: str
    lambdas: list
    at_least: float = -math.inf
    at_most: float = math.inf


@check(NOTHING, BoundRatio)
def bound_ratio(results, *, first, second, lambdas, at_least, at_most):
    """The ratio of two bounds of `sources.chaudhuri_monteleoni_2008.excess_risk` lies in [at_least,
    at_most] at each of the `lambdas`.

    Both are evaluated at the source's n, d, epsilon and delta, which cancel in the ratio.
    """
    at = {"n": 14000, "d": 10, "epsilon": 0.1, "delta": 0.1}
    bounds = [excess_risk.BOUNDS[name] for name in (first, second)]
    ratios = {lam: bounds[0](lam=lam, **at) / bounds[1](lam=lam, **at) for lam in lambdas}
    values = ", ".join(f"{ratio:.4g} at lambda = {lam:g}" for lam, ratio in ratios.items())
    low, high = min(ratios.values()), max(ratios.values())
    threshold = at_least if math.isfinite(at_least) else at_most
    number = low if math.isfinite(at_least) else high
    return Outcome(
        at_least <= low and high <= at_most, f"{first}/{second}: {values}", number, threshold
    )


class NeverLower(Options):
    norms: list
    losses: list
    epsilons: list
    dimensions: list
    delta: float


@check(NOTHING, NeverLower)
def never_lower(results, *, norms, losses, epsilons, dimensions, delta):
    """Theorem 5's number of rows is never below theorem 4's, for every combination of these values. Both
    theorems have the same constant.
    norms: norms of the reference classifier.
    losses: allowed losses in excess of the reference classifier's loss.
    """
    ratios = []
    for norm, loss, epsilon, d in itertools.product(norms, losses, epsilons, dimensions):
        values = {"norm": norm, "loss": loss, "epsilon": epsilon, "d": d, "delta": delta}
        ratios.append(excess_risk.cm08_theorem_5(**values) / excess_risk.cm08_theorem_4(**values))
    equal = sum(ratio == 1 for ratio in ratios)
    text = (
        f"theorem 5's bound is {min(ratios):.4g} to {max(ratios):.4g} times theorem 4's over "
        f"{len(ratios)} combinations, and the same in {equal} of them"
    )
    return Outcome(min(ratios) >= 1, text, min(ratios), 1.0)


class DegradesLess(Point):
    first: list[Method]
    second: list[Method]
    without: list[Method]


@check(RESULTS, DegradesLess)
def degrades_less(results, *, first, second, without, **where):
    """As lambda falls, the cost of privacy rises less for the methods `first` than for `second`.

    Each list names one method per lambda, the largest lambda first. A method's cost is its error minus
    the error of the non-private method in `without` at the same lambda. The rise is this cost minus the
    cost at the first lambda. The claim holds if the 95 % interval of the rise of `first` minus the rise of
    `second`, paired by fold, is below zero at every later lambda on every data set. It fails if one
    interval is above zero.
    """
    frame = results.cells(methods=[*first, *second, *without], **where)
    verdicts, texts, worst = [], [], -math.inf
    for dataset, part in frame.groupby("dataset", sort=False):
        rows = {row["method"]: row for row in part.to_dict("records")}
        if set(first + second + without) - rows.keys():
            raise Missing(f"this run lacks a lambda of these methods on {dataset}")
        means = {name: fold_means(results, row, "error_mean") for name, row in rows.items()}
        if any(each is None for each in means.values()):
            raise Missing(f"there are no single draws of these methods on {dataset}")
        costs = [
            [means[name] - means[base] for name, base in zip(side, without, strict=True)]
            for side in (first, second)
        ]
        for k in range(1, len(without)):
            rises = [cost[k] - cost[0] for cost in costs]
            gap, low, high = interval(rises[0] - rises[1])
            verdicts.append(True if high < 0 else False if low > 0 else None)
            worst = max(worst, gap)
            texts.append(
                f"{dataset}, lambda = {rows[without[k]]['lambda']:g}: {rises[0].mean():.4g} against "
                f"{rises[1].mean():.4g}, difference {gap:.4g} [{low:.4g}, {high:.4g}]"
            )
    if not verdicts:
        raise Missing("this run has none of these methods")
    holds = False if False in verdicts else None if None in verdicts else True
    return Outcome(holds, "rise of what privacy costs: " + "; ".join(texts), worst, 0.0)


class PrintedSpread(Options):
    mean: Printed
    sd: Printed
    half: float
    count: int


@check(NOTHING, PrintedSpread)
def printed_spread(results, *, mean, sd, half, count):
    """The standard deviation printed for `count` non-negative numbers is impossible for their mean.
    Numbers with mean m spread most if all but one are 0; their standard deviation is then sqrt(count) m.
    half: half a unit of the mean's last printed digit.
    """
    values = numbers(results, mean, sd)
    most = math.sqrt(count) * (values[0] + half)
    text = (
        f"{mean} prints {values[0]:g}, at most {values[0] + half:g}: {count} numbers of that mean "
    )
    text += f"have a standard deviation of at most {most:.2g}; {values[1]:g} is printed"
    return Outcome(values[1] > most, text, values[1], most)


class CostFalls(Point):
    private: list[Method]
    without: list[Method]


@check(RESULTS, CostFalls)
def cost_falls(results, *, private, without, **where):
    """What privacy costs, a method's error minus that of the non-private method at the same lambda, falls
    as lambda rises.

    Each list names one method per lambda. The claim holds if the 95 % interval of the slope per factor of
    10, paired by fold, lies below zero on every data set, and fails if it lies above zero on one.
    """
    frame = results.cells(methods=[*private, *without], **where)
    verdicts, texts, slopes = [], [], []
    for dataset, part in frame.groupby("dataset", sort=False):
        rows = {row["method"]: row for row in part.to_dict("records")}
        if {*private, *without} - rows.keys():
            raise Missing(f"this run lacks a lambda of these methods on {dataset}")
        means = {name: fold_means(results, row, "error_mean") for name, row in rows.items()}
        if any(each is None for each in means.values()):
            raise Missing(f"there are no single draws of these methods on {dataset}")
        costs = [means[name] - means[base] for name, base in zip(private, without, strict=True)]
        x = [math.log10(rows[name]["lambda"]) for name in without]
        centred = [value - sum(x) / len(x) for value in x]
        weights = [value / sum(other**2 for other in centred) for value in centred]
        mean, low, high = interval(
            sum(weight * cost for weight, cost in zip(weights, costs, strict=True))
        )
        verdicts.append(True if high < 0 else False if low > 0 else None)
        slopes.append(mean)
        ends = ", ".join(
            f"{cost.mean():.4g} at lambda = {rows[name]['lambda']:g}"
            for name, cost in zip(without, costs, strict=True)
        )
        texts.append(
            f"{dataset}: {ends} (slope per factor of 10: {mean:.4g} [{low:.4g}, {high:.4g}])"
        )
    if not verdicts:
        raise Missing("this run has none of these methods")
    holds = False if False in verdicts else None if None in verdicts else True
    return Outcome(holds, "what privacy costs: " + "; ".join(texts), max(slopes), 0.0)


class LeastLoss(Options):
    norms: list
    rows: int
    at_least: float


@check(NOTHING, LeastLoss)
def least_loss(results, *, norms, rows, at_least):
    """Classifiers of these norms have a logistic loss of at least `at_least` on every row of norm 1, even
    on rows in their own direction, which fit best.
    """
    import numpy as np

    from dp import losses

    logistic, worst = losses.get("logistic"), math.inf
    for norm in norms:
        margins = norm * np.linspace(-1, 1, rows)
        worst = min(worst, float(np.min(logistic.value(margins))))
    text = (
        f"the least loss is {worst:.4g} at a norm of {max(norms):g}; wanted {at_least:.4g} at least"
    )
    return Outcome(worst >= at_least, text, worst, at_least)


class MinimiserMoves(Options):
    n: int
    lambdas: list
    at_most: float


@check(NOTHING, MinimiserMoves)
def minimiser_moves(results, *, n, lambdas, at_most):
    """One replaced row moves the minimiser of regularised logistic regression by at most `at_most` times
    2/(n lambda). The other rows are orthogonal to the one that is replaced, by itself with the other label,
    or they are all equal to it.
    """
    import numpy as np

    from dp.solvers.fits import l2

    ratios = []
    for lam in lambdas:
        for others in ((1.0, 0.0), (0.0, 1.0)):
            X = np.tile(others, (n, 1))
            X[-1] = (0.0, 1.0)
            y = np.where(np.arange(n) % 2, 1.0, -1.0)
            weights = []
            for label in (-1.0, 1.0):
                y[-1] = label
                found, info = l2(X, y, lam)
                if info["status"][0] != "ok":
                    return Outcome(None, f"a fit did not converge: {info['status'][0]}")
                weights.append(found[0])
            moved = float(np.linalg.norm(weights[0] - weights[1]))
            ratios.append(moved / (2 / (n * lam)))
    moved = f"{min(ratios):.4g} to {max(ratios):.4g} times 2/(n lambda)"
    text = f"one row of {n} replaced moves the minimiser by {moved}"
    return Outcome(max(ratios) <= at_most + 1e-9, text, max(ratios), at_most)
