"""Boosted AdaSSP as in its authors' program (Tang et al. 2024)."""

import math

import numpy as np

from dp.mechanisms import Mechanism, Release, register
from dp.mechanisms.boosted_adassp import boost
from dp.noise import gaussian
from dp.options import Whole
from dp.proofs import quadratics
from dp_privacy import sensitivities
from dp_privacy.accounting import ADD_REMOVE, gaussian_epsilon, none


@register("boosted_adassp_released")
class BoostedAdaSSPReleased(Mechanism):
    """Boosted AdaSSP as in its authors' program, reimplemented from a description.

    The program takes the Gaussian-DP parameter mu of (epsilon, delta), instead of 1/mu, as the
    noise *multiplier* of each of T + 2 releases (T = `iterations`). Standard deviations are mu R^2 on
    the eigenvalue and on the upper triangle of X'X. On every sum X' residual, with residuals clipped
    to Y = 1, they are mu R Y. If the program took the smallest eigenvalue of X'X, the releases
    together would be Gaussian DP with parameter sqrt(T + 2)/mu under add-remove.

    But it takes the smallest *positive* eigenvalue, whose change is not bounded by R^2.
    For n - 1 equal records of norm R, it is (n - 1) R^2; one tiny record along another axis makes
    it tiny. Without a positive eigenvalue, as for rows of zeros, the program fails. So no finite
    epsilon holds.

    The ridge is max(0, 1.96 sqrt(d) mu R^2 - l), with l as in `boosted_adassp`. Draws are
    random, although the program's default seed is fixed. Failures have the status "failed" and
    weights of 0.
    """

    delta = "needed"
    needs_lambda = False
    numbers = True
    options = {"iterations": Whole(100)}

    def _guarantee(self, n, d, p):
        multiplier = p.mu
        mu = math.sqrt(p.iterations + 2) / multiplier
        reason = (
            "the smallest positive eigenvalue of X'X has noise for a change of R^2, but a record that is "
            "the first along its axis moves it by up to n - 1 times that, and without a positive one the "
            f"program fails; with the smallest eigenvalue in its place, {p.iterations + 2} Gaussian "
            f"releases with {multiplier:.6g} times their sensitivities as standard deviations would "
            f"compose to Gaussian DP with mu = {mu:.6g}: at this delta epsilon = "
            f"{gaussian_epsilon(1 / mu, p.delta):.6g}, and the claim would need {mu / multiplier:.6g} "
            "times that noise"
        )
        return none(p.epsilon, reason, ADD_REMOVE)

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        scale, sigma = p.mu * p.bound**2, p.mu * p.bound
        gram, _ = quadratics.moments(X, y)
        eigenvalue = smallest_positive_eigenvalue(gram)
        if eigenvalue is None:
            return Release(np.zeros((draws, d)), np.full(draws, "failed"), {"scale": sigma})
        noise = gaussian(quadratics.coefficients(d), scale, draws, rng)
        E, _ = quadratics.upper_triangle(noise, d)
        noisy = eigenvalue + scale * rng.standard_normal(draws)
        least = sensitivities.eigenvalue_lower_bound(noisy, scale)
        ridge = np.maximum(0.0, 1.96 * math.sqrt(d) * scale - least) + n * p.lam
        A = gram + E + ridge[:, None, None] * np.eye(d)

        def precondition(moment):
            return np.linalg.solve(A, moment[..., None])[..., 0]

        return boost(X, y, p, precondition, sigma, draws, rng, clip=1.0), {"scale": sigma}


def smallest_positive_eigenvalue(gram: np.ndarray) -> float | None:
    """The smallest positive eigenvalue of a symmetric matrix (d, d), or None if there is none."""
    from scipy.linalg import eigvalsh  # only this program needs it

    positive = eigvalsh(gram, subset_by_value=(0.0, math.inf))
    return float(positive[0]) if len(positive) else None
