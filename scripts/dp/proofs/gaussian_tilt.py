"""Objective perturbation with Gaussian noise: the privacy of the exact minimiser.

The release is the w that minimises F(w) + Lambda/2 ||w||^2 + b.w, where F is the *sum* of the losses of
linear predictions, Lambda = n lambda > 0 and b ~ N(0, sigma^2 I). The losses are:

    logistic  l(y w.x);                gradient -s v, Hessian s (1-s) v v',    v = y x, s in (0, 1)
    clipped_logistic  slopes cut at k; gradient -s k v, Hessian at most sk (1-sk) v v', v = y x, s in (0, 1]
    log_cosh  t^2 log cosh((y-w.x)/t); gradient -s t x, Hessian (1-s^2) x x',  s in (-1, 1), any y
    huber     t^2 huber((y-w.x)/t);    gradient -s t x, Hessian at most x x', s in [-1, 1], any y

A record's gradient is -s k v, where v has norm rho <= R, the slope s depends on w, and k is the cap for
clipped logistic loss, 1 for logistic loss, otherwise t. g(s) rho^2 bounds the record's curvature, with g =
s(1-s), sk(1-sk), 1-s^2 and 1 in the order above (`dp.proofs.curvature`). Notation: m = k R/sigma, r =
R^2/Lambda, and G(m)(e) is the Gaussian profile at any real e (`dp_privacy.profiles.gaussian_profile`).

Minimisers are *exact*; `with_output_noise` covers approximate ones. Lambda is the same on both data sets;
under add/remove, where the number of records is secret, Lambda itself is public.

ONE RECORD. Let D' = D + record. On D, the tilt b(w) = -(grad F(w) + Lambda w) makes w the minimiser. The
map b is a smooth bijection, because F + Lambda/2 ||.||^2 is strongly convex and grad F has bounded
derivatives. If slopes have kinks, b and its inverse are Lipschitz; this suffices. So w has the density
phi_sigma(b(w)) det H(w) with H = F'' + Lambda I >= Lambda I. On D', the tilt is b' = b + s k v. With the
exact second derivative g(s), H' = H + g(s) v v' and det H' = det H (1 + g(s) v'H^-1 v).

*Adding* (P = D, Q = D'). With u = b.v/(sigma rho) ~ N(0, 1) under P and m' = k rho/sigma,

    log p/q = (||b'||^2 - ||b||^2)/(2 sigma^2) - log(1 + g v'H^-1 v) <= m' s u + m'^2 s^2/2.

The right side is convex in s, so it is maximal at an end of the interval of s. For logistic loss, clipped
or not, this maximum is the positive part of the Gaussian loss m' u + m'^2/2. Hence delta(e) = E_P (1 - e^(e
- loss))_+ <= G(m')(e) <= G(m)(e) for every e >= 0, *whatever Lambda is*. For the other losses, the maximum
is m'^2/2 + m' |u|. Hence delta(e) <= E (1 - e^(e - m^2/2 - m |u|))_+, which is 2 G(m)(e) for e >= m^2/2 and
less for smaller e.

*Removing* (P = D', Q = D). Now b' ~ N(0, sigma^2 I) under P, and b = b' - s k v. With u = -b'.v/(sigma rho)

    log p/q = m' s u + m'^2 s^2/2 + log(1 + g(s) v'H^-1 v)
           <= f(u) = max over s of m s u + m^2 s^2/2 + log(1 + g(s) r).

Here H >= Lambda I is the Hessian without the record, so v'H^-1 v <= rho^2/Lambda. For a record of norm rho
< R, replace s by c = s rho/R: m' s = m c and g(s) rho^2 <= g(c) R^2. So delta(e) <= E (1 - e^(e - f(u)))_+
for every Lambda. It is also at most the total variation distance, the delta of adding at e = 0.

*The Jacobian costs only J = log(1 + g(1) r)* of e if Lambda is large enough. At s = 1, the loss is m u +
m^2/2 + J. Let it be e at u0. If no other s has a larger loss at u0, then f(u0) = e. Below u0, f <= e, since
f increases. Above u0, f(u) = m u + m^2/2 + J, since other s have a smaller slope in u. So the integral is
G(m)(e - J). With r' = r/(1 + g(1) r), log(1 + g(s) r) - J <= (g(s) - g(1)) r'. Both this and the difference
of the other terms, (1-s)(e - J + s m^2/2), are 1-s times a linear function of s, so s = 0 and s = 1 decide:

    (g(0) - g(1)) r' <= e - J   and   -g'(1) r' <= e - J + m^2/2   suffice.

Logistic: J = 0, and r <= e + m^2/2. (The limit s -> 1 shows necessity.) Log-cosh: J = 0, r <= e and 2 r <=
e + m^2/2. Clipped: J = log(1 + k(1-k) r), e >= J and k(2k-1) r' <= e - J + m^2/2. Huber: J = log(1 + r) and
e >= J. The maximum of g may stand for g, constant: then J = log(1 + r max g) from e >= J on. For clipped
loss below its threshold, this is log(1 + r/4) if k >= 1/2.

*Slopes of two signs cost a removal no more than slopes of one.* By the sign of s, the loss is at most f(u)
or f(-u). The map from b' to w is monotone: (b1-b2).(w1-w2) <= -Lambda ||w1-w2||^2. So for a fixed part of
b' orthogonal to v, w.v does not increase with b'.v. Since s increases with y - w.v, s does not increase
with u: s >= 0 up to some u_c, and s <= 0 beyond. Since f(-u) <= f(u) for u >= 0, the loss is at most f(u)
for all u if u_c >= 0, and otherwise at most f(-u) for all u. Both have the same law.

REPLACING v by v'. Put M = D0+v+v' or M = D0, with the same Lambda and sigma, between P = D0+v and
S = D0+v'. For every event E and e1 + e2 = e, P(E) <= e^e1 M(E) + delta_PM(e1) and M(E) <= e^e2 S(E) +
delta_MS(e2), so

    delta_PS(e) <= delta_PM(e1) + e^e1 delta_MS(e2), for every e1 and either M.

With e1 = e/2 - m^2/2 and e2 = e/2 + m^2/2, G(m)(e1) + e^e1 G(m)(e2) = G(2m)(e) *exactly*, because the
event x <= m - e/(2m) is optimal for all pairs of normals with means 0, m, 2m. Logistic, e >= m^2: take M =
D0+v+v'. The addition at e1 >= 0 costs at most G(m)(e1), and the removal at e2 at most G(m)(e2) if r <= e2 +
m^2/2 = e/2 + m^2. Logistic, e < m^2: take M = D0. The removal at e1 < 0 is by reflection an addition at
-e1. Both additions cost at most G(m), for every Lambda. With mu = 2m:

    Lambda >= R^2/(e/2 + mu^2/4) gives G(mu)(e); if e < mu^2/4, every Lambda does.

Clipped logistic, e < m^2: M = D0 gives G(mu)(e) as above. Since delta falls with e, delta(e) <=
G(mu)(mu^2/4) for every e >= m^2. If e >= m^2 + J, take M = D0+v+v', split e - J as above and add J to e2.
The removal costs G(m)(e2 - J) if k(2k-1) r' <= e2 - J + m^2/2 = (e - J)/2 + m^2, otherwise with the larger
J. Hence delta(e) <= G(mu)(min(e, max(m^2, e - J))) for every Lambda.

Log-cosh: delta(e) <= 2 G(m)(e1) + e^e1 G(m)(e2) (two tails for the addition, one for the removal) for any
e1 >= 0, if r <= e2 and 2 r <= e2 + m^2/2. At the split above, this is at most 2 G(2m)(e). This holds for
any y, because t bounds the slope.

An intercept must be a regularised constant feature within R; an unregularised one has Lambda = 0.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dp.proofs.curvature import SIGNS, Curvature
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE, check_adjacency, gaussian_mu
from dp_privacy.profiles import (
    Curve,
    Gaussian,
    compose,
    gaussian_profile,
    integral,
    nodes,
    reflected,
    symmetric,
)
from dp_privacy.sensitivities import vector_sum

NEVER_FREE = ("huber", "clipped_logistic", "counts")  # with curvature at their largest slope
BLOCK = 512  # maximum number of integrals at once, so arrays have a few MB
LEAST = -12.0  # smaller u have a probability of less than 2e-33
# Shifts of e1, in units of e, tried if Lambda is below the threshold.
SHIFTS = np.linspace(-0.5, 0.5, 31)


def _check(loss, adjacency=REPLACE_ONE):
    if loss not in SIGNS:
        raise ValueError(f"a Gaussian tilt is proven for {', '.join(SIGNS)}, not {loss!r}")
    check_adjacency(adjacency)


def largest_loss(u: np.ndarray, m: float, r: float, loss: str = "logistic") -> float | np.ndarray:
    """Maximum over s in [0, 1] of m s u + m^2 s^2/2 + log(1 + g(s) r), elementwise: f(u) above.

    The derivative vanishes if (m^2 s + m u)(1 + g(s) r) + g'(s) r = 0, a cubic in s. The maximum is at the
    real part of a root, clipped to [0, 1], or at an end.
    """
    u = np.asarray(u, dtype=float)
    curvature = Curvature(loss, r)
    c0, c1, c2 = curvature.c0, curvature.c1, curvature.c2
    candidates = np.stack([np.zeros_like(u), np.ones_like(u)])
    if c2 and r > 0:
        lead = m * m * c2 * r
        rest = [
            (m * m * c1 + m * u * c2) * r / lead,
            (m * m * (1 + c0 * r) + m * u * c1 * r + 2 * c2 * r) / lead,
            (m * u * (1 + c0 * r) + c1 * r) / lead,
        ]
        companion = np.zeros((*u.shape, 3, 3))
        companion[..., 1, 0] = companion[..., 2, 1] = 1.0
        for row, coefficient in enumerate(rest[::-1]):
            companion[..., row, 2] = -coefficient
        roots = np.clip(np.linalg.eigvals(companion).real, 0.0, 1.0)
        candidates = np.concatenate([candidates, np.moveaxis(roots, -1, 0)])
    s = candidates
    return (m * s * (u + m * s / 2) + np.log1p(curvature.at(s) * r)).max(axis=0)


@lru_cache(maxsize=32)
def _loss_table(m, r, loss, start, stop):
    """A grid of u, and `largest_loss` there, which is convex, so interpolation bounds it from above."""
    u = np.linspace(start, max(stop, start), 6001)
    return u, largest_loss(u, m, r, loss)


def _tail(start, m, epsilon):
    """Integral of (1 - e^(epsilon - m^2/2 - m u)) phi(u) over u > start >= (epsilon - m^2/2)/m."""
    from scipy.special import log_ndtr

    upper, lower = log_ndtr(-start), epsilon + log_ndtr(-start - m)
    return np.exp(upper) * -np.expm1(np.minimum(lower - upper, 0.0))


def addition(epsilon: float | np.ndarray, m: float, loss: str = "logistic") -> float | np.ndarray:
    """delta(epsilon) of adding a record, for epsilon >= 0 and any Lambda."""
    epsilon = np.asarray(epsilon, dtype=float)
    if SIGNS[loss] == 1:
        return gaussian_profile(m, epsilon)
    return 2 * _tail(np.maximum(epsilon / m - m / 2, 0.0), m, epsilon)


def jacobian(
    epsilon: float | np.ndarray,
    m: float,
    r: float,
    adjacency: str = REPLACE_ONE,
    loss: str = "logistic",
    slope: float | None = None,
) -> float | np.ndarray:
    """What the Jacobian costs of epsilon, J, if there is curvature at the largest slope."""
    curvature = Curvature(loss, r, slope)
    (least, fall), (most, _) = curvature.tangents
    start = _start(m, curvature.rise, fall, adjacency)
    return np.where(np.asarray(epsilon) - least >= start, least, most)


def _start(m, rise, fall, adjacency):
    """The smallest e - J from which the Jacobian costs only J. fall: -g'(1) r', if it is positive."""
    if adjacency == ADD_REMOVE:
        return max(0.0, rise, fall - m * m / 2)
    # The split needs e1 >= 0, and a removal at e2, with e2 - J = (e - J + m^2)/2.
    return max(m * m, 2 * rise - m * m, 2 * (fall - m * m))


def removal(
    epsilon: float | np.ndarray,
    m: float,
    r: float,
    loss: str = "logistic",
    slope: float | None = None,
) -> float | np.ndarray:
    """delta(epsilon) of removing a record, for epsilon >= 0: E (1 - e^(epsilon - f(u)))_+.

    delta is also at most the total variation distance addition(0). For u >= `switch`, s = 1 attains the
    maximum f(u), and the integral has a closed form. With curvature at the largest slope, the bound is the
    Gaussian profile at epsilon - J.
    """
    epsilon = np.asarray(epsilon, dtype=float)
    distance = addition(0.0, m, loss)
    if loss in NEVER_FREE:
        over = epsilon - jacobian(epsilon, m, r, ADD_REMOVE, loss, slope)
        at = np.minimum(gaussian_profile(m, np.maximum(over, 0.0)), distance)
        return np.where(over >= 0, at, distance)
    if epsilon.size > BLOCK:
        blocks = np.array_split(epsilon.ravel(), math.ceil(epsilon.size / BLOCK))
        parts = [removal(block, m, r, loss) for block in blocks]
        return np.concatenate(parts).reshape(epsilon.shape)
    curvature = Curvature(loss, r)
    # The condition for s = 1 is linear in s after division by 1-s, so checks at s = 0 and s = 1 suffice.
    switch = max(curvature.tangents[0][1] / m - m, curvature.rise / m - m / 2)
    s = np.linspace(0, 1, 501)[1:]
    over = np.log1p(curvature.at(s) * r)
    start = ((epsilon[..., None] - over) / (m * s) - m * s / 2).min(axis=-1)
    start = np.maximum(start, LEAST)
    stop = np.clip(switch, start, np.maximum(start, 0.0) + 12.0)
    total = _tail(np.maximum(start, switch), m, epsilon)
    some = stop > start
    if some.any():
        u, weight = nodes(start[some], stop[some], panels=8, order=16)
        f = np.interp(u, *_loss_table(m, r, loss, LEAST, min(switch, 40.0)))
        gain = np.minimum(epsilon[some][..., None] - f, 0.0)
        gain = -np.expm1(gain) * np.exp(-u * u / 2) / math.sqrt(2 * math.pi)
        total = np.array(total)
        total[some] += (gain * weight).sum(-1)
    return np.minimum(total, distance)


def _both(m, r, loss, slope=None):
    """`addition` and `removal` for all real epsilon. Below 0, each is the reflection of the other."""

    def extended(above, opposite):
        def delta(epsilon):
            epsilon = np.asarray(epsilon, dtype=float)
            values, below = np.empty_like(epsilon), epsilon < 0
            values[~below] = above(epsilon[~below])
            values[below] = reflected(opposite, epsilon[below])
            return values

        return delta

    def add(epsilon):
        return addition(epsilon, m, loss)

    def remove(epsilon):
        return removal(epsilon, m, r, loss, slope)

    return extended(add, remove), extended(remove, add)


def replacement(
    epsilon: float | np.ndarray,
    m: float,
    r: float,
    loss: str = "logistic",
    slope: float | None = None,
) -> float | np.ndarray:
    """delta(epsilon) of replacing a record, for epsilon >= 0: the smallest bound over splits of epsilon.

    The split that is exact for normals comes first. If the Jacobian costs privacy at this split, splits
    shifted by `SHIFTS` follow, then splits near the best so far.
    """
    epsilon = np.asarray(epsilon, dtype=float)
    if loss in NEVER_FREE and SIGNS[loss] == 1:
        paid = np.maximum(m * m, epsilon - jacobian(epsilon, m, r, REPLACE_ONE, loss, slope))
        return gaussian_profile(2 * m, np.minimum(epsilon, paid))
    add, remove = _both(m, r, loss, slope)

    def at(e, e1):
        bounds = np.ones_like(e1)
        for first, second, allowed in ((add, remove, e1 >= 0), (remove, add, e1 <= 0)):
            if allowed.any():
                a, b = e1[allowed], (e - e1)[allowed]
                bounds[allowed] = np.minimum(bounds[allowed], first(a) + np.exp(a) * second(b))
        return bounds

    split = epsilon / 2 - m * m / 2
    best = at(epsilon, split if loss == "logistic" else np.maximum(split, 0.0))
    free = (loss == "logistic") & ((r <= epsilon / 2 + m * m) | (split < 0))
    if free.all():
        return best
    e, shifts, rounds = epsilon[~free][:, None], SHIFTS, 3
    if epsilon.size > 1:
        shifts, rounds = SHIFTS[::5], 1
    e1 = np.maximum(split[~free], 0.0)[:, None] + shifts * e
    rows = np.arange(len(e))
    for _ in range(rounds):
        bounds = at(np.broadcast_to(e, e1.shape), e1)
        near = bounds.argmin(axis=1)
        best[~free] = np.minimum(best[~free], bounds[rows, near])
        ends = e1[rows, np.maximum(near - 1, 0)], e1[rows, np.minimum(near + 1, e1.shape[1] - 1)]
        e1 = np.linspace(*ends, len(shifts), axis=1)
    return best


def profile(
    m: float,
    r: float,
    adjacency: str = REPLACE_ONE,
    loss: str = "logistic",
    slope: float | None = None,
) -> Curve:
    """The `dp_privacy.profiles.Curve` of the exact minimiser's release.

    If the Jacobian costs nothing, the release's Gaussian parameter under replace-one is 2m. slope: the cap
    k, which clipped logistic loss needs.
    """
    _check(loss, adjacency)
    if adjacency == ADD_REMOVE:
        add, remove = _both(m, r, loss, slope)
        return Curve(remove, add, _kinks(m, r, adjacency, loss, slope))

    def bound(epsilon):
        epsilon = np.asarray(epsilon, dtype=float)
        return replacement(np.atleast_1d(epsilon), m, r, loss, slope).reshape(epsilon.shape)

    return Curve(symmetric(bound), kinks=_kinks(m, r, adjacency, loss, slope))


def least_regularisation(
    epsilon: float,
    mu: float,
    bound: float = 1.0,
    adjacency: str = REPLACE_ONE,
    loss: str = "logistic",
) -> float:
    """The smallest Lambda, for the *sum* of losses, at which the Jacobian costs nothing at this epsilon.

    mu: k R/sigma for add/remove, 2 k R/sigma for replace-one. Logistic loss: R^2/(epsilon + mu^2/2) for
    add/remove and R^2/(epsilon/2 + mu^2/4) for replace-one. Log-cosh: twice these values, but at least
    R^2/epsilon for add/remove. With log-cosh, delta counts two tails, and replace-one needs epsilon >=
    mu^2/4.
    """
    _check(loss, adjacency)
    if loss in NEVER_FREE:
        raise ValueError(
            f"the {loss} loss has curvature at its largest slope, so no Lambda makes its Jacobian free"
        )
    size = epsilon + mu**2 / 2 if adjacency == ADD_REMOVE else epsilon / 2 + mu**2 / 4
    if loss == "logistic":
        return bound**2 / size
    return bound**2 / (min(size / 2, epsilon) if adjacency == ADD_REMOVE else size / 2)


def gaussian_dp_regularisation(
    mu: float, bound: float = 1.0, adjacency: str = REPLACE_ONE
) -> float:
    """The smallest Lambda for which the release (logistic loss) is mu-GDP.

    Add/remove: R^2/(epsilon + mu^2/2) is largest at epsilon = 0. Replace-one: for epsilon < mu^2/4, the
    Jacobian costs nothing for any Lambda. For larger epsilon, R^2/(epsilon/2 + mu^2/4) is largest at
    epsilon = mu^2/4: 8 R^2/(3 mu^2).
    """
    return bound**2 * (2 if adjacency == ADD_REMOVE else 8 / 3) / mu**2


@lru_cache(maxsize=4096)
def sigma_where_free(
    epsilon: float,
    delta: float,
    bound: float = 1.0,
    slope: float = 1.0,
    adjacency: str = REPLACE_ONE,
    loss: str = "logistic",
) -> float:
    """sigma of the tilt if Lambda >= `least_regularisation`: the Gaussian mechanism's sigma.

    slope: k, the bound on a record's slope (t of log-cosh). Each of log-cosh's two tails gets delta/2.
    """
    _check(loss, adjacency)
    mu = gaussian_mu(epsilon, delta / SIGNS[loss])
    return vector_sum(slope * bound, adjacency) / mu


@lru_cache(maxsize=4096)
def tilt_delta(
    epsilon: float,
    sigma: float,
    n_lambda: float,
    bound: float = 1.0,
    slope: float = 1.0,
    adjacency: str = REPLACE_ONE,
    loss: str = "logistic",
) -> float:
    """delta at epsilon of the exact minimiser, for any sigma and Lambda = n lambda."""
    m, r = slope * bound / sigma, bound**2 / n_lambda
    return float(profile(m, r, adjacency, loss, slope).delta(epsilon))


@lru_cache(maxsize=4096)
def calibrate(
    epsilon: float,
    delta: float,
    n_lambda: float,
    bound: float = 1.0,
    slope: float = 1.0,
    adjacency: str = REPLACE_ONE,
    loss: str = "logistic",
) -> float:
    """Smallest sigma of the tilt for which the exact minimiser is proven (epsilon, delta)-DP.

    If the Jacobian costs nothing, the result is `sigma_where_free`. (Log-cosh under replace-one needs a
    smaller sigma, because removing a record costs only one tail.) Otherwise sigma is the root at which the
    profile reaches delta, rounded up to be private.
    """
    if loss not in NEVER_FREE:
        sigma = sigma_where_free(epsilon, delta, bound, slope, adjacency, loss)
        mu = vector_sum(slope * bound, adjacency) / sigma
        free = n_lambda >= least_regularisation(epsilon, mu, bound, adjacency, loss)
        if free and (loss == "logistic" or adjacency == ADD_REMOVE):
            return sigma
    r = bound**2 / n_lambda
    m = largest_parameter(
        lambda m: float(profile(m, r, adjacency, loss, slope).delta(epsilon)),
        delta,
        # Start here, because no tilt beats the Gaussian mechanism.
        gaussian_mu(epsilon, delta) / vector_sum(1.0, adjacency),
    )
    return slope * bound / m


def largest_parameter(delta_at: Callable[[float], float], delta: float, start: float) -> float:
    """The largest mu <= start with delta_at(mu) <= delta, up to a relative 1e-8, never too large."""

    def over(mu):
        return math.log(max(delta_at(mu), 1e-300) / delta)

    if over(start) <= 0:
        return start
    from scipy.optimize import brentq

    low = start
    while over(low := 0.8 * low) > 0:
        if low < 1e-6 * start:
            raise ValueError(
                "no Gaussian tilt gives this epsilon with so little regularisation; "
                "take a larger lambda"
            )
    mu = brentq(over, low, start, xtol=1e-9 * start, rtol=1e-9)
    while over(mu) > 0:
        mu *= 1 - 2e-9
    return mu


def rule_lambda(
    n: int,
    d: int,
    epsilon: float,
    delta: float,
    bound: float = 1.0,
    slope: float = 1.0,
    adjacency: str = REPLACE_ONE,
    loss: str = "logistic",
    radius: float = 20.0,
    output: float = 0.0,
) -> float:
    """lambda for the *mean* loss, from public numbers: max(Lambda*, sqrt(d) sigma R/radius)/n.

    Lambda* is `least_regularisation`. The second term bounds the tilt's shift, about sqrt(d) sigma/(n
    lambda), by `radius`/R. output: the output noise's share of mu (`with_output_noise`). With output noise,
    Lambda* is instead twice this threshold, at the tilt's own mu. So the tilt's delta exceeds a Gaussian's
    only negligibly. Clipped logistic loss uses the threshold of logistic loss. Its Jacobian always costs
    privacy: with output noise and k = 0.75, about a twentieth of epsilon.
    """
    mu = gaussian_mu(epsilon, delta / SIGNS[loss])
    own = mu * math.sqrt(1 - output**2)
    sigma = vector_sum(slope * bound, adjacency) / own
    threshold = "logistic" if loss == "clipped_logistic" else loss
    least = least_regularisation(epsilon, own, bound, adjacency, threshold)
    return max((2 if output else 1) * least, math.sqrt(d) * sigma * bound / radius) / n


def composed_delta(
    epsilon: float,
    m: float,
    mu_output: float,
    r: float,
    adjacency: str = REPLACE_ONE,
    loss: str = "logistic",
    exact: bool = False,
    slope: float | None = None,
) -> float:
    """delta at epsilon of the tilt's release composed with a Gaussian release of parameter mu_output.

    It is E delta(epsilon - L) with L ~ N(mu_output^2/2, mu_output^2). Outside [-e0, e0] (`_gaussian_from`),
    the tilt's profile is at most the Gaussian one (twice that for log-cosh). This Gaussian bound, composed
    with the output release, has a known delta, `joint`. So delta exceeds `joint` only through L in (epsilon
    - e0, epsilon + e0), and by at most P(L > epsilon - e0). Unless `exact`, this probability is added to
    `joint` if it is at most 1e-9 `joint`. Otherwise the excess is integrated.
    """
    from scipy.special import ndtr

    one = profile(m, r, adjacency, loss, slope)
    if loss in NEVER_FREE or mu_output == 0:
        return float(compose(one, Gaussian(mu_output)).delta(epsilon))
    parts = vector_sum(1.0, adjacency)
    joint = SIGNS[loss] * float(gaussian_profile(math.hypot(parts * m, mu_output), epsilon))
    e0 = _gaussian_from(m, r, adjacency, loss)
    start, stop = ((epsilon + x - mu_output**2 / 2) / mu_output for x in (-e0, e0))
    if not exact and ndtr(-start) <= 1e-9 * joint:
        return joint + float(ndtr(-start))
    start, stop = (min(max(x, -12.0), 12.0) for x in (start, stop))

    def excess(z):
        e = epsilon - mu_output**2 / 2 - mu_output * z
        over = one.delta(e) - SIGNS[loss] * gaussian_profile(parts * m, e)
        return over * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    return joint + max(integral(excess, start, stop, panels=(4, 8, 16, 32)), 0.0) + 4e-33


def _kinks(m, r, adjacency, loss, slope):
    """Where the profile has a kink or a jump, if there is curvature at the largest slope."""
    if loss not in NEVER_FREE:
        return ()
    curvature = Curvature(loss, r, slope)
    (least, fall), (most, _) = curvature.tangents
    start = _start(m, curvature.rise, fall, adjacency)
    flat = _start(m, 0.0, 0.0, adjacency)
    above = [0.0, m * m, flat + most, start + least, m * m + least]
    return (*above, *(-e for e in above))


def _gaussian_from(m, r, adjacency, loss):
    """An e0 such that, outside [-e0, e0], the profile is at most SIGNS[loss] times the Gaussian profile."""
    if adjacency == REPLACE_ONE and loss == "logistic":  # below m^2, the profile is Gaussian, too
        return max(2 * (r - m * m), 0.0)
    curvature = Curvature(loss, r)
    return _start(m, curvature.rise, curvature.tangents[0][1], adjacency)


@lru_cache(maxsize=4096)
def with_output_noise(
    epsilon: float,
    delta: float,
    n_lambda: float,
    bound: float = 1.0,
    slope: float = 1.0,
    adjacency: str = REPLACE_ONE,
    loss: str = "logistic",
    output: float = 0.03,
) -> tuple[float, float]:
    """sigma and mu_output for which tilt and output noise together are (epsilon, delta)-DP.

    If the mean objective's gradient at w has norm at most tau, a public number, w is within tau/lambda of
    the exact minimiser. Given the same minimiser, the w of neighbours of equal size differ by at most 2
    tau/lambda. So w + N(0, s^2 I) with s = 2 tau/(lambda mu_output) is a mu_output-GDP release. mu_output =
    output * mu and mu^2 = mu_tilt^2 + mu_output^2. A small n_lambda lowers mu.
    """
    _check(loss, adjacency)
    start, r = gaussian_mu(epsilon, delta / SIGNS[loss]), bound**2 / n_lambda
    m, mu_output = shared_parameter(
        lambda m, mu_output: composed_delta(epsilon, m, mu_output, r, adjacency, loss, slope=slope),
        *(delta, start * (1 - 1e-9), output, adjacency),
    )
    return slope * bound / m, mu_output


def shared_parameter(
    delta_at: Callable[[float, float], float],
    delta: float,
    start: float,
    output: float,
    adjacency: str,
) -> tuple[float, float]:
    """(m, mu_output) of the largest mu <= start with delta_at(m, mu_output) <= delta.

    mu_output is `output` times mu, and mu^2 = (`parts` m)^2 + mu_output^2, where `parts` is 2 under
    replace-one and 1 under add/remove. m is the tilt's parameter for adding or removing one record.
    """
    parts = vector_sum(1.0, adjacency)

    def split(mu):
        return mu * math.sqrt(1 - output**2) / parts, mu * output

    return split(largest_parameter(lambda mu: delta_at(*split(mu)), delta, start))
