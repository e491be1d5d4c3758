"""Composition and sampling, by Google's dp_accounting (privacy loss distributions).

Every epsilon and delta here is an upper bound: dp_accounting discretises losses pessimistically, at
`GRID`. It is imported inside the functions (1 s), so that jobs without composition do not pay for it.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

from dp.accounting import (
    ADD_REMOVE,
    REPLACE_ONE,
    Guarantee,
    gaussian_epsilon,
    gaussian_mu,
    largest_bound,
)
from dp.privacy.profiles import Losses
from dp.privacy.sensitivities import vector_sum

GRID = 1e-4  # spacing of discretised privacy losses
LEAST_MULTIPLIER = 0.3  # of sampled steps: with less noise, distributions are too long to compose
GRIDS = 20_000  # most points of a distribution: large losses get a wider spacing


def _spacing(largest_loss):
    return max(GRID, largest_loss / GRIDS)


def sequence(guarantees: list[Guarantee], delta: float = 0.0) -> Guarantee:
    """The guarantee of releasing all of these from the same records, where each may depend on the others.

    If delta is 0, epsilons and deltas add up, which is tight for pure guarantees. If delta > 0, the
    result is the optimal composition of any mechanisms that have these guarantees, at that total delta.
    """
    guarantees = list(guarantees)
    if len({guarantee.adjacency for guarantee in guarantees}) != 1:
        raise ValueError("guarantees compose only if they have the same adjacency")
    claimed = sum(guarantee.claimed_epsilon for guarantee in guarantees)
    epsilon = sum(guarantee.epsilon for guarantee in guarantees)
    total_delta = sum(guarantee.delta for guarantee in guarantees)
    if delta and math.isfinite(epsilon):
        from dp_accounting.pld import privacy_loss_distribution as pld
        from dp_accounting.pld.common import DifferentialPrivacyParameters

        spacing = _spacing(epsilon)
        parts = [
            pld.from_privacy_parameters(DifferentialPrivacyParameters(g.epsilon, g.delta), spacing)
            for g in guarantees
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total.compose(part)
        # never worse than adding up, if the given delta allows that
        optimal = float(total.get_epsilon_for_delta(delta))
        epsilon = min(epsilon, optimal) if delta >= total_delta else optimal
        total_delta = delta
    reason = " + ".join(f"{guarantee.epsilon:.6g}" for guarantee in guarantees)
    reason = reason.replace("nan", "nothing proven")
    return Guarantee(
        claimed,
        epsilon,
        0.0 if math.isinf(epsilon) else min(total_delta, 1.0),
        guarantees[0].adjacency,
        f"{reason} in sequence: " + "; ".join(guarantee.reason for guarantee in guarantees),
    )


def disjoint(guarantees: list[Guarantee]) -> Guarantee:
    """The guarantee of releases from disjoint records with public sizes: the largest (McSherry 2009)."""
    guarantees = list(guarantees)
    if len({guarantee.adjacency for guarantee in guarantees}) != 1:
        raise ValueError("guarantees compose only if they have the same adjacency")
    largest = map(largest_bound, list(zip(*guarantees, strict=True))[:3])
    reasons = "; ".join(guarantee.reason for guarantee in guarantees)
    return Guarantee(*largest, guarantees[0].adjacency, f"from disjoint records: {reasons}")


def gaussian_steps(
    sigma: float,
    steps: int,
    delta: float,
    contribution: float = 1.0,
    sampling: float = 1.0,
    adjacency: str = REPLACE_ONE,
) -> float:
    """epsilon at `delta` of `steps` Gaussian releases of sums, of standard deviation sigma.

    contribution: C, the L2 bound on what one record adds to the sum; replacing it moves the sum by 2C.
    sampling: each record enters a step independently with this probability (Poisson sampling).
    Shuffled or fixed batches are not Poisson samples: for them, give sampling 1 with one step per pass.
    """
    if not 0 < sampling <= 1 or not 0 < delta < 1:
        raise ValueError(
            f"sampling must lie in (0, 1] and delta in (0, 1), not {sampling} and {delta}"
        )
    if adjacency not in (REPLACE_ONE, ADD_REMOVE):
        raise ValueError(f"adjacency is {REPLACE_ONE} or {ADD_REMOVE}, not {adjacency!r}")
    if sampling == 1:  # exactly one Gaussian release of sqrt(steps) times the sensitivity
        moved = vector_sum(contribution, adjacency) * math.sqrt(steps)
        return gaussian_epsilon(sigma, delta, moved)
    return sampled_steps(sigma / contribution, steps, sampling, adjacency).epsilon(delta)


def sampled_steps(
    multiplier: float,
    steps: int,
    sampling: float,
    adjacency: str = REPLACE_ONE,
    spacing: float = GRID,
) -> Losses:
    """The `dp.privacy.profiles.Losses` of `gaussian_steps`. multiplier: sigma/C; sampling: in (0, 1)."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld

    relation = NeighboringRelation.REPLACE_ONE
    if adjacency == ADD_REMOVE:
        relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    distribution = pld.from_gaussian_mechanism(
        standard_deviation=multiplier,
        value_discretization_interval=spacing,
        sampling_prob=sampling,
        neighboring_relation=relation,
    )
    return Losses(distribution.self_compose(steps))


@lru_cache(maxsize=256)
def sampled_multiplier(
    epsilon: float, delta: float, steps: int, sampling: float, adjacency: str = REPLACE_ONE
) -> tuple[float, Losses]:
    """(multiplier, profile): about the least sigma/C with which `sampled_steps` is (epsilon, delta)-DP.

    The search is for the least multiplier to a relative 1e-4, and returns a private one. Its distributions
    are as coarse as epsilon allows.
    """
    spacing = max(GRID, min(1e-2, epsilon / 1000))
    # The noise that is needed without sampling is enough, except for what a coarse distribution adds.
    high = math.sqrt(steps) * vector_sum(1.0, adjacency) / gaussian_mu(epsilon, delta)
    high = max(high, LEAST_MULTIPLIER)
    found = sampled_steps(high, steps, sampling, adjacency, spacing)
    while found.epsilon(delta) > epsilon:
        high *= 1.02
        found = sampled_steps(high, steps, sampling, adjacency, spacing)
    low, best = high, (high, found)
    while low > LEAST_MULTIPLIER and found.epsilon(delta) <= epsilon:
        high, best = low, (low, found)
        low = max(low / 2, LEAST_MULTIPLIER)
        found = sampled_steps(low, steps, sampling, adjacency, spacing)
    while high - low > 1e-4 * high and high > LEAST_MULTIPLIER:
        middle = math.sqrt(low * high)
        found = sampled_steps(middle, steps, sampling, adjacency, spacing)
        if found.epsilon(delta) <= epsilon:
            high, best = middle, (middle, found)
        else:
            low = middle
    return best


def laplace_coordinates_delta(
    dimension: int, ratio: float, epsilons: Sequence[float]
) -> list[float]:
    """delta(epsilon) of independent Laplace noise on a vector that moves by `ratio` scales in L2.

    The shift is along the diagonal: each of the d coordinates moves by ratio/sqrt(d) scales. So the loss
    is a sum of d independent losses of one-dimensional Laplace mechanisms, and at most sqrt(d) ratio.
    Returns a list of deltas, upper bounds on the profile of this shift.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    step = ratio / math.sqrt(dimension)
    one = pld.from_laplace_mechanism(
        1 / step,
        value_discretization_interval=min(_spacing(ratio * math.sqrt(dimension)), step / 8),
    )
    total = one.self_compose(dimension)
    return [
        0.0
        if epsilon >= math.sqrt(dimension) * ratio
        else float(total.get_delta_for_epsilon(epsilon))
        for epsilon in epsilons
    ]
