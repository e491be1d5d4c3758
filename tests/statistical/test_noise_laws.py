"""Kolmogorov-Smirnov tests of the noise distributions, with fixed seeds."""

import numpy as np
import pytest
from scipy import stats

from dp import noise
from dp.seeds import generator

LEAST_P = 1e-3
DRAWS = 20_000


@pytest.mark.parametrize(("dimension", "scale"), [(1, 1.0), (2, 0.01), (10, 3.0), (100, 20.0)])
def test_l2_laplace_norm_is_gamma(dimension, scale):
    z = noise.l2_laplace(dimension, scale, DRAWS, generator(11, dimension))
    norms = np.linalg.norm(z, axis=1)
    assert stats.kstest(norms, stats.gamma(dimension, scale=scale).cdf).pvalue > LEAST_P
    # With this many draws, a wrong shape or scale is detected.
    assert stats.kstest(norms, stats.gamma(dimension + 1, scale=scale).cdf).pvalue < 1e-6
    assert stats.kstest(norms, stats.gamma(dimension, scale=1.1 * scale).cdf).pvalue < 1e-6


@pytest.mark.parametrize("dimension", [1, 2, 3, 10])
def test_l2_laplace_direction_is_uniform(dimension):
    """(1 + u.v)/2 ~ Beta((d-1)/2, (d-1)/2) for u uniform on the sphere and any fixed unit v."""
    rng = generator(12, dimension)
    z = noise.l2_laplace(dimension, 1.0, DRAWS, rng)
    directions = z / np.linalg.norm(z, axis=1, keepdims=True)
    axes = [np.eye(dimension)[0], np.ones(dimension) / np.sqrt(dimension)]
    random = rng.standard_normal((3, dimension))
    for v in (*axes, *(random / np.linalg.norm(random, axis=1, keepdims=True))):
        cosines = directions @ v
        if dimension == 1:
            assert stats.binomtest(int((cosines > 0).sum()), DRAWS).pvalue > LEAST_P
            continue
        half = (dimension - 1) / 2
        assert stats.kstest((1 + cosines) / 2, stats.beta(half, half).cdf).pvalue > LEAST_P
    # the mean direction and the second moments: n ||mean||^2 d ~ chi^2_d, and E uu' = I/d
    mean = directions.mean(axis=0)
    assert stats.chi2(dimension).sf(DRAWS * dimension * mean @ mean) > LEAST_P
    moments = directions.T @ directions / DRAWS
    np.testing.assert_allclose(moments, np.eye(dimension) / dimension, atol=5 / np.sqrt(DRAWS))


def test_l2_laplace_norm_and_direction_are_independent():
    z = noise.l2_laplace(3, 1.0, DRAWS, generator(13))
    norms = np.linalg.norm(z, axis=1)
    assert stats.spearmanr(norms, z[:, 0] / norms).pvalue > LEAST_P
    assert stats.spearmanr(norms, np.abs(z[:, 0]) / norms).pvalue > LEAST_P


def test_laplace_and_gaussian_coordinates():
    z = noise.laplace(4, 2.5, DRAWS, generator(14))
    for column in z.T:
        assert stats.kstest(column, stats.laplace(scale=2.5).cdf).pvalue > LEAST_P
    assert stats.spearmanr(np.abs(z[:, 0]), np.abs(z[:, 1])).pvalue > LEAST_P
    g = noise.gaussian(4, 2.5, DRAWS, generator(15))
    for column in g.T:
        assert stats.kstest(column, stats.norm(scale=2.5).cdf).pvalue > LEAST_P
    assert stats.spearmanr(np.abs(g[:, 0]), np.abs(g[:, 1])).pvalue > LEAST_P


BODIES = [
    (1, []),
    (3, []),
    (10, []),
    (2, [[0, 1]]),
    (5, [[1, 3], [4]]),
    (8, [[7, 0, 2], [1, 3, 4, 6]]),
]


@pytest.mark.parametrize(("dimension", "blocks"), BODIES)
def test_noise_of_a_hull_has_its_norm_and_its_body(dimension, blocks):
    """N(z) ~ Gamma(d, s), and z/N(z) is independent of it with the cone measure of the body.

    In a box, the other coordinates of z/N(z) are uniform given the largest. In a cross-polytope of c
    coordinates, their sizes are Dirichlet(1, .., 1), so one has the law Beta(1, c - 1).
    """
    z = noise.hull(dimension, 2.0, DRAWS, generator(16, dimension), blocks=blocks)
    singles = [j for j in range(dimension) if not any(j in block for block in blocks)]
    sums = [np.abs(z[:, block]).sum(axis=1) for block in ([[j] for j in singles] + blocks)]
    norms = np.max(sums, axis=0)
    assert stats.kstest(norms, stats.gamma(dimension, scale=2.0).cdf).pvalue > LEAST_P
    assert stats.kstest(norms, stats.gamma(dimension + 1, scale=2.0).cdf).pvalue < 1e-6
    # Which part has the norm: a block of c columns has c of the d facets' dimensions.
    largest = np.argmax(sums, axis=0)
    sizes = [1] * len(singles) + list(map(len, blocks))
    seen = np.bincount(largest, minlength=len(sizes))
    if len(sizes) > 1:
        assert stats.chisquare(seen, DRAWS * np.array(sizes) / dimension).pvalue > LEAST_P
    for k, part in enumerate([[j] for j in singles] + blocks):
        c, other = len(part), largest != k
        signs = (z[:, part] > 0).sum()
        assert stats.binomtest(int(signs), DRAWS * c).pvalue > LEAST_P
        if other.any():
            inside = sums[k][other] / norms[other]
            assert stats.kstest(inside, stats.beta(c, 1).cdf).pvalue > LEAST_P
        if c > 1:
            share = np.abs(z[:, part[0]]) / sums[k]
            assert stats.kstest(share, stats.beta(1, c - 1).cdf).pvalue > LEAST_P
            assert stats.spearmanr(share, sums[k]).pvalue > LEAST_P


def test_box_is_a_hull_without_blocks():
    first, second = (law(4, 2.5, 50, generator(17)) for law in (noise.box, noise.hull))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("scale", [0.3, 1.0, 8.0])
def test_discrete_laplace_has_its_probabilities(scale):
    z = noise.discrete_laplace(2, scale, DRAWS, generator(18))
    q = np.exp(-1 / scale)
    reach = int(np.ceil(5 * scale))
    known = np.arange(-reach, reach + 1)
    p = (1 - q) / (1 + q) * q ** np.abs(known)
    tail = q ** (reach + 1) / (1 + q)
    for column in z.T:
        seen = [
            np.sum(column < -reach),
            *(np.sum(column == k) for k in known),
            np.sum(column > reach),
        ]
        expected = DRAWS * np.array([tail, *p, tail])
        assert stats.chisquare(seen, expected * DRAWS / expected.sum()).pvalue > LEAST_P
