"""The rule that decides whether a published number agrees with ours."""

import math
from typing import NamedTuple

CONFIDENCE = 0.95
RELATIVE, ABSOLUTE = 0.10, 0.01

# How far a printed number is from ours, nearest first.
EQUAL = "equal to the printed precision"
INSIDE = "inside"
CLOSE = "close"
OFF = "off"
# The verdict that follows.
REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
CALIBRATED = "calibrated"
NOT_TESTED = "not tested"
NOT_RUN = "not run"

RULE = (
    "distance: equal to the printed precision, where ours rounds to what is printed; inside the 95 % "
    "prediction interval of a run by the source's protocol, resampled from our draws; close, within 10 "
    "% of the published value or 0.01; off. Verdict: reproduced, where it is equal or inside as stated; "
    "reproduced if, where it is so under a reading of what the source leaves open (of several, the one "
    "that explains most of the source's values and claims); not reproduced by any of the readings "
    "tried, the main one among them; calibrated: parameters were chosen to match; not tested: computed "
    "on stand-in data, not comparable, or not reproduced with settings unlike the source's, such as "
    "those of a search with fewer values or simulations; not run: this run has no such result. A "
    "printed standard deviation is a value of its own and widens no interval. Luck: of the range of the "
    "comparison's printed values and ours, the share that the intervals of all readings tried cover "
    "together, where a number without any relation to ours would be a match; of a claim, one minus 1/2 "
    "to the number of readings tried, as if each tossed a coin"
)


class Sample(NamedTuple):
    """A mean over independent replicates: mean, their standard deviation, and how many they are."""

    mean: float
    sd: float
    replicates: int


def sd_of(half, replicates):
    """The standard deviation of replicates for which the mean's 95 % interval has this half width."""
    if replicates < 2 or math.isnan(half):
        return math.nan
    from scipy.special import stdtrit

    return half * math.sqrt(replicates) / float(stdtrit(replicates - 1, (1 + CONFIDENCE) / 2))


def prediction_interval(ours, replicates, limits=(-math.inf, math.inf)):
    """(low, high) that contains the mean of a new run of the same process with 95 % probability, for use if
    there are no single draws to resample (`checks.prediction`).

    The new run's mean of k' replicates differs from our mean of k by an error of variance
    s^2/k + s^2/k', so half the width is t_{k-1} s sqrt(1/k + 1/k').

    ours: `Sample` with at least two replicates; None is returned if it has fewer, or if no spread is known.
    replicates: k', at least 1. limits: the range of the quantity.
    """
    if ours.replicates < 2 or math.isnan(ours.sd) or replicates < 1:
        return None
    from scipy.special import (
        stdtrit,
    )  # 0.4 s to import, which checks of the configuration can spare

    variance = ours.sd**2 / ours.replicates + ours.sd**2 / replicates
    half = float(stdtrit(ours.replicates - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)
    return max(limits[0], ours.mean - half), min(limits[1], ours.mean + half)


def distance(published, ours, interval, *, half=0.0, absolute=ABSOLUTE):
    """(distance, reason) of a printed value from a computed one.

    interval: the range of another run's value, or None. half: half a unit of the last printed digit.
    absolute: the difference that counts as "close", besides 10 %.
    """
    rounding = 1e-12
    gap = abs(ours - published)
    if gap <= half + rounding * max(1.0, abs(published)):
        return EQUAL, f"{ours:.4g} rounds to what is printed" if gap > rounding else "equal"
    if interval and interval[0] - rounding <= published <= interval[1] + rounding:
        return INSIDE, f"within [{interval[0]:.4g}, {interval[1]:.4g}]"
    relative = f"differs by {gap:.3g}"
    if published:
        relative += f", {100 * gap / abs(published):.3g} %"
    outside = f"outside [{interval[0]:.4g}, {interval[1]:.4g}]" if interval else "no interval"
    near = gap <= max(RELATIVE * abs(published), absolute) + rounding
    return CLOSE if near else OFF, f"{relative}; {outside}"


def matches(found):
    """Whether a value at this distance is reproduced."""
    return found in (EQUAL, INSIDE)


def with_readings(as_stated, others):
    """The verdict. as_stated: whether the value is reproduced as stated. others: (label, whether it is
    reproduced if read so) for each reading that was tried; the first that agrees is named."""
    if as_stated:
        return REPRODUCED
    for label, agrees in others:
        if agrees:
            return f"{REPRODUCED} if {label}"
    tried = len(others) + 1
    return f"{NOT_REPRODUCED} by any of {tried} reading{'s' if tried > 1 else ''}"


def covered(intervals, low, high):
    """The share of [low, high] that lies in at least one of the intervals; NaN if the range is empty."""
    if not high > low:
        return math.nan
    total, reached = 0.0, low
    for start, end in sorted(intervals):
        start, end = max(start, reached), min(end, high)
        if end > start:
            total, reached = total + end - start, end
    return total / (high - low)


def coin(tried):
    """The probability that a claim holds under at least one of so many readings if each tosses a coin."""
    return 1 - 0.5**tried
