"""The l2 mechanism: noise b in d dimensions with density proportional to exp(-||b||/s).

Under a shift of length D, the privacy loss is L = (||b + v|| - ||b||)/s with ||v|| = D. Write m = D/s. In
prolate spheroidal coordinates with foci 0 and -v, xi = (||b|| + ||b+v||)/D >= 1 and eta = (||b+v|| -
||b||)/D in [-1, 1], db is proportional to (xi^2 - eta^2) ((xi^2 - 1)(1 - eta^2))^((d-3)/2) dxi deta, and
L = m eta. The integral over xi is a Bessel function, so with eta = cos(theta), z = m/2 and nu = d/2 - 1,

    theta has the density  sin^(d-2)(theta) (a + sin^2(theta)) e^(z cos(theta)) / (a B_nu + B_(nu+1)),
    a = (d-1)/z K_(nu+1)(z)/K_nu(z),  B_nu = sqrt(pi) Gamma(nu+1/2)/Gamma(nu+1) 0F1(; nu+1; z^2/4)

for d >= 2. In one dimension, L is m with probability 1/2, -m with probability e^-m/2, and has the density
e^((x-m)/2)/4 between. The same law for d = 2 and 3, bounded by spherical caps: Joseph, Kulesza, Yu (ICML
2025).

The integrands are positive, so nothing cancels. Against 40 digits, the relative error is below 1e-12 for d
<= 1000 and m <= 30; `delta` is increased by MARGIN of itself, which covers it.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dp.accounting import legendre

__all__ = ["delta", "expected", "scale"]

MARGIN = 1e-10  # `delta` is larger than its quadrature by this relative amount
ORDER = 32  # nodes of a panel
SERIES = 500.0  # largest z for which 0F1 is summed, at most e^z


def _check(m, d):
    if not (isinstance(d, int | np.integer) and d >= 1):
        raise ValueError(f"the l2 mechanism needs a whole number of dimensions d >= 1, not {d!r}")
    if not (0 <= m < math.inf):
        raise ValueError(f"the shift in units of the scale must be finite and >= 0, not {m!r}")


def _bessel_ratio(nu, z):
    """K_(nu+1)(z)/K_nu(z) for nu = 0, 1/2, 1, ..: a recurrence of positive terms."""
    from scipy.special import kve

    order, ratio = (-0.5, 1.0) if nu % 1 else (0.0, float(kve(1, z) / kve(0, z)))
    while order < nu:
        order += 1
        ratio = 2 * order / z + 1 / ratio
    return ratio


def _log_bessel(nu, z):
    """log B_nu."""
    from scipy.special import gammaln, ive

    if z > SERIES:  # B_nu = sqrt(pi) Gamma(nu+1/2) (2/z)^nu I_nu(z)
        parts = gammaln(nu + 0.5), nu * math.log(2 / z), math.log(ive(nu, z)), z
        return math.log(math.pi) / 2 + float(sum(parts))
    term = total = 1.0
    k, x = 0, z * z / 4
    while term > 1e-18 * total or x > (k + 1) * (nu + 1 + k) / 2:
        k += 1
        term *= x / (k * (nu + k))
        total += term
    return math.log(math.pi) / 2 + float(gammaln(nu + 0.5) - gammaln(nu + 1)) + math.log(total)


@lru_cache(maxsize=4096)
def _constants(m, d):
    """a, and the logarithm of the density's constant."""
    z, nu = m / 2, d / 2 - 1
    a = (d - 1) / z * _bessel_ratio(nu, z)
    first, second = _log_bessel(nu, z), _log_bessel(nu + 1, z)
    return a, -first - math.log(a + math.exp(second - first))


def _quadrature(start, stop, panels):
    x, weight = legendre(ORDER)
    width = (stop - start) / panels
    points = start + width * (np.arange(panels)[:, None] + (x + 1) / 2)
    return points.ravel(), np.tile(weight * width / 2, panels)


def expected(h: Callable, m: float, d: int, start: float, stop: float = math.inf) -> float:
    """E h(L) 1(start < L <= stop), by quadrature.

    Parameters
    ----------
    h : Callable
        Smooth between `start` and `stop`; it gets arrays of losses.
    m : float
        Length of the shift, in units of the scale, > 0.
    d : int
        Dimensions.
    start, stop : float
        The losses that count. Those from m on and those below -m have probability 0.

    Returns
    -------
    float
    """
    _check(m, d)
    if start >= min(stop, m):
        return 0.0
    lowest, highest = start < -m, stop >= m  # whether the atoms of d = 1 count
    start, stop = max(start, -m), min(stop, m)
    panels = 4 + int(math.sqrt(m / 2 + d) / 4)
    if d == 1:
        x, weight = _quadrature(start, stop, panels)
        total = float((weight * h(x) * np.exp((x - m) / 2)).sum()) / 4
        if highest:
            total += float(h(np.array([m]))[0]) / 2
        if lowest:
            total += float(h(np.array([-m]))[0]) * math.exp(-m) / 2
        return total
    a, constant = _constants(m, d)
    last, first = math.acos(start / m), math.acos(stop / m)
    if d > 40 and start > 0 and highest:  # what is left out has less than e^-50 of the rest
        first = math.asin(min(1.0, math.sin(last) * math.exp(-(50 + m / 2) / (d - 2))))
    theta, weight = _quadrature(first, last, panels)
    sine, cosine = np.sin(theta), np.cos(theta)
    density = np.exp(constant + (d - 2) * np.log(sine) + m / 2 * cosine) * (a + sine * sine)
    return float((weight * density * h(m * cosine)).sum())


def delta(e: float, m: float, d: int) -> float:
    """The mechanism's privacy profile: delta at any real epsilon e.

    Parameters
    ----------
    e : float
        epsilon.
    m : float
        Length of the shift divided by the scale, >= 0.
    d : int
        Dimensions.

    Returns
    -------
    float
        0 from e = m on. Otherwise larger than the exact value by about the relative MARGIN.

    Raises
    ------
    ValueError
        For a negative or infinite m, or d below 1.

    Examples
    --------
    >>> float(f"{delta(1.0, 1.2, 10):.6g}")
    4.39983e-05
    """
    _check(m, d)
    e = float(e)
    if e < 0:  # the law is symmetric, so the curve is its own reflection
        return min(1.0, -math.expm1(e) + math.exp(e) * delta(-e, m, d))
    if e >= m:
        return 0.0
    if d == 1:
        return -math.expm1((e - m) / 2)
    return min(1.0, expected(lambda loss: -np.expm1(e - loss), m, d, e) * (1 + MARGIN))


@lru_cache(maxsize=4096)
def scale(d: int, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest scale s for which the mechanism is (epsilon, delta)-DP.

    Parameters
    ----------
    d : int
        Dimensions.
    epsilon : float
        > 0.
    delta : float
        In [0, 1). At 0 the scale is sensitivity/epsilon.
    sensitivity : float
        In l2 norm.

    Returns
    -------
    float
        Rounded up, so that `delta` holds at it.

    Examples
    --------
    >>> round(scale(1, 0.5, 0.0), 6), round(scale(5, 0.5, 1e-6), 6)
    (2.0, 1.963238)
    """
    if not (0 < epsilon < math.inf and 0 <= delta < 1):
        raise ValueError(f"needs epsilon > 0 and 0 <= delta < 1, not {epsilon} and {delta}")
    return sensitivity / _largest_shift(d, epsilon, delta)


def _largest_shift(d, epsilon, target):
    """The largest m with delta(epsilon, m, d) <= target, by its distance from epsilon on a log scale."""
    from scipy.optimize import brentq

    if target == 0:
        return epsilon

    def over(log_gap):
        gap = math.exp(log_gap)
        return math.log(max(delta(epsilon, epsilon + gap, d), 1e-300) / target)

    low = high = math.log(epsilon) - 4
    while over(high) < 0:
        low, high = high, high + 1
    while over(low) > 0:
        low -= 1
        if low < math.log(epsilon) - 50:  # the gap is below rounding
            return epsilon
    gap = brentq(over, low, high, xtol=1e-12, rtol=1e-14)
    while over(gap) > 0:
        gap -= 2e-12
    return epsilon + math.exp(gap)
