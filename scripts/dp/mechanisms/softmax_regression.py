"""Softmax regression without privacy."""

import numpy as np

from dp.descents.full_batch import classes_of, mean_gradient
from dp.mechanism import repeated
from dp.mechanisms import Mechanism, Release, register
from dp.options import Ordinary, Whole


@register("softmax_regression")
class SoftmaxRegression(Mechanism):
    """Without privacy: argmin of mean_i loss_i(W) + lam/2 ||W||^2, by SciPy's L-BFGS.

    tolerance: the maximum absolute entry of the final gradient.
    """

    private = False
    facts = ("classes",)
    options = {"tolerance": Ordinary(1e-6), "iterations": Whole(1000)}

    def _classes(self, p):
        return classes_of("softmax", p.classes)

    def _guarantee(self, n, d, p):
        return "the minimiser is released"

    def _release(self, X, y, p, draws, rng):
        from scipy.optimize import minimize  # slow to import

        shape, y = (1, X.shape[1], p.classes), np.asarray(y).astype(int)

        def objective(flat):
            W = flat.reshape(shape)
            value, gradient = mean_gradient(X, y, W, "softmax")
            return value[0] + p.lam / 2 * (flat @ flat), gradient.ravel() + p.lam * flat

        ends = {"gtol": p.tolerance, "ftol": 0.0, "maxiter": p.iterations, "maxcor": 30}
        result = minimize(
            objective, np.zeros(np.prod(shape)), jac=True, method="L-BFGS-B", options=ends
        )
        status = "ok" if np.abs(result.jac).max() <= p.tolerance else "not_converged"
        info = {"gradient_norm": np.array([np.linalg.norm(result.jac)])}
        return repeated(Release(result.x.reshape(shape), np.array([status]), info), draws)
