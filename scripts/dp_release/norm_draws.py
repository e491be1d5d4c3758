"""Draw noise of a norm's law on the integer lattice Z^d from a key, using only integer arithmetic.

BOX AND HULL. Let N be the norm whose unit ball is a product of intervals [-1, 1] (singles) and
cross-polytopes (blocks of c coordinates): N(z) is the maximum of the singles' |z_j| and of the blocks' sums
of |z_j|. `hull` draws exactly from P(z) proportional to exp(-N(z)/S).

Proof. N is a whole number, so exp(-N(z)/S) is (1 - e^(-1/S)) times the sum of e^(-k/S) over the whole k >=
N(z). So draw k with P(k) proportional to #(k) e^(-k/S), where #(k) counts the points with N <= k, and then
one of these points uniformly. A sum of d + 1 geometric numbers is k with probability proportional to
C(k + d, d) e^(-k/S); it is kept with probability

    (2k+1)^q product of cross_c(k) c! / (2^d (k+1) .. (k+d)),   cross_c(k) = sum_j 2^j C(c, j) C(k, j),

for q singles and blocks of c. cross_c(k) counts the points of a block whose |z_j| add up to at most k: j
coordinates that are not 0, their signs, and their sizes, which are the gaps of j different numbers in 1..k.
The probability is at most 1, as 2k + 1 <= 2(k + i), cross_c(k) <= 2^c C(k + c, c) (Vandermonde), and the
j-th smallest of the numbers 1 (q times), 1..c (for each block) is at most j.

THE l2 LAW. `l2` draws, for a large whole K, G_0, .., G_d ~ N_Z(K^2), and with V = S^2 (sum of G_j^2)/K^2
the coordinates z_i ~ N_Z(V) (0 if V is 0). N_Z is the discrete Gaussian, gamma as in `lattice`'s lemma 1.

LEMMA 1'. For d >= 2 and S >= 2, the law of z is within a total variation distance of

    (d + 1) gamma(K) + 2 d/K + d (0.0605/(S^2 (d-1)) + 1/S^3)

of the rounded b/h, b of density proportional to exp(-||b||/(S h)) on R^d.
Proof. (i) G_j is within gamma(K) of rnd(N_j), N_j ~ N(0, K^2). (ii) With the N_j themselves, V/S^2 is
chi^2 with d + 1 degrees of freedom, and b/h given V is N(0, V I): b is S h ||g|| g' with independent normal
g in R^(d+1) and g' in R^d, as ||b|| ~ Gamma(d). Rounding changes ||N||^2 by a relative a <= sqrt(d+1)/||N||
+ (d+1)/(4 ||N||^2), and TV(N(0, V I), N(0, V (1+a) I)) <= d a/2 for a <= 1/2. E 1/||N|| is at most
0.8/(K sqrt(d/2)), and sqrt((d+1)/d) <= 1.23, so d E a/2 < 2 d/K. (||N|| < 10, where a may exceed 1/2, has
a probability below (50/K^2)^(3/2).) (iii) Given V >= 1, lemma 1 holds for each coordinate, with E 1/V =
1/(S^2 (d-1)). The chi^2 density gives P(V < 1) + E 1.1 exp(-2 pi^2 V) <= 0.3/S^3.

d = 1 is the box's law, discrete Laplace.

Never publish or time k, V or the norm: given V, the noise is Gaussian, and a small V means a large loss.
Times of all samplers here depend on the size of what is drawn, as those of `draws` do.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import factorial, prod

from dp_release import lattice
from dp_release.draws import Stream, _bernoulli_exp, discrete_gaussian

MIXING = 1 << 80  # K of lemma 1'


def geometric(scale: int, stream: Stream) -> int:
    """A whole k >= 0 with probability proportional to exp(-k/scale)."""
    while True:
        rest = stream.below(scale)
        if _bernoulli_exp(rest, scale, stream):
            break
    whole = 0
    while _bernoulli_exp(1, 1, stream):
        whole += 1
    return rest + scale * whole


def cross(size: int, k: int) -> int:
    """The number of points of Z^size whose absolute values add up to at most k."""
    return sum(_terms(size, k))


def _terms(size, k):
    """Yield 2^j C(size, j) C(k, j), the number of such points with j coordinates that are not 0."""
    term = 1
    for j in range(min(size, k) + 1):
        yield term
        term = 2 * (size - j) * (k - j) * term // (j + 1) ** 2


def kept(k: int, singles: int, blocks: Sequence[int]) -> tuple[int, int]:
    """(numerator, denominator) of the probability with which `hull` keeps k."""
    d = singles + sum(blocks)
    over = [cross(size, k) * factorial(size) for size in blocks]
    under = [k + i for i in range(1, d + 1)]
    return (2 * k + 1) ** singles * _product(over), _product(under) << d


def _product(numbers):
    """The product, by halves, which is fast for many large numbers."""
    if len(numbers) < 8:
        return prod(numbers)
    middle = len(numbers) // 2
    return _product(numbers[:middle]) * _product(numbers[middle:])


def hull(scale: int, singles: int, blocks: Sequence[int], stream: Stream) -> list[int]:
    """A point with probability proportional to exp(-N(z)/scale): first its singles, then its blocks."""
    d = singles + sum(blocks)
    while True:
        k = sum(geometric(scale, stream) for _ in range(d + 1))
        if stream.bernoulli(*kept(k, singles, blocks)):
            break
    z = [stream.below(2 * k + 1) - k for _ in range(singles)]
    for size in blocks:
        z += _in_cross(size, k, stream)
    return z


def _in_cross(size, k, stream):
    """A uniform point of Z^size whose absolute values add up to at most k."""
    rank = stream.below(cross(size, k))
    for j, count in enumerate(_terms(size, k)):  # noqa: B007 (j is used below)
        if rank < count:
            break
        rank -= count
    z, left, before = [0] * size, list(range(size)), 0
    for cut in _subset(k, j, stream):
        place = left.pop(stream.below(len(left)))
        z[place] = cut - before if stream.bits(1) else before - cut
        before = cut
    return z


def _subset(k, j, stream):
    """j different numbers in 1..k, sorted, uniformly (Floyd's algorithm)."""
    found = set()
    for top in range(k - j + 1, k + 1):
        number = 1 + stream.below(top)
        found.add(top if number in found else number)
    return sorted(found)


def l2(scale: int, count: int, stream: Stream) -> list[int]:
    """A point of Z^count with about the law of density exp(-||z||/scale): see lemma 1'."""
    total = sum(discrete_gaussian(MIXING**2, 1, stream) ** 2 for _ in range(count + 1))
    if total == 0:
        return [0] * count
    over = scale * scale * total
    return [discrete_gaussian(over, MIXING**2, stream) for _ in range(count)]


def l2_variation(scale: int, count: int) -> Fraction:
    """The total variation distance of lemma 1', rounded up. count: at least 2."""
    if count < 2 or scale < 2:
        raise ValueError(f"lemma 1' needs d >= 2 and S >= 2, not {count} and {scale}")
    mixing = (count + 1) * lattice.total_variation(Fraction(MIXING)) + Fraction(2 * count, MIXING)
    rounding = Fraction(605, 10_000) / (scale**2 * (count - 1)) + Fraction(1, scale**3)
    return mixing + count * rounding
