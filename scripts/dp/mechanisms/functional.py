"""The functional mechanism: noise on the coefficients of a polynomial objective, then its minimiser.

Zhang, Zhang, Xiao, Yang, Winslett, PVLDB 5 (2012). A record's objective is a polynomial of degree 2,
beta-part linear and alpha-part quadratic,

    -beta y x.w + alpha (x.w)^2        squared loss: alpha = 1, beta = 2
                                       logistic loss, truncated Taylor series: alpha = 1/8, beta = 1/2

(its constant is y^2 or log 2, the same for all labels in {-1, 1}, and is not released). The sum over
records has one coefficient per distinct monomial; each gets one draw of noise.

Two records x, x' with M = xx' - x'x'' (the difference of their outer products) and L = yx - y'x'
change the coefficients by alpha sum_jk |M_jk| + beta ||L||_1 in L1, whatever signs: w_j w_k, j < k,
has coefficient 2 alpha x_j x_k, which is the two entries of M.
"""

import math

import numpy as np

from dp import quadratics
from dp.accounting import (
    REPLACE_ONE,
    Guarantee,
    classical_gaussian_sigma,
    gaussian_epsilon,
    gaussian_sigma,
    none,
)
from dp.data import check_coordinates, check_rows
from dp.mechanisms import (
    Mechanism,
    Release,
    check_choice,
    check_delta,
    check_no_delta,
    check_positive,
    check_whole,
    register,
)
from dp.noise import gaussian, laplace

# loss: (alpha, beta, how often the mean loss of dp.losses goes into the polynomial's mean)
POLYNOMIALS = {"squared": (1.0, 2.0, 2.0), "logistic": (0.125, 0.5, 1.0)}
SENSITIVITIES = ("published", "coordinate", "l2")
CALIBRATIONS = ("analytic", "classical")
SOLVERS = ("exact", "adam")


def bounds(d, bound, coordinate_bound=None):
    """(R, B): the smallest public bounds on ||x||_2 and on |x_j| that follow from the given ones."""
    coordinate_bound = bound if coordinate_bound is None else coordinate_bound
    check_positive("coordinate_bound", coordinate_bound)
    return min(bound, math.sqrt(d) * coordinate_bound), min(bound, coordinate_bound)


def published_sensitivity(d, coordinate_bound=1.0, loss="squared"):
    """The L1 sensitivity that the sources use, for |x_j| <= B, |y| <= 1; valid, not tight.

    Squared loss: 2 (1 + dB)^2, twice the largest L1 norm of a record's coefficients. Logistic loss:
    (dB)^2/4 + 3dB (Zhang et al., section 5.2; there labels are 0 and 1).
    """
    s = d * coordinate_bound
    return 2 * (1 + s) ** 2 if loss == "squared" else s * s / 4 + 3 * s


def coordinate_sensitivity(d, coordinate_bound=1.0, loss="squared"):
    """The exact L1 sensitivity under replace-one for |x_j| <= B and labels in {-1, 1}.

    With p = x + x', q = x - x': M = (pq' + qp')/2, so sum |M_jk| <= PQ, P = ||p||_1, Q = ||q||_1, and
    L is +-q for equal labels, +-p for different ones. |p_j| + |q_j| <= 2B, so P + Q <= 2S, S = dB.
    The supremum of alpha PQ + beta max(P, Q) is at max = S + t, t = beta/(2 alpha), where it is
    alpha (S + t)^2 (for t <= S; otherwise at max = 2S, 2 beta S). It is reached: x' = (B, .., B),
    y' = 1, y = -1 and x = (tB/S, .., tB/S). Squared loss: (1 + dB)^2, half of the published one.
    """
    alpha, beta, _ = POLYNOMIALS[loss]
    s, t = d * coordinate_bound, beta / (2 * alpha)
    return alpha * (s + t) ** 2 if t <= s else 2 * beta * s


def l2_sensitivity(d, bound=1.0, loss="squared"):
    """An L1 sensitivity under replace-one for ||x||_2 <= R and labels in {-1, 1}.

    By Cauchy-Schwarz sum |M_jk| <= d ||M||_F and ||L||_1 <= sqrt(d) ||L||_2. With r, s the norms of
    x, x' and k = -y y' x.x': ||M||_F^2 = r^4 + s^4 - 2 k^2 and ||L||_2^2 = r^2 + s^2 + 2 k. For fixed
    k both grow with r and s, so r = s = R, and k = R^2 cos 2u, 0 <= u <= pi/4, gives
    cos u (a sin u + b) with a = 2 sqrt(2) alpha d R^2 and b = 2 beta sqrt(d) R; its maximum over
    s = sin u solves 2 a s^2 + b s - a = 0. Never more than 2 (1 + sqrt(d) R)^2 for squared loss.
    """
    alpha, beta, _ = POLYNOMIALS[loss]
    a, b = 2 * math.sqrt(2) * alpha * d * bound**2, 2 * beta * math.sqrt(d) * bound
    s = (math.sqrt(b * b + 8 * a * a) - b) / (4 * a)
    return math.sqrt(1 - s * s) * (a * s + b)


def gaussian_sensitivity(bound=1.0, loss="squared"):
    """L2 sensitivity of the coefficients under replace-one for ||x||_2 <= R, labels in {-1, 1}.

    Distinct monomials: alpha^2 (2 ||M||_F^2 - sum M_jj^2) + beta^2 ||L||_2^2, at most (k as in
    `l2_sensitivity`, r = s = R) 4 alpha^2 (R^4 - k^2) + 2 beta^2 (R^2 + k), whose maximum is at
    k = t^2, t = beta/(2 alpha): 2 alpha (R^2 + t^2); for t > R at k = R^2: 2 beta R. Coordinates in
    [-B, B] have R = sqrt(d) B: squared loss 2 (d + 1) for B = 1.
    """
    alpha, beta, _ = POLYNOMIALS[loss]
    t = beta / (2 * alpha)
    return 2 * alpha * (bound**2 + t * t) if t <= bound else 2 * beta * bound


class _Functional(Mechanism):
    """Noise of a subclass on the coefficients, then the minimiser of the noisy polynomial."""

    needs_lambda = False
    loss = "squared"

    def _check_all(self, n, d, epsilon, lam, bound, solver, repair, epochs, batch_size, rate):
        self._check(epsilon, lam, n, d, bound)
        if lam is not None and not 0 <= lam < math.inf:
            raise ValueError(f"{self.name} needs a finite lambda >= 0, or none, not {lam}")
        check_choice("solver", solver, SOLVERS)
        check_choice("repair", repair, quadratics.REPAIRS)
        check_whole("epochs", epochs)
        check_whole("batch_size", batch_size)
        check_positive("learning_rate", rate)

    def _noise(self, d, epsilon, delta, bound, coordinate_bound, options, restarts, rng):
        """(noise (restarts, coefficients), linear ones first; its scale; its standard deviation).

        Scale and deviation are of one coefficient and public.
        """
        raise NotImplementedError

    def release(self, X, y, *, epsilon, delta=0.0, lam=None, restarts=1, rng, bound=1.0, **options):
        """options: as `guarantee`. Rows beyond `bound`, or beyond a given `coordinate_bound`, raise."""
        n, d = np.shape(X)
        self.guarantee(n, d, epsilon=epsilon, delta=delta, lam=lam, bound=bound, **options)
        coordinate_bound = options.get("coordinate_bound")
        # A mechanism without the option has no noise, and of many minimisers takes the shortest.
        options = {"repair": "trim"} | self.options() | options
        X = _checked(X, y, bound, coordinate_bound)
        noise, scale, deviation = self._noise(
            d, epsilon, delta, bound, coordinate_bound, options, restarts, rng
        )
        alpha, beta, times = POLYNOMIALS[self.loss]
        gram, moment = quadratics.moments(X, y)
        Q, c = quadratics.unpack(noise, d)
        # w'Qw + c.w as w'Aw/2 - b.w
        A = 2 * (alpha * gram + Q) + times * n * (lam or 0.0) * np.eye(d)
        b = beta * moment - c
        if options["solver"] == "adam":
            steps = options["epochs"] * math.ceil(n / options["batch_size"])
            _, unbounded = quadratics.solve(A, b, repair="none")
            weights = quadratics.adam(A, b, steps, options["learning_rate"])
        else:
            weights, unbounded = quadratics.solve(A, b, 2 * deviation, options["repair"])
        failed = ~np.isfinite(weights).all(axis=1)
        return Release(
            np.where(failed[:, None], 0.0, weights),
            np.where(failed, "unbounded", "ok"),
            {"unbounded": unbounded, "scale": scale},
        )


def _checked(X, y, bound, coordinate_bound):
    check_rows(X, y, bound)
    if coordinate_bound is not None:
        check_coordinates(X, coordinate_bound)
    return np.asarray(X, dtype=float)


class _Laplace(_Functional):
    """Laplace noise of scale sensitivity/epsilon on every coefficient."""

    def _sensitivities(self, d, bound, coordinate_bound):
        R, B = bounds(d, bound, coordinate_bound)
        return {
            "published": published_sensitivity(d, B, self.loss),
            "coordinate": coordinate_sensitivity(d, B, self.loss),
            "l2": l2_sensitivity(d, R, self.loss),
        }

    def _laplace_scale(self, d, epsilon, bound, coordinate_bound, sensitivity):
        check_choice("sensitivity", sensitivity, SENSITIVITIES)
        return self._sensitivities(d, bound, coordinate_bound)[sensitivity] / epsilon

    def _laplace_guarantee(self, d, epsilon, bound, coordinate_bound, sensitivity):
        scale = self._laplace_scale(d, epsilon, bound, coordinate_bound, sensitivity)
        known = self._sensitivities(d, bound, coordinate_bound)
        least = min(known["coordinate"], known["l2"])
        # Stated at what the noise was asked for, though a sensitivity that is not tight gives more.
        reason = (
            f"Laplace noise of scale {scale:.6g} on every coefficient ({sensitivity} sensitivity: "
            f"{known[sensitivity]:.6g}); the tight sensitivity is at most {least:.6g}, which makes it "
            f"{least / scale:.6g}-DP; what follows is post-processing"
        )
        return Guarantee(epsilon, epsilon, 0.0, REPLACE_ONE, reason)

    def _noise(self, d, epsilon, delta, bound, coordinate_bound, options, restarts, rng):
        scale = self._laplace_scale(d, epsilon, bound, coordinate_bound, options["sensitivity"])
        noise = laplace(quadratics.coefficients(d), scale, restarts, rng)
        return noise, scale, math.sqrt(2) * scale


@register("functional_laplace")
class FunctionalLaplace(_Laplace):
    """Linear regression by the functional mechanism with Laplace noise.

    sensitivity: "published" 2 (d+1)^2, "coordinate" (exact for |x_j| <= B), "l2" (for ||x||_2 <= R).
    solver: "exact", with `repair` as in `dp.quadratics.solve`; "adam": `epochs` x ceil(n/batch_size)
    steps of Adam on the noisy polynomial from zero, which may stop far from its minimum.
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
        coordinate_bound=None,
        sensitivity="published",
        solver="exact",
        repair="ridge",
        epochs=10,
        batch_size=64,
        learning_rate=0.001,
    ):
        """epsilon-DP; the reason states the smaller epsilon that a sensitivity that is not tight gives."""
        self._check_all(
            n, d, epsilon, lam, bound, solver, repair, epochs, batch_size, learning_rate
        )
        check_no_delta(self.name, delta)
        return self._laplace_guarantee(d, epsilon, bound, coordinate_bound, sensitivity)


@register("functional_gaussian")
class FunctionalGaussian(_Functional):
    """Linear regression by the functional mechanism with Gaussian noise on every coefficient.

    calibration: "analytic" (exact), or "classical" as in Dwork and Roth's appendix A, whose true
    epsilon the guarantee states. Solver and repair as `functional_laplace`.
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
        coordinate_bound=None,
        calibration="analytic",
        solver="exact",
        repair="ridge",
        epochs=10,
        batch_size=64,
        learning_rate=0.001,
    ):
        """(epsilon, delta)-DP with the analytic calibration; the classical one's epsilon is computed."""
        self._check_all(
            n, d, epsilon, lam, bound, solver, repair, epochs, batch_size, learning_rate
        )
        sigma, sensitivity = self._sigma(d, epsilon, delta, bound, coordinate_bound, calibration)
        return gaussian_guarantee(
            epsilon, delta, sigma, sensitivity, calibration, "coefficient vector"
        )

    def _sigma(self, d, epsilon, delta, bound, coordinate_bound, calibration):
        R, _ = bounds(d, bound, coordinate_bound)
        sensitivity = gaussian_sensitivity(R, self.loss)
        return calibrated_sigma(self.name, epsilon, delta, sensitivity, calibration), sensitivity

    def _noise(self, d, epsilon, delta, bound, coordinate_bound, options, restarts, rng):
        calibration = options["calibration"]
        sigma, _ = self._sigma(d, epsilon, delta, bound, coordinate_bound, calibration)
        return gaussian(quadratics.coefficients(d), sigma, restarts, rng), sigma, sigma


@register("functional_logistic")
class FunctionalLogistic(_Laplace):
    """Logistic regression by the functional mechanism: the loss' Taylor series of degree 2 at 0.

    Laplace noise at delta = 0, Gaussian noise (analytic calibration) at delta > 0. The truncated
    loss is z^2/8 - z/2: its noiseless minimiser (mechanism `truncated_logistic`) is not logistic
    regression, and the difference does not vanish with n.
    """

    loss = "logistic"

    def guarantee(
        self,
        n,
        d,
        *,
        epsilon,
        delta=0.0,
        lam=None,
        bound=1.0,
        coordinate_bound=None,
        sensitivity="published",
        solver="exact",
        repair="ridge",
        epochs=10,
        batch_size=64,
        learning_rate=0.001,
    ):
        """(epsilon, delta)-DP. `sensitivity` (of Laplace noise) as `functional_laplace`."""
        self._check_all(
            n, d, epsilon, lam, bound, solver, repair, epochs, batch_size, learning_rate
        )
        if delta == 0:
            return self._laplace_guarantee(d, epsilon, bound, coordinate_bound, sensitivity)
        check_choice("sensitivity", sensitivity, SENSITIVITIES)
        sigma, size = self._sigma(d, epsilon, delta, bound, coordinate_bound)
        return gaussian_guarantee(epsilon, delta, sigma, size, "analytic", "coefficient vector")

    def _sigma(self, d, epsilon, delta, bound, coordinate_bound):
        size = gaussian_sensitivity(bounds(d, bound, coordinate_bound)[0], self.loss)
        return calibrated_sigma(self.name, epsilon, delta, size, "analytic"), size

    def _noise(self, d, epsilon, delta, bound, coordinate_bound, options, restarts, rng):
        if delta == 0:
            return super()._noise(
                d, epsilon, delta, bound, coordinate_bound, options, restarts, rng
            )
        sigma, _ = self._sigma(d, epsilon, delta, bound, coordinate_bound)
        return gaussian(quadratics.coefficients(d), sigma, restarts, rng), sigma, sigma


@register("truncated_logistic")
class TruncatedLogistic(_Functional):
    """Without privacy: the minimiser of the truncated logistic loss, `functional_logistic`'s limit."""

    private = False
    loss = "logistic"

    def guarantee(
        self,
        n,
        d,
        *,
        epsilon=np.inf,
        delta=0.0,
        lam=None,
        bound=1.0,
        solver="exact",
        epochs=10,
        batch_size=64,
        learning_rate=0.001,
    ):
        """None: the exact minimiser is a function of the data."""
        self._check_all(
            n, d, epsilon, lam, bound, solver, "trim", epochs, batch_size, learning_rate
        )
        return none(np.inf, "the exact minimiser of the truncated loss is released")

    def _noise(self, d, epsilon, delta, bound, coordinate_bound, options, restarts, rng):
        return np.zeros((restarts, quadratics.coefficients(d))), 0.0, 0.0

    def release(self, X, y, *, epsilon=np.inf, rng=None, **arguments):
        """The minimiser, `restarts` times; of least norm where there are many."""
        return super().release(X, y, epsilon=epsilon, rng=rng, **arguments)


@register("noiseless_linear")
class NoiselessLinear(TruncatedLogistic):
    """Without privacy: linear regression itself, by the same solvers as the functional mechanism.

    With solver "adam" it is the source's own optimiser on the exact objective, which shows how far
    its few steps come without any noise.
    """

    loss = "squared"


def calibrated_sigma(name, epsilon, delta, sensitivity, calibration):
    """sigma of Gaussian noise by the named calibration, with the mechanism's name in messages."""
    check_choice("calibration", calibration, CALIBRATIONS)
    check_delta(name, delta)
    calibrate = gaussian_sigma if calibration == "analytic" else classical_gaussian_sigma
    return calibrate(epsilon, delta, sensitivity)


def gaussian_guarantee(epsilon, delta, sigma, sensitivity, calibration, what):
    """`Guarantee` of Gaussian noise on something whose L2 sensitivity is known."""
    reason = (
        f"Gaussian noise of standard deviation {sigma:.6g} on the {what}, whose L2 sensitivity is "
        f"at most {sensitivity:.6g}; {calibration} calibration"
    )
    if calibration == "analytic":
        return Guarantee(epsilon, epsilon, delta, REPLACE_ONE, reason)
    proven = gaussian_epsilon(sigma, delta, sensitivity)
    reason += f", proved for epsilon < 1: by the exact curve it gives {proven:.6g}"
    return Guarantee(epsilon, proven, delta, REPLACE_ONE, reason)
