"""Checks of privacy proofs, each comparing a computed number with a threshold."""

import math

from checks.results import Missing
from checks.statements import Outcome
from study.configuration.inputs import NOTHING, RESULTS
from study.configuration.kinds import check
from study.configuration.options import Mechanism, Method, Options, Point


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


class ProvenAsClaimed(Point):
    method: Method


@check(RESULTS, ProvenAsClaimed)
def proven_as_claimed(results, *, method, **where):
    """In every cell of `where`, the proven epsilon of a method is at most its claimed epsilon."""
    frame = results.cells(methods=method, **where)
    if frame.empty:
        raise Missing(f"this run has no cell of {method}")
    if "epsilon_proven" not in frame:
        raise Missing("the cells were not aggregated")
    excess = (frame["epsilon_proven"] / frame["epsilon_claimed"]).max()
    text = (
        f"in {len(frame)} cells of {method} the proven epsilon is at most {excess:.6g} times "
        f"the claimed one"
    )
    return Outcome(bool(excess <= 1 + 1e-9), text, float(excess), 1.0)


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


class GaussianLossExceeds(Options):
    epsilons: list
    delta: float
    at_least: float


@check(NOTHING, GaussianLossExceeds)
def gaussian_loss_exceeds(results, *, epsilons, delta, at_least):
    """The privacy loss of classical Gaussian noise exceeds epsilon with a probability of at least
    `at_least`. For pure epsilon-DP, that probability is 0. If neighbours are mu standard deviations of
    the noise apart, the loss is normal with mean mu^2/2 and standard deviation mu (Dong, Roth, Su 2022).
    """
    from scipy.stats import norm

    tails = []
    for epsilon in epsilons:
        mu = epsilon / math.sqrt(2 * math.log(1.25 / delta))
        tails.append(float(norm.sf(epsilon, mu**2 / 2, mu)))
    texts = [f"{p:.3g} at {e:g}" for p, e in zip(tails, epsilons, strict=True)]
    chances = ", ".join(texts)
    text = f"the loss exceeds the claimed epsilon with probability {chances} (delta = {delta:g})"
    return Outcome(min(tails) >= at_least, text, min(tails), at_least)


class GuaranteeRatio(Options):
    mechanism: Mechanism
    n: float
    d: float
    epsilon: float
    lam: float | None = None
    delta: float = 0.0
    at_least: float
    options: dict | None = None
    bound: float = 1.0


@check(NOTHING, GuaranteeRatio)
def guarantee_ratio(results, *, mechanism, n, d, epsilon, lam, delta, at_least, options, bound):
    """For n rows and d columns, the proven epsilon of a mechanism is at least `at_least` times the
    epsilon that its source claims. The proven epsilon is infinite if nothing is proven.
    """
    from dp.mechanisms import MECHANISMS

    guarantee = MECHANISMS[mechanism].guarantee(
        n, d, epsilon=epsilon, delta=delta, lam=lam, bound=bound, **(options or {})
    )
    ratio = guarantee.epsilon / guarantee.claimed_epsilon
    options_text = "".join(f", {key} = {value}" for key, value in (options or {}).items())
    text = (
        f"{mechanism} at n = {n}, d = {d}{options_text}: claimed {guarantee.claimed_epsilon:g}, proven "
        f"{guarantee.epsilon:.6g} ({guarantee.reason})"
    )
    return Outcome(bool(ratio >= at_least), text, float(ratio), float(at_least))


class ClippedMeanMoves(Options):
    n: float
    clip: float
    at_least: float


@check(NOTHING, ClippedMeanMoves)
def clipped_mean_moves(results, *, n, clip, at_least):
    """Replacing one of n records moves the clipped mean gradient by at least `at_least` times 2 clip/n,
    the sensitivity of a mean of clipped gradients. The example has n - 1 zero gradients and a large
    gradient whose sign changes, as unbounded features allow.
    """
    import numpy as np

    means = []
    for sign in (1.0, -1.0):
        gradients = np.zeros((int(n), 2))
        gradients[-1] = sign * n * clip, 0.0
        mean = gradients.mean(axis=0)
        means.append(mean * min(1.0, clip / np.linalg.norm(mean)))
    moved, claimed = float(np.linalg.norm(means[0] - means[1])), 2 * clip / n
    text = (
        f"one record of {n:g} replaced moves the clipped mean gradient by {moved:.4g}, "
        f"{moved / claimed:.4g} times the 2 C/n = {claimed:.4g} that the noise is for"
    )
    return Outcome(moved >= at_least * claimed, text, moved / claimed, at_least)


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


class L1Jump(Options):
    n: int = 1000
    lam: float = 0.1


@check(NOTHING, L1Jump)
def l1_jump(results, *, n, lam):
    """The L1-regularised minimiser moves by more than 2/(n lam) when one record is replaced.

    The example has n - 1 records at (1, 1)/sqrt(2) with label 1, for which the two weights are
    interchangeable. The last record, which decides which weight is used, moves from (1, 0) to (0, 1).
    """
    import numpy as np

    from dp.solvers.fits import l1

    y = np.ones(n)
    minimisers = []
    for record in ((1.0, 0.0), (0.0, 1.0)):
        X = np.full((n, 2), np.sqrt(0.5))
        X[-1] = record
        weights, info = l1(X, y, lam)
        if info["status"][0] != "ok":
            return Outcome(None, f"the L1 fit did not converge: {info['status'][0]}")
        minimisers.append(weights[0])
    moved = float(np.linalg.norm(minimisers[0] - minimisers[1]))
    claimed = 2 / (n * lam)
    places = " to ".join(f"({w[0]:.4g}, {w[1]:.4g})" for w in minimisers)
    text = (
        f"one record of {n} replaced moves the L1 minimiser from {places}, by {moved:.4g}, "
        f"{moved / claimed:.4g} times the claimed {claimed:g}"
    )
    return Outcome(moved > claimed, text, moved, claimed)
