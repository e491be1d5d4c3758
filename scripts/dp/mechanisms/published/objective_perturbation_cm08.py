"""Objective perturbation as Chaudhuri and Monteleoni (2008) print it: the proof omits the Jacobian."""

from dp import losses
from dp.mechanisms import register
from dp.mechanisms.objective_perturbation import Tilted
from dp.options import LOSS, TOLERANCE
from dp.proofs.laplace_tilt import exact_epsilon


@register("objective_perturbation_cm08")
class ObjectivePerturbationCM08(Tilted):
    """As printed in CM08: ||b|| ~ Gamma(d, 2 kappa R / epsilon), which does not account for the Jacobian.

    Here, epsilon excludes the output noise's share. The source claims privacy only for margin
    losses, so numeric targets are refused.
    """

    numbers = False
    options = LOSS | TOLERANCE

    def _guarantee(self, n, d, p):
        """`exact_epsilon` at epsilon' = (1 - s) epsilon, plus s epsilon.

        s is the output noise's share. The sum is at least epsilon. For logistic loss, it equals epsilon
        if n lam epsilon' >= 2 R^2.
        """
        plan = self._plan(n, d, p)
        n_lambda = n * p.lam
        excess = max(0.0, exact_epsilon(plan.epsilon, n_lambda, p.bound, p.loss) - plan.epsilon)
        here = f"with it {p.epsilon + excess:.6g} holds" if excess else "here it costs nothing"
        if type(losses.get(p.loss)) is losses.Logistic:
            here += (
                f", n lambda epsilon' = {n_lambda * plan.epsilon:.6g} {'<' if excess else '>='} "
                f"2 R^2 = {2 * p.bound**2:g}"
            )
        reason = f"the proof leaves out the Jacobian of b -> w; {here}; {self._paid(plan, d, p.tolerance)}"
        return p.proven(reason, p.epsilon + excess)

    def tilt(
        self, n: int, epsilon: float, lam: float, bound: float = 1.0, loss: losses.Loss = "logistic"
    ) -> tuple[float, float]:
        return epsilon, 0.0
