"""The law of table A.1's noise variances, which needs no run.

A printed variance is that of `weights` times `simulations` Laplace draws of scale b = 2/(N lambda epsilon).
So its expectation is 2 b^2, and its relative standard deviation sqrt(5/(weights simulations)), because a
Laplace variable's fourth moment is 24 b^4.
"""

import math
from typing import NamedTuple

from study import canonical, facts
from study.configuration.options import Options

LEVEL = 1.959964  # of a two-sided 95 % interval
DECIMALS = 4  # of a printed number or, in scientific notation below 0.0001, of its mantissa
FINE = (
    0.2  # a number is finely printed if its last decimal is at most this many standard deviations
)


class NoiseLaw(Options):
    weights: int
    simulations: int


class Variance(NamedTuple):
    """A printed variance beside its law. chance: of a true value being inside its rounded interval."""

    train_size: int
    epsilon: float
    printed: float
    expected: float
    low: float
    high: float
    deviations: float
    inside: bool
    chance: float
    fine: bool


def variances(experiment, options):
    printed = facts.read(experiment.source).tables["table_a_1"]
    lambdas = experiment.lambda_published
    relative = math.sqrt(5 / (options["weights"] * options["simulations"]))
    epsilons = facts.read(experiment.source).look_up("settings/logistic/epsilons")
    return [
        _judged(
            size,
            epsilon,
            printed[size][f"noise_variance_eps_{canonical.epsilon(epsilon)}"],
            2 * (2 / (size * lam * epsilon)) ** 2,
            relative,
        )
        for size, lam in zip(lambdas.train_sizes, lambdas.lambdas, strict=True)
        for epsilon in epsilons
    ]


def _judged(size, epsilon, value, expected, relative):
    unit = 10.0**-DECIMALS
    if value < unit:
        unit *= 10.0 ** math.floor(math.log10(value))
    deviation = relative * expected
    low, high = (expected + sign * LEVEL * deviation for sign in (-1, 1))
    # The interval has the numbers that round from a value in it.
    first, last = round(low / unit), round(high / unit)
    ends = ((first - 0.5) * unit, (last + 0.5) * unit)
    chance = math.erf((ends[1] - expected) / deviation / math.sqrt(2)) / 2
    chance -= math.erf((ends[0] - expected) / deviation / math.sqrt(2)) / 2
    inside = first <= round(value / unit) <= last
    apart = (value - expected) / deviation
    fine = unit <= FINE * deviation
    return Variance(size, epsilon, value, expected, low, high, apart, inside, chance, fine)
