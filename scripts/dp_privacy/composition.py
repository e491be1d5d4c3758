"""Composition and subsampling with privacy loss distributions (Google's dp_accounting).

Every epsilon and delta is an upper bound, because dp_accounting discretises losses pessimistically.
Importing the library takes 1 s, so functions import it when needed.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

from dp_privacy.accounting import (
    ADD_REMOVE,
    REPLACE_ONE,
    Guarantee,
    check_adjacency,
    gaussian_epsilon,
    gaussian_mu,
)
from dp_privacy.errors import Refused
from dp_privacy.profiles import Losses, group_epsilon
from dp_privacy.sensitivities import vector_sum

__all__ = ["gaussian_steps", "of_group", "sampled_steps"]

GRID = 1e-4  # spacing of discretised privacy losses
LEAST_MULTIPLIER = 0.3  # smallest sigma/C: with less noise, distributions are too long to compose
# Compositions lose probabilities of about 1e-15 to rounding and truncation.
LEAST_DELTA = 1e-13
# If the largest loss exceeds this many grid points, the grid gets coarser, but keeps 8 per coordinate.
GRIDS = 20_000


def of_group(guarantee: Guarantee, size: int) -> tuple[float, float]:
    """Group privacy: the guarantee for up to `size` records.

    Parameters
    ----------
    guarantee : dp_privacy.accounting.Guarantee
        For one record.
    size : int
        Maximum number of one person's records.

    Returns
    -------
    tuple of float
        (epsilon, delta). delta is unchanged if the guarantee's profile is known. Otherwise, epsilon
        grows by a factor of size, and delta by (e^(size epsilon) - 1)/(e^epsilon - 1) [1]_.

    References
    ----------
    .. [1] Vadhan, The complexity of differential privacy, 2017, lemma 2.2.

    Examples
    --------
    >>> from dp.mechanisms import MECHANISMS
    >>> one = MECHANISMS["output_perturbation"].guarantee(1000, 5, epsilon=1.0, lam=0.01)
    >>> of_group(one, 3)
    (3.0, 0.0)
    """
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if not math.isfinite(epsilon):
        return epsilon, delta
    if delta and guarantee.profile is not None:
        grouped = group_epsilon(guarantee.profile, delta, size)
        if math.isfinite(grouped):
            return grouped, delta
    total = delta * sum(math.exp(min(j * epsilon, 700.0)) for j in range(size))
    return (size * epsilon, total) if total < 1 else (math.inf, 0.0)


def gaussian_steps(
    sigma: float,
    steps: int,
    delta: float,
    contribution: float = 1.0,
    sampling: float = 1.0,
    adjacency: str = REPLACE_ONE,
) -> float:
    """epsilon at `delta` of several Gaussian releases of sums.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on each coordinate.
    steps : int
        Number of releases.
    delta : float
        In (0, 1).
    contribution : float
        C, the L2 bound on a record's term. Replacing a record changes the sum by up to 2C.
    sampling : float
        In (0, 1]. Each record enters a step independently with this probability (Poisson sampling). For
        shuffled or fixed batches, give 1 with one step per pass.
    adjacency : str
        `dp_privacy.accounting.REPLACE_ONE` or `ADD_REMOVE`.

    Returns
    -------
    float
        Exact without sampling, otherwise an upper bound.

    Examples
    --------
    >>> print(f"{gaussian_steps(20.0, 10, 1e-6):.4f}, {gaussian_steps(20.0, 10, 1e-6, sampling=0.1):.4f}")
    1.3676, 0.1160
    """
    if not 0 < sampling <= 1 or not 0 < delta < 1:
        raise ValueError(
            f"sampling must lie in (0, 1] and delta in (0, 1), not {sampling} and {delta}"
        )
    check_adjacency(adjacency)
    if sampling == 1:  # equivalent to one Gaussian release with sqrt(steps) times the sensitivity
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
    """The profile of `gaussian_steps` with Poisson sampling.

    Parameters
    ----------
    multiplier : float
        sigma/C.
    steps, sampling, adjacency
        As for `gaussian_steps`, with sampling below 1.
    spacing : float
        Of the discretised losses.

    Returns
    -------
    dp_privacy.profiles.Losses
        An upper bound.

    Examples
    --------
    >>> print(f"{sampled_steps(20.0, 10, 0.1).epsilon(1e-6):.4f}")
    0.1160
    """
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
    """The smallest sigma/C at which `sampled_steps` is (epsilon, delta)-DP, and the profile there.

    sigma/C is at least `LEAST_MULTIPLIER`, and may be too large by a relative 1e-4. Losses are discretised
    as coarsely as epsilon allows.
    """
    if delta < LEAST_DELTA:
        raise Refused(
            f"privacy loss distributions of sampled steps are known for a delta of at least "
            f"{LEAST_DELTA:g}, not {delta:g}: give a larger delta"
        )
    spacing = max(GRID, min(1e-2, epsilon / 1000))
    # Noise that suffices without sampling also suffices with sampling, up to discretisation.
    high = math.sqrt(steps) * vector_sum(1.0, adjacency) / gaussian_mu(epsilon, delta)
    high = max(high, LEAST_MULTIPLIER)
    profile = sampled_steps(high, steps, sampling, adjacency, spacing)
    while profile.epsilon(delta) > epsilon:
        high *= 1.02
        profile = sampled_steps(high, steps, sampling, adjacency, spacing)
    low, best = high, (high, profile)
    while low > LEAST_MULTIPLIER and profile.epsilon(delta) <= epsilon:
        high, best = low, (low, profile)
        low = max(low / 2, LEAST_MULTIPLIER)
        profile = sampled_steps(low, steps, sampling, adjacency, spacing)
    while high - low > 1e-4 * high and high > LEAST_MULTIPLIER:
        middle = math.sqrt(low * high)
        profile = sampled_steps(middle, steps, sampling, adjacency, spacing)
        if profile.epsilon(delta) <= epsilon:
            high, best = middle, (middle, profile)
        else:
            low = middle
    return best


def laplace_coordinates_delta(
    dimension: int, ratio: float, epsilons: Sequence[float]
) -> list[float]:
    """Upper bounds on delta(epsilon) for independent Laplace noise on d = `dimension` coordinates.

    The value changes by `ratio` noise scales in L2 norm, spread evenly: by ratio/sqrt(d) per coordinate.
    So the loss is a sum of d independent Laplace losses, and is at most sqrt(d) ratio.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    step, largest = ratio / math.sqrt(dimension), math.sqrt(dimension) * ratio
    spacing = min(max(GRID, largest / GRIDS), step / 8)
    one = pld.from_laplace_mechanism(1 / step, value_discretization_interval=spacing)
    total = one.self_compose(dimension)
    return [
        float(total.get_delta_for_epsilon(epsilon)) if epsilon < largest else 0.0
        for epsilon in epsilons
    ]
