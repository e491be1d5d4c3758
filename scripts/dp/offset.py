"""An offset of all scores, from a noisy mean of the targets, and a loss with an offset for a solver.

Lambda draws a model's scores towards 0, that is, a class towards a rate of one half. With an offset o, they
are w.x + o, and it draws them towards o. Given o, slopes and curvatures have the bounds that they have
without it, so every proof about the minimiser holds.
"""

import math
from dataclasses import dataclass

import numpy as np

from dp import losses
from dp.noise import discrete_laplace, gaussian, laplace

RESOLVED = (
    0.0025  # standard deviation of the noise on a mean in [0, 1] for which a Gaussian release pays
)
LEAST, MOST = 0.01, 0.15  # bounds of its share of mu^2


def gaussian_share(n: int, mu: float) -> float:
    """The share of mu^2 for the Gaussian release of a mean in [0, 1] of n numbers."""
    return min(max((1 / (RESOLVED * n * mu)) ** 2, LEAST), MOST)


@dataclass(frozen=True)
class Centre:
    """The noisy mean of u = (y + 1)/2 over n records, and the offset that follows from it.

    u is in [0, 1], so a record changes its sum by at most 1, under replace-one and add-remove. scale: of
    the sum's noise, which is Gaussian, or Laplace noise (discrete for two classes). numbers: whether
    targets are numbers; then the offset is the mean of y, and otherwise the log-odds of the rate.
    """

    n: int
    scale: float
    gaussian: bool
    numbers: bool

    def offsets(self, rates: np.ndarray) -> np.ndarray:
        """Offsets for noisy means of u (draws,).

        A mean is first shrunk to one half, as the mean of a uniform prior's linear posterior would be, and
        a rate is kept a scale of its noise away from 0 and 1.
        """
        variance = (1 if self.gaussian else 2) * (self.scale / self.n) ** 2
        rates = 0.5 + (rates - 0.5) / (1 + 12 * variance)
        if self.numbers:
            return 2 * np.clip(rates, 0.0, 1.0) - 1
        rates = np.clip(rates, self._least, 1 - self._least)
        return np.log(rates / (1 - rates))

    @property
    def _least(self):
        return min(0.5, max(self.scale, 0.5) / self.n)

    @property
    def unit(self) -> float:
        """A power of 2 of at least 1 and the size of every offset, for numbers of every target less it."""
        if self.numbers:
            return 2.0
        odds = (1 - self._least) / self._least
        return 2.0 ** math.ceil(math.log2(max(1.0, math.log(odds))))

    def drawn(self, y: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
        """Offsets (draws,) of releases from targets y."""
        law = gaussian if self.gaussian else laplace if self.numbers else discrete_laplace
        noisy = ((np.asarray(y, dtype=float) + 1) / 2).sum() + law(1, self.scale, draws, rng)
        return self.offsets(np.asarray(noisy)[:, 0] / self.n)

    def described(self) -> str:
        """What is released, for a guarantee's reason."""
        what = "the sum of (y + 1)/2" if self.numbers else "the number of labels 1"
        law = "Gaussian" if self.gaussian else "Laplace" if self.numbers else "discrete Laplace"
        size = "standard deviation" if self.gaussian else "scale"
        noise = f"{law} noise of {size} {self.scale:.6g}"
        return f"{what}, with {noise}, which decides the offset of all scores"


@dataclass(frozen=True)
class Offset(losses.MarginLoss):
    """l(S z) of z = (y x/S).w - t with t = -y o/S, which is the margin loss l of y (w.x + o).

    For numbers, z = (x/S).w - t with t = (y - o)/S, which is the loss l of the residual w.x + o - y.
    S = `unit` is a power of 2 of at least |o| (for numbers |y - o|), so targets t lie in [-1, 1]. Rows have
    norms of at most R/S, and this loss has S times the slope and S^2 times the curvature. So a record's
    gradient and Hessian are those of l at its margin or residual.
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
        """The solver's rows y x/S or x/S."""
        if self.of.residual:
            return np.multiply(X, 1 / self.unit, dtype=float)
        return np.multiply(X, (y / self.unit)[:, None], dtype=float)

    def targets(self, y: np.ndarray, offset: float) -> np.ndarray:
        """The solver's targets -y o/S or (y - o)/S."""
        if self.of.residual:
            return (np.asarray(y, dtype=float) - offset) / self.unit
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
