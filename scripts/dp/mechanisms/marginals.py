"""Linear classifiers from noisy tables of counts."""

import math
from typing import NamedTuple

import numpy as np

from dp.mechanisms import Mechanism, register
from dp.noise import gaussian
from dp.options import Between, Option, Optional, Whole
from dp.proofs import quadratics
from dp.rows import slices
from dp_privacy.errors import Refused
from dp_privacy.profiles import Gaussian

LEVELS = 5  # levels of a column without groups
RIDGE = 0.03  # minimum ridge, for columns in units of `Variables.unit`
KEPT = 1 << 20  # maximum number of table cells held at once
# e of `PrivateMarginals` is this many standard deviations above the mean under noise alone.
SURE = 4.0


class Sizes(Option):
    """A list of whole numbers, each at least 1."""

    what = "a list of whole numbers, each at least 1"

    def takes(self, value: object) -> bool:
        return isinstance(value, list | tuple) and bool(value) and all(map(Whole().takes, value))


class Variables(NamedTuple):
    """How a row encodes one level of each of k variables, with K levels in all.

    sizes: (k,), numbers of levels.
    part: (K, k), zeros and ones that assign levels to variables.
    columns: (K, d), the values of each level in the columns, in units of `unit`.
    grouped: number of columns in groups.
    """

    sizes: np.ndarray
    part: np.ndarray
    columns: np.ndarray
    unit: float
    grouped: int

    def levels(self, X: np.ndarray) -> np.ndarray:
        """Zeros and ones (n, K) that mark the rows' levels, one per variable in each row."""
        X, first, marks = np.asarray(X, dtype=float), 0, np.zeros((len(X), len(self.part)))
        for variable, size in enumerate(self.sizes):
            if self.grouped:
                chosen = X[:, first : first + size].argmax(axis=1)
            else:
                place = (X[:, variable] / self.unit + 1) / 2 * (size - 1)
                chosen = np.clip(np.rint(place), 0, size - 1).astype(int)
            marks[np.arange(len(X)), first + chosen] = 1.0
            first += size
        return marks


def variables(d: int, bound: float, groups: tuple | None = None) -> Variables:
    """The `Variables` of rows with d columns and norm at most `bound`."""
    sizes = np.array(groups or [LEVELS] * d)
    grouped = int(sizes.sum()) if groups else 0
    part = np.repeat(np.eye(len(sizes)), sizes, axis=0)
    if groups:
        ones = len(sizes) + d - grouped
        return Variables(sizes, part, np.eye(grouped, d), bound / math.sqrt(ones), grouped)
    values = part * np.tile(np.linspace(-1, 1, LEVELS), d)[:, None]
    return Variables(sizes, part, values, bound / math.sqrt(d), 0)


@register("private_marginals")
class PrivateMarginals(Mechanism):
    """Linear discriminants from noisy tables of each variable with the class and each pair of variables.

    Any row has one level of each of k variables (`Variables.levels`), so a record is in one cell of
    every table. Replacing it changes each table by at most sqrt(2), and may change all tables. The
    noise has standard deviation s on the k tables with the class, and t on the m = k (k - 1)/2
    tables of two variables. In units of the noise, the squared distance between neighbours is at
    most 2 k/s^2 + 2 m/t^2. The first term is share mu^2, and the second (1 - share) mu^2. So with a
    public n, the release is exactly mu-Gaussian DP (Dong, Roth, Su, JRSS B 84, 2022, theorem 2.7).

    Ferrando and Sheldon (TMLR 2025) form sufficient statistics from such tables. Their AIM chooses
    tables and fits a graphical model. Here, all tables are released.

    All else is post-processing, in closed form. Class sizes are the minimum-variance weighted mean
    of the class tables' sums. A variable's counts are the nearest nonnegative ones with sum n. Each
    table is estimated by its expectation under independence (for two variables: within classes)
    plus f times the remainder. f = max(0, 1 - e/|remainder|^2) is James and Stein's factor, where e
    is four standard deviations above the mean of |remainder|^2 under noise alone. So if noise hides
    the tables of two variables, the model is naive Bayes. If it hides all tables, the model is the
    class rate. A ridge of max(0.03, 2 k/(n mu)) is added to the covariance within classes. The
    weights are the inverse of this sum times the difference of the class means. The intercept is
    Bayes-optimal for normal rows with this covariance.

    groups: sizes of one-hot variables, in the order of their columns, which come first. Other
    columns, such as a constant, get weights of 0. A level is marked by bound/sqrt(k + number of
    other columns): a 1, after the largest possible norm is scaled to `bound`. Without groups, every
    column is a variable, rounded to one of five values between -bound/sqrt(d) and bound/sqrt(d).
    """

    delta = "needed"
    needs_lambda = False
    options = {"groups": Optional(Sizes()), "share": Between(0.7, low=1e-3, high=1)}

    def _check_together(self, n, d, p):
        if p.groups and sum(p.groups) > d:
            raise Refused(f"groups: {sum(p.groups)} levels in {d} columns: each level is a column")

    def _scales(self, d, p):
        """Standard deviations of the noise on tables with the class and tables of two variables."""
        k = len(p.groups or range(d))
        others = k * (k - 1) / 2
        share = p.share if others else 1.0
        return math.sqrt(2 * k / share) / p.mu, math.sqrt(2 * others / (1 - p.share)) / p.mu

    def _guarantee(self, n, d, p):
        own, other = self._scales(d, p)
        reason = (
            f"noise of standard deviation {own:.6g} on the counts of every variable with the class, and "
            f"{other:.6g} on those of every two variables, in each of which a record is in one cell: "
            f"together Gaussian DP with mu = {p.mu:.6g}"
        )
        return p.proven(reason, profile=Gaussian(p.mu))

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        read, (own, other) = variables(d, p.bound, p.groups), self._scales(d, p)
        K, t = len(read.part), np.asarray(y) > 0
        counts, pairs = np.zeros((K, 2)), np.zeros((K, K))
        for rows in slices(n, max(1, KEPT // K)):
            marks = read.levels(X[rows])
            counts += marks.T @ np.stack([~t[rows], t[rows]], axis=1)
            pairs += marks.T @ marks
        at = np.nonzero(np.triu(read.part @ read.part.T == 0))
        # No table of a variable with itself is released.
        tables = np.concatenate([counts.ravel() / own, pairs[at] / (other or 1.0)])
        ridge = max(RIDGE, 2 * len(read.sizes) / (n * p.mu))
        weights, intercept = np.zeros((draws, d)), np.zeros(draws)
        for some in slices(draws, max(1, KEPT // K**2)):
            noise = gaussian(len(tables), 1.0, some.stop - some.start, rng)
            released = np.asarray(tables + noise)
            own_part = own * released[:, : 2 * K].reshape(-1, K, 2)
            noisy = np.zeros((len(own_part), K, K))
            noisy[:, *at] = other * released[:, 2 * K :]
            noisy_tables = own_part, noisy + noisy.transpose(0, 2, 1)
            weights[some], intercept[some] = discriminants(
                *noisy_tables, n, (own, other), read, ridge
            )
        return weights / read.unit, {"intercept": intercept, "scale": own}


def discriminants(
    counts: np.ndarray,
    pairs: np.ndarray,
    n: int,
    scales: tuple[float, float],
    read: Variables,
    ridge: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Weights (draws, d) for columns in units of `read.unit`, and intercepts (draws,).

    counts: (draws, K, 2), noisy counts of each level in each class.
    pairs: (draws, K, K), noisy counts of each pair of levels, 0 for two levels of one variable.
    scales: standard deviations of the noise on counts and pairs.
    """
    part, sizes, columns = read.part, read.sizes, read.columns
    centre = np.eye(len(part)) - (part / sizes) @ part.T
    total = (1 / sizes).sum()
    sums = part.T @ counts
    least = min(n / 2, max(1.0, 2 * scales[0] / math.sqrt(total)))
    classes = (sums / sizes[:, None]).sum(axis=1) / total
    second = np.clip((n + classes[:, 1] - classes[:, 0]) / 2, least, n - least)
    classes = np.stack([n - second, second], axis=1)[:, None]
    noisy = (counts - (part / sizes) @ (sums - classes)).sum(axis=2)
    levels = np.concatenate([_possible(noisy[:, own > 0], n) for own in part.T], axis=1)[:, :, None]

    known = levels * classes / n
    rest = centre @ (counts - known) @ (np.eye(2) - 0.5)
    factors = _kept((part.T @ rest**2).sum(axis=2), sizes - 1.0, scales[0])
    table = known + rest * (part @ factors[:, :, None])
    means = columns.T @ (table / classes)

    known = (table / classes) @ table.transpose(0, 2, 1)
    rest = centre @ (pairs - known) @ centre
    factors = _kept(part.T @ rest**2 @ part, np.outer(sizes - 1.0, sizes - 1.0), scales[1])
    same = part @ part.T > 0
    within = (
        np.where(same, levels * np.eye(len(part)) - known, rest * (part @ factors @ part.T)) / n
    )
    inverse = quadratics.inverse(columns.T @ within @ columns, ridge)
    weights = (inverse @ (means[:, :, 1] - means[:, :, 0])[:, :, None])[:, :, 0]
    middle = (weights * means.mean(axis=2)).sum(axis=1)
    return weights, np.log(second / (n - second)) - middle


def _kept(squares, freedom, scale):
    """James and Stein's factors for sums of squares with these degrees of freedom."""
    expected = (freedom + SURE * np.sqrt(2 * freedom)) * scale**2
    return np.maximum(0.0, 1 - expected / np.maximum(squares, 1e-300))


def _possible(counts, n):
    """The nearest nonnegative counts (draws, levels) with sum n."""
    ordered = np.sort(counts, axis=1)[:, ::-1]
    over = (np.cumsum(ordered, axis=1) - n) / np.arange(1, counts.shape[1] + 1)
    last = (ordered > over).sum(axis=1) - 1
    return np.maximum(counts - np.take_along_axis(over, last[:, None], axis=1), 0.0)
