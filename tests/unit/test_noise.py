"""Tests shapes, scaling and refusals of noise. tests/statistical tests its distributions."""

import numpy as np
import pytest
from scipy.stats import gamma

from dp import noise
from dp.seeds import generator

LAWS = (noise.l2_laplace, noise.laplace, noise.gaussian, noise.box, noise.hull)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("dimension", "size"), [(1, 1), (1, 7), (10, 3), (784, 2)])
def test_shape(law, dimension, size):
    assert law(dimension, 2.0, size, generator(0)).shape == (size, dimension)


@pytest.mark.parametrize("law", LAWS)
def test_common_random_numbers_along_the_scale(law):
    """From one generator state, draws are proportional to the scale, up to rounding in the last bit."""
    unit = law(10, 1.0, 50, generator(1, "noise"))
    for scale in (1e-8, 0.3, 7.0, 1e12):
        np.testing.assert_allclose(
            law(10, scale, 50, generator(1, "noise")), scale * unit, rtol=1e-14
        )


@pytest.mark.parametrize("law", LAWS)
def test_draws_are_independent_between_rows_and_purposes(law):
    first, second = law(5, 1.0, 2, generator(2, "a"))
    assert not np.allclose(first, second)
    assert not np.allclose(law(5, 1.0, 2, generator(2, "b")), [first, second])


@pytest.mark.parametrize("law", LAWS)
def test_zero_scale_is_no_noise(law):
    assert not law(4, 0.0, 3, generator(3)).any()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [-1.0, np.nan, np.inf])
def test_bad_scale(law, scale):
    with pytest.raises(ValueError, match="scale"):
        law(4, scale, 3, generator(4))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("dimension", [0, -1, 2.5, np.nan])
def test_bad_dimension(law, dimension):
    with pytest.raises(ValueError, match="dimension"):
        law(dimension, 1.0, 3, generator(5))


@pytest.mark.parametrize("dimension", [1, 2, 10, 784, 10**5])
def test_reach_is_hardly_ever_exceeded(dimension):
    reach = noise.l2_laplace_reach(dimension)
    assert np.exp(-110) < gamma.sf(reach, dimension) <= np.exp(-60)


def test_a_blocks_noise_is_proportional_too():
    blocks = [[0, 3], [2]]
    unit = noise.hull(5, 1.0, 20, generator(6), blocks=blocks)
    scaled = noise.hull(5, 7.0, 20, generator(6), blocks=blocks)
    np.testing.assert_allclose(scaled, 7 * unit, rtol=1e-14)


def test_a_replay_takes_a_law_that_it_cannot_measure_for_a_choice():
    from dp_audit import replay

    X, y = np.ones((3, 2)), np.ones(3)
    for law, blocks in ((noise.box, {}), (noise.hull, {"blocks": [[0, 1]]})):
        found = replay.replay(
            lambda X, y, rng, law=law, blocks=blocks: (
                X.sum(axis=0) + law(2, 1.0, 1, rng, **blocks)[0]
            ),
            *((X, y), (np.vstack([X[:2], -X[2:]]), y)),
            epsilon=2.0,
        )
        assert found.finding == replay.CHOICE and law.__name__ in found.why


def test_discrete_laplace_draws_are_whole_and_refuse_what_the_others_refuse():
    z = noise.discrete_laplace(3, 2.5, 1000, generator(7))
    assert z.shape == (1000, 3) and (z == np.round(z)).all() and z.min() < 0 < z.max()
    assert not noise.discrete_laplace(3, 0.0, 5, generator(7)).any()
    for wrong in ((0, 1.0), (3, -1.0), (3, np.nan)):
        with pytest.raises(ValueError, match=r"scale|dimension"):
            noise.discrete_laplace(*wrong, 5, generator(7))
