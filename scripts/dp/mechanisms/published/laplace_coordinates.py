"""Independent Laplace noise on every weight of a minimiser, as Einarsson (2018) writes and runs it."""

import math

from dp.mechanisms import register
from dp.mechanisms.laplace import Coordinates
from dp.mechanisms.output_perturbation import OutputPerturbation, certificate, sensitivity
from dp.options import Choice
from dp.solvers.fits import INTERCEPTS
from dp_privacy.accounting import none


@register("laplace_coordinates")
class LaplaceCoordinates(Coordinates):
    """E18 as written: lambda beside the mean loss, Laplace scale 2 kappa R/(n lambda epsilon) per weight.

    The scale is the L2 sensitivity over epsilon. But independent Laplace noise needs the L1
    sensitivity, which may be sqrt(d) times as large.
    """

    numbers = True
    fit = "l2"

    def _guarantee(self, n, d, p):
        """sqrt(d) epsilon plus the cost of the solver's tolerance, because ||v||_1 <= sqrt(d) ||v||_2."""
        scale = self.scale(n, d, p)
        size = math.sqrt(d) * sensitivity(n, p.lam, p.bound, p.loss, p.tolerance)
        return p.proven(
            f"Laplace noise of scale {scale:.6g} on every weight needs the L1 sensitivity, which is at "
            f"most sqrt(d) = {math.sqrt(d):.6g} times the L2 bound 2 kappa R/(n lambda) that it was "
            f"given, with 2 tau/lambda added {size:.6g}, {certificate(p)}",
            size / scale,
        )


@register("laplace_coordinates_sum")
class LaplaceCoordinatesSum(Coordinates):
    """E18 as run: lambda beside the *summed* loss, with the noise of `laplace_coordinates`.

    The fit minimises ||w||^2/2 + C sum_i loss(y_i (w.x_i + b)) with C = 1/lambda. The intercept b
    is regularised like the weights (`dp.solvers.fits.sum_intercept`). The program that E18's
    appendix names (github.com/IngvarBjarki/master_thesis) does this too, because LIBLINEAR,
    scikit-learn's default solver in 2018, does.

    info["intercept"]: (restarts,), released without noise.
    """

    options = OutputPerturbation.options | {"intercept": Choice(*INTERCEPTS)}
    fit = "sum_intercept"
    certified = False  # there is no guarantee

    def _guarantee(self, n, d, p):
        reason = (
            "the intercept is released without noise, and one record changes it; the weights' own bound "
            "would be 2 kappa R/lambda in L2 without an intercept, n times the one the noise has, and "
            "sqrt(d) times as much in L1"
        )
        if p.intercept == "free":
            reason += "; a free intercept voids it"
        return none(p.epsilon, reason)
