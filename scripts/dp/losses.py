"""Margin losses l(z), z = y w.x, with the constants that privacy proofs ask for."""

from difflib import get_close_matches
from typing import NamedTuple

import numpy as np


class Logistic(NamedTuple):
    """l(z) = log(1 + exp(-z)); |l'| <= 1 and l'' <= 1/4."""

    name: str = "logistic"
    kappa: float = 1.0
    c: float = 0.25

    def value(self, z):
        return np.logaddexp(0.0, -z)

    def derivative(self, z):
        return self.slopes(np.array(z, dtype=float))[0]

    def curvature(self, z):
        return self.slopes(np.array(z, dtype=float))[1]

    def slopes(self, z):
        """(l', l'') at z, which is overwritten: one exponential per element, at any margin.

        l' = -s and l'' = s (1 - s) with s = 1/(1 + e^z): e^z may overflow to infinity, where s is 0.
        """
        with np.errstate(over="ignore"):
            s = np.exp(z, out=z)
        s += 1.0
        np.reciprocal(s, out=s)
        curvature = np.square(s, out=np.empty_like(s))  # an array where z is one number too
        np.subtract(s, curvature, out=curvature)
        return np.negative(s, out=s), curvature


class Huber(NamedTuple):
    """Huber hinge: 0 for z > 1 + h, (1 + h - z)^2/(4h) for |1 - z| <= h, 1 - z below.

    |l'| <= 1 and l'' <= 1/(2h) (Chaudhuri, Monteleoni, Sarwate, JMLR 12, 2011, equation 7).
    """

    h: float = 0.5
    name: str = "huber"
    kappa: float = 1.0

    @property
    def c(self):
        return 1 / (2 * self.h)

    def value(self, z):
        z = np.asarray(z, dtype=float)
        gap = np.clip((1 + self.h - z) / (2 * self.h), 0.0, None)
        return np.where(gap > 1, 1 - z, self.h * gap * gap)

    def derivative(self, z):
        return -np.clip((1 + self.h - np.asarray(z, dtype=float)) / (2 * self.h), 0.0, 1.0)

    def curvature(self, z):
        return np.where(np.abs(1 - np.asarray(z, dtype=float)) <= self.h, self.c, 0.0)

    def slopes(self, z):
        """(l', l'') at z."""
        return self.derivative(z), self.curvature(z)


class Squared(NamedTuple):
    """l(z) = (1 - z)^2/2, which is (y - w.x)^2/2 for labels in {-1, 1}; its gradient has no bound."""

    name: str = "squared"
    kappa: float = np.inf
    c: float = 1.0

    def value(self, z):
        return (1 - np.asarray(z, dtype=float)) ** 2 / 2

    def derivative(self, z):
        return np.asarray(z, dtype=float) - 1

    def curvature(self, z):
        return np.ones_like(z, dtype=float)

    def slopes(self, z):
        """(l', l'') at z."""
        return self.derivative(z), self.curvature(z)


LOSSES = {"logistic": Logistic, "huber": Huber, "squared": Squared}


def get(loss, **options):
    """A loss by name, with its options (`h` of "huber"); a loss object stays as it is."""
    if not isinstance(loss, str):
        return loss
    if loss not in LOSSES:
        near = get_close_matches(loss, LOSSES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f" (valid: {', '.join(LOSSES)})"
        raise ValueError(f"no loss {loss!r}{hint}")
    return LOSSES[loss](**options)
