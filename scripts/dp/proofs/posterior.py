"""Exact draws from tempered posteriors on a ball by rejection, and a bound on the number of proposals.

The density is proportional to exp(-gamma (F(w) + ridge/2 ||w||^2)) on ||w|| <= rho, where F is the summed
loss. gamma is epsilon/(2 D), with D from `loss_range`.
"""

import math
from collections.abc import Callable

import numpy as np

from dp.rows import row_norms

BATCH = 4096


def loss_range(loss: str, reach: float) -> float:
    """D = sup |l(z) - l(z')| over margins z, z' in [-reach, reach], reach = rho R.

    Squared loss: (1 - z)^2/2 is at most (1 + reach)^2/2, and at least 0 if reach >= 1, otherwise (1 -
    reach)^2/2. For targets y in [-1, 1], the loss (s - y)^2/2, s = w.x, is s^2/2 - y s up to a constant in
    w. This is affine in y, so differences are largest for targets -1 and 1, with the same D.

    Logistic loss: l(-reach) - l(reach) = reach.
    """
    if loss == "logistic":
        return reach
    return (1 + reach) ** 2 / 2 if reach >= 1 else 2 * reach


def most_proposals(loss: str, n: int, d: int, epsilon: float, reach: float) -> float:
    """Approximate maximum over data sets of the mean number of proposals per draw; reach = rho R.

    For a Gaussian truncated to the ball, `truncated_draws` accepts with probability of order 1/sqrt(d +
    gamma n reach), where gamma n reach bounds rho times the gradient at 0.

    For logistic loss, this probability is multiplied by a ratio: the integral of exp(-gamma F) over the
    ball, divided by the integral of its envelope exp(-gamma Q). Q is a quadratic lower bound on F, and
    touches F at w0. The ratio is at least cosh(reach/2)^-d: let u = w - w0 and c = cosh(reach/2)^2. Up to a
    constant, Q is g.u + u'Hu/2 with g.u >= 0, because w0 is the minimiser on the ball. F is at most g.u + c
    u'Hu/2, because curvatures lie in [1/(4c), 1/4]. At u/sqrt(c), F is at most Q(u), and the ball shrunk by
    sqrt(c) towards w0 lies in the ball. The ratio is also at least exp(-gamma n (1/4 - 1/(4c)) (2
    reach)^2/2), from the largest F - Q. A few Newton steps find w0 approximately.
    """
    pull = epsilon / (2 * loss_range(loss, reach)) * n * reach
    logarithm = math.log(4 * math.sqrt(d + pull))
    if loss == "logistic":
        bend = math.tanh(reach / 2) ** 2  # 1 - 1/c
        log_cosh = float(np.logaddexp(reach / 2, -reach / 2)) - math.log(2)
        logarithm += min(d * log_cosh, pull * reach * bend / 2)
    return math.exp(min(logarithm, 700.0))


def truncated_draws(
    precision: np.ndarray,
    linear: np.ndarray,
    radius: float,
    size: int,
    rng: np.random.Generator,
    log_excess: Callable | None = None,
) -> tuple[np.ndarray, int]:
    """Exact draws from exp(-w'Pw/2 + b.w + log_excess(w)) on the ball ||w|| <= radius, by rejection.

    precision: P (d, d) symmetric, positive semidefinite. linear: b (d,). log_excess: a function of points
    (m, d) that is at most 0; None means 0, for a truncated Gaussian. Returns draws (size, d) and the number
    of proposals.

    On the ball, exp(k (radius^2 - ||w||^2)/2) >= 1 for every k >= 0. So a Gaussian with precision P + kI,
    times a constant, lies above the density. The Gaussian's draws are accepted with probability
    exp(log_excess(w) - k (radius^2 - ||w||^2)/2) inside the ball, and never outside. Acceptance is most
    frequent if the proposal's mean ||w||^2 is radius^2. No k changes the law, so k may depend on the data.
    """
    values, vectors = np.linalg.eigh(precision)
    values = np.maximum(values, 0.0)
    b = vectors.T @ linear
    k = _tilt(values, b, radius)
    mean, deviation = b / (values + k), 1 / np.sqrt(values + k)
    draws, tried = [], 0
    count = 0
    while count < size:
        points = mean + deviation * rng.standard_normal((BATCH, len(values)))
        square = np.einsum("ij,ij->i", points, points)
        log_accept = -k * (radius**2 - square) / 2
        points = points @ vectors.T
        inside = square <= radius**2
        if log_excess is not None:
            log_accept[inside] += log_excess(points[inside])
        accepted = np.flatnonzero(inside & (-rng.standard_exponential(BATCH) <= log_accept))
        accepted = accepted[: size - count]
        draws.append(points[accepted])
        count += len(accepted)
        tried += BATCH if count < size else int(accepted[-1]) + 1
    return np.concatenate(draws), tried


def _tilt(values, b, radius):
    """k >= 0 with E ||w||^2 = radius^2 under the proposal, or 0 if E ||w||^2 is smaller at k = 0."""
    return _root(lambda k: np.sum((b / (values + k)) ** 2 + 1 / (values + k)) - radius**2)


def _root(excess):
    """The k >= 0 at which a decreasing function falls to 0, or 0 if it starts below."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if excess(0.0) <= 0:
            return 0.0
    low, high = 0.0, 1.0
    while excess(high) > 0:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def _minimiser_on_ball(A, b, radius):
    """argmin of w'Aw/2 - b.w over ||w|| <= radius, A positive definite."""
    values, vectors = np.linalg.eigh(A)
    b = vectors.T @ b
    k = _root(lambda k: np.sum((b / (values + k)) ** 2) - radius**2)
    return vectors @ (b / (values + k))


def squared_envelope(
    X: np.ndarray, y: np.ndarray, gamma: float, ridge: float, radius: float
) -> tuple:
    """(precision, linear, log_excess) of `truncated_draws` for squared loss.

    The density exp(-gamma (||y - Xw||^2/2 + ridge ||w||^2/2)) is Gaussian, so there is no excess.
    """
    return gamma * (X.T @ X + ridge * np.eye(X.shape[1])), gamma * (X.T @ y), None


def logistic_envelope(
    X: np.ndarray, y: np.ndarray, gamma: float, ridge: float, radius: float
) -> tuple:
    """(precision, linear, log_excess) of `truncated_draws` for logistic loss.

    The Gaussian's quadratic lies below F and touches it at w0. On the ball, |w.x_i| <= m_i = radius
    ||x_i||, and the logistic curvature is at least s_i (1 - s_i), s_i = 1/(1 + e^m_i). So F(w) >= F(w0) +
    F'(w0)(w - w0) + (w - w0)'H(w - w0)/2, where H = sum_i s_i (1 - s_i) x_i x_i'. A few Newton steps find
    w0 near the minimiser on the ball; the draws' distribution does not depend on w0. The acceptance rate
    falls exponentially with d.
    """
    d = X.shape[1]
    margins = radius * row_norms(X)
    slope = 1 / (1 + np.exp(margins))
    H = (X.T * (slope * (1 - slope))) @ X
    start = np.zeros(d)
    for _ in range(20):
        s = 1 / (1 + np.exp(y * (X @ start)))
        gradient = -X.T @ (s * y) + ridge * start
        curvature = (X.T * (s * (1 - s))) @ X + (ridge + 1e-9) * np.eye(d)
        start = _minimiser_on_ball(curvature, curvature @ start - gradient, radius)
    s = 1 / (1 + np.exp(y * (X @ start)))
    gradient = -X.T @ (s * y)  # of F without the ridge, which is already quadratic
    touched = np.logaddexp(0.0, -y * (X @ start)).sum()

    def log_excess(points):
        step = points - start
        quadratic = touched + step @ gradient + np.einsum("ij,jk,ik->i", step, H, step) / 2
        exact = np.logaddexp(0.0, -y[:, None] * (X @ points.T)).sum(axis=0)
        return np.minimum(gamma * (quadratic - exact), 0.0)

    return gamma * (H + ridge * np.eye(d)), gamma * (H @ start - gradient), log_excess
