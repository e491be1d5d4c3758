"""Newton's method on many tilted objectives at once.

Restarts share rows and loss, and differ in a linear term, so one pass serves all. The search begins on a
sample of the rows, continues on all rows in single precision, and is certified in double precision. On
wide rows, `dp.solvers.quasi_newton` is tried first.

Internal arrays hold one column per restart.
"""

import math

import numpy as np

from dp import losses
from dp.rows import NUMBERS, ROUNDING, Rows, as_rows, check_labels, row_norms
from dp.solvers import accelerated, quasi_newton
from dp.solvers.passes import EPS, Direct, Implicit
from dp_privacy.errors import Refused

TOGETHER = 256  # maximum number of restarts solved together
THINNING, SAMPLE = 10, 1 << 17  # the sample has one row in 10, and at most about 131072
DIRECT = 40  # maximum number of columns for which Hessians are formed; else conjugate gradients
CENTRED = 8  # minimum number of restarts for a common centre
NEARBY = 0.6  # largest change of a typical margin for which one step suffices
KEPT = 1 << 23  # maximum count of stored numbers: 64 MB, unless one restart needs more
LIMIT = 1000  # passes
ATTEMPT = 20  # passes after which Newton's method follows a path of decreasing lambdas
STEEPEST = 1e10  # largest ratio of curvature to lambda for descents of at most 10^7 steps
LEAST_STEP = 1e-20  # smallest step fraction; on a saturated loss, steps are about lambda/curvature
SPREAD = 1e-5  # smallest ratio of eigenvalues that single precision resolves


class Info(dict):
    """The iterations, gradient_norm and status of each restart, as keys and attributes.

    Its attribute `learnt` saves time in a later `minimise` that gets this `Info` as `near`.
    """

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def minimise(
    X: np.ndarray | Rows,
    y: np.ndarray,
    lam: float | np.ndarray,
    linear: np.ndarray | None = None,
    loss: losses.Loss = "logistic",
    initial: np.ndarray | None = None,
    tolerance: float = 1e-9,
    *,
    max_iterations: int | None = None,
    near: dict | None = None,
) -> tuple[np.ndarray, Info]:
    """Minimise mean_i loss(z_i) + lam/2 ||w||^2 + linear_j . w / n for every restart j.

    z_i is the margin y_i w.x_i, or the residual w.x_i - y_i of a residual loss (`dp.losses`).

    X: (n, d), real numbers of any type, or `dp.rows.Rows`, read in blocks. y: (n,) in {-1, 1}, or
    in [-1, 1] for a residual loss. lam: positive, one number or one per restart. linear: (restarts, d), or
    (d,) for one restart; None for zeros. loss: as for `dp.losses.get`. initial: starting points (d,) or
    (restarts, d), which do not affect the certificate. max_iterations: None for as many as needed, if
    double precision can certify the result. near: `Info` of an earlier call on similar rows with equal lam,
    loss and number of restarts.

    Returns weights (restarts, d) and `Info`:

    gradient_norm  Euclidean norm of the objective's gradient at the weights, over all rows in double
                   precision. Since the objective is lam-strongly convex, the minimiser lies within
                   gradient_norm/lam of the weights, up to the rounding of the norm, about
                   1e-16 (1 + ||linear||/n + lam ||w||).
    status         "ok": gradient_norm <= tolerance. "not_converged": it is larger, after
                   max_iterations, or because double precision may do no better (`least_tolerance`); the
                   weights are the last point reached. "not_finite": a linear term, starting point or X
                   is not finite, or too large for double precision; the weights are NaN.
    iterations     passes over all rows that the restart took part in.

    Restarts influence each other only by rounding. Equal arguments give equal bits on the same processor
    with the same number of BLAS threads.
    """
    initial = near.learnt[0] if near is not None and initial is None else initial
    X, y, lam, linear, W, loss = _checked(X, y, lam, linear, loss, initial, tolerance)
    n, d = X.shape
    norm, iterations = np.full(len(W), np.nan), np.zeros(len(W), dtype=int)
    learnt = {} if near is None else dict(near.learnt[1])
    usable = np.flatnonzero(np.isfinite(linear).all(axis=1) & np.isfinite(W).all(axis=1))
    # For wide rows, conjugate gradients store curvatures; BFGS stores steps and gradient changes.
    stored = 1 if d <= DIRECT else max(n, 2 * quasi_newton.PAIRS * d)
    together = max(1, min(TOGETHER, KEPT // stored))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for start in range(0, len(usable), together):
            part = usable[start : start + together]
            solution, norm[part], iterations[part], learnt[start] = _solve(
                X,
                y,
                lam[part],
                linear[part].T / n,
                loss,
                W[part].T,
                tolerance,
                max_iterations,
                learnt.get(start),
            )
            W[part] = solution.T
    status = np.where(norm <= tolerance, "ok", "not_converged")
    failed = ~np.isfinite(norm)
    status[failed], W[failed] = "not_finite", np.nan
    info = Info(iterations=iterations, gradient_norm=norm, status=status)
    info.learnt = np.nan_to_num(W), learnt
    return W, info


def rounding(
    n: int,
    d: int,
    lam: float,
    bound: float = 1.0,
    loss: losses.Loss = "logistic",
    tilt: float = 0.0,
) -> float:
    """Bound on the rounding error of a gradient in `minimise` at any minimiser, for any n rows.

    bound: R >= ||x||. tilt: T >= ||linear||. The norm of the minimiser is at most W, the smaller of two
    bounds. One is (kappa R + T/n)/lam, because the gradient is 0 there. The other is (2 T/n + sqrt(2 lam
    l(0)))/lam, because the objective at w = 0 is at most l(0) (l(1) for a residual loss), and losses are at
    least 0. With u = EPS/2 (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1):

    - A score is a sum of d products. Its error is at most d u R W, and its slope's error at most c times as
      large. (Subtracting the target also rounds: see `dp.losses.ResidualLoss`.)
    - The mean of n rows consists of sums within blocks of 64 to 4096 rows and a sum over at most n/64
      blocks. Its error is at most (4096 + n/64) u kappa R.
    - The last bits of the weights move the gradient by at most u W (c R^2 + lam). lam w and the tilt are
      rounded at each addition.

    Up to ten roundings of a slope are allowed for. The bound is infinite if squares could overflow.
    """
    loss = losses.get(loss)
    smooth = loss.c * bound * bound
    pull = tilt / n
    size = min(loss.kappa * bound + pull, 2 * pull + math.sqrt(2 * lam * loss.at_zero())) / lam
    total = (4096 + n / 64 + 10) * loss.kappa * bound
    total += (d + 10) * (smooth + lam) * size + 4 * pull
    return EPS / 2 * total if total < 1e150 and size < 1e150 else math.inf


def least_tolerance(
    n: int,
    d: int,
    lam: float,
    bound: float = 1.0,
    loss: losses.Loss = "logistic",
    tilt: float = 0.0,
) -> float:
    """Smallest tolerance that `minimise` meets on every data set of n rows; arguments as for `rounding`.

    It is four times `rounding`. If `minimise` gets half of the tolerance, the exact gradient's norm is
    within the tolerance on any data. The tolerance is infinite if c R^2 exceeds 10^10 lambda, since descent
    (`dp.solvers.accelerated`) could then take more than 10^7 steps after Newton's method gives up. The
    norm of the returned weights may exceed the minimiser's by tolerance/lambda. If d is so large that
    rounding due to this excess could use another quarter of the tolerance, the result is infinite.
    """
    smooth = losses.get(loss).c * bound * bound
    if not smooth <= STEEPEST * lam or (d + 10) * (smooth + lam) * EPS > lam / 2:
        return math.inf
    return 4 * rounding(n, d, lam, bound, loss, tilt)


def check_certifiable(
    n: int,
    d: int,
    lam: float,
    bound: float = 1.0,
    loss: losses.Loss = "logistic",
    tolerance: float = 1e-9,
    tilt: float = 0.0,
) -> None:
    """Raise `Refused` unless `minimise` can certify the tolerance on every data set.

    Otherwise, whether a fit is certified would distinguish data sets. Give the solver half of the tolerance
    (`least_tolerance`).

    tilt: T >= ||linear||. Random tilts may exceed T, but only with negligible probability.
    """
    least = least_tolerance(n, d, lam, bound, loss, tilt)
    if not least <= tolerance < math.inf:
        what = f"certifies a gradient norm of {least:.2g}, not of {tolerance:g}, on every data set"
        remedy = "a larger tolerance or a larger lambda"
        if math.isinf(least):
            what, remedy = "certifies no tolerance on every data set", "a larger lambda"
        raise Refused(
            f"at n = {n}, lambda = {lam:g} and a bound of {bound:g}, double precision {what}: "
            f"give {remedy}"
        )


def _checked(X, y, lam, linear, loss, initial, tolerance):
    loss = losses.get(loss)
    X, y, lam = as_rows(X), np.asarray(y), np.asarray(lam, dtype=float)
    if X.ndim != 2 or 0 in X.shape or y.shape != X.shape[:1]:
        raise ValueError(f"X must be (n, d) and y (n,), n and d > 0, not {X.shape} and {y.shape}")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers, not {X.dtype}")
    check_labels(y, NUMBERS if loss.residual else None)
    if not (np.isfinite(lam) & (lam > 0)).all():
        raise ValueError(f"lambda must be finite and > 0, not {lam}")
    if not tolerance >= 0:
        raise ValueError(f"the tolerance must be >= 0, not {tolerance}")
    d = X.shape[1]
    linear = np.zeros((lam.size, d)) if linear is None else np.asarray(linear, dtype=float)
    linear = linear[None] if linear.ndim == 1 else linear
    if linear.ndim != 2 or linear.shape[1] != d:
        raise ValueError(f"the linear term must be (restarts, {d}), not {linear.shape}")
    if lam.shape not in ((), linear.shape[:1]):
        raise ValueError(f"lambda must be one number or {len(linear)}, not {lam.shape}")
    start = np.zeros(d) if initial is None else np.asarray(initial, dtype=float)
    if start.shape not in ((d,), linear.shape):
        raise ValueError(f"the starting point must be ({d},) or {linear.shape}, not {start.shape}")
    W = np.array(np.broadcast_to(start, linear.shape))
    return X, y, np.broadcast_to(lam, len(linear)), linear, W, loss


def _solve(X, y, lam, tilt, loss, start, tolerance, max_iterations, learnt):
    """Weights, gradient norms, passes and `learnt` (as in `quasi_newton.minimise`)."""
    n, d = X.shape
    # norm of a typical row
    size = np.sqrt(d * np.mean(np.square(X[:: 1 + (n * d >> 17)], dtype=float)))
    single = bool(lam.min() > SPREAD * loss.c * size**2)
    approach = single and n > 2048
    W, passes, hessian = start, 0, None
    if d > DIRECT:
        if approach:
            W, norm, passes, learnt = quasi_newton.minimise(
                X, y, lam, tilt, loss, size, start, tolerance, learnt
            )
            if (norm <= tolerance).all():
                return W, norm, passes, learnt
        rows = Implicit(X, y, loss, size, np.float32 if single else np.float64)
    else:
        if approach:
            W, passes, hessian = _approach(X, y, lam, tilt, loss, size, start, tolerance)
        if not np.isfinite(W).all():  # single precision overflows above 3e38
            W, hessian = start, None
        products = np.float32 if single and not loss.quadratic else np.float64
        rows = Direct(X, y, loss, size, np.float64, products)
    most = LIMIT if max_iterations is None else max_iterations
    limit = min(ATTEMPT, most)
    W, norm, more, _ = _newton(rows, lam, tilt, W, tolerance, limit, hessian)
    passes += more
    hard = ~(norm <= tolerance) & (more == ATTEMPT)
    if hard.any() and most > ATTEMPT:
        W[:, hard], norm[hard], more = _follow_path(
            rows, lam[hard], tilt[:, hard], start[:, hard], tolerance, most - ATTEMPT
        )
        passes[hard] += more
    if max_iterations is None and (norm > tolerance).any():
        if rows.product_dtype == np.float32:  # after overflow or underflow, try double precision
            double = (np.float64,) * (1 if rows.implicit else 2)
            rows = type(rows)(X, y, loss, size, *double)
            left = norm > tolerance
            W[:, left], norm[left], more, _ = _newton(
                rows, lam[left], tilt[:, left], W[:, left], tolerance, LIMIT
            )
            passes[left] += more
        _descend(rows, lam, tilt, W, norm, passes, tolerance)
    return W, norm, passes, learnt


def _approach(X, y, lam, tilt, loss, size, W, tolerance):
    """Weights, passes and Hessians near the solution, from a sample and in single precision."""
    n, d = X.shape
    rows = sample = Direct(X, y, loss, size, np.float32)
    thinning = max(min(THINNING, n // (40 * d)), n // SAMPLE)
    if thinning > 2:
        thin = np.ascontiguousarray(X[::thinning]), y[::thinning]
        sample = Direct(*thin, loss, size, np.float32)
    W, near = _predict(rows, sample, lam, tilt, W)
    passes = np.zeros(len(lam), dtype=int)
    if sample is not rows and not near.all():
        far = ~near
        # The shift makes the sample's gradient at the starting point equal that of all rows.
        shift = rows.gradient(W[:, far]) - sample.gradient(W[:, far])
        goal = 0.5 * size / np.sqrt(sample.n)
        W[:, far], _, _, hessian = _newton(
            sample, lam[far], tilt[:, far] + shift, W[:, far], goal, ATTEMPT, further=True
        )
        # With new Hessians instead of the sample's, this step would take three times as long.
        hessian *= n / sample.n
        W[:, far], _, passes[far], _ = _newton(
            rows, lam[far], tilt[:, far], W[:, far], 0.1 * size, 1, hessian, further=True
        )
    goal = max(1e-3 * size, tolerance)
    W, _, more, hessian = _newton(rows, lam, tilt, W, goal, ATTEMPT, further=True)
    return W, passes + more, hessian


def _predict(rows, sample, lam, tilt, W):
    """Starting points one step from a common centre, and a mask of those close to a minimiser.

    If many restarts start at one point, the centre is the minimiser of the objective without tilts. From
    there, one step of Halley's method, with differences of the sample's Hessians, leads each restart close
    to its minimiser. Restarts whose margins would change a lot take no step.
    """
    near = np.zeros(len(lam), dtype=bool)
    if len(lam) < CENTRED or (W[:, :1] != W).any() or (lam[0] != lam).any():
        return W.copy(), near
    reach = NEARBY * np.sqrt(rows.d) / rows.size
    # The denominator bounds every Hessian's norm, so steps are at least this long.
    least = np.linalg.norm(tilt, axis=0) / (lam + rows.loss.c * rows.size**2)
    if np.median(least) > reach:
        return W.copy(), near
    centre, goal = W[:, :1], 3e-4 * rows.size
    centre = _newton(rows, lam[:1], 0 * tilt[:, :1], centre, goal, ATTEMPT, further=True)[0]
    hessian, around = rows.hessians(1), sample.hessians(rows.d + 1)
    gradient = rows.gradient(centre, hessian) + lam * centre + tilt
    step = rows.directions(np.repeat(hessian, len(lam), axis=1), lam, gradient, goal)
    near = np.linalg.norm(step, axis=0) < reach
    side = 0.3 * reach
    sample.gradient(centre + side * np.eye(rows.d, rows.d + 1), around)
    change = (around[:, :-1] - around[:, -1:]) * (rows.n / sample.n / side)
    step = rows.directions(hessian + change @ step / 2, lam, gradient, goal)
    return np.where(near, centre + step, W), near


def _follow_path(rows, lam, tilt, W, tolerance, limit):
    """Minimise for decreasing lambdas, each from the previous minimiser.

    Returns the first three results of `_newton`. A small lambda may need such a path if most margins are
    far from where the loss is curved.
    """
    passes, ridge, last = 0, rows.loss.c * rows.size**2 / 100, False
    while not last:
        now = np.maximum(lam, ridge)
        last = bool((now == lam).all())
        scale = np.maximum(rows.size, np.linalg.norm(W, axis=0))
        goal = tolerance if last else 0.1 * now * scale
        W, norm, more, _ = _newton(rows, now, tilt, W, goal, limit)
        passes, limit, ridge = passes + more, max(1, limit - more.max()), ridge / 10
    return W, norm, passes


def _descend(rows, lam, tilt, W, norm, passes, tolerance):
    """Improve W by descent, in place, where `least_tolerance` promises that this meets the tolerance.

    Newton's method may fail if the loss's slope has kinks, and on wide rows if conjugate gradients do not
    resolve lambda. On any data, descent approaches the minimiser; then Newton's method tries again.
    """
    norms = row_norms(rows.X)
    bound = norms.max() / (1 + ROUNDING)  # norms may exceed the public bound by rounding
    rows.exact = True
    for j in np.flatnonzero(norm > tolerance):
        one = slice(j, j + 1)
        pull = rows.n * np.linalg.norm(tilt[:, j])
        least = least_tolerance(rows.n, rows.d, lam[j], bound, rows.loss, pull)
        if least > 2 * tolerance:
            continue

        def gradient(w, one=one):
            passes[one] += 1
            return rows.gradient(w) + lam[one] * w + tilt[:, one]

        def attempt(w, one=one):
            w, reached, more, _ = _newton(rows, lam[one], tilt[:, one], w, tolerance, 2 * LIMIT)
            passes[one] += more
            if reached < norm[one]:
                W[:, one], norm[one] = w, reached
            return norm[one] <= tolerance

        smooth = rows.loss.c * np.mean(norms**2) + lam[j]
        limit = accelerated.steps(smooth, lam[j], norm[j], tolerance)
        accelerated.proximal_descent(gradient, smooth, lam[j], W[:, one].copy(), limit, attempt)


def _newton(rows, lam, tilt, W, goal, limit, hessian=None, further=False):
    """Damped Newton steps from W until every restart's gradient norm is at most goal.

    hessian: the data's Hessians near W, used at first instead of those at W. further: take one more step
    after the goal is met, without computing the gradient at its end. Returns weights, gradient norms
    (before the extra step), passes over the rows and the last Hessians.

    A trial point is accepted if its gradient norm is at most half of the smallest so far (Newton's fast
    phase), or if the objective still falls there along the step, so that by convexity it has decreased.
    Otherwise the step is shortened. The objective's value is not used, because its rounding would hide half
    of the weights' digits. The old Hessian is kept while the gradient norm is small and falls fast.
    """
    restarts = W.shape[1]
    W = W.copy()
    gradient, direction = np.zeros_like(W), np.zeros_like(W)
    norm, best = np.full(restarts, np.nan), np.full(restarts, np.inf)
    step, slope = np.ones(restarts), np.zeros(restarts)
    stalled, passes = np.zeros(restarts, dtype=int), np.zeros(restarts, dtype=int)
    renew = hessian is None
    hessian = rows.hessians(restarts) if renew else hessian
    goal = np.broadcast_to(goal, restarts)
    active = np.arange(restarts)  # the first trial points are the starting points
    for _ in range(limit):
        passes[active] += 1
        trial = W[:, active] + step[active] * direction[:, active]
        moved = step[active] * np.linalg.norm(direction[:, active], axis=0)
        new = rows.hessians(len(active)) if renew else None
        ascent = rows.gradient(trial, new) + lam[active] * trial + tilt[:, active]
        trial_norm = np.linalg.norm(ascent, axis=0)
        trial_slope = (ascent * direction[:, active]).sum(axis=0)
        halved = trial_norm <= best[active] / 2
        accepted = (halved | (trial_slope <= 0)) & np.isfinite(trial_norm)
        slow = ~accepted | (trial_norm > 0.03 * np.fmin(norm[active], 0.1 * rows.size))

        taken = active[accepted]
        W[:, taken], gradient[:, taken] = trial[:, accepted], ascent[:, accepted]
        norm[taken] = trial_norm[accepted]
        if renew:
            hessian[:, taken] = new[:, accepted]
        best[active] = np.fmin(best[active], norm[active])
        stalled[active] = np.where(halved, 0, stalled[active] + 1)
        # Secant method: a linear slope would be zero at this share of the step.
        root = slope[active] / (slope[active] - trial_slope)
        step[active] *= np.where(accepted, 4.0, np.fmin(np.fmax(root, 0.1), 0.5))
        step[active] = np.fmin(step[active], 1.0)

        length = np.linalg.norm(W[:, active], axis=0)
        terms = rows.size + np.linalg.norm(tilt[:, active], axis=0) + lam[active] * length
        # At a kink of the slope, even a step as short as rounding may be rejected.
        lost = ~accepted & (moved <= 8 * EPS * length)
        lost |= norm[active] <= 8 * EPS * terms  # the gradient is only rounding error
        stuck = (stalled[active] > 10) & lost | (step[active] < LEAST_STEP)
        going = (norm[active] > goal[active]) & ~stuck
        turning, active = active[going & accepted], active[going]
        if not len(active):
            break
        renew = rows.implicit or (bool(slow[going].any()) and not rows.loss.quadratic)
        direction[:, turning] = rows.directions(
            hessian[:, turning], lam[turning], gradient[:, turning], goal[turning]
        )
        slope[turning] = (gradient[:, turning] * direction[:, turning]).sum(axis=0)
    met = norm <= goal
    if further and met.any():
        W[:, met] += rows.directions(hessian[:, met], lam[met], gradient[:, met], goal[met])
    return W, norm, passes, hessian
