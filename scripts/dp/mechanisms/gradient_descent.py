"""Differentially private full-batch gradient descent, from zero or from publicly trained weights."""

import math

import numpy as np

from dp import gradient_descent
from dp.accounting import (
    REPLACE_ONE,
    Guarantee,
    classical_gaussian_sigma,
    gaussian_epsilon,
    gaussian_sigma,
    none,
)
from dp.data import check_rows
from dp.evaluation import error_rate
from dp.mechanisms import (
    Mechanism,
    Release,
    check_choice,
    check_delta,
    check_positive,
    check_whole,
    register,
)

NOISES = ("analytic", "published")


class _Descent(Mechanism):
    needs_lambda = False
    uses_public_rows = True
    multiclass = True  # with the softmax loss
    reports = ("train_error",)

    def _check_all(self, n, d, epsilon, lam, bound, classes, loss, iterations, rate, public):
        self._check(epsilon, lam, n, d, bound)
        if lam is not None and not 0 <= lam < math.inf:
            raise ValueError(f"{self.name} needs a finite lambda >= 0, or none, not {lam}")
        check_choice("loss", loss, gradient_descent.LOSSES)
        if classes is not None:
            check_whole("classes", classes, least=2)
            if loss == "logistic":
                raise ValueError(
                    f"logistic loss is for labels in {{-1, 1}}, not {classes} classes: use softmax"
                )
        check_whole("iterations", iterations)
        check_positive("learning_rate", rate)
        check_whole("public_iterations", public)

    def _start(self, public, bound, settings, iterations):
        """Weights that gradient descent without privacy finds on the public rows."""
        if public is None or len(public[0]) == 0:
            raise ValueError(
                "pretrain needs public rows, and the data set has none: give it some, or set "
                "pretrain to false"
            )
        check_rows(
            *public, bound, gradient_descent.classes_of(settings["loss"], settings["classes"])
        )
        weights, _ = gradient_descent.descend(*public, **settings | {"iterations": iterations})
        return weights[0]

    def _noise(self, n, epsilon, delta, options):
        """What `dp.gradient_descent.descend` is given for privacy: clip and sigma."""
        return {}

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
        classes=None,
        public=None,
        initial=None,
        **options,
    ):
        """public: (X, y) of public rows. initial: weights that no private row has touched, (d,) or
        (d, classes), in place of pre-training. options: as `guarantee`. info["loss"]: mean training
        loss of every iterate, and info["train_error"]: diagnostics that no guarantee covers.
        """
        n, d = np.shape(X)
        given = {"epsilon": epsilon, "delta": delta, "lam": lam, "bound": bound}
        self.guarantee(n, d, classes=classes, **given, **options)
        options = self.options() | options
        check_rows(X, y, bound, gradient_descent.classes_of(options["loss"], classes))
        settings = {
            "loss": options["loss"],
            "classes": classes,
            "lam": lam or 0.0,
            "learning_rate": options["learning_rate"],
        }
        noise = self._noise(n, epsilon, delta, options)
        if initial is None and options["pretrain"]:
            initial = self._start(public, bound, settings, options["public_iterations"])
        descents = restarts if noise else 1  # without noise they are all the same
        weights, trace = gradient_descent.descend(
            X,
            y,
            iterations=options["iterations"],
            restarts=descents,
            rng=rng,
            initial=initial,
            **noise,
            **settings,
        )
        info = {"loss": trace, "train_error": error_rate(weights, X, y)}
        same = restarts // descents
        return Release(
            np.repeat(weights, same, axis=0),
            np.full(restarts, "ok"),
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

    loss: "logistic" (labels in {-1, 1}) or "softmax" (labels 0, 1, ..; `classes` of the data).
    pretrain: start from `public_iterations` steps of gradient descent, without noise or clipping,
    on the data set's public rows: a function of public data costs nothing.
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
        classes=None,
        loss="logistic",
        noise="analytic",
        clip=1.0,
        iterations=100,
        learning_rate=1.0,
        pretrain=False,
        public_iterations=1000,
    ):
        """(epsilon, delta)-DP for all iterates together."""
        self._check_all(
            n, d, epsilon, lam, bound, classes, loss, iterations, learning_rate, public_iterations
        )
        sigma = self.sigma(n, epsilon, delta, noise, clip, iterations)
        mu = math.sqrt(iterations) * 2 * clip / (n * sigma)
        proven = epsilon if noise == "analytic" else gaussian_epsilon(1 / mu, delta)
        reason = (
            f"{iterations} Gaussian steps of sensitivity 2C/n = {2 * clip / n:.6g} and standard "
            f"deviation {sigma:.6g} compose to Gaussian DP with mu = {mu:.6g}; {noise} noise"
        )
        if pretrain:
            reason += "; it starts from weights that public rows alone determine"
        return Guarantee(epsilon, proven, delta, REPLACE_ONE, reason)

    def sigma(self, n, epsilon, delta, noise, clip, iterations):
        """Standard deviation of the noise on every coordinate of the mean gradient."""
        check_choice("noise", noise, NOISES)
        check_positive("clip", clip)
        check_whole("iterations", iterations)
        check_delta(self.name, delta)
        calibrate = gaussian_sigma if noise == "analytic" else classical_gaussian_sigma
        return calibrate(epsilon, delta, math.sqrt(iterations) * 2 * clip / n)

    def _noise(self, n, epsilon, delta, options):
        clip, iterations = options["clip"], options["iterations"]
        sigma = self.sigma(n, epsilon, delta, options["noise"], clip, iterations)
        return {"clip": clip, "sigma": sigma}


@register("gradient_descent")
class GradientDescent(_Descent):
    """Without privacy: the same steps without clipping and noise."""

    private = False

    def guarantee(
        self,
        n,
        d,
        *,
        epsilon=np.inf,
        delta=0.0,
        lam=None,
        bound=1.0,
        classes=None,
        loss="logistic",
        iterations=100,
        learning_rate=1.0,
        pretrain=False,
        public_iterations=1000,
    ):
        """None: gradient descent without noise is a function of the data."""
        self._check_all(
            n, d, epsilon, lam, bound, classes, loss, iterations, learning_rate, public_iterations
        )
        return none(np.inf, "gradient descent without noise")

    def release(self, X, y, *, epsilon=np.inf, rng=None, **arguments):
        """The same weights `restarts` times; otherwise as `dp_gd`."""
        return super().release(X, y, epsilon=epsilon, rng=rng, **arguments)
