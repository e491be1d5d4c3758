"""Checks of Chaudhuri and Monteleoni (2008): bounds, the cost of privacy, a proof, and a printed spread."""

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


class ProvenAsClaimed(Point):
    method: Method


@check(RESULTS, ProvenAsClaimed)
def proven_as_claimed(results, *, method, **where):
    """In every cell of `where`, the proven epsilon of a method is at most its claimed epsilon."""
    frame = results.cells(methods=method, **where)
    if frame.empty:
        raise Missing(f"this run has no cell of {method}")
    if "epsilon_proven" not in frame:
        raise Missing("the cells were not aggregated")
    excess = (frame["epsilon_proven"] / frame["epsilon_claimed"]).max()
    text = (
        f"in {len(frame)} cells of {method} the proven epsilon is at most {excess:.6g} times "
        f"the claimed one"
    )
    return Outcome(bool(excess <= 1 + 1e-9), text, float(excess), 1.0)
