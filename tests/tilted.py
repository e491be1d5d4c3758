"""The exact law of a tilted minimiser on explicit records: by change of variables, not by any theorem.

The minimiser of F(w) + Lambda/2 ||w||^2 + b.w has the density p(b(w)) det H(w), where b(w) and the Hessian H(w)
follow from the slopes and curvatures of the records, written down here once more.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit


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
    """records: (x, y, weight) each. scale: of the tilt's density exp(-norm(b)/scale)."""

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
        """The exact minimisers for tilts b of shape (n, d), by damped Newton steps. Not for clipped loss."""
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
                worse = new > value - 1e-4 * length * (step * gradient).sum(-1) + 1e-10 * np.abs(value)
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
    return float((np.maximum(np.exp(p) - np.exp(e + q), 0) * cell).sum()), float((np.exp(p) * cell).sum())


def mode(data, d):
    """Where the tilt is 0: by bisection of the monotone b(w) for d = 1, along the line of v for d = 2."""
    low, high = -1e4, 1e4
    if d == 1:
        for _ in range(200):
            middle = (low + high) / 2
            b, _ = data.parts(np.array([middle]))
            low, high = (middle, high) if b[0] > 0 else (low, middle)
        return [low]
    return list(data.minimisers(np.zeros((1, d)))[0])
