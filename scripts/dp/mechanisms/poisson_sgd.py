"""Stochastic gradient descent on Poisson batches, with Gaussian noise (Abadi et al., CCS 2016)."""

import math

from dp.mechanisms import register
from dp.mechanisms.gradient_descent import LOSS, Classifier
from dp.options import ADJACENCY, PUBLIC_N, Between, Ordinary, Positive, Whole, public_size
from dp_privacy import composition
from dp_privacy.errors import Refused
from dp_privacy.profiles import Gaussian
from dp_privacy.sensitivities import vector_sum


@register("dp_sgd_poisson")
class PoissonSGD(Classifier):
    """w <- w - rate ((sum of clipped gradients + noise)/(q n) + lambda w) over Poisson batches.

    Each record is in a step's batch independently with probability q = `sampling`. Sums are divided
    by q n, never by a batch's secret size. Under add-remove, n is `public_n` or the number of
    records, taken as public. Steps are Poisson-subsampled Gaussian mechanisms, composed by privacy
    loss distributions (`dp_privacy.composition.sampled_multiplier`). If q = 1, composition is
    exact. For shuffled batches, no amplification by sampling is proven.
    """

    delta = "needed"
    least_delta = composition.LEAST_DELTA  # also at sampling = 1, so that studies can vary sampling
    options = LOSS | {
        "sampling": Between(0.05, low=0, high=1 + 1e-12),
        "iterations": Whole(300),
        "learning_rate": Positive(2.0),
        "clip": Ordinary(1.0),
        **ADJACENCY,
        **PUBLIC_N,
    }

    # `check` omits the guarantee, which takes a second to compute.
    check = Classifier.parameters

    def _check_together(self, n, d, p):
        super()._check_together(n, d, p)
        if not 0.01 <= p.epsilon <= 100 and p.sampling < 1:
            raise Refused(
                f"privacy loss distributions are composed for an epsilon of 0.01 to 100, not "
                f"{p.epsilon:g}: set sampling to 1"
            )

    def _noise(self, p):
        """The noise multiplier of a batch sum (standard deviation over `clip`), and the full profile."""
        if p.sampling >= 1:
            return vector_sum(1.0, p.adjacency) * math.sqrt(p.iterations) / p.mu, Gaussian(p.mu)
        return composition.sampled_multiplier(
            p.epsilon, p.delta, p.iterations, p.sampling, p.adjacency
        )

    def _guarantee(self, n, d, p):
        multiplier, profile = self._noise(p)
        reason = (
            f"{p.iterations} sums of gradients clipped to {p.clip:g} over Poisson batches of probability "
            f"{p.sampling:g}, divided by {p.sampling * n:g}, the probability times n; noise on the "
            f"quotient of standard deviation {self._scale(n, p):.6g}, on the sum {multiplier:.6g} times "
            f"the clipping norm; composed by a privacy loss distribution{public_size(p)}"
        )
        return p.proven(reason, profile=profile)

    def _scale(self, n, p):
        return self._noise(p)[0] * p.clip / (p.sampling * n)

    def _release(self, X, y, p, draws, rng):
        scale = self._scale(p.public_n or len(X), p)
        sampling = p.sampling if p.sampling < 1 else None
        noise = {"clip": p.clip, "sigma": scale, "restarts": draws, "rng": rng}
        return self._descend(X, y, p, sampling=sampling, **noise)[0], {"scale": scale}
