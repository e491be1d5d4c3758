"""Objective perturbation of Poisson regression with Gaussian noise: the privacy of the exact minimiser.

Release, notation and densities are those of `dp.proofs.gaussian_tilt`: b ~ N(0, sigma^2 I), Lambda is the
same on all data sets, G(m)(e) is the Gaussian profile, m = R/sigma and r = R^2/Lambda. The loss of a record
x with target v in [0, 1] is h(w.x) - v w.x (`dp.capped_exponential`), for any public offset. So its slope q
= h' - v is in [-v, 1-v], its gradient is q x, and its curvature h'' is in [0, 1]. h' has a kink, so b(w) is
not smooth, but b(w) and its inverse are Lipschitz, which suffices for the densities.

Slopes of both signs cost no more than slopes of one sign, because a record's slopes lie in an interval of
length 1.

*Adding* (P = D, Q = D + record). With |x| = rho, m' = rho/sigma and c = b.x/(sigma rho) ~ N(0, 1) under P,
log p/q <= -m' q c + m'^2 q^2/2. This is convex in q, so it is maximal at q = -v or q = 1-v. With the
standard normal density phi and distribution function Phi, delta(e) <= D(v) with

    D(v) = integral of max(0, phi(c) - e^e min(phi(c + m' v), phi(c - m' (1-v)))) dc.

The two normal densities in the minimum are equal at c* = m' (1-2v)/2. Let e >= 0.

If e >= v (1-v) m'^2/2, the integrand is 0 at c* and has two tails: D(v) = G(m' v)(e) + G(m' (1-v))(e). As
dG(m)/dm = phi(e/m - m/2), D'(v) = m' (phi(c1) - phi(c2)) with c1 = e/(m' v) - m' v/2 and c2 the same with
1-v in place of v. Let v >= 1/2. Then c1 <= c2 and c1 + c2 = e/(m' v (1-v)) - m'/2 >= 0, so |c1| <= c2 and
D' >= 0. The condition holds for every larger v too, so D(v) <= D(1) = G(m')(e). By symmetry, this holds for
v < 1/2.

Otherwise the integrand is positive at c*, and so everywhere, since phi(c)/phi(c + m' v) rises with c
and phi(c)/phi(c - m' (1-v)) falls. So D(v) = 1 - 2 e^e Phi(-m'/2) <= Phi(m'/2) - e^e Phi(-m'/2). The
event c > -m'/2 shows that this is at most G(m')(e).

So adding costs at most G(m')(e) <= G(m)(e) for every Lambda.

*Removing* (P = D + record, Q = D). The loss is at most the bound for adding plus J = log(1 + r), for the
record's Jacobian. So for e >= J, removing costs at most G(m)(e - J). For smaller e, it costs at most the
total variation distance, the delta of adding at e = 0: at most G(m)(0).

These are the bounds of clipped logistic loss in `gaussian_tilt`, with log(1 + r) instead of log(1 + r/4).
So replacing a record costs

    delta(e) <= G(2m)(min(e, max(m^2, e - J))) for every Lambda.

This bound is constant on [m^2, m^2 + J], so it is not convex in e^e. Composition may still use it, because
a true profile below the bound is below the bound's greatest convex minorant, the profile of a pair.

A record can attain its largest slope and its largest curvature at the same w, so the Jacobian costs privacy
at every Lambda.
"""

from functools import lru_cache

from dp.proofs import gaussian_tilt
from dp_privacy.accounting import REPLACE_ONE
from dp_privacy.profiles import Curve


def profile(m: float, r: float, adjacency: str = REPLACE_ONE) -> Curve:
    """The `dp_privacy.profiles.Curve` of the exact minimiser's release."""
    return gaussian_tilt.profile(m, r, adjacency, "counts")


def composed_delta(epsilon: float, m: float, mu: float, r: float) -> float:
    """delta at epsilon of the release composed with a mu-GDP Gaussian release, replace-one."""
    return gaussian_tilt.composed_delta(epsilon, m, mu, r, REPLACE_ONE, "counts")


@lru_cache(maxsize=4096)
def shared_parameter(
    epsilon: float, delta: float, mu: float, r: float, output: float, adjacency: str
) -> tuple[float, float]:
    """m and the other releases' mu, as `gaussian_tilt.shared_parameter`, of a total of at most mu."""
    return gaussian_tilt.shared_parameter(
        lambda m, other: composed_delta(epsilon, m, other, r),
        *(delta, mu * (1 - 1e-9), output, adjacency),
    )
