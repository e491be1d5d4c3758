"""Released programs, reimplemented from descriptions, with their claims.

config/experiments/released_code.yaml names repositories and commits. The programs' defects do
not affect the papers' theorems.
"""

import math

import numpy as np

from dp.mechanism import Parameters
from dp.mechanisms import Mechanism, Release, register
from dp.mechanisms.gaussian_objective_perturbation import AMP
from dp.noise import gaussian, laplace
from dp.options import Between, Choice, Ordinary, Positive, Whole, public_size
from dp.proofs import quadratics
from dp_privacy import composition
from dp_privacy.accounting import ADD_REMOVE, Guarantee, gaussian_sigma, none
from dp_privacy.profiles import Gaussian


class _SeededByAByte:
    """Normal draws from NumPy's legacy generator, with one of 256 seeds for each draw (row)."""

    def __init__(self, rng: np.random.Generator, draws: int) -> None:
        seeds, self.which = np.unique(rng.integers(256, size=draws), return_inverse=True)
        self.states = [np.random.RandomState(seed) for seed in seeds]

    def standard_normal(self, shape: tuple[int, int]) -> np.ndarray:
        return np.array([state.standard_normal(shape[1]) for state in self.states])[self.which]


@register("amp_released")
class AMPReleased(AMP):
    """AMP as a program that seeds its generator with one random byte before drawing the noise.

    So a data set has 256 possible releases. Whoever knows all other records can compute them for
    each candidate record.

    If the solver stops early, the program doubles its gradient bound, which also depends on the
    data. This is omitted.
    """

    def _guarantee(self, n, d, p):
        reason = (
            "the noise is one of 256 known vectors, a byte's worth of seeds: neighbours have 256 releases "
            "each, in general all different, so that one release tells them apart"
        )
        return none(p.epsilon, reason)

    def _release(self, X, y, p, draws, rng):
        return super()._release(X, y, p, draws, _SeededByAByte(rng, draws))


@register("adassp_released")
class AdaSSPReleased(Mechanism):
    """The program of AdaSSP's experiments, which first scales the rows without noise.

    It centres targets, divides them by their maximum absolute value, standardises columns, and
    normalises rows. Then it releases X'X + I, its smallest eigenvalue, and X'y. The normal noise
    has standard deviation 3 sqrt(log(6/delta))/epsilon, and half this variance off the diagonal of
    X'X.
    """

    delta = "needed"
    needs_lambda = False
    numbers = True

    def _guarantee(self, n, d, p):
        reason = (
            "targets are divided by the largest of them and columns standardised, without noise: one "
            "record can change every other by a factor as large as one likes, for which there is no noise"
        )
        return none(p.epsilon, reason, ADD_REMOVE)

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        X, y = X - X.mean(axis=0), y - y.mean()
        y = y / (np.abs(y).max() or 1.0)
        X = X / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        gram, moment = quadratics.moments(X / np.where(norms > 0, norms, 1.0), y)
        gram = gram + (1 + n * p.lam) * np.eye(d)
        logarithm = math.log(6 / p.delta)
        scale = math.sqrt(logarithm) * 3 / p.epsilon
        noise = gaussian(1 + quadratics.coefficients(d), 1.0, draws, rng)
        E, e = quadratics.isotropic(noise[:, 1:], d)
        least = np.linalg.eigvalsh(gram)[0] + scale * (noise[:, 0] - math.sqrt(logarithm))
        wanted = scale * math.sqrt(d * math.log(2 * d * d / 0.05))
        ridge = np.maximum(0.0, wanted - np.maximum(0.0, least))
        A = gram + scale * E + ridge[:, None, None] * np.eye(d)
        weights = np.linalg.solve(A, (moment + scale * e)[..., None])[..., 0]
        return Release(weights, np.full(draws, "ok"), {"scale": scale})


@register("functional_released")
class FunctionalReleased(Mechanism):
    """diffprivlib's LinearRegression without an intercept, for columns in [0, R] and targets in [-1, 1].

    Every coefficient of the squared loss, including the constant, gets Laplace noise for an equal
    share of epsilon. The sensitivity of a column's sum of squares is computed only from the lower
    bound, 0, so the diagonal of X'X has no noise. A quadratic without a minimum has the status
    "unbounded".
    """

    needs_lambda = False
    numbers = True

    def _guarantee(self, n, d, p):
        reason = (
            "the noise on a column's sum of squares is for the square of its lower bound, 0: the sum "
            "divides a noisy X'y as it is, and a record that is most of it shows in the release's spread"
        )
        return none(p.epsilon, reason)

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        count = quadratics.coefficients(d)
        noise = laplace(count, (1 + count) / p.epsilon, draws, rng)
        # Sensitivities: 2R for x y, 0 for x^2, and R^2 for a product of two columns, doubled here because
        # `unpack` halves its noise.
        rows, columns = np.triu_indices(d)
        noise[:, :d] *= 2 * p.bound
        noise[:, d:] *= np.where(rows == columns, 0.0, 2 * p.bound**2)
        E, e = quadratics.unpack(noise, d)
        gram, moment = quadratics.moments(X, y)
        A = gram + E + n * p.lam * np.eye(d)
        weights, unbounded = quadratics.solve(A, moment + e, repair="none")
        failed = ~np.isfinite(weights).all(axis=1)
        return Release(weights, np.where(failed, "unbounded", "ok"), {"unbounded": unbounded})


@register("functional_centred_released")
class FunctionalCentredReleased(Mechanism):
    """diffprivlib's LinearRegression with an intercept, its default.

    Columns are in [0, R] and targets in [-1, 1]. The columns' noisy means, clipped to the bounds,
    cost epsilon/(d + 1) together. The targets' mean costs as much again, although only one such
    share is set aside. The coefficients of the centred rows' squared loss share d/(d + 1) of
    epsilon. So all parts cost (d + 2)/(d + 1) epsilon. The noise on a column's sum of squares is
    for a sensitivity of (lower bound - noisy mean)^2. A negative noisy sum is negated.

    info["intercept"]: (restarts,).
    """

    needs_lambda = False
    numbers = True

    def _guarantee(self, n, d, p):
        reason = (
            f"the means of columns and of targets get epsilon/(d + 1) each, where one such share is set "
            f"aside, {(d + 2) / (d + 1):.6g} times epsilon in all; and the noise on a column's sum of "
            f"squares is for the distance of its lower bound from the noisy mean, which is often 0"
        )
        return none(p.epsilon, reason)

    def _release(self, X, y, p, draws, rng):
        (n, d), R, y = X.shape, p.bound, np.asarray(y, dtype=float)
        share = p.epsilon / (d + 1)
        means = np.clip(X.mean(axis=0) + laplace(d, R * d / (n * share), draws, rng), 0.0, R)
        mean = np.clip(y.mean() + laplace(1, 2 / (n * share), draws, rng), -1.0, 1.0)
        (gram, moment), total = quadratics.moments(X, y), X.sum(axis=0)
        across = means[:, :, None] * total
        gram = gram - across - across.transpose(0, 2, 1) + n * means[:, :, None] * means[:, None, :]
        moment = moment - means * y.sum() - total * mean + n * means * mean
        # A product's sensitivity is its range over the corners of the centred bounds. For a square, the
        # program takes the square of the centred lower bound, -`means`.
        of_x, of_y = np.stack([-means, R - means]), np.stack([-1 - mean, 1 - mean])
        corners = of_x[:, None] * of_y[None]
        product = np.ptp(corners.reshape(4, draws, d), axis=0)
        corners = of_x[:, None, :, :, None] * of_x[None, :, :, None, :]
        square = np.ptp(corners.reshape(4, draws, d, d), axis=0)
        square[:, range(d), range(d)] = means**2
        local = (p.epsilon - share) / (1 + quadratics.coefficients(d))
        noise = laplace(quadratics.coefficients(d), 1 / local, draws, rng)
        E, e = quadratics.unpack(noise, d)  # halves entries off the diagonal
        A = np.asarray(gram + E * square * np.where(np.eye(d) > 0, 1.0, 2.0))
        A[:, range(d), range(d)] = np.abs(A[:, range(d), range(d)])
        weights, unbounded = quadratics.solve(A, moment + e * product, repair="none")
        failed = ~np.isfinite(weights).all(axis=1)
        intercept = np.where(failed, 0.0, mean[:, 0] - (means * weights).sum(axis=1))
        info = {"unbounded": unbounded, "intercept": intercept}
        return Release(weights, np.where(failed, "unbounded", "ok"), info)


@register("least_squares_released")
class LeastSquaresReleased(Mechanism):
    """DPrivStats' dp_lm for a private design: least squares with Gaussian noise on the weights.

    The sensitivity in dp_lm is 3 R D over the smallest eigenvalue of the private X'X, where R
    bounds the rows' norms and D = 2 is the width of the targets' bounds. The manual calls the factor 3 a
    heuristic. A singular X'X is refused. There is no ridge, so lambda is ignored.
    """

    delta = "needed"
    needs_lambda = False
    numbers = True

    def _guarantee(self, n, d, p):
        reason = (
            "the noise is scaled by the smallest eigenvalue of the private X'X: two data sets in which one "
            "record makes it large or small have releases of different spread, by any factor; and a "
            "singular X'X, which one record can make or prevent, is refused"
        )
        return none(p.epsilon, reason)

    def _release(self, X, y, p, draws, rng):
        d = X.shape[1]
        gram, moment = quadratics.moments(X, y)
        values = np.linalg.eigvalsh(gram)
        if values[0] <= math.sqrt(np.finfo(float).eps) * values[-1]:
            return Release(np.zeros((draws, d)), np.full(draws, "refused"), {})
        sigma = gaussian_sigma(p.epsilon, p.delta, 6 * p.bound / values[0])
        weights = np.linalg.solve(gram, moment) + gaussian(d, sigma, draws, rng)
        return Release(weights, np.full(draws, "ok"), {"scale": sigma})


@register("poisson_sgd_released")
class PoissonSGDReleased(Mechanism):
    """Opacus' DP-SGD for logistic loss, given a batch size and a target epsilon.

    There are n/batch batches, rounded up. A record is in each batch with probability 1/(number of
    batches). A noisy sum of clipped gradients is divided by n times that probability, rounded down.
    Here, dp_accounting replaces the program's accountant. The program accounts for add-remove,
    under which n is private.

    records:
      "public"   n is the number of rows, taken as public: the same with or without a record. Under
                 this premise, as for `dp_sgd_poisson` without `public_n`, the claim is proven
      "private"  neighbours have n and n + 1 rows, as the program counts them: there is no finite epsilon
    """

    delta = "needed"
    least_delta = composition.LEAST_DELTA
    needs_lambda = False
    options = {
        "batch": Whole(64),
        "epochs": Whole(1),
        "learning_rate": Positive(1.0),
        "clip": Ordinary(1.0),
        "records": Choice("public", "private"),
    }

    # `check` omits the search for the noise, which takes a second and refuses nothing more.
    check = Mechanism.parameters

    def _noise(self, n, p):
        """(steps, sampling, divisor, standard deviation of a sum's noise in units of `clip`, profile)."""
        batches = math.ceil(n / p.batch)
        steps, sampling, divisor = p.epochs * batches, 1 / batches, n // batches
        if batches == 1:
            return steps, sampling, divisor, math.sqrt(steps) / p.mu, Gaussian(p.mu)
        noise = composition.sampled_multiplier(p.epsilon, p.delta, steps, sampling, ADD_REMOVE)
        return steps, sampling, divisor, *noise

    def _guarantee(self, n, d, p):
        if p.records == "private":
            reason = (
                "n is private, and the number of steps and what divides the noise follow from it, without "
                "noise: where one record more makes one more batch, releases have another spread on every "
                "coordinate, of which there may be any number"
            )
            return none(p.epsilon, reason, ADD_REMOVE)
        steps, sampling, divisor, multiplier, profile = self._noise(n, p)
        of = Parameters(adjacency=ADD_REMOVE)
        reason = (
            f"{steps} sums of gradients clipped to {p.clip:g} over Poisson batches of probability "
            f"{sampling:.6g}, divided by {divisor}, with noise of {multiplier:.6g} times the clipping "
            f"norm, composed by a privacy loss distribution{public_size(of)}"
        )
        return Guarantee(p.epsilon, p.epsilon, p.delta, ADD_REMOVE, reason, profile)

    def _release(self, X, y, p, draws, rng):
        V = X * y[:, None]
        n, d = V.shape
        steps, sampling, divisor, sigma, _ = self._noise(n, p)
        norms, w = np.linalg.norm(V, axis=1), np.zeros((draws, d))
        for _ in range(steps):
            slope = 1 / (1 + np.exp(np.clip(w @ V.T, -700, 700)))
            slope *= np.minimum(1.0, p.clip / np.maximum(slope * norms, 1e-300))
            total = (slope * (rng.random((draws, n)) < sampling)) @ V
            total += gaussian(d, p.clip * sigma, draws, rng)
            w = w + p.learning_rate * (total / divisor - p.lam * w)
        return Release(w, np.full(draws, "ok"), {"scale": p.clip * sigma / divisor})


REGULARISATION = 1e-8  # the ridge that `NewtonReleased` adds to the mean loss


def zero_concentrated(epsilon: float, delta: float) -> float:
    """The rho that solves epsilon = rho + sqrt(4 rho log(sqrt(pi rho)/delta)).

    Bun, Steinke, TCC 2016, lemma 3.6.
    """
    from scipy.optimize import brentq

    def over(root):  # root = sqrt(rho); a negative logarithm counts as 0
        room = math.log(max(math.sqrt(math.pi) * root / delta, 1.0))
        return root**2 + 2 * root * math.sqrt(room) - epsilon

    return brentq(over, 0.0, 2 * math.sqrt(epsilon), xtol=1e-300, rtol=1e-12) ** 2


@register("newton_released")
class NewtonReleased(Mechanism):
    """The damped private Newton method for logistic loss, a baseline in DP-Newton's program.

    It takes T steps from a random unit vector. Each step spends rho/T (`zero_concentrated`): `share`
    of it on the gradient's Gaussian noise, the rest on the Hessian's. Eigenvalues are floored at
    1e-5. The step is the noisy direction times min(log(1 + s)/s, 1), where s is the norm of the
    direction *without noise*. The program's reset of weights with large norms is omitted.
    """

    delta = "needed"
    needs_lambda = False
    options = {"iterations": Whole(15), "share": Between(0.7, low=0, high=1)}

    def _guarantee(self, n, d, p):
        reason = (
            "each step's noise is multiplied by a function of the size of the Newton direction without "
            "noise, which a single record can change by any factor where the others have no curvature"
        )
        return none(p.epsilon, reason, ADD_REMOVE)

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        rho = zero_concentrated(p.epsilon, p.delta) / p.iterations
        sigma = math.sqrt(0.5 / (p.share * rho)) / n
        sigma_hessian = math.sqrt(0.5 / ((1 - p.share) * rho)) / (4 * n)
        V = X * y[:, None] / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        squares = np.einsum("ij,ik->ijk", V, V).reshape(n, d * d) / n
        ridge = REGULARISATION + p.lam
        w = rng.standard_normal((draws, d))
        w /= np.linalg.norm(w, axis=1, keepdims=True)
        for _ in range(p.iterations):
            s = 1 / (1 + np.exp(np.clip(w @ V.T, -700, 700)))
            gradient = ridge * w - s @ V / n
            hessian = (s * (1 - s) @ squares).reshape(draws, d, d) + ridge * np.eye(d)
            Z = rng.standard_normal((draws, d, d))
            values, vectors = np.linalg.eigh(
                hessian + sigma_hessian * (Z + Z.transpose(0, 2, 1)) / 2
            )
            noisy = gradient + gaussian(d, sigma, draws, rng)
            along = np.einsum("rij,ri->rj", vectors, noisy) / np.maximum(values, 1e-5)
            direction = np.einsum("rij,rj->ri", vectors, along)
            exact = np.linalg.norm(np.linalg.solve(hessian, gradient[..., None])[..., 0], axis=1)
            length = np.minimum(np.log1p(exact) / np.maximum(exact, 1e-300), 1.0)
            w = w - length[:, None] * direction
        return Release(w, np.full(draws, "ok"), {"scale": sigma})
