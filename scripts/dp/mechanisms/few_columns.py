"""Sparse logistic regression: descents that choose few of many columns privately.

Noise on all d coordinates of a gradient has norm of order sqrt(d). Choosing the largest coordinates
with noise costs only a factor of log(d). A choice's noise is proportional to the public bound on
|x_j|.
"""

import math

import numpy as np

from dp import losses
from dp.mechanisms import Mechanism, register
from dp.noise import gaussian
from dp.options import Between, Choice, Optional, Ordinary, Whole
from dp.proofs import noisy_top
from dp_privacy.accounting import REPLACE_ONE
from dp_privacy.profiles import approximate
from dp_privacy.sensitivities import vector_sum

LOGISTIC = losses.get("logistic")


class FewColumns(Mechanism):
    """Base class, which bounds the sensitivity of gradients.

    The gradient of the mean loss has coordinates g_j = mean of l'(y w.x) y x_j. Let B bound every
    |x_j| (the data's `coordinate_bound`, or R if smaller), and let slopes be clipped to |l'| <= k.
    Replacing a record moves every g_j by at most D = 2 k B/n, and any m of the g_j together by at
    most 2 k min(sqrt(m) B, R)/n in L2.

    k is the smaller of `clip` and 1/(1 + e^-z) with z = min(B |w|_1, R |w|_2). No slope exceeds
    1/(1 + e^-z), because |w.x| <= z. Earlier releases determine w, so k may depend on w. At w = 0,
    k is at most 1/2.

    A weight that becomes infinite or NaN stays so. Whether this happens depends only on noisy
    values and public numbers, so it costs no privacy.

    info["scale"]: the noise's scale divided by the sensitivity.
    """

    delta = "needed"
    least_delta = 1e-14
    needs_lambda = False
    facts = ("coordinate_bound",)
    options = {"clip": Between(0.5, low=1e-50, high=1), "iterations": Optional(Whole())}

    def _check_together(self, n, d, p):
        self._check_delta(p.delta, self.smallest_delta(n, d, p))

    def smallest_delta(self, n: int, d: int, p: object) -> float:
        """A hundred times the probability that any noise falls where NumPy's has no tail.

        NumPy's Gumbel noise lacks a tail of probability 2^-53, and a choice compares up to 2 d values.
        """
        return max(self.least_delta, 100 * 2 * d * self._steps(n, d, p) * 2.0**-53)

    def _rho(self, p):
        return noisy_top.rho(p.epsilon, p.delta)

    def _bound(self, p):
        return min(p.coordinate_bound or math.inf, p.bound)

    def _largest_slope(self, W, p):
        """The slope bound k (draws,) at weights W (draws, d)."""
        reach = np.minimum(
            self._bound(p) * np.abs(W).sum(axis=1), p.bound * np.linalg.norm(W, axis=1)
        )
        return np.minimum(p.clip, 1 / (1 + np.exp(-reach)))

    def _gradient(self, X, y, W, scores, p):
        """g (draws, d) and D (draws,) at weights W with scores (n, draws)."""
        y, most = y[:, None], self._largest_slope(W, p)
        # Clipping also guards against rounding in the scores.
        slopes = np.maximum(LOGISTIC.slope(y * scores), -most) * y
        return (X.T @ slopes).T / len(X), vector_sum(most, REPLACE_ONE) * self._bound(p) / len(X)


def _choices(n, d, rho):
    """The number of choices, from 1 to 30, that are together rho-zCDP and detect a correlation of 1/8.

    At w = 0, a column of values -B and B whose correlation with the labels is c has |g_j| = c B/2 =
    D n c/2. A choice at rate a/D adds Gumbel noise to |g_j| a/D = a n c/2. The largest of 2
    d noise draws is about log(2 d). T choices have a = sqrt(2 rho/T), so a n c/2 = log(2 d) at T =
    rho (n c/log(2 d))^2/2.
    """
    return min(30.0, max(1.0, rho * (n / (8 * math.log(2 * d))) ** 2 / 2))


@register("frank_wolfe")
class FrankWolfe(FewColumns):
    """T steps towards noisily chosen vertices of the ball |w|_1 <= L (Talwar, Thakurta, Zhang, NIPS 2015).

    The vertices are L e_j and -L e_j. Each step chooses the largest of the 2 d values -g_j and g_j
    with Gumbel noise at the rate a = sqrt(2 rho/T)/D. A record moves each value by at most D, so T
    choices are rho-zCDP (`dp.proofs.noisy_top`), with the largest rho for (epsilon, delta)-DP. If
    epsilon/(2 T D) exceeds a, the rate is epsilon/(2 T D), and each choice is (epsilon/T, 0)-DP. All
    else is post-processing. Talwar et al. add Laplace instead of Gumbel noise.

    step: "constant" goes 1/T of the way to the vertex, "published" 2/(t + 2) in step t = 0, 1, ..,
    so the first step ends at a vertex.
    radius: L B, the maximum absolute score.
    iterations: by default rho (n/(8 log(2 d)))^2/2, from 1 to 30 (`_choices`).
    """

    options = FewColumns.options | {
        "radius": Ordinary(5.0),
        "step": Choice("constant", "published"),
    }

    def _steps(self, n, d, p):
        return p.iterations or round(_choices(n, d, self._rho(p)))

    def _rates(self, p, steps):
        """A choice's rate times D, by zCDP and by basic composition. Either gives (epsilon, delta)-DP."""
        return noisy_top.choice_rate(self._rho(p), steps, 1.0), p.epsilon / (2 * steps)

    def _guarantee(self, n, d, p):
        rho, steps = self._rho(p), self._steps(n, d, p)
        concentrated, pure = self._rates(p, steps)
        rate = max(concentrated, pure)
        together = f"{rho:.6g}-zCDP" if concentrated > pure else f"({p.epsilon:.6g}, 0)-DP"
        return p.proven(
            f"{steps} choices among {2 * d} vertices, by Gumbel noise of {1 / rate:.6g} times the "
            f"sensitivity and so of bounded range {2 * rate:.6g}, are together {together}",
            profile=noisy_top.Concentrated(rho) if concentrated > pure else approximate(p.epsilon),
        )

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        W, scores, draw = np.zeros((draws, d)), np.zeros((n, draws)), np.arange(draws)
        length, y, steps = (
            p.radius / self._bound(p),
            np.asarray(y, dtype=float),
            self._steps(n, d, p),
        )
        for t in range(steps):
            gradient, moved = self._gradient(X, y, W, scores, p)
            rate = max(self._rates(p, steps)) / moved
            vertices = np.concatenate([-gradient, gradient], axis=1)
            chosen = noisy_top.noisy_top(vertices, 1, rate, rng)[:, 0]
            column, end = chosen % d, length * np.where(chosen < d, 1.0, -1.0)
            share = 1 / steps if p.step == "constant" else 2 / (t + 2)
            W *= 1 - share
            W[draw, column] += share * end
            scores = (1 - share) * scores + share * end * X[:, column]
        return W, {"scale": float(np.max(1 / (rate * moved)))}


class NoisyValues(FewColumns):
    """Base class of descents that also release noisy values for the chosen columns.

    share: the values' share of rho. The choices get 1 - share.
    learning_rate: in units of 1/B^2. The mean loss has a curvature of at most B^2/4 along a column,
    so a step at a rate of 4 is at most as long as Newton's.
    """

    options = FewColumns.options | {
        "share": Between(0.2, low=0, high=1),
        "learning_rate": Ordinary(4.0),
    }

    def _costs(self, p):
        """rho of all choices, and rho of all values."""
        rho = self._rho(p)
        return (1 - p.share) * rho, p.share * rho

    def _rate(self, p):
        return p.learning_rate / self._bound(p) ** 2

    def _stated(self, p, steps, count):
        choosing, values = self._costs(p)
        reach = 2 * noisy_top.choice_rate(choosing, count * steps, 1.0)
        scale = noisy_top.gaussian_scale(values / steps, 1.0)
        columns = "one coordinate" if count == 1 else f"{count} weights"
        return p.proven(
            f"{count * steps} choices of a column, each of bounded range {reach:.6g}, are together "
            f"{choosing:.6g}-zCDP, and {steps} times Gaussian noise of {scale:.6g} times the "
            f"sensitivity on {columns} are {values:.6g}-zCDP",
            profile=noisy_top.Concentrated(self._rho(p)),
        )


@register("coordinate_descent")
class CoordinateDescent(NoisyValues):
    """T steps, each along the column with the largest gradient, chosen with noise.

    This is greedy coordinate descent (Mangold, Bellet, Salmon, Tommasi, AISTATS 2023, with Laplace
    noise). Gumbel noise on all |g_j| chooses j. The step subtracts the learning rate times g_j,
    with Gaussian noise, from w_j. The T choices cost rho (1 - share), and the T values rho share
    (`dp.proofs.noisy_top`).

    iterations: T, by default `_choices` at rho (1 - share).
    """

    def _steps(self, n, d, p):
        return p.iterations or round(_choices(n, d, self._costs(p)[0]))

    def _guarantee(self, n, d, p):
        return self._stated(p, self._steps(n, d, p), 1)

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        W, scores, draw = np.zeros((draws, d)), np.zeros((n, draws)), np.arange(draws)
        choosing, values = self._costs(p)
        y, steps = np.asarray(y, dtype=float), self._steps(n, d, p)
        for _ in range(steps):
            gradient, moved = self._gradient(X, y, W, scores, p)
            rate = noisy_top.choice_rate(choosing, steps, moved)
            column = noisy_top.noisy_top(np.abs(gradient), 1, rate, rng)[:, 0]
            scale = noisy_top.gaussian_scale(values / steps, moved)
            noisy = gradient[draw, column] + scale * gaussian(1, 1.0, draws, rng)[:, 0]
            change = -self._rate(p) * np.asarray(noisy)
            W[draw, column] += change
            scores = scores + change * X[:, column]
        return W, {"scale": float(np.max(scale / moved))}


@register("iterative_thresholding")
class IterativeThresholding(NoisyValues):
    """T gradient steps, each of which keeps only the `columns` largest weights, chosen with noise.

    This is peeling (Cai, Wang, Zhang, Annals of Statistics 49, 2021, with Laplace noise). The k
    largest weights are chosen with Gumbel noise and get Gaussian noise; the others become zero.
    Before noise, a step from released weights w leads to v = w - e g, with learning rate e. A
    record moves every |v_j| by at most e D, and any k of the v_j together by at most 2 e k'
    min(sqrt(k) B, R)/n in L2, where k' is the maximum slope. The k T choices cost rho (1 - share),
    and the T noisy vectors rho share (`dp.proofs.noisy_top`).

    columns: k, the maximum number of nonzero weights.
    iterations: T, by default `_choices` at rho (1 - share), divided by k and rounded down, at least 1.
    """

    options = NoisyValues.options | {"columns": Whole(10)}

    def _steps(self, n, d, p):
        choices = _choices(n, d, self._costs(p)[0])
        return p.iterations or max(1, int(choices / min(p.columns, d)))

    def _guarantee(self, n, d, p):
        return self._stated(p, self._steps(n, d, p), min(p.columns, d))

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        count, bound = min(p.columns, d), self._bound(p)
        # The maximum L2 change of `count` weights, divided by the maximum change of one weight.
        together = min(math.sqrt(count), p.bound / bound)
        W, scores, draw = np.zeros((draws, d)), np.zeros((n, draws)), np.arange(draws)[:, None]
        choosing, values = self._costs(p)
        y, steps = np.asarray(y, dtype=float), self._steps(n, d, p)
        for _ in range(steps):
            gradient, moved = self._gradient(X, y, W, scores, p)
            V, moved = W - self._rate(p) * gradient, self._rate(p) * moved
            rate = noisy_top.choice_rate(choosing, count * steps, moved)
            columns = noisy_top.noisy_top(np.abs(V), count, rate, rng)
            scale = noisy_top.gaussian_scale(values / steps, together * moved)
            noisy = np.asarray(V[draw, columns] + scale[:, None] * gaussian(count, 1.0, draws, rng))
            W = np.zeros((draws, d))
            W[draw, columns] = noisy
            scores = np.einsum("nrk,rk->nr", X[:, columns], noisy)
        return W, {"scale": float(np.max(scale / (together * moved)))}
