"""Draw exact discrete Gaussian noise from a key, using only integer arithmetic.

The rejection sampler of Canonne, Kamath, Steinke (NeurIPS 2020, algorithms 1 to 3) is exact if its bits
are uniform. The bits are HMAC-SHA512(key, part, counter) for counter = 0, 1, .. A key of 256 bits from the
operating system serves one release. It determines the draws of each part (tilt, output noise, ..). So
rerunning an interrupted release repeats its draws, and nobody can choose the best of several.
"""

import hmac
import secrets
from collections.abc import Iterator
from math import isqrt

__all__ = ["new_key"]

KEY_BYTES = 32


def new_key() -> bytes:
    """A new key from the operating system.

    Returns
    -------
    bytes
        32 bytes. Whoever knows the key and all records but one can learn that record from the release.

    Examples
    --------
    >>> len(new_key())
    32
    """
    return secrets.token_bytes(KEY_BYTES)


class Stream:
    """Uniform bits, determined by a key and a part's name."""

    def __init__(self, key: bytes, part: str) -> None:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes")
        name = part.encode()
        # Messages start with the name's length, so messages of different parts differ.
        self._key, self._message = key, len(name).to_bytes(8, "big") + name
        self._counter, self._bytes, self._at = 0, b"", 0

    def bits(self, count: int) -> int:
        """A uniform integer in [0, 2^count)."""
        wanted = (count + 7) // 8
        while len(self._bytes) - self._at < wanted:
            message = self._message + self._counter.to_bytes(16, "big")
            fresh = hmac.digest(self._key, message, "sha512")
            self._bytes, self._at = self._bytes[self._at :] + fresh, 0
            self._counter += 1
        taken = self._bytes[self._at : self._at + wanted]
        self._at += wanted
        return int.from_bytes(taken, "big") >> (8 * wanted - count)

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound)."""
        count = (bound - 1).bit_length()
        while (value := self.bits(count)) >= bound:
            pass
        return value

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        """True with probability numerator/denominator in [0, 1]."""
        return self.below(denominator) < numerator


def bernoulli_exp(numerator: int, denominator: int, stream: Stream) -> bool:
    """True with probability exp(-numerator/denominator), numerator >= 0 (algorithm 1)."""
    while numerator > denominator:
        if not _bernoulli_exp(1, 1, stream):
            return False
        numerator -= denominator
    return _bernoulli_exp(numerator, denominator, stream)


def _bernoulli_exp(numerator, denominator, stream):
    """`bernoulli_exp` for a ratio x <= 1: true if the first k with Bernoulli(x/k) = 0 is odd."""
    k = 1
    while stream.bernoulli(numerator, denominator * k):
        k += 1
    return k % 2 == 1


def discrete_laplace(scale: int, stream: Stream) -> int:
    """An integer x with probability proportional to exp(-|x|/scale) (algorithm 2)."""
    while True:
        rest = stream.below(scale)
        if not _bernoulli_exp(rest, scale, stream):
            continue
        whole = 0
        while _bernoulli_exp(1, 1, stream):
            whole += 1
        size, negative = rest + scale * whole, stream.bits(1)
        if size or not negative:  # rejects -0, which would count 0 twice
            return -size if negative else size


def discrete_gaussian(numerator: int, denominator: int, stream: Stream) -> int:
    """An integer x with probability proportional to exp(-x^2/(2 v)), v = numerator/denominator > 0.

    A draw y of `discrete_laplace` of scale t = floor(sqrt(v)) + 1 is kept with probability
    exp(-(|y| - v/t)^2/(2 v)) (algorithm 3).
    """
    t = isqrt(numerator // denominator) + 1
    below = 2 * numerator * denominator * t * t
    while True:
        y = discrete_laplace(t, stream)
        over = abs(y) * denominator * t - numerator
        if bernoulli_exp(over * over, below, stream):
            return y


def gaussians(scale: int, count: int, stream: Stream) -> Iterator[int]:
    """`count` independent draws of `discrete_gaussian` with the variance scale^2."""
    return (discrete_gaussian(scale * scale, 1, stream) for _ in range(count))
