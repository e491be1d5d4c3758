"""Passes over the rows, in cached blocks, for gradients and Hessians of many restarts.

Arrays hold one column per restart.
"""

from collections.abc import Iterator

import numpy as np

from dp.rows import slices

BLOCK = 1 << 19  # bytes of a block of margins, which fits in the L2 cache with its results
COPIED = 1 << 26  # maximum bytes (64 MB) of a copy of wide rows in the products' precision
PATIENCE = 20  # number of conjugate gradient steps that take as long as forming a preconditioner
FORMED = 1024  # maximum number of columns for exact directions, from a Hessian of 8 MB
EPS = np.finfo(float).eps


class Passes:
    """Gradients and Hessians of the loss on the rows, in one precision.

    X: (n, d), an array or `dp.rows.Rows`. y: (n,). loss: a `dp.losses.MarginLoss`. size: norm of a
    typical row. dtype: precision of the products in gradients.
    """

    def __init__(
        self, X: np.ndarray, y: np.ndarray, loss: object, size: float, dtype: type
    ) -> None:
        self.X, self.y, self.loss, self.size, self.dtype = X, y, loss, size, dtype
        self.n, self.d = X.shape

    def blocks(self, restarts: int, dtype: type) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (slice, rows) from the first row to the last."""
        count = BLOCK // np.dtype(dtype).itemsize // max(restarts, self.width // 2)
        count = max(64, min(count, 4096))
        for part in slices(self.n, count):
            yield part, self.convert(part, dtype)

    def gradient(self, W: np.ndarray, hessians: np.ndarray | None = None) -> np.ndarray:
        """Mean gradient at W (d, restarts), in double precision. Fills `hessians`, if given."""
        gradient = np.zeros(W.shape)
        W = W.astype(self.dtype)
        for part, rows in self.blocks(W.shape[1], self.dtype):
            y = self.y[part, None]
            z = rows @ W
            if self.loss.residual:
                z -= y if y.dtype.kind == "i" else y.astype(self.dtype)
            elif not self.signed:
                z *= y
            if hessians is None:
                slope = self.loss.slope(z)
            else:
                slope, curvature = self.loss.slopes(z)
                self.collect(hessians, part, rows, curvature)
                del curvature
            if not (self.signed or self.loss.residual):
                slope *= y
            # The product is faster if its result has more rows than columns.
            gradient += (slope.T @ rows).T if W.shape[1] > self.d else rows.T @ slope
            del z, slope  # frees cache
        return gradient / self.n


class Direct(Passes):
    """Passes that form each restart's Hessian, and store its upper triangle as a column."""

    implicit, signed = False, True

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        loss: object,
        size: float,
        dtype: type,
        product_dtype: type = np.float32,
    ) -> None:
        super().__init__(X, y, loss, size, dtype)
        self.product_dtype = product_dtype
        self.triangle = np.triu_indices(self.d)
        # After this array is freed, malloc keeps enough memory for a block.
        np.empty(4 * BLOCK, dtype=np.uint8)

    @property
    def width(self) -> int:
        return self.d * (self.d + 1) // 2

    def convert(self, part: slice, dtype: type) -> np.ndarray:
        """Rows y_i x_i, or x_i for residual losses, in column-major order."""
        if self.loss.residual:
            return self.X[part].astype(dtype, order="F")
        return np.multiply(self.X[part], self.y[part, None], dtype=dtype, order="F")

    def gradient(self, W: np.ndarray, hessians: np.ndarray | None = None) -> np.ndarray:
        """As `Passes.gradient`, but if all restarts are at one point, they share a pass."""
        if not (W[:, :1] == W).all():
            return super().gradient(W, hessians)
        one = None if hessians is None else self.hessians(1)
        gradient = super().gradient(W[:, :1], one)
        if hessians is not None:
            hessians += one
        return np.repeat(gradient, W.shape[1], axis=1)

    def hessians(self, restarts: int) -> np.ndarray:
        return np.zeros((self.width, restarts))

    def collect(
        self, hessians: np.ndarray, part: slice, rows: np.ndarray, curvature: np.ndarray
    ) -> None:
        """Add sum_i l''(z_i) x_i x_i', by a matrix product with the products of all pairs of columns."""
        rows = rows.astype(self.product_dtype, copy=False)
        products = np.empty((self.width, len(rows)), dtype=self.product_dtype)
        start = 0
        for j, column in enumerate(rows.T):
            stop = start + self.d - j
            np.multiply(rows.T[j:], column, out=products[start:stop])
            start = stop
        hessians += products @ curvature.astype(self.product_dtype, copy=False)

    def directions(
        self, hessians: np.ndarray, lam: np.ndarray, gradient: np.ndarray, goal: float | np.ndarray
    ) -> np.ndarray:
        full = np.empty((len(lam), self.d, self.d))
        i, j = self.triangle
        full[:, i, j] = full[:, j, i] = hessians.T / self.n
        diagonal = np.arange(self.d)
        # lam and an allowance for rounding keep the matrices from being singular.
        rounding = self.d * EPS * np.trace(full, axis1=1, axis2=2)
        full[:, diagonal, diagonal] += (lam + rounding)[:, None]
        return -np.linalg.solve(full, gradient.T[:, :, None])[:, :, 0].T


class Implicit(Passes):
    """Passes that keep curvatures (n, restarts) instead of Hessians, for conjugate gradients."""

    implicit, signed = True, False
    spectrum, exact = None, False

    def __init__(
        self, X: np.ndarray, y: np.ndarray, loss: object, size: float, product_dtype: type
    ) -> None:
        super().__init__(X, y, loss, size, np.float64)
        self.width = self.d // 2  # with few restarts, blocks of wide rows exceed the L2 cache
        self.product_dtype = product_dtype
        self.copies = {}
        if self.n * self.d * np.dtype(product_dtype).itemsize <= COPIED:
            self.copies[product_dtype] = np.asarray(X[:]).astype(product_dtype, "C", copy=False)

    def convert(self, part: slice, dtype: type) -> np.ndarray:
        """Rows x_i, uncopied if possible. Labels multiply the margins, not the rows, which is cheaper."""
        if dtype in self.copies:
            return self.copies[dtype][part]
        return self.X[part].astype(dtype, order="C", copy=False)

    def hessians(self, restarts: int) -> np.ndarray:
        """An empty array for curvatures (n, restarts), which `collect` fills."""
        return np.empty((self.n, restarts), dtype=self.product_dtype)

    def collect(
        self, hessians: np.ndarray, part: slice, rows: np.ndarray, curvature: np.ndarray
    ) -> None:
        hessians[part] = curvature

    def directions(
        self, hessians: np.ndarray, lam: np.ndarray, gradient: np.ndarray, goal: np.ndarray
    ) -> np.ndarray:
        """Approximate Newton directions (d, restarts) by preconditioned conjugate gradients."""
        if self.exact and self.d <= FORMED:
            columns = zip(hessians.T, lam, -gradient.T, strict=True)
            return np.reshape([self.solve(*column) for column in columns], gradient.T.shape).T
        norm = np.linalg.norm(gradient, axis=0)
        target = np.maximum(np.minimum(0.1, np.sqrt(norm / self.size)) * norm, 0.3 * goal)
        direction, conjugate, square = np.zeros_like(gradient), np.zeros_like(gradient), np.inf
        residual = -gradient
        mean = hessians.mean(axis=0, dtype=float)
        for count in range(10 * PATIENCE):
            if (np.linalg.norm(residual, axis=0) <= target).all():
                break
            if count == PATIENCE:
                self.spectrum = self.eigen(hessians.mean(axis=1, dtype=float))
                square = np.inf  # restarts conjugate gradients with the new preconditioner
            solved = self.precondition(residual, mean, lam)
            previous, square = square, (residual * solved).sum(axis=0)
            conjugate = solved + np.nan_to_num(square / previous, posinf=0.0) * conjugate
            product = self.product(hessians, conjugate) + lam * conjugate
            length = np.nan_to_num(square / (conjugate * product).sum(axis=0), posinf=0.0)
            direction += length * conjugate
            residual = residual - length * product
        return direction

    def product(self, curvature: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Mean of l''(z_i) x_i x_i'v, (d, restarts)."""
        product = np.zeros(V.shape)
        V = V.astype(self.product_dtype)
        for part, rows in self.blocks(V.shape[1], self.product_dtype):
            z = rows @ V
            z *= curvature[part]
            product += rows.T @ z
        return product / self.n

    def form(self, curvature: np.ndarray) -> np.ndarray:
        """The Hessian (d, d) with curvatures (n,)."""
        total = np.zeros((self.d, self.d))
        for part, rows in self.blocks(1, self.product_dtype):
            rows = rows * np.sqrt(curvature[part, None])
            total += rows.T @ rows
        return total / self.n

    def solve(self, curvature: np.ndarray, lam: float, b: np.ndarray) -> np.ndarray:
        """(H + lam)^-1 b for one restart, with an allowance for rounding as in `Direct`."""
        hessian = self.form(curvature)
        hessian[np.diag_indices(self.d)] += lam + self.d * EPS * np.trace(hessian)
        return np.linalg.solve(hessian, b)

    def eigen(self, curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, per unit of mean curvature, and eigenvectors of one Hessian for all restarts."""
        hessian = np.nan_to_num(self.form(curvature), posinf=0.0, neginf=0.0)
        values, vectors = np.linalg.eigh(hessian)
        return np.maximum(values, 0.0)[:, None] / curvature.mean(), vectors

    def precondition(self, residual: np.ndarray, mean: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """Residuals (d, restarts) times an inverse Hessian, approximated from `spectrum` if known."""
        if self.spectrum is None:
            return residual
        values, vectors = self.spectrum
        return vectors @ ((vectors.T @ residual) / (values * mean + lam))
