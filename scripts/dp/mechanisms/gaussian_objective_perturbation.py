"""Gaussian objective perturbation, with the tightest known accounting or as published.

`dp.proofs.gaussian_tilt` proves the cost of an exact minimiser. Gaussian output noise covers the
solver's error, as in `dp.mechanisms.objective_perturbation`. Let tau be the certified gradient norm
of the mean objective. Given the value of the exact minimiser, the solver's points on neighbours of
equal size differ by at most 2 tau/lambda. Under add-remove, both summed objectives have the same
Lambda = n lambda, and gradient norms of at most n tau and (n + 1) tau. So the points differ by at
most 2 tau/lambda + tau/(n lambda). With `public_n`, both gradient norms are at most `public_n` tau,
and the bound is 2 tau/lambda.
"""

import math
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from dp import losses
from dp.clipped_logistic import ClippedLogistic
from dp.mechanism import Parameters
from dp.mechanisms import register
from dp.mechanisms.objective_perturbation import Tilted
from dp.noise import gaussian, gaussian_reach
from dp.offset import Centre, gaussian_share
from dp.options import (
    ADJACENCY,
    LOSS,
    OFFSET,
    PUBLIC_N,
    TOLERANCE,
    Between,
    NonNegative,
    Optional,
    Ordinary,
    Positive,
    Whole,
    public_size,
)
from dp.proofs import gaussian_tilt, person_tilt, published_tilt
from dp.solvers.newton import check_certifiable
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE, Guarantee, gaussian_mu
from dp_privacy.errors import Refused
from dp_privacy.profiles import Curve, symmetric
from dp_privacy.sensitivities import vector_sum

# Maximum ratio of the tilt's noise to that with a free Jacobian. More noise is useless.
MOST_NOISE = 50


class Plan(NamedTuple):
    """The noise of a release.

    scale: standard deviation of the tilt b, the noise in the summed objective's linear term.
    output_scale, mu_output: standard deviation and Gaussian-DP parameter of the output noise.
    ridge: added to lam.
    tolerance: certified gradient norm.
    mu_rate: Gaussian-DP parameter of the mean target's release, 0 without an offset.
    """

    scale: float
    output_scale: float
    mu_output: float
    ridge: float
    tolerance: float
    adjacency: str
    mu_rate: float = 0.0


CLIP = Between(0.75, low=1e-50, high=1)


class Kind(NamedTuple):
    """A loss, with its name in `gaussian_tilt` and the bound on its slopes."""

    name: str
    slope: float
    loss: object


def kind(loss: losses.Loss, clip: float | None = None) -> Kind:
    """The `Kind` of a loss, perhaps with clipped slopes. Raises `Refused` if no proof covers it."""
    loss = losses.get(loss)
    if type(loss) not in (losses.Logistic, losses.LogCosh):
        raise Refused(
            f"the Jacobian of a Gaussian tilt is known for logistic and log_cosh loss, not for {loss.name}"
        )
    if clip is not None:
        if loss.residual:
            raise Refused(f"clip is for logistic loss; slopes of {loss.name} are at most its tau")
        loss = ClippedLogistic(clip)
    return Kind(loss.name, loss.kappa, loss)


def moved(n: int, lam: float, tolerance: float, adjacency: str, stated: bool = False) -> float:
    """The maximum distance between neighbours' solver errors (module docstring).

    stated: whether n is `public_n`.
    """
    return (2 + (adjacency == ADD_REMOVE and not stated) / n) * tolerance / lam


def certified(n: int, p: Parameters, plan: Plan) -> str:
    """What a guarantee's reason says about the solver's error and the output noise."""
    every = "every data set" if p.public_n is None else f"every data set of at most {n} records"
    return (
        f"a point of gradient norm at most tau = {plan.tolerance:g} is found on {every} (a premise: "
        f"settings in which rounding or passes could prevent it are refused), and noise of standard "
        f"deviation {plan.output_scale:.6g} on it is a Gaussian release with mu = {plan.mu_output:.6g}"
    )


def _check_person(p):
    """Refuse settings for which several records per person have no proof."""
    if p.adjacency == ADD_REMOVE or p.clip is not None or getattr(p, "offset", "none") == "paid":
        raise Refused(
            "most: several records per person are proven under replace-one without a clip or a paid offset"
        )


class _GaussianTilt(Tilted):
    """Base class that releases w + z, w near argmin of mean loss + (lam + ridge)/2 ||w||^2 + b.w/n.

    b, the tilt, and z are Gaussian.
    """

    delta = "needed"
    # Tilts beyond `gaussian_reach`, of probability e^-60 = 9e-27, are neglected, so delta must be
    # far larger.
    least_delta = 1e-20
    numbers = False  # subclasses with a residual loss set it to True
    law = staticmethod(gaussian)

    def check(self, n: int, d: int, **settings) -> None:
        """Check settings without computing the profile, which is slow and refuses none."""
        self._plan(n, d, self.parameters(n, d, **settings))

    def _kind(self, p):
        return kind("logistic")

    def _loss(self, p):
        return self._kind(p).loss

    def _checked_plan(self, n, d, p, plan):
        """Return `plan`. Raises `Refused` unless the minimiser of every data set can be certified."""
        solved, length = self._solved(n, p, plan, p.bound)
        for reach in (0.0, plan.scale * gaussian_reach(d)):
            lam = p.lam + plan.ridge
            check_certifiable(n, d, lam, length, solved, plan.tolerance, tilt=reach)
        return plan

    def _centre(self, n, p, plan):
        if not plan.mu_rate:
            return None
        return Centre(n, 1 / plan.mu_rate, gaussian=True, numbers=self._loss(p).residual)

    def _profile(self, n, p, plan):
        loss = self._kind(p)
        m, r = loss.slope * p.bound / plan.scale, p.bound**2 / (n * (p.lam + plan.ridge))
        mu = math.hypot(plan.mu_output, plan.mu_rate)
        if getattr(p, "most", 1) > 1:
            parts = m, mu, r, p.most, loss.name

            def at(epsilon):
                return person_tilt.composed_delta(epsilon, *parts)

        else:
            parts = m, mu, r, plan.adjacency, loss.name

            def at(epsilon):
                return gaussian_tilt.composed_delta(epsilon, *parts, slope=loss.slope)

        delta = np.vectorize(at, otypes=[float])

        return Curve(symmetric(delta))

    def _paid(self, n, p, plan):
        fixed = f"Lambda = n lambda = {n * (p.lam + plan.ridge):.6g} beside the sum of the losses"
        of = Parameters(adjacency=plan.adjacency, public_n=p.public_n)
        fixed += f", the same with or without a record{public_size(of, at_most=True)}" * (
            of.adjacency == ADD_REMOVE
        )
        paid = f"tilt of standard deviation {plan.scale:.6g}, {fixed}; {certified(n, p, plan)}"
        if plan.mu_rate:
            described = self._centre(n, p, plan).described()
            paid += f"; a Gaussian release with mu = {plan.mu_rate:.6g} is that of {described}"
        return paid


@register("gaussian_objective_perturbation")
class GaussianObjectivePerturbation(_GaussianTilt):
    """Gaussian objective perturbation, which costs as much as Gaussian noise if n lambda is large.

    If n lambda is at least R^2/(epsilon/2 + mu^2/4) (add-remove: R^2/(epsilon + mu^2/2)), the
    Jacobian costs no epsilon, and the tilt has the Gaussian mechanism's standard deviation, 2R/mu
    (add-remove: R/mu). Otherwise, the profile determines a larger standard deviation.

    loss: "logistic", or for numbers "log_cosh": t^2 log cosh(residual/t), with t the loss' option
    `tau` and slopes in [-t, t]. With log_cosh, the tilt has t times the Gaussian mechanism's standard
    deviation at delta/2, and the threshold for n lambda is about twice that for logistic loss.
    clip: a record's maximum slope under logistic loss, below 1 (`ClippedLogistic`). The tilt is
    proportional to this slope k. The Jacobian then adds log(1 + k (1-k) R^2/(n lambda)) to epsilon, and
    if n lambda is small, log(1 + R^2/(4 n lambda)).
    output: the output noise's share s of mu, which multiplies the tilt's standard deviation by
    about 1 + s^2/2.
    radius: with the rule's lambda, the tilt moves the minimiser by at most about radius/R.
    offset: "paid" spends a share of mu^2 on the noisy class rate or mean first, and adds its log-odds,
    or the mean, to all scores, as info["intercept"] (`dp.offset`).
    most: the most records of one person. Above 1, neighbours differ in all records of one person, and
    the tilt and the threshold for n lambda are about `most` times as large (`dp.proofs.person_tilt`).
    """

    numbers = True
    options = LOSS | ADJACENCY | PUBLIC_N | TOLERANCE
    options |= {"output": Between(0.03, low=0, high=1), "radius": Ordinary(20.0)}
    options |= {"clip": Optional(CLIP), "most": Whole(1)} | OFFSET

    def rule_lambda(
        self, n: int, d: int, epsilon: float, delta: float, bound: float = 1.0, **options
    ) -> float:
        p = self.defaults() | options
        n = p.get("public_n") or n
        loss = self._kind(SimpleNamespace(**p))
        if p.get("most", 1) > 1:
            _check_person(SimpleNamespace(**p))
            settings = {"slope": loss.slope, "loss": loss.name}
            settings |= {name: p[name] for name in ("output", "radius")}
            return bound**2 * person_tilt.rule_lambda(n, d, epsilon, delta, p["most"], **settings)
        settings = {name: p[name] for name in ("adjacency", "radius")}
        share = rate_share(n, gaussian_mu(epsilon, delta), p.get("offset"))
        settings |= {"slope": loss.slope, "loss": loss.name}
        settings["output"] = math.sqrt(p["output"] ** 2 + share) if share else p["output"]
        return gaussian_tilt.rule_lambda(n, d, epsilon, delta, bound, **settings)

    def _kind(self, p):
        return kind(p.loss, p.clip)

    def _plan(self, n, d, p):
        loss = self._kind(p)
        check_certifiable(n, d, p.lam, p.bound, loss.loss, p.tolerance)
        settings = {"bound": p.bound, "adjacency": p.adjacency}
        settings |= {"slope": loss.slope, "loss": loss.name}
        most = getattr(p, "most", 1)
        if most > 1:
            _check_person(p)
        free = most * gaussian_tilt.sigma_where_free(p.epsilon, p.delta, **settings)
        r = p.bound**2 / (n * p.lam)
        if most > 1:
            m = loss.slope * p.bound / (MOST_NOISE * free)
            over = person_tilt.replacement(p.epsilon, m, r, most, loss.name)
        else:
            over = gaussian_tilt.tilt_delta(p.epsilon, MOST_NOISE * free, n * p.lam, **settings)
        if over > p.delta:
            raise Refused(
                f"at n lambda = {n * p.lam:.3g} the Jacobian needs more than {MOST_NOISE} times the "
                f"Gaussian mechanism's noise: give a larger lambda, such as that of the rule"
            )
        share = rate_share(n, p.mu, getattr(p, "offset", None))
        both = math.sqrt(p.output**2 + share) if share else p.output
        if both >= 1:
            raise Refused(
                "output and the offset leave nothing of mu for the tilt: make output smaller"
            )
        if most > 1:
            sigma, mu = person_tilt.with_output_noise(
                p.epsilon, p.delta, 1 / r, most, loss.slope, loss.name, p.output
            )
            sigma *= p.bound
        else:
            sigma, mu = gaussian_tilt.with_output_noise(
                p.epsilon, p.delta, n * p.lam, output=both, **settings
            )
        stated = p.public_n is not None
        mu_output, mu_rate = mu * (p.output / both), mu * (math.sqrt(share) / both)
        output_scale = moved(n, p.lam, p.tolerance, p.adjacency, stated) / mu_output
        plan = Plan(sigma, output_scale, mu_output, 0.0, p.tolerance, p.adjacency, mu_rate)
        return self._checked_plan(n, d, p, plan)

    def _guarantee(self, n, d, p):
        plan = self._plan(n, d, p)
        loss = self._kind(p)
        most = getattr(p, "most", 1)
        if most > 1:
            ratio = (
                n
                * p.lam
                / p.bound**2
                / person_tilt.least_regularisation(p.epsilon, most, loss.name)
            )
            paid = (
                f"neighbours differ in all records of a person, of which there are {most} at most; "
                f"{self._paid(n, p, plan)}; n lambda is {ratio:.3g} times the threshold above which the "
                f"Jacobian is free"
            )
            return p.proven(paid, profile=self._profile(n, p, plan))
        mu = vector_sum(loss.slope, p.adjacency) * p.bound / plan.scale
        paid = f"{self._paid(n, p, plan)}; {self._jacobian(n, p, mu, loss)}"
        return p.proven(paid, profile=self._profile(n, p, plan))

    def _jacobian(self, n, p, mu, loss):
        if loss.name in gaussian_tilt.NEVER_FREE:
            m, r = mu / vector_sum(1.0, p.adjacency), p.bound**2 / (n * p.lam)
            costs = gaussian_tilt.jacobian(p.epsilon, m, r, p.adjacency, loss.name, loss.slope)
            return f"slopes are at most {loss.slope:g}; the Jacobian costs at most {costs:.3g} of epsilon"
        least = gaussian_tilt.least_regularisation(p.epsilon, mu, p.bound, p.adjacency, loss.name)
        free = "the Jacobian is free" if n * p.lam >= least else "the Jacobian is paid for"
        if loss.loss.residual:
            free = f"slopes are at most {loss.slope:g} whatever the targets are; {free}"
        return f"{free}: n lambda is {n * p.lam / least:.3g} times the threshold"


def rate_share(n: int, mu: float, offset: str | None) -> float:
    """The share of mu^2 for the mean target, 0 without an offset."""
    return gaussian_share(n, mu) if offset == "paid" else 0.0


class _Published(_GaussianTilt):
    """Base class for published calibrations. Lambda is the larger of the source's and n lam."""

    needs_lambda = False
    fit = None  # a fit would need a lambda

    def _published(self, n, p):
        """The `published_tilt.Tilt` and the adjacency. `gradient_norm` is for the mean objective."""
        raise NotImplementedError

    def _plan(self, n, d, p):
        tilt, adjacency = self._published(n, p)
        ridge = max(0.0, tilt.n_lambda / n - p.lam)
        mu = moved(n, p.lam + ridge, tilt.gradient_norm, adjacency) / tilt.sigma_output
        plan = Plan(tilt.sigma, tilt.sigma_output, mu, ridge, tilt.gradient_norm, adjacency)
        return self._checked_plan(n, d, p, plan)

    def _guarantee(self, n, d, p):
        """The guarantee: the source's epsilon is claimed, and that of the composed profile proven."""
        plan = self._plan(n, d, p)
        profile = self._profile(n, p, plan)
        proven = profile.epsilon(p.delta)
        reason = (
            f"{self._paid(n, p, plan)}; with the Jacobian's share found exactly, both are together "
            f"({proven:.6g}, {p.delta:g})-DP"
        )
        return Guarantee(p.epsilon, proven, p.delta, plan.adjacency, reason, profile)


@register("amp")
class AMP(_Published):
    """Approximate minima perturbation as published (Iyengar et al., IEEE S&P 2019). It needs no tuning."""

    def _published(self, n, p):
        tilt = published_tilt.amp(p.epsilon, p.delta, n, p.bound)
        larger = max(1.0, n * p.lam / tilt.n_lambda)  # the output noise is proportional to 1/Lambda
        return tilt._replace(sigma_output=tilt.sigma_output / larger), REPLACE_ONE


@register("objective_perturbation_redberg")
class Redberg(_Published):
    """Objective perturbation as published by Redberg, Koskela and Wang (NeurIPS 2023), under add-remove.

    sigma_output: standard deviation of the output noise.
    gradient_norm: of the *summed* objective.
    """

    options = {"sigma_output": Positive(0.15), "gradient_norm": NonNegative(5e-4)}

    def _published(self, n, p):
        tilt = published_tilt.redberg(
            p.epsilon, p.delta, p.bound, p.bound**2 / 4, p.sigma_output, p.gradient_norm
        )
        return tilt._replace(gradient_norm=tilt.gradient_norm / n), ADD_REMOVE
