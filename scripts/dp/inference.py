"""Confidence intervals from private releases.

They include the noise, and they undo the bias that a ridge or a starting point causes. All of this is
post-processing of what was released and of public numbers.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dp.losses import MarginLoss

COARSE = 0.5  # most standard errors of bias for intervals: those at 95 % then cover 92 %


class Intervals(NamedTuple):
    """Estimates, standard errors, ends, two-sided p-values of theta_j = 0, each (draws, d)."""

    estimate: np.ndarray
    standard_error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p_value: np.ndarray


def wald(estimate: np.ndarray, covariance: np.ndarray, level: float = 0.95) -> Intervals:
    """Normal intervals. estimate: (draws, d). covariance: (draws, d, d). level: in (0, 1)."""
    from scipy.special import ndtr, ndtri

    error = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    reach = ndtri((1 + level) / 2) * error
    return Intervals(
        estimate, error, estimate - reach, estimate + reach, 2 * ndtr(-np.abs(estimate) / error)
    )


def floored(A: np.ndarray, floor: float) -> np.ndarray:
    """Symmetric matrices (draws, d, d), with every eigenvalue below `floor` raised to it."""
    values, vectors = np.linalg.eigh(A)
    return (vectors * np.maximum(values, floor)[:, None, :]) @ vectors.transpose(0, 2, 1)


class Linearised(NamedTuple):
    """Estimates (draws, d) without the ridge's bias, their covariances (draws, d, d), and `bias` (draws,).

    bias: an estimate of the bias that is left, in standard errors. coarse: whether it is too large for
    intervals.
    """

    estimate: np.ndarray
    covariance: np.ndarray
    bias: np.ndarray

    @property
    def coarse(self) -> np.ndarray:
        return self.bias > COARSE


def linearise(
    weights: np.ndarray,
    hessian: np.ndarray,
    n: int,
    lam: float,
    tilt: float,
    output: float,
    scores: np.ndarray | None = None,
    error: float = 0.0,
    bend: float = 2.0,
) -> Linearised:
    """`Linearised` from minimisers of mean loss + lam/2 ||w||^2 + b.w/n, with noise z added.

    weights: (draws, d), with b ~ N(0, tilt^2 I) and z ~ N(0, output^2 I). hessian: (draws, d, d), that of
    the mean loss at the weights, positive definite, with noise whose spectral norm is about `error`.
    scores: (draws, d, d), the mean of psi^2 x x', where psi is a record's slope. None takes the Hessian in
    its place, which is right for the logistic loss if the labels follow a logistic model. bend: how fast
    the loss' curvature changes, sup |d log l''/dz|, over the square root of sup l''; 2 for logistic loss.

    With g the mean loss's gradient at the truth theta and K = (H + lam)^-1, to first order

        w - theta = -K (g + lam theta + b/n) + z,

    so that w has the mean K H theta. The inverse of K H, A = I + lam H^-1, undoes that. Since A K = H^-1,
    the estimate A w has the covariance H^-1 (J/n + tilt^2/n^2) H^-1 + output^2 A A', where J is `scores`.

    The curvature between w and theta differs from H by a factor of up to e^(sup |d log l''/dz| |change of a
    row's z|), and H has noise. So the correction A w - w has a relative error of about (root mean square of
    that exponent + error/smallest eigenvalue of H).
    """
    d = weights.shape[1]
    inverse = np.linalg.inv(hessian)
    A = np.eye(d) + lam * inverse
    moments = (hessian if scores is None else scores) / n + (tilt / n) ** 2 * np.eye(d)
    covariance = inverse @ moments @ inverse + output**2 * A @ A.transpose(0, 2, 1)
    added = lam * np.einsum("rij,rj->ri", inverse, weights)
    # The mean over rows of l'' (x.change)^2 is change' H change, and `bend` is over the root of sup l''.
    K = np.linalg.inv(hessian + lam * np.eye(d))
    noise = (tilt / n) ** 2 * K @ K + output**2 * np.eye(d)
    change = np.einsum("rij,rji->r", hessian, noise)
    change = bend * np.sqrt(change + np.einsum("ri,rij,rj->r", added, hessian, added))
    wrong = change + error / np.linalg.eigvalsh(hessian)[:, 0]
    return Linearised(weights + added, covariance, _in_errors(added, covariance) * wrong)


class Steps(NamedTuple):
    """T steps theta_{t+1} = theta_t + P m_t from theta_0 = 0, and what was released beside them.

    m_t = X' clip(y - X theta_t, [-clip, clip]) + xi_t - ridge theta_t, with xi_t ~ N(0, sigma^2 I).

    thetas, moments (T, draws, d): theta_t and m_t. last (draws, d): theta_T. P (draws, d, d).
    D (draws, d, d): the sum of x x' over the rows whose residuals are not clipped. J (draws, d, d): the sum
    of clip(residual)^2 x x' over all rows. D and J are estimates for residuals near the truth theta. error
    (draws,): relative error of D. size (draws, d, d): X'X/n, which tells how much a change of theta changes
    residuals.
    """

    thetas: np.ndarray
    moments: np.ndarray
    last: np.ndarray
    P: np.ndarray
    D: np.ndarray
    J: np.ndarray
    error: np.ndarray
    size: np.ndarray
    sigma: float
    clip: float
    ridge: float = 0.0

    def wrong(self, theta: np.ndarray) -> np.ndarray:
        """(T, draws): the share by which the D between theta_t and theta may differ from D, at most 0.9.

        Residuals change by x.(theta_t - theta). The share is `error` plus 2/clip times the root mean square
        of these changes. 2/clip is the largest slope of the logarithm of log-cosh's curvature, which stands
        in for the clipped loss, whose curvature jumps.
        """
        away = self.thetas - theta
        moved = np.sqrt(np.einsum("tri,rij,trj->tr", away, self.size, away))
        return np.minimum(0.9, self.error + 2 / self.clip * moved)


def last_iterate(steps: Steps) -> Linearised:
    """`Linearised` from the last of T steps, by the recursion's own covariance and bias.

    theta is the zero of the expected clipped moment: the coefficients themselves if errors are symmetric.
    Let s = X' clip(y - X theta), which has the covariance J. To first order, the clipped moment at theta_t
    is s - D (theta_t - theta). With B = I - P (D + ridge I) the recursion is linear in s and in the noise:

        theta_{t+1} = B theta_t + P (D theta + s + xi_t)
        theta_T = K D theta + K s + sum over j < T of B^j P xi_{T-1-j},  K = sum over j < T of B^j P.

    P and B are computed from releases, and are taken as given. Then theta_T has the mean K D theta (without
    a ridge, theta minus the T-th power of B times theta) and the covariance K J K' + sigma^2 sum over j < T
    of (B^j P)(B^j P)'. A = (K D)^-1 undoes the bias, so A theta_T is the estimate. P is taken as
    independent of the rows' errors, which holds if it comes from a Gram matrix with noise of its own.

    bias: the first steps start where D is smaller, because more residuals are clipped. So the mean is
    computed again with D reduced in each step by the share that `Steps.wrong` gives for it.
    """
    T, d = len(steps.thetas), steps.last.shape[1]
    shrink = steps.ridge * np.eye(d)
    B = np.eye(d) - steps.P @ (steps.D + shrink)
    power, K, spread = steps.P, 0.0, 0.0
    for _ in range(T):
        K, spread = K + power, spread + power @ power.transpose(0, 2, 1)
        power = B @ power
    A = np.linalg.inv(K @ steps.D)
    estimate = np.einsum("rij,rj->ri", A, steps.last)
    inner = K @ steps.J @ K.transpose(0, 2, 1) + steps.sigma**2 * spread
    covariance = A @ inner @ A.transpose(0, 2, 1)
    mean = np.zeros_like(estimate)
    for wrong in steps.wrong(estimate):
        force = np.einsum("rij,rj->ri", steps.D, estimate - mean) * (1 - wrong)[:, None]
        mean = mean + np.einsum("rij,rj->ri", steps.P, force - steps.ridge * mean)
    left = np.einsum("rij,rj->ri", A, mean) - estimate
    return Linearised(estimate, covariance, _in_errors(left, covariance))


def late_iterates(steps: Steps) -> Linearised:
    """`Linearised` from the second half of the steps, with less noise than from the last one alone.

    All moments are released, so each step gives an estimate of its own: to first order

        theta_t + D^-1 (m_t + ridge theta_t) = theta + D^-1 (s + xi_t),

    which contains neither the noise of earlier steps, nor B, nor the start. The mean over k steps has the
    covariance D^-1 (J + sigma^2/k I) D^-1. `last_iterate` has about sigma^2 in place of sigma^2/k.
    bias: the correction by D^-1, times the mean relative error of D.
    """
    half = len(steps.thetas) // 2
    theta, moment = steps.thetas[half:].mean(axis=0), steps.moments[half:].mean(axis=0)
    inverse, count = np.linalg.inv(steps.D), len(steps.thetas) - half
    added = np.einsum("rij,rj->ri", inverse, moment + steps.ridge * theta)
    noise = steps.sigma**2 / count * np.eye(theta.shape[1])
    covariance = inverse @ (steps.J + noise) @ inverse
    wrong = steps.wrong(theta + added)[half:].mean(axis=0)
    return Linearised(theta + added, covariance, _in_errors(added, covariance) * wrong)


def _in_errors(change, covariance):
    """Root mean square of changes (draws, d) in standard errors: (draws,)."""
    return np.sqrt((change**2 / np.diagonal(covariance, axis1=1, axis2=2)).mean(axis=1))


def logistic_rows(
    hessian: np.ndarray,
    weights: np.ndarray,
    n: int,
    bound: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Rows (n, d) of norm at most `bound`, normal before they are clipped, that give about this Hessian.

    They are for a parametric bootstrap without public rows. A release tells no more about the rows than
    their Hessian. hessian: (d, d), at weights (d,).
    """

    def curvature(X):
        s = 1 / (1 + np.exp(-X @ weights))
        return s * (1 - s)

    return _rows_like(hessian, 4 * hessian, curvature, n, bound, rng)


def normal_rows(moment: np.ndarray, n: int, bound: float, rng: np.random.Generator) -> np.ndarray:
    """Rows (n, d) as from `logistic_rows`, but with a mean of x x' of about `moment` (d, d)."""
    return _rows_like(moment, moment, lambda X: np.ones(len(X)), n, bound, rng)


def _rows_like(matrix, start, weight, n, bound, rng, rounds=6):
    """Rows whose mean of weight(X) x x' has about the trace of `matrix`. start: a first covariance."""
    unit = rng.standard_normal((n, len(matrix)))
    root = np.linalg.cholesky(start)
    for _ in range(rounds):
        X = unit @ root.T
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1) / bound)[:, None]
        root *= np.sqrt(np.trace(matrix) / (np.einsum("n,nd,nd->", weight(X), X, X) / n))
    return X


def normal_errors(ratio: float, loss: MarginLoss) -> tuple[float, float]:
    """(standard deviation of normal errors e with E l'(e)^2/E l''(e) = ratio, E l''(e)).

    loss: of residuals, such as log-cosh. The ratio increases with the standard deviation, which is found by
    bisection, with e at 2,000 quantiles, and is at most 100 times the loss' width.
    """
    from scipy.special import ndtri

    e = ndtri((np.arange(2000) + 0.5) / 2000)
    low, high = 1e-6 * loss.kappa, 100 * loss.kappa
    while high > low * (1 + 1e-9):
        middle = np.sqrt(low * high)
        slope, curvature = loss.slopes(middle * e)
        small = (slope**2).mean() < ratio * curvature.mean()
        low, high = (middle, high) if small else (low, middle)
    return high, float(loss.slopes(high * e)[1].mean())


def logistic_labels(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels in {-1, 1} of the logistic model."""
    return np.where(rng.random(len(scores)) < 1 / (1 + np.exp(-scores)), 1.0, -1.0)


def bootstrap(
    estimate: np.ndarray,
    rows: np.ndarray,
    fit: Callable,
    rng: np.random.Generator,
    replicates: int = 200,
    level: float = 0.95,
    draw: Callable = logistic_labels,
) -> tuple[np.ndarray, np.ndarray]:
    """Parametric bootstrap (Ferrando, Wang, Sheldon, AISTATS 2022), for one released estimate (d,).

    `replicates` times, draw(scores, rng) makes labels of `rows` (n, d), simulated or public, whose scores
    are rows @ estimate, and fit(X, y, rng) -> (d,) repeats the whole private procedure on them. Returns
    (low, high), the ends of basic intervals 2 estimate - quantile. It costs no privacy.
    """
    scores = rows @ estimate
    found = np.empty((replicates, len(estimate)))
    for k in range(replicates):
        found[k] = fit(rows, draw(scores, rng), rng)
    tails = np.quantile(found, [(1 + level) / 2, (1 - level) / 2], axis=0)
    return tuple(2 * estimate - tails)
