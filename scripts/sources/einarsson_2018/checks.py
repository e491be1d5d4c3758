"""Checks of claims of Einarsson (2018): the cost of steps against that of noise, and chosen lambdas."""

import math

from checks.paired import fold_means, interval
from checks.results import Missing
from checks.statements import Outcome
from study import canonical
from study.configuration.inputs import RESULTS
from study.configuration.kinds import check
from study.configuration.options import Method, Methods, Options, Sweeps


class StepsCostMore(Options):
    solved: Method
    noiseless: Method
    private: Method
    epsilons: list
    sweep: Sweeps | None = None


@check(RESULTS, StepsCostMore)
def steps_cost_more(results, *, solved, noiseless, private, epsilons, sweep):
    """At the largest training size, the steps of a descent cost more than its noise at these `epsilons`.

    The cost of the steps is the error of the descent without noise (`noiseless`) minus the minimiser's
    (`solved`). The cost of the noise is the error of the private descent (`private`) minus that of
    `noiseless`. The claim holds if the 95 % interval of the first cost minus the second, paired by
    simulation, lies above zero on every data set. It fails if one interval lies below zero.
    """
    frame = results.cells(
        methods=[solved, noiseless, private], sweep=sweep, train_size="largest"
    ).sort_values("epsilon")
    verdicts, texts, least = [], [], math.inf
    for dataset, rows in frame.groupby("dataset", sort=False):
        cells = {(row["method"], row["epsilon"]): row for row in rows.to_dict("records")}
        means = {key: fold_means(results, row, "error_mean") for key, row in cells.items()}
        base, end = means.get((noiseless, math.inf)), means.get((solved, math.inf))
        if base is None or end is None:
            continue
        steps, low, high = interval(base - end)
        texts.append(f"{dataset}: the steps cost {steps:.4g} [{low:.4g}, {high:.4g}]")
        for (method, epsilon), errors in means.items():
            if method != private or errors is None:
                continue
            noise, low, high = interval(errors - base)
            gap, least_gap, most = interval((base - end) - (errors - base))
            texts.append(
                f"the noise at epsilon = {canonical.epsilon(epsilon)} {noise:.4g} [{low:.4g}, {high:.4g}]"
            )
            if any(math.isclose(epsilon, wanted) for wanted in epsilons):
                verdicts.append(True if least_gap > 0 else False if most < 0 else None)
                least = min(least, gap)
    if not verdicts:
        raise Missing("this run lacks one of these methods, or its single draws")
    holds = False if False in verdicts else None if None in verdicts else True
    return Outcome(holds, "; ".join(texts), least, 0.0)


class LambdaFallsWithSize(Options):
    methods: Methods
    rows: int
    small: float
    share: float = 0.5
    sweep: Sweeps | None = None


@check(RESULTS, LambdaFallsWithSize)
def lambda_falls_with_size(results, *, methods, rows, small, share, sweep):
    """Searches choose a lambda above `small` for at least a `share` of the models with fewer than `rows`
    training rows, and at most `small` for all models with more rows.
    """
    frame = results.cells(methods=methods, sweep=sweep).sort_values("train_size")
    fewer = frame[frame["train_size"] < rows]
    more = frame[frame["train_size"] > rows]
    if fewer.empty or more.empty:
        raise Missing(f"this run has no models on both sides of {rows} rows")
    large = float((fewer["lambda"] > small).mean())
    holds = large >= share and bool((more["lambda"] <= small).all())
    listed = "; ".join(
        f"n = {size}: {', '.join(canonical.number(lam) for lam in group)}"
        for size, group in frame.groupby("train_size")["lambda"]
    )
    return Outcome(
        holds,
        f"chosen lambda of {', '.join(frame['method'].unique())}: {listed}; "
        f"a share {large:.2g} is above {small:g} below {rows} rows",
        large,
        share,
    )
