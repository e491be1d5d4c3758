"""A check of a defect of Patton's report: Gaussian noise is not pure."""

import math

from checks.statements import Outcome
from study.configuration.inputs import NOTHING
from study.configuration.kinds import check
from study.configuration.options import Options


class GaussianLossExceeds(Options):
    epsilons: list
    delta: float
    at_least: float


@check(NOTHING, GaussianLossExceeds)
def gaussian_loss_exceeds(results, *, epsilons, delta, at_least):
    """The privacy loss of classical Gaussian noise exceeds epsilon with a probability of at least
    `at_least`. For pure epsilon-DP, that probability is 0. If neighbours are mu standard deviations of
    the noise apart, the loss is normal with mean mu^2/2 and standard deviation mu (Dong, Roth, Su 2022).
    """
    from scipy.stats import norm

    tails = []
    for epsilon in epsilons:
        mu = epsilon / math.sqrt(2 * math.log(1.25 / delta))
        tails.append(float(norm.sf(epsilon, mu**2 / 2, mu)))
    texts = [f"{p:.3g} at {e:g}" for p, e in zip(tails, epsilons, strict=True)]
    chances = ", ".join(texts)
    text = f"the loss exceeds the claimed epsilon with probability {chances} (delta = {delta:g})"
    return Outcome(min(tails) >= at_least, text, min(tails), at_least)
