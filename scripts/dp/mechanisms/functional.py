"""The functional mechanism: the minimiser of a polynomial objective with noisy coefficients.

Zhang, Zhang, Xiao, Yang, Winslett, PVLDB 5 (2012). A record's objective is a polynomial of degree
2,

    -beta y x.w + alpha (x.w)^2        squared loss: alpha = 1, beta = 2
                                       logistic loss, truncated Taylor series: alpha = 1/8, beta = 1/2

without its constant, which does not affect the minimiser. Each coefficient of the sum over records
gets one noise draw.

Let (x, y) be replaced by (x', y'), M = x x^T - x' x'^T, and L = yx - y'x'. In L1, the coefficients
change by alpha sum_jk |M_jk| + beta ||L||_1: for j < k, the coefficient of w_j w_k is 2 alpha x_j
x_k, and M has two such entries. M and L are affine in y and in y'. So any norm of the change is
convex in y and in y', and largest where y and y' are -1 or 1. Hence for squared loss, the
sensitivities also hold for targets in [-1, 1].
"""

import math
from functools import partial

import numpy as np

from dp.mechanisms import Mechanism, Release, register
from dp.noise import gaussian, laplace
from dp.options import Choice, Positive, Whole
from dp.proofs import quadratics
from dp_privacy.accounting import classical_gaussian_sigma as classical_sigma
from dp_privacy.accounting import gaussian_epsilon, gaussian_sigma, none
from dp_privacy.errors import Refused
from dp_privacy.profiles import Gaussian

# For each loss: alpha, beta, and the ratio of the polynomial's mean to the mean loss of `dp.losses`.
POLYNOMIALS = {"squared": (1.0, 2.0, 2.0), "logistic": (0.125, 0.5, 1.0)}


def bounds(d: int, bound: float, coordinate_bound: float | None = None) -> tuple[float, float]:
    """(R, B), the smallest public bounds on ||x||_2 and on |x_j|."""
    coordinate_bound = bound if coordinate_bound is None else coordinate_bound
    return min(bound, math.sqrt(d) * coordinate_bound), min(bound, coordinate_bound)


def published_sensitivity(d: int, coordinate_bound: float = 1.0, loss: str = "squared") -> float:
    """The sources' L1 sensitivity for |x_j| <= B and |y| <= 1, which is valid but not tight.

    Squared loss: 2 (1 + dB)^2, twice the maximum L1 norm of a record's coefficients. Logistic loss:
    (dB)^2/4 + 3dB (Zhang et al., section 5.2, with labels 0 and 1).
    """
    s = d * coordinate_bound
    return 2 * (1 + s) ** 2 if loss == "squared" else s * s / 4 + 3 * s


def coordinate_sensitivity(d: int, coordinate_bound: float = 1.0, loss: str = "squared") -> float:
    """The exact L1 sensitivity under replace-one for |x_j| <= B and labels in {-1, 1}.

    With p = x + x' and q = x - x', M = (p q^T + q p^T)/2. So sum |M_jk| <= PQ with P = ||p||_1 and
    Q = ||q||_1. L is +-q for equal labels and +-p for different ones. Since |p_j| + |q_j| <= 2B, P
    + Q <= 2S with S = dB. Let t = beta/(2 alpha). If t <= S, the supremum of alpha PQ + beta max(P,
    Q) is alpha (S + t)^2, at max(P, Q) = S + t. Otherwise it is 2 beta S, at max(P, Q) = 2S. The
    supremum is attained at x' = (B, .., B), y' = 1, y = -1 and x = (tB/S, .., tB/S), with S in
    place of t if t > S. For squared loss, the supremum is (1 + dB)^2, half of the published
    sensitivity.
    """
    alpha, beta, _ = POLYNOMIALS[loss]
    s, t = d * coordinate_bound, beta / (2 * alpha)
    return alpha * (s + t) ** 2 if t <= s else 2 * beta * s


def l2_sensitivity(d: int, bound: float = 1.0, loss: str = "squared") -> float:
    """A bound on the L1 sensitivity under replace-one for ||x||_2 <= R and labels in {-1, 1}.

    By Cauchy-Schwarz, sum |M_jk| <= d ||M||_F and ||L||_1 <= sqrt(d) ||L||_2. Let r and r' be the
    norms of x and x', and k = -y y' x.x'. Then ||M||_F^2 = r^4 + r'^4 - 2 k^2 and ||L||_2^2 = r^2 +
    r'^2 + 2 k. For fixed k, both norms grow with r and r', so at worst r = r' = R. The worst k is
    at least 0, since ||M||_F depends on k^2 and ||L||_2 increases in k. With k = R^2 cos 2u, 0 <= u
    <= pi/4, the change is at most cos u (a sin u + b), where a = 2 sqrt(2) alpha d R^2 and b = 2
    beta sqrt(d) R. The maximum is at the s = sin u that solves 2 a s^2 + b s - a = 0. For squared
    loss, it is at most 2 (1 + sqrt(d) R)^2.
    """
    alpha, beta, _ = POLYNOMIALS[loss]
    a, b = 2 * math.sqrt(2) * alpha * d * bound**2, 2 * beta * math.sqrt(d) * bound
    s = (math.sqrt(b * b + 8 * a * a) - b) / (4 * a)
    return math.sqrt(1 - s * s) * (a * s + b)


def gaussian_sensitivity(bound: float = 1.0, loss: str = "squared") -> float:
    """L2 sensitivity of the coefficients under replace-one for ||x||_2 <= R, labels in {-1, 1}.

    The squared change of the distinct monomials' coefficients is alpha^2 (2 ||M||_F^2 - sum M_jj^2)
    + beta^2 ||L||_2^2. With k as in `l2_sensitivity` and both norms equal to R, it is at most 4
    alpha^2 (R^4 - k^2) + 2 beta^2 (R^2 + k). Let t = beta/(2 alpha). If t <= R, the maximum is at
    k = t^2, and the sensitivity is 2 alpha (R^2 + t^2). Otherwise it is at k = R^2, and the sensitivity is
    2 beta R. Coordinates in [-B, B] have R = sqrt(d) B. For squared loss and B = 1, the sensitivity is
    then 2 (d + 1).
    """
    alpha, beta, _ = POLYNOMIALS[loss]
    t = beta / (2 * alpha)
    return 2 * alpha * (bound**2 + t * t) if t <= bound else 2 * beta * bound


SENSITIVITY = {"sensitivity": Choice("published", "coordinate", "l2")}
SOLVER = {"solver": Choice("exact", "adam")}
ADAM = {"epochs": Whole(10), "batch_size": Whole(64), "learning_rate": Positive(0.001)}
NOISY_SOLVER = SOLVER | {"repair": Choice(*quadratics.REPAIRS)} | ADAM
OBJECTIVE = {"objective": Choice("sum", "mean")}
BATCHES = {"batches": Choice("all", "shuffled"), "noise": Choice("once", "per_batch")}


class _Functional(Mechanism):
    """Base class of functional mechanisms, with Gaussian noise if delta > 0, else Laplace."""

    needs_lambda = False
    facts = ("coordinate_bound",)
    fixed = {"calibration": "analytic", "batches": "all", "noise": "once", "objective": "sum"}
    loss = "squared"

    def _l1_sensitivities(self, d, p):
        R, B = bounds(d, p.bound, p.coordinate_bound)
        return {
            "published": published_sensitivity(d, B, self.loss),
            "coordinate": coordinate_sensitivity(d, B, self.loss),
            "l2": l2_sensitivity(d, R, self.loss),
        }

    def _scale(self, d, p):
        if not p.delta:
            size = self._l1_sensitivities(d, p)[p.sensitivity]
            return size / p.epsilon, size
        size = gaussian_sensitivity(bounds(d, p.bound, p.coordinate_bound)[0], self.loss)
        classical = p.calibration == "classical"
        covered = 1.0 if p.sensitivity == "one" else size
        return (classical_sigma if classical else gaussian_sigma)(p.epsilon, p.delta, covered), size

    def _guarantee(self, n, d, p):
        scale, size = self._scale(d, p)
        times, how = self._composed(p)
        if times is None:
            return none(p.epsilon, how)
        if not p.delta:
            known = self._l1_sensitivities(d, p)
            least = min(known["coordinate"], known["l2"])
            # The guarantee states the requested epsilon, although a loose sensitivity's noise gives
            # a smaller one.
            reason = (
                f"Laplace noise of scale {scale:.6g} on every coefficient ({p.sensitivity} sensitivity: "
                f"{size:.6g}); the tight sensitivity is at most {least:.6g}, which makes it "
                f"{least / scale:.6g}-DP; what follows is post-processing{how}"
            )
            return p.proven(reason, times * p.epsilon)
        reason = (
            f"Gaussian noise of standard deviation {scale:.6g} on the coefficient vector, whose L2 "
            f"sensitivity is at most {size:.6g}; {p.calibration} calibration"
        )
        unit = p.sensitivity == "one"
        reason += ", for a sensitivity of 1" * unit
        if p.calibration == "classical":
            reason += ", proved for epsilon < 1"
        elif times == 1 and not unit:
            return p.proven(reason, profile=Gaussian(size / scale))
        # `times` such releases are equivalent to one with 1/sqrt(times) of the noise (Dong, Roth, Su
        # 2022).
        proven = gaussian_epsilon(scale / math.sqrt(times), p.delta, size)
        reason = f"{reason}{how}: by the exact curve it gives {proven:.6g}"
        return p.proven(reason, proven, Gaussian(math.sqrt(times) * size / scale))

    def _noise(self, d, p, draws, rng):
        """Noise (draws, coefficients), linear ones first; its scale; and its standard deviation."""
        scale, _ = self._scale(d, p)
        law, deviation = (gaussian, scale) if p.delta else (laplace, math.sqrt(2) * scale)
        return law(quadratics.coefficients(d), scale, draws, rng), scale, deviation

    def _check_together(self, n, d, p):
        if p.batches != "all" and p.solver != "adam":
            raise Refused("batches are for the solver 'adam': leave them 'all'")
        if p.noise == "per_batch" and p.batches == "all":
            raise Refused("noise 'per_batch' needs batches: give batches as 'shuffled'")

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        noise, scale, deviation = self._noise(d, p, draws, rng)
        if p.batches == "shuffled":
            weights = self._in_batches(X, y, p, noise, rng)
            return Release(weights, np.full(draws, "ok"), {"scale": scale})
        alpha, beta, times = POLYNOMIALS[self.loss]
        gram, moment = quadratics.moments(X, y)
        Q, c = quadratics.unpack(noise * _times(p, n), d)
        # The objective is w'Aw/2 - b.w.
        A = 2 * (alpha * gram + Q) + times * n * p.lam * np.eye(d)
        b = beta * moment - c
        if p.solver == "adam":
            steps = p.epochs * math.ceil(n / p.batch_size)
            _, unbounded = quadratics.solve(A, b, repair="none")
            weights = quadratics.adam(A, b, steps, p.learning_rate)
        else:
            # Mechanisms without noise have no option `repair`. For them, "trim" gives the
            # minimum-norm minimiser.
            repair = p.repair if self.private else "trim"
            weights, unbounded = quadratics.solve(A, b, 2 * deviation * _times(p, n), repair)
        failed = ~np.isfinite(weights).all(axis=1)
        status = np.where(failed, "unbounded", "ok")
        return Release(weights, status, {"unbounded": unbounded, "scale": scale})

    def _in_batches(self, X, y, p, noise, rng):
        """Weights (draws, d) after a step of Adam on the noisy polynomial of every batch.

        All draws share an epoch's order of rows. `noise` (draws, coefficients) is used for all
        batches, or only for the first if each batch gets new noise.
        """
        n, d = X.shape
        alpha, beta, times = POLYNOMIALS[self.loss]

        def gradients():
            Q, c = quadratics.unpack(noise, d)
            for epoch in range(p.epochs):
                order = rng.permutation(n)
                for start in range(0, n, p.batch_size):
                    rows = order[start : start + p.batch_size]
                    if p.noise == "per_batch" and (epoch or start):
                        Q, c = quadratics.unpack(self._noise(d, p, len(noise), rng)[0], d)
                    gram, moment = quadratics.moments(X[rows], y[rows])
                    A = 2 * alpha * gram + times * len(rows) * p.lam * np.eye(d)
                    yield partial(gradient, A, beta * moment, _times(p, len(rows)), Q, c)

        # Products with A, which all draws share, and with Q are faster than forming A + 2 k Q.
        def gradient(A, b, k, Q, c, weights):
            return weights @ A - b + k * (2 * quadratics.times(Q, weights) + c)

        return quadratics.descend(gradients(), (len(noise), d), p.learning_rate)

    def _composed(self, p):
        """(number of releases that a record affects, None if no finite epsilon holds; the reason as text).

        With new noise for each of an epoch's disjoint batches, an epoch is one release (parallel
        composition), and epochs compose.
        """
        if p.batches == "all":
            return 1, ""
        if p.noise == "once":
            return None, "every batch has the same noise, so that differences of batches have none"
        return p.epochs, f"; new noise for each batch, {p.epochs} epochs compose"


def _times(p, n):
    """The factor on noise in the objective summed over n records."""
    return n if p.objective == "mean" else 1


@register("functional_laplace")
class FunctionalLaplace(_Functional):
    """Linear regression by the functional mechanism with Laplace noise.

    sensitivity: "published" 2 (d+1)^2, "coordinate" (exact for |x_j| <= B), or "l2" (for ||x||_2 <=
    R).
    solver: "exact", with `repair` as in `dp.proofs.quadratics.solve`, or "adam" with `epochs` x
    ceil(n/batch_size) steps from zero, which may end far from the minimum.
    batches: "all" uses all rows in each step, and "shuffled" uses one batch.
    noise: for shuffled batches, drawn "once" for all (nothing is proven) or "per_batch".
    objective: whether noise calibrated to the sum over records is added to this "sum" or to the
    "mean", for which 1/n of this noise would suffice.
    """

    numbers = True
    options = SENSITIVITY | NOISY_SOLVER | BATCHES | OBJECTIVE


@register("functional_gaussian")
class FunctionalGaussian(_Functional):
    """Linear regression by the functional mechanism with Gaussian noise on every coefficient.

    calibration: "analytic" (exact), or "classical" as in Dwork and Roth's appendix A.
    sensitivity: "l2" for the coefficients' sensitivity, or "one" to calibrate for a sensitivity of 1.
    The guarantee states the true epsilon. Other options are those of `functional_laplace`.
    """

    delta = "needed"
    numbers = True
    options = {
        **{"calibration": Choice("analytic", "classical"), "sensitivity": Choice("l2", "one")},
        **(NOISY_SOLVER | BATCHES | OBJECTIVE),
    }


@register("functional_logistic")
class FunctionalLogistic(_Functional):
    """Logistic regression by the functional mechanism with the loss' Taylor series of degree 2.

    The noise is Laplace at delta = 0 (`sensitivity` as for `functional_laplace`), and Gaussian
    (analytic calibration) at delta > 0. For any n, the minimiser of the truncated loss
    (`truncated_logistic`) differs from logistic regression's.
    """

    delta = "optional"
    loss = "logistic"
    options = SENSITIVITY | NOISY_SOLVER


@register("truncated_logistic")
class TruncatedLogistic(_Functional):
    """Without privacy: `functional_logistic`'s limit, the minimiser of the truncated loss."""

    private = False
    facts = ()
    loss = "logistic"
    options = SOLVER | ADAM

    def _guarantee(self, n, d, p):
        return "the exact minimiser of the truncated loss is released"

    def _noise(self, d, p, draws, rng):
        return np.zeros((draws, quadratics.coefficients(d))), 0.0, 0.0


@register("noiseless_linear")
class NoiselessLinear(TruncatedLogistic):
    """Without privacy: linear regression by the functional mechanism's solvers.

    The solver "adam" shows how far the source's optimiser gets without noise.
    """

    numbers = True
    loss = "squared"
    options = SOLVER | ADAM | BATCHES
