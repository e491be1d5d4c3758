"""The noisy mean direction, the simplest private classifier, and a mechanism that falls back on it."""

import math

import numpy as np

from dp.mechanisms import Mechanism, register
from dp.mechanisms.gaussian_objective_perturbation import CLIP, kind
from dp.mechanisms.knorm_objective_perturbation import KNormObjectivePerturbation
from dp.noise import gaussian
from dp.options import ADJACENCY, PUBLIC_N, Between, Optional, Positive, public_size
from dp.proofs.one_number import one_number
from dp.rows import slices
from dp_privacy.accounting import REPLACE_ONE, gaussian_mu
from dp_privacy.errors import Refused
from dp_privacy.profiles import Gaussian
from dp_privacy.sensitivities import vector_sum


@register("mean_direction")
class MeanDirection(Mechanism):
    """A classifier from the noisy class rate, the mean of (label - rate) x, and a second moment.

    Let t be 1 for the label 1 and 0 otherwise, |x| <= R, and mu the Gaussian-DP parameter of
    (epsilon, delta). Three adaptive Gaussian releases differ between neighbours as follows:

        r = mean of t                                 by at most 1/n (either adjacency),
        a = mean of (t - p) x, p from released r      by at most 2 max(p, 1 - p) R/n (add-remove: half),
        V = mean of (x.u)^2, u = a/|a| as released    by at most R^2/n (either adjacency).

    The shares of mu^2 are `rate` for r, `moment` for V, and 1 - rate - moment for a. Together, the
    releases are mu-Gaussian DP (Dong, Roth, Su, JRSS B 84, 2022, corollary 3.3). By default, r gets
    the share at which its noise has a standard deviation of 0.05, but at least 0.1. If this share
    exceeds 0.8, noise hides even the rate. Then only r is released, with the noise of
    `dp.proofs.one_number`, and weights are zero.

    All else is post-processing. p is r, shrunk towards 1/2 by the James-Stein factor max(0, 1 -
    (variance of its noise)/(r - 1/2)^2), and kept at least one standard deviation away from 0 and
    1. The intercept is log(p/(1 - p)). Along s u, the mean logistic loss falls by at least |a| s -
    V s^2/8, because its curvature is at most 1/4. The weights are s u with the best s, 4 q |a|/V,
    where q = max(0, 1 - d (variance of a's noise)/|a|^2) removes the noise's share of |a|^2. V is
    at most R^2, and at least twice the standard deviation of its noise (or R^2 if that is smaller).
    """

    delta = "needed"
    needs_lambda = False
    in_blocks = True
    options = ADJACENCY | PUBLIC_N
    options |= {"rate": Optional(Between(low=0, high=1)), "moment": Between(0.1, low=0, high=1)}

    def _check_together(self, n, d, p):
        rate = self._rate(n, p)
        if rate < 1 and rate + p.moment >= 1:
            raise Refused("rate and moment leave nothing for the direction: make them smaller")

    def _rate(self, n, p):
        needed = max(0.1, (20 / (n * p.mu)) ** 2)
        return p.rate or (needed if needed <= 0.8 else 1.0)

    def _scales(self, n, p):
        """Standard deviations of the noise on r, a/max(p, 1 - p) and V.

        None if only r is released.
        """
        rate, size = self._rate(n, p), vector_sum(p.bound, p.adjacency)
        if rate == 1:
            return None
        moved = (1, rate), (size, 1 - rate - p.moment), (p.bound**2, p.moment)
        return [size / (n * p.mu * math.sqrt(share)) for size, share in moved]

    def _alone(self, n, p):
        return one_number(1 / n, p.epsilon, p.mu)

    def _guarantee(self, n, d, p):
        scales = self._scales(n, p)
        if scales is None:
            alone = self._alone(n, p)
            reason = (
                f"{alone.kind} noise of standard deviation {alone.deviation:.6g} on the class rate, and "
                f"nothing else is released: {alone.reason}{public_size(p)}"
            )
            return p.proven(reason, profile=alone.profile)
        rate, direction, moment = scales
        reason = (
            f"noise of standard deviation {rate:.6g} on the class rate, {direction:.6g} times "
            f"max(p, 1 - p) on the mean of (t - p) x, and {moment:.6g} on the second moment along it: "
            f"together Gaussian DP with mu = {p.mu:.6g}{public_size(p)}"
        )
        return p.proven(reason, profile=Gaussian(p.mu))

    def _release(self, X, y, p, draws, rng):
        n, d = p.public_n or len(X), X.shape[1]
        t, scales = np.asarray(y) > 0, self._scales(n, p)
        if scales is None:
            alone = self._alone(n, p)
            centre = _centre(t.sum() / n + alone.draw(draws, rng), alone.deviation, n)
            intercept = np.log(centre / (1 - centre))
            return np.zeros((draws, d)), {"intercept": intercept, "scale": alone.deviation}
        rate, direction, moment = scales
        noisy = t.sum() / n + gaussian(1, rate, draws, rng)
        centre = _centre(np.asarray(noisy)[:, 0], rate, n)
        intercept = np.log(centre / (1 - centre))
        size = np.maximum(centre, 1 - centre)
        sums = sum(np.stack([t[k], np.ones(len(t[k]))]) @ _floats(X[k]) for k in slices(len(t)))
        means = (sums[0] - centre[:, None] * sums[1]) / n
        a = np.asarray(means / size[:, None] + gaussian(d, direction, draws, rng)) * size[:, None]
        length = np.maximum(np.linalg.norm(a, axis=1), 1e-300)
        u = a / length[:, None]
        along = sum(((_floats(X[k]) @ u.T) ** 2).sum(axis=0) for k in slices(len(t)))[:, None] / n
        V = np.asarray(along + gaussian(1, moment, draws, rng))[:, 0]
        V = np.clip(V, min(2 * moment, p.bound**2), p.bound**2)
        shrunk = np.maximum(0.0, 1 - d * (direction * size / length) ** 2)
        weights = u * (4 * shrunk * length / V)[:, None]
        return weights, {"intercept": intercept, "scale": direction}


def _floats(rows):
    return np.asarray(rows, dtype=float)


def _centre(rates, deviation, n):
    """Released rates (draws,), shrunk towards 1/2 and away from 0 and 1."""
    away = rates - 0.5
    away = away * np.maximum(0.0, 1 - deviation**2 / np.maximum(away**2, 1e-300))
    most = 0.5 - min(max(deviation, 0.5 / n), 0.5)
    return 0.5 + np.clip(away, -most, most)


@register("guarded_objective_perturbation")
class Guarded(KNormObjectivePerturbation):
    """`mean_direction` if n mu < guard, where noise dominates, and objective perturbation otherwise.

    Objective perturbation is `knorm_objective_perturbation` with slopes of at most `clip`. mu is the
    Gaussian-DP parameter of (epsilon, delta), doubled under add-remove. So 2/(n mu) is the standard
    deviation of Gaussian noise on each coordinate of a mean of gradients of norm at most 1. n and mu are
    public, so the choice costs nothing.

    guard: 60 is a compromise, chosen on data that `scripts/README.md` names. If the signal is weak,
    the class rate beats objective perturbation up to n mu of about 150. If it is strong, objective
    perturbation is better from n mu of 15 on.
    """

    numbers = False
    delta = "needed"
    options = {k: v for k, v in KNormObjectivePerturbation.options.items() if k != "loss"}
    options |= {"guard": Positive(60.0), "clip": CLIP}

    def _kind(self, p):
        return kind("logistic", p.clip)

    def _simple(self, n, d, p):
        """`Parameters` of `mean_direction` if it is chosen, else None."""
        times = 1 if p.adjacency == REPLACE_ONE else 2
        if times * n * gaussian_mu(p.epsilon, p.delta) >= p.guard:
            return None
        shared = {name: getattr(p, name) for name in ("epsilon", "delta", "bound", "adjacency")}
        return SIMPLE.parameters(n, d, **shared, public_n=p.public_n)

    def check(self, n: int, d: int, **settings) -> None:
        p = self.parameters(n, d, **settings)
        if self._simple(n, d, p) is None:
            self._plan(n, d, p)

    def _guarantee(self, n, d, p):
        simple = self._simple(n, d, p)
        if simple is None:
            return super()._guarantee(n, d, p)
        stated = SIMPLE._guarantee(n, d, simple)
        return stated._replace(reason=f"noise dominates, so the simplest model: {stated.reason}")

    def _release(self, X, y, p, draws, rng):
        simple = self._simple(p.public_n or len(X), X.shape[1], p)
        if simple is None:
            return super()._release(X, y, p, draws, rng)
        return SIMPLE._release(X, y, simple, draws, rng)


SIMPLE = MeanDirection()
SIMPLE.name = "mean_direction"
