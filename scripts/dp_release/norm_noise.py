"""Releases with noise of a norm's law on a lattice: the theorem, and noise whose scale is rounded up.

`tilt` has the notation, the solver and its certificate, `norm_draws` the samplers, and
`dp.proofs.log_concave_tilt` the profile of an exact minimiser. r = 1/Lambda, as rows have norms of at most
1.

A BODY is a product of intervals (singles) and cross-polytopes (blocks of columns, of which a row has at
most one that is not 0). With the public u = `rows.Schema.each` 2^-20, every row has |v_j| <= u, and the
|v_j| of a block add up to at most u. Shortening and missing cells only shrink |v_j|, so rows stay in the
body. N(z) is the maximum of the singles' |z_j| and the blocks' sums, so N(v) <= u, and ||v|| <= N(v)
sqrt(parts), where `parts` counts singles and blocks.

LEMMA 1'' (multiplicative rounding). Let c be the size of the largest block (1 without blocks). On hZ^d, the
law of h z, P(z) proportional to exp(-N(z)/S), and the rounded b, b of density proportional to exp(-N(b)/(S
h)), have mass ratios within e^(+- c/S).
Proof. Within a cell, N(b)/(S h) differs from its value at the centre by at most N(1, .., 1)/(2 S) = c/(2
S). So the cell's integral is within this factor of h^d times the centre's density, and so are the
normalising constants.

THEOREM 2. Let B = h z with z of that law, and step 2 be that of theorem 1 in `tilt`: a w with ||grad J|| <=
tau, on every data set whenever ||B|| <= T, where P(||B|| > T) <= beta. Release rnd_g(w) + g z', P(z')
proportional to exp(-max |z'_j|/S'), and m = kappa u/(S h). Then the release is (epsilon, (1 + e^epsilon)
beta)-DP under replace-one, with

    epsilon = pure_epsilon(m, r) + D/(g S') + 2 c/S,   D = 2 tau/lam + h sqrt(d)/Lambda + g.

Proof. Let the exact minimiser take w's place where ||B|| > T; this changes probabilities by at most beta.
With the rounded b in place of B, probabilities change by a factor of at most e^(c/S) (lemma 1''), on both
data sets: 2 c/S. Then (i) w*(b) is pure_epsilon(m, r)-DP, as N(kappa v)/(S h) <= m. (ii) Given the data, b
and B are functions of w*(b), and so is w, up to the solver's randomness. By strong convexity rnd_g(w) is
within D/2 of w*(b), in every coordinate, on every data set. So, given w*(b), the rounded points of two
neighbours are points of gZ^d, at most D apart in the maximum norm, and z' hides them at a cost of D/(g S'):
no rounding is left to pay for. (iii) Both costs are bounds on the log ratio, so they add up.

The threshold at which the Jacobian is free, r <= m (log-cosh: 2 r <= m), is at the *rounded* m, without the
output noise's part of epsilon; below it, pure_epsilon counts the Jacobian.

THEOREM 3 (the l2 law). Let z be `norm_draws.l2`, m = kappa/(S h), and all else as above. With eta' of lemma
1' and delta_t the profile of the exact minimiser with the continuous l2 tilt, the release is (epsilon,
delta_t(epsilon - D/(g S')) + (1 + e^epsilon) (eta' + beta))-DP. Proof. The same, with eta' for the distance
of h z and the rounded b; (iii) the second cost is at most D/(g S') almost surely.

SECOND RELEASES at the released weights add their epsilon, or compose exactly if they are Gaussian. Let an
epsilon_1-DP release be followed by a mu-GDP one. The first is dominated by randomised response (Kairouz,
Oh, Viswanath 2015), the second by a normal pair, and adaptive composition by their product, so

    delta(e) = (e^epsilon_1 G(e - epsilon_1) + G(e + epsilon_1))/(1 + e^epsilon_1),  G = the mu-GDP profile.

THEOREM 4 (matrices by a norm). Let the release be rnd_g of the entries of A = sum of a x x', a in [0, A_1],
plus g z, z of the hull's law with scale S. Replacing a row changes A_jl by at most A_1 u^2 if j = l, or if
the entry belongs to a table of a block and a column or of two blocks, and otherwise by 2 A_1 u^2. In a
block's diagonal, and in such a table, a row has one entry that is not 0, so the changes of all its entries
add up to at most 2 A_1 u^2. Within a block, entries off the diagonal are 0, and not released. So let the
body's parts be the singles' diagonal entries, each *doubled*; pairs of singles; and, as blocks, each
block's diagonal, each single with each block, and each pair of blocks. With computed entries within rho of
the exact ones, a part of p entries changes by at most D = 2 A_1 u^2/g + 4 p rho/g + p lattice points, so
the release is (D/S)-DP, exactly.

THE REACH. N(b)/(S h) ~ Gamma(d), so with t = d + sqrt(120 d) + 60 (`dp.noise.l2_laplace_reach`) N(b) > S h
t has a probability of at most e^-60, and T = S h t sqrt(parts) + h sqrt(d)/2 (l2: with 1 for parts) has
beta <= 10^-26, also under the lattice's law. Beyond T the solver may fail. A *delta of 0* on a card is up
to this (1 + e^epsilon) beta, and up to HMAC-SHA512, which is weaker.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dp_privacy.errors import Refused
from dp_release import lattice, norm_draws
from dp_release.draws import Stream
from dp_release.tilt import Problem, Tilt

REACH = Fraction(10_954_452, 10**6)  # above sqrt(120)
MOST = 50_000  # maximum number of coordinates: larger numbers take minutes to draw


class Body(NamedTuple):
    """`count` columns, of which the `blocks` (tuples of columns) have one at most that is not 0."""

    count: int
    blocks: tuple[tuple[int, ...], ...] = ()

    @property
    def singles(self) -> list[int]:
        """Columns in no block."""
        taken = {column for block in self.blocks for column in block}
        return [column for column in range(self.count) if column not in taken]

    @property
    def parts(self) -> int:
        return len(self.singles) + len(self.blocks)

    @property
    def largest(self) -> int:
        """c of lemma 1''."""
        return max(map(len, self.blocks), default=1)

    def variances(self) -> np.ndarray:
        """Variances (count,) of coordinates of noise of scale 1. Coordinates are uncorrelated.

        b is R x, R ~ Gamma(d + 1), x uniform in the body.
        """
        d, shares = self.count, np.full(self.count, 1 / 3)
        for block in self.blocks:
            shares[list(block)] = 2 / ((len(block) + 1) * (len(block) + 2))
        return (d + 1) * (d + 2) * shares

    def kurtosis(self, gains: np.ndarray) -> np.ndarray:
        """Excess kurtosis (k,) of gains @ b for noise b, where gains is (k, count).

        Within a block, x has the moments of a Dirichlet law; x of different parts are independent.
        """
        d, second = self.count, self.variances() / ((self.count + 1) * (self.count + 2))
        fourth, mixed = np.full(d, 1 / 5), np.outer(second, second)
        for block in self.blocks:
            c = len(block)
            product = (c + 1) * (c + 2) * (c + 3) * (c + 4)
            fourth[list(block)] = 24 / product
            mixed[np.ix_(block, block)] = 4 / product
        np.fill_diagonal(mixed, 0.0)
        squares = np.asarray(gains, dtype=float) ** 2
        top = squares**2 @ fourth + 3 * np.einsum("ki,ij,kj->k", squares, mixed, squares)
        radial = (d + 3) * (d + 4) / ((d + 1) * (d + 2))
        return radial * top / np.maximum(squares @ second, 1e-300) ** 2 - 3


class Noise(NamedTuple):
    """Noise on `body.count` coordinates in 2^step Z, of the norm's law with the scale `scale` 2^step.

    law: "hull" (also a box) or "l2". paid: its part of epsilon; 0 for a tilt, whose cost its plan knows.
    """

    step: int
    scale: int
    body: Body
    law: str = "hull"
    paid: Fraction = Fraction(0)

    @property
    def count(self) -> int:
        return self.body.count

    @property
    def spacing(self) -> Fraction:
        return lattice.spacing(self.step)

    @property
    def unit(self) -> Fraction:
        """The scale as a number."""
        return self.scale * self.spacing

    @property
    def variation(self) -> Fraction:
        """The total variation distance to real numbers that the theorem has not counted otherwise."""
        return norm_draws.l2_variation(self.scale, self.count) if self.law == "l2" else Fraction(0)

    @property
    def variances(self) -> np.ndarray:
        """Variances (count,) of the coordinates."""
        if self.law == "l2":
            return np.full(self.count, (self.count + 1.0)) * float(self.unit) ** 2
        return self.body.variances() * float(self.unit) ** 2

    def kurtosis(self, gains: np.ndarray) -> np.ndarray:
        """Excess kurtosis (k,) of gains @ noise."""
        if self.law == "l2":
            return np.full(len(gains), 6 / (self.count + 1))
        return self.body.kurtosis(gains)

    def draw(self, stream: Stream) -> list[int]:
        """Draw the noise, in units of the spacing."""
        if self.law == "l2":
            return norm_draws.l2(self.scale, self.count, stream)
        singles, blocks = self.body.singles, self.body.blocks
        drawn = norm_draws.hull(self.scale, len(singles), list(map(len, blocks)), stream)
        z = [0] * self.count
        for column, value in zip([*singles, *(c for b in blocks for c in b)], drawn, strict=True):
            z[column] = value
        return z


def of_scale(scale: Fraction, body: Body, law: str = "hull", bits: int = lattice.BITS) -> Noise:
    """The `Noise` whose scale is at least `scale`, on a lattice with at least 2^bits points in it."""
    scale = Fraction(scale)
    step = lattice.step_below(scale, bits)
    return Noise(step, math.ceil(scale / lattice.spacing(step)), body, law)


def tilt(scale: Fraction, body: Body, law: str = "hull") -> Tilt:
    """The tilt of theorem 2 or 3 with at least this scale S h, and its reach T."""
    if body.count > MOST:
        raise Refused(f"{body.count} columns are more than {MOST}: take fewer")
    noise = of_scale(Fraction(scale), body, law)
    d = Fraction(body.count)
    far = d + lattice.root(d) * REACH + 60
    if noise.scale * far >= 1 << 53:
        raise Refused(
            f"tilts of {body.count} coordinates on this lattice are no floats: take fewer"
        )
    parts = 1 if law == "l2" else body.parts
    reach = noise.unit * far * lattice.root(Fraction(parts)) + noise.spacing * lattice.root(d) / 2
    return Tilt(noise, reach)


def shift(noise: Noise, kappa: float, u: Fraction) -> Fraction:
    """m of theorem 2 with the rounded scale. u: 1 for the l2 law."""
    return Fraction(kappa) * u / noise.unit


def rounding(noise: Noise) -> Fraction:
    """2 c/S of theorem 2, 0 for the l2 law, whose rounding is in `Noise.variation`."""
    return Fraction(0) if noise.law == "l2" else Fraction(2 * noise.body.largest, noise.scale)


def output(problem: Problem, tilted: Noise, tolerance: float, epsilon: Fraction) -> Noise:
    """The output noise of theorem 2 that costs at most epsilon."""
    moved = 2 * Fraction(tolerance) / Fraction(problem.lam)
    moved += (
        tilted.spacing * lattice.root(Fraction(problem.d)) / (problem.n * Fraction(problem.lam))
    )
    return hiding(moved, Body(problem.d), Fraction(1), epsilon)


def hiding(moved: Fraction, body: Body, points: Fraction, epsilon: Fraction) -> Noise:
    """The `Noise` that costs at most epsilon, if parts move by `moved` and `points` lattice points."""
    moved, epsilon = Fraction(moved), Fraction(epsilon)
    step = lattice.step_below(moved / epsilon)
    apart = moved / lattice.spacing(step) + points
    scale = math.ceil(apart / epsilon)
    return Noise(step, scale, body, "hull", apart / scale)
