"""Linear regression from noisy sufficient statistics X'X and X'y (SSP and AdaSSP).

`dp_privacy.sensitivities` proves the sensitivities: `gram_and_moment` for targets in [-1, 1], and
`smallest_eigenvalue`.
"""

import math

import numpy as np

from dp.mechanisms import Mechanism, Release, register
from dp.noise import gaussian
from dp.options import ADJACENCY, PUBLIC_N, Choice, public_size, unused_size
from dp.proofs import quadratics
from dp_privacy.accounting import ADD_REMOVE, gaussian_epsilon, gaussian_sigma
from dp_privacy.profiles import Gaussian
from dp_privacy.sensitivities import gram_and_moment

FAILURE = 0.05  # rho: probability that the published ridge is too small for its utility bound


@register("sufficient_statistics")
class SufficientStatistics(Mechanism):
    """w solves (X'X + E + n lam I) w = X'y + e for one symmetric draw of Gaussian noise (E, e).

    E is isotropic in the Frobenius norm (`dp.proofs.quadratics.isotropic`), so one standard
    deviation covers the joint sensitivity.

    repair: as in `dp.proofs.quadratics.solve`.
    """

    delta = "needed"
    needs_lambda = False
    numbers = True
    options = {"repair": Choice(*quadratics.REPAIRS)}

    def _guarantee(self, n, d, p):
        """(epsilon, delta)-DP by analytic calibration (Balle, Wang, ICML 2018)."""
        size = gram_and_moment(p.bound)
        sigma = gaussian_sigma(p.epsilon, p.delta, size)
        reason = (
            f"X'X and X'y together have L2 sensitivity at most {size:.6g}; one symmetric draw of "
            f"Gaussian noise, standard deviation {sigma:.6g}, off the diagonal of X'X over sqrt(2), "
            f"which is isotropic in its Frobenius norm; analytic calibration"
        )
        return p.proven(reason, profile=Gaussian(p.mu))

    def _release(self, X, y, p, draws, rng):
        """With `repair: none`, a quadratic without a minimum has the status "unbounded"."""
        n, d = X.shape
        sigma = gaussian_sigma(p.epsilon, p.delta, gram_and_moment(p.bound))
        gram, moment = quadratics.moments(X, y)
        E, e = quadratics.isotropic(gaussian(quadratics.coefficients(d), sigma, draws, rng), d)
        A = gram + E + n * p.lam * np.eye(d)
        weights, unbounded = quadratics.solve(A, moment + e, sigma, p.repair)
        failed = ~np.isfinite(weights).all(axis=1)
        status = np.where(failed, "unbounded", "ok")
        return Release(weights, status, {"scale": sigma, "unbounded": unbounded})


@register("adassp")
class AdaSSP(Mechanism):
    """SSP with a ridge chosen from a noisy smallest eigenvalue (Wang, UAI 2018, algorithm 2).

    X'X, its smallest eigenvalue and X'y get Gaussian noise.

    calibration:
      "published"  standard deviations sqrt(log(6/delta)) 3/epsilon times the add/remove sensitivities
                   R^2, R^2, R, with independent noise in the upper triangle. The guarantee states the
                   epsilon of the composition: at delta = 1e-5 and under replace-one, 4.743 for a
                   claimed 5, and 7.053 for 7; under add-remove, for which the algorithm claims it,
                   less than is claimed
      "analytic"   (epsilon, delta) exactly: a third of the squared Gaussian-DP parameter for the
                   eigenvalue, two thirds for the joint release of X'X and X'y (isotropic)
    ridge:
      "published"  by a union bound, max(0, s sqrt(d log(2 d^2/rho)) - l), where s is the noise's
                   standard deviation on the diagonal, l is a lower bound on the smallest
                   eigenvalue, and rho = 0.05
      "spectral"   max(0, e - l), where e, the edge of the semicircle law, is about the spectral norm
                   of the noise: s sqrt(2d) for isotropic noise, 2 s sqrt(d) for the published noise
    """

    delta = "needed"
    needs_lambda = False
    numbers = True
    options = {
        "calibration": Choice("analytic", "published"),
        "ridge": Choice("published", "spectral"),
        **ADJACENCY,
        **PUBLIC_N,
    }

    def _guarantee(self, n, d, p):
        """(epsilon, delta)-DP by composition of Gaussian mechanisms (Dong, Roth, Su, 2022)."""
        joint = math.hypot(*self._mus(p))
        size = public_size(p) if p.lam > 0 else unused_size(p)
        if p.calibration == "analytic":
            reason = (
                f"a Gaussian release of the smallest eigenvalue and one of X'X and X'y together "
                f"(standard deviation {self._deviations(p)[1]:.6g}) compose exactly to Gaussian DP with "
                f"mu = {joint:.6g}{size}"
            )
            return p.proven(reason, profile=Gaussian(joint))
        proven = gaussian_epsilon(1 / joint, p.delta)
        deviation = f"the printed deviations ({self._deviations(p)[1]:.6g} on X'X)"
        if p.adjacency == ADD_REMOVE:
            reason = (
                f"{deviation} make three Gaussian releases, each with the sensitivity of a removed record; "
                f"they compose to Gaussian DP with mu = {joint:.6g}: at this delta epsilon = "
                f"{proven:.6g}{size}"
            )
        else:
            reason = (
                f"{deviation} are for adding or removing a record; under replace-one the smallest "
                f"eigenvalue, and X'X and X'y together, which cannot both move as far as they can alone, "
                f"compose to Gaussian DP with mu = {joint:.6g}: at this delta epsilon = {proven:.6g}"
            )
        return p.proven(reason, proven, Gaussian(joint))

    def _deviations(self, p):
        """Standard deviations of the noise on the eigenvalue, X'X and X'y."""
        if p.calibration == "published":
            unit = math.sqrt(math.log(6 / p.delta)) * 3 / p.epsilon
            return unit * p.bound**2, unit * p.bound**2, unit * p.bound
        unit = gaussian_sigma(p.epsilon, p.delta)  # 1/mu
        joint = unit * math.sqrt(3 / 2) * gram_and_moment(p.bound, adjacency=p.adjacency)
        return unit * math.sqrt(3) * p.bound**2, joint, joint

    def _mus(self, p):
        """Gaussian-DP parameters of the eigenvalue's release and of the joint release.

        The published deviations of X'X and X'y are in the ratio R^2 to R, so R cancels. With rows
        rescaled to x/R, (X'X, X'y) changes under replace-one by at most sqrt(2 - 2 k^2 + 2 + 2 k), where
        k is |cos| of the angle between the two rows. The maximum, sqrt(9/2), is at k = 1/2. A removed
        record changes it by at most sqrt(1 + 1). In the Frobenius norm, the upper triangle changes by no
        more than the whole matrix.
        """
        eigenvalue, matrix, _ = self._deviations(p)
        joint = gram_and_moment(p.bound, adjacency=p.adjacency)
        if p.calibration == "published":
            joint = math.sqrt(2 if p.adjacency == ADD_REMOVE else 4.5) * p.bound**2
        return p.bound**2 / eigenvalue, joint / matrix

    def _release(self, X, y, p, draws, rng):
        n, d = p.public_n or len(X), X.shape[1]
        analytic = p.calibration == "analytic"
        eigenvalue, matrix, vector = self._deviations(p)
        gram, moment = quadratics.moments(X, y)
        noise = gaussian(1 + quadratics.coefficients(d), 1.0, draws, rng)
        E, e = (quadratics.isotropic if analytic else quadratics.upper_triangle)(noise[:, 1:], d)
        # With the factor 2 under the root, `least` is at most the smallest eigenvalue with
        # probability at least 1 - delta/6. The published algorithm omits this factor.
        times = math.sqrt((2 if analytic else 1) * math.log(6 / p.delta))
        least = np.linalg.eigvalsh(gram)[0] + eigenvalue * (noise[:, 0] - times)
        least = np.maximum(least, 0.0)
        factor = math.log(2 * d * d / FAILURE)
        if p.ridge == "spectral":
            factor = 2 if analytic else 4
        wanted = matrix * math.sqrt(d * factor)
        ridge = np.maximum(0.0, wanted - least) + n * p.lam
        A = gram + matrix * E + ridge[:, None, None] * np.eye(d)
        # Despite the ridge, an eigenvalue of A may be near zero or negative.
        weights, unbounded = quadratics.solve(A, moment + vector * e, repair="trim")
        return weights, {"scale": matrix, "unbounded": unbounded}
