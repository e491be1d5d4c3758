"""Bounds on the excess risk, as the papers print them."""

import math


def cm08_lemma_3(n: int, d: int, *, lam: float, epsilon: float, delta: float) -> float:
    """Output perturbation: an excess risk bound that holds with probability 1 - delta over the noise.

    The bound is 2 d^2 (1 + lam) log^2(d/delta) / (lam^2 n^2 epsilon^2) (Chaudhuri, Monteleoni, NIPS 2008,
    lemma 3), for mean logistic loss + lam/2 ||w||^2 and rows of norm at most 1. It follows from the
    objective's smoothness (1/4 + lam, at most 1 + lam), the noise's norm z ~ Gamma(d, scale) with
    scale = 2/(n lam epsilon), and P(z > d log(d/delta) scale) <= delta.
    """
    _check(n, d, lam, epsilon, delta)
    return 2 * (d * math.log(d / delta)) ** 2 * (1 + lam) / (lam * n * epsilon) ** 2


def cm08_lemma_4(n: int, d: int, *, lam: float, epsilon: float, delta: float) -> float:
    """Objective perturbation: an excess risk bound that holds with probability 1 - delta over the noise.

    The bound is 8 d^2 log^2(d/delta) / (lam n^2 epsilon^2) (Chaudhuri, Monteleoni, NIPS 2008, lemma 4). By
    strong convexity, the noise b in the objective's linear term moves the minimiser by at most ||b||/(n
    lam), which raises the objective by at most ||b||^2/(n^2 lam). With ||b|| ~ Gamma(d, 2/epsilon), the
    factor is 4; the printed 8 leaves room for the mechanism's output noise and its share of epsilon.
    """
    _check(n, d, lam, epsilon, delta)
    return 8 * (d * math.log(d / delta)) ** 2 / (lam * (n * epsilon) ** 2)


def cm08_theorem_4(d: int, *, norm: float, loss: float, epsilon: float, delta: float) -> float:
    """Objective perturbation: the number of rows that suffice for a loss close to a good classifier's.

    It is max(norm^2/loss^2, d log(d/delta) norm/(loss epsilon)) (Chaudhuri, Monteleoni, NIPS 2008, theorem
    4), up to a constant factor that the source omits. With probability 1 - delta, the released loss is then
    at most `loss` above that of a classifier of this norm.
    """
    return max((norm / loss) ** 2, d * math.log(d / delta) * norm / (loss * epsilon))


def cm08_theorem_5(d: int, *, norm: float, loss: float, epsilon: float, delta: float) -> float:
    """Output perturbation: the number of rows that suffice, in the sense of `cm08_theorem_4`.

    It is the larger of `cm08_theorem_4` and d log(d/delta) norm^2/(loss^(3/2) epsilon) (Chaudhuri,
    Monteleoni, NIPS 2008, theorem 5).
    """
    third = d * math.log(d / delta) * norm**2 / (loss**1.5 * epsilon)
    return max(cm08_theorem_4(d, norm=norm, loss=loss, epsilon=epsilon, delta=delta), third)


BOUNDS = {"cm08_lemma_3": cm08_lemma_3, "cm08_lemma_4": cm08_lemma_4}


def _check(n, d, lam, epsilon, delta):
    if not (n > 0 and d > 0 and lam > 0 and epsilon > 0 and 0 < delta < 1):
        raise ValueError(
            f"the bound needs positive n, d, lambda and epsilon, and 0 < delta < 1, "
            f"not {n}, {d}, {lam}, {epsilon}, {delta}"
        )
