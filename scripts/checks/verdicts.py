"""The rule by which a published number agrees with ours."""

import math
from typing import NamedTuple

CONFIDENCE = 0.95
RELATIVE, ABSOLUTE = 0.10, 0.01

INSIDE = "inside"
CLOSE = "close"
OFF = "off"
CALIBRATED = "calibrated"
NOT_TESTED = "not tested"
NOT_RUN = "not run"

RULE = (
    "inside: equal, or within the 95 % prediction interval for a run of the published size (the fold, "
    "or the simulation, is the replicate; a printed standard deviation counts); close: within 10 % of "
    "the published value or 0.01; off: neither; calibrated: parameters were chosen to match; not "
    "tested: computed on stand-in data, or not comparable; not run: this run has no such result"
)


class Sample(NamedTuple):
    """A mean over independent replicates: mean, their standard deviation, and how many they are."""

    mean: float
    sd: float
    replicates: int


def sd_of(half, replicates):
    """Standard deviation of replicates, of which the 95 % interval of the mean has that half width."""
    if replicates < 2 or math.isnan(half):
        return math.nan
    from scipy.special import stdtrit

    return half * math.sqrt(replicates) / float(stdtrit(replicates - 1, (1 + CONFIDENCE) / 2))


def prediction_interval(ours, replicates, printed_sd=None, limits=(-math.inf, math.inf)):
    """(low, high) that covers the mean of a new run of the same process with 95 % probability.

    The new run's mean of k' replicates differs from our mean of k by an error of variance
    s^2/k + s^2/k', so half the width is t_{k-1} s sqrt(1/k + 1/k'). Where the source prints its own
    standard deviation s', it takes the place of s in its own mean: variance s^2/k + s'^2/k', with
    Welch's degrees of freedom.

    ours: `Sample` with at least two replicates; None is returned where it has fewer, or no spread is
    known. replicates: k', at least 1. limits: where the quantity lives.
    """
    if ours.replicates < 2 or math.isnan(ours.sd) or replicates < 1:
        return None
    from scipy.special import (
        stdtrit,
    )  # 0.4 s to import, which checks of the configuration can spare

    own = ours.sd**2 / ours.replicates
    degrees = ours.replicates - 1
    if printed_sd is None or replicates < 2:
        variance = own + ours.sd**2 / replicates
    else:
        theirs = printed_sd**2 / replicates
        variance = own + theirs
        if variance > 0:
            degrees = variance**2 / (own**2 / degrees + theirs**2 / (replicates - 1))
    half = float(stdtrit(degrees, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)
    return max(limits[0], ours.mean - half), min(limits[1], ours.mean + half)


def verdict(published, ours, interval, *, absolute=ABSOLUTE, stand_in=None, calibrated=None):
    """(verdict, reason): RULE applied.

    published: the printed value. ours: the computed one, NaN where there is none. interval: of
    `prediction_interval`, or None. absolute: how far "close" reaches besides 10 %. stand_in,
    calibrated: why the value decides nothing, or None.
    """
    if stand_in:
        return NOT_TESTED, stand_in
    if math.isnan(ours):
        return NOT_RUN, "no such result in this run"
    if calibrated:
        return CALIBRATED, calibrated
    rounding = 1e-12
    gap = abs(ours - published)
    relative = f"differs by {gap:.3g}"
    if published:
        relative += f", {100 * gap / abs(published):.3g} %"
    if interval and interval[0] - rounding <= published <= interval[1] + rounding:
        return INSIDE, f"within [{interval[0]:.4g}, {interval[1]:.4g}]"
    if gap <= rounding:
        return INSIDE, "equal"
    outside = f"outside [{interval[0]:.4g}, {interval[1]:.4g}]" if interval else "no interval"
    if gap <= max(RELATIVE * abs(published), absolute) + rounding:
        return CLOSE, f"{relative}; {outside}"
    return OFF, f"{relative}; {outside}"
