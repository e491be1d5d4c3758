"""Losses of margins and of residuals, with their constants for privacy proofs.

A margin loss is l(z) of z = y w.x for labels y in {-1, 1}. A residual loss is l(z) of z = w.x - y for
targets y in [-1, 1], with l even and l(0) = 0.

`value(z)`, `derivative(z)` and `curvature(z)` are l, l' and l'' elementwise, also at infinite z. For rows
of norm at most 1:

    kappa  sup |l'|, the bound on a row's gradient; a row bound R multiplies it by R
    c      sup l'', the smoothness of a row's loss; a row bound R multiplies it by R^2

`quadratic` says whether l'' is constant.
"""

import math
from dataclasses import dataclass, fields
from numbers import Real

import numpy as np

from dp_privacy.errors import Refused, did_you_mean

SUMMED = 1000  # `total` multiplies at most this many numbers in [1, 2], to at most 2^1000


@dataclass(frozen=True)
class MarginLoss:
    """A convex loss l >= 0 of the margin. A subclass must define name, kappa, c, value and slopes."""

    quadratic = False
    residual = False  # whether targets may be numeric

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "slopes" in vars(cls):  # inherited shortcuts assume the parent's slopes
            for shortcut in ("slope", "total", "quadratic"):
                if shortcut not in vars(cls):
                    setattr(cls, shortcut, getattr(MarginLoss, shortcut))

    def arguments(self, scores: float | np.ndarray, y: float | np.ndarray) -> float | np.ndarray:
        """Compute z from scores w.x and labels or targets that broadcast with them."""
        return scores * y

    def signs(self, y: np.ndarray) -> np.ndarray:
        """The factor that multiplies l'(z) x in a row's gradient."""
        return y

    def at_zero(self) -> float:
        """A row's largest loss at w = 0."""
        return float(self.value(0.0))

    def total(self, z: np.ndarray) -> np.ndarray:
        """Sum of l over the first axis, which has at most SUMMED entries."""
        return self.value(z).sum(axis=0)

    def slopes(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(l', l'') at a float32 or float64 array z, in the precision of z. z is overwritten."""
        raise NotImplementedError

    def slope(self, z: np.ndarray) -> np.ndarray:
        return self.slopes(z)[0]

    def derivative(self, z: float | np.ndarray) -> float | np.ndarray:
        return self.slope(np.array(z, dtype=float))

    def curvature(self, z: float | np.ndarray) -> float | np.ndarray:
        return self.slopes(np.array(z, dtype=float))[1]


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """l(z) = log(1 + e^-z); |l'| < 1 and l'' <= 1/4."""

    name = "logistic"
    kappa = 1.0
    c = 0.25

    def value(self, z: float | np.ndarray) -> float | np.ndarray:
        value = np.array(z, dtype=float)
        np.negative(np.abs(value, out=value), out=value)
        # log(1 + e^-|z|), plus -z if z < 0
        np.log1p(np.exp(value, out=value), out=value)
        return np.subtract(value, np.minimum(z, 0.0), out=value)

    def total(self, z: np.ndarray) -> np.ndarray:
        """Sum of l, from one logarithm of a product of numbers in [1, 2]."""
        value = np.exp(-np.abs(z))
        value += 1.0
        return np.log(value.prod(axis=0)) - np.minimum(z, 0.0).sum(axis=0)

    def slopes(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slope = Logistic.slope(self, z)  # even if a subclass replaces `slope`
        curvature = np.subtract(-1.0, slope)
        curvature *= slope
        return slope, curvature

    def slope(self, z: np.ndarray) -> np.ndarray:
        """-1/(1 + e^z), by one exponential per element; -0 if the exponential overflows.

        In single precision, (tanh(z/2) - 1)/2 is faster, and accurate to 1e-7 except in the tail.
        """
        if z.dtype == np.float32:
            z *= 0.5
            np.tanh(z, out=z)
            z -= 1.0
            z *= 0.5
            return z
        with np.errstate(over="ignore"):
            np.exp(z, out=z)
        z += 1.0
        return np.divide(-1.0, z, out=z)


@dataclass(frozen=True)
class Huber(MarginLoss):
    """Huber hinge: 0 for z > 1 + h, (1 + h - z)^2/(4h) for |1 - z| <= h, 1 - z below.

    |l'| <= 1 and l'' <= 1/(2h) (Chaudhuri, Monteleoni, Sarwate, JMLR 12, 2011, section 3.4). l'' jumps
    at the ends of the quadratic piece, where `curvature` returns l'' of this piece.
    """

    h: float = 0.5

    name = "huber"
    kappa = 1.0

    def __post_init__(self):
        if not (self.h > 0 and math.isfinite(self.h)):
            raise Refused(f"the huber loss needs a finite half-width h > 0, not {self.h}")

    @property
    def c(self) -> float:
        return 1 / (2 * self.h)

    def value(self, z: float | np.ndarray) -> float | np.ndarray:
        gap = 1 + self.h - np.asarray(z, dtype=float)
        bent = np.clip(gap, 0.0, 2 * self.h)
        return bent * (bent / (4 * self.h)) + np.maximum(gap - 2 * self.h, 0.0)

    def slopes(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z -= 1.0
        curvature = (np.abs(z) <= self.h) * np.asarray(self.c, dtype=z.dtype)
        z -= self.h
        z *= self.c
        return np.clip(z, -1.0, 0.0, out=z), curvature


@dataclass(frozen=True)
class ResidualLoss(MarginLoss):
    """A convex, even loss of the residual w.x - y, with l(0) = 0 and l' concave for z > 0.

    So |z| l''(z) <= |l'(z)|, and the relative error of l' is at most that of z (see `dp.solvers.rounding`).
    """

    residual = True

    def arguments(self, scores: float | np.ndarray, y: float | np.ndarray) -> float | np.ndarray:
        return scores - y

    def signs(self, y: np.ndarray) -> float | np.ndarray:
        return np.ones_like(y)

    def at_zero(self) -> float:
        return float(self.value(1.0))


@dataclass(frozen=True)
class Squared(ResidualLoss):
    """l(z) = z^2/2, which for labels in {-1, 1} equals (1 - y w.x)^2/2. Its gradient has no bound."""

    name = "squared"
    kappa = math.inf
    c = 1.0
    quadratic = True

    def value(self, z: float | np.ndarray) -> float | np.ndarray:
        return np.asarray(z, dtype=float) ** 2 / 2

    def slopes(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return z, np.ones_like(z)


@dataclass(frozen=True)
class Robust(ResidualLoss):
    """About z^2/2 for |z| far below tau; for |z| far above, l' is near +-tau: |l'| <= tau, l'' <= 1."""

    tau: float = 0.25

    c = 1.0

    def __post_init__(self):
        if not (isinstance(self.tau, Real) and 1e-100 < self.tau < 1e100):
            raise Refused(f"the {self.name} loss needs a finite width tau > 0, not {self.tau}")

    @property
    def kappa(self) -> float:
        return self.tau


@dataclass(frozen=True)
class HuberResidual(Robust):
    """z^2/2 for |z| <= tau, tau |z| - tau^2/2 beyond (Huber, Annals of Mathematical Statistics 35, 1964).

    `curvature` at the jumps of l'' is as for `Huber`.
    """

    name = "huber_residual"

    def value(self, z: float | np.ndarray) -> float | np.ndarray:
        size = np.abs(np.asarray(z, dtype=float))
        bent = np.minimum(size, self.tau)
        return bent * (size - bent / 2)

    def slopes(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        curvature = (np.abs(z) <= self.tau).astype(z.dtype)
        return np.clip(z, -self.tau, self.tau, out=z), curvature


@dataclass(frozen=True)
class LogCosh(Robust):
    """l(z) = tau^2 log cosh(z/tau): l' = tau tanh(z/tau), l'' = 1 - tanh(z/tau)^2."""

    name = "log_cosh"

    def value(self, z: float | np.ndarray) -> float | np.ndarray:
        size = np.abs(np.asarray(z, dtype=float))
        with np.errstate(over="ignore"):
            lower = np.log1p(np.expm1(-2 / self.tau * size) / 2)
        return np.maximum(self.tau * (size + self.tau * lower), 0.0)

    def slopes(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slope = LogCosh.slope(self, z)
        curvature = np.multiply(slope, 1 / self.tau)
        curvature *= -curvature
        curvature += 1.0
        return slope, np.maximum(curvature, 0.0)  # slope/tau may round to more than 1

    def slope(self, z: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            z *= 1 / self.tau
        np.tanh(z, out=z)
        z *= self.tau
        return z


LOSSES = {loss.name: loss for loss in (Logistic, Huber, Squared, HuberResidual, LogCosh)}
Loss = str | dict | MarginLoss


def get(loss: Loss, **options) -> MarginLoss:
    """A loss by name, with its options (`h` of "huber", `tau` of "log_cosh" and "huber_residual").

    `loss` may also be {name: options} or a loss object. Raises ValueError for an unknown name or option.
    """
    if isinstance(loss, dict):
        if len(loss) != 1 or not isinstance(next(iter(loss.values())), dict):
            raise Refused(f"a loss with options is {{name: {{option: value}}}}, not {loss}")
        [(loss, options)] = loss.items()
    if not isinstance(loss, str):
        if options:
            raise Refused(f"a loss object takes no options, so not {', '.join(options)}")
        return loss
    if loss not in LOSSES:
        hint = did_you_mean(loss.lower(), LOSSES) or f"; valid names are {', '.join(LOSSES)}"
        raise Refused(f"there is no loss {loss!r}{hint}")
    valid = [field.name for field in fields(LOSSES[loss])]
    for option in options:
        if option not in valid:
            raise Refused(f"the {loss} loss has no option {option!r}")
    return LOSSES[loss](**options)
