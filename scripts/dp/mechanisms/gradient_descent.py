"""Differentially private full-batch gradient descent, from zero or from publicly trained weights."""

import math

import numpy as np

from dp import losses
from dp.descents import full_batch
from dp.evaluation import error_rate
from dp.mechanism import Parameters, repeated
from dp.mechanisms import Mechanism, Release, register
from dp.options import ADJACENCY, PUBLIC_N, Choice, Flag, Ordinary, Positive, Whole, public_size
from dp.proofs import last_iterate
from dp.rows import NUMBERS, check_rows
from dp_privacy.accounting import (
    ADD_REMOVE,
    classical_gaussian_sigma,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_sigma,
)
from dp_privacy.errors import Refused
from dp_privacy.profiles import Gaussian
from dp_privacy.sensitivities import vector_sum

LOSS = {"loss": Choice(*full_batch.LOSSES)}
STEPS = {
    "iterations": Whole(100),
    "learning_rate": Positive(1.0),
    "pretrain": Flag(False),
    "public_iterations": Whole(1000),
    "traced": Flag(False),
}


def gradient_norm(p: Parameters, loss: str = "logistic") -> float:
    """The maximum norm of a record's gradient. Clipping to it matters only after overflow."""
    return last_iterate.constants(loss, 0.0, p.bound)[0] / 2


class Classifier(Mechanism):
    """Base class. `loss` decides whether y has labels -1 and 1, labels 0 to K - 1 (softmax), or numbers."""

    needs_lambda = False
    facts = ("classes",)  # only the softmax loss uses it

    def _check_together(self, n, d, p):
        if p.classes is not None and p.loss != "softmax":
            raise Refused(f"{p.loss} loss is not for {p.classes} classes: use softmax")

    def takes_numbers(self, options: dict) -> bool:
        loss = options.get("loss", "logistic")
        return loss != "softmax" and losses.get(loss).residual

    def _classes(self, p):
        return full_batch.classes_of(p.loss, p.classes)

    def _descend(self, X, y, p, **settings):
        named = ("iterations", "learning_rate", "loss", "classes", "lam")
        own = {name: value for name, value in vars(p).items() if name in named}
        return full_batch.descend(X, y, **own | {"size": p.public_n} | settings)


class Descent(Classifier):
    """Base class of full-batch gradient descent. `initial` weights replace pre-training.

    The guarantee does not cover info["train_error"] or info["loss"] (with `traced`: the mean training
    loss of every iterate).
    """

    uses_public_rows = True
    reports = ("train_error",)
    fixed = {"accounting": "composition"}

    def _start(self, p):
        if p.public is None or len(p.public[0]) == 0:
            raise Refused(
                "pretrain needs public rows, and the data set has none: give it some, or set "
                "pretrain to false"
            )
        check_rows(*p.public, p.bound, self._classes(p))
        weights, _ = self._descend(*p.public, p, iterations=p.public_iterations, size=None)
        return weights[0]

    def _noise(self, n, p):
        """The arguments clip and sigma of `full_batch.descend`, which give privacy."""
        return {}

    def _release(self, X, y, p, draws, rng):
        noise = self._noise(p.public_n or len(X), p)
        start = self._start(p) if p.initial is None and p.pretrain else p.initial
        descents = draws if noise else 1  # without noise, all draws are identical
        # Accounting for the last iterate forbids any other release.
        traced = p.traced and p.accounting == "composition"
        weights, trace = self._descend(
            X, y, p, restarts=descents, rng=rng, initial=start, traced=traced, **noise
        )
        error = np.full(descents, np.nan)  # numeric targets have no error rate
        if self._classes(p) != NUMBERS or np.isin(y, (-1, 1)).all():
            error = error_rate(weights, X, y)
        info = {"train_error": error, "scale": noise.get("sigma", 0.0)}
        info |= {"loss": trace} if traced else {}
        return repeated(Release(weights, np.full(descents, "ok"), info), draws // descents)


@register("dp_gd")
class DPGradientDescent(Descent):
    """T gradient steps, each on the mean of per-example gradients clipped to norm C, with Gaussian noise.

    Replacing one record changes the mean by at most 2C/n. T such Gaussian releases compose to mu =
    sqrt(T) 2C/(n sigma) (Dong, Roth, Su, JRSS B 84, 2022, corollary 3.3), which is tight if all
    iterates are seen. Under add-remove, n is public, and a record changes sums by at most C.

    accounting:
      "composition"   as if all iterates were released
      "last_iterate"  for the last iterate alone, if `dp.proofs.last_iterate` proves a smaller mu. This
                      needs rows of norm at most R, a loss that is convex and smooth even after
                      clipping, lambda > 0, and a learning rate below 2/(lambda + curvature). No
                      loss of an earlier iterate is reported. Under add-remove, only the step on n
                      records has to be a contraction.
    noise:
      "analytic"   sigma = sqrt(T) 2C/(n mu) with the mu that is (epsilon, delta)-DP exactly
      "published"  sigma = 2C/(n epsilon) sqrt(2 T ln(1.25/delta)), claimed to give this epsilon. By
                   the exact curve, epsilon is larger, unless the claimed one is small

    loss: "logistic" (labels in {-1, 1}), "softmax" (labels 0, 1, ..), or a loss of residuals for
    targets in [-1, 1].
    public_n: under add-remove, replaces n as the divisor of sums and in `rule_steps`.
    steps: with "rule", `rule_steps` sets iterations, learning rate and clipping norm.
    pretrain: whether to start from the result of `public_iterations` steps on public rows, without
    noise, clipping or privacy cost.
    """

    delta = "needed"
    options = (
        LOSS
        | {"noise": Choice("analytic", "published"), "clip": Ordinary(1.0)}
        | STEPS
        | {"accounting": Choice("composition", "last_iterate")}
        | ADJACENCY
        | PUBLIC_N
        | {"steps": Choice("stated", "rule")}
    )

    def hides(self, options: dict) -> bool:
        return (self.defaults() | options)["accounting"] == "last_iterate"

    def _check_together(self, n, d, p):
        super()._check_together(n, d, p)
        if p.public_n is not None and p.accounting == "last_iterate":
            raise Refused(
                "dp_gd: a step on more than public_n records need not contract, as the accounting of the "
                "last iterate assumes: set accounting to composition"
            )

    def _by_rule(self, n, d, p):
        settings = n, d, p.epsilon, p.delta, p.bound, p.loss, p.classes, p.lam
        return self.rule_steps(*settings) if p.steps == "rule" else {}

    def rule_steps(
        self,
        n: int,
        d: int,
        epsilon: float,
        delta: float,
        bound: float = 1.0,
        loss: str = "logistic",
        classes: int | None = None,
        lam: float = 0.0,
    ) -> dict:
        """iterations, learning_rate and clip, from public numbers alone.

        Losses with one slope per record use T = min(1000, n mu/sqrt(d)) steps at the rate 1/c
        without clipping, where c = R^2/4 is the maximum curvature.

        For softmax, gradients are clipped to C = R/2, about a third of their bound. Steps end when
        the noise on the score of a row of norm R has a standard deviation of 1. T steps at rate e
        put noise of standard deviation e T 2C/(n mu) on every weight, so e T = n mu/R^2. This takes
        n mu/K steps at the rate 1/c, where c = R^2/K is the maximum curvature at W = 0. If n mu/K
        exceeds 300, first the rate rises, up to 1.5/c, and then the number of steps, up to 1000. If
        n mu/K is below 1, a single step is taken at a smaller rate.

        With lambda, curvatures are in [lambda, c + lambda]. A step at rate e multiplies a distance
        by at most max(|1 - e lambda|, |1 - e (c + lambda)|). The minimum, c/(c + 2 lambda), is at e
        = 2/(c + 2 lambda). So the rate is at most this e, which is below 1/c if lambda > c/2. Since
        e lambda < 1 and gradients have norm at most G, |W| <= G/lambda without noise. For softmax,
        the previous paragraph's rate replaces 1/c here. Softmax curvatures are at most R^2/2, and
        e (R^2/2 + lambda) <= 2 if lambda >= R^2/2 - c.
        """
        mu = gaussian_mu(epsilon, delta)
        largest, _, smoothness = last_iterate.constants(loss, 0.0, bound)
        if not math.isfinite(largest):
            raise Refused(f"dp_gd has no rule for its steps with the {loss} loss: state them")
        steps, rate, clip = last_iterate.rule_steps(n, d, mu), 1 / smoothness, largest / 2
        if loss == "softmax":
            K = full_batch.classes_of(loss, classes)
            usual = n * mu / K  # steps at a rate of K/R^2
            steps = min(1000, math.ceil(max(min(usual, 300), usual / 1.5)))
            rate, clip = K / bound**2 * min(1.5, usual / steps), bound / 2
        rate = min(rate, 2 / (1 / rate + 2 * lam))
        return {"iterations": steps, "learning_rate": rate, "clip": clip}

    def _unit(self, n, p):
        """mu for noise of standard deviation 1, and its accounting in words ("" for composition)."""
        composed = math.sqrt(p.iterations) * vector_sum(p.clip, p.adjacency) / n
        if p.accounting == "composition":
            return composed, ""
        steps = p.iterations, 1.0, p.learning_rate, p.lam, p.loss, p.bound, p.clip
        mu, how = last_iterate.dp_gd_mu(n, *steps)
        return min(composed, mu / (2 if p.adjacency == ADD_REMOVE else 1)), f"; {how}"

    def _guarantee(self, n, d, p):
        sigma, moved = self.sigma(n, p), vector_sum(p.clip, p.adjacency)
        mu, how = self._unit(n, p)
        mu = mu / sigma if how else math.sqrt(p.iterations) * moved / (n * sigma)
        proven = p.epsilon if p.noise == "analytic" else gaussian_epsilon(1 / mu, p.delta)
        reason = (
            f"{p.iterations} Gaussian steps of sensitivity {'2C/n' if moved > p.clip else 'C/n'} = "
            f"{moved / n:.6g} and standard deviation {sigma:.6g} compose to Gaussian DP with mu = "
            f"{mu:.6g}; {p.noise} noise{how}{public_size(p)}"
        )
        if p.pretrain:
            reason += "; it starts from weights that public rows alone determine"
        return p.proven(reason, proven, Gaussian(mu))

    def sigma(self, n: int, p: Parameters) -> float:
        """Standard deviation of the noise on every coordinate of the mean gradient."""
        calibrate = gaussian_sigma if p.noise == "analytic" else classical_gaussian_sigma
        return calibrate(p.epsilon, p.delta, self._unit(n, p)[0])

    def _noise(self, n, p):
        return {"clip": p.clip, "sigma": self.sigma(n, p)}


@register("gradient_descent")
class GradientDescent(Descent):
    """Without privacy: the steps of `dp_gd` without clipping or noise."""

    private = False
    # With 0 iterations, only the fit to the public rows is released.
    options = LOSS | STEPS | {"iterations": Whole(100, least=0)}

    def _guarantee(self, n, d, p):
        return "gradient descent without noise"
