"""Draws depend only on the seed and the axes (experiment, data set, method, fold, purpose).

Another hash would change every result.
"""

import subprocess
import sys

import numpy as np
import pytest

from dp.seeds import generator
from project import ROOT
from study.jobs.folds import noise_axes

AXES = ("cm08", "cm08_separable", "output_perturbation", 0, "noise")


def test_the_draws_of_a_purpose_are_these():
    rng = generator(20081208, *AXES)
    assert rng.integers(0, 2**32, 3).tolist() == [2246239692, 81540306, 625655862]
    np.testing.assert_allclose(
        generator(20081208, *AXES).standard_normal(3),
        [-0.32579671039752894, 0.2260762719227181, 0.6458801469186976],
        rtol=1e-14,
    )
    assert generator(1, "a", "b").permutation(8).tolist() == [6, 2, 3, 0, 4, 1, 5, 7]
    assert generator(0).integers(0, 2**32, 3).tolist() == [3653403231, 2735729615, 2195314465]


def first(*arguments):
    return generator(*arguments).integers(0, 2**63)


def test_every_axis_and_the_seed_change_the_draws():
    seen = {first(1, *AXES), first(2, *AXES)}
    for k in range(len(AXES)):
        seen.add(first(1, *AXES[:k], "other", *AXES[k + 1 :]))
        seen.add(first(1, *AXES[:k], *AXES[k + 1 :]))
    assert len(seen) == 2 + 2 * len(AXES)


def test_the_order_and_the_borders_of_axes_count():
    assert first(1, "a", "b") != first(1, "b", "a")
    assert first(1, "ab", "c") != first(1, "a", "bc") != first(1, "abc")


def test_an_axis_is_what_it_prints():
    assert first(1, 0) == first(1, np.int64(0)) == first(1, "0")


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_other_processes_draw_the_same(hash_seed):
    code = (
        "import sys; sys.path.insert(0, 'scripts'); from dp.seeds import generator;"
        f"print(generator(20081208, *{AXES!r}).integers(0, 2**63))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == first(20081208, *AXES)


def test_streams_of_neighbouring_folds_are_uncorrelated():
    draws = np.array([generator(1, "e", "d", "m", k, "noise").normal(size=2000) for k in range(20)])
    correlation = np.corrcoef(draws)[np.triu_indices(20, 1)]
    # Each of the 190 correlations has a standard error of 1/sqrt(2000).
    assert np.abs(correlation).max() < 5 / np.sqrt(2000)


def test_fresh_noise_has_axes_of_its_own_at_every_point():
    assert noise_axes(False, 100, 0.5) == noise_axes(False, 200, 1.0) == ()
    points = [(n, e) for n in (100, 200) for e in (0.1, 1.0, 10.0)]
    assert len({first(1, "m", *noise_axes(True, *at), 0, "noise") for at in points}) == len(points)
    assert noise_axes(True, 100, 0.10) == noise_axes(True, 100, 0.1)
