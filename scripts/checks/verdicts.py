"""The rule that decides whether a published number agrees with ours."""

import math
from typing import NamedTuple

from dp.intervals import student

RELATIVE, ABSOLUTE = 0.10, 0.01

# How far a printed number is from ours, nearest first.
EQUAL = "equal to the printed precision"
INSIDE = "inside"
CLOSE = "close"
OFF = "off"
# The verdict that follows.
REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
TOO_WIDE = "too wide to decide"
UNDECIDED = "undecided"
NOT_EXCLUDED = "not excluded"
CALIBRATED = "calibrated"
NOT_TESTED = "not tested"
NOT_RUN = "not run"
# On the page alone.
NOT_JUDGED = "not judged"
NOT_DECIDED = "not decided yet"

# What each word says, for readers.
RULE = (
    ("equal to the printed precision", "our number rounds to the printed one"),
    ("inside", "the printed number is within the prediction interval"),
    ("close", "within 10 % of the printed number, or within 0.01"),
    ("off", "farther away"),
    ("reproduced", "equal or inside, with settings as the source states them"),
    (
        "reproduced if ...",
        "equal or inside only under the named reading of what the source leaves open; of several such "
        "readings, the one that explains most of the source",
    ),
    ("not reproduced by any of k readings", "neither equal nor inside under any of them"),
    (
        "too wide to decide",
        "inside, but a number too far away would be inside, too: half the interval is wider than the "
        "printed standard deviation. Where none is printed, the limit is 10 % of the number; for an error "
        "or accuracy, 10 % of it or of its complement, whichever is less, and 0.01 at least; for a "
        "printed standard deviation, half of it",
    ),
    (
        "undecided",
        "an interval leaves a claim open; or the source's model without noise is not ours under any "
        "reading, so that its numbers with noise are about another model",
    ),
    ("not excluded", "all values that were tried of a setting tie"),
    ("calibrated", "our settings were chosen to match the number"),
    (
        "not tested",
        "this run has other data, another protocol or a smaller search than the source, or lacks what a "
        "check needs",
    ),
    ("not run", "this run has no such result"),
    ("not judged", "this run is smaller than the default one"),
    ("not decided yet", "the run is not finished"),
    (
        "luck",
        "how often a number unrelated to ours would agree: the share of the range of printed numbers and "
        "ours that the intervals of all readings cover",
    ),
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
    return half * math.sqrt(replicates) / student(replicates)


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
    variance = ours.sd**2 / ours.replicates + ours.sd**2 / replicates
    half = student(ours.replicates) * math.sqrt(variance)
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
    """Whether a value at this distance is equal to the printed one, or inside."""
    return found in (EQUAL, INSIDE)


def margin(published, sd=None, *, share=False, spread=False):
    """How far from ours a value must fail, if that ours agrees is to say something.

    sd: printed with it. share: whether it is an error or an accuracy, for which 0.05 and 0.95 are the same.
    spread: whether it is itself a standard deviation.
    """
    if spread:
        return published / 2
    if sd:
        return sd
    nearest = min(published, 1 - published) if share else abs(published)
    return max(RELATIVE * nearest, ABSOLUTE if share else 0.0)


def too_wide(interval, margin):
    """Whether a value that is `margin` from the middle of an interval would still be inside."""
    return interval is not None and interval[1] - interval[0] > 2 * margin * (1 + 1e-9)


def with_readings(tried, still_open):
    """The verdict. tried: (reading, "yes", "no" or "" if it is open) for each that is about the source's
    model, the stated one first if it is, called "". still_open: the verdict of what is open.

    What is open as stated is not asked of readings. Of those that agree the first is named.
    """
    if not tried:
        return UNDECIDED
    if tried[0] == ("", ""):
        return still_open
    for label, holds in tried:
        if holds == "yes":
            return f"{REPRODUCED} if {label}" if label else REPRODUCED
    if "" in [holds for _, holds in tried]:
        return still_open
    return f"{NOT_REPRODUCED} by any of {len(tried)} reading{'s' * (len(tried) > 1)}"


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
