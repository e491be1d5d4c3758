"""Logistic regression with an L1 penalty, alone or with an L2 penalty, by a proximal Newton method."""

import numpy as np

from dp import losses
from dp.descents.distributed_lasso import soft_threshold
from dp.rows import ROUNDING, row_norms, slices
from dp.solvers.accelerated import proximal_descent, steps
from dp.solvers.newton import least_tolerance

NEWTON = 100  # maximum number of Newton steps in one attempt; most take about a dozen
TINY = np.finfo(float).tiny
UNCERTAIN = 1000  # maximum number of descent steps if no certificate is promised
BLOCK_ROWS = 4096  # rows of a block, as `dp.solvers.rounding` assumes


def subgradient_norm(
    weights: np.ndarray, X: np.ndarray, y: np.ndarray, l1: float, l2: float
) -> float:
    """Norm of the smallest subgradient of mean logistic loss + l1 ||w||_1 + l2/2 ||w||^2 at `weights`.

    The norm is 0 only at minimisers. With g the gradient of the smooth part, coordinate j has the
    subgradient g_j + l1 sgn(w_j) if w_j != 0, and all of [g_j - l1, g_j + l1] if w_j = 0. If l2 > 0, the
    minimiser lies within subgradient_norm / l2 of `weights`. If l2 = 0, the norm bounds no distance.

    weights: (d,). X: (n, d). y: (n,) in {-1, 1}.
    """
    return _norm(weights, _smooth_part(weights, X, y, l2)[1], l1)


def _norm(weights, gradient, l1):
    at_zero = np.maximum(np.abs(gradient) - l1, 0.0)
    return float(np.linalg.norm(np.where(weights != 0, gradient + l1 * np.sign(weights), at_zero)))


def _smooth_part(weights, X, y, l2):
    """Mean logistic loss + l2/2 ||w||^2, its gradient (d,), and the rows' curvatures (n,)."""
    loss = losses.get("logistic")
    value, gradient, curvature = 0.0, np.zeros(len(weights)), np.empty(len(y))
    for part in slices(len(y), BLOCK_ROWS):
        margins = y[part] * (X[part] @ weights)
        value += loss.value(margins).sum()
        slope, curvature[part] = loss.slopes(margins)
        gradient += (slope * y[part]) @ X[part]
    return value / len(y) + l2 / 2 * weights @ weights, gradient / len(y) + l2 * weights, curvature


def minimise_elastic_net(
    X: np.ndarray, y: np.ndarray, l1: float | np.ndarray, l2: float, tolerance: float = 1e-9
) -> tuple[np.ndarray, dict]:
    """argmin of mean logistic loss + sum_j l1_j |w_j| + l2/2 ||w||^2, without an intercept.

    X: (n, d). y: (n,) in {-1, 1}. l1: a number > 0, or (d,) numbers >= 0, not all zero. l2 >= 0. Returns
    weights (1, d) and info, each (1,): gradient_norm (`subgradient_norm`), iterations (passes over the
    rows), and status: "ok" if the norm is at most `tolerance`, otherwise "not_converged", which is possible
    only with l2 = 0 or a tolerance below half of `dp.solvers.least_tolerance`. Equal data give equal
    weights.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if not (np.min(l1) >= 0 < np.max(l1) and l2 >= 0 and np.isfinite(l1 + l2).all()):
        raise ValueError(
            f"an elastic net needs finite penalties l1 > 0 and l2 >= 0, not {l1}, {l2}"
        )
    l1 = np.broadcast_to(np.asarray(l1, dtype=float), X.shape[1:])
    norm, weights, iterations = _newton_and_descent(X, y, l1, l2, tolerance)
    return weights[None], {
        "gradient_norm": np.array([norm]),
        "status": np.array(["ok" if norm <= tolerance else "not_converged"]),
        "iterations": np.array([iterations]),
    }


def _newton_and_descent(X, y, l1, l2, tolerance):
    """The subgradient norm, weights, and passes over the rows.

    A proximal Newton step u minimises the penalty plus a quadratic model of the other terms, over weights
    that are nonzero or whose gradient exceeds l1 in size. Near the minimiser, full steps square the error.
    A full step that neither lowers the objective enough nor halves the subgradient's norm is shortened. The
    third derivative of logistic loss is at most l''. Let r = max_i |x_i.u|, the largest change of a
    margin, and s = u'Hu with the Hessian H. Then a fraction t of the step changes the objective by at most
    -t s + s (e^(t r) - t r - 1)/r^2. The bound's minimum, at t = log(1 + r)/r, is negative (Sun and
    Tran-Dinh, Generalized self-concordant functions, 2019). Accelerated descent, which attempts Newton
    steps now and then, approaches the minimiser. So if l2 > 0, the search succeeds on any data, for
    tolerances of at least half of `least_tolerance`.
    """
    (n, d), norms, passes = X.shape, row_norms(X), 0
    smooth = losses.get("logistic").c * float(np.mean(norms**2)) + l2
    best = np.inf, np.zeros(d)

    def evaluate(w):
        nonlocal passes, best
        passes += 1
        value, gradient, curvature = _smooth_part(w, X, y, l2)
        norm = _norm(w, gradient, l1)
        if norm < best[0]:
            best = norm, w
        return value + l1 @ np.abs(w), gradient, curvature, norm

    def proximal(w):
        return soft_threshold(w, l1, 1 / smooth)

    def newton(w):
        # The certificate that `steps` promises needs this extra proximal step.
        w = proximal(w - evaluate(w)[1] / smooth)
        value, gradient, curvature, norm = evaluate(w)
        for _ in range(NEWTON):
            if best[0] <= tolerance or not np.isfinite(gradient).all():
                break
            used = np.flatnonzero((w != 0) | (np.abs(gradient) > l1))
            rows = X[:, used]
            hessian = (rows.T * curvature) @ rows / n
            # l2 and an allowance for rounding keep the matrix from being singular.
            rounding = d * np.finfo(float).eps * np.trace(hessian)
            hessian[np.diag_indices_from(hessian)] += l2 + rounding
            linear = gradient[used] - hessian @ w[used]
            target = w.copy()
            try:
                target[used] = _minimise_quadratic(hessian, linear, l1[used], w[used])
            except np.linalg.LinAlgError:
                break
            change = target - w
            promised = gradient @ change + l1 @ (np.abs(target) - np.abs(w))
            trial = evaluate(target)
            if not (trial[0] <= value + 0.1 * promised or trial[3] <= norm / 2):
                r = np.abs(rows @ change[used]).max()
                if r > 0:
                    target = w + np.log1p(r) / r * change
                    trial = evaluate(target)
            w, (value, gradient, curvature, norm) = target, trial
        return best[0] <= tolerance

    evaluate(best[1])
    convex, limit = l2, UNCERTAIN
    if l2 == 0:
        convex = 1e-3 * smooth
    # norms.max() / (1 + ROUNDING) is at most the public bound: `check_rows` allows this rounding.
    elif least_tolerance(n, d, l2, norms.max() / (1 + ROUNDING)) <= 2 * tolerance:
        limit = steps(smooth, l2, best[0], tolerance)
    if 0 < smooth < np.inf:
        proximal_descent(lambda w: evaluate(w)[1], smooth, convex, best[1], limit, newton, proximal)
    return *best, passes


def _minimise_quadratic(hessian, linear, l1, v):
    """argmin of v'Hv/2 + linear.v + sum_j l1_j |v_j|, from v, by feature-sign search.

    See Lee, Battle, Raina, Ng (NIPS 2006). A step goes towards the minimiser for the current signs. If a
    weight reaches zero on the way, the step ends and the weight becomes inactive. Otherwise, the zero
    weight with the largest violation of its optimality condition becomes active. Every step lowers the
    function, so no combination of signs repeats.
    """
    v, sign = v.copy(), np.sign(v)
    active = (v != 0) | (l1 == 0)
    slack = 1e-14 * (np.abs(linear).max(initial=0.0) + l1.max(initial=0.0))
    for _ in range(20 * len(v) + 20):  # rounding could cause a cycle
        on = np.flatnonzero(active)
        start = v[on]
        end = np.linalg.solve(hessian[np.ix_(on, on)], -linear[on] - l1[on] * sign[on])
        crossing = (end * sign[on] <= 0) & (l1[on] > 0)
        if crossing.any():
            shares = np.full(len(on), np.inf)
            moved = np.abs(start) + np.abs(end)
            shares[crossing] = np.abs(start[crossing]) / np.maximum(moved[crossing], TINY)
            v[on] = start + shares.min() * (end - start)
            left = on[shares == shares.min()]
            v[left], sign[left], active[left] = 0.0, 0.0, False
            continue
        v[on] = end
        gradient = hessian @ v + linear
        excess = np.where(active, -np.inf, np.abs(gradient) - l1)
        worst = excess.argmax() if len(v) else None
        if worst is None or excess[worst] <= slack:
            break
        active[worst], sign[worst] = True, -np.sign(gradient[worst])
    return v
