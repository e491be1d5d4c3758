"""Noise of a norm's law on the integer lattice: exact laws at small scales, and moments at large ones."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from test_releasing_draws import KEY, p_value

from dp_release import lattice, norm_draws
from dp_release.draws import Stream
from dp_release.norm_noise import Body, Noise


def norm(z, singles, blocks):
    sizes, at = [abs(value) for value in z[:singles]], singles
    for size in blocks:
        sizes.append(sum(abs(value) for value in z[at : at + size]))
        at += size
    return max(sizes)


CASES = [
    (1, (), 2),
    (2, (), 3),
    (3, (), 1),
    (0, (2,), 1),
    (0, (3,), 1),
    (1, (2,), 1),
    (0, (1, 2), 1),
    (1, (1, 2), 1),
]


@pytest.mark.parametrize("singles, blocks, scale", CASES)
def test_every_point_has_its_exact_probability(singles, blocks, scale):
    d, far = singles + sum(blocks), {1: 60, 2: 40, 3: 13, 4: 9}[singles + sum(blocks)]
    mass = {
        z: math.exp(-norm(z, singles, blocks) / scale)
        for z in itertools.product(range(-far, far + 1), repeat=d)
    }
    total = sum(mass.values())
    stream = Stream(KEY, f"hull {singles} {blocks}")
    found = [tuple(norm_draws.hull(scale, singles, blocks, stream)) for _ in range(8000)]
    places = {z: k for k, z in enumerate(mass)}
    known = {places[z]: weight / total for z, weight in mass.items() if weight / total > 1e-5}
    assert p_value([places.get(z, -1) for z in found], known) > 1e-3


def test_probabilities_of_keeping_are_at_most_1():
    every = [(), (1,), (2,), (1, 1), (3, 2), (7, 2, 2), (30,)]
    for singles, blocks, k in itertools.product((0, 1, 3), every, [*range(40), 10**6, 10**13]):
        over, under = norm_draws.kept(k, singles, blocks)
        assert 0 < over <= under


def test_points_of_a_block_by_counting():
    for size, k in itertools.product((1, 2, 3), range(6)):
        points = itertools.product(range(-k, k + 1), repeat=size)
        assert norm_draws.cross(size, k) == sum(sum(map(abs, z)) <= k for z in points)


@pytest.mark.parametrize("d", [1, 2, 5, 20, 50])
def test_norms_at_a_fine_scale_have_gamma_laws(d):
    """||b|| of the l2 law and N(b) of the box's are Gamma(d); directions are uniform in the body."""
    scale, n = 2**40 + 12345, 400 if d < 20 else 150
    for law in ("l2", "hull"):
        stream, noise = Stream(KEY, f"{law} {d}"), Noise(0, scale, Body(d), law)
        z = np.array([noise.draw(stream) for _ in range(n)], dtype=float) / scale
        size = np.linalg.norm(z, axis=1) if law == "l2" else np.abs(z).max(axis=1)
        assert stats.kstest(size, "gamma", args=(d,)).pvalue > 1e-3
        expected = noise.variances.mean() / scale**2
        error = (z**2).mean(axis=1).std() / math.sqrt(n)
        assert abs((z**2).mean() - expected) < 4 * error


def test_coordinates_of_an_l2_draw_have_their_law():
    """Projections on any line: sqrt(V) N(0, 1), V ~ chi^2 with d + 1 degrees of freedom."""
    d, scale, n = 3, 2**40, 1500
    stream, rng = Stream(KEY, "l2 line"), np.random.default_rng(1)
    z = np.array([norm_draws.l2(scale, d, stream) for _ in range(n)], dtype=float) / scale
    other = np.sqrt(rng.chisquare(d + 1, 20 * n)) * rng.standard_normal(20 * n)
    line = np.array([2.0, -1.0, 2.0]) / 3
    assert stats.ks_2samp(z @ line, other).pvalue > 1e-3
    assert stats.ks_2samp(z[:, 0], other).pvalue > 1e-3


@pytest.mark.parametrize("d, scale", [(2, 2), (2, 6), (3, 4)])
def test_small_l2_lattices_are_as_close_as_lemma_1_says(d, scale):
    """The exact law of the mixture against the rounded continuous law, for a small S, in one coordinate."""
    V = stats.chi2(d + 1)
    k = np.arange(-60 * scale, 60 * scale + 1)
    probabilities = (np.arange(4000) + 0.5) / 4000
    variances = scale**2 * V.ppf(probabilities)
    on_lattice, rounded = np.zeros(len(k)), np.zeros(len(k))
    for v in variances:
        mass = np.exp(-(k**2) / (2 * v))
        on_lattice += mass / mass.sum()
        edges = stats.norm.cdf((np.arange(len(k) + 1) + k[0] - 0.5) / math.sqrt(v))
        rounded += np.diff(edges)
    distance = np.abs(on_lattice - rounded).sum() / 2 / len(variances)
    assert 0 < distance <= float(norm_draws.l2_variation(scale, d))


def test_the_l2_variation_at_a_releases_scale_is_next_to_nothing():
    for d in (2, 20, 100, 1000):
        assert 0 < norm_draws.l2_variation(2**40, d) < 1e-20
    assert norm_draws.l2_variation(2**40, 20) > norm_draws.l2_variation(2**41, 20)
    for d, scale in ((1, 2**40), (5, 1)):
        with pytest.raises(ValueError, match="lemma 1'"):
            norm_draws.l2_variation(scale, d)


@pytest.mark.parametrize("body", [Body(2), Body(5), Body(5, ((0, 2, 4),)), Body(4, ((1, 2), (3,)))])
def test_moments_of_a_body(body):
    scale, stream = 2**40, Stream(KEY, f"moments {body}")
    noise = Noise(-40, scale, body)
    z = np.array([noise.draw(stream) for _ in range(4000)], dtype=float) / scale
    assert np.allclose(z.var(axis=0) / noise.variances, 1, atol=0.25)
    gains = np.array([np.eye(body.count)[0], np.ones(body.count), np.arange(body.count) - 1.5])
    # Against continuous draws by another method, many of them.
    rng, n, d = np.random.default_rng(2), 200_000, body.count
    x = rng.uniform(-1, 1, (n, d))
    for block in body.blocks:
        parts = rng.standard_exponential((n, len(block) + 1))
        signs = rng.choice([-1, 1], (n, len(block)))
        x[:, list(block)] = parts[:, :-1] / parts.sum(axis=1, keepdims=True) * signs
    b = rng.standard_gamma(d + 1, n)[:, None] * x
    assert np.allclose(b.var(axis=0) / body.variances(), 1, atol=0.03)
    assert np.allclose(stats.kurtosis(b @ gains.T), body.kurtosis(gains), atol=0.25)
    for a, c in zip((z @ gains.T).T, (b @ gains.T).T, strict=True):
        assert stats.ks_2samp(a, c).pvalue > 1e-3


def test_excess_kurtosis_by_hand():
    assert Body(10).kurtosis(np.eye(10)[:1]) == pytest.approx([2.48 - 3], abs=0.01)
    assert Body(11, (tuple(range(4, 11)),)).kurtosis(np.eye(11)[4:5]) == pytest.approx(
        [5.3 - 3], abs=0.05
    )


def test_draws_of_a_part_are_determined_by_the_key():
    noise = Noise(0, 2**40, Body(4, ((1, 2),)))
    assert noise.draw(Stream(KEY, "tilt")) == noise.draw(Stream(KEY, "tilt"))
    assert noise.draw(Stream(KEY, "tilt")) != noise.draw(Stream(KEY, "weights"))
    assert lattice.spacing(noise.step) == 1
