"""Differentially private full-batch gradient descent, from zero or from publicly trained weights."""

import math

import numpy as np

from dp import gradient_descent, losses
from dp.accounting import (
    REPLACE_ONE,
    Guarantee,
    classical_gaussian_sigma,
    gaussian_epsilon,
    gaussian_sigma,
    none,
)
from dp.data import NUMBERS, check_rows
from dp.errors import Refused
from dp.evaluation import error_rate
from dp.mechanisms import Mechanism, Release, register
from dp.mechanisms.options import Choice, Flag, Positive, Whole

LOSS = {"loss": Choice(*gradient_descent.LOSSES)}
STEPS = {
    "iterations": Whole(100),
    "learning_rate": Positive(1.0),
    "pretrain": Flag(False),
    "public_iterations": Whole(1000),
}


class _Descent(Mechanism):
    """`initial`, where it is given, takes the place of pre-training.

    info["loss"], the mean training loss of every iterate, and info["train_error"] are diagnostics that
    no guarantee covers.
    """

    needs_lambda = False
    uses_public_rows = True
    facts = ("classes",)  # of the softmax loss
    reports = ("train_error",)

    def _check_together(self, n, d, p):
        if p.classes is not None and p.loss != "softmax":
            raise Refused(
                f"{p.loss} loss is not for labels in {{-1, 1}}, not {p.classes} classes: use softmax"
            )

    def takes_numbers(self, options):
        loss = options.get("loss", "logistic")
        return loss != "softmax" and losses.get(loss).residual

    def _classes(self, p):
        return gradient_descent.classes_of(p.loss, p.classes)

    def _start(self, p, settings):
        """Weights that gradient descent without privacy finds on the public rows."""
        if p.public is None or len(p.public[0]) == 0:
            raise Refused(
                "pretrain needs public rows, and the data set has none: give it some, or set "
                "pretrain to false"
            )
        check_rows(*p.public, p.bound, self._classes(p))
        weights, _ = gradient_descent.descend(
            *p.public, **settings | {"iterations": p.public_iterations}
        )
        return weights[0]

    def _noise(self, n, p):
        """What `dp.gradient_descent.descend` is given for privacy: clip and sigma."""
        return {}

    def _release(self, X, y, p, draws, rng):
        settings = {
            "loss": p.loss,
            "classes": p.classes,
            "lam": p.lam,
            "learning_rate": p.learning_rate,
            "iterations": p.iterations,
        }
        noise = self._noise(len(X), p)
        start = p.initial
        if start is None and p.pretrain:
            start = self._start(p, settings)
        descents = draws if noise else 1  # without noise they are all the same
        weights, trace = gradient_descent.descend(
            X, y, restarts=descents, rng=rng, initial=start, **noise, **settings
        )
        error = np.full(descents, np.nan)  # of classes
        if self._classes(p) != NUMBERS or np.isin(y, (-1, 1)).all():
            error = error_rate(weights, X, y)
        info = {"loss": trace, "train_error": error}
        same = draws // descents
        return Release(
            np.repeat(weights, same, axis=0),
            np.full(draws, "ok"),
            {key: np.repeat(values, same, axis=0) for key, values in info.items()}
            | {"scale": noise.get("sigma", 0.0)},
        )


@register("dp_gd")
class DPGradientDescent(_Descent):
    """T steps on the mean of per-example gradients clipped to norm C, Gaussian noise on each.

    Replacing one record changes the mean by at most 2C/n. T Gaussian releases of that sensitivity
    at standard deviation sigma compose exactly to one, mu = sqrt(T) 2C/(n sigma) (Dong, Roth, Su,
    JRSS B 84, 2022, corollary 3.3). It is tight for all iterates, an upper bound for the last alone.

    noise:
      "analytic"   sigma = sqrt(T) 2C/(n mu) with the mu that is (epsilon, delta)-DP exactly
      "published"  sigma = 2C/(n epsilon) sqrt(2 T ln(1.25/delta)): the claimed epsilon, and the one
                   that the exact curve gives, which is larger where epsilon is not small

    loss: "logistic" (labels in {-1, 1}), "softmax" (labels 0, 1, ..; `classes` of the data), or one of
    residuals, of targets in [-1, 1]; whatever it is, clipping bounds an example's gradient.
    pretrain: start from `public_iterations` steps of gradient descent, without noise or clipping,
    on the data set's public rows: a function of public data costs nothing.
    """

    delta = "needed"
    options = LOSS | {"noise": Choice("analytic", "published"), "clip": Positive(1.0)} | STEPS

    def _guarantee(self, n, d, p):
        """(epsilon, delta)-DP for all iterates together."""
        sigma = self.sigma(n, p)
        mu = math.sqrt(p.iterations) * 2 * p.clip / (n * sigma)
        proven = p.epsilon if p.noise == "analytic" else gaussian_epsilon(1 / mu, p.delta)
        reason = (
            f"{p.iterations} Gaussian steps of sensitivity 2C/n = {2 * p.clip / n:.6g} and standard "
            f"deviation {sigma:.6g} compose to Gaussian DP with mu = {mu:.6g}; {p.noise} noise"
        )
        if p.pretrain:
            reason += "; it starts from weights that public rows alone determine"
        return Guarantee(p.epsilon, proven, p.delta, REPLACE_ONE, reason)

    def sigma(self, n, p):
        """Standard deviation of the noise on every coordinate of the mean gradient."""
        calibrate = gaussian_sigma if p.noise == "analytic" else classical_gaussian_sigma
        return calibrate(p.epsilon, p.delta, math.sqrt(p.iterations) * 2 * p.clip / n)

    def _noise(self, n, p):
        return {"clip": p.clip, "sigma": self.sigma(n, p)}


@register("gradient_descent")
class GradientDescent(_Descent):
    """Without privacy: the same steps without clipping and noise."""

    private = False
    options = LOSS | STEPS

    def _guarantee(self, n, d, p):
        return none(math.inf, "gradient descent without noise")
