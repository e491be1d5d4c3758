"""The meaning of a guarantee for a person in the data: the success of the best attack.

The attacker knows the release, how it was made and all other rows, and asks whether one row is x. An attack
is an event E of the release, on which the answer is yes. P and Q are the laws of the release with and
without x. Q(E) is the share of false accusations, and P(E), the attack's power, the share of true ones.

For every real epsilon, P(E) <= delta(epsilon) + e^epsilon Q(E), where delta is the privacy profile. So

    power at a share a of false accusations <= min over epsilon of delta(epsilon) + a e^epsilon,

which is 1 minus the trade-off function (Dong, Roth, Su, JRSS B 84, 2022). By Neyman and Pearson, some
attack attains this bound for the profile of a pair P, Q. A single point of the profile gives a weaker
bound: at 1 % false accusations, (1, 1e-6) alone allows a power of 2.7 %, but the profile of a Gaussian
release through this point only 1.83 %.

With a prior probability p that the row is x, the attacker is right with probability at most

    (1 - p) + p delta(log((1 - p)/p)),

since p P(E) + (1 - p) (1 - Q(E)) = (1 - p) + p (P(E) - Q(E) (1 - p)/p). After an accusation, the row is x
with probability p P(E)/(p P(E) + (1 - p) Q(E)).

Every epsilon gives a valid bound, so an approximate minimum suffices.
"""

import decimal
import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from dp_privacy.profiles import Profile

FALSE = (0.01, 0.05)
FAR = 60.0  # maximum epsilon tried
CLOSE = 1e-4  # precision of the search for epsilon


class Meaning(NamedTuple):
    """The success of the best attack, given a prior probability that a row is x.

    false: shares of false accusations. power, posterior: for each of these, the share of true accusations,
    and the probability that an accused row is x. right: the maximum probability of a right answer.
    """

    prior: float
    false: tuple[float, ...]
    power: tuple[float, ...]
    posterior: tuple[float, ...]
    right: float

    def sentences(self) -> list[str]:
        guess = max(self.prior, 1 - self.prior)
        attacks = [
            f"An attacker who accuses wrongly {false:.0%} of the time accuses rightly at most "
            f"{_rounded_up(power)} of the time; a guess would, {false:.0%} of the time. If he put the "
            f"probability at {self.prior:.0%} before the release, an accusation raises it to "
            f"{_rounded_up(after)} at most."
            for false, power, after in zip(self.false, self.power, self.posterior, strict=True)
        ]
        return [
            *attacks,
            f"His answers are right at most {_rounded_up(self.right)} of the time, and {guess:.0%} without "
            f"the release.",
        ]


def _rounded_up(share):
    """A share in [0, 1] as a percentage with one digit. Rounded down, it would be no upper bound."""
    exact = decimal.Decimal(share)
    thousandths = exact.quantize(decimal.Decimal("0.001"), decimal.ROUND_CEILING)
    return f"{thousandths:.1%}"


def power(profile: Profile, false: float) -> float:
    """The maximum power, or slightly more, at a share of false accusations in [0, 1]."""
    if not 0 <= false <= 1:
        raise ValueError(f"a share of false accusations is in [0, 1], not {false}")

    @cache
    def bound(epsilon):
        return float(profile.delta(epsilon)) + false * math.exp(epsilon)

    return min(1.0, bound(_lowest(bound)))


def _lowest(bound):
    """The minimiser of a function that first falls and then rises."""
    from scipy.optimize import minimize_scalar

    # The search starts at 0, because far from 0 the function looks constant in floats.
    sign = 1 if bound(1.0) <= bound(0.0) else -1
    at, step = 0.0, 1.0
    while abs(at) < FAR and bound(at + sign * step) <= bound(at):
        at, step = at + sign * step, 2 * step
    ends = (at - step, at + step)
    inside = minimize_scalar(bound, bounds=ends, method="bounded", options={"xatol": CLOSE}).x
    return min((float(inside), at, *ends), key=bound)


def right_answers(profile: Profile, prior: float) -> float:
    """The maximum probability of a right answer, given the prior probability that a row is x."""
    return (1 - prior) + prior * float(profile.delta(math.log((1 - prior) / prior)))


def posterior(prior: float, false: float, power: float) -> float:
    """The probability that an accused row is x, for an attack of this power."""
    return prior * power / (prior * power + (1 - prior) * false)


def meaning(profile: Profile, prior: float = 0.5, false: Sequence[float] = FALSE) -> Meaning:
    """The `Meaning` of a profile.

    prior and each of `false`: in (0, 1).
    """
    if not 0 < prior < 1:
        raise ValueError(f"a prior probability is strictly between 0 and 1, not {prior}")
    powers = tuple(power(profile, share) for share in false)
    after = tuple(posterior(prior, *pair) for pair in zip(false, powers, strict=True))
    return Meaning(prior, tuple(false), powers, after, right_answers(profile, prior))
