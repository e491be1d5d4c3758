"""Iterative Hessian Mixing (Lev, Shenfeld, Srinivasan, Ligett, Wilson, arXiv 2601.07545).

`dp.proofs.sketches` has the accounting.
"""

import math
from functools import lru_cache

import numpy as np

from dp.mechanisms import Mechanism, register
from dp.mechanisms.boosted_adassp import boost
from dp.options import ADJACENCY, PUBLIC_N, Between, Ordinary, Whole, public_size, unused_size
from dp.proofs import quadratics, sketches
from dp_privacy.accounting import gaussian_mu
from dp_privacy.errors import Refused
from dp_privacy.sensitivities import vector_sum

EPSILONS = 1e-3, 30.0  # epsilons for which `calibrate` finds the noise
PRIVATE_SIDE = 1e-3  # relative bracket width at which `calibrate` ends


@lru_cache(maxsize=64)
def calibrate(
    rows: int, steps: int, epsilon: float, delta: float, tau0: float, share: float, adjacency: str
) -> tuple:
    """gamma, each gradient's mu, and the profile at R = 1, for nearly the minimum noise.

    m is the approximate Gaussian-DP parameter of all releases. Gradients get `share` of m^2, and
    the T = `steps` sketches of k = `rows` rows get 1 - share, approximated as Gaussian with
    parameter sqrt(k T/2)/gamma (times sqrt(2) under replace-one). The search finds the largest m
    whose exact profile of all releases is (epsilon, delta)-DP.
    """
    both = vector_sum(1.0, adjacency)

    def at(m):
        gamma = max(1.01, math.sqrt(both * rows * steps / 2 / (1 - share)) / m)
        gradient = m * math.sqrt(share / steps)
        return gamma, gradient, sketches.total(rows, steps, gamma, gradient, tau0, 1.0, adjacency)

    low, high = 0.0, gaussian_mu(epsilon, delta)  # at `high` there is too little noise
    m, best = 0.9 * high, None
    while high - low > PRIVATE_SIDE * high:
        trial = at(m)
        over = math.log(max(float(trial[2].delta(epsilon)), 1e-300) / delta)
        low, high, best = (m, high, trial) if over <= 0 else (low, m, best)
        if -0.01 < over <= 0:
            break
        # Slightly more than Newton's step, as log delta is about -(epsilon/m)^2/2 + constant.
        step = over * m * m / max(epsilon / m, 2.0) ** 2 / m
        m -= step + math.copysign(PRIVATE_SIDE / 2 * m, over)
        if not low < m < high:
            m = (low + high) / 2
    return best


@register("iterative_hessian_mixing")
class IterativeHessianMixing(Mechanism):
    """T steps theta += H^-1 (X' clip(y - X theta, [-clip, clip]) + noise), H = X~'X~/k from sketched rows.

    X~ has k = 6 max(d, log(4 T/rho)) rows of N(0, X'X + g^2 I), drawn anew for every step, where

        rho  = delta/10
        g^2  = max(0, gamma - l)
        l    = max(0, smallest eigenvalue of X'X - (gamma/sqrt k)(tau0 - N(0, 1)))
        tau0 = sqrt(2 log max(3/delta, 2/rho)).

    gamma and the noise follow from the exact profile of all releases together, not from the
    authors' Renyi bound.

    share: the gradients' share of the squared Gaussian-DP parameter (`calibrate`).
    """

    delta = "needed"
    least_delta = 1e-14  # below it, integrals of the sketches' profile take minutes
    needs_lambda = False
    numbers = True
    options = {
        "iterations": Whole(3),
        "clip": Ordinary(1.0),
        "share": Between(0.5, low=0, high=1),
        **ADJACENCY,
        **PUBLIC_N,
    }

    # `check` omits the guarantee, which takes a second to compute.
    check = Mechanism.parameters

    def _check_together(self, n, d, p):
        if p.delta and not EPSILONS[0] <= p.epsilon <= EPSILONS[1]:
            raise Refused(
                f"{self.name}: epsilon must lie in [{EPSILONS[0]:g}, {EPSILONS[1]:g}], where its noise can "
                f"be found, not {p.epsilon:g}"
            )

    def _plan(self, d, p):
        """k, tau0, gamma, the standard deviation of the gradients' noise, and the profile."""
        rho = p.delta / 10
        rows = math.ceil(6 * max(d, math.log(4 * p.iterations / rho)))
        tau0 = math.sqrt(2 * math.log(max(3 / p.delta, 2 / rho)))
        gamma, gradient, profile = calibrate(
            rows, p.iterations, p.epsilon, p.delta, tau0, p.share, p.adjacency
        )
        moved = vector_sum(p.clip, p.adjacency) * p.bound
        return rows, tau0, gamma * p.bound**2, moved / gradient, profile

    def _guarantee(self, n, d, p):
        rows, _, gamma, sigma, profile = self._plan(d, p)
        reason = (
            f"{p.iterations} Gaussian sketches of {rows} rows with eigenvalues of at least gamma = "
            f"{gamma:.6g}, a Gaussian release of the smallest eigenvalue, and {p.iterations} gradients "
            f"with noise of standard deviation {sigma:.6g}, composed exactly"
        )
        reason += public_size(p) if p.lam > 0 else unused_size(p)  # gradients contain n lambda
        return p.proven(reason, profile=profile)

    def _release(self, X, y, p, draws, rng):
        """H is sampled as A^1/2 W A^1/2, where A = X'X + g^2 I and W is Wishart, so steps need no X~."""
        n, d = p.public_n or len(X), X.shape[1]
        rows, tau0, gamma, sigma, _ = self._plan(d, p)
        values, vectors = np.linalg.eigh(quadratics.moments(X, y)[0])
        noisy = values[0] - gamma / math.sqrt(rows) * (tau0 - rng.standard_normal(draws))
        added = np.maximum(0.0, gamma - np.maximum(0.0, noisy))
        # Without rounding, `values + added` is below gamma with probability at most Phi(-tau0), which
        # delta covers.
        root = np.sqrt(np.maximum(values + added[:, None], 1e-9 * gamma))
        half = vectors * root[:, None, :]

        def precondition(moment):
            H = half @ wishart(rows, d, draws, rng) @ half.transpose(0, 2, 1)
            return np.linalg.solve(H + n * p.lam * np.eye(d), moment[..., None])[..., 0]

        weights = boost(X, y, p, precondition, sigma, draws, rng)
        return weights, {"scale": sigma, "gamma": gamma}


def wishart(rows: int, d: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draws of Z'Z/k, (draws, d, d), by Bartlett's decomposition.

    Z has k = `rows` rows of d standard normals, where k >= d.
    """
    B = np.tril(rng.standard_normal((draws, d, d)), -1)
    B[:, range(d), range(d)] = np.sqrt(rng.chisquare(rows - np.arange(d), (draws, d)))
    return B @ B.transpose(0, 2, 1) / rows
