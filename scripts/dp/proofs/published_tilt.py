"""Calibrations of Gaussian objective perturbation as published: AMP, and Redberg, Koskela and Wang.

They are for comparison; `dp.proofs.gaussian_tilt` proves the privacy that they really give. `slope` is
kappa R, the bound on a record's gradient. `curvature` is sup l'' R^2.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from dp_privacy import roots
from dp_privacy.accounting import gaussian_sigma, renyi_epsilon
from dp_privacy.errors import Refused
from dp_privacy.profiles import gaussian_profile


class Tilt(NamedTuple):
    """A published calibration.

    n_lambda: ridge for the *summed* loss. sigma: standard deviation of its tilt. sigma_output:
    standard deviation of the noise on weights. gradient_norm: tau, a bound on the gradient norm of the
    *mean* objective (`amp`) or of the *summed* one (`redberg`).
    """

    n_lambda: float
    sigma: float
    sigma_output: float
    gradient_norm: float


def amp_share(epsilon: float) -> float:
    """The tilt's share of epsilon_obj (see `amp`), by the untuned rule in the appendix of AMP's paper."""
    return max(min(0.88671 + 0.0186607 * epsilon**-0.372906, 0.99), 1 - 1 / epsilon + 0.001)


def amp(
    epsilon: float,
    delta: float,
    n: int,
    slope: float = 1.0,
    curvature: float | None = None,
    share: float | None = None,
) -> Tilt:
    """Approximate minima perturbation (Iyengar et al., IEEE S&P 2019, algorithm 1), replace-one.

    The output noise spends epsilon_out = .01 epsilon and delta_out = .01 delta; epsilon_obj and delta_obj
    remain. The tilt spends epsilon_p = share epsilon_obj. The Jacobian, of rank 2, spends epsilon_obj -
    epsilon_p, which must be below 1:

        Lambda                      2 curvature/(epsilon_obj - epsilon_p)
        noise on the mean gradient  (2 slope/n)(1 + sqrt(2 log(1/delta_obj)))/epsilon_p
        noise on the weights        (n tau/Lambda)(1 + sqrt(2 log(1/delta_out)))/epsilon_out, tau = 1/n^2

    curvature: by default slope^2, as in the paper.
    """
    curvature = slope**2 if curvature is None else curvature
    epsilon_out, delta_out = 0.01 * epsilon, 0.01 * delta
    epsilon_obj, delta_obj = epsilon - epsilon_out, delta - delta_out
    epsilon_p = (amp_share(epsilon) if share is None else share) * epsilon_obj
    rest = epsilon_obj - epsilon_p
    if not 0 < rest < 1:
        raise Refused(
            f"AMP leaves an epsilon of {rest:.6g} for the Jacobian, and its proof needs one between 0 and "
            f"1: choose another epsilon"
        )
    n_lambda = 2 * curvature / rest
    gradient_norm = 1 / n**2

    def factor(part):
        return 1 + math.sqrt(2 * math.log(1 / part))

    return Tilt(
        n_lambda,
        2 * slope * factor(delta_obj) / epsilon_p,
        n * gradient_norm / n_lambda * factor(delta_out) / epsilon_out,
        gradient_norm,
    )


def redberg_delta(
    epsilon: float, sigma: float, n_lambda: float, slope: float = 1.0, curvature: float = 0.25
) -> float:
    """delta of the exact minimiser (Redberg, Koskela and Wang, NeurIPS 2023, theorem 1), add/remove.

    Let j = |log(1 - curvature/Lambda)|, m = slope/sigma, and G(m) the Gaussian profile. If epsilon >= j +
    m^2/2, delta is 2 G(m)(epsilon - j). Otherwise it is 1 - e^x + 2 e^x G(m)(m^2/2) with x = epsilon - j -
    m^2/2. If Lambda <= curvature, delta is 1.
    """
    if n_lambda <= curvature:
        return 1.0
    m = slope / sigma
    left = epsilon + math.log1p(-curvature / n_lambda)
    if left >= m * m / 2:
        return min(1.0, 2 * float(gaussian_profile(m, left)))
    below = left - m * m / 2
    return min(
        1.0, -math.expm1(below) + 2 * math.exp(below) * float(gaussian_profile(m, m * m / 2))
    )


def redberg_renyi(
    order: float | np.ndarray,
    sigma: float,
    n_lambda: float,
    slope: float = 1.0,
    curvature: float = 0.25,
) -> float | np.ndarray:
    """The Rényi divergence by Redberg, Koskela and Wang's bound, add/remove.

    The bound is j + m^2/2 + log E e^((a-1) |N(0, m^2)|)/(a-1) at order a, with j and m as in
    `redberg_delta`. The folded normal's moment generating function is 2 e^(t^2 m^2/2) Phi(t m) at t.
    """
    from scipy.special import log_ndtr

    m, t = slope / sigma, np.asarray(order, dtype=float) - 1
    moment = math.log(2) + (t * m) ** 2 / 2 + log_ndtr(t * m)
    return -math.log1p(-curvature / n_lambda) + m * m / 2 + moment / t


def _sigma(private, start):
    return roots.least(private, start / 2, start, relative=1e-10, most=1e6 * start)


def redberg_sigma(
    epsilon: float, delta: float, n_lambda: float, slope: float = 1.0, curvature: float = 0.25
) -> float:
    """The smallest sigma for which `redberg_delta` is at most delta; infinite if there is none."""
    return _sigma(
        lambda sigma: redberg_delta(epsilon, sigma, n_lambda, slope, curvature) <= delta,
        gaussian_sigma(epsilon, delta, slope),
    )


@cache
def redberg(
    epsilon: float,
    delta: float,
    slope: float = 2**0.5,
    curvature: float = 0.5,
    sigma_output: float = 0.15,
    gradient_norm: float = 5e-4,
    largest: float = 1.3,
) -> Tilt:
    """Redberg, Koskela and Wang's calibration, add/remove.

    Lambda is the smallest for which sigma is at most `largest` times the Gaussian mechanism's, on a grid
    from 2 curvature/epsilon upwards in steps of 5 %. Tilt and output noise compose through Rényi
    divergences. Output noise is for a sensitivity of 2 tau/Lambda, where tau, `gradient_norm`, bounds the
    *summed* objective's gradient. Defaults are the paper's, for rows of norm 1 and an intercept.
    """
    gauss = gaussian_sigma(epsilon, delta, slope)
    start = n_lambda = 2 * curvature / epsilon
    while n_lambda < 1000 * start:
        mu = 2 * gradient_norm / n_lambda / sigma_output

        def private(sigma, n_lambda=n_lambda, mu=mu):
            if n_lambda <= curvature:
                return False

            def both(a):
                return redberg_renyi(a, sigma, n_lambda, slope, curvature) + a * mu**2 / 2

            return renyi_epsilon(both, delta) <= epsilon

        if private(largest * gauss):
            return Tilt(n_lambda, _sigma(private, gauss), sigma_output, gradient_norm)
        n_lambda *= 1.05
    raise Refused(
        f"at epsilon = {epsilon:g} the calibration of Redberg, Koskela and Wang finds no Lambda for output "
        f"noise of standard deviation {sigma_output:g}: give a larger sigma_output"
    )
