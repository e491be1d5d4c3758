"""Boosted AdaSSP: descent on clipped residuals, preconditioned by one noisy Gram matrix.

Tang, Aydore, Kearns, Rho, Roth, Wang, Wang, Wu, "Improved Differentially Private Regression via
Gradient Boosting" (SaTML 2024, arXiv 2303.03451). All parts are Gaussian releases, so their mu^2
add up (Dong, Roth, Su, JRSS B 84, 2022, corollary 3.3).
"""

import math
from collections.abc import Callable

import numpy as np

from dp.mechanism import Parameters
from dp.mechanisms import Mechanism, register
from dp.noise import gaussian
from dp.options import ADJACENCY, PUBLIC_N, Ordinary, Whole, public_size, unused_size
from dp.proofs import quadratics
from dp_privacy import sensitivities
from dp_privacy.profiles import Gaussian

# Shares of mu^2, in the order of `_scales`.
SHARES = 0.1, 0.3, 0.6


def boost(
    X: np.ndarray,
    y: np.ndarray,
    p: Parameters,
    precondition: Callable,
    sigma: float,
    draws: int,
    rng: np.random.Generator,
    clip: float | None = None,
    steps: list | None = None,
) -> np.ndarray:
    """theta (draws, d) after T = p.iterations steps from 0.

    A step is theta += P (X' clip(y - X theta, [-clip, clip]) - n lambda theta + N(0, sigma^2 I)).

    precondition: multiplies row k of a (draws, d) array by draw k's matrix P.
    steps: a list to which every step appends (theta, the vector that P multiplies).
    """
    theta, n_lambda = np.zeros((draws, X.shape[1])), (p.public_n or len(X)) * p.lam
    clip = p.clip if clip is None else clip
    for _ in range(p.iterations):
        residual = theta @ X.T
        np.clip(np.subtract(y, residual, out=residual), -clip, clip, out=residual)
        moment = residual @ X
        if not np.isfinite(moment).all():
            # After overflow, a residual may be NaN, but the record's contribution must stay bounded.
            moment = np.nan_to_num(residual) @ X
        moment = moment - n_lambda * theta + gaussian(X.shape[1], sigma, draws, rng)
        if steps is not None:
            steps.append((theta, moment))
        theta = theta + precondition(moment)
    return theta


@register("boosted_adassp")
class BoostedAdaSSP(Mechanism):
    """Boosted AdaSSP, calibrated exactly, with a ridge for which the descent is stable.

    Three kinds of Gaussian releases:

        released                                          sensitivity                     share of mu^2
        smallest eigenvalue of X'X                        R^2                             10 %
        X'X, isotropic noise of standard deviation s      sqrt(2) R^2 (add-remove: R^2)   30 %
        T sums of x times a residual in [-clip, clip]     2 clip R (clip R)               60 % together

    Let l be the noisy eigenvalue minus 1.96 standard deviations, but at least 0. The ridge is
    max(0, s sqrt(2d) - l/2). Eigenvalues of X'X plus noise and ridge are raised to at least 1.2 s
    sqrt(2d) (`sensitivities.spectral_ridge`).

    clip: maximum absolute residual. 3 to 10 steps with a clip of 0.25 work well untuned. One step
    with a small clip hardly learns, and 30 with a clip of 1 diverge at a small epsilon.
    """

    delta = "needed"
    needs_lambda = False
    numbers = True
    options = {"iterations": Whole(10), "clip": Ordinary(0.25)} | ADJACENCY | PUBLIC_N

    def _mu(self, p):
        return p.mu

    def _scales(self, p):
        """Standard deviations of the noise on the eigenvalue, X'X and every sum of residuals."""
        eigenvalue, gram, moments = (self._mu(p) * math.sqrt(share) for share in SHARES)
        moved = sensitivities.vector_sum(p.clip * p.bound, p.adjacency)
        return (
            sensitivities.smallest_eigenvalue(p.bound) / eigenvalue,
            sensitivities.gram(p.bound, p.adjacency) / gram,
            moved * math.sqrt(p.iterations) / moments,
        )

    def _guarantee(self, n, d, p):
        eigenvalue, gram, moments = self._scales(p)
        reason = (
            f"Gaussian releases of the smallest eigenvalue (standard deviation {eigenvalue:.6g}), of X'X "
            f"({gram:.6g}, isotropic) and of {p.iterations} sums of clipped residuals ({moments:.6g})"
            f"{self._beside(n, p)} compose to Gaussian DP with mu = {p.mu:.6g}"
        )
        # n is used in n lambda, if lambda > 0, and in the means that a subclass releases.
        reason += public_size(p) if p.lam > 0 or self._beside(n, p) else unused_size(p)
        return p.proven(reason, profile=Gaussian(p.mu))

    def _beside(self, n, p):
        """What a subclass's further releases add to the guarantee's reason."""
        return ""

    def _release(self, X, y, p, draws, rng):
        weights, _, _ = self._descend(X, y, p, draws, rng)
        _, scale, sigma = self._scales(p)
        return weights, {"scale": sigma, "matrix_scale": scale}

    def _descend(self, X, y, p, draws, rng, steps=None):
        """Weights (draws, d), noisy X'X (draws, d, d) and P (draws, d, d)."""
        n, d = p.public_n or len(X), X.shape[1]
        eigenvalue, scale, sigma = self._scales(p)
        gram, _ = quadratics.moments(X, y)
        noisy = np.linalg.eigvalsh(gram)[0] + eigenvalue * rng.standard_normal(draws)
        least = sensitivities.eigenvalue_lower_bound(noisy, eigenvalue)
        ridge = sensitivities.spectral_ridge(scale, d, least) + n * p.lam
        floor = sensitivities.eigenvalue_floor(scale, d)
        gram = quadratics.noisy(gram, scale, draws, rng)
        P = quadratics.inverse(gram, ridge, floor)

        def precondition(moment):
            return np.einsum("rij,rj->ri", P, moment)

        return boost(X, y, p, precondition, sigma, draws, rng, steps=steps), gram, P
