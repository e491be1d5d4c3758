r"""Estimates and intervals from releases with noise of a norm's law: post-processing.

`dp.inference.linearise` explains the estimate and its covariance. Here noise is not isotropic, and some
directions of weights change no score (`dp_release.contrasts`), so all is computed in the span of valid
rows, in coordinates in which the Hessian's noise is at most as large in every direction as an isotropic
noise of standard deviation `deviation` on its diagonal. `linearise`'s thresholds are in units of this.

THE RIDGE'S BIAS. The estimate adds `added`, the bias to first order, with the Hessian at the released
weights. With a rare class, the ridge draws the intercept to where l'' is larger, so `added` is too small.
If log l'' changes by x on the way to the estimate, the Hessian there makes it e^x times as large, which
differs by about x times `added`. So `linearised` adds to the covariance the square of `added` times the
mean of x^2, which is `logistic_change`. (With an offset, `added` is small.)

This x is of first order, too, and the slope of log l'' is that at the released weights. On the whole way,
the Hessian is at least e^-x times the released one, so its mean is at least (1 - e^-x)/x times it. Hence
scores change by z <= a x/(1 - e^-x), where a is their change by `added`. And log l'' has a slope of at most
1, which itself changes by at most 1/2: so x <= min(z, s z + z^2/4) if it is s at the released weights. The
least z with equality is a bound, `grown`, and the bias that `added` lacks is at most z/a - 1 times `added`.
This holds with the largest changes of any row; `lacking` takes roots of mean squares in their place, and
besides the change x to first order, which counts the noise, with the slope 1. Where this is more than the
term above, it is added instead, and where there is no such z, there is no interval.

THE TAILS. A coefficient's error is about normal but for the tilt's part a.b/n. Rather than with normal
quantiles, intervals are made with those of a normal law with the random variance (1 - q) + q V, where q is
the tilt's part of the variance, V ~ Gamma(3/k, k/3) has the mean 1, and k is the excess kurtosis of a.b
(`Body.kurtosis`). This is the exact law for the l2 tilt, and for others agrees in the first five moments:
for the tilt alone and a level of seven, the 95 % quantile is 2.09, where the exact one is 2.11. For k <= 0,
quantiles are normal.
"""

import math
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from dp.inference import (
    CURVED,
    FLOOR,
    Intervals,
    floored,
    logistic_change,
    unselected,
)
from dp.inference import answered as answered_by
from dp_privacy.profiles import nodes
from dp_release.norm_noise import Noise

LEVEL = 0.95
PANELS = 40


class Described(NamedTuple):
    """As `models.Described`, for weights of all levels (d,).

    gains (d, d): an error of `estimate` due to the tilt b is gains @ b. tilt: the tilt's noise.
    """

    weights: np.ndarray
    covariance: np.ndarray
    answered: np.ndarray
    unresolved: np.ndarray
    gains: np.ndarray
    tilt: Noise

    def intervals(
        self, estimate: np.ndarray, covariance: np.ndarray, T: np.ndarray, answered: np.ndarray
    ) -> Intervals:
        """As `dp.inference.wald`, for coefficients (1, k) that are T weights plus constants."""
        error = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        error = np.where(answered, error, np.nan)
        gains = T @ self.gains
        part = gains**2 @ self.tilt.variances / np.where(error > 0, error, np.nan)[0] ** 2
        part, excess = np.clip(part, 0, 1), self.tilt.kurtosis(gains)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            sizes = np.abs(estimate / error)[0]
        reach, p = np.full(len(T), np.nan), np.full(len(T), np.nan)
        for j in np.flatnonzero(answered[0] & np.isfinite(part)):
            law = _up(part[j]), _up(excess[j])
            reach[j], p[j] = quantile(*law), outside(float(sizes[j]), *law)
        reach = reach * error
        return Intervals(estimate, error, estimate - reach, estimate + reach, p[None])


def _up(value):
    """A number rounded up to hundredths, so that few laws are computed."""
    return math.ceil(100 * float(value)) / 100


@cache
def _variances(excess):
    """Nodes and weights of V, for an excess of at most 3: its density is then bounded."""
    from scipy.stats import gamma

    law = gamma(3 / excess, scale=excess / 3)
    V, width = nodes(law.ppf(1e-20), law.isf(1e-20), PANELS)
    weights = width * law.pdf(V)
    return V, weights / weights.sum()


def outside(size: float, part: float, excess: float) -> float:
    """P(|x| > size) for x of mean 0 and variance 1, by the module docstring. part: q. excess: k."""
    from scipy.special import ndtr

    excess = min(excess, 3.0)
    if excess <= 0.01 or part == 0:  # Gamma(300, ..) is nearly a constant
        return float(2 * ndtr(-size))
    V, weights = _variances(excess)
    return float(2 * weights @ ndtr(-size / np.sqrt(1 - part + part * V)))


@lru_cache(maxsize=1 << 14)
def quantile(part: float, excess: float, level: float = LEVEL) -> float:
    """The size that `outside` exceeds with probability 1 - level, but not below the normal one."""
    from scipy.optimize import brentq
    from scipy.special import ndtri

    normal = float(ndtri((1 + level) / 2))
    if outside(normal, part, excess) <= 1 - level:
        return normal
    return float(brentq(lambda x: outside(x, part, excess) - (1 - level), normal, 3 * normal))


class Entries(NamedTuple):
    """Standard deviations of a released matrix's entries, and how its directions are scaled.

    variances (d, d): of the noise on the matrix's entries; 0 where an entry is known. scales (d,) and
    deviation: v'E v has at most the variance (deviation sum of (scales v)^2)^2 for the noise E.
    """

    variances: np.ndarray
    scales: np.ndarray
    deviation: float


def scaled(variances: np.ndarray) -> Entries:
    """The `Entries` with small scales that hold for independent noise with these variances."""
    deviations = np.sqrt(variances)
    wanted = deviations * math.sqrt(2)  # of an isotropic noise's diagonal
    np.fill_diagonal(wanted, np.diagonal(deviations))
    top = wanted.max()
    if top == 0:
        return Entries(variances, np.ones(len(variances)), 0.0)
    # Symmetric scaling: scales_i scales_j top >= wanted_ij, by raising each to what its row needs.
    scales = np.sqrt(np.maximum(np.diagonal(wanted), 1e-12 * top) / top)
    for _ in range(len(variances)):
        lacking = (wanted / top / np.outer(scales, scales)).max(axis=1)
        if lacking.max() <= 1 + 1e-9:
            break
        scales *= np.sqrt(np.maximum(lacking, 1.0))
    over = (wanted / np.outer(scales, scales)).max()
    return Entries(variances, scales, float(over))


def of_noise(variances: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Covariance (d, d) of E u for symmetric E with independent entries, where uu' has the mean U."""
    S = variances * U
    np.fill_diagonal(S, variances @ np.diagonal(U))
    return S


def unselected_share(size: float, least: float) -> float:
    """The share of a released Hessian that is left once its selection by its trace is undone.

    size: the trace, in standard deviations of its noise. Tables are printed if it exceeds about `least`, so
    a small trace that passes is mostly noise, and intervals would be too narrow: with a rare class, by a
    factor. As in `dp.inference.unselected`, the share is that of the mean whose conditional mean is `size`.
    """
    from scipy.special import ndtr

    if size <= least:
        return 1.0  # there is no interval
    mean = np.linspace(FLOOR, 9 + least, 2000)
    excess = np.exp(-((mean - least) ** 2) / 2) / math.sqrt(2 * math.pi) / ndtr(mean - least)
    kept = size - float(np.interp(size, mean + excess, excess, right=0.0))
    return max(kept, FLOOR) / size


def grown(change: float, slope: float) -> float:
    """The bound on a change of scores over the change to first order; infinite if there is none.

    slope: of log l'', at most 1. See the module docstring.
    """
    if change < 1e-8:
        return 1.0
    if slope >= 1:
        return -math.log1p(-change) / change if change < 1 else math.inf
    z = change
    for _ in range(200):  # from below, so towards the least one
        x = min(z, slope * z + z * z / 4)  # a power would raise an error beyond 1e154
        before, z = z, change * x / -math.expm1(-x)
        if z <= before * (1 + 1e-9):
            return z / change
    return math.inf


def lacking(moved: float, along: float, slope: float) -> float:
    """Mean square of the bias that a first-order correction lacks, over the square of the correction.

    moved: the mean square change of log l''. along: that of scores by the correction alone. slope: of log
    l''. It is infinite if there is no interval (see the module docstring).
    """
    most = max(grown(math.sqrt(moved), 1.0), grown(math.sqrt(along), slope))
    return max(moved, (most - 1) ** 2)


def linearised(
    weights: np.ndarray,
    hessian: np.ndarray,
    n: int,
    lam: float,
    tilt: Noise,
    output: np.ndarray,
    entries: Entries,
    basis: np.ndarray,
    scores: np.ndarray | None = None,
    level: float | None = None,
    floor: float = FLOOR,
    bounded: bool = True,
) -> Described:
    """`dp.inference.linearise` for noise that is not isotropic.

    weights (d,) and hessian (d, d): as released. output (d,): variances of the output noise. basis (d, k):
    `contrasts.span`. scores (d, d): the mean of l'^2 x x', None for the Hessian. level: a lower bound on
    the mean of l'', for logistic loss; None for residuals. floor: of eigenvalues, in deviations. bounded:
    whether `lacking` counts.
    """
    # Coordinates a with weights = basis @ W^(-1/2) a, so rows become W^(-1/2) basis' x.
    values, vectors = np.linalg.eigh(basis.T @ (entries.scales[:, None] ** 2 * basis))
    to = basis @ (vectors / np.sqrt(values)) @ vectors.T  # (d, k): rows' coordinates are to' x
    back = basis @ (vectors * np.sqrt(values)) @ vectors.T  # weights' coordinates are back' weights
    deviation = entries.deviation
    H = floored((to.T @ hessian @ to)[None], floor * deviation + 1e-300)[0]
    J = H if scores is None else floored((to.T @ scores @ to)[None], 0.0)[0]
    ridge, point = lam * to.T @ to, back.T @ weights
    inverse, pulled = np.linalg.inv(H), H + ridge
    moments = J / n + to.T @ (tilt.variances[:, None] / n**2 * to)
    moments = moments + pulled @ (back.T @ (output[:, None] * back)) @ pulled
    added = inverse @ ridge @ point
    K = np.linalg.inv(pulled)
    U = np.outer(added, added) + K @ moments @ K
    if level is None:
        inverse = np.linalg.inv(unselected(H[None], deviation)[0])
    noise = to.T @ of_noise(entries.variances, to @ U @ to.T) @ to
    unresolved = inverse @ noise @ inverse
    covariance = inverse @ moments @ inverse + unresolved
    if level is not None:
        moved = float(logistic_change(H[None], U[None], np.array([level]))[0])
        covariance = covariance * (1 + min(CURVED * moved, 1.0))
        share, known = min(moved, 1.0), moved < 1
        if bounded and known:
            along = max(float(added @ H @ added) / level, 0.0)
            lacks = lacking(moved, along, math.sqrt(max(0.0, 1 - 4 * level)))
            known, share = lacks < math.inf, min(lacks, 1e6)
        covariance = covariance + np.outer(added, added) * share
        unresolved = unresolved if known else covariance
    gains = to @ inverse @ to.T / n
    if level is not None:
        gains = gains * math.sqrt(1 + min(CURVED * moved, 1.0))
    covariance, unresolved = to @ covariance @ to.T, to @ unresolved @ to.T
    printed = answered_by(covariance[None], unresolved[None])[0]
    return Described(
        basis @ (basis.T @ weights) + to @ added, covariance, printed, unresolved, gains, tilt
    )
