"""Gaussian objective perturbation for many classes, with softmax loss.

`dp.proofs.softmax_tilt` proves what an exact minimiser costs in privacy. Output noise covers the
solver's error, as in `dp.mechanisms.gaussian_objective_perturbation`.
"""

import numpy as np

from dp.descents.full_batch import classes_of
from dp.mechanism import Parameters
from dp.mechanisms import Mechanism, Release, register
from dp.mechanisms.gaussian_objective_perturbation import MOST_NOISE, Plan, certified, moved
from dp.noise import gaussian, gaussian_reach
from dp.options import ADJACENCY, PUBLIC_N, TOLERANCE, Between, Ordinary, public_size, stated_size
from dp.proofs import softmax_tilt
from dp.solvers import softmax
from dp.solvers.newton import check_certifiable
from dp_privacy.errors import Refused
from dp_privacy.profiles import Curve, symmetric
from dp_privacy.sensitivities import vector_sum


class _NoTilt(Refused):
    """At this lambda, no noise in the objective suffices, or only noise too large to be useful."""


@register("softmax_objective_perturbation")
class SoftmaxObjectivePerturbation(Mechanism):
    """W + Z, where W is near argmin of mean softmax loss + lam/2 ||W||^2 + <b, W>/n; b, Z are Gaussian.

    Labels are 0, .., K - 1. b's standard deviation is about that of a Gaussian release of the sum
    of gradients at delta/(K-1). If n lambda is at least twice b's variance, the Jacobian costs no
    epsilon. Otherwise, it adds about R^2/(n lambda) to epsilon.

    output: the output noise's share of mu.
    radius: with the rule's lambda, b shifts the score of a row of norm R with a standard deviation
    of at most about `radius`.
    """

    delta = "needed"
    # Tilts b beyond `gaussian_reach`, of probability at most e^-60 = 9e-27, are neglected,
    # so delta must be far larger.
    least_delta = 1e-20
    facts = ("classes",)
    options = ADJACENCY | PUBLIC_N | TOLERANCE
    options |= {"output": Between(0.03, low=0, high=1), "radius": Ordinary(1.0)}

    def rule_lambda(
        self,
        n: int,
        d: int,
        epsilon: float,
        delta: float,
        bound: float = 1.0,
        *,
        classes: int | None = None,
        **options,
    ) -> float:
        p = self.defaults() | options
        settings = {name: p[name] for name in ("adjacency", "radius")}
        n = p.get("public_n") or n
        return softmax_tilt.rule_lambda(
            n, classes_of("softmax", classes), epsilon, delta, bound, **settings
        )

    def _classes(self, p):
        return classes_of("softmax", p.classes)

    def _check_together(self, n, d, p):
        self._plan(n, d, p)

    def _plan(self, n, d, p):
        """The `Plan`. A refusal names a larger lambda that works, or says that none does."""
        try:
            return self._planned(n, d, p)
        except _NoTilt as error:
            raise Refused(f"{error}{self._remedy(n, d, p)}") from error

    def _remedy(self, n, d, p):
        """Text appended to the refusal: a lambda that works, or that epsilon must be larger."""

        def works(lam):
            try:
                self._planned(n, d, Parameters(**vars(p) | {"lam": lam}))
            except Refused:
                return False
            return True

        arguments = {name: getattr(p, name) for name in (*self.options, *self.facts)}
        rule = self.rule_lambda(n, d, p.epsilon, p.delta, p.bound, **arguments)
        if rule > p.lam and works(rule):
            return f": give a larger lambda, such as that of the rule, {rule:.4g}"
        for power in (1, 2, 3, 6):
            lam = float(f"{10**power * max(rule, p.lam):.3g}")
            if works(lam):
                return f": give a larger lambda, such as {lam:g}"
        return (
            f", and no lambda helps at epsilon = {p.epsilon:g} and delta = {p.delta:g}: give a larger "
            f"epsilon"
        )

    def _planned(self, n, d, p):
        """The `Plan`. Raises `Refused` unless the minimiser of every data set can be certified.

        Raises `_NoTilt` if lambda is too small for useful noise.
        """
        K, n_lambda, adjacency = classes_of("softmax", p.classes), n * p.lam, p.adjacency
        constants = softmax.Constants(K)
        check_certifiable(n, d, p.lam, p.bound, constants, p.tolerance)
        of = p.epsilon, p.delta, n_lambda, K, p.bound, adjacency, p.output
        try:
            sigma, mu_output = softmax_tilt.with_output_noise(*of)
        except ValueError as error:
            raise _NoTilt(
                f"at n lambda = {n_lambda:.3g} the tilt leaves nothing of epsilon"
            ) from error
        if sigma > MOST_NOISE * softmax_tilt.sigma_where_free(
            p.epsilon, p.delta, K, p.bound, adjacency
        ):
            raise _NoTilt(
                f"at n lambda = {n_lambda:.3g} the tilt needs more than {MOST_NOISE} times the "
                f"Gaussian mechanism's noise"
            )
        reach = sigma * gaussian_reach(d * K)
        check_certifiable(n, d, p.lam, p.bound, constants, p.tolerance, tilt=reach)
        stated = p.public_n is not None
        scale = moved(n, p.lam, p.tolerance, adjacency, stated) / mu_output
        return Plan(sigma, scale, mu_output, 0.0, p.tolerance, adjacency)

    def _guarantee(self, n, d, p):
        plan, K = self._plan(n, d, p), p.classes
        m, r = np.sqrt(2) * p.bound / plan.scale, p.bound**2 / (n * p.lam)

        def delta(epsilon):
            parts = m, plan.mu_output, r, K, plan.adjacency
            return np.vectorize(lambda e: softmax_tilt.composed_delta(e, *parts), otypes=[float])(
                epsilon
            )

        extra = min(extra for extra, _ in softmax_tilt.jacobian(m, r, K))
        reason = (
            f"{K - 1} times the profile of Gaussian DP with mu = {vector_sum(m, plan.adjacency):.6g}, "
            f"tilt of standard deviation {plan.scale:.6g} beside the sum of the losses; the Jacobian costs "
            f"{extra:.3g} of epsilon at n lambda = {n * p.lam:.6g}; {certified(n, p, plan)}"
            f"{public_size(p, at_most=True)}"
        )
        return p.proven(reason, profile=Curve(symmetric(delta)))

    def _release(self, X, y, p, draws, rng):
        """The solver's tolerance is half of the plan's; the other half covers rounding."""
        (rows, d), K = X.shape, p.classes
        n = stated_size(self.name, p, rows)
        plan, per_record = self._plan(n, d, p), n / rows

        def noise(scale):
            return gaussian(d * K, scale, draws, rng).reshape(draws, d, K)

        weights, info = softmax.minimise(
            X, y, K, p.lam * per_record, noise(plan.scale), plan.tolerance / 2 * per_record
        )
        weights += noise(plan.output_scale)
        ok = info["status"] == "ok"
        return Release(
            np.where(ok[:, None, None], weights, 0.0),
            info["status"],
            {
                "gradient_norm": info["gradient_norm"],
                "scale": plan.scale,
                "output_scale": plan.output_scale,
            },
        )
