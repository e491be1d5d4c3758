"""Logistic regression with an L1 penalty, alone or with an L2 penalty. Newton's method is tried first."""

import warnings

import numpy as np

from dp import losses
from dp.data.examples import ROUNDING, row_norms, slices
from dp.descents.distributed_lasso import soft_threshold
from dp.solvers.accelerated import proximal_descent, steps
from dp.solvers.newton import least_tolerance

# (solver, its share of the tolerance), in the order of attempts. LIBLINEAR is fast, but on some data it
# never reaches the last digits.
ATTEMPTS = (("liblinear", 1.0), ("saga", 1e-2), ("liblinear", 1e-2))
MAX_ITERATIONS = {"liblinear": 1_000, "saga": 20_000}  # passes over the rows
NEWTON = 30  # most steps of Newton's method per attempt: it needs a dozen, or never ends
UNCERTAIN = 1000  # most steps of descent if double precision may not certify the result
TRIED = 100  # most steps of descent without l2 before the library is called
BLOCK_ROWS = 4096  # rows of a block, as `dp.solvers.rounding` assumes


def subgradient_norm(
    weights: np.ndarray, X: np.ndarray, y: np.ndarray, l1: float, l2: float
) -> float:
    """Norm of the smallest subgradient of mean logistic loss + l1 ||w||_1 + l2/2 ||w||^2 at `weights`.

    It is zero at minimisers only. With g the gradient of the smooth part, coordinate j has the subgradient
    g_j + l1 sgn(w_j) if w_j != 0, and all of [g_j - l1, g_j + l1] if w_j = 0. If l2 > 0, the minimiser
    lies within subgradient_norm / l2 of `weights`. If l2 = 0, the norm bounds no distance.

    weights: (d,). X: (n, d). y: (n,) in {-1, 1}. Returns a float, in double precision.
    """
    return _norm(weights, _smooth_part(weights, X, y, l2)[0], l1)


def _norm(weights, gradient, l1):
    at_zero = np.maximum(np.abs(gradient) - l1, 0.0)
    return float(np.linalg.norm(np.where(weights != 0, gradient + l1 * np.sign(weights), at_zero)))


def _smooth_part(weights, X, y, l2):
    """Gradient (d,) of mean logistic loss + l2/2 ||w||^2, and the rows' curvatures (n,)."""
    loss = losses.get("logistic")
    gradient, curvature = np.zeros(len(weights)), np.empty(len(y))
    for part in slices(len(y), BLOCK_ROWS):
        slope, curvature[part] = loss.slopes(y[part] * (X[part] @ weights))
        gradient += (slope * y[part]) @ X[part]
    return gradient / len(y) + l2 * weights, curvature


def minimise_elastic_net(
    X: np.ndarray, y: np.ndarray, l1: float, l2: float, tolerance: float = 1e-9
) -> tuple[np.ndarray, dict]:
    """argmin of mean logistic loss + l1 ||w||_1 + l2/2 ||w||^2, no intercept.

    X: (n, d). y: (n,) in {-1, 1}. l1 > 0, l2 >= 0. Returns weights (1, d) and info: gradient_norm
    (`subgradient_norm`), status ("ok" if that is at most `tolerance`, else "not_converged", which happens
    only for l2 = 0 or a tolerance below half of `dp.solvers.least_tolerance`) and iterations, each (1,).
    Equal data give equal weights.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if not (l1 > 0 and l2 >= 0 and np.isfinite(l1 + l2)):
        raise ValueError(
            f"an elastic net needs finite penalties l1 > 0 and l2 >= 0, not {l1}, {l2}"
        )
    norm, weights, iterations = _newton_and_descent(X, y, l1, l2, tolerance)
    if l2 == 0 and norm > tolerance:
        other = _library(X, y, l1, l2, tolerance)
        norm, weights, iterations = min(other, (norm, weights, iterations), key=lambda fit: fit[0])
    return weights[None], {
        "gradient_norm": np.array([norm]),
        "status": np.array(["ok" if norm <= tolerance else "not_converged"]),
        "iterations": np.array([iterations]),
    }


def _newton_and_descent(X, y, l1, l2, tolerance):
    """(subgradient norm, weights, passes over the rows).

    Newton's method solves for the weights that a proximal gradient step leaves nonzero, in a handful of
    passes near the minimiser. Between its attempts, accelerated descent moves closer. If l2 > 0, that
    reaches the minimiser on any data. Without l2 it gets `TRIED` steps.
    """
    (n, d), norms, passes = X.shape, row_norms(X), 0
    smooth = losses.get("logistic").c * float(np.mean(norms**2)) + l2
    best = np.inf, np.zeros(d)

    def evaluate(w):
        nonlocal passes, best
        passes += 1
        gradient, curvature = _smooth_part(w, X, y, l2)
        norm = _norm(w, gradient, l1)
        if norm < best[0]:
            best = norm, w
        return gradient, curvature

    def proximal(w):
        return soft_threshold(w, l1, 1 / smooth)

    def newton(w):
        w = proximal(w - evaluate(w)[0] / smooth)
        for _ in range(NEWTON):
            gradient, curvature = evaluate(w)
            if best[0] <= tolerance or not np.isfinite(gradient).all():
                break
            target = proximal(w - gradient / smooth)
            alive = target != 0
            hessian = (X[:, alive].T * curvature) @ X / n
            residual = (
                hessian[:, ~alive] @ w[~alive] - gradient[alive] - l1 * np.sign(target[alive])
            )
            hessian = hessian[:, alive]
            # l2 and an allowance for rounding, so that no matrix is singular.
            rounding = d * np.finfo(float).eps * np.trace(hessian)
            hessian[np.diag_indices_from(hessian)] += l2 + rounding
            w = np.where(alive, w, 0.0)
            try:
                w[alive] += np.linalg.solve(hessian, residual)
            except np.linalg.LinAlgError:  # only without l2
                break
        return best[0] <= tolerance

    evaluate(best[1])
    convex, limit = l2, UNCERTAIN
    if l2 == 0:
        convex, limit = 1e-3 * smooth, TRIED
    # At most the public bound, since `dp.data.examples.check_rows` allows this rounding.
    elif least_tolerance(n, d, l2, norms.max() / (1 + ROUNDING)) <= 2 * tolerance:
        limit = steps(smooth, l2, best[0], tolerance)
    if 0 < smooth < np.inf:
        proximal_descent(lambda w: evaluate(w)[0], smooth, convex, best[1], limit, newton, proximal)
    return *best, passes


def _library(X, y, l1, l2, tolerance):
    """(subgradient norm, weights, passes over the rows), for l2 = 0.

    scikit-learn's LIBLINEAR and SAGA are called (ATTEMPTS) until `subgradient_norm` is at most
    `tolerance`. The best attempt is returned, or zeros if better. No error is raised, because failure
    depends on the data. The library is seeded.
    """
    from sklearn.exceptions import ConvergenceWarning  # 1 s to import
    from sklearn.linear_model import LogisticRegression

    rows, labels = X, y
    if (y == y[0]).all():
        # The library refuses a single class; (x, y) and (-x, -y) have the same loss.
        rows, labels = np.concatenate([X, -X]), np.concatenate([y, -y])
    zeros = np.zeros(X.shape[1])
    best = subgradient_norm(zeros, X, y, l1, l2), zeros, 0
    for solver, share in ATTEMPTS:
        model = LogisticRegression(
            C=1 / (len(rows) * l1),
            l1_ratio=1.0,
            solver=solver,
            fit_intercept=False,
            tol=max(tolerance * share, 1e-14),
            max_iter=MAX_ITERATIONS[solver],
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate decides
            try:
                model.fit(rows, labels)
            except ValueError:  # LIBLINEAR takes no values above 1e30
                continue
        norm = subgradient_norm(model.coef_[0], X, y, l1, l2)
        if norm < best[0]:
            best = norm, np.array(model.coef_[0]), int(np.max(model.n_iter_))
        if norm <= tolerance:
            break
    return best
