"""Classification with second derivatives: preconditioned gradient descent, and Newton's method.

All releases are Gaussian, and their mu^2 add up (Dong, Roth, Su, JRSS B 84, 2022, corollary 3.3).
Without clipping, a record's gradient has norm at most R (logistic) or sqrt(2) R (softmax).
`dp_privacy.sensitivities` proves the sensitivities of the matrices. Under add-remove, sums are
divided by a public n: `public_n`, or the number of records.
"""

import math

import numpy as np

from dp.descents import full_batch
from dp.mechanism import Parameters
from dp.mechanisms import Mechanism, register
from dp.mechanisms.gradient_descent import Classifier, gradient_norm
from dp.noise import gaussian
from dp.options import ADJACENCY, PUBLIC_N, Between, Choice, Optional, Whole, public_size
from dp.proofs.quadratics import inverse, noisy
from dp_privacy import sensitivities
from dp_privacy.profiles import Gaussian

CURVATURE = {"logistic": 0.25, "softmax": 0.5}  # a record's maximum curvature, divided by R^2


def gradient_sum(p: Parameters, loss: str = "logistic") -> float:
    """L2 sensitivity of a sum of gradients."""
    return sensitivities.vector_sum(gradient_norm(p, loss), p.adjacency)


@register("preconditioned_gd")
class PreconditionedGradientDescent(Classifier):
    """Gradient descent preconditioned by one noisy majorant of all Hessians.

    The majorant c X'X/n with c = 1/4 (softmax: 1/2) bounds all Hessians (Boehning, Lindsay, 1988;
    Boehning, 1992), so noiseless steps with its inverse decrease the objective. The majorant is
    released once, with isotropic noise of standard deviation s for a Frobenius sensitivity of
    sqrt(2) c R^2/n (add-remove: c R^2/n). Negative eigenvalues become 0. Then all are raised by
    lambda + s sqrt(2d), where s sqrt(2d) is about the noise's largest eigenvalue. With the inverse
    P, T steps follow: w <- w - P (gradient + lambda w + noise).

    share: the matrix's share of mu^2.
    iterations: T, by default 5 if n mu/sqrt(d) < 150, else 10.
    """

    delta = "needed"
    options = (
        {"loss": Choice("logistic", "softmax"), "iterations": Optional(Whole())}
        | {"share": Between(0.25, low=0, high=1)}
        | ADJACENCY
        | PUBLIC_N
    )

    def _scales(self, n, d, p):
        """T, and standard deviations of the noise on the matrix and each mean gradient."""
        mu = p.mu
        steps = p.iterations or (5 if n * mu / math.sqrt(d) < 150 else 10)
        matrix = CURVATURE[p.loss] * sensitivities.gram(p.bound, p.adjacency) / n
        gradient = gradient_sum(p, p.loss) / n
        return (
            steps,
            matrix / (mu * math.sqrt(p.share)),
            gradient * math.sqrt(steps / (1 - p.share)) / mu,
        )

    def _guarantee(self, n, d, p):
        steps, matrix, gradient = self._scales(n, d, p)
        reason = (
            f"one Gaussian release of a matrix, standard deviation {matrix:.6g}, and {steps} of mean "
            f"gradients, standard deviation {gradient:.6g}, compose to Gaussian DP with mu = {p.mu:.6g}"
        )
        return p.proven(reason + public_size(p), profile=Gaussian(p.mu))

    def _release(self, X, y, p, draws, rng):
        n, d = p.public_n or len(X), X.shape[1]
        steps, matrix, sigma = self._scales(n, d, p)
        ridge = sensitivities.spectral_ridge(matrix, d) + p.lam
        majorant = noisy(CURVATURE[p.loss] * (X.T @ X) / n, matrix, draws, rng)
        settings = {
            "iterations": steps,
            "learning_rate": 1.0,
            "precondition": inverse(majorant, ridge),
        }
        settings |= {"clip": gradient_norm(p, p.loss), "sigma": sigma, "traced": False}
        weights, _ = self._descend(X, y, p, **settings, restarts=draws, rng=rng)
        return weights, {"scale": sigma, "matrix_scale": matrix}


@register("dp_newton")
class DPNewton(Mechanism):
    """Newton's method for logistic loss with noisy gradients and directions (Ganesh et al., NeurIPS 2023).

    Each step releases the mean gradient g and the trace of the Hessian H with noise. The ridge l =
    max((c tr/(n^2 rho))^(1/3), 1/n) follows from the noisy trace tr. Here, c is 1/2, and rho is half
    the direction's mu^2. One record changes the direction (H + (l + lambda) I)^-1 g, for the noisy
    g, by at most |g| D, with D from `dp_privacy.sensitivities.newton_direction`. The direction's
    noise has standard deviation |g| D/mu. The source has R = 1. Here, weights are in units of 1/R.

    H has the weights tanh(z/2)/(2z) <= 1/4 of the tightest quadratic bound on the loss at margin z,
    so steps do not diverge. Of mu^2, gradients get 70 %, traces 3 % and directions 27 %, each share
    split equally over T = `iterations` steps.

    The noisy trace is floored at its noise's standard deviation. The source floors it at 0, so a
    negative trace makes the ridge 1/n. D grows as 1/l^2, so one such step can raise the norm of the
    weights to 10^5. With our floor, |g| D/mu is at most 0.28 |g|/l.
    """

    delta = "needed"
    needs_lambda = False
    options = {"iterations": Whole(15)} | ADJACENCY | PUBLIC_N

    def _scales(self, n, p):
        """Standard deviations of the noise on mean gradients and traces, and every direction's mu."""
        gradient, trace, direction = (
            p.mu * math.sqrt(share / p.iterations) for share in (0.70, 0.03, 0.27)
        )
        return (
            gradient_sum(p) / (n * gradient),
            sensitivities.hessian_trace(p.bound) / (n * trace),
            direction,
        )

    def _guarantee(self, n, d, p):
        gradient, trace, direction = self._scales(n, p)
        reason = (
            f"{p.iterations} steps, each a Gaussian release of the mean gradient (standard deviation "
            f"{gradient:.6g}), of the Hessian's trace ({trace:.6g}) and of the direction (mu = "
            f"{direction:.6g}), compose to Gaussian DP with mu = {p.mu:.6g}"
        )
        return p.proven(reason + public_size(p), profile=Gaussian(p.mu))

    def _ridge(self, n, p, trace, deviation, mu):
        """The ridge l, elementwise. l, the noisy `trace` and its noise's `deviation` scale with R^2."""
        unit = p.bound**2
        trace = np.maximum(trace, deviation)
        return unit * np.maximum(np.cbrt(trace / unit / (n * mu) ** 2), 1 / n)

    def _release(self, X, y, p, draws, rng):
        n, d = p.public_n or len(X), X.shape[1]
        sigma, trace_sigma, mu = self._scales(n, p)
        y, squares = np.asarray(y, dtype=float), np.einsum("nd,nd->n", X, X)
        W = np.zeros((draws, d))
        for _ in range(p.iterations):
            _, gradient = full_batch.mean_gradient(
                X, y, W[:, :, None], "logistic", gradient_norm(p)
            )
            gradient = gradient[:, :, 0] * (len(X) / n) + gaussian(d, sigma, draws, rng) + p.lam * W
            weights = _weights(W @ X.T)
            trace = weights @ squares / n + gaussian(1, trace_sigma, draws, rng)[:, 0]
            ridge = p.lam + self._ridge(n, p, trace, trace_sigma, mu)
            noise = gaussian(d, 1.0, draws, rng)
            for r in range(draws):
                H = (X.T * (weights[r] / n)) @ X + ridge[r] * np.eye(d)
                moved = n * sensitivities.newton_direction(n * ridge[r], p.bound)
                size = np.linalg.norm(gradient[r])
                step = np.linalg.solve(H, gradient[r]) + size * moved / mu * noise[r]
                W[r] -= step
        return W, {"scale": sigma}


def _weights(z):
    """The records' weights in the Hessian's upper bound, in [0, 1/4], for margins z."""
    z = np.nan_to_num(z)  # a record's contribution must stay bounded after overflow
    z = np.maximum(np.abs(z), 1e-6)  # below 1e-6, tanh(z/2)/(2z) is within 1e-13 of 1/4
    return np.minimum(np.tanh(z / 2) / (2 * z), 0.25)
