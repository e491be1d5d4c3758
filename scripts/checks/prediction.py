"""What another run would print: our own draws, resampled by the source's protocol."""

import math
from typing import NamedTuple

import numpy as np

CONFIDENCE = 0.95
SIZE = 4000  # runs that are imagined


class Protocol(NamedTuple):
    """How a printed mean came about.

    folds: folds or simulations that it is over. draws: of the noise on each. shared: whether all folds
    have the same draws, as with one seed that is set anew for each. data_drawn: whether the data set is
    itself a draw. sd: what a printed standard deviation is over, "folds" (of the folds' means) or "draws"
    (of every draw on every fold).
    """

    folds: int
    draws: int
    shared: bool = False
    data_drawn: bool = False
    sd: str = "folds"


class Prediction(NamedTuple):
    """mean: ours. interval: (low, high), where another run's mean lies with 95 % probability. sd: the
    median of its standard deviations; sd_interval: where 95 % of those are. Both None with one value."""

    mean: float
    interval: tuple
    sd: float | None
    sd_interval: tuple | None


def predict(draws, protocol, rng, *, limits=(-math.inf, math.inf)):
    """`Prediction` for a run by `protocol`, None with fewer than two folds.

    draws: (folds, draws) values of ours; a column in which a fold failed is left out.

    A run's mean is resampled: `protocol.folds` of our folds' means, and of their draws what is left of
    them, `protocol.draws` each. Resampled means of k folds spread too little, by the factor (k - 1)/k in
    their variance and by the normal quantile in the place of Student's; both are made good, so that
    normal means without draws give the interval of Student's t. Ours is itself a mean of such parts, and
    its own chance is added. Draws that all folds share are taken to have the same rank in each of them,
    the widest that sharing can make. Folds are taken as independent: on one data set each row is tested
    once, so that the mean over another division of it moves less, and a drawn data set adds a chance that
    folds of one data set do not show.
    """
    draws = np.asarray(draws, dtype=float)
    draws = draws[:, ~np.isnan(draws).any(axis=0)]
    folds, count = draws.shape
    if folds < 2 or count < 1:
        return None
    from scipy.special import ndtri, stdtrit  # 0.4 s to import: only where something is compared

    means = draws.mean(axis=1)
    upper = (1 + CONFIDENCE) / 2
    spread = (means - means.mean()) * math.sqrt(folds / (folds - 1))
    stretch = float(stdtrit(folds - 1, upper) / ndtri(upper))
    rest = np.sort(draws - means[:, None], axis=1)
    rest *= math.sqrt(count / (count - 1)) if count > 1 else 0.0

    chosen = rng.integers(folds, size=(SIZE, protocol.folds))
    of_folds = spread[chosen]
    size = (SIZE, 1 if protocol.shared else protocol.folds, protocol.draws)
    ranks = rng.integers(count, size=size)
    of_draws = rest[chosen[:, :, None], ranks]
    own = spread[rng.integers(folds, size=(SIZE, folds))].mean(axis=1)
    chance = rng.standard_normal(SIZE) * rest.std() / math.sqrt(rest.size)
    gap = stretch * (of_folds.mean(axis=1) - own) + of_draws.mean(axis=(1, 2)) - chance
    ends = means.mean() + np.quantile(gap, [1 - upper, upper])
    if protocol.sd == "draws":
        values = (of_folds[:, :, None] + of_draws).reshape(SIZE, -1)
    else:
        values = of_folds + of_draws.mean(axis=2)
    sd = sd_interval = None
    if values.shape[1] > 1:
        found = values.std(axis=1, ddof=1)
        sd = float(np.median(found))
        sd_interval = tuple(map(float, np.quantile(found, [1 - upper, upper])))
    interval = float(max(limits[0], ends[0])), float(min(limits[1], ends[1]))
    return Prediction(float(means.mean()), interval, sd, sd_interval)
