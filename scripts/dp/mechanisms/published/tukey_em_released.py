"""TukeyEM as in its authors' program (Amin et al. 2023)."""

import math

from dp.mechanisms import register
from dp.mechanisms.tukey_em import ShellModel
from dp.proofs import tukey
from dp_privacy.accounting import none


@register("tukey_em_released")
class TukeyEMReleased(ShellModel):
    """TukeyEM as in its authors' program, reimplemented from a description.

    The program's test has noise of scale epsilon/2 instead of 2/epsilon. Unlike that of
    `dp.proofs.tukey`, it omits the deepest depth, and its distance k^ is -1 if no k satisfies the
    condition. Depth i has the weight e^{epsilon i/2}, but the point comes from shell i + 1, between
    the boxes R_{i+1} and R_{i+2}. The point is not uniform there: to draw which coordinate is the
    first outside R_{i+2}, the program gives later coordinates the lengths of R_{i+2}, not of R_{i+1}.
    """

    def _plan(self, p):
        return p.epsilon / 2, -1, p.epsilon / 2

    def _guarantee(self, n, d, p):
        """No finite epsilon (see the pair `tukey_shell` of `dp_audit.pairs`)."""
        reason = (
            f"where all shells but one are thin, the wide one is drawn from with probability "
            f"{1 / (1 + math.exp(p.epsilon / 2)):.3g} on one data set and hardly ever on a neighbour, "
            f"because the point is of the shell after the one whose depth was drawn; and whether there is "
            f"an answer is no better than {2 / p.epsilon:.6g}-DP, where the proof needs {p.epsilon / 2:.6g}"
        )
        return none(p.epsilon, reason)

    def _tested(self, volumes):
        return volumes[:, :-1]

    def _draw(self, points, volumes, t, rate, rng):
        shells = tukey.log_shells(volumes, t, rate)[:, :-1]  # no shell follows the deepest one
        depth = t + tukey.choose(shells, rng)
        return tukey.shell_point(points, depth + 1, rng, inner_right=True)
