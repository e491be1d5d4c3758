"""Linear regression from noisy sufficient statistics X'X and X'y (SSP, and AdaSSP).

Replace-one, ||x||_2 <= R, labels in {-1, 1}, M = xx' - x'x'', L = yx - y'x', k = -y y' x.x':
||M||_F^2 = |x|^4 + |x'|^4 - 2 k^2 <= 2 R^4 - 2 k^2 and ||L||_2^2 <= 2 R^2 + 2 k (see
`dp.mechanisms.functional.l2_sensitivity`), so that X'X alone moves by at most sqrt(2) R^2, X'y by
2 R, and both together by sqrt(2 R^4 + 2 R^2 - 2 k^2 + 2 k), largest at k = 1/2: sqrt(2) (R^2 + 1/2)
where R^2 >= 1/2, at k = R^2 otherwise: 2 R. The smallest eigenvalue of X'X moves by at most R^2,
since M has one eigenvalue of either sign, both at most R^2 in size.
"""

import math

import numpy as np

from dp import quadratics
from dp.accounting import REPLACE_ONE, Guarantee, gaussian_epsilon, gaussian_sigma
from dp.data import check_rows
from dp.mechanisms import Mechanism, Release, check_choice, check_delta, register
from dp.noise import gaussian


def joint_sensitivity(bound=1.0):
    """L2 sensitivity of (X'X, X'y), Frobenius and Euclidean norms together, for labels in {-1, 1}."""
    return math.sqrt(2) * (bound**2 + 0.5) if bound**2 >= 0.5 else 2 * bound


class _Statistics(Mechanism):
    needs_lambda = False

    def _check_all(self, n, d, epsilon, delta, lam, bound):
        self._check(epsilon, lam, n, d, bound)
        check_delta(self.name, delta)
        if lam is not None and not 0 <= lam < math.inf:
            raise ValueError(f"{self.name} needs a finite lambda >= 0, or none, not {lam}")


@register("sufficient_statistics")
class SufficientStatistics(_Statistics):
    """w solves (X'X + E + n lam I) w = X'y + e for one symmetric draw of Gaussian noise (E, e).

    E is isotropic in the Frobenius norm (`dp.quadratics.isotropic`), so one standard deviation
    serves the joint sensitivity. repair: as in `dp.quadratics.solve`.
    """

    def guarantee(self, n, d, *, epsilon, delta=0.0, lam=None, bound=1.0, repair="ridge"):
        """(epsilon, delta)-DP, analytic calibration (Balle, Wang, ICML 2018)."""
        self._check_all(n, d, epsilon, delta, lam, bound)
        check_choice("repair", repair, quadratics.REPAIRS)
        size = joint_sensitivity(bound)
        sigma = gaussian_sigma(epsilon, delta, size)
        reason = (
            f"X'X and X'y together have L2 sensitivity at most {size:.6g}; one symmetric draw of "
            f"Gaussian noise, standard deviation {sigma:.6g}, off the diagonal of X'X over sqrt(2), "
            f"which is isotropic in its Frobenius norm; analytic calibration"
        )
        return Guarantee(epsilon, epsilon, delta, REPLACE_ONE, reason)

    def release(
        self,
        X,
        y,
        *,
        epsilon,
        delta=0.0,
        lam=None,
        restarts=1,
        rng,
        bound=1.0,
        repair="ridge",
    ):
        """A quadratic without a minimum that `repair: none` leaves alone has status "unbounded"."""
        n, d = np.shape(X)
        self.guarantee(n, d, epsilon=epsilon, delta=delta, lam=lam, bound=bound, repair=repair)
        check_rows(X, y, bound)
        sigma = gaussian_sigma(epsilon, delta, joint_sensitivity(bound))
        gram, moment = quadratics.moments(X, y)
        E, e = quadratics.isotropic(gaussian(quadratics.coefficients(d), sigma, restarts, rng), d)
        A = gram + E + n * (lam or 0.0) * np.eye(d)
        weights, unbounded = quadratics.solve(A, moment + e, sigma, repair)
        failed = ~np.isfinite(weights).all(axis=1)
        return Release(
            np.where(failed[:, None], 0.0, weights),
            np.where(failed, "unbounded", "ok"),
            {"scale": sigma, "unbounded": unbounded},
        )


@register("adassp")
class AdaSSP(_Statistics):
    """SSP with a ridge chosen from a noisy smallest eigenvalue (Wang, UAI 2018, algorithm 2).

    Three Gaussian releases: the smallest eigenvalue of X'X, X'X and X'y.

    calibration:
      "published"  standard deviations sqrt(log(6/delta)) 3/epsilon times the add/remove
                   sensitivities R^2, R^2, R; independent noise in the upper triangle. The guarantee
                   states the epsilon of the composition under replace-one, which at delta = 1e-5 is
                   below a claim of 5 (4.743) and above one of 7 (7.053)
      "analytic"   (epsilon, delta) exactly: a third of the squared Gaussian-DP parameter for the
                   eigenvalue, two thirds for the joint release of X'X and X'y (isotropic)
    failure_probability: rho, with which the ridge may be too small for its utility bound.
    """

    def guarantee(
        self,
        n,
        d,
        *,
        epsilon,
        delta=0.0,
        lam=None,
        bound=1.0,
        calibration="analytic",
        failure_probability=0.05,
    ):
        """(epsilon, delta)-DP by composition of Gaussian mechanisms (Dong, Roth, Su, 2022)."""
        self._check_all(n, d, epsilon, delta, lam, bound)
        check_choice("calibration", calibration, ("analytic", "published"))
        if not 0 < failure_probability < 1:
            raise ValueError(f"failure_probability lies in (0, 1), not {failure_probability}")
        joint = math.hypot(*self._parameters(epsilon, delta, bound, calibration))
        if calibration == "analytic":
            reason = (
                f"a Gaussian release of the smallest eigenvalue and one of X'X and X'y together "
                f"compose exactly to Gaussian DP with mu = {joint:.6g}"
            )
            return Guarantee(epsilon, epsilon, delta, REPLACE_ONE, reason)
        proven = gaussian_epsilon(1 / joint, delta)
        reason = (
            f"the printed deviations are for adding or removing a record; under replace-one the smallest "
            f"eigenvalue, and X'X and X'y together, which cannot both move as far as they can alone, "
            f"compose to Gaussian DP with mu = {joint:.6g}: at this delta epsilon = {proven:.6g}"
        )
        return Guarantee(epsilon, proven, delta, REPLACE_ONE, reason)

    @staticmethod
    def _deviations(epsilon, delta, bound, calibration):
        """Standard deviations of the noise on the eigenvalue, X'X and X'y."""
        if calibration == "published":
            unit = math.sqrt(math.log(6 / delta)) * 3 / epsilon
            return unit * bound**2, unit * bound**2, unit * bound
        unit = gaussian_sigma(epsilon, delta)  # 1/mu
        joint = unit * math.sqrt(3 / 2) * joint_sensitivity(bound)
        return unit * math.sqrt(3) * bound**2, joint, joint

    def _parameters(self, epsilon, delta, bound, calibration):
        """Gaussian-DP parameters under replace-one of the eigenvalue's and of the joint release.

        As published X'X and X'y have different deviations in units of (R^2, R): with x/R for x, the
        pair moves by at most sqrt(2 - 2 k^2 + 2 + 2 k), k in [-1, 1], which is largest at k = 1/2:
        sqrt(9/2), whatever R is. The upper triangle alone moves by no more than the Frobenius norm.
        """
        eigenvalue, matrix, _ = self._deviations(epsilon, delta, bound, calibration)
        if calibration == "published":
            return bound**2 / eigenvalue, math.sqrt(4.5) * bound**2 / matrix
        return bound**2 / eigenvalue, joint_sensitivity(bound) / matrix

    def release(
        self,
        X,
        y,
        *,
        epsilon,
        delta=0.0,
        lam=None,
        restarts=1,
        rng,
        bound=1.0,
        calibration="analytic",
        failure_probability=0.05,
    ):
        """lam, where given, is added to the ridge that the algorithm chooses."""
        n, d = np.shape(X)
        self.guarantee(
            n,
            d,
            epsilon=epsilon,
            delta=delta,
            lam=lam,
            bound=bound,
            calibration=calibration,
            failure_probability=failure_probability,
        )
        check_rows(X, y, bound)
        eigenvalue, matrix, vector = self._deviations(epsilon, delta, bound, calibration)
        gram, moment = quadratics.moments(X, y)
        draws = gaussian(1 + quadratics.coefficients(d), 1.0, restarts, rng)
        E, e = (
            quadratics.isotropic(draws[:, 1:], d)
            if calibration == "analytic"
            else _upper_triangle(draws[:, 1:], d)
        )
        # A lower bound on the smallest eigenvalue; it holds with probability 1 - delta/6 where the
        # logarithm has its factor 2, which the printed algorithm leaves out.
        times = math.sqrt((2 if calibration == "analytic" else 1) * math.log(6 / delta))
        least = np.linalg.eigvalsh(gram)[0] + eigenvalue * (draws[:, 0] - times)
        least = np.maximum(least, 0.0)
        wanted = matrix * math.sqrt(d * math.log(2 * d * d / failure_probability))
        ridge = np.maximum(0.0, wanted - least) + n * (lam or 0.0)
        A = gram + matrix * E + ridge[:, None, None] * np.eye(d)
        # With probability rho the matrix may still have an eigenvalue near or below zero.
        weights, unbounded = quadratics.solve(A, moment + vector * e, repair="trim")
        return Release(weights, np.full(restarts, "ok"), {"scale": matrix, "unbounded": unbounded})


def _upper_triangle(values, d):
    """Unit normals as a vector and a symmetric matrix, independent in its upper triangle."""
    E, e = quadratics.isotropic(values, d)
    return E * np.where(np.eye(d) > 0, 1.0, math.sqrt(2)), e
