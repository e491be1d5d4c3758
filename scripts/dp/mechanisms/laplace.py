"""Independent Laplace noise on every weight of a minimiser (Einarsson 2018), and its repair."""

import math

from dp.accounting import REPLACE_ONE, Guarantee, none
from dp.mechanisms import register
from dp.mechanisms.nonprivate import weight_statistics
from dp.mechanisms.output_perturbation import EVERYWHERE, Perturbed, sensitivity
from dp.noise import laplace
from dp.solvers import check_certifiable


class _Coordinates(Perturbed):
    """w + z, w a minimiser and z independent Laplace coordinates of a subclass' scale.

    info has the statistics that E18 tabulates: the sample variance of the noise on the weights, and
    the mean and variance of the minimiser's weights before it; each (restarts,).
    """

    law = staticmethod(laplace)
    reports = ("noise_variance", "weights_mean", "weights_variance")

    def _statistics(self, weights, noise):
        return {"noise_variance": noise.var(axis=1), **weight_statistics(weights, len(noise))}


@register("laplace_coordinates")
class LaplaceCoordinates(_Coordinates):
    """E18 as written: lambda beside the mean loss, Laplace 2 kappa R/(n lambda epsilon) per weight.

    The scale is the L2 sensitivity over epsilon. Independent Laplace coordinates need the L1
    sensitivity, which the L2 bound allows to be sqrt(d) times as large.
    """

    fit = "l2"

    def scale(self, n, d, *, epsilon, lam, bound=1.0, loss="logistic", tolerance=0.0):
        return sensitivity(n, lam, bound, loss) / epsilon

    def guarantee(
        self, n, d, *, epsilon, delta=0.0, lam=None, bound=1.0, loss="logistic", tolerance=1e-9
    ):
        """sqrt(d) epsilon: ||v||_1 <= sqrt(d) ||v||_2, and the certified minimiser paid for."""
        self._check(epsilon, lam, n, d, bound)
        scale = self.scale(
            n, d, epsilon=epsilon, lam=lam, bound=bound, loss=loss, tolerance=tolerance
        )
        check_certifiable(n, d, lam, bound, loss, tolerance)
        size = math.sqrt(d) * sensitivity(n, lam, bound, loss, tolerance)
        reason = (
            f"Laplace noise of scale {scale:.6g} on every weight needs the L1 sensitivity, which is at "
            f"most sqrt(d) = {math.sqrt(d):.6g} times the L2 bound 2 kappa R/(n lambda) that it was "
            f"given, with 2 tau/lambda added {size:.6g}, tau = {tolerance:g} the gradient norm that "
            f"{EVERYWHERE}"
        )
        return Guarantee(epsilon, size / scale, 0.0, REPLACE_ONE, reason)


@register("laplace_coordinates_sum")
class LaplaceCoordinatesSum(_Coordinates):
    """E18 as run: lambda beside the *summed* loss, with the noise of `laplace_coordinates`.

    The fit minimises ||w||^2/2 + C sum_i loss(y_i (w.x_i + b)) with C = 1/lambda and a free
    intercept b, as scikit-learn's LogisticRegression does; b is released without noise.
    info["intercept"]: (restarts,).
    """

    fit = "sum_intercept"

    def scale(self, n, d, *, epsilon, lam, bound=1.0, loss="logistic", tolerance=0.0):
        return sensitivity(n, lam, bound, loss) / epsilon

    def guarantee(
        self, n, d, *, epsilon, delta=0.0, lam=None, bound=1.0, loss="logistic", tolerance=1e-9
    ):
        """None: the intercept is exact. Without it the weights alone would have sqrt(d) n epsilon."""
        self._check(epsilon, lam, n, d, bound)
        self.scale(n, d, epsilon=epsilon, lam=lam, bound=bound, loss=loss, tolerance=tolerance)
        return none(
            epsilon,
            "the intercept is released without noise, and a free intercept voids the weights' "
            "sensitivity bound; that bound itself would be 2 kappa R/lambda in L2, n times the one "
            "the noise has, and sqrt(d) times as much in L1",
        )


@register("laplace_l1")
class LaplaceL1(_Coordinates):
    """The repair: lambda beside the mean loss, no free intercept, and the L1 sensitivity paid for."""

    fit = "l2"

    def scale(self, n, d, *, epsilon, lam, bound=1.0, loss="logistic", tolerance=0.0):
        return math.sqrt(d) * sensitivity(n, lam, bound, loss, tolerance) / epsilon

    def guarantee(
        self, n, d, *, epsilon, delta=0.0, lam=None, bound=1.0, loss="logistic", tolerance=1e-9
    ):
        """epsilon-DP: the L1 sensitivity is at most sqrt(d) (2 kappa R/(n lambda) + 2 tau/lambda)."""
        self._check(epsilon, lam, n, d, bound)
        scale = self.scale(
            n, d, epsilon=epsilon, lam=lam, bound=bound, loss=loss, tolerance=tolerance
        )
        check_certifiable(n, d, lam, bound, loss, tolerance)
        reason = (
            f"the minimiser's L1 sensitivity is at most sqrt(d) (2 kappa R/(n lambda) + 2 tau/lambda) "
            f"= {scale * epsilon:.6g}, tau = {tolerance:g} the gradient norm that {EVERYWHERE}; Laplace "
            f"noise of that over epsilon on every weight"
        )
        return Guarantee(epsilon, epsilon, 0.0, REPLACE_ONE, reason)
