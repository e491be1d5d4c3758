import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from dp_release import draws
from dp_release.draws import Stream

KEY = bytes(range(32))


def p_value(values, probabilities):
    """Chi-square p-value of integers, given their probabilities. Rare values are pooled."""
    common = {k: p for k, p in probabilities.items() if p * len(values) >= 10}
    counts = np.array([np.sum(np.array(values) == k) for k in common])
    expected = np.array(list(common.values())) * len(values)
    counts = np.append(counts, len(values) - counts.sum())
    expected = np.append(expected, len(values) - expected.sum())
    if expected[-1] < 1:  # too rare for a class of its own
        counts[-2:], expected[-2:] = counts[-2:].sum(), expected[-2:].sum()
        counts, expected = counts[:-1], expected[:-1]
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1)


@pytest.mark.parametrize("variance", ["1/3", "1", "4", "25", "7/2", "400"])
def test_gaussian_draws_have_their_exact_probabilities(variance):
    v, stream = Fraction(variance), Stream(KEY, f"law of {variance}")
    values = [draws.discrete_gaussian(v.numerator, v.denominator, stream) for _ in range(20_000)]
    reach = range(-int(40 * math.sqrt(v)) - 9, int(40 * math.sqrt(v)) + 10)
    mass = {k: math.exp(-k * k / (2 * v)) for k in reach}
    total = sum(mass.values())
    assert p_value(values, {k: each / total for k, each in mass.items()}) > 1e-3


@pytest.mark.parametrize("scale", [1, 2, 7])
def test_laplace_draws_have_their_exact_probabilities(scale):
    stream = Stream(KEY, f"laplace {scale}")
    values = [draws.discrete_laplace(scale, stream) for _ in range(20_000)]
    ratio = math.exp(-1 / scale)
    mass = {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-300, 301)}
    assert p_value(values, mass) > 1e-3


@pytest.mark.parametrize("x", ["0", "1/7", "1", "5/2", "4"])
def test_exponential_coins(x):
    x, stream, n = Fraction(x), Stream(KEY, f"coin {x}"), 20_000
    heads = sum(draws.bernoulli_exp(x.numerator, x.denominator, stream) for _ in range(n))
    p = math.exp(-x)
    assert abs(heads - n * p) <= 4 * math.sqrt(n * p * (1 - p))


def test_fine_lattices_have_the_moments_of_a_normal():
    scale, n = 2**40 + 12345, 5000
    z = np.array(list(draws.gaussians(scale, n, Stream(KEY, "fine")))) / scale
    assert abs(z.mean()) < 4 / math.sqrt(n)
    assert abs(z.var() - 1) < 4 * math.sqrt(2 / n)
    assert abs((z**4).mean() - 3) < 4 * math.sqrt(96 / n)
    assert any(int(each * scale) % 2 for each in z)  # the lowest bit also varies


def test_uniform_integers_below_a_bound():
    stream = Stream(KEY, "uniform")
    values = [stream.below(5) for _ in range(10_000)]
    assert p_value(values, dict.fromkeys(range(4), 0.2)) > 1e-3 and max(values) == 4
    assert stream.below(1) == 0 and stream.bits(0) == 0
    assert 0 <= stream.bits(1001) < 2**1001


def test_a_key_determines_every_draw():
    def first(key, part):
        return list(draws.gaussians(2**40, 20, Stream(key, part)))

    assert first(KEY, "tilt") == first(KEY, "tilt")
    others = [first(KEY, "weights"), first(bytes(32), "tilt"), first(KEY, "tilt ")]
    everything = [z for draw in (first(KEY, "tilt"), *others) for z in draw]
    assert len(set(everything)) == len(everything)


def test_parts_of_one_key_are_independent():
    a = np.array(list(draws.gaussians(1000, 4000, Stream(KEY, "a")))) / 1000
    b = np.array(list(draws.gaussians(1000, 4000, Stream(KEY, "b")))) / 1000
    assert abs((a * b).mean()) < 4 / math.sqrt(4000)
    assert abs((a[1:] * a[:-1]).mean()) < 4 / math.sqrt(4000)


def test_the_stream_is_hmac_sha512_of_the_part_and_a_counter():
    import hashlib
    import hmac

    def block(part, counter):
        message = len(part).to_bytes(8, "big") + part + counter.to_bytes(16, "big")
        return hmac.new(KEY, message, hashlib.sha512).digest()

    stream = Stream(KEY, "tilt")
    actual = b"".join(stream.bits(8 * k).to_bytes(k, "big") for k in (1, 63, 100, 20, 8))
    assert actual == (block(b"tilt", 0) + block(b"tilt", 1) + block(b"tilt", 2))[: len(actual)]


def test_keys():
    assert len({draws.new_key() for _ in range(10)}) == 10
    for key in (b"short", bytes(33), "text"):
        with pytest.raises(ValueError, match="32 bytes"):
            Stream(key, "tilt")


def test_against_opendp():
    dp = pytest.importorskip("opendp.prelude", reason="needs OpenDP, which is optional")
    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=float)
    measure = dp.m.make_gaussian(*space, scale=5.0)
    other = np.array([measure(0) for _ in range(20_000)])
    stream = Stream(KEY, "opendp")
    ours = np.array([draws.discrete_gaussian(25, 1, stream) for _ in range(20_000)])
    edges = np.arange(-12, 13)
    table = np.array([np.bincount(np.digitize(x, edges), minlength=26) for x in (ours, other)])
    expected = table.mean(axis=0)
    statistic = ((table - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, table.shape[1] - 1) > 1e-3
