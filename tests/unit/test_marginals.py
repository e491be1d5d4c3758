import math

import numpy as np
import pytest

from dp.mechanisms import MECHANISMS
from dp.mechanisms.marginals import _possible, variables
from dp.seeds import generator
from dp_audit import replay
from dp_privacy.accounting import gaussian_mu
from dp_privacy.errors import Refused

MECHANISM = MECHANISMS["private_marginals"]
SIZES, DELTA = [3, 2, 4], 1e-6


def one_hot(levels):
    """Rows of norm 1 with a constant column, as the preparation step `clip` makes them."""
    parts = [np.eye(size)[levels[:, k]] for k, size in enumerate(SIZES)]
    return np.hstack([*parts, np.ones((len(levels), 1))]) / 2


def drawn(n, rng):
    """Levels of three variables, two of them dependent, and labels that depend on all."""
    first = rng.integers(3, size=n)
    second = (first + rng.integers(2, size=n) > 1).astype(int)
    third = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    score = 1.5 * (first == 2) - 1.0 * second + 0.8 * (third == 1) - 1.2
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), 1, -1)
    return np.stack([first, second, third], axis=1), y


def tables(levels, y):
    columns = [*levels.T, (y > 0).astype(int)]
    sizes, result = [*SIZES, 2], []
    for a in range(4):
        for b in range(a + 1, 4):
            table = np.zeros((sizes[a], sizes[b]))
            for i, j in zip(columns[a], columns[b], strict=True):
                table[i, j] += 1
            result.append((table, b == 3))
    return result


def test_what_a_record_moves_is_as_stated():
    p = MECHANISM.parameters(3, 10, epsilon=1.0, delta=DELTA, groups=SIZES)
    own, other = MECHANISM._scales(10, p)
    levels, y = np.zeros((1, 3), int), np.array([-1])
    largest = 0.0
    before = tables(levels, y)
    for a, b, c in np.ndindex(*SIZES):
        for label in (-1, 1):
            after = tables(np.array([[a, b, c]]), np.array([label]))
            moved = sum(
                ((old - new) ** 2).sum() / (own if is_class else other) ** 2
                for (old, is_class), (new, _) in zip(before, after, strict=True)
            )
            largest = max(largest, moved)
    assert math.sqrt(largest) == pytest.approx(gaussian_mu(1.0, DELTA), rel=1e-12)


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_replay_measures_exactly_what_is_stated(share):
    levels, y = drawn(20, generator(1))
    other = levels.copy()
    other[0] = (levels[0] + 1) % SIZES
    flipped = y.copy()
    flipped[0] = -y[0]
    sides = (one_hot(levels), y), (one_hot(other), flipped)

    def run(X, y, rng):
        settings = {"epsilon": 0.7, "delta": DELTA, "groups": SIZES, "share": share}
        return MECHANISM.release(X, y, rng=rng, **settings).weights

    replayed = replay.replay(run, *sides, epsilon=0.7, delta=DELTA)
    assert replayed.finding == replay.HOLDS, replayed.why
    assert replayed.mu == pytest.approx(gaussian_mu(0.7, DELTA), rel=1e-9)
    assert replayed.epsilon == pytest.approx(0.7, rel=1e-6)
    alone = replay.replay(run, sides[0], (sides[0][0], flipped), epsilon=0.7, delta=DELTA)
    assert alone.mu == pytest.approx(math.sqrt(share) * gaussian_mu(0.7, DELTA), rel=1e-9)


def test_every_row_of_numbers_has_one_level_of_every_variable():
    rng = generator(2)
    X = np.vstack([rng.standard_normal((50, 10)), np.zeros((1, 10)), np.full((1, 10), 1e300)])
    for read in (variables(10, 1.0, SIZES), variables(10, 1.0)):
        actual = read.levels(X)
        assert (actual @ read.part == 1).all() and set(np.unique(actual)) == {0.0, 1.0}
    levels, _ = drawn(40, rng)
    read = variables(10, 1.0, SIZES)
    rows = one_hot(levels)
    np.testing.assert_array_equal(read.levels(rows) * read.unit, rows[:, :9])


def test_columns_without_groups_are_rounded_to_five_values():
    read = variables(4, 2.0)
    x = np.array([[-1.0, 0.2, 0.8, 7.0]])
    np.testing.assert_allclose(read.levels(x) @ read.columns * read.unit, [[-1.0, 0.0, 1.0, 1.0]])


def test_without_noise_it_is_the_linear_discriminant_of_the_rows():
    levels, y = drawn(3000, generator(3))
    X = one_hot(levels)
    settings = {"epsilon": 1e7, "delta": DELTA, "groups": SIZES}
    release = MECHANISM.release(X, y, rng=generator(4), **settings)
    Z, share = 2 * X[:, :9], (y > 0).mean()
    low, high = Z[y < 0].mean(axis=0), Z[y > 0].mean(axis=0)
    away = Z - np.where(y[:, None] > 0, high, low)
    weights = np.linalg.solve(away.T @ away / len(y) + 0.03 * np.eye(9), high - low)
    np.testing.assert_allclose(release.weights[0, :9], 2 * weights, atol=1e-3)
    assert release.weights[0, 9] == 0
    intercept = math.log(share / (1 - share)) - weights @ (low + high) / 2
    assert release.info["intercept"][0] == pytest.approx(intercept, abs=1e-3)


def test_where_noise_hides_everything_the_class_rate_remains():
    levels, y = drawn(200, generator(5))
    release = MECHANISM.release(
        one_hot(levels), y, epsilon=0.01, delta=DELTA, rng=generator(6), restarts=200, groups=SIZES
    )
    assert (np.abs(release.weights).max(axis=1) < 1e-9).mean() > 0.9
    assert np.abs(release.info["intercept"]).max() < 50


def test_the_nearest_possible_counts():
    rng = generator(9)
    counts = rng.normal(10, 20, (30, 4))
    actual = _possible(counts, 40)
    np.testing.assert_allclose(actual.sum(axis=1), 40)
    assert (actual >= 0).all()
    for _ in range(2000):
        others = rng.dirichlet(np.ones(4) * rng.choice([0.1, 1, 5]), 30) * 40
        moved = actual + rng.random() * (others - actual)
        nearest = ((counts - actual) ** 2).sum(axis=1)
        assert (((counts - moved) ** 2).sum(axis=1) >= nearest - 1e-9).all()


def test_levels_that_are_no_columns_are_refused():
    for groups, why in (([6, 5], "11 levels in 10 columns"), ([], "must be"), ([2.5], "must be")):
        with pytest.raises(Refused, match=why):
            MECHANISM.guarantee(100, 10, epsilon=1.0, delta=DELTA, groups=groups)
