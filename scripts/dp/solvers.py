"""Newton's method on many tilted objectives at once.

All restarts share rows, loss and regularisation and differ in a linear term, so that one pass over
the rows serves them all: two matrix products and one exponential per row and restart give every
gradient, one more product every Hessian.
"""

import numpy as np

from dp import losses

BLOCK_ELEMENTS = 1 << 17  # margins per block of rows: a few arrays of 1 MB, within the cache
DIRECT_COLUMNS = 64  # up to here Hessians are formed; beyond, conjugate gradients use products
CURVATURE_ELEMENTS = 1 << 23  # curvatures kept for conjugate gradients: 64 MB
LEAST_STEP = 1e-8


class Info(dict):
    """Per restart: iterations, gradient_norm, status; as keys and as attributes."""

    __getattr__ = dict.__getitem__


def minimise(
    X, y, lam, linear=None, loss="logistic", initial=None, tolerance=1e-9, max_iterations=100
):
    """Minimise mean_i loss(y_i w.x_i) + lam/2 ||w||^2 + linear_j . w / n for every restart j.

    X: (n, d), any real type, possibly memory-mapped: rows are converted block by block. y: (n,) in
    {-1, 1}. lam: positive, one number or one per restart. linear: (restarts, d) or (d,); None is one
    row of zeros. initial: (d,) or (restarts, d), a starting point.

    Returns weights (restarts, d) and `Info`. gradient_norm is the Euclidean norm of the objective's
    gradient in double precision at the returned weights; status is "ok" where it is at most
    `tolerance`, "not_converged" where it is not, "not_finite" for a linear term that is not finite
    (weights NaN). By strong convexity the returned point lies within gradient_norm/lam of the
    minimiser.

    Damped Newton on the norm of the gradient: along the Newton step that norm falls at rate 1, and
    where the Hessian is at least lam it has no stationary point but the minimiser.
    """
    X, y, lam, linear, W, loss = _check(X, y, lam, linear, initial, loss)
    problem = _Problem(X, y, lam, linear, loss)
    finite = np.isfinite(linear).all(axis=1)
    W = np.where(finite[:, None], W, 0.0)
    gradient_norm = np.full(len(W), np.nan)
    iterations = np.zeros(len(W), dtype=int)

    active = np.flatnonzero(finite)
    point = W[active]
    gradient, hessian = problem.evaluate(active, point)
    norm = np.linalg.norm(gradient, axis=1)
    step = np.ones(len(active))
    for iteration in range(max_iterations + 1):
        done = (norm <= tolerance) | (step < LEAST_STEP)
        if done.any() or iteration == max_iterations:
            stop = np.ones_like(done) if iteration == max_iterations else done
            W[active[stop]], gradient_norm[active[stop]] = point[stop], norm[stop]
            iterations[active[stop]] = iteration
            active, point, gradient, norm, step = (
                values[~stop] for values in (active, point, gradient, norm, step)
            )
            hessian = hessian[~stop]
        if not len(active):
            break
        direction = problem.newton(active, point, gradient, hessian)
        trial = point + step[:, None] * direction
        trial_gradient, trial_hessian = problem.evaluate(active, trial)
        trial_norm = np.linalg.norm(trial_gradient, axis=1)
        accepted = trial_norm <= (1 - 0.1 * step) * norm
        point[accepted], gradient[accepted] = trial[accepted], trial_gradient[accepted]
        norm[accepted], hessian[accepted] = trial_norm[accepted], trial_hessian[accepted]
        step = np.where(accepted, np.minimum(1.0, 4 * step), step / 4)
    W[~finite] = np.nan
    status = np.where(gradient_norm <= tolerance, "ok", "not_converged")
    status[~finite] = "not_finite"
    return W, Info(iterations=iterations, gradient_norm=gradient_norm, status=status)


def _check(X, y, lam, linear, initial, loss):
    loss = losses.get(loss)
    y = np.asarray(y)
    if np.ndim(X) != 2 or 0 in np.shape(X) or y.shape != (len(X),):
        raise ValueError(f"X must be (n, d) and y (n,), not {np.shape(X)} and {y.shape}")
    if not np.isin(y, (-1, 1)).all():
        raise ValueError("labels must be -1 or 1")
    d = X.shape[1]
    linear = np.zeros((1, d)) if linear is None else np.atleast_2d(np.asarray(linear, dtype=float))
    if linear.shape[1:] != (d,):
        raise ValueError(f"linear must be (restarts, {d}), not {linear.shape}")
    lam = np.broadcast_to(np.asarray(lam, dtype=float), len(linear))
    if not (np.isfinite(lam) & (lam > 0)).all():
        raise ValueError(f"lambda must be a finite number > 0, not {lam[~(lam > 0)][:1]}")
    W = np.zeros_like(linear)
    if initial is not None:
        W[:] = initial
    return X, y.astype(float), lam, linear, W, loss


class _Problem:
    """Gradients and Hessians of all restarts, in passes over blocks of rows."""

    def __init__(self, X, y, lam, linear, loss):
        self.X, self.y, self.lam, self.linear, self.loss = X, y, lam, linear, loss
        self.n, self.d = X.shape
        self.direct = self.d <= DIRECT_COLUMNS
        self.upper = np.triu_indices(self.d)

    def blocks(self, restarts):
        rows = max(64, BLOCK_ELEMENTS // max(restarts, self.d))
        for start in range(0, self.n, rows):
            part = slice(start, start + rows)
            yield part, np.asarray(self.X[part], dtype=float) * self.y[part, None]

    def evaluate(self, active, W):
        """Gradients (restarts, d) and, where Hessians are formed, their packed upper triangles."""
        gradient = np.zeros_like(W)
        hessian = np.zeros((len(W), len(self.upper[0]) if self.direct else 0))
        for _, rows in self.blocks(len(W)):
            slope, curvature = self.loss.slopes(rows @ W.T)
            gradient += slope.T @ rows
            if self.direct:
                hessian += curvature.T @ (rows[:, self.upper[0]] * rows[:, self.upper[1]])
        gradient /= self.n
        gradient += self.lam[active, None] * W + self.linear[active] / self.n
        return gradient, hessian / self.n

    def newton(self, active, W, gradient, hessian):
        """Newton directions: exact where Hessians are formed, else by conjugate gradients."""
        if not self.direct:
            return self._conjugate_gradients(active, W, gradient)
        full = np.empty((len(W), self.d, self.d))
        full[:, self.upper[0], self.upper[1]] = hessian
        full[:, self.upper[1], self.upper[0]] = hessian
        diagonal = np.arange(self.d)
        full[:, diagonal, diagonal] += self.lam[active, None]
        return -np.linalg.solve(full, gradient[:, :, None])[:, :, 0]

    def _conjugate_gradients(self, active, W, gradient):
        """Truncated at a residual of min(0.1, sqrt(||g||)) ||g||: superlinear convergence."""
        chunk = max(1, CURVATURE_ELEMENTS // self.n)
        parts = [slice(k, k + chunk) for k in range(0, len(W), chunk)]
        return np.concatenate([self._solve(self.lam[active[p]], W[p], gradient[p]) for p in parts])

    def _solve(self, lam, W, gradient):
        curvature = np.empty((self.n, len(W)))
        for part, rows in self.blocks(len(W)):
            curvature[part] = self.loss.slopes(rows @ W.T)[1]
        norm = np.linalg.norm(gradient, axis=1)
        target = np.minimum(0.1, np.sqrt(norm)) * norm
        direction = np.zeros_like(W)
        residual = -gradient
        conjugate = residual.copy()
        square = np.einsum("ij,ij->i", residual, residual)
        for _ in range(2 * self.d):
            if (np.sqrt(square) <= target).all():
                break
            product = lam[:, None] * conjugate
            for part, rows in self.blocks(len(W)):
                product += ((rows @ conjugate.T) * curvature[part]).T @ rows / self.n
            bend = np.einsum("ij,ij->i", conjugate, product)
            length = np.divide(square, bend, out=np.zeros_like(square), where=square > 0)
            direction += length[:, None] * conjugate
            residual -= length[:, None] * product
            new = np.einsum("ij,ij->i", residual, residual)
            ratio = np.divide(new, square, out=np.zeros_like(square), where=square > 0)
            conjugate = residual + ratio[:, None] * conjugate
            square = new
        return direction
