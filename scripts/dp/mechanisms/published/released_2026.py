"""Programs released or current in 2025 and 2026, reimplemented from descriptions, with their claims.

config/experiments/released_code.yaml names repositories and commits.
"""

import math

import numpy as np

from dp import losses
from dp.mechanisms import Mechanism, Release, register
from dp.mechanisms.objective_perturbation import Tilted
from dp.noise import gaussian, laplace
from dp.options import LOSS, TOLERANCE
from dp.proofs import quadratics
from dp.proofs.laplace_tilt import exact_epsilon, margin_loss
from dp.solvers.newton import minimise
from dp_privacy.accounting import ADD_REMOVE, Guarantee, gaussian_epsilon, none
from dp_privacy.errors import Refused
from dp_privacy.profiles import Gaussian

# With a larger parameter, a cell of the tree of `CellsReleased` is split some ten times per record in it.
MOST_MU = 8.0


@register("objective_unscaled_released")
class ObjectiveUnscaledReleased(Tilted):
    """diffprivlib's LogisticRegression without an intercept, for rows of norm at most R (`data_norm`).

    It follows CMS11's algorithm 2, but takes c R where the Jacobian of rows of norm R needs c R^2. So
    2 log(1 + c R/(n lambda)) of epsilon is set aside, or the ridge is c R/(n (e^(epsilon/4) - 1)). For
    R = 1 both are the same. The solver's error has noise, as in `objective_perturbation`.
    """

    numbers = False
    options = LOSS | TOLERANCE

    def _guarantee(self, n, d, p):
        plan = self._plan(n, d, p)
        n_lambda = n * (p.lam + plan.ridge)
        tilt = exact_epsilon(plan.epsilon_b, n_lambda, p.bound, p.loss)
        proven = max(p.epsilon, tilt + p.epsilon - plan.epsilon)
        reason = (
            f"the Jacobian's share of epsilon is for c R = {losses.get(p.loss).c * p.bound:.6g}, not for "
            f"c R^2 = {losses.get(p.loss).c * p.bound**2:.6g}, at n lambda = {n_lambda:.6g}; "
            f"{self._paid(plan, d, p.tolerance)}"
        )
        return p.proven(reason, proven)

    def tilt(
        self, n: int, epsilon: float, lam: float, bound: float = 1.0, loss: losses.Loss = "logistic"
    ) -> tuple[float, float]:
        c = margin_loss(loss).c * bound
        epsilon_b = epsilon - 2 * math.log1p(c / (n * lam))
        if epsilon_b > 0:
            return epsilon_b, 0.0
        return epsilon / 2, c / (n * math.expm1(epsilon / 4)) - lam


def classical(epsilon: float, delta: float) -> float:
    """Noise in units of the sensitivity by the classical formula."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


@register("logit_with_errors_released")
class LogitWithErrorsReleased(Mechanism):
    """dp-statsmodels' Logit: a tilted logistic regression, and its standard errors.

    The tilt's standard deviation is 2 R sqrt(2 log(1.25/delta))/(n lambda epsilon), the formula for noise
    on a minimiser, which is n lambda times too small for noise in the sum of losses. The standard errors
    are the diagonal's roots of the inverse of X'WX/n + lambda I at the weights, from the rows without
    noise. The tilt's small addition to them is left out.

    info["intercept"]: (restarts,), the first weight's standard error.
    """

    delta = "needed"

    def _guarantee(self, n, d, p):
        return none(
            p.epsilon,
            "standard errors are computed from the rows without noise; and the tilt's noise is divided by "
            f"n lambda = {n * p.lam:.6g}, although the tilt is added to the sum of the losses",
        )

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        scale = 2 * p.bound * classical(p.epsilon, p.delta) / (n * p.lam)
        weights, info = minimise(X, y, p.lam, linear=gaussian(d, scale, draws, rng), tolerance=1e-8)
        weights = np.where((info["status"] == "ok")[:, None], weights, 0.0)
        share = 1 / (1 + np.exp(np.clip(-weights @ X.T, -700, 700)))
        information = np.einsum("ri,ij,ik->rjk", share * (1 - share), X, X) / n + p.lam * np.eye(d)
        errors = np.sqrt(np.diagonal(np.linalg.inv(information), axis1=1, axis2=2))
        return Release(weights, info["status"], {"scale": scale, "intercept": errors[:, 0]})


@register("moments_in_fifths_released")
class MomentsInFifthsReleased(Mechanism):
    """dp-statsmodels' OLS: X'X, X'y and y'y with noise for 2/5, 2/5, 1/5 of epsilon, and thirds of delta.

    The classical formula gives more noise than exact accounting of all three needs. The number of records,
    which the program releases, is taken as public. A smallest eigenvalue that is not positive is added to
    the diagonal, with 1e-6.
    """

    delta = "needed"
    needs_lambda = False
    numbers = True

    def _guarantee(self, n, d, p):
        parts = [classical(share * p.epsilon, p.delta / 3) for share in (0.4, 0.4, 0.2)]
        mu = math.sqrt(sum(part**-2 for part in parts))
        epsilon = gaussian_epsilon(1 / mu, p.delta)
        reason = (
            f"three Gaussian releases compose to Gaussian DP with mu = {mu:.6g}: at this delta epsilon = "
            f"{epsilon:.6g}; the number of records, which the program releases, is taken as public"
        )
        return Guarantee(p.epsilon, epsilon, p.delta, ADD_REMOVE, reason, Gaussian(mu))

    def _release(self, X, y, p, draws, rng):
        d, delta = X.shape[1], p.delta / 3
        scale = p.bound * classical(0.4 * p.epsilon, delta)  # targets are in [-1, 1]
        noise = gaussian(quadratics.coefficients(d), 1.0, draws, rng)
        E, _ = quadratics.upper_triangle(noise, d)
        gram, moment = quadratics.moments(X, y)
        A = np.asarray(gram + p.bound * scale * E)
        least = np.linalg.eigvalsh(A)[:, 0]
        A = A + np.where(least <= 0, np.abs(least) + 1e-6, 0.0)[:, None, None] * np.eye(d)
        b = np.asarray(moment + gaussian(d, scale, draws, rng))
        weights = np.linalg.solve(A, b[..., None])[..., 0]
        return Release(weights, np.full(draws, "ok"), {"scale": scale})


@register("cells_released")
class CellsReleased(Mechanism):
    """BinAgg 0.1.0: noisy counts and sums of cells that a private tree chooses, and a line through them.

    Columns are in [-R, R]. The Gaussian-DP parameter mu of (epsilon, delta) is split as 1 : 3 : 3 : 3 among
    the tree, counts, sums of columns and sums of targets. A cell includes both of its ends, so a record on
    the border of two cells is counted in both, and in both branches of the tree. Noisy counts are then
    scaled to the sum of the counts *without noise*. Here, cells with fewer than two records are kept.

    info["intercept"]: (restarts,), the sum of the released counts.
    """

    delta = "needed"
    needs_lambda = False
    numbers = True

    def _guarantee(self, n, d, p):
        self._mus(p)
        return none(
            p.epsilon,
            "noisy counts are scaled to the sum of the exact ones, in which a record on the border of two "
            "cells is counted twice: this sum has no noise; and sums are for a record in one cell",
        )

    def _mus(self, p):
        """Gaussian-DP parameters of the tree, counts, and both sums. Refuse a tree that hardly ends."""
        mus = p.mu * np.array([1, 3, 3, 3]) / math.sqrt(28)
        if mus[0] > MOST_MU:
            raise Refused(
                f"{self.name}: epsilon = {p.epsilon:g} is too large: the tree splits every record's cell "
                f"without end"
            )
        return mus

    def _release(self, X, y, p, draws, rng):
        released = [self._of_cells(X, y, p, rng) for _ in range(draws)]
        weights, totals = map(np.array, zip(*released, strict=True))
        return Release(weights, np.full(draws, "ok"), {"intercept": totals})

    def _of_cells(self, X, y, p, rng):
        mu = self._mus(p)
        cells = _tree(X, p.bound, mu[0], rng)
        inside = np.array([((low <= X) & (high >= X)).all(axis=1) for low, high in cells])
        reach = np.array([np.maximum(abs(low), abs(high)) for low, high in cells])
        counts = inside.sum(axis=1)
        noisy = np.maximum(1.0, np.rint(counts + rng.normal(0, 1 / mu[1], len(cells))))
        noisy *= counts.sum() / noisy.sum()
        sums = inside @ X + rng.normal(size=reach.shape) * reach / mu[2]
        targets = inside @ y + rng.normal(0, 1 / mu[3], len(cells))
        gram = (sums / noisy[:, None]).T @ sums
        bias = np.diag((reach**2 / noisy[:, None]).mean(axis=0) / mu[2] ** 2)
        moment = (sums / noisy[:, None]).T @ targets
        return np.linalg.lstsq(gram - bias, moment, rcond=None)[0], noisy.sum()


def _tree(X, bound, mu, rng):
    """Cells (low, high) of PrivTree (Zhang, Xiao, Xie 2016) with two branches, at least d + 1."""
    # The epsilon-DP that is mu-GDP, as the program converts it.
    epsilon = math.log(_odds(mu))
    scale = 3 / epsilon
    penalty = scale * math.log(2)
    d = X.shape[1]
    waiting, leaves = [(np.full(d, -bound), np.full(d, bound + 1e-8), 0)], []
    while waiting:
        low, high, depth = waiting.pop(0)
        count = ((low <= X) & (high >= X)).all(axis=1).sum()
        score = max(count - penalty * depth, -penalty) + float(laplace(1, scale, 1, rng)[0, 0])
        if score > 0 or len(waiting) + len(leaves) < d:
            middle, k = (low + high) / 2, int(np.argmax(high - low))
            left, right = high.copy(), low.copy()
            left[k] = right[k] = middle[k]
            waiting += [(low, left, depth + 1), (right, high, depth + 1)]
        else:
            leaves.append((low, high))
    return leaves


def _odds(mu):
    from scipy.special import ndtr

    return ndtr(mu / 2) / ndtr(-mu / 2)
