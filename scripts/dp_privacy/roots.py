"""Bisection for calibrations. Of the last interval, it returns the end that satisfies the condition."""

import math
from collections.abc import Callable


def least(
    holds: Callable, low: float, high: float, relative: float, most: float = math.inf
) -> float:
    """The smallest number at which `holds` is true, rounded up to a relative precision.

    `holds` is false at `low`. `high` is tried first, and doubled until `holds` is true. If doubling it
    exceeds `most`, the result is infinite.
    """
    while not holds(high):
        low, high = high, 2 * high
        if high > most:
            return math.inf
    while high - low > relative * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def largest(holds: Callable, low: float, high: float, relative: float) -> float:
    """The largest number in [low, high] at which `holds` is true, rounded down.

    `holds` must be true at `low`, which is not checked.
    """
    while high - low > relative * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
