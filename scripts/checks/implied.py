"""The epsilon at which a measured curve has a given error."""

import math
from typing import NamedTuple

import numpy as np


class Implied(NamedTuple):
    """epsilon and its interval [low, high]. 0 and inf mean beyond the ends of the measured curve."""

    epsilon: float
    low: float
    high: float


def falling(values):
    """The non-increasing sequence nearest to `values` in least squares (pool adjacent violators)."""
    blocks = []  # (sum, length), means strictly decreasing
    for value in values:
        total, length = float(value), 1
        while blocks and blocks[-1][0] / blocks[-1][1] <= total / length:
            total, length = total + blocks[-1][0], length + blocks[-1][1]
            blocks.pop()
        blocks.append((total, length))
    return np.concatenate([np.full(length, total / length) for total, length in blocks])


def crossing(epsilons, errors, target):
    """(first, last) epsilon at which a falling curve is at `target`; linear in log epsilon.

    epsilons: increasing and positive. errors: non-increasing. The two are equal if the curve falls
    strictly there, and span a level stretch at the target. (0, 0) if the whole curve lies below the
    target, (inf, inf) if it lies above.
    """
    x, y = np.log(epsilons), np.asarray(errors, dtype=float)
    if target > y[0]:
        return 0.0, 0.0
    if target < y[-1]:
        return math.inf, math.inf
    at_least = np.flatnonzero(y >= target)[-1]  # the last point not yet below
    at_most = np.flatnonzero(y <= target)[0]  # the first point no longer above
    if at_most <= at_least:
        return float(epsilons[at_most]), float(epsilons[at_least])
    share = (y[at_least] - target) / (y[at_least] - y[at_most])
    epsilon = float(np.exp(x[at_least] + share * (x[at_most] - x[at_least])))
    return epsilon, epsilon


def implied_epsilon(epsilons, errors, low, high, target):
    """`Implied` epsilon at which the curve of mean errors has the error `target`.

    The curve is made non-increasing first. The interval ends where the lower and the upper ends of the
    95 % intervals of the errors (low, high) cross the target. Returns None for fewer than two points.
    """
    order = np.argsort(epsilons)
    epsilons, errors, low, high = (
        np.asarray(values, dtype=float)[order] for values in (epsilons, errors, low, high)
    )
    known = np.isfinite(errors) & np.isfinite(epsilons)
    epsilons, errors, low, high = (values[known] for values in (epsilons, errors, low, high))
    if len(epsilons) < 2:
        return None
    first, last = crossing(epsilons, falling(errors), target)
    ends = [np.where(np.isnan(end), errors, end) for end in (low, high)]
    return Implied(
        first if first == last else math.sqrt(first * last),
        crossing(epsilons, falling(ends[0]), target)[0],
        crossing(epsilons, falling(ends[1]), target)[1],
    )
