"""Bisection for calibrations: the returned end was tried, and holds."""

import math
from collections.abc import Callable


def least(
    holds: Callable, low: float, high: float, relative: float, most: float = math.inf
) -> float:
    """The least number at which `holds` is true, to a relative precision, rounded up.

    low: a number at which it is false. high: the first tried number, doubled until it is true. Above
    `most`, the result is infinite.
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
    """The largest number in [low, high] at which `holds` is true, rounded down. It is true at `low`."""
    while high - low > relative * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
