"""95 % intervals: Student's t for means over independent replicates, and exact for probabilities."""

import math
from functools import cache

import numpy as np

CONFIDENCE = 0.95
UPPER = (1 + CONFIDENCE) / 2


@cache
def student(replicates: int) -> float:
    """The quantile of Student's t for a `CONFIDENCE` interval from at least two replicates."""
    # The import takes 0.4 s; configuration checks do not need it.
    from scipy.special import stdtrit

    return float(stdtrit(replicates - 1, UPPER))


def of_mean(values: np.ndarray) -> tuple[float, float, float, float]:
    """Mean, standard deviation, low and high; with one replicate, all but the mean are NaN."""
    mean = float(values.mean()) if len(values) else math.nan
    if len(values) < 2:
        return mean, math.nan, math.nan, math.nan
    sd = float(values.std(ddof=1))
    half = student(len(values)) * sd / math.sqrt(len(values))
    return mean, sd, mean - half, mean + half


def least_share(count: np.ndarray, trials: int, level: float = UPPER) -> np.ndarray:
    """Clopper-Pearson lower confidence limit of a probability, one-sided at `level`."""
    from scipy.special import betaincinv

    count = np.asarray(count)
    inside = betaincinv(np.maximum(count, 1), trials - count + 1, 1 - level)
    return np.where(count > 0, inside, 0.0)


def largest_share(count: np.ndarray, trials: int, level: float = UPPER) -> np.ndarray:
    """Upper counterpart of `least_share`."""
    from scipy.special import betaincinv

    count = np.asarray(count)
    inside = betaincinv(count + 1, np.maximum(trials - count, 1), level)
    return np.where(count < trials, inside, 1.0)
