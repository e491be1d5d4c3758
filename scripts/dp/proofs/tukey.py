"""Approximate Tukey depth of m points: volumes, the test of whether a draw is safe, and draws.

Amin, Joseph, Ribero, Vassilvitskii (ICLR 2023, arXiv 2208.07353). Let p_(1),j <= .. <= p_(m),j be the order
statistics of coordinate j. The region of depth at least i is the box R_i = prod_j [p_(i),j, p_(m-i+1),j],
and V_i is its volume.

Neighbours D, D' differ in one point, which moves order statistics by at most one place. So R_{i+1} is
inside R'_i, which is inside R_{i-1}; depths q differ by at most 1; and V_{i+1} <= V'_i <= V_{i-1}. The
mechanism M draws from the density e^{eps q/2}/Z on R_t, for a public t. For every event E

    M(E) <= e^eps M'(E) + (1 + e^{eps/2}) V_{t-1}/V_{t+g+1} e^{-eps g/2},     for every g >= 1.

Proof. Where R_t and R'_t overlap, the densities' ratio is at most e^{eps/2} Z'/Z. Since R'_t is inside
R_{t-1}, Z' <= e^{eps/2} (Z + e^{eps (t-1)/2} (V_{t-1} - V_t)). Points of R_t outside R'_t have depth t, and
probability at most e^{eps t/2} (V_t - V_{t+1})/Z. With Z >= e^{eps (t+g)/2} V_{t+g}, both additional terms
are at most V_{t-1}/V_{t+g} e^{-eps g/2}, times e^{eps/2} for the first and 1 for the second.

The test: k^ is 1 + the largest k with V_{t-k-1}/V_{t+k+g+1} e^{-eps g/2} <= delta/(8 e^eps) for some g >=
1, or 0 without such a k. If a data set satisfies this condition at k, all neighbours do at k - 1, so k^
changes by at most 1. The mechanism answers if k^ + Lap(1/eps) > log(1/(2 delta))/eps, which is eps-DP. If
k^ = 0, an answer has probability at most delta. If k^ >= 1, the answer is (eps, (1 + e^{eps/2}) delta/(8
e^eps))-close to each neighbour's, by the bound above and the condition at k = 0; the second number is below
delta. So test and answer together are (2 eps, delta)-DP.
"""

import math

import numpy as np


def log_volumes(points: np.ndarray) -> np.ndarray:
    """log V_i for i = 1, .., m // 2 on the last axis, of points (..., m, d) that are sorted along m."""
    half = points.shape[-2] // 2
    with np.errstate(divide="ignore"):
        lengths = np.log(points[..., ::-1, :][..., :half, :] - points[..., :half, :])
    return lengths.sum(axis=-1)


def distance(
    volumes: np.ndarray, t: int, epsilon: float, delta: float, none: int = 0
) -> np.ndarray:
    """The test's k^ for log volumes (..., depths), or `none` where no k passes."""
    volumes = np.asarray(volumes)
    depths = volumes.shape[-1]
    k = np.arange(max(0, min(t - 1, depths - t - 1)))  # t - k - 1 >= 1 and t + k + 2 <= depths
    rising = -volumes - epsilon / 2 * np.arange(1, depths + 1)
    # Minimum from each depth on.
    least = np.minimum.accumulate(rising[..., ::-1], axis=-1)[..., ::-1]
    with np.errstate(invalid="ignore"):  # NaN, from two volumes of 0, fails the test
        logarithms = volumes[..., t - k - 2] + least[..., t + k + 1] + epsilon / 2 * (t + k + 1)
        count = (logarithms <= math.log(delta / 8) - epsilon).sum(axis=-1)
    return np.where(count == 0, none, count)


def threshold(epsilon: float, delta: float) -> float:
    """The threshold for k^ + noise: log(1/(2 delta))/epsilon."""
    return math.log(1 / (2 * delta)) / epsilon


def answered(distance: int, epsilon: float, delta: float, scale: float | None = None) -> float:
    """Probability that k^ + Lap(scale) exceeds the threshold. scale: by default 1/epsilon."""
    gap = (threshold(epsilon, delta) - distance) * (epsilon if scale is None else 1 / scale)
    return 0.5 * math.exp(-gap) if gap >= 0 else 1 - 0.5 * math.exp(gap)


def log_shells(volumes: np.ndarray, t: int, rate: float) -> np.ndarray:
    """log of (V_i - V_{i+1}) e^{rate i} for depths i = t, t + 1, .., from log volumes (..., depths)."""
    inner = np.concatenate([volumes[..., t:], np.full((*volumes.shape[:-1], 1), -np.inf)], axis=-1)
    outer = volumes[..., t - 1 :]
    with np.errstate(invalid="ignore", divide="ignore"):
        shell = outer + np.log1p(-np.exp(np.minimum(inner - outer, 0.0)))
    return np.where(outer == -np.inf, -np.inf, shell) + rate * np.arange(t, volumes.shape[-1] + 1)


def choose(log_weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw indices along the last axis, with probabilities proportional to e^log_weights."""
    return (log_weights + rng.gumbel(size=log_weights.shape)).argmax(axis=-1)


def shell_point(
    points: np.ndarray, depth: np.ndarray, rng: np.random.Generator, inner_right: bool = False
) -> np.ndarray:
    """Uniform points (draws, d) of R_i outside R_{i+1}.

    points: (draws, m, d), sorted along m. depth: i, (draws,). Let a be the first coordinate outside
    R_{i+1}. Coordinates before a are inside, and later ones anywhere in R_i. So the probability of a is
    proportional to prod_{j<a} L_{i+1,j} (L_{i,a} - L_{i+1,a}) prod_{j>a} L_{i,j}, with the boxes' lengths
    L. inner_right: use L_{i+1,j} in the last product.
    """
    draws, m, d = points.shape
    low, high, low_in, high_in = (
        np.take_along_axis(points, np.clip(at, 0, m - 1)[:, None, None], axis=1)[:, 0]
        for at in (depth - 1, m - depth, depth, m - depth - 1)
    )
    outer, inner = high - low, np.maximum(high_in - low_in, 0.0)
    with np.errstate(divide="ignore"):
        log_outer, log_inner, log_edge = np.log(outer), np.log(inner), np.log(outer - inner)
    left = np.cumsum(log_inner, axis=1)
    right = np.cumsum((log_inner if inner_right else log_outer)[:, ::-1], axis=1)[:, ::-1]
    pad = np.zeros((draws, 1))
    log_first = np.hstack([pad, left[:, :-1]]) + log_edge + np.hstack([right[:, 1:], pad])
    first, j = choose(log_first, rng)[:, None], np.arange(d)
    share = rng.random((draws, d))
    # If R_{i+1} is empty, the shell is all of R_i.
    empty = high_in < low_in
    at_edge = low + share * (outer - inner)
    at_edge = np.where((at_edge > low_in) & ~empty, at_edge + inner, at_edge)
    return np.where(
        j < first, low_in + share * inner, np.where(j == first, at_edge, low + share * outer)
    )
