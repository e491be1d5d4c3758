"""Noisy choices of the largest of many values, and the privacy of one or several choices.

Let one record change every value by at most D. A choice with rate a selects the j with the largest a v_j +
G_j, with independent standard Gumbel noise G_j: the exponential mechanism, with P(j) proportional to e^(a
v_j).

**Bounded range.** log P(j)/P'(j) = a (v_j - v'_j) - (log Z - log Z') for neighbours. The first term lies in
[-a D, a D], and the second is the same for all j. So these log ratios lie in an interval of length r = 2 a
D (Durfee, Rogers, NeurIPS 2019).

**Concentrated.** Let K(s) = log of the mean of (P/P')^s under P'. K(0) = K(1) = 0, because P and P' are
distributions. K''(s) is the variance of log P/P' under a tilted law, at most r^2/4 on such an interval. By
the remainder of linear interpolation, K(s) <= s (s - 1) r^2/8 for s > 1. So the Rényi divergence of order
s, K(s)/(s - 1), is at most s r^2/8: the choice is r^2/8-zCDP (Cesar, Rogers, ALT 2021). Pure (r, 0)-DP
alone would give r^2/2.

**Several.** The k largest a v_j + G_j, in order, have the distribution of k successive choices, each among
the remaining values with new noise. (Given the largest, the other noisy values are truncated at it, which
leaves the distribution of their order unchanged.) So the k choices are k r^2/8-zCDP. The rho of adaptive
rho-zCDP releases add up. Gaussian noise of standard deviation s on a vector that moves by at most m in L2
is m^2/(2 s^2)-zCDP (Bun, Steinke, TCC 2016). Everything, including D and a, may depend on earlier releases.
"""

import math
from functools import lru_cache

import numpy as np

from dp_privacy import roots
from dp_privacy.accounting import renyi_epsilon
from dp_privacy.profiles import Profile, symmetric

ORDERS = 1 + np.geomspace(1e-3, 1e6, 2000)  # any orders give a valid bound


class Concentrated(Profile):
    """The profile of rho-zCDP releases: Rényi divergences are at most rho times the order.

    delta(epsilon) is the minimum of e^((a-1)(rho a - epsilon)) (1 - 1/a)^a/(a - 1) over orders a (Canonne,
    Kamath, Steinke, NeurIPS 2020, proposition 12), which `dp_privacy.accounting.renyi_epsilon` inverts. For
    epsilon above rho it is at most e^(-(epsilon - rho)^2/(4 rho)) (Bun, Steinke, TCC 2016), which is
    smaller where the best order is beyond `ORDERS`.
    """

    def __init__(self, rho: float) -> None:
        self.rho = rho

    def renyi(self, order: float | np.ndarray) -> np.ndarray:
        return np.asarray(order) * self.rho

    def delta(self, epsilon: float | np.ndarray) -> float | np.ndarray:
        return symmetric(self._delta)(epsilon)[()]

    def _delta(self, epsilon):
        a, epsilon = ORDERS, np.asarray(epsilon, dtype=float)[..., None]
        powers = (a - 1) * (self.rho * a - epsilon) + a * np.log1p(-1 / a) - np.log(a - 1)
        above = np.maximum(epsilon[..., 0] - self.rho, 0.0)
        return np.exp(np.minimum(powers.min(axis=-1), -above * (above / (4 * self.rho))))


@lru_cache(maxsize=1024)
def rho(epsilon: float, delta: float) -> float:
    """The largest rho, up to rounding, for which rho-zCDP is shown to give (epsilon, delta)-DP.

    The search starts from the solution of rho + 2 sqrt(rho log(1/delta)) = epsilon, which suffices for any
    epsilon (Bun, Steinke, TCC 2016, proposition 1.3). `renyi_epsilon` refines this rho.
    """
    level = -math.log(delta)
    simple = (epsilon / (math.sqrt(level + epsilon) + math.sqrt(level))) ** 2

    def private(value):
        if value <= simple:
            return True
        return renyi_epsilon(lambda a: a * value, delta, ORDERS) <= epsilon

    return roots.largest(private, simple, max(epsilon, simple), relative=1e-9)


def choice_rate(rho: float, count: int, moved: float | np.ndarray) -> float | np.ndarray:
    """The rate a at which `count` choices are rho-zCDP: count (2 a D)^2/8 = rho with D = `moved`."""
    return math.sqrt(2 * rho / count) / moved


def gaussian_scale(rho: float, moved: float | np.ndarray) -> float | np.ndarray:
    """Standard deviation for which a noisy vector that moves by `moved` in L2 is rho-zCDP."""
    return moved / math.sqrt(2 * rho)


def noisy_top(
    values: np.ndarray, count: int, rate: float | np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Column indices of the `count` largest entries of rate * values + Gumbel noise in each row.

    values: (draws, m) finite numbers. rate: a number or (draws,). Returns (draws, count), the largest
    noisy value first.
    """
    noisy = np.reshape(rate, (-1, 1)) * values + rng.gumbel(size=values.shape)
    if count == 1:
        return noisy.argmax(axis=1)[:, None]
    return np.argsort(-noisy, axis=1, kind="stable")[:, :count]
