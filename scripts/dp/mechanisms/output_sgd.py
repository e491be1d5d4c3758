"""Output perturbation of stochastic gradient descent."""

import math

import numpy as np

from dp import losses
from dp.descents import stochastic
from dp.mechanisms import Mechanism, register
from dp.noise import gaussian
from dp.options import Optional, Ordinary, Whole
from dp_privacy.errors import Refused
from dp_privacy.profiles import Gaussian

TOGETHER = 1 << 20  # maximum number of floats in all draws' batches of one step: 8 MB


@register("output_sgd")
class OutputSGD(Mechanism):
    """SGD over permuted rows with a constant step, then Gaussian noise (Wu et al., SIGMOD 2017).

    Steps are w <- w - eta (lambda w + mean gradient of a batch) from 0, for logistic loss. A
    batch's objective is lambda-strongly convex and (c R^2 + lambda)-smooth with c = 1/4. So a step
    multiplies distances by at most rho = max(|1 - eta lambda|, |1 - eta (c R^2 + lambda)|). An eta
    with rho > 1 is refused. In each pass, neighbours differ in one batch of b rows, whose mean
    gradients differ by at most 2 kappa R/b. So after k passes of m batches, weights differ by at most

        2 eta kappa R/b (1 + rho^m + .. + rho^((k-1) m)),

    the value if the record is in the last batch of every pass, which is the worst case. The noise's
    standard deviation is this bound over mu.

    learning_rate: eta, by default 1/sqrt(n), as in the source, but at most 1/(c R^2 + lambda).
    """

    delta = "needed"
    needs_lambda = False
    options = {"epochs": Whole(10), "batch": Whole(50), "learning_rate": Optional(Ordinary())}

    def _step(self, n, p):
        smooth = losses.get("logistic").c * p.bound**2 + p.lam
        eta = p.learning_rate or min(1 / math.sqrt(n), 1 / smooth)
        return eta, max(abs(1 - eta * p.lam), abs(1 - eta * smooth))

    def _check_together(self, n, d, p):
        eta, rho = self._step(n, p)
        if rho > 1:
            raise Refused(
                f"output_sgd: a step of {eta:g} can drive two points apart: give a smaller "
                f"learning_rate, or rows a smaller bound"
            )

    def _sensitivity(self, n, p):
        eta, rho = self._step(n, p)
        batch = min(p.batch, n)
        m = -(-n // batch)
        passes = sum(rho ** (j * m) for j in range(p.epochs))
        return 2 * eta * losses.get("logistic").kappa * p.bound / batch * passes

    def _guarantee(self, n, d, p):
        """(epsilon, delta)-DP: mu-Gaussian DP, exactly (Dong, Roth, Su, JRSS B 84, 2022, theorem 2.7)."""
        moved = self._sensitivity(n, p)
        reason = (
            f"steps of {self._step(n, p)[0]:.6g} never drive two points apart, and {p.epochs} passes over "
            f"permuted rows meet a record in one batch each: the last weights move by at most {moved:.6g}; "
            f"noise of standard deviation {moved / p.mu:.6g} makes it Gaussian DP with mu = {p.mu:.6g}"
        )
        return p.proven(reason, profile=Gaussian(p.mu))

    def _release(self, X, y, p, draws, rng):
        (n, d), eta = X.shape, self._step(len(X), p)[0]
        rows, plan = (X * y[:, None])[None], stochastic.batch_plan(n, p.batch)
        together = max(1, TOGETHER // (min(p.batch, n) * d))
        parts = []
        for start in range(0, draws, together):
            runs = min(together, draws - start)
            orders = (
                (np.array([rng.permutation(n) for _ in range(runs)]), None) for _ in range(p.epochs)
            )
            w, _ = stochastic.descend(
                *(rows, np.zeros(runs, dtype=int), [p.lam], orders, plan),
                **{"clip": p.bound, "schedule": "constant", "rate": eta},
            )
            parts.append(w[:, 0])
        scale = self._sensitivity(n, p) / p.mu
        return np.concatenate(parts) + gaussian(d, scale, draws, rng), {"scale": scale}
