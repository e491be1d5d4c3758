"""Checks of privacy proofs, each comparing a computed number with a threshold."""

from checks.statements import Outcome
from study.configuration.inputs import NOTHING
from study.configuration.kinds import check
from study.configuration.options import Options


class Jacobian(Options):
    cases: list
    tolerance: float = 0.0005


@check(NOTHING, Jacobian)
def jacobian(results, *, cases, tolerance):
    """In every case, the exact epsilon of objective perturbation as printed exceeds the claimed epsilon.
    A case is [claimed epsilon, n lambda, expected exact epsilon]. The exact epsilon, the supremum of the
    privacy loss, must also equal the expected one up to `tolerance`.
    """
    from dp.proofs.laplace_tilt import exact_epsilon

    exact = [exact_epsilon(epsilon, n_lambda) for epsilon, n_lambda, _ in cases]
    holds = all(
        abs(value - expected) <= tolerance and value > epsilon
        for value, (epsilon, _, expected) in zip(exact, cases, strict=True)
    )
    texts = [
        f"at n lambda = {n_lambda:g} a claimed epsilon of {epsilon:g} is {value:.4g}"
        for value, (epsilon, n_lambda, _) in zip(exact, cases, strict=True)
    ]
    worst = max(range(len(cases)), key=lambda k: exact[k] / cases[k][0])
    return Outcome(holds, "; ".join(texts), exact[worst], float(cases[worst][0]))


class GaussianExcess(Options):
    cases: list
    delta: float


@check(NOTHING, GaussianExcess)
def gaussian_excess(results, *, cases, delta):
    """In every case, the exact epsilon of classically calibrated Gaussian noise exceeds the claimed
    epsilon. A case is [claimed epsilon, expected epsilon]. The exact epsilon at the same delta must be
    within 1 % of the expected epsilon. The noise is sqrt(2 ln(1.25/delta)) D/epsilon (Dwork, Roth 2014,
    appendix A).
    """
    from dp_privacy.accounting import classical_gaussian_sigma, gaussian_epsilon

    exact = [
        gaussian_epsilon(classical_gaussian_sigma(claimed, delta), delta) for claimed, _ in cases
    ]
    holds = all(
        value > claimed and abs(value / expected - 1) <= 0.01
        for value, (claimed, expected) in zip(exact, cases, strict=True)
    )
    texts = [
        f"claimed {claimed:g} is {value:.4g} at delta = {delta:g}"
        for value, (claimed, _) in zip(exact, cases, strict=True)
    ]
    worst = max(range(len(cases)), key=lambda k: exact[k] / cases[k][0])
    return Outcome(holds, "; ".join(texts), exact[worst], float(cases[worst][0]))


class LaplaceDeviation(Options):
    epsilons: list
    at_least: float


@check(NOTHING, LaplaceDeviation)
def laplace_deviation(results, *, epsilons, at_least):
    """Laplace noise with a *standard deviation* of sensitivity/epsilon loses at least `at_least` times
    epsilon, at every listed epsilon. With this number as its scale, it would lose epsilon.
    """
    import numpy as np
    from scipy.stats import laplace

    ratios = []
    for epsilon in epsilons:
        noise = laplace(scale=1 / epsilon / laplace.std())  # for a sensitivity of 1
        at = np.linspace(-5, 5, 1001)
        ratios.append(float((noise.logpdf(at) - noise.logpdf(at - 1)).max()) / epsilon)
    texts = [
        f"at a claimed epsilon of {epsilon:g} the loss is {ratio * epsilon:.4g}"
        for epsilon, ratio in zip(epsilons, ratios, strict=True)
    ]
    return Outcome(min(ratios) >= at_least, "; ".join(texts), min(ratios), at_least)
