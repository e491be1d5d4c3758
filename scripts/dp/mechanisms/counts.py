"""Poisson regression of counts with a logarithmic link, private under replace-one, and baselines.

A target y in [-1, 1] stands for the count M (y + 1)/2. M is public, and larger counts were clipped
to M. u = (y + 1)/2 is the count in units of M. The model's rate is M min(e^(w.x + b), 1).

All private mechanisms first release the mean of u with noise. Its logarithm is the intercept b, so
weights of 0 predict the constant rate. Slopes or counts are clipped at `clip` times the noisy mean
count, or at M if M is smaller. Only then does M affect the slopes' noise, so M may be generous.
"""

import math
from typing import NamedTuple

import numpy as np

from dp.capped_exponential import CappedExponential
from dp.mechanism import repeated
from dp.mechanisms import Mechanism, Release, register
from dp.mechanisms.gaussian_objective_perturbation import MOST_NOISE
from dp.noise import gaussian, gaussian_reach
from dp.offset import gaussian_share
from dp.options import TOLERANCE, Between, Optional, Ordinary, Positive, Whole
from dp.proofs import counts_tilt
from dp.proofs.one_number import one_number
from dp.rows import row_norms, slices
from dp.solvers.newton import check_certifiable, least_tolerance, minimise
from dp_privacy.accounting import gaussian_mu
from dp_privacy.errors import Refused
from dp_privacy.profiles import Curve, Gaussian, symmetric
from dp_privacy.sensitivities import vector_sum

SUMMED = 4096  # rows of a partial sum, as `dp.solvers.newton.rounding` assumes
MOST_STEPS = 200
RATE = {"rate": Optional(Between(low=0, high=1))}


class Counts(Mechanism):
    """Base class for counts."""

    numbers = True
    counts = True
    needs_lambda = False

    def _rate_share(self, n, p):
        return p.rate or gaussian_share(n, p.mu)


def _shares(y):
    """Counts in units of M, (n,)."""
    return (np.asarray(y, dtype=float) + 1) / 2


def _least_rate(n, deviation=0.0):
    return min(max(deviation, 0.5 / n), 1.0)


def clipped_rate(noisy: np.ndarray, n: int, deviation: float) -> np.ndarray:
    """Noisy means of u, clipped to (0, 1]."""
    return np.clip(noisy, _least_rate(n, deviation), 1.0)


def _released_rate(u, deviation, draws, rng):
    noisy = np.asarray(u.mean() + gaussian(1, deviation, draws, rng))[:, 0]
    return clipped_rate(noisy, len(u), deviation)


@register("counts_rate")
class CountsRate(Counts):
    """The mean count with noise of `dp.proofs.one_number`, the best release that uses no column.

    Weights are 0. info["intercept"] is the logarithm of the noisy mean divided by M.
    """

    delta = "needed"
    in_blocks = True

    def _noise(self, n, p):
        return one_number(1 / n, p.epsilon, p.mu)

    def _guarantee(self, n, d, p):
        noise = self._noise(n, p)
        reason = (
            f"{noise.kind} noise of standard deviation {noise.deviation:.6g} M on the mean count, which "
            f"one record changes by at most M/n: {noise.reason}"
        )
        return p.proven(reason, profile=noise.profile)

    def _release(self, X, y, p, draws, rng):
        noise, u = self._noise(len(X), p), _shares(y)
        rate = clipped_rate(u.mean() + noise.draw(draws, rng), len(u), noise.deviation)
        return np.zeros((draws, X.shape[1])), {"intercept": np.log(rate), "scale": noise.deviation}


@register("counts_gd")
class CountsGradientDescent(Counts):
    """A noisy mean count, then T gradient steps for Poisson regression with Gaussian noise.

    At s = w.x + b, a record has the slope min(e^s, 1) - u. Its gradient is clipped to norm C R with
    C = min(1, clip q). q is the noisy mean of u, which is released, so C may depend on it.
    Replacing a record changes the mean of u by at most 1/n, and the mean gradient by at most 2CR/n.
    The Gaussian releases of T gradients and the rate compose to mu-Gaussian DP, where mu^2 is the
    sum of their mu^2 (Dong, Roth, Su, JRSS B 84, 2022, corollary 3.3). This covers all iterates.

    rate: the rate's share of mu^2, by default that for which noise on the mean of u has a
    standard deviation of 0.0025, clipped to [1 %, 15 %].
    learning_rate: a step is the gradient times learning_rate/(q R^2). q R^2 is about the maximum
    curvature, so a learning_rate of 2 gives the longest stable step.
    iterations: T, by default n mu/12, from 1 to 200, where mu is that of all steps together. At the
    default options, the noise of all steps then moves a score by a standard deviation of at most
    2 clip learning_rate T/(n mu) = 1/2, even if no step contracts.
    """

    delta = "needed"
    options = RATE | {"clip": Ordinary(1.5), "iterations": Optional(Whole())}
    options |= {"learning_rate": Positive(2.0)}

    def plan(self, n: int, p: object) -> tuple[float, float, int, float]:
        """mu of the rate, mu of all steps, T, and standard deviation of a step's noise divided by C."""
        share = self._rate_share(n, p)
        own, steps = p.mu * math.sqrt(share), p.mu * math.sqrt(1 - share)
        T = p.iterations or max(1, min(MOST_STEPS, round(n * steps / 12)))
        return own, steps, T, math.sqrt(T) * vector_sum(p.bound, p.adjacency) / (n * steps)

    def _guarantee(self, n, d, p):
        own, steps, T, sigma = self.plan(n, p)
        reason = (
            f"noise of standard deviation {1 / (n * own):.6g} M on the mean count, which is Gaussian DP "
            f"with mu = {own:.6g}; with C = min(1, {p.clip:g} times the noisy mean over M), {T} Gaussian "
            f"steps of sensitivity 2CR/n = {2 * p.bound / n:.6g} C and standard deviation {sigma:.6g} C "
            f"compose to mu = {steps:.6g}: together Gaussian DP with mu = {p.mu:.6g}"
        )
        return p.proven(reason, profile=Gaussian(p.mu))

    def _release(self, X, y, p, draws, rng):
        (n, d), u = X.shape, _shares(y)
        own, _, T, sigma = self.plan(n, p)
        rate = _released_rate(u, 1 / (n * own), draws, rng)
        C = np.minimum(1.0, p.clip * rate)
        step, b = p.learning_rate * C / rate / p.bound**2, np.log(rate)
        with np.errstate(divide="ignore"):
            limits = p.bound / row_norms(X)
        W = np.zeros((draws, d))
        for _ in range(T):
            gradient = np.zeros_like(W)
            for rows in slices(n, SUMMED):
                slopes = np.exp(np.minimum(X[rows] @ W.T + b, 0.0))
                slopes = (slopes - u[rows, None]) / C
                # After overflow, a score may be NaN, but the record's contribution must stay bounded.
                np.nan_to_num(slopes, copy=False, posinf=np.inf, neginf=-np.inf)
                np.clip(slopes, -limits[rows, None], limits[rows, None], out=slopes)
                gradient += slopes.T @ X[rows]
            W = W - step[:, None] * np.asarray(gradient / n + gaussian(d, sigma, draws, rng))
        return W, {"intercept": b, "scale": sigma}


class Plan(NamedTuple):
    """The noise of `counts_objective_perturbation`.

    mu_rate: Gaussian-DP parameter of the rate's release.
    scale: standard deviation of b, the noise in the summed objective's linear term.
    mu_output, output_scale: Gaussian-DP parameter and standard deviation of the output noise.
    """

    mu_rate: float
    scale: float
    mu_output: float
    output_scale: float


@register("counts_objective_perturbation")
class CountsObjectivePerturbation(Counts):
    """A noisy mean count, then w + z: w nearly minimises a tilted objective, and z is Gaussian.

    The objective is the mean of h(w.x) - v w.x, plus lam/2 ||w||^2 + b.w/n, with Gaussian b.
    Counts are clipped again: v is min(u, C)/C, with C and q as in `counts_gd`. h is
    `CappedExponential` with offset log(q/C). So lam is for counts in units of C M.
    `dp.proofs.counts_tilt` proves that the exact minimiser costs as much as Gaussian noise with mu
    = 2R/scale, plus log(1 + R^2/(n lam)) of epsilon for the Jacobian. z covers the solver's error
    (`gaussian_tilt.with_output_noise`).

    output: the output noise's share of mu.
    rate: as for `counts_gd`.
    """

    delta = "needed"
    # Values of b beyond `gaussian_reach`, of probability e^-60, are neglected, so delta must be far larger.
    least_delta = 1e-20
    needs_lambda = True
    options = RATE | {"clip": Ordinary(4.0), "output": Between(0.03, low=0, high=1)} | TOLERANCE

    def _check_together(self, n, d, p):
        if p.clip < 1:
            raise Refused(f"{self.name}: clip = {p.clip:g} is below the mean count: give 1 or more")
        self.plan(n, d, p)

    def rule_lambda(
        self, n: int, d: int, epsilon: float, delta: float, bound: float = 1.0, **options
    ) -> float:
        """lambda at which the Jacobian costs epsilon/10, or a larger one if the certificate needs it."""
        tolerance = (self.defaults() | options)["tolerance"]
        noise = 2 * bound / gaussian_mu(epsilon, delta) * gaussian_reach(d)
        # Noise is tripled because the Jacobian, the rate and the output noise also cost privacy.
        tilt = 3 * noise + n * bound
        lam = bound**2 / (n * math.expm1(min(epsilon / 10, 100.0)))
        return certifiable_lambda(n, d, lam, bound, tilt, tolerance)

    def plan(self, n: int, d: int, p: object) -> Plan:
        """The `Plan`. Raises `Refused` unless the minimiser of every data set can be certified.

        The linear term contains the sum of v x. Its norm is at most nR, and its rounding error at
        most that of the gradient's other terms.
        """
        for reach in (0.0, 2 * p.bound / p.mu * gaussian_reach(d)):
            self._check_certifiable(n, d, p, reach)
        share = self._rate_share(n, p)
        both = math.sqrt(min(share + p.output**2, 0.99))
        r = p.bound**2 / (n * p.lam)
        if counts_tilt.profile(p.mu / (2 * MOST_NOISE), r).delta(p.epsilon) > p.delta:
            raise Refused(
                f"at n lambda = {n * p.lam:.3g} the Jacobian needs more than {MOST_NOISE} times the "
                f"Gaussian mechanism's noise: give a larger lambda, such as that of the rule"
            )
        m, mu = counts_tilt.shared_parameter(p.epsilon, p.delta, p.mu, r, both, p.adjacency)
        parts = math.hypot(math.sqrt(share), p.output)
        own, out = mu * math.sqrt(share) / parts, mu * p.output / parts
        plan = Plan(own, p.bound / m, out, 2 * p.tolerance / (p.lam * out))
        self._check_certifiable(n, d, p, plan.scale * gaussian_reach(d))
        return plan

    def _check_certifiable(self, n, d, p, reach):
        tilt = reach + n * p.bound
        check_certifiable(n, d, p.lam, p.bound, CappedExponential(), p.tolerance, tilt=tilt)

    def _guarantee(self, n, d, p):
        plan = self.plan(n, d, p)
        r, mu = p.bound**2 / (n * p.lam), math.hypot(plan.mu_rate, plan.mu_output)

        def delta(epsilon):
            return np.vectorize(
                lambda e: counts_tilt.composed_delta(e, p.bound / plan.scale, mu, r), otypes=[float]
            )(epsilon)

        reason = (
            f"noise of standard deviation {1 / (n * plan.mu_rate):.6g} M on the mean count; tilt of "
            f"standard deviation {plan.scale:.6g} for slopes in an interval of length 1; the Jacobian "
            f"costs at most {math.log1p(r):.3g} of epsilon; a point of gradient norm at most tau = "
            f"{p.tolerance:g} is found on every data set (a premise: settings in which rounding or passes "
            f"could prevent it are refused), and noise of standard deviation {plan.output_scale:.6g} on "
            f"it is a Gaussian release with mu = {plan.mu_output:.6g}"
        )
        return p.proven(reason, profile=Curve(symmetric(delta)))

    def _release(self, X, y, p, draws, rng):
        (n, d), u = X.shape, _shares(y)
        plan = self.plan(n, d, p)
        rate = self._rates(u, plan, draws, rng)
        tilts = np.asarray(self._tilts(d, plan, draws, rng))
        weights, norm = np.zeros((draws, d)), np.full(draws, np.nan)
        status = np.full(draws, "ok", dtype="U16")
        for k, C in enumerate(np.minimum(1.0, p.clip * rate)):
            loss = CappedExponential(math.log(min(rate[k] / C, 1.0)))
            weights[k : k + 1], info = _minimiser(
                X, np.minimum(u, C) / C, p.lam, loss, p.tolerance, tilts[k]
            )
            norm[k], status[k] = info["gradient_norm"][0], info["status"][0]
        weights = weights + self._output(d, plan, draws, rng)
        release_info = {"intercept": np.log(rate), "gradient_norm": norm, "scale": plan.scale}
        return Release(np.where((status == "ok")[:, None], weights, 0.0), status, release_info)

    def _rates(self, u, plan, draws, rng):
        """Noisy means of u (draws,)."""
        return _released_rate(u, 1 / (len(u) * plan.mu_rate), draws, rng)

    def _tilts(self, d, plan, draws, rng):
        return gaussian(d, plan.scale, draws, rng)

    def _output(self, d, plan, draws, rng):
        """Noise for the solver's error."""
        return gaussian(d, plan.output_scale, draws, rng)


def certifiable_lambda(
    n: int, d: int, lam: float, bound: float, tilt: float, tolerance: float
) -> float:
    """lam, or a larger one if the certificate needs it. If none is enough, the plan is refused."""
    most = 1e30 * lam
    while least_tolerance(n, d, lam, bound, CappedExponential(), tilt) > tolerance < 1:
        lam *= 1.1
        if lam > most:
            break
    return lam


def _minimiser(X, v, lam, loss, tolerance, tilt=0.0):
    """The argmin (1, d) of mean h(w.x) - v w.x + lam/2 ||w||^2 + tilt.w/n, and the solver's info."""
    pull = sum(X[rows].T @ v[rows] for rows in slices(len(v), SUMMED))
    linear = np.atleast_2d(tilt - pull)
    ones = np.ones(len(v), dtype=np.int8)
    return minimise(X, ones, lam, linear=linear, loss=loss, tolerance=tolerance / 2)


@register("counts_regression")
class CountsRegression(Counts):
    """Without privacy: Poisson regression, argmin of mean h(w.x) - u w.x + lam/2 ||w||^2.

    h is `CappedExponential` with offset log(mean of u), so lam penalises the distance from the
    constant rate. If lam is near 0 and no estimated rate exceeds M, the result is the clipped
    counts' maximum-likelihood estimate.
    """

    private = False
    needs_lambda = True
    options = TOLERANCE

    def _guarantee(self, n, d, p):
        return "the exact minimiser is released"

    def _release(self, X, y, p, draws, rng):
        u = _shares(y)
        offset = math.log(max(u.mean(), _least_rate(len(u))))
        weights, info = _minimiser(X, u, p.lam, CappedExponential(offset), p.tolerance)
        release_info = {"gradient_norm": info["gradient_norm"], "intercept": np.full(1, offset)}
        return repeated(Release(weights, info["status"], release_info), draws)
