"""Gaussian releases on a lattice: the proven cost of rounding, and noise whose scale is rounded up.

Notation: N_a(s^2) is the discrete Gaussian on aZ (mass proportional to exp(-x^2/(2 s^2))), rnd_a rounds
every coordinate to a nearest point of aZ, and TV is the total variation distance.

LEMMA 1. For r = s/a >= 1, TV(N_a(s^2), rnd_a(N(0, s^2))) <= 0.0605/r^2 + 1.1 exp(-2 pi^2 r^2).
Proof. Let a = 1, phi the density of N(0, r^2), and q(k) phi's integral over [k - 1/2, k + 1/2]. Taylor's
formula with K(t) = (1/2 - |t|)^2/2 <= 1/8 gives q(k) - phi(k) = integral of K(t) phi''(k + t) over |t| <=
1/2. So the sum of |q - phi| is at most (integral of |phi''|)/8 = (4/8)/(sqrt(2 pi e) r^2) <= 0.121/r^2,
since |phi'| has its maximum at r. By Poisson summation the sum S of phi(k) is 1 + 2 sum over j >= 1 of
exp(-2 pi^2 r^2 j^2), between 1 and 1 + 2.01 exp(-2 pi^2 r^2). Dividing phi by S changes phi by S - 1 in
L1. So TV is at most half of (0.121/r^2 + S - 1).

LEMMA 2 (perturbed evaluation). Let f have L2 sensitivity D, given earlier releases. Let every execution
return a value within rho of f, in R^m. Up to a TV distance of m gamma(s/g), rnd_g(value) + N_g(s^2)^m is
then a post-processing of a mu-GDP release, where gamma is lemma 1's bound and

    mu = (D + 2 rho + g sqrt(m))/s.

Proof. C = rnd_g(value) is within rho + g sqrt(m)/2 of f, so two neighbours' values of C differ by at most
D + 2 rho + g sqrt(m). C is on the lattice, so rnd_g(C + N) = C + rnd_g(N), N ~ N(0, s^2 I), and lemma 1
replaces rnd_g(N), coordinate by coordinate. If the error is random (threads), the bound holds for every
pair of executions, and a hockey-stick divergence is jointly convex. The error may depend on anything except
this release's own noise, which is therefore drawn after C.

Even releases of counts use a fine lattice: on the integers with s near 6, lemma 1 would add 0.0605/36 to
delta. So s/g is always at least 2^BITS.

Numbers are fractions, rounded towards more noise.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from dp_release.draws import Stream, gaussians

BITS = 40  # log2 of the minimum ratio of standard deviation to spacing
ROOT_BITS = 80  # bits of precision of square roots, which are rounded up
UNLIKELY = Fraction(1, 10**26)  # above e^-60


def root(value: Fraction) -> Fraction:
    """sqrt(value) as a fraction, rounded up by a factor of at most 1 + 2^-79."""
    value = Fraction(value)
    if value == 0:
        return value
    size = value.numerator.bit_length() - value.denominator.bit_length()
    shift = 2 * max(ROOT_BITS - size // 2, 0)
    scaled = -((-value.numerator << shift) // value.denominator)  # rounded up
    return Fraction(math.isqrt(scaled - 1) + 1, 1 << shift // 2)


def above(value: Fraction) -> float:
    """A fraction as a float, rounded up."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def total_variation(ratio: Fraction) -> Fraction:
    """Lemma 1's bound for one coordinate, rounded up. ratio: s/a >= 1."""
    if ratio < 1:
        raise ValueError(f"lemma 1 needs a ratio of at least 1, not {float(ratio):g}")
    far = math.exp(-19.739 * min(float(ratio) ** 2, 35.0))  # 2 pi^2 = 19.7392..
    return Fraction(605, 10_000) / ratio**2 + Fraction(1.1001 * far)


class Noise(NamedTuple):
    """Discrete Gaussian noise on `count` coordinates in 2^step Z, with standard deviation scale * 2^step.

    mu: the parameter of Gaussian DP, at least sensitivity/(standard deviation).
    """

    step: int
    scale: int
    count: int
    mu: Fraction

    @property
    def spacing(self) -> Fraction:
        return spacing(self.step)

    @property
    def deviation(self) -> Fraction:
        return self.scale * self.spacing

    @property
    def variation(self) -> Fraction:
        """Lemma 1's bound on the total variation distance, for all coordinates together."""
        return self.count * total_variation(Fraction(self.scale))

    def draw(self, stream: Stream) -> list[int]:
        """Draw the noise, in units of the spacing."""
        return list(gaussians(self.scale, self.count, stream))


def spacing(step: int) -> Fraction:
    """2^step."""
    return Fraction(1 << step) if step >= 0 else Fraction(1, 1 << -step)


def step_below(deviation: Fraction, bits: int = BITS) -> int:
    """The largest step with deviation/2^step >= 2^bits."""
    deviation = Fraction(deviation)
    step = deviation.numerator.bit_length() - deviation.denominator.bit_length() - bits + 1
    while deviation < spacing(step + bits):
        step -= 1
    return step


def covering(moved: Fraction, mu: Fraction, count: int, bits: int = BITS) -> Noise:
    """The `Noise` that gives mu-GDP by lemma 2, with D + 2 rho = `moved`."""
    moved, mu = Fraction(moved), Fraction(mu)
    step = step_below(moved / mu, bits)
    apart = moved + spacing(step) * root(Fraction(count))
    scale = math.ceil(apart / mu / spacing(step))
    return Noise(step, scale, count, apart / (scale * spacing(step)))


def nearest(values: Iterable[Fraction], step: int) -> list[int]:
    """The points of 2^step Z nearest to the exact values, in units of 2^step."""
    return [round(Fraction(value) / spacing(step)) for value in values]


def released(values: Iterable[Fraction], noise: Noise, stream: Stream) -> list[int]:
    """The release of lemma 2: rounded values plus noise, in units of the spacing."""
    centre = nearest(values, noise.step)
    if len(centre) != noise.count:
        raise ValueError(f"the noise has {noise.count} coordinates, not {len(centre)}")
    return [c + z for c, z in zip(centre, noise.draw(stream), strict=True)]


def together(noises: Sequence[Noise]) -> Fraction:
    """The mu of several Gaussian releases together, rounded up."""
    return root(sum(noise.mu**2 for noise in noises))


def failure(epsilon: float, variation: Fraction) -> Fraction:
    """(1 + e^epsilon) eta: how much the delta of a private release M~ grows for the actual release M.

    M is within the total variation distance eta of M~. M' and M~' are the releases of a neighbour:
    M(E) <= M~(E) + eta <= e^eps M~'(E) + delta + eta <= e^eps (M'(E) + eta) + delta + eta.
    """
    return variation * (1 + Fraction(math.exp(epsilon)) * (1 + Fraction(1, 10**12)))
