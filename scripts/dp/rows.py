"""Simulated data, rows of bounded norm, folds and nested training subsets."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from dp_privacy.errors import Refused

BLOCK_ROWS = 65536  # rows simulated, or converted to float64 and checked, at a time
NUMBERS = "numbers"  # the value of `classes` for targets in [-1, 1]
ROUNDING = 1e-12  # relative excess of a norm over its bound that counts as rounding


def uniform_sphere(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Points uniform on the unit sphere, (rows, columns)."""
    points = rng.standard_normal((rows, columns))
    for part in slices(rows):
        points[part] /= np.linalg.norm(points[part], axis=1, keepdims=True)
    return points


def slices(rows: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Consecutive slices of `size` rows that cover all rows; the last may be shorter."""
    return (slice(start, min(rows, start + size)) for start in range(0, rows, size))


def simulate_separable(
    rows: int,
    columns: int,
    margin: float,
    rng: np.random.Generator,
    separator: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Uniform points on the unit sphere, separable through the origin with a margin.

    Points x with |u.x| < margin are redrawn, where u is the unit separator; y = sgn(u.x) (Chaudhuri,
    Monteleoni, NIPS 2008, section 6). Returns X (rows, columns), y (rows,) in {-1, 1} and u (columns,),
    which is uniformly random by default.
    """
    if not 0 <= margin < 1:
        raise ValueError(f"a margin on the unit sphere lies in [0, 1), not {margin}")
    if separator is None:
        separator = uniform_sphere(1, columns, rng)[0]
    X, filled = np.empty((rows, columns)), 0
    while filled < rows:
        for part in slices(rows):  # another block size would change the draws
            points = uniform_sphere(part.stop - part.start, columns, rng)
            outside = points[np.abs(points @ separator) >= margin][: rows - filled]
            X[filled : filled + len(outside)] = outside
            filled += len(outside)
    return X, _labels(X @ separator), separator


def simulate_unseparable(
    rows: int,
    columns: int,
    band: float,
    flip_probability: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Uniform points on the unit sphere, with random label flips near the separator u.

    Labels with |u.x| < band are flipped with `flip_probability` (Chaudhuri, Monteleoni, NIPS 2008, section
    6). Returns X, y and u as `simulate_separable` does.
    """
    _check_probability(flip_probability)
    separator = uniform_sphere(1, columns, rng)[0]
    X = uniform_sphere(rows, columns, rng)
    score = X @ separator
    flipped = (np.abs(score) < band) & (rng.random(rows) < flip_probability)
    return X, np.where(flipped, -1, 1).astype(np.int8) * _labels(score), separator


def simulate_mixture(
    rows: int, means: np.ndarray, deviations: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Points of K Gaussian classes with diagonal covariance; class sizes differ by at most one.

    means, deviations: (K, d). Returns X (rows, d) and y (rows,), 0 to K - 1, in random order.
    """
    means, deviations = np.asarray(means, dtype=float), np.asarray(deviations, dtype=float)
    if means.ndim != 2 or means.shape != deviations.shape or not (deviations > 0).all():
        raise ValueError(
            f"a mixture needs as many positive deviations as means, not {means.shape} and "
            f"{deviations.shape}"
        )
    y = rng.permutation(np.arange(rows) % len(means))
    X = rng.standard_normal((rows, means.shape[1]))
    for part in slices(rows):
        X[part] *= deviations[y[part]]
        X[part] += means[y[part]]
    return X, y.astype(np.int8)


def simulate_linear(
    rows: int,
    columns: int,
    condition: float,
    noise: float,
    rng: np.random.Generator,
    outliers: float = 0.0,
    degrees: float | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows in an ellipsoid within the unit ball, and targets that are linear in them plus noise.

    X = Z diag(s) Q' with Z uniform on the unit sphere, s geometric from 1 to 1/condition, and Q a random
    rotation. The weights w are random. The scores x.w have variance 0.09, to which all axes contribute
    equally in expectation. y = x.w + noise t, where t is standard normal or, with `degrees`, Student's t.
    With probability `outliers`, a target becomes -1 or 1 at random. Returns X, y and the weights.
    """
    if not condition >= 1 or not noise >= 0 or not 0 <= outliers < 1:
        raise ValueError(
            f"linear data need a condition >= 1, noise >= 0 and outliers in [0, 1), not {condition}, "
            f"{noise}, {outliers}"
        )
    scales = np.geomspace(1, 1 / condition, columns)
    rotation = np.linalg.qr(rng.standard_normal((columns, columns)))[0]
    direction = uniform_sphere(1, columns, rng)[0]
    weights = rotation @ (0.3 * np.sqrt(columns) * direction / scales)
    X = uniform_sphere(rows, columns, rng)
    for part in slices(rows):
        X[part] = (X[part] * scales) @ rotation.T
    error = rng.standard_normal(rows) if degrees is None else rng.standard_t(degrees, rows)
    y = X @ weights + noise * error
    odd = rng.random(rows) < outliers
    return _at_most(X, 1.0), np.where(odd, np.where(rng.random(rows) < 0.5, -1.0, 1.0), y), weights


def simulate_expanded_band(
    rows: int,
    columns: int,
    margin: float,
    band: float,
    flip_probability: float,
    rng: np.random.Generator,
    estimate: Callable | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Separable points, with random label flips near an *estimated* separator.

    Labels within `band` of the estimated maximum-margin separator are flipped with `flip_probability`
    (Veldhuizen 2020). No point lies within the margin of the true separator, so fewer labels are flipped
    than by `simulate_unseparable` with the same band.

    estimate: (X, y) -> unit separator, by default `maximum_margin_separator`. Returns X, y and the
    estimated separator.
    """
    _check_probability(flip_probability)
    X, y, _ = simulate_separable(rows, columns, margin, rng)
    estimated = (estimate or maximum_margin_separator)(X, y)
    flipped = (np.abs(X @ estimated) < band) & (rng.random(rows) < flip_probability)
    return X, np.where(flipped, -y, y).astype(np.int8), estimated


def maximum_margin_separator(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Unit vector u that maximises min_i y_i u.x_i on separable data, by scikit-learn's linear SVM.

    With C = 1e8, the squared hinge loss attains the hard margin to about seven digits. Raises ValueError
    for inseparable data.
    """
    from sklearn.svm import LinearSVC  # this import takes 1 s

    machine = LinearSVC(C=1e8, loss="squared_hinge", dual=False, fit_intercept=False, tol=1e-10)
    weights = machine.fit(X, y).coef_[0]
    if not (y * (X @ weights) > 0).all():
        raise ValueError("no separator through the origin was found: the data are not separable")
    return weights / np.linalg.norm(weights)


def _check_probability(flip_probability):
    if not 0 <= flip_probability <= 1:
        raise ValueError(f"a flip probability lies in [0, 1], not {flip_probability}")


def _labels(score):
    return np.where(score > 0, 1, -1).astype(np.int8)


class Rows:
    """Selected rows of an array, without a copy.

    order: row numbers. apply: converts rows to floats when they are read. The array may be memory-mapped.
    """

    ndim, dtype = 2, np.dtype(float)

    def __init__(self, X: np.ndarray, order: np.ndarray, apply: Callable = np.asarray) -> None:
        self.X, self.order, self.apply = X, order, apply
        self.shape = (len(order), apply(X[:1]).shape[1])

    def __len__(self):
        return len(self.order)

    def __getitem__(self, part):
        return self.apply(self.X[self.order[part]])

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self[:], dtype=dtype)


def as_rows(X: object) -> np.ndarray | Rows:
    """X as an array, or X itself if it is `Rows`."""
    return X if isinstance(X, Rows) else np.asarray(X)


def row_norms(X: np.ndarray | Rows) -> np.ndarray:
    """Euclidean norms (n,) of the rows, which are read in blocks."""
    norms = np.empty(len(X))
    for part in slices(len(X)):
        block = np.asarray(X[part], dtype=float)
        norms[part] = np.sqrt(np.einsum("ij,ij->i", block, block))
    return norms


def normalise_rows(X: np.ndarray, bound: float = 1.0) -> np.ndarray:
    """Every row scaled to the norm `bound`, except rows of zeros.

    Each result depends on a single row, so the step costs no privacy.
    """
    _check_bound(bound)
    X, norms, _ = _by_largest(X)
    return _at_most(X * (bound / norms)[:, None], bound)


def clip_rows(X: np.ndarray, bound: float = 1.0) -> np.ndarray:
    """Rows longer than `bound` scaled down to it.

    Like `normalise_rows`, this costs no privacy.
    """
    _check_bound(bound)
    scaled, norms, largest = _by_largest(X)
    with np.errstate(over="ignore"):
        long = norms > bound / largest  # the quotient may overflow, but norms cannot
    clipped = np.where(long[:, None], scaled * (bound / norms)[:, None], X)
    return _at_most(clipped, bound)


def _check_bound(bound):
    if not 1e-100 <= bound <= 1e100:  # squares of norms near the bound must not under- or overflow
        raise ValueError(f"a bound on row norms lies in [1e-100, 1e100], not {bound}")


def _by_largest(X):
    """Return (rows divided by their largest absolute values, norms of the quotients, divisors).

    Norms and divisors of 0 become 1. A divided row's largest square is 1, so no norm underflows.
    """
    X = np.asarray(X, dtype=float)
    largest = np.abs(X).max(axis=1, initial=0.0)
    largest[largest == 0] = 1.0
    scaled = X / largest[:, None]
    norms = row_norms(scaled)
    return scaled, np.where(norms == 0, 1.0, norms), largest


def _at_most(X, bound):
    """Shorten rows whose norms exceed the bound only by rounding."""
    while (over := row_norms(X) > bound).any():
        X[over] *= 1 - 4 * np.finfo(float).eps
    return X


def check_rows(
    X: np.ndarray | Rows, y: np.ndarray, bound: float, classes: int | str | None = None
) -> None:
    """Raise unless every row obeys the public bound and every label is one of the public classes.

    classes: None for labels -1 and 1; a number for labels 0 .. classes - 1; NUMBERS for targets in [-1,
    1]. Rows longer than the bound are refused because noise is calibrated to it.
    """
    X, y = as_rows(X), np.asarray(y)
    if X.ndim != 2 or len(X) == 0 or y.shape != (len(X),):
        raise Refused(f"data must be X (n, d) with n > 0 and y (n,), not {X.shape} and {y.shape}")
    check_labels(y, classes)
    worst, largest = 0, 0.0
    for part in slices(len(X)):
        norms = row_norms(X[part])
        if not np.isfinite(norms).all():
            row = part.start + int(np.argmin(np.isfinite(norms)))
            raise Refused(f"row {row} has a value that is not finite")
        if norms.max() > largest:
            worst, largest = part.start + int(norms.argmax()), norms.max()
    if not largest / (1 + ROUNDING) <= bound:  # a multiple of the bound might overflow
        raise Refused(
            f"row {worst} has norm {largest:.6g}, over the public bound {bound:.6g}: "
            f"normalise or clip the rows first"
        )


def check_labels(y: np.ndarray, classes: int | str | None = None) -> None:
    """Raise unless labels or targets are as `check_rows` allows. Labels must be whole numbers."""
    parts = [y[part] for part in slices(len(y))]
    if classes == NUMBERS and y.dtype.kind == "f":
        if not all((np.abs(part) <= 1).all() for part in parts):
            raise Refused("targets must be numbers from -1 to 1")
    elif classes in (None, NUMBERS):
        if not all(((part == 1) | (part == -1)).all() for part in parts):
            raise Refused("labels must be -1 or 1")
    elif not all(np.isin(part, np.arange(classes)).all() for part in parts):
        raise Refused(f"labels must be integers from 0 to {classes - 1}")


def check_coordinates(
    X: np.ndarray | Rows,
    bound: float | Sequence[float],
    blocks: Sequence[Sequence[int]] = (),
) -> None:
    """Raise unless every |x_j| obeys its public bound, and every block's sum of |x_j|/bound is at most 1.

    bound: for all columns, or one per column. blocks: numbers of each block's columns.
    """
    limits = np.broadcast_to(np.asarray(bound, dtype=float), np.shape(X)[1])
    largest, fullest = np.zeros(len(limits)), np.zeros(len(blocks))
    for part in slices(len(X)):
        size = np.abs(np.asarray(X[part], dtype=float))
        size /= limits
        largest = np.maximum(largest, size.max(axis=0, initial=0.0))
        sums = [size[:, list(block)].sum(axis=1).max(initial=0.0) for block in blocks]
        fullest = np.maximum(fullest, sums)
    j = int(largest.argmax())
    if not largest[j] <= 1 + ROUNDING:
        where = f" in column {j}" if np.ndim(bound) else ""
        raise Refused(
            f"a coordinate of a row{where} is {largest[j] * limits[j]:.6g} in size, over the public bound "
            f"{limits[j]:.6g}: scale the columns to public bounds first (step scale_to_bounds)"
        )
    for block, sums in zip(blocks, fullest, strict=True):
        if not sums <= 1 + ROUNDING:
            raise Refused(
                f"the columns {', '.join(map(str, block))} of a row sum to {sums:.6g} times their public "
                f"bound, so they are not one-hot: state no such block"
            )


def split_folds(
    rows: int, folds: int, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Cross-validation folds: a list of (train, test) index arrays.

    Shuffled rows are cut into `folds` nearly equal parts. Fold k tests on part k and trains on the others.
    Prefixes of `train` are the nested training subsets.
    """
    if not 2 <= folds <= rows:
        raise ValueError(f"{rows} rows cannot be cut into {folds} folds")
    parts = np.array_split(rng.permutation(rows), folds)
    return [
        (rng.permutation(np.concatenate(parts[:k] + parts[k + 1 :])), parts[k])
        for k in range(folds)
    ]


def smallest_training_fold(rows: int, folds: int) -> int:
    """Number of rows in the smallest training part of any fold."""
    return rows - -(-rows // folds)


def simulation_rows(rows: int, has_test: bool = False) -> int:
    """Number of rows that every simulation trains on: all if there is a test part, otherwise 3/4."""
    return rows if has_test else rows - rows // 4


def reshuffle(
    rows: int, rng: np.random.Generator, has_test: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """One simulation: (train, test) index arrays of a random order of the rows.

    train has `simulation_rows` rows, and test the others.
    """
    order = np.arange(rows, dtype=np.int32 if rows < 1 << 31 else np.int64)
    rng.shuffle(order)
    size = simulation_rows(rows, has_test)
    return order[:size], order[size:]
