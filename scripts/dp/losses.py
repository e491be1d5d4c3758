"""Margin losses l(z), z = y w.x, with the constants that privacy proofs ask for.

Every loss has `value(z)`, `derivative(z)` and `curvature(z)`: l, l' and l'' elementwise, safe at any
margin, infinite ones included; `name`; and two constants for rows of norm at most R = 1:

    kappa  sup |l'|, the bound on a row's gradient; a row bound R multiplies it by R
    c      sup l'', the smoothness of a row's loss; a row bound R multiplies it by R^2

A loss whose l'' is the same everywhere says so: quadratic.
"""

import math
from dataclasses import dataclass, fields
from difflib import get_close_matches

import numpy as np

from dp.errors import Refused


@dataclass(frozen=True)
class MarginLoss:
    """A convex loss of the margin, l >= 0. One of your own has name, kappa, c, value and slopes."""

    quadratic = False

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "slopes" in vars(cls):  # new ones leave no use for what shortens a parent's
            for shortcut in ("slope", "quadratic"):
                if shortcut not in vars(cls):
                    setattr(cls, shortcut, getattr(MarginLoss, shortcut))

    def slopes(self, z):
        """(l', l'') at an array of float32 or float64 margins, which is overwritten.

        One pass for both, in the array's own precision: what a solver calls on cache-sized blocks.
        """
        raise NotImplementedError

    def slope(self, z):
        """l' alone, as `slopes`."""
        return self.slopes(z)[0]

    def derivative(self, z):
        return self.slope(np.array(z, dtype=float))

    def curvature(self, z):
        return self.slopes(np.array(z, dtype=float))[1]


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """l(z) = log(1 + e^-z); |l'| < 1 and l'' <= 1/4."""

    name = "logistic"
    kappa = 1.0
    c = 0.25

    def value(self, z):
        value = np.array(z, dtype=float)
        np.negative(np.abs(value, out=value), out=value)
        np.log1p(np.exp(value, out=value), out=value)  # log(1 + e^-|z|), and -z more where z < 0
        return np.subtract(value, np.minimum(z, 0.0), out=value)

    def slopes(self, z):
        slope = Logistic.slope(self, z)  # whatever a subclass makes of it
        curvature = np.subtract(-1.0, slope)  # l'' = -l' (1 + l')
        curvature *= slope
        return slope, curvature

    def slope(self, z):
        """-1/(1 + e^z): one exponential per element, and -0 where it overflows.

        In single precision (tanh(z/2) - 1)/2, which is quicker, and exact to 1e-7 but not in the tail.
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

    |l'| <= 1 and l'' <= 1/(2h) (Chaudhuri, Monteleoni, Sarwate, JMLR 12, 2011, section 3.4). At the
    ends of the quadratic piece, where l'' jumps, it is taken from within.
    """

    h: float = 0.5

    name = "huber"
    kappa = 1.0

    def __post_init__(self):
        if not (self.h > 0 and math.isfinite(self.h)):
            raise Refused(f"the huber loss needs a finite half-width h > 0, not {self.h}")

    @property
    def c(self):
        return 1 / (2 * self.h)

    def value(self, z):
        gap = 1 + self.h - np.asarray(z, dtype=float)
        bent = np.clip(gap, 0.0, 2 * self.h)  # the share of the gap on the quadratic piece
        return bent * (bent / (4 * self.h)) + np.maximum(gap - 2 * self.h, 0.0)

    def slopes(self, z):
        z -= 1.0
        curvature = (np.abs(z) <= self.h) * np.asarray(self.c, dtype=z.dtype)
        z -= self.h
        z *= self.c
        return np.clip(z, -1.0, 0.0, out=z), curvature


@dataclass(frozen=True)
class Squared(MarginLoss):
    """l(z) = (1 - z)^2/2, which is (y - w.x)^2/2 for labels in {-1, 1}; its gradient has no bound."""

    name = "squared"
    kappa = math.inf
    c = 1.0
    quadratic = True

    def value(self, z):
        return (1 - np.asarray(z, dtype=float)) ** 2 / 2

    def slopes(self, z):
        z -= 1.0
        return z, np.ones_like(z)


LOSSES = {"logistic": Logistic, "huber": Huber, "squared": Squared}


def get(loss, **options):
    """A loss by name, with its options (`h` of "huber"); a loss object stays as it is.

    Raises ValueError for an unknown name, with the nearest valid one, and for an option that the loss
    does not have.
    """
    if not isinstance(loss, str):
        if options:
            raise Refused(f"a loss object takes no options, so not {', '.join(options)}")
        return loss
    if loss not in LOSSES:
        near = get_close_matches(loss.lower(), LOSSES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"valid names are {', '.join(LOSSES)}"
        raise Refused(f"there is no loss {loss!r}; {hint}")
    valid = [field.name for field in fields(LOSSES[loss])]
    for option in options:
        if option not in valid:
            raise Refused(f"the {loss} loss has no option {option!r}")
    return LOSSES[loss](**options)
