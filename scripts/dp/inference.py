"""Confidence intervals from private releases, by post-processing alone.

They include the privacy noise and correct the bias from a ridge or a starting point.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dp.losses import MarginLoss

__all__ = ["Intervals", "Linearised", "answered", "bootstrap", "linearise", "wald"]

FLOOR = 0.5  # minimum eigenvalue of a released Hessian, in standard deviations of its noise
UNRESOLVED = 0.8  # maximum share of a coefficient's variance that the Hessian's noise may cause
SELECTED = 1.0  # minimum eigenvalue of a direction with a reported interval, in the units of FLOOR
CURVED = 3.0  # widening where the Hessian changes: see `linearise`


class Intervals(NamedTuple):
    """Estimates with normal confidence intervals. All arrays are (draws, d).

    Attributes
    ----------
    estimate : numpy.ndarray
        Estimates of the coefficients theta_j.
    standard_error : numpy.ndarray
        Including privacy noise.
    low, high : numpy.ndarray
    p_value : numpy.ndarray
        Two-sided p-value of theta_j = 0.
    """

    estimate: np.ndarray
    standard_error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p_value: np.ndarray


def wald(
    estimate: np.ndarray,
    covariance: np.ndarray,
    level: float = 0.95,
    answered: np.ndarray | None = None,
) -> Intervals:
    """Normal intervals from estimates and their covariance.

    Parameters
    ----------
    estimate : numpy.ndarray, (draws, d)
        Coefficients.
    covariance : numpy.ndarray, (draws, d, d)
        Including privacy noise.
    level : float
        In (0, 1).
    answered : numpy.ndarray of bool, (draws, d), or None
        From the function `answered`. Where false, all results except the estimate are NaN.

    Returns
    -------
    Intervals

    Examples
    --------
    >>> found = wald(np.array([[1.0]]), np.array([[[0.25]]]))
    >>> print(found.low.round(2), found.high.round(2))
    [[0.02]] [[1.98]]
    """
    from scipy.special import ndtr, ndtri

    error = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    if answered is not None:
        error = np.where(answered, error, np.nan)
    reach = ndtri((1 + level) / 2) * error
    return Intervals(
        estimate, error, estimate - reach, estimate + reach, 2 * ndtr(-np.abs(estimate) / error)
    )


def answered(covariance: np.ndarray, unresolved: np.ndarray) -> np.ndarray:
    """Decide which coefficients get an interval.

    A coefficient gets no interval if the Hessian's noise causes more than a share `UNRESOLVED` of its
    variance. No coefficient gets one if the Hessian at the true weights may differ greatly from the
    released one (`linearise`).

    The estimates play no role, because selection by them would reduce coverage. The rule favours small
    eigenvalues that noise raised; `unselected` corrects this bias. `FLOOR`, `CURVED` and `UNRESOLVED` were
    chosen on half of the simulated designs and tested on the other half.

    Parameters
    ----------
    covariance, unresolved : numpy.ndarray, (draws, d, d)
        As in `Linearised`. For coefficients T theta, for example in other units, give T covariance T' and T
        unresolved T'.

    Returns
    -------
    numpy.ndarray of bool, (draws, d)

    Examples
    --------
    >>> whole = np.array([np.diag([1.0, 1.0])])
    >>> answered(whole, np.array([np.diag([0.1, 0.9])]))
    array([[ True, False]])
    """
    part, whole = (np.diagonal(M, axis1=1, axis2=2) for M in (unresolved, covariance))
    return part <= UNRESOLVED * whole


def floored(A: np.ndarray, floor: float | np.ndarray) -> np.ndarray:
    """Symmetric matrices A (draws, d, d), with eigenvalues below `floor` raised to it."""
    values, vectors = np.linalg.eigh(A)
    values = np.maximum(values, np.reshape(floor, (-1, 1)))
    return (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)


def unselected(hessian: np.ndarray, deviation: float) -> np.ndarray:
    """Released Hessians (draws, d, d), with eigenvalues corrected for the selection of reported intervals.

    A direction gets an interval if its eigenvalue exceeds about t = `SELECTED` standard deviations of its
    noise, so small eigenvalues that pass are biased upwards. In these units, a normal variable of mean m
    has the conditional mean m + phi(m - t)/Phi(m - t) above t. The corrected eigenvalue is the m whose
    conditional mean equals the released one (the conditional maximum likelihood estimate), but at least
    `FLOOR`.
    """
    from scipy.special import ndtr

    mean = np.linspace(FLOOR, 9, 1000)
    excess = np.exp(-((mean - SELECTED) ** 2) / 2) / math.sqrt(2 * math.pi) / ndtr(mean - SELECTED)
    values, vectors = np.linalg.eigh(hessian)
    units = values / max(deviation, 1e-300)
    lower = np.maximum(
        values - deviation * np.interp(units, mean + excess, excess), FLOOR * deviation
    )
    return (vectors * lower[:, None, :]) @ vectors.transpose(0, 2, 1)


class Linearised(NamedTuple):
    """Estimates without the ridge's bias, and their uncertainty.

    Attributes
    ----------
    estimate : numpy.ndarray, (draws, d)
        Coefficients.
    covariance : numpy.ndarray, (draws, d, d)
        Including privacy noise.
    unresolved : numpy.ndarray, (draws, d, d)
        Part of the covariance that the Hessian's noise causes, to first order.
    """

    estimate: np.ndarray
    covariance: np.ndarray
    unresolved: np.ndarray

    def answered(self) -> np.ndarray:
        return answered(self.covariance, self.unresolved)


def symmetric_noise(U: np.ndarray, deviation: float | np.ndarray) -> np.ndarray:
    """Covariance (draws, d, d) of E u, where E is isotropic symmetric noise and uu' has mean U.

    deviation: standard deviation of E's diagonal, one number or one per draw. E_ij E_kl has mean
    deviation^2/2 (1(i=k, j=l) + 1(i=l, j=k)), so the covariance is deviation^2/2 (trace(U) I + U).
    """
    trace = np.trace(U, axis1=1, axis2=2)[:, None, None]
    return np.reshape(deviation, (-1, 1, 1)) ** 2 / 2 * (trace * np.eye(U.shape[1]) + U)


def linearise(
    weights: np.ndarray,
    hessian: np.ndarray,
    n: int,
    lam: float,
    tilt: float,
    output: float,
    scores: np.ndarray | None = None,
    deviation: float = 0.0,
    change: Callable | None = None,
) -> Linearised:
    """Linearise releases w = m + z, where m minimises mean loss + lam/2 ||m||^2 + b.m/n and z is noise.

    At m, the mean loss's gradient is -lam m - b/n. To first order, it is also g + H (m - theta), where g,
    the gradient at the true theta, has covariance J/n (J is `scores`). With H = hessian - E,

        lam w + hessian (w - theta) = E (w - theta) - g - b/n + (H + lam) z.

    So the estimate is w + lam hessian^-1 w, with covariance hessian^-1 S hessian^-1, where S is the
    covariance of the right side. Let v = -lam hessian^-1 w, the ridge's estimated bias, and K = (hessian +
    lam)^-1. Given w, E is independent of u = w - theta, and the mean of uu' is about vv' + K (J/n +
    tilt^2/n^2) K + output^2 I. `symmetric_noise` gives E's part of S.

    The Hessian changes between w and theta: at an estimate too near 0, the Hessian is too large, and the
    interval too narrow. So variances are multiplied by 1 + `CURVED` times the mean square change of log
    l'', but at most by 2. This factor is from simulation, not derived. If the change is 1 or more, the
    whole covariance counts as unresolved.

    Small eigenvalues are not raised to the norm of the noise: intervals of rare categories, and of columns
    much smaller than others, would become much too narrow.

    A large E makes reported intervals too narrow. If `change` is None, the covariance therefore uses the
    `unselected` Hessian. Otherwise, `CURVED` already widens the intervals. One gap remains: if a column has
    a large effect and an eigenvalue far below the noise, a fifth of the releases report its interval, and
    only 80 % of these cover the effect.

    Parameters
    ----------
    weights : numpy.ndarray, (draws, d)
    hessian : numpy.ndarray, (draws, d, d)
        The Hessian of the mean loss at the weights plus isotropic noise E, `floored` at `FLOOR` times
        `deviation`.
    n : int
        Public number of records.
    lam : float
        lambda > 0.
    tilt, output : float
        Standard deviations: b ~ N(0, tilt^2 I) and z ~ N(0, output^2 I).
    scores : numpy.ndarray, (draws, d, d), or None
        The mean of psi^2 x x', where psi is a record's slope. None uses the Hessian, which has the same
        expectation in a logistic model.
    deviation : float
        Standard deviation of the noise on the Hessian's diagonal.
    change : Callable or None
        `logistic_change` for logistic loss. None suits residuals with symmetric errors.

    Returns
    -------
    Linearised

    Examples
    --------
    >>> found = linearise(np.array([[0.9]]), np.array([[[0.2]]]), 1000, 0.02, tilt=0.0, output=0.0)
    >>> print(found.estimate.round(2), np.sqrt(found.covariance).round(4))  # 0.9 (1 + lam/H), 1/sqrt(n H)
    [[0.99]] [[[0.0707]]]
    """
    d = weights.shape[1]
    inverse = np.linalg.inv(hessian)
    pulled = hessian + lam * np.eye(d)
    moments = (hessian if scores is None else scores) / n + (tilt / n) ** 2 * np.eye(d)
    moments = moments + output**2 * pulled @ pulled
    added = lam * np.einsum("rij,rj->ri", inverse, weights)
    K = np.linalg.inv(pulled)
    U = _square(added) + K @ moments @ K
    if change is None:
        inverse = np.linalg.inv(unselected(hessian, deviation))
    unresolved = inverse @ symmetric_noise(U, deviation) @ inverse
    covariance = inverse @ moments @ inverse + unresolved
    if change is not None:
        moved = change(hessian, U)[:, None, None]
        covariance = covariance * (1 + np.minimum(CURVED * moved, 1.0))
        unresolved = np.where(moved < 1, unresolved, covariance)
    return Linearised(weights + added, covariance, unresolved)


def curvature_level(hessian: np.ndarray, deviation: float, bound: float = 1.0) -> np.ndarray:
    """Lower bound (draws,) on the mean of l'' over rows, which holds with probability 0.98.

    hessian (draws, d, d): as released, before it is floored. Its trace is the mean of l'' |x|^2, where
    |x| <= R = bound, plus noise of standard deviation sqrt(d) times `deviation`.
    """
    trace = np.trace(hessian, axis1=1, axis2=2)
    return (trace - 2 * deviation * np.sqrt(hessian.shape[1])) / bound**2


def logistic_change(hessian: np.ndarray, U: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Mean square change (draws,) of log l'' between weights that differ by u, where uu' has mean U.

    hessian, U: (draws, d, d). level (draws,): from `curvature_level`. For logistic loss, (d log l''/dz)^2 =
    1 - 4 l''. Means over rows are weighted by l'', so the mean of (x.u)^2 is tr(H U) over the mean of l'',
    which is at least `level`. If the level is not positive, noise hides the curvature, and the result is
    infinite. Without this rule, tables with a rare class would get wrong intervals by chance.
    """
    moved = np.einsum("rij,rji->r", hessian, U) / np.maximum(level, 1e-300)
    change = np.maximum(0.0, 1 - 4 * level) * moved
    return np.where(level > 0, change, np.inf)


class Steps(NamedTuple):
    """T released steps theta_{t+1} = theta_t + P m_t from theta_0 = 0, and other released statistics.

    m_t = X' clip(y - X theta_t, [-clip, clip]) + xi_t - ridge theta_t, with xi_t ~ N(0, sigma^2 I).

    thetas, moments (T, draws, d): theta_t and m_t. last (draws, d): theta_T. P (draws, d, d):
    preconditioner. D (draws, d, d): the sum of x x' over the rows whose residuals are not clipped. J
    (draws, d, d): the sum of clip(residual)^2 x x' over all rows. D and J are estimates for residuals near
    the true theta. deviation (draws,): standard deviation of the isotropic noise on D. error (draws,):
    relative standard error of D, a factor common to all entries. size (draws, d, d): X'X/n.
    """

    thetas: np.ndarray
    moments: np.ndarray
    last: np.ndarray
    P: np.ndarray
    D: np.ndarray
    J: np.ndarray
    deviation: np.ndarray
    error: np.ndarray
    size: np.ndarray
    sigma: float
    clip: float
    ridge: float = 0.0

    def spread(self) -> tuple[np.ndarray, np.ndarray]:
        """K and the covariance of theta_T under the linear recursion, both (draws, d, d).

        Let B = I - P (D + ridge I), K = sum over j < T of B^j P, and s as in `last_iterate`. Then
        theta_T = K D theta + K s + sum over j < T of B^j P xi_{T-1-j}.
        """
        d = self.last.shape[1]
        B = np.eye(d) - self.P @ (self.D + self.ridge * np.eye(d))
        power, K, noise = self.P, 0.0, 0.0
        for _ in range(len(self.thetas)):
            K, noise = K + power, noise + power @ power.transpose(0, 2, 1)  # type: ignore[assignment]
            power = B @ power
        return K, K @ self.J @ K.transpose(0, 2, 1) + self.sigma**2 * noise  # type: ignore[attr-defined, return-value]

    def clipped(self, theta: np.ndarray) -> np.ndarray:
        """The share (T, draws), at most 0.9, by which D at theta_t may be smaller than D at theta.

        Residuals change by x.(theta_t - theta). For symmetric errors, the first-order term cancels. The
        share is the mean square of these changes, divided by clip^2, as for log-cosh loss.
        """
        away = self.thetas - theta
        return np.minimum(0.9, np.einsum("tri,rij,trj->tr", away, self.size, away) / self.clip**2)

    def wrong(self, U: np.ndarray) -> np.ndarray:
        """Covariance (draws, d, d) of (error of D) u, where uu' has mean U."""
        whole = np.reshape(self.error, (-1, 1, 1)) ** 2 * self.D @ U @ self.D
        return symmetric_noise(U, self.deviation) + whole


def last_iterate(steps: Steps) -> Linearised:
    """Linearise the last of T steps, using the covariance and bias of the recursion.

    theta is the zero of the expected clipped moment; if errors are symmetric, theta equals the
    coefficients. Let s = X' clip(y - X theta), with covariance J. To first order, the clipped moment at
    theta_t is s - D (theta_t - theta). So theta_T is as in `Steps.spread`, with the mean K D theta, and
    multiplication by A = (K D)^-1 removes the bias.

    P is treated as independent of the rows' errors. An error E of D changes a step's moment by E u, where u
    = theta - theta_t. For every step, uu' is replaced by its mean over the steps.

    The first steps clip more residuals, so D is smaller there. Reducing D by `Steps.clipped` changes the
    mean; this change counts as unresolved.
    """
    K, inner = steps.spread()
    A = np.linalg.inv(K @ steps.D)
    estimate = np.einsum("rij,rj->ri", A, steps.last)
    away = estimate - steps.thetas
    U = np.einsum("tri,trj->rij", away, away) / len(away)
    turn = A @ K
    mean = np.zeros_like(estimate)
    for share in steps.clipped(estimate):
        force = np.einsum("rij,rj->ri", steps.D, estimate - mean) * (1 - share)[:, None]
        mean = mean + np.einsum("rij,rj->ri", steps.P, force - steps.ridge * mean)
    left = np.einsum("rij,rj->ri", A, mean) - estimate
    unresolved = turn @ steps.wrong(U) @ turn.transpose(0, 2, 1) + _square(left)
    return Linearised(estimate, A @ inner @ A.transpose(0, 2, 1) + unresolved, unresolved)


def late_iterates(steps: Steps) -> Linearised:
    """Linearise the mean of the second half of the steps, which has less noise than the last step.

    To first order, each step's released moment gives an estimate

        theta_t + D^-1 (m_t + ridge theta_t) = theta + D^-1 (s + xi_t)

    that does not depend on earlier noise, the starting point or the B of `Steps.spread`. The mean over k
    steps has covariance D^-1 (J + sigma^2/k I) D^-1; the covariance of `last_iterate` contains about
    sigma^2 in place of sigma^2/k. An error E of D adds D^-1 E u, where u is the mean of theta_t - theta. As
    in `linearise`, the mean of uu' is about cc' plus the covariance of theta_T, where c is the mean of D^-1
    (m_t + ridge theta_t). The product of c and the mean of `Steps.clipped` counts as unresolved.
    """
    half = len(steps.thetas) // 2
    theta, moment = steps.thetas[half:].mean(axis=0), steps.moments[half:].mean(axis=0)
    inverse, count = np.linalg.inv(steps.D), len(steps.thetas) - half
    added = np.einsum("rij,rj->ri", inverse, moment + steps.ridge * theta)
    noise = steps.sigma**2 / count * np.eye(theta.shape[1])
    U = _square(added) + steps.spread()[1]
    left = added * steps.clipped(theta + added)[half:].mean(axis=0)[:, None]
    unresolved = inverse @ steps.wrong(U) @ inverse + _square(left)
    covariance = inverse @ (steps.J + noise) @ inverse + unresolved
    return Linearised(theta + added, covariance, unresolved)


def _square(v):
    return v[:, :, None] * v[:, None, :]


def logistic_rows(
    hessian: np.ndarray,
    weights: np.ndarray,
    n: int,
    bound: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Simulated normal rows (n, d), clipped to `bound`, whose Hessian at the weights is about `hessian`."""

    def curvature(X):
        s = 1 / (1 + np.exp(-X @ weights))
        return s * (1 - s)

    return _rows_like(hessian, 4 * hessian, curvature, n, bound, rng)


def normal_rows(moment: np.ndarray, n: int, bound: float, rng: np.random.Generator) -> np.ndarray:
    """Simulated normal rows (n, d), clipped to `bound`, whose mean of x x' is about `moment` (d, d)."""
    return _rows_like(moment, moment, lambda X: np.ones(len(X)), n, bound, rng)


def _rows_like(matrix, start, weight, n, bound, rng, rounds=6):
    """Rows whose mean of weight(X) x x' has about the trace of `matrix`. start: the initial covariance."""
    unit = rng.standard_normal((n, len(matrix)))
    root = np.linalg.cholesky(start)
    for _ in range(rounds):
        X = unit @ root.T
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1) / bound)[:, None]
        root *= np.sqrt(np.trace(matrix) / (np.einsum("n,nd,nd->", weight(X), X, X) / n))
    return X


def normal_errors(ratio: float, loss: MarginLoss) -> tuple[float, float]:
    """(s, E l''(e)), where s is the sd of normal errors e with E l'(e)^2/E l''(e) = ratio.

    loss: a loss of residuals, such as log-cosh. The ratio increases with s, so bisection finds s, up to
    100 times the loss's width.
    """
    from scipy.special import ndtri

    e = ndtri((np.arange(2000) + 0.5) / 2000)
    low, high = 1e-6 * loss.kappa, 100 * loss.kappa  # type: ignore[attr-defined]
    while high > low * (1 + 1e-9):
        middle = np.sqrt(low * high)
        slope, curvature = loss.slopes(middle * e)
        small = (slope**2).mean() < ratio * curvature.mean()
        low, high = (middle, high) if small else (low, middle)
    return high, float(loss.slopes(high * e)[1].mean())


def logistic_labels(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw labels in {-1, 1} from the logistic model."""
    return np.where(rng.random(len(scores)) < 1 / (1 + np.exp(-scores)), 1.0, -1.0)


def bootstrap(
    estimate: np.ndarray,
    rows: np.ndarray,
    fit: Callable,
    rng: np.random.Generator,
    replicates: int = 200,
    level: float = 0.95,
    draw: Callable = logistic_labels,
    rounds: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Parametric bootstrap interval for one released estimate, at no privacy cost [1]_.

    Labels for `rows` are simulated from coefficients `centre`, initially the estimate, and `fit` is
    repeated `replicates` times. The ends are centre + estimate - quantile of the replicates: a basic
    interval if the centre is the estimate.

    Parameters
    ----------
    estimate : numpy.ndarray, (d,)
    rows : numpy.ndarray, (n, d)
        Simulated or public rows, with scores rows @ centre.
    fit : Callable
        Procedure (X, y, rng) -> (d,).
    rng : numpy.random.Generator
        Source of labels and noise.
    replicates : int
    level : float
        In (0, 1).
    draw : Callable
        (scores, rng) -> labels (n,).
    rounds : int
        Number of times that the centre moves by the estimate minus the replicates' mean. The last
        centre is an indirect estimate [2]_.

    Returns
    -------
    tuple of numpy.ndarray, (d,)
        (low, high).

    References
    ----------
    .. [1] Ferrando, Wang, Sheldon, AISTATS 2022.
    .. [2] arXiv 2507.10746.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> mean = lambda X, y, rng: np.array([2 * y.mean()])  # twice the mean label estimates small log odds
    >>> low, high = bootstrap(np.array([0.2]), np.ones((1000, 1)), mean, rng)
    >>> bool(low[0] < 0.2 < high[0])
    True
    """
    centre = np.array(estimate, dtype=float)
    estimates = np.empty((replicates, len(estimate)))
    for step in range(rounds + 1):
        scores = rows @ centre
        for k in range(replicates):
            estimates[k] = fit(rows, draw(scores, rng), rng)
        if step < rounds:
            centre = centre + estimate - estimates.mean(axis=0)
    tails = np.quantile(estimates, [(1 + level) / 2, (1 - level) / 2], axis=0)
    return tuple(centre + estimate - tails)
