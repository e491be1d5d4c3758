"""Objective perturbation: the minimiser of a randomly tilted objective (CM08 algorithm 2)."""

import math

import numpy as np

from dp import losses
from dp.accounting import REPLACE_ONE, Guarantee
from dp.data import check_rows
from dp.mechanisms import Mechanism, Release, check_tolerance, register
from dp.noise import l2_laplace
from dp.solvers import minimise

EXACT = (
    "conditional on exact minimisation (the certified gradient norm is reported, it proves nothing)"
)


def margin_loss(loss):
    """The loss, if it states the gradient bound kappa without which no noise can cover it."""
    margin = losses.get(loss)
    if not np.isfinite(margin.kappa):
        raise ValueError(
            f"the {margin.name} loss states no gradient bound kappa: no noise covers it"
        )
    return margin


def exact_epsilon(epsilon_b, n_lambda, bound=1.0, loss="logistic"):
    """Supremum of the privacy loss when b ~ Gamma(d, 2 kappa R / epsilon_b) tilts the objective.

    The tilt that makes w the minimiser is b(w) = -(n lam w + sum_i l'(y_i w.x_i) y_i x_i), and w has
    density proportional to exp(-epsilon_b ||b(w)|| / (2 kappa R)) |det db/dw|. Replacing (x, y) by
    (x', y') moves ||b|| by at most R(|l'| + |l'*|), l'* at the new record, and by the determinant of
    a rank-one update multiplies the Jacobian by at most 1 + l'' R^2 / (n lam), at least
    1 / (1 + l''* R^2 / (n lam)). The worst new record has |l'*| = kappa and l''* = 0, so the loss is
    at most sup over z of epsilon_b/2 (1 + |l'(z)|/kappa) + log(1 + l''(z) R^2 / (n lam)), which
    is reached in the limit for d >= 2 (for d = 1 it is an upper bound).

    Logistic loss: |l'| = s, l'' = s (1 - s), s in [0, 1]. Huber hinge: l'' = c wherever 0 < |l'| < 1,
    so the supremum is at |l'| = 1. Other losses: the same expression with sup l'' is an upper bound.
    """
    margin = margin_loss(loss)
    if margin.name != "logistic":
        return epsilon_b + math.log1p(margin.c * bound**2 / n_lambda)
    ratio = bound**2 / n_lambda

    def at(s):
        return epsilon_b / 2 * (1 + s) + math.log1p(s * (1 - s) * ratio)

    # Stationary points: epsilon_b/2 (1 + r s (1-s)) + r (1 - 2s) = 0, a quadratic in s, solved
    # without cancellation.
    a, b, c = -epsilon_b / 2 * ratio, (epsilon_b / 2 - 2) * ratio, epsilon_b / 2 + ratio
    q = -(b + math.copysign(math.sqrt(b * b - 4 * a * c), b)) / 2
    return max(at(s) for s in (0.0, 1.0, q / a, c / q) if 0 <= s <= 1)


def calibrate(epsilon, n, lam, bound=1.0, loss="logistic", calibration="cms11"):
    """(epsilon_b, ridge): the repaired calibration. b ~ Gamma(d, 2 kappa R / epsilon_b), and
    ridge/2 ||w||^2 is added to the objective. With c = R^2 sup l'':

    "cms11"       epsilon_b = epsilon - 2 log(1 + c/(n lam)); where that is <= 0, epsilon_b =
                  epsilon/2 and ridge = c / (n (e^(epsilon/4) - 1)) - lam (Chaudhuri, Monteleoni,
                  Sarwate, JMLR 12, 2011, algorithm 2 and theorem 9).
    "single_log"  one logarithm instead of two, and e^(epsilon/2): the Jacobians of neighbours differ
                  by two rank-one updates of a common matrix, of which only one raises the ratio.
    "supremum"    the largest epsilon_b whose `exact_epsilon` is epsilon; where log(1 + sup l'' ...)
                  alone exceeds epsilon/2, ridge first brings it down to epsilon/2.
    """
    c = margin_loss(loss).c * bound**2
    if calibration == "supremum":
        ridge = max(0.0, c / (n * math.expm1(epsilon / 2)) - lam)
        return _largest_below(epsilon, n * (lam + ridge), bound, loss), ridge
    if calibration not in ("cms11", "single_log"):
        raise ValueError(f"calibration is 'cms11', 'single_log' or 'supremum', not {calibration!r}")
    logs = 2 if calibration == "cms11" else 1
    epsilon_b = epsilon - logs * math.log1p(c / (n * lam))
    if epsilon_b > 0:
        return epsilon_b, 0.0
    return epsilon / 2, c / (n * math.expm1(epsilon / (2 * logs))) - lam


def _largest_below(epsilon, n_lambda, bound, loss):
    """Largest epsilon_b with exact_epsilon(epsilon_b) <= epsilon, by bisection (it increases)."""
    if exact_epsilon(epsilon, n_lambda, bound, loss) <= epsilon:
        return epsilon
    low, high = 0.0, epsilon
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if exact_epsilon(middle, n_lambda, bound, loss) <= epsilon:
            low = middle
        else:
            high = middle
    return low


class _Tilted(Mechanism):
    """argmin of mean loss + (lam + ridge)/2 ||w||^2 + b.w/n, for (epsilon_b, ridge) of a subclass."""

    fit = "l2"
    in_blocks = True

    def tilt(self, n, epsilon, lam, bound=1.0, loss="logistic", **options):
        """(epsilon_b, ridge): b ~ Gamma(d, 2 kappa R / epsilon_b), and a ridge added to lam."""
        raise NotImplementedError

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
        fit=None,
        loss="logistic",
        tolerance=1e-9,
        **options,
    ):
        """fit: (weights, info) of the non-private minimiser, a starting point that changes nothing.

        A restart whose minimiser is not certified to `tolerance` releases zeros, with its status.
        """
        n, d = np.shape(X)
        self._check(epsilon, lam, n, d, bound)
        self.check_options(options)
        check_tolerance(tolerance)
        check_rows(X, y, bound)
        epsilon_b, ridge = self.tilt(n, epsilon, lam, bound, loss, **options)
        scale = 2 * margin_loss(loss).kappa * bound / epsilon_b
        weights, info = minimise(
            X,
            y,
            lam + ridge,
            linear=l2_laplace(d, scale, restarts, rng),
            loss=loss,
            initial=None if fit is None else fit[0][0],
            tolerance=tolerance,
        )
        return Release(
            np.where((info["status"] == "ok")[:, None], weights, 0.0),
            info["status"],
            {"gradient_norm": info["gradient_norm"], "scale": scale, "ridge": ridge},
        )


@register("objective_perturbation")
class ObjectivePerturbation(_Tilted):
    """The repaired form (CMS11 algorithm 2), for any loss that states kappa and c."""

    def guarantee(
        self,
        n,
        d,
        *,
        epsilon,
        delta=0.0,
        lam=None,
        bound=1.0,
        loss="logistic",
        calibration="cms11",
        tolerance=1e-9,
    ):
        """epsilon-DP for the exact minimiser (CMS11 theorem 9)."""
        self._check(epsilon, lam, n, d, bound)
        check_tolerance(tolerance)
        epsilon_b, ridge = self.tilt(n, epsilon, lam, bound, loss, calibration=calibration)
        reason = (
            f"the Jacobian's share is taken from epsilon ({calibration}): noise for "
            f"{epsilon_b:.6g}, extra ridge {ridge:.6g}; {EXACT}"
        )
        return Guarantee(epsilon, epsilon, 0.0, REPLACE_ONE, reason)

    def tilt(self, n, epsilon, lam, bound=1.0, loss="logistic", calibration="cms11"):
        return calibrate(epsilon, n, lam, bound, loss, calibration)


@register("objective_perturbation_cm08")
class ObjectivePerturbationCM08(_Tilted):
    """As printed in CM08: b ~ Gamma(d, 2 kappa R / epsilon), no account of the Jacobian."""

    def guarantee(
        self,
        n,
        d,
        *,
        epsilon,
        delta=0.0,
        lam=None,
        bound=1.0,
        loss="logistic",
        tolerance=1e-9,
    ):
        """`exact_epsilon`, at least epsilon; equal to it for logistic loss where n lam epsilon >= 2 R^2."""
        self._check(epsilon, lam, n, d, bound)
        check_tolerance(tolerance)
        proven = max(epsilon, exact_epsilon(epsilon, n * lam, bound, loss))
        free = proven == epsilon
        here = "here it costs nothing" if free else f"with it the supremum is {proven:.6g}"
        if losses.get(loss).name == "logistic":
            at_least = ">=" if free else "<"
            here += (
                f", n lambda epsilon = {n * lam * epsilon:.6g} {at_least} 2 R^2 = {2 * bound**2:g}"
            )
        reason = f"the proof leaves out the Jacobian of b -> w; {here}; {EXACT}"
        return Guarantee(epsilon, proven, 0.0, REPLACE_ONE, reason)

    def tilt(self, n, epsilon, lam, bound=1.0, loss="logistic"):
        return epsilon, 0.0
