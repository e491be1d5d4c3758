"""Linear classifiers from private tables of counts: the data are levels of few variables."""

import math
from typing import NamedTuple

import numpy as np

from dp.data.examples import slices
from dp.errors import Refused
from dp.mechanisms import Mechanism, register
from dp.mechanisms.options import Between, Option, Optional, Whole
from dp.noise import gaussian
from dp.privacy import quadratics
from dp.privacy.profiles import Gaussian

LEVELS = 5  # of a column that is no part of a group
RIDGE = 0.03  # least, beside covariances of zeros and ones
SURE = 4.0  # standard deviations by which a table must differ from what is known without it


class Sizes(Option):
    """A list of whole numbers, each at least 1."""

    what = "a list of whole numbers, each at least 1"

    def takes(self, value: object) -> bool:
        return isinstance(value, list | tuple) and bool(value) and all(map(Whole().takes, value))


class Variables(NamedTuple):
    """How rows are read as levels of k variables, K levels in all.

    sizes: (k,) number of levels. part: (K, k) zeros and ones, which variable a level is of. columns: (K, d)
    what a level is in the columns, where a one stands for `unit`. grouped: columns that are in groups.
    """

    sizes: np.ndarray
    part: np.ndarray
    columns: np.ndarray
    unit: float
    grouped: int

    def levels(self, X: np.ndarray) -> np.ndarray:
        """Which levels rows have, (n, K) zeros and ones: exactly one of every variable, for any numbers."""
        X, first, found = np.asarray(X, dtype=float), 0, np.zeros((len(X), len(self.part)))
        for variable, size in enumerate(self.sizes):
            if self.grouped:
                chosen = X[:, first : first + size].argmax(axis=1)
            else:
                place = (X[:, variable] / self.unit + 1) / 2 * (size - 1)
                chosen = np.clip(np.rint(place), 0, size - 1).astype(int)
            found[np.arange(len(X)), first + chosen] = 1.0
            first += size
        return found


def variables(d: int, bound: float, groups: tuple | None = None) -> Variables:
    """The `Variables` of rows of norm at most `bound` in d columns; groups as in `PrivateMarginals`."""
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
    """Linear discriminants from noisy tables: of every variable with the class, and of every two variables.

    A row has one level of each of k variables, whatever numbers it holds (`Variables.levels`). So a record
    is in one cell of every table. To replace it moves a table by at most sqrt(2), and all tables by that at
    once if every level and the class change. There are k tables with the class and m = k (k - 1)/2 others,
    with noise of standard deviations s and t. The squared distance of neighbours in units of the noise is
    at most 2 k/s^2 + 2 m/t^2, of which the first term is `share` mu^2 and the second the rest. So the
    release is mu-Gaussian DP, exactly (Dong, Roth, Su, JRSS B 84, 2022, theorem 2.7), where n is public.

    These are the tables of which Ferrando and Sheldon (TMLR 2025) form sufficient statistics. There AIM
    chooses some and fits a graphical model; here all are measured, and what follows is in closed form.

    All that follows is of released numbers. Sizes of classes are the mean of the class tables' sums that
    has the least variance; a variable's counts are the nearest that are possible. A class table is what
    independence says plus f times the rest. A table of two variables is what independence within classes
    says plus f times the rest. Here f = max(0, 1 - e/|rest|^2) is James and Stein's factor, where e is four
    standard deviations above what noise alone has in |rest|^2 on average. So where noise hides everything,
    naive Bayes remains, and then the class rate. The weights are the inverse of the covariance within
    classes with a ridge of max(0.03, 2 k/(n mu)), times the difference of the class means. The intercept is
    that of normal rows with this covariance.

    groups: sizes of one-hot variables, in the order of their columns, which come first. Other columns, such
    as a constant, get a weight of 0. A one is taken to be bound/sqrt(k + number of other columns), as where
    rows are divided by the largest norm. Without groups, every column is a variable, rounded to one of five
    values between -bound/sqrt(d) and bound/sqrt(d).
    """

    delta = "needed"
    needs_lambda = False
    options = {"groups": Optional(Sizes()), "share": Between(0.7, low=0, high=1)}

    def _check_together(self, n, d, p):
        if p.groups and sum(p.groups) > d:
            raise Refused(f"groups: {sum(p.groups)} levels in {d} columns: each level is a column")

    def _scales(self, d, p):
        """Standard deviations on tables with the class, and on tables of two variables."""
        k = len(p.groups or range(d))
        others = k * (k - 1) / 2
        share = p.share if others else 1.0
        return math.sqrt(2 * k / share) / p.mu, math.sqrt(2 * others / (1 - p.share)) / p.mu

    def _guarantee(self, n, d, p):
        """(epsilon, delta)-DP: mu-Gaussian DP, exactly (Dong, Roth, Su, theorem 2.7)."""
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
        for rows in slices(n):
            found = read.levels(X[rows])
            counts += found.T @ np.stack([~t[rows], t[rows]], axis=1)
            pairs += found.T @ found
        at = np.nonzero(np.triu(read.part @ read.part.T == 0))
        # A table of a variable with itself is not released.
        tables = np.concatenate([counts.ravel() / own, pairs[at] / (other or 1.0)])
        released = np.asarray(tables + gaussian(len(tables), 1.0, draws, rng))
        ridge = max(RIDGE, 2 * len(read.sizes) / (n * p.mu))
        weights, intercept = np.zeros((draws, d)), np.zeros(draws)
        for draw, each in enumerate(released):
            noisy = np.zeros((K, K))
            noisy[at] = other * each[2 * K :]
            given = own * each[: 2 * K].reshape(K, 2), noisy + noisy.T
            weights[draw], intercept[draw] = discriminant(*given, n, (own, other), read, ridge)
        return weights / read.unit, {"intercept": intercept, "scale": own}


def discriminant(
    counts: np.ndarray,
    pairs: np.ndarray,
    n: int,
    scales: tuple[float, float],
    read: Variables,
    ridge: float,
) -> tuple[np.ndarray, float]:
    """Weights (d,) of columns of zeros and ones, and the intercept: see `PrivateMarginals`.

    counts: (K, 2) noisy, of levels in the classes. pairs: (K, K) noisy, of two levels, 0 for those of one
    variable. scales: standard deviations of the noise on both.
    """
    part, sizes = read.part, read.sizes
    classes = (part.T / sizes[:, None] @ counts).sum(axis=0) / (1 / sizes).sum()
    least = min(n / 2, max(1.0, 2 * scales[0] / math.sqrt((1 / sizes).sum())))
    positive = min(max((n + classes[1] - classes[0]) / 2, least), n - least)
    classes = np.array([n - positive, positive])
    sums = (counts - (part / sizes) @ (part.T @ counts - classes)).sum(axis=1)
    levels = np.concatenate([_possible(sums[own > 0], n) for own in part.T])
    centre = np.eye(len(part)) - (part / sizes) @ part.T
    known = np.outer(levels, classes) / n
    rest = centre @ (counts - known) @ (np.eye(2) - 0.5)
    kept = _kept((part.T @ rest**2).sum(axis=1), sizes - 1.0, scales[0])
    table = known + rest * (part @ kept)[:, None]
    means = table / classes
    known = (table / classes) @ table.T
    rest = centre @ (pairs - known) @ centre
    kept = _kept(part.T @ rest**2 @ part, np.outer(sizes - 1.0, sizes - 1.0), scales[1])
    within = np.where(part @ part.T > 0, np.diag(levels) - known, rest * (part @ kept @ part.T)) / n
    to = read.columns
    inverse = quadratics.inverse((to.T @ within @ to)[None], ridge)[0]
    first, second = to.T @ means[:, 0], to.T @ means[:, 1]
    weights = inverse @ (second - first)
    return weights, math.log(classes[1] / classes[0]) - weights @ (first + second) / 2


def _kept(squares, freedom, scale):
    """James and Stein's factors for tables with these sums of squares, of noise with this freedom."""
    expected = (freedom + SURE * np.sqrt(2 * freedom)) * scale**2
    return np.maximum(0.0, 1 - expected / np.maximum(squares, 1e-300))


def _possible(counts, n):
    """The nearest counts that are not negative and have the sum n."""
    ordered = np.sort(counts)[::-1]
    over = (np.cumsum(ordered) - n) / np.arange(1, len(counts) + 1)
    return np.maximum(counts - over[ordered > over][-1], 0.0)
