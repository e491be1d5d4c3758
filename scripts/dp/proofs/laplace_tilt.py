"""The privacy of a minimiser tilted by l2-Laplace noise, and calibrations of the tilt."""

import math

import numpy as np

from dp import losses
from dp_privacy import roots
from dp_privacy.errors import Refused


def margin_loss(loss: losses.Loss) -> losses.MarginLoss:
    """Return the loss, or raise `Refused` if it has no gradient bound kappa."""
    margin = losses.get(loss)
    if not np.isfinite(margin.kappa):
        raise Refused(f"the {margin.name} loss has no gradient bound kappa, so no noise covers it")
    return margin


def exact_epsilon(
    epsilon_b: float, n_lambda: float, bound: float = 1.0, loss: losses.Loss = "logistic"
) -> float:
    """Supremum of the privacy loss for a tilt b with ||b|| ~ Gamma(d, 2 kappa R / epsilon_b).

    The tilt that makes w the minimiser is b(w) = -(n lam w + sum_i l'(z_i) y_i x_i), z_i = y_i w.x_i. So w
    has a density proportional to exp(-epsilon_b ||b(w)|| / (2 kappa R)) |det db/dw|. Replacing a record
    changes ||b|| by at most R(|l'| + |l'*|), where * marks the new record. By rank-one updates, the ratio
    of the Jacobians is at most 1 + l'' R^2 / (n lam), and at least 1 / (1 + l''* R^2 / (n lam)). The worst
    new record has |l'*| = kappa and l''* = 0. So the loss is at most the supremum over z of

        epsilon_b/2 (1 + |l'(z)|/kappa) + log(1 + l''(z) R^2 / (n lam)).

    For d >= 2 this bound is tight in a limit; for d = 1 it is an upper bound.

    Logistic loss: |l'| = s and l'' = s (1 - s) with s in [0, 1]. Huber hinge: l'' = c for 0 < |l'| < 1, so
    the supremum is at |l'| = 1. For any other loss, even a subclass of a named one, the expression at |l'|
    = kappa, with sup l'' instead of l'', is an upper bound.

    For losses of residuals, only the magnitudes of slopes matter, so the bound is tight in the limit (x'
    near -x, with w.x' far beyond the target). Log-cosh: |l'| = kappa t and l'' = 1 - t^2 with t in [0, 1).
    The supremum is epsilon_b if n lam epsilon_b >= 4 R^2. Huber's loss: l'' = 1 up to |l'| = kappa, as for
    the hinge.
    """
    margin = margin_loss(loss)
    ratio = bound * bound / n_lambda
    if type(margin) is losses.LogCosh:
        # The result is concave in t. Its stationary point solves epsilon_b/2 (1 + r (1 - t^2)) = 2 r t with
        # r = `ratio`, found here without cancellation.
        root = math.sqrt(4 * ratio * ratio + epsilon_b**2 * ratio * (1 + ratio))
        t = min(1.0, epsilon_b * (1 + ratio) / (2 * ratio + root))
        return epsilon_b / 2 * (1 + t) + math.log1p((1 - t * t) * ratio)
    if type(margin) is not losses.Logistic:  # a subclass may have other slopes
        return epsilon_b + math.log1p(margin.c * ratio)

    def at(s):
        return epsilon_b / 2 * (1 + s) + math.log1p(s * (1 - s) * ratio)

    # Stationary points solve epsilon_b/2 (1 + r s (1-s)) + r (1 - 2s) = 0, found without cancellation.
    a, b, c = -epsilon_b / 2 * ratio, (epsilon_b / 2 - 2) * ratio, epsilon_b / 2 + ratio
    q = -(b + math.copysign(math.sqrt(b * b - 4 * a * c), b)) / 2
    return max(at(s) for s in (0.0, 1.0, q / a, c / q) if 0 <= s <= 1)


def calibrate(
    epsilon: float,
    n: int,
    lam: float,
    bound: float = 1.0,
    loss: losses.Loss = "logistic",
    calibration: str = "cms11",
) -> tuple[float, float]:
    """(epsilon_b, ridge): ||b|| ~ Gamma(d, 2 kappa R / epsilon_b), and ridge/2 ||w||^2 is added.

    With c = R^2 sup l'':

    "cms11"       epsilon_b = epsilon - 2 log(1 + c/(n lam)). If that is <= 0, epsilon_b = epsilon/2 and
                  ridge = c / (n (e^(epsilon/4) - 1)) - lam (Chaudhuri, Monteleoni, Sarwate, JMLR 12,
                  2011, algorithm 2 and theorem 9).
    "single_log"  the same with one logarithm instead of two, and e^(epsilon/2) instead of e^(epsilon/4).
                  Neighbours' Jacobians are two rank-one updates of a common matrix, and only one raises
                  their ratio.
    "supremum"    the largest epsilon_b whose `exact_epsilon` is at most epsilon. If log(1 + c/(n lam))
                  alone exceeds epsilon/2, the ridge first lowers this log to epsilon/2.
    """
    c = margin_loss(loss).c * bound * bound
    if calibration == "supremum":
        ridge = max(0.0, c / (n * math.expm1(min(epsilon / 2, 700.0))) - lam)
        return _largest_below(epsilon, n * (lam + ridge), bound, loss), ridge
    if calibration not in ("cms11", "single_log"):
        raise Refused(f"calibration is 'cms11', 'single_log' or 'supremum', not {calibration!r}")
    logs = 2 if calibration == "cms11" else 1
    epsilon_b = epsilon - logs * math.log1p(c / (n * lam))
    if epsilon_b > 0:
        return epsilon_b, 0.0
    return epsilon / 2, c / (n * math.expm1(epsilon / (2 * logs))) - lam


def _largest_below(epsilon, n_lambda, bound, loss):
    def holds(epsilon_b):
        return exact_epsilon(epsilon_b, n_lambda, bound, loss) <= epsilon

    return epsilon if holds(epsilon) else roots.largest(holds, 0.0, epsilon, relative=1e-12)
