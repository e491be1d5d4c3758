"""Checks that compute: defects of privacy proofs, each with its number and its threshold."""

import math

from checks.results import Missing
from checks.statements import Outcome


def jacobian(results, *, cases, tolerance=5e-4):
    """The exact epsilon of objective perturbation as printed exceeds its claim: for every case
    [epsilon, n lambda, expected supremum] the computed supremum is the expected one and over epsilon.
    """
    from dp.mechanisms.objective_perturbation import exact_epsilon

    found = [exact_epsilon(epsilon, n_lambda) for epsilon, n_lambda, _ in cases]
    holds = all(
        abs(value - expected) <= tolerance and value > epsilon
        for value, (epsilon, _, expected) in zip(found, cases, strict=True)
    )
    texts = [
        f"at n lambda = {n_lambda:g} a claimed epsilon of {epsilon:g} is {value:.4g}"
        for value, (epsilon, n_lambda, _) in zip(found, cases, strict=True)
    ]
    worst = max(range(len(cases)), key=lambda k: found[k] / cases[k][0])
    return Outcome(holds, "; ".join(texts), found[worst], float(cases[worst][0]))


def proven_as_claimed(results, *, method, **where):
    """A method's proven epsilon is the claimed one in every cell of `where` (`Results.cells`)."""
    frame = results.cells(methods=method, **where)
    if frame.empty:
        raise Missing(f"this run has no cell of {method}")
    excess = (frame["epsilon_proven"] / frame["epsilon_claimed"]).max()
    text = (
        f"in {len(frame)} cells of {method} the proven epsilon is at most {excess:.6g} times "
        f"the claimed one"
    )
    return Outcome(bool(excess <= 1 + 1e-9), text, float(excess), 1.0)


def gaussian_excess(results, *, cases, delta):
    """Classically calibrated Gaussian noise exceeds its claim: for every case [claimed epsilon,
    expected epsilon], the exact epsilon at the same delta is as expected (to 1 %) and larger.

    The noise is sqrt(2 ln(1.25/delta)) D/epsilon (Dwork, Roth 2014, appendix A); its exact epsilon is
    the one at which `gaussian_delta` is delta.
    """
    from dp.accounting import gaussian_delta

    found = []
    for claimed, _ in cases:
        sigma = math.sqrt(2 * math.log(1.25 / delta)) / claimed
        low, high = 0.0, 2.0 * claimed + 10
        while gaussian_delta(sigma, high) > delta:
            high *= 2
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if gaussian_delta(sigma, middle) > delta else (low, middle)
        found.append(high)
    holds = all(
        value > claimed and abs(value / expected - 1) <= 0.01
        for value, (claimed, expected) in zip(found, cases, strict=True)
    )
    texts = [
        f"claimed {claimed:g} is {value:.4g} at delta = {delta:g}"
        for value, (claimed, _) in zip(found, cases, strict=True)
    ]
    worst = max(range(len(cases)), key=lambda k: found[k] / cases[k][0])
    return Outcome(holds, "; ".join(texts), found[worst], float(cases[worst][0]))
