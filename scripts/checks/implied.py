"""Finds the epsilon at which a measured curve has a given error."""

import math
from typing import NamedTuple

import numpy as np


class Implied(NamedTuple):
    """An epsilon and its interval; 0 means below all measured epsilons, and inf above all."""

    epsilon: float
    low: float
    high: float


def crossing(epsilons, errors, target):
    """The first and last epsilon at which a falling curve equals `target`, by interpolation in log epsilon.

    The two differ if the curve is level at the target. Both are 0 if the whole curve lies below the
    target, and inf if above. epsilons: increasing and positive. errors: non-increasing.
    """
    x, y = np.log(epsilons), np.asarray(errors, dtype=float)
    if target > y[0]:
        return 0.0, 0.0
    if target < y[-1]:
        return math.inf, math.inf
    at_least = np.flatnonzero(y >= target)[-1]
    at_most = np.flatnonzero(y <= target)[0]
    if at_most <= at_least:
        return float(epsilons[at_most]), float(epsilons[at_least])
    share = (y[at_least] - target) / (y[at_least] - y[at_most])
    epsilon = float(np.exp(x[at_least] + share * (x[at_most] - x[at_least])))
    return epsilon, epsilon


def implied_epsilon(epsilons, errors, low, high, target):
    """The `Implied` epsilon where the curve of mean errors equals `target`; None for fewer than two points.

    Isotonic regression first makes every curve non-increasing. low, high: the ends of the errors' 95 %
    intervals. The interval of the implied epsilon ends where these two curves cross the target.
    """
    from scipy.optimize import isotonic_regression  # slow to import

    def falling(values):
        return isotonic_regression(values, increasing=False).x

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
