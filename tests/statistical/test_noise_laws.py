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
