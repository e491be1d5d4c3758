"""Noise on a single number: Laplace or Gaussian, whichever is smaller."""

import math
from typing import NamedTuple

import numpy as np

from dp.noise import gaussian, laplace
from dp_privacy.profiles import Gaussian, Profile, approximate


class OneNumber(NamedTuple):
    """Noise on a number. deviation: the noise's standard deviation. reason: the guarantee in words."""

    kind: str
    deviation: float
    profile: Profile
    reason: str

    def draw(self, draws: int, rng: np.random.Generator) -> np.ndarray:
        if self.kind == "Laplace":
            return laplace(1, self.deviation / math.sqrt(2), draws, rng)[:, 0]
        return gaussian(1, self.deviation, draws, rng)[:, 0]


def one_number(moved: float, epsilon: float, mu: float) -> OneNumber:
    """The smaller noise, Laplace or Gaussian, if neighbours' numbers differ by at most `moved`.

    mu: the Gaussian-DP parameter of (epsilon, delta). Laplace noise of scale moved/epsilon gives (epsilon,
    0)-DP (Dwork, McSherry, Nissim, Smith, TCC 2006), with standard deviation sqrt(2) moved/epsilon.
    Gaussian noise has a standard deviation of moved/mu, about three times as large at (1, 1e-6).
    """
    deviations = {"Laplace": math.sqrt(2) * moved / epsilon, "Gaussian": moved / mu}
    kind = min(deviations, key=deviations.get)
    if kind == "Laplace":
        profile, private = approximate(epsilon), f"({epsilon:.6g}, 0)-DP"
    else:
        profile, private = Gaussian(mu), f"Gaussian DP with mu = {mu:.6g}"
    return OneNumber(kind, deviations[kind], profile, private)
