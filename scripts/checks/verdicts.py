"""Decides whether a published number agrees with ours."""

import math
from statistics import NormalDist
from typing import NamedTuple

from dp_privacy.intervals import UPPER, student

RELATIVE, ABSOLUTE = 0.10, 0.01
SURE = 1.645  # number of standard errors, the normal 95 % quantile

# Distances of a printed number from ours, nearest first.
EQUAL = "equal to the printed precision"
INSIDE = "inside"
EDGE = "at an end"
CLOSE = "close"
OFF = "off"
REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
TOO_WIDE = "too wide to decide"
UNDECIDED = "undecided"
NOT_EXCLUDED = "not excluded"
CALIBRATED = "calibrated"
NOT_TESTED = "not tested"
NOT_RUN = "not run"
AS_A_DEFECT = "judged as a defect"
# What a printed number or statement counts as. Results and other numbers have denominators of their own.
RESULT = "result"
OTHER = "other"  # settings, standard deviations and trivia
AGAIN = "again"  # judged elsewhere
ENOUGH = 0.8  # the least power of a verdict
MOST = 1e4  # times as many replicates as ours, the most that is asked for
# Verdicts that only the report (`reporting`) gives.
NOT_JUDGED = "not judged"
NOT_DECIDED = "not decided yet"

RULE = (
    ("equal to the printed precision", "our number rounds to the printed one"),
    (
        "inside",
        "the printed number is within the prediction interval of a run by the source's protocol, to the "
        "printed digits and, for a share of the rows of folds, to half a row of those counted",
    ),
    (
        "at an end",
        "within 1.645 standard errors of an end of the interval, where another seed may put it inside or "
        "outside; or outside, but not of the wider interval that holds for all numbers of its table "
        "together, because one number in twenty is outside by chance",
    ),
    ("close", "within 10 % of the printed number, or within 0.01"),
    ("off", "farther away"),
    ("reproduced", "equal or inside, with settings as the source states them"),
    (
        "reproduced if ...",
        "equal or inside only under the best single reading of the source: that under which most of all "
        "its numbers and claims agree, where each choice that it changes costs one",
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
        "an interval leaves a claim open; or a number is at an end of it; or it agrees only under "
        "readings that other numbers of the source refute; or the source's model without noise is not ours "
        "under any reading, so that its numbers with noise are about another model",
    ),
    ("not excluded", "all values that were tried of a setting tie"),
    (
        "calibrated",
        "our settings were chosen to match the number; the residual is ours minus the printed",
    ),
    ("judged as a defect", "a defect is about this number, which is judged there only"),
    (
        "not tested",
        "this run has other data, another protocol or a smaller search than the source, or lacks what a "
        "check needs, or more than 5 % of a cell's draws failed and the verdict depends on their mean",
    ),
    ("not run", "this run has no such result"),
    ("not judged", "this run is smaller than the default one"),
    ("not decided yet", "the run is not finished"),
    (
        "power",
        "how often a number that the source's protocol gives with our settings would be called reproduced, "
        "with the draws of this run; below 80 %, an open verdict says how many more replicates it takes",
    ),
    (
        "luck",
        "how often a number unrelated to ours would agree: the share of the range of printed numbers and "
        "ours that the intervals of all readings cover",
    ),
)


class Sample(NamedTuple):
    """The mean over independent replicates, their standard deviation, and their number."""

    mean: float
    sd: float
    replicates: int


def sd_of(half, replicates):
    """The standard deviation of replicates whose mean has a 95 % interval of this half width."""
    if replicates < 2 or math.isnan(half):
        return math.nan
    return half * math.sqrt(replicates) / student(replicates)


def prediction_interval(ours, replicates, limits=(-math.inf, math.inf)):
    """((low, high), standard error of an end) of a 95 % prediction interval for the mean of a new run.

    It is used if no individual draws can be resampled (`checks.prediction`). Let s be the replicates'
    standard deviation. The difference of the new mean over k' replicates and our mean over k replicates has
    the variance s^2/k + s^2/k', so half the width is t_{k-1} s sqrt(1/k + 1/k'). The error of an end
    includes the error of s, whose variance is about s^2/(2 (k - 1)).

    ours: a `Sample`. With fewer than two replicates or an unknown spread, the result is (None, 0).
    replicates: k', at least 1.
    limits: the range of the quantity.
    """
    if ours.replicates < 2 or math.isnan(ours.sd) or replicates < 1:
        return None, 0.0
    variance = ours.sd**2 / ours.replicates + ours.sd**2 / replicates
    half = student(ours.replicates) * math.sqrt(variance)
    error = math.sqrt(ours.sd**2 / ours.replicates + half**2 / (2 * (ours.replicates - 1)))
    return (max(limits[0], ours.mean - half), min(limits[1], ours.mean + half)), error


def joint(replicates, numbers):
    """How many times as wide an interval is that holds for this many numbers together (Bonferroni).

    replicates: ours, at least two, from which Student's quantile follows.
    """
    from scipy.special import stdtrit  # takes 0.4 s to import

    return float(stdtrit(replicates - 1, 1 - (1 - UPPER) / numbers)) / student(replicates)


def distance(
    published,
    ours,
    interval,
    *,
    half=0.0,
    absolute=ABSOLUTE,
    errors=(0.0, 0.0),
    limits=None,
    wider=1.0,
):
    """(distance, reason): which of the distances above a printed value has from a computed one, and why.

    interval: the prediction interval, or None.
    half: half a unit of the last printed digit; a number that rounds into the interval is inside.
    absolute: a difference up to this number, or up to 10 %, counts as "close".
    errors: standard errors of the interval's ends; a number within `SURE` standard errors of an end is
    neither inside nor outside.
    limits: the range of the quantity; an interval that reaches a limit is unbounded there.
    wider: of `joint`, for all numbers of the table. A number is outside only if it is outside of this wider
    interval, too.
    """
    rounding = 1e-12
    gap = abs(ours - published)
    if gap <= half + rounding * max(1.0, abs(published)):
        return EQUAL, f"{ours:.4g} rounds to what is printed" if gap > rounding else "equal"
    outside = "no interval"
    if interval:
        low, high = limits or (-math.inf, math.inf)
        beyond = [
            (end - published - half if sign < 0 else published - end - half, error)
            for end, sign, error in zip(interval, (-1, 1), errors, strict=True)
            if low < end < high
        ]
        spelt = f"[{interval[0]:.4g}, {interval[1]:.4g}]"
        for past, error in beyond:
            if abs(past) < SURE * error:
                side = "beyond" if past > rounding else "within"
                return EDGE, f"{side} {spelt} by {abs(past) / error:.2g} standard errors of its end"
        if all(past <= rounding for past, _ in beyond):
            return INSIDE, f"within {spelt}"
        outside = f"outside {spelt}"
        added = [(wider - 1) * abs(end - ours) for end in interval if low < end < high]
        pairs = zip(beyond, added, strict=True)
        if wider > 1 and all(past <= more + SURE * error for (past, error), more in pairs):
            return EDGE, f"{outside}, but not of {wider:.3g} times its width, for its whole table"
    relative = f"differs by {gap:.3g}"
    if published:
        relative += f", {100 * gap / abs(published):.3g} %"
    near = gap <= max(RELATIVE * abs(published), absolute) + rounding
    return CLOSE if near else OFF, f"{relative}; {outside}"


def counted(interval, rows, limits=(-math.inf, math.inf)):
    """Widen the interval of a share by half a row on either side, as a continuity correction.

    rows: the number of rows over all draws of a run, or None.
    """
    if interval is None or not rows:
        return interval
    return max(limits[0], interval[0] - 0.5 / rows), min(limits[1], interval[1] + 0.5 / rows)


def matches(distance):
    return distance in (EQUAL, INSIDE)


def margin(published, sd=None, *, share=False, spread=False):
    """The smallest difference of a printed number from ours that must count as a disagreement.

    sd: the standard deviation printed with the number.
    share: whether the number is an error or an accuracy; 0.05 and 0.95 then have the same margin.
    spread: whether the number is a standard deviation.
    """
    if spread:
        return published / 2
    if sd:
        return sd
    nearest = min(published, 1 - published) if share else abs(published)
    return max(RELATIVE * nearest, ABSOLUTE if share else 0.0)


def too_wide(interval, margin):
    """Whether a value at `margin` from the middle of an interval would still be inside."""
    return interval is not None and interval[1] - interval[0] > 2 * margin * (1 + 1e-9)


def with_readings(tried, still_open, best=()):
    """The verdict under all readings with which our non-private model is the source's.

    An entry that agrees under some readings only is reproduced if the source's best single reading is one
    of them, and undecided if not.

    tried: pairs (reading, holds), with holds "yes", "no", or "" if open. The stated reading, "", comes
    first if it is one of them. If the stated reading is open, all other readings are ignored.
    still_open: the verdict if the value stays open.
    best: the parts of the source's best single reading (`under_readings.best_single`); if none of them was
    tried, it does not concern the entry.
    """
    if not tried:
        return UNDECIDED
    if tried[0] == ("", ""):
        return still_open
    answers = dict(tried)
    read = next((part for part in best if part in answers), "")
    if answers.get("") == "yes" and ("no" not in answers.values() or answers[read] == ""):
        read = ""  # a reading that leaves the entry open does not refute what agrees as stated
    if answers.get(read) == "yes":
        return f"{REPRODUCED} if {read}" if read else REPRODUCED
    if "yes" in answers.values():
        return UNDECIDED
    if "" in answers.values():
        return still_open
    return f"{NOT_REPRODUCED} by any of {len(tried)} reading{'s' * (len(tried) > 1)}"


def elsewhere(tried, best):
    """Why an entry that agrees under some reading is undecided nevertheless; "" if it agrees under none.

    tried, best: as in `with_readings`.
    """
    labels = [label or "the default one" for label, holds in tried if holds == "yes"]
    if not labels or ("", "") in tried:
        return ""
    more = f" and {len(labels) - 1} others" if len(labels) > 1 else ""
    return (
        f"agrees only under {labels[0]}{more}, and of all single readings {named(best)} is the best for "
        f"the source's other numbers and claims"
    )


def named(best):
    """The best single reading in words. best: as in `with_readings`."""
    return " and ".join(best) or "the default one"


def power(interval, *, error, own, half, margin, middle, limits=(-math.inf, math.inf), more=1.0):
    """The chance that a number which the source's protocol gives with our settings is called reproduced.

    Such a number is normal around `middle`, our own mean, with the standard deviation to which the interval
    belongs.

    interval: the prediction interval. error: the standard error of its ends. own: the part of that standard
    deviation that is our own error. half, limits: as in `distance`. margin: as in `too_wide`.
    more: how many times as many replicates as ours; `error` and `own` then fall with its square root.
    """
    normal = NormalDist()
    sides = [abs(end - middle) for end, limit in zip(interval, limits, strict=True) if end != limit]
    sd = (sum(sides) / len(sides) if sides else interval[1] - interval[0]) / normal.inv_cdf(UPPER)
    if sd == 0:
        return 1.0
    scale = math.sqrt(max(0.0, 1 - (own / sd) ** 2) + (own / sd) ** 2 / more)
    if too_wide([scale * end for end in interval], margin):
        return 0.0
    reached = []
    for end, limit in zip(interval, limits, strict=True):
        within = scale * abs(end - middle) + half - SURE * error / math.sqrt(more)
        reached.append(math.inf if end == limit else max(within, half) / (scale * sd))
    return normal.cdf(reached[1]) - normal.cdf(-reached[0])


def times_needed(**values):
    """How many times as many replicates give the power `ENOUGH`; inf if none do. values: of `power`."""
    more = 1.0
    while power(more=more, **values) < ENOUGH:
        more *= 1.1
        if more > MOST:
            return math.inf
    return more


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
