"""Posterior sampling: one exact draw from a tempered posterior on a public ball.

The density is exp(-gamma (F(w) + n lam/2 ||w||^2)) on ||w|| <= rho, where F is the summed loss.
This is the exponential mechanism. Replacing a record changes F(w) by at most D = sup |l - l'|, so
the density and its integral each change by a factor of at most e^(gamma D). With gamma =
epsilon/(2D), the draw is epsilon-DP (McSherry, Talwar, FOCS 2007; Wang, Fienberg, Smola, ICML
2015). The draw must be exact: an error of t in total variation would add (1 + e^epsilon) t to delta.
The rejection sampler never gives up, because giving up would distinguish data sets.
"""

import numpy as np

from dp.mechanisms import Mechanism, register
from dp.options import Choice, Ordinary
from dp.proofs import posterior
from dp_privacy.errors import Refused

MOST = 1e8  # maximum mean number of proposals per draw on any data set; 1e8 take minutes


@register("posterior_sampling")
class PosteriorSampling(Mechanism):
    """One draw from the tempered posterior of squared or logistic loss on ||w|| <= radius.

    Settings whose draws might take too long are refused.
    """

    needs_lambda = False
    numbers = True
    options = {"loss": Choice("squared", "logistic"), "radius": Ordinary(1.0)}

    def _check_together(self, n, d, p):
        most = posterior.most_proposals(p.loss, n, d, p.epsilon, p.radius * p.bound)
        if most > MOST:
            raise Refused(
                f"at d = {d}, radius {p.radius:g} and bound {p.bound:g} a draw for {p.loss} loss may take "
                f"{most:.1g} proposals: give a smaller radius"
            )

    def _guarantee(self, n, d, p):
        gamma = self._gamma(p)
        return (
            f"one exact draw from exp(-gamma F) on the ball of radius {p.radius:g}, gamma = "
            f"{gamma:.6g} = epsilon/(2D), D = {p.epsilon / (2 * gamma):.6g} the range of one record's "
            f"loss there; the rejection sampler goes on until it accepts, and its running time, which "
            f"depends on the data, is not covered"
        )

    def _gamma(self, p):
        return float(p.epsilon / (2 * posterior.loss_range(p.loss, p.radius * p.bound)))

    def _release(self, X, y, p, draws, rng):
        """info["acceptance"]: the accepted share of proposals."""
        gamma, y = self._gamma(p), np.asarray(y, dtype=float)
        build = posterior.squared_envelope if p.loss == "squared" else posterior.logistic_envelope
        precision, linear, log_excess = build(X, y, gamma, len(X) * p.lam, p.radius)
        accepted, tried = posterior.truncated_draws(
            precision, linear, p.radius, draws, rng, log_excess
        )
        return accepted, {"acceptance": draws / tried, "gamma": gamma}
