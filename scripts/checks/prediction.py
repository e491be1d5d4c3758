"""Predicts what another run of the source's protocol would print, by resampling our draws."""

import math
from typing import NamedTuple

import numpy as np

from dp_privacy.intervals import UPPER, student

SIZE = 4000  # simulated runs


class Protocol(NamedTuple):
    """How the source computed a printed mean.

    folds: number of folds or simulations.
    draws: noise draws on each fold.
    shared: whether all folds use the same draws, as if the seed were reset for each fold.
    data_drawn: whether the data set was itself drawn at random.
    sd: the values behind a printed standard deviation: "folds" (means of folds) or "draws" (all draws).
    """

    folds: int
    draws: int
    shared: bool = False
    data_drawn: bool = False
    sd: str = "folds"


class Prediction(NamedTuple):
    """What another run by the source's protocol would print.

    mean: our mean.
    interval: (low, high), which contains that run's mean with 95 % probability.
    error: the standard error of an end of the interval, which depends on our seeds.
    sd: the median standard deviation that such a run would print.
    sd_interval: like interval, for that run's standard deviation.
    sd_error: the standard error of sd, as a share of sd.
    own: the standard deviation of our own mean, which more replicates of ours would lower.

    The three before the last are None if the run has only one value.
    """

    mean: float
    interval: tuple
    error: float
    sd: float | None
    sd_interval: tuple | None
    sd_error: float | None
    own: float

    def within(self, limits):
        """The same, with an interval inside the range of the quantity."""
        low, high = self.interval
        return self._replace(interval=(max(limits[0], low), min(limits[1], high)))


def predict(draws, protocol, rng, *, paired=False):
    """The `Prediction` for a run by `protocol`; None if we have only one fold of one data set.

    draws: our values (folds, draws) or (data sets, folds, draws). Draws that failed on any fold are
    left out.
    paired: whether draws with the same index are the same on all folds.

    A simulated run averages `protocol.folds` resampled fold means. To each fold mean, it adds the mean of
    `protocol.draws` residuals, sampled from our draws on that fold of any data set. If we have several data
    sets, the run is assumed to have a new one. The new data set's mean is normal with the variance of our
    data sets' means, because resampling a few means would rarely give extreme values. Its folds deviate
    from this mean as the folds of one of our data sets do.

    There are four corrections. The noise of our draws is subtracted from the variance of our means. The
    variance of resampled means of k replicates is multiplied by k/(k - 1). Student's quantile replaces
    the normal one. The error of our own mean is added.

    If the run's folds share draws and our folds do not, each draw is assumed to have the same rank on all
    folds. This gives the widest interval that sharing allows. Folds of a single data set are assumed to be
    independent. In fact, the mean over another division varies less than over independent folds, because
    each row is tested once. If we and the source both divided the rows several times, divisions take the
    place of data sets.
    """
    draws = np.asarray(draws, dtype=float)
    draws = draws[None] if draws.ndim == 2 else draws
    draws = draws[:, :, ~np.isnan(draws).any(axis=(0, 1))]
    data_sets, folds, count = draws.shape
    replicates = data_sets if data_sets > 1 else folds
    if replicates < 2 or count < 1:
        return None
    from scipy.special import ndtri  # takes 0.4 s to import

    z = float(ndtri(UPPER))
    means = draws.mean(axis=2)
    stretch = float(student(replicates)) / z
    rest = draws - means[:, :, None]
    rest *= math.sqrt(count / (count - 1)) if count > 1 else 0.0
    noise = rest.var() / count  # variance of a fold's mean due to the draws
    rest = rest.transpose(1, 0, 2).reshape(folds, -1)  # (folds, draws of all data sets)
    rest = rest if paired else np.sort(rest, axis=1)

    if data_sets > 1:
        sd_of_sets = _spread(means.mean(axis=1), noise / folds).std()
        within = _spread(means, noise)
        chosen = rng.integers(data_sets, size=(SIZE, 1))
        own = sd_of_sets / math.sqrt(data_sets) * rng.standard_normal(SIZE)
        if protocol.folds == folds:
            fold = np.arange(folds)[None]
        else:
            fold = rng.integers(folds, size=(SIZE, protocol.folds))
        of_folds = sd_of_sets * rng.standard_normal((SIZE, 1)) + within[chosen, fold]
        between = sd_of_sets**2
    else:
        spread = _spread(means[0], noise)
        fold = rng.integers(folds, size=(SIZE, protocol.folds))
        own = spread[rng.integers(folds, size=(SIZE, folds))].mean(axis=1)
        of_folds = spread[fold]
        between = spread.var() / protocol.folds
    size = (SIZE, 1 if protocol.shared else protocol.folds, protocol.draws)
    ranks = rng.integers(rest.shape[1], size=size)
    of_draws = rest[fold[:, :, None], ranks]
    chance = rng.standard_normal(SIZE) * math.sqrt(noise / (data_sets * folds))
    gap = stretch * (of_folds.mean(axis=1) - own)
    gap += of_draws.mean(axis=(1, 2)) - chance
    ends = means.mean() + np.quantile(gap, [1 - UPPER, UPPER])
    if protocol.sd == "draws":
        parts = of_folds[:, :, None], of_draws
    else:
        parts = of_folds, of_draws.mean(axis=2)
    values = (parts[0] + parts[1]).reshape(SIZE, -1)
    sd = sd_interval = sd_error = None
    if values.shape[1] > 1:
        sds = values.std(axis=1, ddof=1)
        sd = float(np.median(sds))
        sd_interval = tuple(map(float, np.quantile(sds, [1 - UPPER, UPPER])))
        shares = [part.reshape(SIZE, -1).var(axis=1, ddof=1).mean() for part in parts]
        # A median over data sets has pi/2 times the variance of a mean.
        counts = data_sets * (folds - 1) / (math.pi / 2 if data_sets > 1 else 1), rest.size
        shares = (sum(shares), 0) if protocol.shared else shares
        sd_error = _error_of_sd(shares, counts, removed=noise)
    interval = float(ends[0]), float(ends[1])
    noise_of_run = rest.var() / (protocol.draws * (1 if protocol.shared else protocol.folds))
    shares = stretch**2 * (between + own.var()), noise_of_run
    counts = replicates - 1, rest.shape[1] if paired else rest.size
    error = (ends[1] - ends[0]) / 2 * _error_of_sd(shares, counts, z)
    error = math.hypot(error, math.sqrt(own.var() + noise / (data_sets * folds)))
    of_ours = math.sqrt(stretch**2 * own.var() + noise / (data_sets * folds))
    return Prediction(float(means.mean()), interval, error, sd, sd_interval, sd_error, of_ours)


def _error_of_sd(shares, counts, z=None, removed=0.0):
    """The standard error of an estimated standard deviation s, as a share of s.

    The square of s is a sum of mean squares v. With k degrees of freedom, v has the variance 2 v^2/k. So
    the standard deviation of s is the square root of the sum of these variances, divided by 2 s
    (Satterthwaite).

    shares: the mean squares v, of folds or data sets, and of draws.
    counts: the k of each v.
    z: the normal p quantile, p = `UPPER`, if s stands for an empirical p quantile of draws, else None. An
    empirical quantile of k draws has the variance p (1 - p)/(k f^2), where f is the normal density at z.
    This is more than z^2/(2 k), the variance of z times an estimated standard deviation.
    removed: the variance of draws that was subtracted from the first v. The error of this v is computed
    from its value before the subtraction.
    """
    total = sum(shares)
    if not total > 0:
        return 0.0
    tail = 0.5
    if z:
        tail = UPPER * (1 - UPPER) * 2 * math.pi * math.exp(z**2) / z**2
    (first, second), (k, n) = np.asarray(shares) / total, counts
    first += removed / total
    return math.sqrt(first**2 / (2 * k) + (tail * second**2 / n if second > 0 else 0.0))


def _spread(means, noise):
    """Residuals of means (.., k), shrunk to the spread that the means would have without noise.

    noise: the part of the means' variance due to the draws.
    """
    k = means.shape[-1]
    if k == 1:
        return np.zeros_like(means)
    spread = (means - means.mean(axis=-1, keepdims=True)) * math.sqrt(k / (k - 1))
    variance = float(np.mean(spread**2))
    return spread * math.sqrt(max(0.0, 1 - noise / variance)) if variance > 0 else spread
