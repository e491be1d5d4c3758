"""Output perturbation of an elastic net: `lasso_output_perturbation`, repaired."""

from dp.mechanism import Parameters
from dp.mechanisms import register
from dp.mechanisms.output_perturbation import Perturbed, certificate, sensitivity
from dp.options import TOLERANCE, Optional, Positive


@register("elastic_net_output_perturbation")
class ElasticNetOutputPerturbation(Perturbed):
    """w + z, where w minimises mean logistic loss + lambda1 ||w||_1 + lam/2 ||w||^2.

    ||z|| ~ Gamma(d, sensitivity / epsilon) as in output perturbation. Only the term with lam
    (lambda2) makes the objective strongly convex. There is no free intercept.

    lambda1: weight of ||w||_1, by default lam. It costs no privacy.
    """

    fit = "elastic_net"

    options = {"lambda1": Optional(Positive())} | TOLERANCE

    def scale(self, n: int, d: int, p: Parameters) -> float:
        return sensitivity(n, p.lam, p.bound, tolerance=p.tolerance) / p.epsilon

    def _guarantee(self, n, d, p):
        """epsilon-DP as for output perturbation.

        `dp.mechanisms.output_perturbation.sensitivity` needs lam-strongly convex objectives that
        differ by a function with gradient at most 2R/n. The convex lambda1 ||w||_1 changes neither
        property. A point with a subgradient of norm tau is within tau/lam of the minimiser, because
        subgradients of a lam-strongly convex function are lam-strongly monotone.
        """
        scale = self.scale(n, d, p)
        return (
            f"lambda2/2 ||w||^2 makes the objective strongly convex, lambda1 ||w||_1 leaves it so: L2 "
            f"sensitivity at most 2R/(n lambda2) + 2 tau/lambda2 = {scale * p.epsilon:.6g}, "
            f"{certificate(p, 'norm of a subgradient')}; norm of the noise ~ Gamma({d}, {scale:.6g})"
        )
