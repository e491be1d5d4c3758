"""The exact law of a tilted minimiser on explicit records, and adversaries that choose the records.

The minimiser of F(w) + Lambda/2 ||w||^2 + b.w has the density p(b(w)) det H(w), by change of variables.
b(w) and the Hessian H(w) follow from the slopes and curvatures of the records, written down once more.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from dp.proofs.curvature import Curvature
from dp.proofs.log_concave_tilt import Ball
from dp_privacy import l2

ADD_REMOVE, REPLACE = "add-remove", "replace-one"


def slope_and_curvature(loss, k, z):
    """Of a record at z = y w.x (classes) or y - w.x (numbers)."""
    if loss == "log_cosh":
        u = np.tanh(z / k)
        return k * u, 1 - u * u
    s = expit(-z)
    if loss == "logistic":
        return s, s * (1 - s)
    return np.minimum(s, k), np.where(s < k, s * (1 - s), 0.0)


@dataclass
class Minimiser:
    """records: (x, y, weight) each. scale: of the tilt's density exp(-norm(b)/scale).

    For counts, y is a target in [0, 1], and the rate reaches its cap at w.x = 0.
    """

    loss: str
    k: float
    Lambda: float
    scale: float
    records: list

    def parts(self, w):
        """b(w) and H(w) at points w of shape (..., d)."""
        d = w.shape[-1]
        b = -self.Lambda * w
        H = np.broadcast_to(self.Lambda * np.eye(d), (*w.shape, d)).copy()
        for x, y, weight in self.records:
            x = np.asarray(x, float)
            if self.loss == "counts":
                rate = np.exp(np.minimum(w @ x, 0.0))
                slope, curvature, v = y - rate, np.where(w @ x <= 0, rate, 0.0), x
            else:
                z = y - w @ x if self.loss == "log_cosh" else y * (w @ x)
                slope, curvature = slope_and_curvature(self.loss, self.k, z)
                v = x if self.loss == "log_cosh" else y * x
            b = b + (weight * slope)[..., None] * v
            H = H + (weight * curvature)[..., None, None] * np.outer(x, x)
        return b, H

    def log_density(self, w, norm=lambda b: np.linalg.norm(b, axis=-1)):
        """Up to a constant that depends on d and the scale only."""
        b, H = self.parts(w)
        return -norm(b) / self.scale + np.linalg.slogdet(H)[1]

    def objective(self, w, b):
        value = self.Lambda / 2 * (w * w).sum(-1) + (b * w).sum(-1)
        for x, y, weight in self.records:
            x = np.asarray(x, float)
            if self.loss == "log_cosh":
                z = np.abs(y - w @ x) / self.k
                value = value + weight * self.k**2 * (z + np.log1p(np.exp(-2 * z)) - math.log(2))
            else:
                value = value + weight * np.logaddexp(0, -y * (w @ x))
        return value

    def minimisers(self, b):
        """The exact minimisers for tilts b of shape (n, d), by Newton steps. Not for clipped loss."""
        w = np.zeros_like(b)
        for _ in range(300):
            at, H = self.parts(w)
            gradient = b - at
            if np.abs(gradient).max() < 1e-9:
                return w
            step = np.linalg.solve(H, gradient[..., None])[..., 0]
            length, value = np.ones(len(w)), self.objective(w, b)
            for _ in range(40):
                new = self.objective(w - length[:, None] * step, b)
                worse = new > value - 1e-4 * length * (step * gradient).sum(-1) + 1e-10 * np.abs(
                    value
                )
                if not worse.any():
                    break
                length[worse] /= 2
            w = w - length[:, None] * step
        if np.abs(gradient).max() < 1e-6:
            return w
        raise ArithmeticError(f"no minimiser: the gradient is {np.abs(gradient).max()}")


def hockey_stick(P, Q, e, points, centre, reach=None):
    """The exact delta(e) = integral of (p - e^e q)_+ and P's mass, on a grid of d = 1 or 2 around `centre`.

    The grid reaches as far as tilts of norm `reach` scales move the minimiser, and is finest at the centre.
    """
    d = len(centre)
    reach = reach or (40.0 if d == 1 else 28.0)
    width, bend = reach * P.scale / P.Lambda, 9.0 if d == 1 else 6.0
    u = np.linspace(-1, 1, points)
    offset = width * np.sinh(bend * u) / math.sinh(bend)
    weight = width * bend * np.cosh(bend * u) / math.sinh(bend) * (u[1] - u[0])
    axes = np.meshgrid(*[c + offset for c in centre], indexing="ij")
    w = np.stack(axes, axis=-1)
    cell = np.prod(np.meshgrid(*[weight] * d, indexing="ij"), axis=0)
    constant = -math.log(2 * P.scale) if d == 1 else -math.log(2 * math.pi * P.scale**2)
    p, q = (data.log_density(w) + constant for data in (P, Q))
    return float((np.maximum(np.exp(p) - np.exp(e + q), 0) * cell).sum()), float(
        (np.exp(p) * cell).sum()
    )


def mode(data, d):
    """Where the tilt is 0, or close to it."""
    if d == 1:
        low, high = -1e4, 1e4
        for _ in range(200):
            middle = (low + high) / 2
            b, _ = data.parts(np.array([middle]))
            low, high = (middle, high) if b[0] > 0 else (low, middle)
        return [low]
    if data.loss != "clipped_logistic":
        return list(data.minimisers(np.zeros((1, d)))[0])
    w = np.zeros(d)
    for _ in range(500):  # no record with much curvature
        w = w + data.parts(w)[0] / (data.Lambda + 1)
    return list(w)


def record(loss, x, y=None):
    return (tuple(x), (0.0 if loss == "log_cosh" else 1.0) if y is None else y, 1.0)


def pull(loss, k, force):
    """Records whose slopes add up to about `force`, without curvature."""
    length, tiny = np.linalg.norm(force), 1e-4
    if length == 0:
        return []
    if loss == "log_cosh":
        return [(tiny * force / length, 1e6, length / (k * tiny))]
    if loss == "counts":
        return [(-tiny * force / length, 0.0, length / tiny)]
    slope = min(0.5, k)
    return [(tiny * force / length, 1.0, length / (slope * tiny))]


def pair(loss, k, Lambda, scale, base, old, new=()):
    """The minimisers with `base` and `old`, and with `base` and `new`."""
    return [Minimiser(loss, k, Lambda, scale, [*base, *more]) for more in (old, new)]


def in_the_plane(loss, k, Lambda, scale, e, kind, points=360, pulls=(6.0,), angles=None):
    """The largest exact delta over directions, with a record of weight 1e10 beside, and with `pulls`.

    A pull moves the minimiser by so many radii against the record (replacing: where both slopes are large).
    """
    worst = 0.0
    for far in (1e10, *pulls):
        for a in angles or ((0.1, 0.2) if kind == "replace" else (0.0, 0.8)):
            v = np.array([math.cos(a), math.sin(a)])
            if far == 1e10 and loss == "logistic":
                base = [((0.0, -1.0), 1.0, far)]
            else:
                against = np.array([0.0, 1.0]) if kind == "replace" else v
                base = pull(loss, k, -min(far, 20) * Lambda * against)
            new = [record(loss, (-v[0], v[1]))] if kind == "replace" else []
            P, Q = pair(loss, k, Lambda, scale, base, [record(loss, v)], new)
            P, Q = (Q, P) if kind == "add" else (P, Q)
            delta, mass = hockey_stick(P, Q, e, points, mode(P, 2))
            assert mass == pytest.approx(1, abs=1e-4)
            worst = max(worst, delta)
    return worst


def plane(loss, e, delta, kind, share, k=1.0, **options):
    """The exact delta, the bound, and D of the additive mechanism; Lambda is `share` of the threshold."""
    threshold = (2 if loss == "log_cosh" else 1) * (2 if kind == "replace" else 1) / e
    m = 1 / l2.scale(2, e, delta) / (2 if kind == "replace" else 1)
    Lambda = share * threshold
    ball = Ball(m, 2, Curvature(loss, 1 / Lambda, k))
    bound = {"remove": ball.removal, "add": ball.addition, "replace": ball.replacement}[kind](e)
    return in_the_plane(loss, k, Lambda, k / m, e, kind, **options), bound


def log_ratio(loss, k, Lambda, scale, norm, base, old, new):
    P, Q = pair(loss, k, Lambda, scale, base, old, new)
    return lambda w: float(P.log_density(w, norm) - Q.log_density(w, norm))


def largest_loss(loss, k, r, m, d, body, rng, tries, adjacency=REPLACE):
    """The largest |log p/q| found, over bases, pairs of records and points w.

    Records lie in the body: the ball of radius 1, or the box of half-width 1/sqrt(d), so R = 1.
    """
    half = 1.0 if body == "ball" else 1 / math.sqrt(d)
    Lambda, scale = 1 / r, k / m

    def norm(b):
        return np.linalg.norm(b, axis=-1) if body == "ball" else np.abs(b).max(-1) / half

    def vector():
        if rng.random() < 0.1:
            return np.zeros(d)
        if body == "box":
            return half * rng.choice([-1.0, 1.0], d) * (1 if rng.random() < 0.7 else rng.random(d))
        v = rng.normal(size=d)
        return v / np.linalg.norm(v) * (1 if rng.random() < 0.7 else rng.random())

    def target():
        return rng.normal() * 3 if loss == "log_cosh" else 1.0

    worst = 0.0
    for _ in range(tries):
        old = (vector(), target(), 1.0)
        kind = rng.integers(5)
        new = (vector(), target(), 1.0)
        if kind == 0:
            new = (-old[0], old[1], 1.0)
        elif kind < 3:  # close to, but not, the opposite record: both slopes can be large
            tip = (
                np.eye(d)[rng.integers(d)] if body == "ball" else half * rng.choice([-1.0, 1.0], d)
            )
            small = 10.0 ** -rng.uniform(0, 3)
            if body == "ball":
                turned = small * tip - old[0]
                turned = turned / max(1.0, np.linalg.norm(turned))
            else:
                turned = np.where(tip * old[0] > 0, old[0], -old[0])
            new = (turned, target(), 1.0)
        base = []
        for _ in range(rng.integers(0, 4)):
            x = old[0] if rng.random() < 0.3 else vector()  # duplicates, too
            base.append((x, target(), 10.0 ** rng.uniform(0, 10)))
        new = [] if adjacency == ADD_REMOVE else [new]
        # Points where b is moderate, so its rounding is, too: moved there by a linear tilt of tiny records.
        for start in (rng.normal(size=d), -old[0] * 10 ** rng.uniform(0, 1.5)):
            force = Minimiser(loss, k, Lambda, scale, base).parts(np.asarray(start, float))[0]
            tilt = pull(loss, k, -force + rng.normal(size=d) * 10 ** rng.uniform(0, 2) * scale)
            ratio = log_ratio(loss, k, Lambda, scale, norm, base + tilt, [old], new)
            found = minimize(
                lambda w, f=ratio: -abs(f(w)), start, method="Nelder-Mead", options={"maxiter": 60}
            )
            worst = max(worst, -found.fun)
    return worst
