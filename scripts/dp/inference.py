"""Confidence intervals from private releases, which include the noise and undo the ridge's shrinkage.

All of this is post-processing of what was released and of public numbers. There are no intervals for
boosted AdaSSP: its release has the covariance and bias of its own recursion, and does not show how
residuals spread.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

COARSE = 0.5  # standard errors of bias left: intervals that say 95 % cover 92 %


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

    bias: about how much bias is left, in standard errors. coarse: whether that is too much for intervals.
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

    weights: (draws, d), b ~ N(0, tilt^2 I) and z ~ N(0, output^2 I). hessian: (draws, d, d), that of the
    mean loss at the weights, positive definite, with noise whose spectral norm is about `error`. scores:
    (draws, d, d), the mean of psi^2 x x', where psi is a record's slope; None takes the Hessian in its
    place, which is right for the logistic loss if the labels follow a logistic model. bend: how fast the
    loss' curvature changes, sup |d log l''/dz|, over the root of its largest value; 2 for logistic loss.

    With g the mean loss's gradient at the truth theta and K = (H + lam)^-1, to first order

        w - theta = -K (g + lam theta + b/n) + z,

    so that w has the mean K H theta. A = I + lam H^-1, the inverse of K H, undoes that. Since A K =
    H^-1, the estimate A w has the variance H^-1 (J/n + tilt^2/n^2) H^-1 + output^2 A A', J the `scores`.

    The curvature between w and theta differs from H by a factor of up to e^(sup |d log l''/dz| |change of a
    row's z|), and H has noise. So what A adds has a relative error of about (root mean square of that
    exponent + error/smallest eigenvalue of H).
    """
    d = weights.shape[1]
    inverse = np.linalg.inv(hessian)
    A = np.eye(d) + lam * inverse
    moments = (hessian if scores is None else scores) / n + (tilt / n) ** 2 * np.eye(d)
    covariance = inverse @ moments @ inverse + output**2 * A @ A.transpose(0, 2, 1)
    added = lam * np.einsum("rij,rj->ri", inverse, weights)
    # mean over rows of l'' (x.change)^2 = change' H change, and bend has the root of the largest l''
    K = np.linalg.inv(hessian + lam * np.eye(d))
    noise = (tilt / n) ** 2 * K @ K + output**2 * np.eye(d)
    change = np.einsum("rij,rji->r", hessian, noise)
    change = bend * np.sqrt(change + np.einsum("ri,rij,rj->r", added, hessian, added))
    wrong = change + error / np.linalg.eigvalsh(hessian)[:, 0]
    errors = added**2 / np.diagonal(covariance, axis1=1, axis2=2)
    return Linearised(weights + added, covariance, np.sqrt(errors.mean(axis=1)) * wrong)


def logistic_rows(
    hessian: np.ndarray,
    weights: np.ndarray,
    n: int,
    bound: float,
    rng: np.random.Generator,
    rounds: int = 6,
) -> np.ndarray:
    """Rows (n, d) of norm at most `bound`, normal before they are clipped, that give about this Hessian.

    They are for a parametric bootstrap without public rows: the release determines no more about rows.
    hessian: (d, d), at weights (d,).
    """
    unit = rng.standard_normal((n, len(weights)))
    root = np.linalg.cholesky(4 * hessian)
    for _ in range(rounds):
        X = unit @ root.T
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1) / bound)[:, None]
        s = 1 / (1 + np.exp(-X @ weights))
        root *= np.sqrt(np.trace(hessian) / (np.einsum("n,nd,nd->", s * (1 - s), X, X) / n))
    return X


def bootstrap(
    estimate: np.ndarray,
    rows: np.ndarray,
    fit: Callable,
    rng: np.random.Generator,
    replicates: int = 200,
    level: float = 0.95,
) -> tuple[np.ndarray, np.ndarray]:
    """Parametric bootstrap (Ferrando, Wang, Sheldon, AISTATS 2022), for one released estimate (d,).

    `replicates` times, labels of `rows` (n, d), simulated or public, are drawn from the logistic model
    with `estimate`, and fit(X, y, rng) -> (d,) repeats the whole private procedure on them. Returns (low,
    high), the ends of basic intervals 2 estimate - quantile. It costs no privacy.
    """
    p = 1 / (1 + np.exp(-rows @ estimate))
    found = np.empty((replicates, len(estimate)))
    for k in range(replicates):
        y = np.where(rng.random(len(p)) < p, 1.0, -1.0)
        found[k] = fit(rows, y, rng)
    tails = np.quantile(found, [(1 + level) / 2, (1 - level) / 2], axis=0)
    return tuple(2 * estimate - tails)
