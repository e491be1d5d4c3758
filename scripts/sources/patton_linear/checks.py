"""Checks of Patton's report: what single runs show, how much noise its scales give, and what they prove.

The source fixed one seed, so each of its numbers is of a single run: one division of the rows into folds,
and one draw of the noise per fold. A draw of a division is such a run here.
"""

import math

import numpy as np

from checks.paired import cell_of, interval
from checks.results import Missing
from checks.statements import Outcome
from dp_privacy.intervals import largest_share, least_share
from study.configuration.inputs import NOTHING, RESULTS
from study.configuration.kinds import check
from study.configuration.options import DataSet, Method, Options

RARE = 0.05  # what happens in a smaller share of single runs is not what the source's run was


def single_runs(results, method, dataset, epsilon):
    """The accuracy of each single run, one number per division and draw."""
    frame = results.cells(methods=method, datasets=dataset, epsilon=epsilon)
    if len(frame) != 1:
        raise Missing(f"this run has {len(frame)} cells of {method} on {dataset} at {epsilon:g}")
    draws = results.draws(cell_of(frame.iloc[0]), "error")
    if draws is None or np.isnan(draws).any():
        raise Missing(f"there are no single draws of {method} on {dataset} at {epsilon:g}")
    return 1 - draws.mean(axis=1)  # over folds


def among_runs(shown, text):
    """The `Outcome` of something that single runs show or not: whether it happens in more than `RARE`.

    shown: truth values. It is decided with 95 % confidence on either side (Clopper, Pearson).
    """
    count, runs = int(np.sum(shown)), np.size(shown)
    low, high = (float(end(count, runs, level=0.95)) for end in (least_share, largest_share))
    holds = True if low > RARE else False if high < RARE else None
    said = f"{text} in {count} of {runs} single runs ({low:.3g} at least, {high:.3g} at most)"
    return Outcome(holds, said, count / runs, RARE)


class EqualRows(Options):
    method: Method
    dataset: DataSet
    epsilons: list
    decimals: int
    then: float | None = None
    at_least: float = -math.inf


@check(RESULTS, EqualRows)
def equal_rows(results, *, method, dataset, epsilons, decimals, then, at_least):
    """Runs of one seed in which a method's accuracy is the same at all `epsilons`, to `decimals` digits,
    happen more often than one in twenty.
    then: an epsilon at which the accuracy is at least `at_least` in the same run.
    """
    runs = np.array([single_runs(results, method, dataset, epsilon) for epsilon in epsilons])
    rounded = np.round(runs, decimals)
    shown = (rounded == rounded[0]).all(axis=0)
    text = f"the accuracy of {method} is the same at epsilon = {', '.join(map(str, epsilons))}"
    if then is not None:
        shown &= single_runs(results, method, dataset, then) >= at_least
        text += f", and at least {at_least:g} at {then:g},"
    return among_runs(shown, text)


class NearInSingleRuns(Options):
    method: Method
    other: Method
    dataset: DataSet
    epsilon: float
    within: float


@check(RESULTS, NearInSingleRuns)
def near_in_single_runs(results, *, method, other, dataset, epsilon, within):
    """Runs of one seed in which the accuracies of a method and of a non-private one differ by at most
    `within` happen more often than one in twenty.
    """
    gaps = np.abs(
        single_runs(results, method, dataset, epsilon)
        - single_runs(results, other, dataset, epsilon)
    )
    text = f"{method} is within {within:g} of {other} at epsilon = {epsilon:g}"
    return among_runs(gaps <= within, text)


class FallsFrom(Options):
    method: Method
    dataset: DataSet
    epsilons: list
    first: float


@check(RESULTS, FallsFrom)
def falls_from(results, *, method, dataset, epsilons, first):
    """A method's error at epsilon = `first` is below that at the largest of the smaller `epsilons`, and its
    errors at these do not differ: the 95 % interval of each difference, paired by division, says so.
    """
    means = [
        single_runs(results, method, dataset, epsilon).mean(axis=1)
        for epsilon in (*epsilons, first)
    ]
    gaps = [interval(means[k] - means[-2]) for k in (*range(len(epsilons) - 1), -1)]
    *before, at = gaps
    flat = all(low <= 0 <= high for _, low, high in before)
    begins = True if at[1] > 0 else False if at[2] < 0 else None
    holds = False if not flat or begins is False else begins
    accuracies = ", ".join(
        f"{mean.mean():.4g} at {epsilon:g}"
        for mean, epsilon in zip(means, (*epsilons, first), strict=True)
    )
    change = f"{at[0]:+.4g} [{at[1]:.4g}, {at[2]:.4g}]"
    text = f"{method}: accuracy {accuracies}; from {epsilons[-1]:g} to {first:g} {change}"
    return Outcome(holds, text, at[0], 0.0)


class LaplaceIsLess(Options):
    columns: int
    deltas: list


@check(NOTHING, LaplaceIsLess)
def laplace_is_less(results, *, columns, deltas):
    """The source's Laplace noise has a smaller standard deviation than its Gaussian noise, at the same
    epsilon.

    Laplace noise has the scale S/epsilon, S = 2 (d + 1)^2 for d columns, and so sqrt(2) times as large a
    standard deviation. Gaussian noise has the deviation sqrt(2 ln(1.25/delta)) D/epsilon. The source states
    neither delta nor D. D may be S, or 2 (d + 1), by which records in [-1, 1] move the coefficients in L2,
    or 1. The claim is decided if it is the same for all of these.
    """
    laplace = math.sqrt(2) * 2 * (columns + 1) ** 2
    answers, texts = [], []
    for moved in (2 * (columns + 1) ** 2, 2 * (columns + 1), 1):
        deviations = [math.sqrt(2 * math.log(1.25 / delta)) * moved for delta in deltas]
        answers += [laplace < each for each in deviations]
        ends = f"{min(deviations):.4g}/epsilon to {max(deviations):.4g}/epsilon"
        texts.append(f"{ends} for a sensitivity of {moved:g}")
    holds = True if all(answers) else None if any(answers) else False
    text = (
        f"with {columns} columns, Laplace noise has the deviation {laplace:.4g}/epsilon, Gaussian "
    )
    return Outcome(holds, text + "; ".join(texts), laplace)


class GaussianLossExceeds(Options):
    epsilons: list
    delta: float
    at_least: float


@check(NOTHING, GaussianLossExceeds)
def gaussian_loss_exceeds(results, *, epsilons, delta, at_least):
    """The privacy loss of classical Gaussian noise exceeds epsilon with a probability of at least
    `at_least`. For pure epsilon-DP, that probability is 0. If neighbours are mu standard deviations of
    the noise apart, the loss is normal with mean mu^2/2 and standard deviation mu (Dong, Roth, Su 2022).
    """
    from scipy.stats import norm

    tails = []
    for epsilon in epsilons:
        mu = epsilon / math.sqrt(2 * math.log(1.25 / delta))
        tails.append(float(norm.sf(epsilon, mu**2 / 2, mu)))
    texts = [f"{p:.3g} at {e:g}" for p, e in zip(tails, epsilons, strict=True)]
    chances = ", ".join(texts)
    text = f"the loss exceeds the claimed epsilon with probability {chances} (delta = {delta:g})"
    return Outcome(min(tails) >= at_least, text, min(tails), at_least)
