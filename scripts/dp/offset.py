"""Logistic loss of margins y (w.x + o) with an offset o, for a solver of losses of residuals."""

from dataclasses import dataclass

import numpy as np

from dp import losses


@dataclass(frozen=True)
class Offset(losses.MarginLoss):
    """l(S z) of z = (y x/S).w - t with t = -y o/S, which is the margin loss l of y (w.x + o).

    S = `unit` is a power of 2 of at least |o|, so targets t lie in [-1, 1]. Rows y x/S have norms of at
    most R/S, and this loss has S times the slope and S^2 times the curvature. So a record's gradient and
    Hessian are those of l at its margin.
    """

    of: losses.MarginLoss
    unit: float

    name = "offset"
    residual = True

    @property
    def kappa(self) -> float:
        return self.of.kappa * self.unit

    @property
    def c(self) -> float:
        return self.of.c * self.unit**2

    def rows(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The solver's rows y x/S."""
        return np.multiply(X, (y / self.unit)[:, None], dtype=float)

    def targets(self, y: np.ndarray, offset: float) -> np.ndarray:
        """The solver's targets -y o/S."""
        return -y * (offset / self.unit)

    def arguments(self, scores: float | np.ndarray, y: float | np.ndarray) -> float | np.ndarray:
        return scores - y

    def signs(self, y: np.ndarray) -> float | np.ndarray:
        return np.ones_like(y)

    def at_zero(self) -> float:
        return float(self.value(-1.0))

    def value(self, z: float | np.ndarray) -> float | np.ndarray:
        return self.of.value(np.multiply(z, self.unit))

    def slopes(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z *= self.unit
        slope, curvature = self.of.slopes(z)
        slope *= self.unit
        curvature *= self.unit**2
        return slope, curvature

    def slope(self, z: np.ndarray) -> np.ndarray:
        z *= self.unit
        z = self.of.slope(z)
        z *= self.unit
        return z
