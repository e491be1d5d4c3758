"""Stochastic gradient descent as Einarsson's (2018) program runs it."""

import numpy as np

from dp.mechanisms import register
from dp.mechanisms.sgd import DPSGD, OPTIONS, SGD
from dp_privacy.accounting import none

PROGRAM = {key: kind for key, kind in OPTIONS.items() if key not in ("loss", "batch_final")}


class _AsRun:
    """The updates of E18's program, which differ from its formulas.

    The program is github.com/IngvarBjarki/master_thesis. Gradients are
    `dp.descents.stochastic.program_gradient`. lambda multiplies the weights' sum, one number for
    all coordinates.
    """

    numbers = False
    as_run = True

    def _by_rule(self, n, d, p):
        return {"loss": "logistic", "batch_final": None}


@register("dp_sgd_as_run")
class DPSGDAsRun(_AsRun, DPSGD):
    """E18's program, whose noise is a uniform direction with a separate radius for each coordinate.

    The sum of gradients changes by at most 2 clip. But the noise (v_1 l_1, .., v_D l_D), with v
    uniform on the sphere and each l_j ~ Gamma(D, 2 clip/epsilon), does not have the density
    exp(-epsilon ||z||/(2 clip)) that the proof needs. Far out along one coordinate, its density
    falls like exp(-epsilon/(2 clip) (sum_j |z_j|^(2/3))^(3/2)), because the v with the smallest
    sum_j |z_j|/|v_j| dominate. The log ratio of the densities at (t, 0) and (t, c) grows like
    t^(1/3), without bound.
    """

    options = PROGRAM

    @staticmethod
    def law(dimension: int, scale: float, size: int, rng: np.random.Generator) -> np.ndarray:
        direction = rng.standard_normal((size, dimension))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return direction * rng.gamma(dimension, scale, (size, dimension))

    def _guarantee(self, n, d, p):
        if (p.dimensions or d) + p.bias == 1:
            reason = f"one coordinate has Laplace noise of scale {self._scale(p):.6g} in each pass"
            return p.proven(reason, p.epochs * p.epsilon)
        return none(
            p.epsilon,
            f"every coordinate of the noise has a radius of its own, Gamma of scale {self._scale(p):.6g}: "
            f"the quotient of such densities, moved by one record, has no bound",
        )

    def _scale(self, p):
        return 2 * p.clip / p.epsilon


@register("sgd_as_run")
class SGDAsRun(_AsRun, SGD):
    """Without privacy: the descent of `dp_sgd_as_run` without noise."""

    options = PROGRAM
