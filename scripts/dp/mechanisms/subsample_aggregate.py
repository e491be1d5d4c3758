"""Subsample and aggregate."""

import math

import numpy as np

from dp.mechanisms import Mechanism, register
from dp.noise import gaussian, l2_laplace
from dp.options import LOSS, Optional, Ordinary, Whole
from dp.rows import clip_rows
from dp.solvers.newton import minimise
from dp_privacy.accounting import gaussian_sigma
from dp_privacy.errors import Refused


@register("subsample_aggregate")
class SubsampleAggregate(Mechanism):
    """Mean of k regularised fits on disjoint parts, each clipped to a ball, plus noise.

    A record is in one part, whose fit is clipped to the ball of radius B around 0. So replacing it
    changes the mean by at most 2B/k, for any fit and targets (Nissim, Raskhodnikova, Smith, STOC
    2007; Smith, STOC 2011, with clipping). Parts are blocks of consecutive rows. The noise has
    density exp(-||z|| epsilon k/(2B)) at delta = 0, and is Gaussian (analytic calibration) at delta
    > 0.

    parts: k, by default round(sqrt(n)).
    radius: B, public.
    """

    delta = "optional"
    numbers = True
    options = LOSS | {"parts": Optional(Whole()), "radius": Ordinary(1.0)}

    def _check_together(self, n, d, p):
        if p.parts is not None and p.parts > n:
            raise Refused(f"{n} rows cannot be cut into {p.parts} parts: give fewer parts")

    def _guarantee(self, n, d, p):
        k, size, scale = self._scale(n, p)
        kind = "Gaussian noise, analytic calibration" if p.delta else "L2-Laplace noise"
        return (
            f"the mean of {k} clipped fits on disjoint parts has L2 sensitivity "
            f"2B/k = {size:.6g}; {kind} of scale {scale:.6g}"
        )

    def _scale(self, n, p):
        k = max(1, round(math.sqrt(n))) if p.parts is None else p.parts
        size = 2 * p.radius / k
        return k, size, gaussian_sigma(p.epsilon, p.delta, size) if p.delta else size / p.epsilon

    def _release(self, X, y, p, draws, rng):
        """info["clipped"]: the share of fits outside the ball."""
        n, d = X.shape
        k, _, scale = self._scale(n, p)
        blocks = np.array_split(np.arange(n), k)
        fits = [minimise(X[rows], y[rows], p.lam, loss=p.loss)[0] for rows in blocks]
        fits = np.concatenate(fits)
        # The ball's centre, 0, replaces a failed fit: clipping would keep its NaN.
        fits = np.where(np.isfinite(fits).all(axis=1)[:, None], fits, 0.0)
        clipped = np.linalg.norm(fits, axis=1) > p.radius
        noise = (gaussian if p.delta else l2_laplace)(d, scale, draws, rng)
        mean = clip_rows(fits, p.radius).mean(axis=0)
        return mean + noise, {"scale": scale, "clipped": float(clipped.mean())}
