"""Non-private minimisers, shared by the mechanisms that perturb them.

fit(X, y, lam, **options) returns weights (1, d) and info, whose entries have shape (1,): status, and
gradient_norm, the norm of the gradient, or of the smallest subgradient at a kink.
"""

import inspect
from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np

from dp import losses
from dp.solvers.elastic_net import minimise_elastic_net
from dp.solvers.lasso_scales import minimise_lasso
from dp.solvers.newton import LEAST_STEP, Info, minimise
from dp_privacy.errors import Refused

# Minimum ratio of ridge to largest curvature for Hessians in single precision: about 10 times float32's
# machine epsilon, so rounding is small compared with the ridge.
SINGLE = 1e-6


def l2(
    X: np.ndarray,
    y: np.ndarray,
    lam: float,
    loss: losses.Loss = "logistic",
    tolerance: float = 1e-9,
    near: dict | None = None,
) -> tuple[np.ndarray, dict]:
    """argmin of mean loss + lam/2 ||w||^2.

    The solver gets half of the tolerance, and rounding the other half (`dp.solvers.check_certifiable`).

    near: see `dp.solvers.minimise`.
    """
    return minimise(X, y, lam, loss=loss, tolerance=tolerance / 2, near=near)


INTERCEPTS = ("regularised", "free")


def sum_intercept(
    X: np.ndarray,
    y: np.ndarray,
    lam: float,
    loss: losses.Loss = "logistic",
    intercept: str = "regularised",
    tolerance: float = 1e-9,
) -> tuple[np.ndarray, dict]:
    """argmin of ||w||^2/2 + C sum_i loss(y_i (w.x_i + b)), C = 1/lam, plus b^2/2 if b is regularised.

    intercept: "regularised" makes b the weight of a column of ones, as in LIBLINEAR, the default solver of
    E18's scikit-learn. "free" does not regularise b, as in scikit-learn's other solvers. The certified
    gradient is that of the objective divided by n C, mean loss + lam/(2n) ||w||^2.

    Returns weights (1, d + 1), b last, and info as from `dp.solvers.minimise`. Columns of zeros get
    weight 0.
    """
    return next(sum_intercept_path(X, y, [lam], loss, intercept, tolerance))


def sum_intercept_path(
    X: np.ndarray,
    y: np.ndarray,
    lams: Iterable[float],
    loss: losses.Loss = "logistic",
    intercept: str = "regularised",
    tolerance: float = 1e-9,
    max_iterations: int = 100,
) -> Iterator[tuple[np.ndarray, dict]]:
    """`sum_intercept` for every lambda, each starting from the previous minimiser.

    The Hessian is positive definite (with a free intercept, if both classes are present). It is
    computed in single precision, unless rounding would hide the ridge or a step has failed. Gradients are
    in double precision.
    """
    loss, X = losses.get(loss), np.asarray(X)
    n, d = X.shape
    free = intercept == "free"
    if free and not loss.residual and not (np.min(y) < 0 < np.max(y)):
        raise Refused(
            "if all labels are equal, a free intercept has no finite minimiser: give the intercept "
            "'regularised'"
        )
    used = np.append(np.flatnonzero(np.any(X, axis=0)), d)  # the last weight is the intercept
    rows = np.ones((n, len(used)))
    rows[:, :-1] = X[:, used[:-1]]
    objective = _Objective(rows, np.asarray(y, dtype=float), loss)
    w = np.zeros(len(used))
    for lam in lams:
        if not (np.isfinite(lam) and lam > 0):
            raise Refused(f"lambda must be a finite number > 0, not {lam}")
        objective.ridge = np.full(len(w), lam / n)
        if free:
            objective.ridge[-1] = 0.0
        w, norm, iterations = _damped_newton(objective, w, tolerance, max_iterations)
        weights = np.zeros((1, d + 1))
        weights[0, used] = w
        yield (
            weights,
            Info(
                iterations=np.array([iterations]),
                gradient_norm=np.array([norm]),
                status=np.array(["ok" if norm <= tolerance else "not_converged"]),
            ),
        )


class _Objective:
    """Mean loss + sum_j ridge_j w_j^2 / 2 over rows (n, k). `ridge` (k,) may be set anew."""

    def __init__(self, rows, y, loss):
        # A margin loss takes products of labels and scores, a residual loss scores less targets.
        self.rows = rows if loss.residual else rows * y[:, None]
        self.shift = y if loss.residual else 0.0
        self.loss, self.ridge = loss, None

    @cached_property
    def single(self):
        return self.rows.astype(np.float32)

    def slopes(self, w):
        """Gradient (k,), its norm, and the loss' second derivatives (n,)."""
        slope, curvature = self.loss.slopes(self.rows @ w - self.shift)
        gradient = slope @ self.rows / len(self.rows) + self.ridge * w
        return gradient, np.linalg.norm(gradient), curvature

    def hessian(self, curvature, precision):
        """Hessian (k, k), with the sum over rows in this precision."""
        rows = self.single if precision == np.float32 else self.rows
        scaled = rows * np.sqrt(curvature / len(rows), dtype=precision)[:, None]
        hessian = (scaled.T @ scaled).astype(float)
        hessian[np.diag_indices_from(hessian)] += self.ridge
        return hessian


def _damped_newton(objective, w, tolerance, max_iterations):
    """Weights, gradient norm and iterations."""
    gradient, norm, curvature = objective.slopes(w)
    single = objective.ridge[0] > SINGLE * objective.loss.c
    step, precision = 1.0, np.float32 if single else np.float64
    for iteration in range(max_iterations + 1):
        if norm <= tolerance or step < LEAST_STEP or iteration == max_iterations:
            break
        try:
            direction = -np.linalg.solve(objective.hessian(curvature, precision), gradient)
        except np.linalg.LinAlgError:  # if all curvatures are 0, nothing determines the intercept
            break
        while step >= LEAST_STEP:
            trial = objective.slopes(w + step * direction)
            if trial[1] <= (1 - 0.1 * step) * norm:
                w = w + step * direction
                gradient, norm, curvature = trial
                step = min(1.0, 4 * step)
                break
            if precision == np.float32:
                precision = np.float64  # a more precise direction may succeed
                break
            step /= 4
    return w, norm, iteration


def l1(
    X: np.ndarray, y: np.ndarray, lam: float, tolerance: float = 1e-9, penalty_scale: str = "mean"
) -> tuple[np.ndarray, dict]:
    """An argmin of mean logistic loss + lam ||w||_1. penalty_scale: see `dp.solvers.lasso_scales`."""
    return minimise_lasso(X, y, lam, penalty_scale, tolerance)


def elastic_net(
    X: np.ndarray, y: np.ndarray, lam: float, lambda1: float | None = None, tolerance: float = 1e-9
) -> tuple[np.ndarray, dict]:
    """argmin of mean logistic loss + lambda1 ||w||_1 + lam/2 ||w||^2; lambda1 = None means lam.

    As for `l2`, rounding gets half of the tolerance.
    """
    return minimise_elastic_net(X, y, lam if lambda1 is None else lambda1, lam, tolerance / 2)


FITS = {"l2": l2, "l1": l1, "elastic_net": elastic_net, "sum_intercept": sum_intercept}


def fit_each(
    name: str, trains: Iterable, lam: float, **options
) -> Iterator[tuple[np.ndarray, dict]]:
    """Yield (weights, info) for each data set (X, y), starting near the previous fit if possible."""
    follows = "near" in inspect.signature(FITS[name]).parameters
    for X, y in trains:
        weights, info = FITS[name](X, y, lam, **options)
        if follows:
            options["near"] = info
        yield weights, info


def penalties(fit: str, lam: float, lambda1: float | None = None) -> tuple[float, float]:
    """(l1, l2): the weights of ||w||_1 and ||w||^2 / 2 in this fit's objective."""
    if fit == "l1":
        return lam, 0.0
    if fit == "elastic_net":
        return (lam if lambda1 is None else lambda1), lam
    return 0.0, lam


def fit_options(name: str, options: dict) -> dict:
    """The options that the fit accepts."""
    parameters = inspect.signature(FITS[name]).parameters
    return {key: value for key, value in options.items() if key in parameters}


def shared_fit(
    name: str, X: np.ndarray, y: np.ndarray, lam: float, **arguments
) -> tuple[np.ndarray, dict]:
    """(weights (1, d), info) of the named fit, from a release's arguments."""
    return FITS[name](X, y, lam, **fit_options(name, arguments))
