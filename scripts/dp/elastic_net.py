"""Logistic regression with an L1 penalty, and with both: scikit-learn's fit, its certificate from here."""

import warnings

import numpy as np

from dp import losses

# (solver, share of the tolerance it is asked for), in the order in which they are tried. LIBLINEAR is
# quick at any lambda, but on some data its last digits cost thousands of passes without being gained.
ATTEMPTS = {
    "l1": (("liblinear", 1.0), ("saga", 1e-2), ("liblinear", 1e-2)),
    "elastic net": (("saga", 1.0), ("saga", 1e-2), ("saga", 1e-4)),
}
MAX_ITERATIONS = {"liblinear": 1_000, "saga": 20_000}  # passes over the rows


def subgradient_norm(weights, X, y, l1, l2):
    """Norm of the smallest subgradient of mean logistic loss + l1 ||w||_1 + l2/2 ||w||^2 at `weights`.

    It is zero at a minimiser and nowhere else (the Karush-Kuhn-Tucker conditions): with g the gradient
    of the smooth part, coordinate j has the subgradients g_j + l1 sgn(w_j) where w_j != 0 and
    [g_j - l1, g_j + l1] where w_j = 0. If l2 > 0 the objective is l2-strongly convex, and the
    minimiser lies within subgradient_norm / l2 of `weights`; if l2 = 0 nothing is said of distance.

    weights: (d,). X: (n, d). y: (n,) in {-1, 1}. Returns a float, in double precision.
    """
    slope = losses.get("logistic").derivative(y * (X @ weights))
    gradient = (slope * y) @ X / len(y) + l2 * weights
    at_zero = np.maximum(np.abs(gradient) - l1, 0.0)
    return float(np.linalg.norm(np.where(weights != 0, gradient + l1 * np.sign(weights), at_zero)))


def minimise_elastic_net(X, y, l1, l2, tolerance=1e-9):
    """argmin of mean logistic loss + l1 ||w||_1 + l2/2 ||w||^2, no intercept.

    scikit-learn's LIBLINEAR or SAGA, asked again (ATTEMPTS) unless `subgradient_norm`, computed here
    and not by the library, is at most `tolerance`; the best attempt is returned. The library's order
    of visits is seeded: equal data give equal weights.

    X: (n, d). y: (n,) in {-1, 1}. l1 > 0, l2 >= 0. Returns weights (1, d) and info: gradient_norm (the
    smallest subgradient's), status ("ok" or "not_converged") and iterations, each (1,).
    """
    from sklearn.exceptions import ConvergenceWarning  # 1 s to import: only where it fits
    from sklearn.linear_model import LogisticRegression

    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if not (l1 > 0 and l2 >= 0 and np.isfinite(l1 + l2)):
        raise ValueError(
            f"an elastic net needs finite penalties l1 > 0 and l2 >= 0, not {l1}, {l2}"
        )
    rows, labels = X, y
    if (y == y[0]).all():
        # The library refuses a single class; (x, y) and (-x, -y) have the same loss.
        rows, labels = np.concatenate([X, -X]), np.concatenate([y, -y])
    best = None
    for solver, share in ATTEMPTS["l1" if l2 == 0 else "elastic net"]:
        model = LogisticRegression(
            C=1 / (len(rows) * (l1 + l2)),
            l1_ratio=l1 / (l1 + l2),
            solver=solver,
            fit_intercept=False,
            tol=max(tolerance * share, 1e-14),
            max_iter=MAX_ITERATIONS[solver],
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate decides
            model.fit(rows, labels)
        norm = subgradient_norm(model.coef_[0], X, y, l1, l2)
        if best is None or norm < best[0]:
            best = norm, model.coef_, int(np.max(model.n_iter_))
        if norm <= tolerance:
            break
    norm, weights, iterations = best
    return np.array(weights), {
        "gradient_norm": np.array([norm]),
        "status": np.array(["ok" if norm <= tolerance else "not_converged"]),
        "iterations": np.array([iterations]),
    }
