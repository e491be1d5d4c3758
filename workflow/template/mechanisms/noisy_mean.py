"""The mean of y x with noise: a direction between two classes."""

from dp.mechanisms import Mechanism, register
from dp.noise import l2_laplace
from dp.options import Positive


@register("noisy_mean")
class NoisyMean(Mechanism):
    """w = stretch (mean of y x + z), ||z|| ~ Gamma(d, 2R/(n epsilon)).

    To use a library's mechanism instead, import it here and call it in `_release`.
    """

    needs_lambda = False
    options = {"stretch": Positive(1.0)}

    def _guarantee(self, n, d, p):
        return f"one record moves the mean by at most 2R/n = {2 * p.bound / n:.6g}"

    def _release(self, X, y, p, draws, rng):
        n, d = X.shape
        noise = l2_laplace(d, 2 * p.bound / (n * p.epsilon), draws, rng)
        return p.stretch * (y @ X / n + noise)
