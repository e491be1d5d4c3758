"""Objective perturbation with a log-concave tilt of any norm: the privacy of the exact minimiser.

The release is the w that minimises F(w) + Lambda/2 ||w||^2 + b.w, where F is the *sum* of the losses of
linear predictions, Lambda = n lambda > 0, and b has a density proportional to exp(-N(b)/s) for a norm N.
Record vectors v (y x for classes, x for numbers) have N(v) <= 1 and ||v||_2 <= R. A record's gradient is
-u k v with a bound k on slopes and the unit slope u:

    logistic          k = 1;        u in (0, 1),  Hessian g(u) v v',  g = u (1-u)
    clipped_logistic  slopes cut at k;  u in (0, 1],  g = k u (1 - k u) below the cap, 0 at it
    log_cosh          k = tau;      u in (-1, 1), g = 1 - u^2, any target

Notation: m = k/s, r = R^2/Lambda, H >= Lambda I a Hessian without the record, so v'H^-1 v <= r. For the
Euclidean ball, N = ||.||_2/R, and D(e) is the additive mechanism's profile under the shift k v, ||v|| = R
(`dp_privacy.l2.delta` at m). D_2 is the profile under twice this shift. Minimisers are *exact*.

DENSITIES. b(w) = -(grad F(w) + Lambda w) is a bi-Lipschitz bijection, so w has the density p(b(w)) det H(w)
almost everywhere. N need not be differentiable, as p is only evaluated; kinks of slopes lie on finitely
many hyperplanes.

ONE CONCAVE FUNCTION. g is concave on [0, 1], and so is log(1 + g(u) r). With its tangent at u = 1,

    log(1 + g(u) r) <= J + (1 - u) t,   J = log(1 + g(1) r),   t = max(0, -g'(1) r/(1 + g(1) r)).

Logistic: J = 0, t = r. Clipped: J = log(1 + k(1-k) r), and t = k(2k-1) r/(1 + k(1-k) r) if k > 1/2, else 0.
Log-cosh: J = 0, t = 2r. A flat tangent (J the maximum, t = 0) is valid, too, and better for small Lambda.

PURE (every norm, every Lambda, no distribution needed). Let P = D0 + v and S = D0 + v'. At the same w, b_P
= b_0 + u k v, b_S = b_0 + u' k v', det H_P <= det H_0 (1 + g(u) r) and det H_S >= det H_0. So

    |log p/q| <= m + max over u in [0, 1] of m u + log(1 + g(u) r)         replacing a record,
    |log p/q| <= max over u in [0, 1] of m u + log(1 + g(u) r)             adding or removing one.

If t <= m, the maximum is at most m + J: the Jacobian then costs only J. In particular, logistic loss is (2
m)-DP under replace-one if r <= m, that is Lambda >= 2 R^2/epsilon, and log-cosh if 2 r <= m. Pure K-norm
objective perturbation is due to Awan and Slavkovic (JASA 116, 2021).

THE BALL, WITH DELTA. Write l_v(b) = (||b + k v|| - ||b||)/(R s). It is convex in v and 0 at 0, so l_cv <= c
l_v for c in [0, 1], and records shorter than R are covered: with c u for u, g(u) c^2 <= g(c u).

*Adding* (P = D, Q = D + record, b ~ p under P): log p/q <= l_uv <= max(0, l_v), for every Lambda: D(e).

*Removing* (b' ~ p under P): log p/q <= u x + log(1 + g(u) r) with x = l_-v(b'), so <= max(x, t) + J. Hence
D(e - J) if e - J >= t. Below this, with f(x) = max over u of u x + log(1 + g(u) r), which does not
decrease, E (1 - e^(e - f(L)))_+ for the additive loss L; and at most the total variation distance D(0),
that of adding.

*Replacing directly.* log p/q <= l_(u'v' - uv) + J + (1-u) t is convex in (u, u'), so it is at most the
largest of its values at the corners: J + t, l_-v + J, l_v' + J + t and l_(v'-v) + J. As l_v <= m, only the
last can exceed e if e - J >= m + t. Hence D_2(e - J): the additive mechanism's own curve.

*Replacing by a chain* over D0 + v + v', with the same Lambda: for e1 + e2 = e,

    delta(e) <= addition(e1) + e^e1 removal(e2),  e1 >= 0, e2 >= 0.

addition(e1) = 0 from e1 = m on, and removal(e2) = 0 from e2 = f(m) on. For epsilon <= 4 and d <= 100 the
chain needs at most 0.07 % more scale than D_2 at Lambda = 2 R^2/epsilon (logistic).

*Two signs* (log-cosh). Adding: log p/q <= max(0, l_v, l_-v), so 2 D(e). Removing costs no more than with
one sign. By the sign of u, log p/q is at most f(l_-v) or f(l_v). Fix the part of b' orthogonal to v and let
a = -b'.v. As b' -> w is monotone, u does not increase with a: u >= 0 up to some a_c, and u <= 0 beyond.
Since l_v <= l_-v for a >= 0, and l_-v <= l_v for a <= 0, log p/q is at most f(l_-v) for all a if a_c >= 0,
and at most f(l_v) for all a otherwise. Given the fixed part, b' has a density even in a, so l_-v and l_v
have the same law.

COUNTS. A record's loss is h(w.x) - c w.x with a target c in [0, 1], h' in [0, 1] and h'' in [0, 1]
(`dp.proofs.counts_tilt`). Its gradient is q x with q = h' - c in [-c, 1-c]. Write l_a(b) = (N(b + a) -
N(b))/s. These slopes have two signs, but cost what slopes of one sign cost with g = 1, that is J = log(1 +
r) and t = 0.

For linear maps a_i of a vector c and any real e, E (1 - e^(e - max_i l_(a_i(c))))_+ is *quasi-convex in c*:
it is 1 - integral over b of min(p(b), e^e min_i p(b + a_i(c))). There, p(b + a_i(c)) is log-concave in (b,
c), and so are the minimum and, by Prekopa's theorem, its integral.

Adding: log p/q is convex in q, so at most the larger one of l_(c x) and l_(-(1-c) x). So the divergence is
largest at c = 0 or c = 1. There, one of the two is 0, so it is D(e) for e >= 0. Removing: at most J plus
the larger one of l_(-c x) and l_((1-c) x), so E (1 - e^(e - f(L)))_+ with f(x) = max(x, 0) + J, which is
D(e - J) for e >= J. Replacing directly: log p/q is at most J plus the largest of l_(q x - q' x') over the
ends of both intervals. These shifts are linear in (c, c'), so the divergence is largest where both are 0 or
1. There, a shift is 0, or one of +-x and +-x', with l <= m, or +-x +-x': D_2(e - J) for e - J >= m. Pure:
|q| + |q'| <= 2, so epsilon = 2 m + J.

APPROXIMATE MINIMISERS. Let the gradient of the mean objective at the solver's point have norm at most tau.
Given the exact minimiser, neighbours' points differ by at most 2 tau/lambda, so noise z with ||z|| ~
Gamma(d, 2 tau/(lambda e_out)) is e_out-DP given the minimiser. Its loss is at most e_out almost surely, so
delta(e) <= delta_tilt(e - e_out). All conditions above are then conditions at e - e_out.
"""

import math
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from dp.proofs.curvature import Curvature
from dp_privacy import l2
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE, check_adjacency


def pure_epsilon(m: float, curvature: Curvature, adjacency: str = REPLACE_ONE) -> float:
    """The pure epsilon of an exact minimiser, for a tilt of any norm."""
    check_adjacency(adjacency)
    one = float(curvature.largest(m))
    return one if adjacency == ADD_REMOVE else m + one


def pure_shift(epsilon: float, curvature: Curvature, adjacency: str = REPLACE_ONE) -> float:
    """The largest m with `pure_epsilon` <= epsilon, rounded down; 0 if there is none."""
    if pure_epsilon(0.0, curvature, adjacency) >= epsilon:
        return 0.0
    high = epsilon if adjacency == ADD_REMOVE else epsilon / 2
    low = 0.0
    if pure_epsilon(high, curvature, adjacency) <= epsilon:
        return high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if pure_epsilon(middle, curvature, adjacency) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def _check(e):
    if not e >= 0:
        raise ValueError(f"needs an epsilon of at least 0, not {e}")


class Ball:
    """The profile of an exact minimiser with the l2 tilt. m = k R/s for a scale s of ||b||."""

    def __init__(self, m: float, d: int, curvature: Curvature):
        self.m, self.d, self.curvature = m, d, curvature

    def additive(self, e: float, times: int = 1) -> float:
        return l2.delta(e, times * self.m, self.d)

    @cached_property
    def distance(self) -> float:
        """A bound on the total variation distance of adding or removing a record."""
        return min(1.0, self.curvature.signs * self.additive(0.0))

    def addition(self, e: float) -> float:
        """delta at e >= 0 of adding a record, for every Lambda."""
        _check(e)
        return min(1.0, self.curvature.signs * self.additive(e))

    def removal(self, e: float) -> float:
        """delta at e >= 0 of removing a record."""
        _check(e)
        free = [self.additive(e - J) for J, t in self.curvature.tangents if e - J >= t]
        J, t = self.curvature.tangents[0]
        if e - J < t:  # at the first tangent, the integral is the same
            free.append(self._integrated(e))
        return min(self.distance, *free)

    def _integrated(self, e):
        """E (1 - e^(e - f(L)))_+, for every Lambda."""
        from scipy.optimize import brentq

        c, m = self.curvature, self.m

        def gain(loss):
            return -np.expm1(np.minimum(e - c.largest(loss), 0.0))

        if c.largest(m) <= e:
            return 0.0
        least = -2 * m  # all losses count
        if c.largest(-m) <= e:
            least = brentq(lambda x: float(c.largest(x)) - e, -m, m, xtol=1e-14 * m)
        kinks = sorted(x for x in c.kinks() if max(least, -m) < x < m)
        pieces = pairwise([least, *kinks, math.inf])
        total = sum(l2.expected(gain, m, self.d, *piece) for piece in pieces)
        return min(1.0, total * (1 + l2.MARGIN))

    def replacement(self, e: float) -> float:
        """delta at e >= 0 of replacing a record: by the direct bound, otherwise by the best chain."""
        from scipy.optimize import minimize_scalar

        _check(e)
        bound = min(1.0, 2 * self.distance)
        for J, t in self.curvature.tangents:
            if self.curvature.signs == 1 and e - J >= self.m + t:
                bound = min(bound, self.additive(e - J, times=2))
        J, t = self.curvature.tangents[0]
        if self.curvature.signs == 1 and e - J >= self.m + t:
            return bound

        def chain(e1):
            return self.addition(e1) + math.exp(e1) * self.removal(e - e1)

        # Before `least`, the removal costs nothing, and after `most`, the addition.
        least, most = max(0.0, e - float(self.curvature.largest(self.m))), min(e, self.m)
        if least >= most:
            return min(bound, chain(least))
        splits = np.linspace(least, most, 9)
        values = [chain(e1) for e1 in splits]
        i = int(np.argmin(values))
        best = minimize_scalar(
            chain,
            bounds=(splits[max(i - 1, 0)], splits[min(i + 1, 8)]),
            method="bounded",
            options={"xatol": 1e-5 * (most - least)},
        )
        return min(bound, values[i], float(best.fun))

    def kinks(self) -> tuple[float, ...]:
        """The e >= 0 at which a delta may have a kink or a jump."""
        most, found = float(self.curvature.largest(self.m)), [0.0, self.m]
        for J, t in self.curvature.tangents:
            found += [J, J + t, J + self.m, J + t + self.m, J + 2 * self.m]
        return (*found, most, most + self.m)

    def delta(self, e: float, adjacency: str = REPLACE_ONE) -> float:
        """The larger delta of both directions, at e >= 0."""
        check_adjacency(adjacency)
        if adjacency == ADD_REMOVE:
            return max(self.addition(e), self.removal(e))
        return self.replacement(e)


@lru_cache(maxsize=4096)
def ball_shift(
    epsilon: float,
    delta: float,
    d: int,
    r: float,
    loss: str = "logistic",
    slope: float | None = None,
    adjacency: str = REPLACE_ONE,
) -> float:
    """The largest m = k R/s at which the exact minimiser with the l2 tilt is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
        The tilt's own share of epsilon, > 0.
    delta : float
        In [0, 1). At 0, the pure bound applies.
    d : int
        Dimensions, including a constant feature.
    r : float
        R^2/Lambda.
    loss : str
        One of `dp.proofs.curvature.SIGNS`.
    slope : float, optional
        The cap k of clipped logistic loss.
    adjacency : str

    Returns
    -------
    float
        Rounded down by a relative 1e-9 at most; 0 if no tilt suffices.
    """
    from scipy.optimize import brentq

    curvature = Curvature(loss, r, slope)
    pure = pure_shift(epsilon, curvature, adjacency)
    if delta == 0 or 2 * epsilon > l2.LARGEST:  # for so large an epsilon, a delta hardly helps
        return pure

    def over(m):
        return math.log(max(Ball(m, d, curvature).delta(epsilon, adjacency), 1e-300) / delta)

    parts = 1 if adjacency == ADD_REMOVE else 2
    most = 1 / (parts * l2.scale(d, epsilon, delta))  # no tilt beats the additive mechanism
    if over(most) <= 0:
        return most
    # D(0) <= m/2, so the total variation distance alone allows m = delta/2.
    low = max(pure, delta / 3, 1e-50)
    if over(low) > 0:
        return pure
    m = math.exp(brentq(lambda y: over(math.exp(y)), math.log(low), math.log(most), xtol=1e-10))
    while over(m) > 0:
        m *= 1 - 2e-10
    return max(m, pure)
