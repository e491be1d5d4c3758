"""Independent Laplace noise on every weight of a minimiser (Einarsson 2018), and its repair."""

import math

import numpy as np

from dp.accounting import none
from dp.mechanisms import Parameters, register
from dp.mechanisms.nonprivate import weight_statistics
from dp.mechanisms.options import Choice
from dp.mechanisms.output_perturbation import (
    OutputPerturbation,
    Perturbed,
    certificate,
    sensitivity,
)
from dp.noise import laplace
from dp.solvers.fits import INTERCEPTS


class _Coordinates(Perturbed):
    """w + z, with w a minimiser and z independent Laplace coordinates at a subclass' scale.

    info has the statistics that E18 tabulates: the sample variance of the noise on the weights, and
    the mean and variance of the minimiser's weights without noise; each (restarts,).
    """

    law = staticmethod(laplace)
    reports = ("noise_variance", "weights_mean", "weights_variance")
    options = OutputPerturbation.options

    def scale(self, n: int, d: int, p: Parameters) -> float:
        return sensitivity(n, p.lam, p.bound, p.loss) / p.epsilon

    def _statistics(self, weights, noise):
        found = {name: np.repeat(v, len(noise)) for name, v in weight_statistics(weights).items()}
        return {"noise_variance": noise.var(axis=1), **found}


@register("laplace_coordinates")
class LaplaceCoordinates(_Coordinates):
    """E18 as written: lambda beside the mean loss, Laplace 2 kappa R/(n lambda epsilon) per weight.

    The scale is the L2 sensitivity over epsilon. Independent Laplace coordinates need the L1
    sensitivity, which may be sqrt(d) times as large.
    """

    numbers = True
    fit = "l2"

    def _guarantee(self, n, d, p):
        """sqrt(d) epsilon, because ||v||_1 <= sqrt(d) ||v||_2, and what a solver's tolerance adds."""
        scale = self.scale(n, d, p)
        size = math.sqrt(d) * sensitivity(n, p.lam, p.bound, p.loss, p.tolerance)
        return p.proven(
            f"Laplace noise of scale {scale:.6g} on every weight needs the L1 sensitivity, which is at "
            f"most sqrt(d) = {math.sqrt(d):.6g} times the L2 bound 2 kappa R/(n lambda) that it was "
            f"given, with 2 tau/lambda added {size:.6g}, {certificate(p)}",
            size / scale,
        )


@register("laplace_coordinates_sum")
class LaplaceCoordinatesSum(_Coordinates):
    """E18 as run: lambda beside the *summed* loss, with the noise of `laplace_coordinates`.

    The fit minimises ||w||^2/2 + C sum_i loss(y_i (w.x_i + b)) with C = 1/lambda, and with an
    intercept b that is regularised like the weights (`dp.solvers.fits.sum_intercept`). The program that
    E18's appendix names (github.com/IngvarBjarki/master_thesis) does the same, since scikit-learn in 2018
    called liblinear. b is released without noise. info["intercept"]: (restarts,).
    """

    options = OutputPerturbation.options | {"intercept": Choice(*INTERCEPTS)}
    fit = "sum_intercept"
    certified = False  # there is no guarantee

    def _guarantee(self, n, d, p):
        """None, since the intercept has no noise. The weights alone would have sqrt(d) n epsilon."""
        reason = (
            "the intercept is released without noise, and one record changes it; the weights' own bound "
            "would be 2 kappa R/lambda in L2 without an intercept, n times the one the noise has, and "
            "sqrt(d) times as much in L1"
        )
        if p.intercept == "free":
            reason += "; a free intercept voids it"
        return none(p.epsilon, reason)


@register("laplace_l1")
class LaplaceL1(_Coordinates):
    """The repair: lambda beside the mean loss, no free intercept, and noise for the L1 sensitivity."""

    numbers = True
    fit = "l2"

    def scale(self, n: int, d: int, p: Parameters) -> float:
        return math.sqrt(d) * sensitivity(n, p.lam, p.bound, p.loss, p.tolerance) / p.epsilon

    def _guarantee(self, n, d, p):
        """epsilon-DP: the L1 sensitivity is at most sqrt(d) (2 kappa R/(n lambda) + 2 tau/lambda)."""
        scale = self.scale(n, d, p)
        return (
            f"the minimiser's L1 sensitivity is at most sqrt(d) (2 kappa R/(n lambda) + 2 tau/lambda) "
            f"= {scale * p.epsilon:.6g}, {certificate(p)}; Laplace noise of that over epsilon on every "
            f"weight"
        )
