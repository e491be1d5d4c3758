"""Logistic loss with clipped slopes, for objective perturbation with Gaussian noise."""

import math
from dataclasses import dataclass

import numpy as np

from dp import losses

LOGISTIC = losses.get("logistic")


@dataclass(frozen=True)
class ClippedLogistic(losses.MarginLoss):
    """log(1 + e^-z) down to z0, where the slope is -cap, and linear below: |l'| <= cap, l'' <= 1/4.

    Badly misclassified rows have slopes of size `cap` instead of 1, so the noise is `cap` times as large as
    for logistic loss. Losses of margins above z0 = log(1/cap - 1) are unchanged. Let cap > 1/2. For
    log-odds t in [z0, -z0], the score t minimises the expected loss, as for logistic loss. For t > -z0, the
    best score is log(e^t/cap - 1), which exceeds t by less than log(1/cap). l'' jumps at z0, where
    `curvature` is as for logistic loss.
    """

    cap: float

    name = "clipped_logistic"

    @property
    def kappa(self) -> float:
        return self.cap

    @property
    def c(self) -> float:
        return 0.25 if self.cap >= 0.5 else self.cap * (1 - self.cap)

    def value(self, z: float | np.ndarray) -> float | np.ndarray:
        bend = math.log1p(-self.cap) - math.log(self.cap)
        z = np.asarray(z, dtype=float)
        return LOGISTIC.value(np.maximum(z, bend)) + self.cap * np.maximum(bend - z, 0.0)

    def slopes(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slope, curvature = LOGISTIC.slopes(z)
        curvature *= slope >= -self.cap
        return np.maximum(slope, -self.cap, out=slope), curvature

    def slope(self, z: np.ndarray) -> np.ndarray:
        z = LOGISTIC.slope(z)
        return np.maximum(z, -self.cap, out=z)
