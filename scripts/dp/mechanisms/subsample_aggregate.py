"""Subsample and aggregate: the noisy mean of fits on disjoint parts of the rows."""

import math

import numpy as np

from dp import losses
from dp.accounting import REPLACE_ONE, Guarantee, gaussian_sigma
from dp.data import check_rows, clip_rows
from dp.mechanisms import Mechanism, Release, check_positive, check_whole, register
from dp.noise import gaussian, l2_laplace
from dp.solvers import minimise


@register("subsample_aggregate")
class SubsampleAggregate(Mechanism):
    """Mean of k regularised fits on disjoint parts, each clipped to a ball, plus noise.

    A record lies in one part, and its part's fit stays in the ball of radius B around the public
    centre 0, so replacing it moves the mean by at most 2B/k whatever the fit does (Nissim,
    Raskhodnikova, Smith, STOC 2007; Smith, STOC 2011, with clipping). Part j is a block of
    consecutive rows, a partition that depends on n and k alone.

    parts: k; round(sqrt(n)) where none is given. radius: B, public. Noise with density
    exp(-||z|| epsilon k/(2B)) at delta = 0, Gaussian (analytic calibration) at delta > 0.
    """

    def guarantee(
        self,
        n,
        d,
        *,
        epsilon,
        delta=0.0,
        lam=None,
        bound=1.0,
        loss="logistic",
        parts=None,
        radius=1.0,
    ):
        """(epsilon, delta)-DP from the L2 sensitivity 2B/k."""
        self._check(epsilon, lam, n, d, bound)
        losses.get(loss)
        size, scale = self._scale(n, epsilon, delta, parts, radius)
        kind = "Gaussian noise, analytic calibration" if delta else "L2-Laplace noise"
        reason = (
            f"the mean of {_parts(n, parts)} clipped fits on disjoint parts has L2 sensitivity "
            f"2B/k = {size:.6g}; {kind} of scale {scale:.6g}"
        )
        return Guarantee(epsilon, epsilon, delta, REPLACE_ONE, reason)

    def _scale(self, n, epsilon, delta, parts, radius):
        check_positive("radius", radius)
        size = 2 * radius / _parts(n, parts)
        if delta == 0:
            return size, size / epsilon
        if not 0 < delta < 1:
            raise ValueError(f"{self.name} needs a delta in [0, 1), not {delta}")
        return size, gaussian_sigma(epsilon, delta, size)

    def release(
        self,
        X,
        y,
        *,
        epsilon,
        delta=0.0,
        lam=None,
        restarts=1,
        rng,
        bound=1.0,
        loss="logistic",
        parts=None,
        radius=1.0,
    ):
        """info["clipped"]: the share of fits that lay outside the ball."""
        n, d = np.shape(X)
        self.guarantee(
            n,
            d,
            epsilon=epsilon,
            delta=delta,
            lam=lam,
            bound=bound,
            loss=loss,
            parts=parts,
            radius=radius,
        )
        check_rows(X, y, bound)
        _, scale = self._scale(n, epsilon, delta, parts, radius)
        blocks = np.array_split(np.arange(n), _parts(n, parts))
        fits = np.concatenate([minimise(X[rows], y[rows], lam, loss=loss)[0] for rows in blocks])
        # A fit that failed is the centre: clipping would otherwise let it through.
        fits = np.where(np.isfinite(fits).all(axis=1)[:, None], fits, 0.0)
        clipped = np.linalg.norm(fits, axis=1) > radius
        noise = (gaussian if delta else l2_laplace)(d, scale, restarts, rng)
        return Release(
            clip_rows(fits, radius).mean(axis=0) + noise,
            np.full(restarts, "ok"),
            {"scale": scale, "clipped": float(clipped.mean())},
        )


def _parts(n, parts):
    """k, at most n."""
    if parts is None:
        return max(1, round(math.sqrt(n)))
    check_whole("parts", parts)
    if parts > n:
        raise ValueError(f"{n} rows cannot be cut into {parts} parts")
    return parts
