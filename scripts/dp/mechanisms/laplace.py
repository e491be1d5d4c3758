"""Independent Laplace noise on every weight of a minimiser: `laplace_coordinates`, repaired."""

import math

import numpy as np

from dp.mechanism import Parameters
from dp.mechanisms import register
from dp.mechanisms.nonprivate import weight_statistics
from dp.mechanisms.output_perturbation import (
    OutputPerturbation,
    Perturbed,
    certificate,
    sensitivity,
)
from dp.noise import laplace, numbers


class Coordinates(Perturbed):
    """w + z, where w is a minimiser, and z has independent Laplace coordinates of scale `scale`.

    info contains E18's statistics, each (restarts,): sample variance of the noise, mean and
    variance of the noiseless weights.
    """

    law = staticmethod(laplace)
    reports = ("noise_variance", "weights_mean", "weights_variance")
    options = OutputPerturbation.options

    def scale(self, n: int, d: int, p: Parameters) -> float:
        return sensitivity(n, p.lam, p.bound, p.loss) / p.epsilon

    def _statistics(self, weights, noise):
        own = {name: np.repeat(v, len(noise)) for name, v in weight_statistics(weights).items()}
        return {"noise_variance": numbers(noise).var(axis=1), **own}


@register("laplace_l1")
class LaplaceL1(Coordinates):
    """`laplace_coordinates`, repaired: noise for the L1 sensitivity, and no free intercept."""

    numbers = True
    fit = "l2"

    def scale(self, n: int, d: int, p: Parameters) -> float:
        return math.sqrt(d) * sensitivity(n, p.lam, p.bound, p.loss, p.tolerance) / p.epsilon

    def _guarantee(self, n, d, p):
        scale = self.scale(n, d, p)
        return (
            f"the minimiser's L1 sensitivity is at most sqrt(d) (2 kappa R/(n lambda) + 2 tau/lambda) "
            f"= {scale * p.epsilon:.6g}, {certificate(p)}; Laplace noise of that over epsilon on every "
            f"weight"
        )
