"""The float error of `composed_delta` must stay within the margin of `models.SLACK`.

The reference evaluates the inequalities in `dp.proofs.gaussian_tilt` with Gaussian profiles in 40
digits, and with many more quadrature nodes than the code. Every split of epsilon into e1 and epsilon -
e1 gives a proven bound, so the reference may search for e1 in any way.
"""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.special import log_ndtr

from dp.proofs import gaussian_tilt
from dp_release import lattice, models

CURVATURES = {"logistic": lambda s: s * (1 - s), "log_cosh": lambda s: 1 - s * s}


def legendre(start, stop, order=200):
    """Gauss-Legendre nodes (.., order) and weights of the intervals from `start` to `stop`."""
    x, weight = np.polynomial.legendre.leggauss(order)
    start, width = np.asarray(start)[..., None], (np.asarray(stop) - start)[..., None]
    return start + width * (x + 1) / 2, width / 2 * weight


def largest(u, m, r, curvature):
    """Largest privacy loss over slopes, for each u, from a grid refined around its best point."""

    def at(s):
        return m * s * u[..., None] + (m * s) ** 2 / 2 + np.log1p(np.maximum(curvature(s), 0) * r)

    s = np.broadcast_to(np.linspace(0, 1, 21), (*u.shape, 21))
    for width in (1 / 20, 1 / 200, 1 / 2000, 1 / 20000):
        best = np.take_along_axis(s, at(s).argmax(axis=-1)[..., None], -1)
        s = np.clip(best + np.linspace(-width, width, 21), 0, 1)
    ends = np.broadcast_to([0.0, 1.0], (*u.shape, 2))
    return np.maximum(at(s).max(axis=-1), at(ends).max(axis=-1))


def tail(u, m, e):
    """Integral over (u, infinity) of (1 - e^(e - m^2/2 - m v)) phi(v)."""
    upper = log_ndtr(-u)
    return np.exp(upper) * -np.expm1(np.minimum(e + log_ndtr(-u - m) - upper, 0.0))


class Reference:
    def __init__(self, m, r, loss):
        self.m, self.r, self.loss = m, r, loss
        self.curvature, self.two = CURVATURES[loss], loss == "log_cosh"

    def add(self, e):
        m = self.m
        if self.two:
            return 2 * tail(np.maximum(e / m - m / 2, 0.0), m, e)
        return tail(e / m - m / 2, m, e)

    def remove(self, e):
        """Delta of removing a record, for each e >= 0 of a vector."""
        m, r = self.m, self.r
        # For u above the switch, the slope s = 1 gives the largest loss.
        switch = max(2 * r / m - m, 0.0) if self.two else max(r / m - m, -m / 2)
        least = 0.0 if self.two else -40.0
        low, high = np.full(e.shape, least), np.full(e.shape, max(switch, least))
        closed = np.maximum(high, e / m - m / 2)
        total = tail(closed, m, e)
        for _ in range(45):  # find where the loss begins to exceed e
            middle = (low + high) / 2
            over = largest(middle, m, r, self.curvature) > e
            low, high = np.where(over, low, middle), np.where(over, middle, high)
        begins = np.where(largest(np.full(e.shape, least), m, r, self.curvature) > e, least, high)
        pieces = np.linspace(np.maximum(begins, -12.0), max(switch, least), 4)
        for a, b in pairwise(pieces):
            u, weight = legendre(a, np.maximum(a, b), 40)
            gain = -np.expm1(np.minimum(e[:, None] - largest(u, m, r, self.curvature), 0.0))
            total = total + (weight * gain * np.exp(-u * u / 2)).sum(axis=-1) / math.sqrt(
                2 * math.pi
            )
        if self.two:
            total = np.where(e >= max(r, m * m / 2), 1.0, 2.0) * total
        return np.minimum(total, self.add(np.zeros(1)))

    def either(self, e, of):
        """`of`, which is `add` or `remove`, extended to negative e."""
        other = self.remove if of == self.add else self.add
        result = np.empty_like(e)
        result[e >= 0] = of(e[e >= 0])
        result[e < 0] = -np.expm1(e[e < 0]) + np.exp(e[e < 0]) * other(-e[e < 0])
        return result

    def replace(self, e):
        """The least bound for one e >= 0, over e1 and both orders of adding and removing."""

        def at(e1):
            result = np.ones_like(e1)
            for of, then, allowed in (
                (self.add, self.remove, e1 >= 0),
                (self.remove, self.add, e1 <= 0),
            ):
                if allowed.any():
                    a = e1[allowed]
                    b = self.either(a, of) + np.exp(a) * self.either(e - a, then)
                    result[allowed] = np.minimum(result[allowed], b)
            return result

        split = max(e / 2 - self.m**2 / 2, 0.0 if self.two else -math.inf)
        e1 = np.concatenate([[split, 0.0, e / 2], max(split, 0.0) + np.linspace(-0.5, 0.5, 31) * e])
        width = e / 30 if e else 1e-3
        for _ in range(3):
            result = at(e1)
            best = e1[result.argmin()]
            e1 = np.concatenate([[best], best + np.linspace(-width, width, 9)])
            width /= 4
        return min(result.min(), at(e1).min())

    def gaussian(self, e):
        m = 2 * self.m
        return (1 + self.two) * np.maximum(tail(e / m - m / 2, m, e), 0.0)

    def composed(self, epsilon, mu):
        """Delta of the tilt and a Gaussian release of parameter mu, and delta's two summands.

        The first summand is delta if the Jacobian costs no epsilon; the second is what the Jacobian adds.
        """
        with mpmath.workdps(40):
            total = mpmath.sqrt((2 * mpmath.mpf(self.m)) ** 2 + mpmath.mpf(mu) ** 2)
            a, b = total / 2 - epsilon / total, -total / 2 - epsilon / total
            joint = (1 + self.two) * (mpmath.ncdf(a) - mpmath.exp(epsilon) * mpmath.ncdf(b))
        m, r = self.m, self.r
        e0 = max(2 * (r - m * m), 0.0)
        if self.two:
            e0 = max(m * m, 4 * r - 2 * m * m, 2 * r - m * m)
        excess = 0.0
        if e0:
            ends = [(epsilon - x - mu * mu / 2) / mu for x in (e0, e0 / 2, 0.0, -e0 / 2, -e0)]
            ends = np.clip(ends, -9.0, 9.0)
            ends = np.unique(np.concatenate([ends, np.arange(ends[0], ends[-1], 1.5)]))
            for a, b in pairwise(ends):
                z, weight = legendre(np.array(a), np.array(b), 6)
                for each, share in zip(z, weight * np.exp(-z * z / 2), strict=True):
                    e = epsilon - mu * mu / 2 - mu * each
                    bound = self.replace(abs(e))
                    if e < 0:
                        bound = -math.expm1(e) + math.exp(e) * bound
                    over = min(bound, 1.0) - self.gaussian(np.array([e]))[0]
                    excess += share * over / math.sqrt(2 * math.pi)
        return float(joint + max(excess, 0.0)), float(joint), max(excess, 0.0)


CASES = [  # loss, epsilon, m, r, mu
    ("logistic", 0.1, 0.0115, 0.025, 0.0151),
    ("log_cosh", 1.0, 0.0958, 0.127, 0.1257),
]
PAID = [
    ("logistic", 1.0, 0.06, 2.0, 0.02),
    ("logistic", 0.1, 0.01, 0.08, 0.01),
    ("log_cosh", 8.0, 0.5, 1.5, 0.9),
]


def check(loss, epsilon, m, r, mu):
    result = gaussian_tilt.composed_delta(epsilon, m, mu, r, loss=loss)
    reference, joint, excess = Reference(m, r, loss).composed(epsilon, mu)
    # Floats may err by a tenth of the slack.
    assert reference <= result * (1 + float(models.SLACK) / 10), (
        result / reference - 1,
        excess / joint,
    )
    return result / reference - 1, excess / joint


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_slack_covers_the_arithmetic_where_the_jacobian_is_free(case):
    more, _ = check(*case)
    assert more < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("case", PAID, ids=str)
def test_the_slack_covers_the_arithmetic_where_the_jacobian_is_paid(case):
    """`composed_delta` tries only a few values of e1, so it returns 1 to 41 times the reference."""
    more, excess = check(*case)
    assert -1e-7 < more < 40 and (excess > 1 or more < 1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 8.0, 20.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9, 1e-12])
def test_gaussian_profiles_are_right_to_much_less_than_the_slack(epsilon, delta):
    """With output perturbation, or lambda by rule, the reference is delta's closed form in 40 digits."""
    for make in (models.objective_perturbation, models.output_perturbation_gaussian):
        lam = {"lam": 0.01} if make is models.output_perturbation_gaussian else {}
        plan = make(10_000, 5, epsilon, delta, **lam)
        mu = lattice.above(lattice.together(list(plan.noises.values())))
        m = 2 * lattice.above(plan.tilt.noise.mu) if plan.tilt else 0.0
        with mpmath.workdps(40):
            total = mpmath.sqrt(mpmath.mpf(m) ** 2 + mpmath.mpf(mu) ** 2)
            a, b = total / 2 - epsilon / total, -total / 2 - epsilon / total
            exact = mpmath.ncdf(a) - mpmath.exp(epsilon) * mpmath.ncdf(b)
            assert exact * (1 + mpmath.mpf("9e-7")) <= delta
            assert exact >= mpmath.mpf("0.999") * delta
