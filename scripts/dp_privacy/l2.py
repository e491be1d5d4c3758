"""The l2 mechanism: noise b with density proportional to exp(-||b||_2/s) on a vector of d coordinates.

Let v be a shift of length m s. The privacy loss L = (||b + v|| - ||b||)/s lies in [-m, m]. In prolate
spheroidal coordinates with foci 0 and -v, xi = (||b|| + ||b + v||)/(m s) >= 1 and cos t = L/m, and the
measure of b is proportional to

    (xi^2 - cos^2 t) (xi^2 - 1)^((d-3)/2) sin^(d-2) t e^(-z xi) e^(z cos t) dxi dt,   z = m/2.

The integral over xi gives Bessel functions. With nu = d/2 - 1 and a = (d-1)/z K_(nu+1)(z)/K_nu(z), the
angle t in (0, pi) has the density

    c sin^(d-2) t (a + sin^2 t) e^(z (cos t - 1)),
    c = 2 (z/2)^(nu+2) K_nu(z) e^z/(sqrt(pi) Gamma(nu + 3/2)),

by the Wronskian of I and K. So for 0 <= e < m, the hockey stick divergence is an integral of positive
terms,

    D(e) = integral over t from 0 to arccos(e/m) of (1 - e^(e - m cos t)) times the density,

D(e) = 0 for e >= m, and D(-e) = 1 - e^-e + e^-e D(e). For d = 1, D(e) = 1 - e^((e-m)/2) for |e| <= m.
By symmetry, D is the same in both directions, and it grows with m.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from dp_privacy.profiles import Curve, Profile, gaussian_profile

__all__ = ["L2", "composed_delta", "delta", "expected", "scale"]

# `delta` is larger than its quadrature by this relative margin. The errors of quadrature and rounding are
# far smaller: at most 3.2e-13 of D at 371 random points with m up to `LARGEST`, d up to 1000 and D down to
# 1e-280, compared with 40 digits.
MARGIN = 2e-11
LARGEST = 100.0
PANELS, NODES = 6, 32


def delta(e: float, m: float, d: int) -> float:
    """The smallest delta for which the l2 mechanism is (e, delta)-DP for shifts of length m s, rounded up.

    Parameters
    ----------
    e : float
        Any real number.
    m : float
        Length of the largest shift divided by the scale s, from 1e-60 to 100.
    d : int
        Number of coordinates, from 1 to 1000.

    Returns
    -------
    float

    Examples
    --------
    >>> print(f"{delta(1.0, 1.6, 3):.12f}")
    0.078607338029
    """
    _check(m, d)
    if not e > -math.inf:
        raise ValueError(f"e must be a real number, not {e}")
    if e >= m:
        return 0.0
    if e < 0:
        return min(1.0, -math.expm1(e) + math.exp(e) * delta(-e, m, d))
    return _delta(m - e, m, int(d))


def _check(m, d):
    if not 1 <= d <= 1000 or d != int(d):
        raise ValueError(f"d must be a whole number from 1 to 1000, not {d}")
    if not 1e-60 <= m <= LARGEST:
        raise ValueError(f"m must lie between 1e-60 and {LARGEST:g}, not {m}")


def _delta(gap, m, d):
    """D(m - gap), increased by MARGIN, for 0 < gap <= m, precise also where the gap is tiny."""
    if d == 1:
        return min(1.0, -math.expm1(-gap / 2) * (1 + MARGIN))
    last = 2 * math.asin(math.sqrt(gap / (2 * m)))  # arccos(e/m)
    # Below `first`, the density is less than e^-50 times that near `last`.
    first = math.sin(last) * math.exp(-(50 + m / 2) / max(d - 2, 1e-9))
    nodes, weights = _panels(PANELS)
    first = math.asin(first)
    t = first + (last - first) * nodes
    a, log_c = _constants(d, m / 2)
    half = np.sin(t / 2) ** 2  # m cos t = m - 2 m half
    sine = np.sin(t)
    density = (a + sine**2) * np.exp(log_c + (d - 2) * np.log(sine) - m * half)
    total = (last - first) * (weights * density * -np.expm1(2 * m * half - gap)).sum()
    return min(1.0, float(total) * (1 + MARGIN))


def expected(h: Callable, m: float, d: int, start: float, stop: float = math.inf) -> float:
    """E h(L) 1(start < L <= stop) of the loss L, by quadrature.

    Parameters
    ----------
    h : Callable
        Smooth between `start` and `stop`; it gets arrays of losses.
    m, d
        As for `delta`.
    start, stop : float
        The losses that count. L lies in [-m, m]; for d = 1 its ends are atoms.

    Returns
    -------
    float
    """
    _check(m, d)
    if start >= min(stop, m):
        return 0.0
    lowest, highest = start < -m, stop >= m  # whether the ends count
    start, stop = max(start, -m), min(stop, m)
    nodes, weights = _panels(4 * PANELS)
    if d == 1:
        x = start + (stop - start) * nodes
        total = (stop - start) * float((weights * h(x) * np.exp((x - m) / 2)).sum()) / 4
        if highest:
            total += float(h(np.array([m]))[0]) / 2
        if lowest:
            total += float(h(np.array([-m]))[0]) * math.exp(-m) / 2
        return total
    first, last = math.acos(stop / m), math.acos(start / m)
    t = first + (last - first) * nodes
    a, log_c = _constants(d, m / 2)
    half, sine = np.sin(t / 2) ** 2, np.sin(t)
    density = (a + sine**2) * np.exp(log_c + (d - 2) * np.log(sine) - m * half)
    return float((last - first) * (weights * density * h(m - 2 * m * half)).sum())


def composed_delta(e: float, m: float, d: int, mu: float) -> float:
    """delta at e of the l2 mechanism together with an adaptive mu-GDP Gaussian release, rounded up.

    Losses add up, so this is the mean of the Gaussian divergence at e - L over the loss L.

    Parameters
    ----------
    e : float
        Any finite number.
    m, d
        As for `delta`.
    mu : float
        From 1e-6 to 1e6.

    Returns
    -------
    float

    Examples
    --------
    >>> print(f"{composed_delta(1.0, 0.8, 3, 0.1):.9e}")
    2.798471608e-05
    """
    _check(m, d)
    if not math.isfinite(e):
        raise ValueError(f"e must be a finite number, not {e}")
    if not 1e-6 <= mu <= 1e6:
        raise ValueError(f"mu must lie between 1e-6 and 1e6, not {mu}")
    # Around L = e, the divergence changes within a few mu.
    near = [e + k * mu for k in (-12, -6, -3, -1, 0, 1, 3, 6, 12)]
    ends = [-2 * m, *(x for x in near if -m < x < m), math.inf]
    total = sum(
        expected(lambda loss: gaussian_profile(mu, e - loss), m, d, *piece)
        for piece in pairwise(ends)
    )
    return min(1.0, total * (1 + MARGIN))


@dataclass(frozen=True)
class L2(Profile):
    """The profile of the l2 mechanism, in both directions.

    Attributes
    ----------
    m, d
        As for `delta`.
    """

    m: float
    d: int

    def delta(self, epsilon: float | np.ndarray) -> float | np.ndarray:
        return np.vectorize(lambda e: delta(float(e), self.m, self.d), otypes=[float])(epsilon)[()]

    def with_gaussian(self, mu: float) -> Curve:
        def at(e):
            return composed_delta(float(e), self.m, self.d, mu)

        return Curve(np.vectorize(at, otypes=[float]))


@cache
def _panels(count):
    """Nodes and weights of Gauss-Legendre quadrature in `count` panels of equal width on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    start = np.arange(count)[:, None]
    return ((start + (x + 1) / 2) / count).ravel(), np.tile(w / (2 * count), count)


def _constants(d, z):
    """a and log c.

    T_nu = (z/2)^nu K_nu(z) e^z/Gamma(nu) follows from T_(nu+1)/T_nu = R_nu z/(2 nu), where R_nu =
    K_(nu+1)/K_nu = 2 nu/z + 1/R_(nu-1). All terms are positive, and none overflows.
    """
    from scipy.special import kve  # rules that are only read need no scipy

    nu = d / 2 - 1
    if d == 2:
        ratio = float(kve(1, z) / kve(0, z))
        return ratio / z, math.log(z * z * kve(0, z) / math.pi)
    if d % 2:
        k, ratio, log_t = 0.5, 1.0, -math.log(2.0)  # K_(1/2)/K_(-1/2) = 1
    else:
        k, ratio = 1.0, float(kve(1, z) / kve(0, z))
        log_t = math.log(z / 2 * kve(1, z))
    growth = 1.0  # at most e^z
    while k < nu:
        more = 1 + z / (2 * k * ratio)
        ratio = 2 * k / z * more
        growth *= more
        k += 1
    ratio = 2 * nu / z + 1 / ratio
    log_t += math.log(growth)
    log_gammas = math.lgamma(nu) - math.lgamma(nu + 1.5) - math.log(math.pi) / 2
    return (d - 1) / z * ratio, math.log(2.0) + 2 * math.log(z / 2) + log_t + log_gammas


def scale(d: int, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest scale s, up to rounding, for which the l2 mechanism is (epsilon, delta)-DP.

    `delta` holds at it. For an epsilon above 50, the scale is that of (epsilon, 0)-DP.

    Parameters
    ----------
    d : int
        Number of coordinates, from 1 to 1000.
    epsilon : float
        At least 1e-50.
    delta : float
        In [0, 1).
    sensitivity : float
        Length of the largest shift, in the L2 norm.

    Returns
    -------
    float

    Examples
    --------
    >>> print(f"{scale(5, 0.5, 1e-6, 1.0):.9f}")  # (0.5, 0)-DP needs 2
    1.963239046
    """
    if not 1 <= d <= 1000 or d != int(d):
        raise ValueError(f"d must be a whole number from 1 to 1000, not {d}")
    if not 1e-50 <= epsilon < math.inf or not 0 <= delta < 1 or not 0 < sensitivity < math.inf:
        raise ValueError(
            "epsilon must be a number of at least 1e-50, delta one in [0, 1), and the sensitivity a "
            f"positive number, not {epsilon}, {delta} and {sensitivity}"
        )
    m = _largest_shift(int(d), epsilon, delta) if delta and epsilon <= LARGEST / 2 else epsilon
    return math.nextafter(sensitivity / m, math.inf)


def _largest_shift(d, epsilon, target):
    """The largest m, up to rounding and at most `LARGEST`, for (epsilon, target)-DP, at least epsilon."""
    from scipy.optimize import brentq

    room, least = LARGEST - epsilon, epsilon * 2.0**-53  # of m - epsilon

    def excess(gap):  # D is about a power of the gap, so this is nearly linear in log gap
        return math.log(max(_delta(gap, epsilon + gap, d), 1e-320) / (target * (1 - MARGIN)))

    low = high = epsilon / 128
    while high < room and excess(high) < 0:
        low, high = high, min(4 * high, room)
    while low > least and excess(low) >= 0:
        low, high = low / 8, low
    if low <= least:
        return epsilon
    if excess(high) < 0:
        return LARGEST
    gap = math.exp(brentq(lambda y: excess(math.exp(y)), math.log(low), math.log(high), xtol=1e-13))
    m = min(epsilon + gap, LARGEST)
    while m > epsilon and delta(epsilon, m, d) > target:
        m = math.nextafter(m, 0.0)
    return m
