"""Boosted AdaSSP: descent on clipped residuals, preconditioned by one noisy Gram matrix.

Tang, Aydore, Kearns, Rho, Roth, Wang, Wang, Wu, "Improved Differentially Private Regression via Gradient
Boosting" (SaTML 2024, arXiv 2303.03451): AdaSSP is fitted T times to residuals that are clipped to a fixed
threshold, always with the same noisy X'X. Every part is a Gaussian release, so they compose exactly: mu^2
is the sum of the parts' mu^2 (Dong, Roth, Su, JRSS B 84, 2022, corollary 3.3).
"""

import math
from collections.abc import Callable

import numpy as np

from dp.accounting import ADD_REMOVE, Guarantee, gaussian_epsilon
from dp.mechanisms import Mechanism, Parameters, register
from dp.mechanisms.options import ADJACENCY, Ordinary, Whole, public_size
from dp.noise import gaussian
from dp.privacy import quadratics, sensitivities
from dp.privacy.profiles import Gaussian

# Shares of mu^2: for the smallest eigenvalue, the Gram matrix and the T moments of residuals.
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
    """theta += P (X' clip(y - X theta, [-clip, clip]) - n lambda theta + N(0, sigma^2 I)), T times, from 0.

    precondition: (draws, d) -> (draws, d), multiplies each draw by its P. T is p.iterations. clip: p.clip
    if none is given. steps: a list to which every step adds (theta, the vector that P multiplies). Returns
    theta (draws, d).
    """
    theta, n_lambda = np.zeros((draws, X.shape[1])), len(X) * p.lam
    clip = p.clip if clip is None else clip
    for _ in range(p.iterations):
        residual = theta @ X.T
        np.clip(np.subtract(y, residual, out=residual), -clip, clip, out=residual)
        moment = residual @ X
        if not np.isfinite(moment).all():
            # If its products overflow, a score is not a number. The record's share must stay bounded.
            moment = np.nan_to_num(residual) @ X
        moment = moment - n_lambda * theta + gaussian(X.shape[1], sigma, draws, rng)
        if steps is not None:
            steps.append((theta, moment))
        theta = theta + precondition(moment)
    return theta


@register("boosted_adassp")
class BoostedAdaSSP(Mechanism):
    """Boosted AdaSSP, calibrated exactly, with a ridge under which the descent is stable.

    There are three kinds of Gaussian releases:

        released                                          sensitivity                     share of mu^2
        smallest eigenvalue of X'X                        R^2                             10 %
        X'X, isotropic noise of standard deviation s      sqrt(2) R^2 (add-remove: R^2)   30 %
        T sums of x times a residual in [-clip, clip]     2 clip R (clip R)               60 % together

    Let l be the noisy eigenvalue minus 1.96 standard deviations, at least 0. The ridge is
    max(0, s sqrt(2d) - l/2), and eigenvalues of X'X with noise and ridge are raised to at least
    1.2 s sqrt(2d): see `sensitivities.spectral_ridge`.

    clip: for residuals of targets in [-1, 1]. With one step and a small clip, hardly anything is learnt.
    With 30 steps and a clip of 1, the descent diverges at a small epsilon. 3 to 10 steps and a clip of
    0.25 do well without a search.
    """

    delta = "needed"
    needs_lambda = False
    numbers = True
    options = {"iterations": Whole(10), "clip": Ordinary(0.25)} | ADJACENCY

    def _mu(self, p):
        """Gaussian-DP parameter that is left for these releases together."""
        return p.mu

    def _scales(self, p):
        """Standard deviations on the smallest eigenvalue, on X'X and on every sum of residuals."""
        eigenvalue, gram, moments = (self._mu(p) * math.sqrt(share) for share in SHARES)
        moved = sensitivities.vector_sum(p.clip * p.bound, p.adjacency)
        return (
            sensitivities.smallest_eigenvalue(p.bound) / eigenvalue,
            sensitivities.gram(p.bound, p.adjacency) / gram,
            moved * math.sqrt(p.iterations) / moments,
        )

    def _guarantee(self, n, d, p):
        """(epsilon, delta)-DP: the parts compose to mu."""
        eigenvalue, gram, moments = self._scales(p)
        reason = (
            f"Gaussian releases of the smallest eigenvalue (standard deviation {eigenvalue:.6g}), of X'X "
            f"({gram:.6g}, isotropic) and of {p.iterations} sums of clipped residuals ({moments:.6g})"
            f"{self._beside(n, p)} compose to Gaussian DP with mu = {p.mu:.6g}"
        )
        if p.lam > 0 or self._beside(n, p):  # every sum contains n lambda, and a mean divides by n
            reason += public_size(p)
        return p.proven(reason, profile=Gaussian(p.mu))

    def _beside(self, n, p):
        """In words, what else is released."""
        return ""

    def _release(self, X, y, p, draws, rng):
        weights, _, _ = self._descend(X, y, p, draws, rng)
        _, scale, sigma = self._scales(p)
        return weights, {"scale": sigma, "matrix_scale": scale}

    def _descend(self, X, y, p, draws, rng, steps=None):
        """(weights (draws, d), the noisy X'X and P, each (draws, d, d))."""
        n, d = X.shape
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


@register("boosted_adassp_released")
class BoostedAdaSSPReleased(Mechanism):
    """Boosted AdaSSP as its authors' program does it, described from its facts and written anew.

    The program uses the Gaussian-DP parameter mu of (epsilon, delta) as the noise *multiplier*, although
    1/mu is needed, and uses it for each of the T + 2 releases, although they share one budget. The standard
    deviations are mu R^2 on the smallest eigenvalue and on the upper triangle of X'X, and mu R Y on every
    X' residual. So the releases compose to Gaussian DP with the parameter sqrt(T + 2)/mu (under add-remove,
    for which the program's sensitivities are right). The claim is the epsilon that was asked for, and the
    epsilon that this noise gives is proven. The ridge is max(0, 1.96 sqrt(d) mu R^2 - l), with l as in
    `boosted_adassp`. Residuals are clipped to Y = 1.
    """

    delta = "needed"
    needs_lambda = False
    numbers = True
    options = {"iterations": Whole(100)}

    def _guarantee(self, n, d, p):
        """(epsilon, delta) claimed; the epsilon at delta of T + 2 Gaussian releases proven."""
        multiplier = p.mu
        mu = math.sqrt(p.iterations + 2) / multiplier
        proven = gaussian_epsilon(1 / mu, p.delta)
        reason = (
            f"{p.iterations + 2} Gaussian releases with {multiplier:.6g} times their sensitivities as "
            f"standard deviations compose to Gaussian DP with mu = {mu:.6g}: at this delta epsilon = "
            f"{proven:.6g}; the claim needs {mu / multiplier:.6g} times that noise"
        )
        return Guarantee(p.epsilon, proven, p.delta, ADD_REMOVE, reason, Gaussian(mu))

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        scale, sigma = p.mu * p.bound**2, p.mu * p.bound
        gram, _ = quadratics.moments(X, y)
        noise = gaussian(quadratics.coefficients(d), scale, draws, rng)
        E, _ = quadratics.upper_triangle(noise, d)
        noisy = np.linalg.eigvalsh(gram)[0] + scale * rng.standard_normal(draws)
        least = sensitivities.eigenvalue_lower_bound(noisy, scale)
        ridge = np.maximum(0.0, 1.96 * math.sqrt(d) * scale - least) + n * p.lam
        A = gram + E + ridge[:, None, None] * np.eye(d)

        def precondition(moment):
            return np.linalg.solve(A, moment[..., None])[..., 0]

        return boost(X, y, p, precondition, sigma, draws, rng, clip=1.0), {"scale": sigma}
