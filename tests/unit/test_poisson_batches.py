import math

import numpy as np
import pytest
from scipy.stats import binom, chi2_contingency, chisquare

from dp.descents import full_batch, poisson
from dp.seeds import generator


def members(n, draws, sampling, rng):
    """Which rows are in each draw's batch, (draws, n)."""
    result = np.zeros((draws, n), dtype=bool)
    for part, rows, edges in poisson.batches(n, draws, sampling, rng):
        assert edges[0] == 0 and edges[-1] == len(rows)
        draw = part.start + np.repeat(np.arange(part.stop - part.start), np.diff(edges))
        assert (np.diff(n * draw + rows) > 0).all()
        result[draw, rows] = True
    return result


@pytest.mark.parametrize("sampling", [0.03, 0.3, 0.5, 0.9])
def test_every_set_of_rows_has_its_probability(sampling):
    n, draws = 4, 100_000
    actual = members(n, draws, sampling, generator(1, "sets", str(sampling)))
    counts = np.bincount(actual @ (1 << np.arange(n)), minlength=1 << n)
    sizes = np.array([k.bit_count() for k in range(1 << n)])
    expected = draws * sampling**sizes * (1 - sampling) ** (n - sizes)
    common = expected >= 5
    counts = np.append(counts[common], counts[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    assert chisquare(counts[expected > 0], expected[expected > 0]).pvalue > 1e-3


@pytest.mark.parametrize(("n", "sampling"), [(1, 0.4), (300, 0.05), (5000, 0.0004)])
def test_sizes_are_binomial_and_rows_alike(n, sampling):
    draws = 40_000 if n < 1000 else 20_000
    actual = members(n, draws, sampling, generator(2, "sizes", n))
    sizes = np.arange(n + 1)
    expected = draws * binom.pmf(sizes, n, sampling)
    common = expected >= 5
    counts = np.bincount(actual.sum(axis=1), minlength=n + 1)
    counts = np.append(counts[common], counts[~common].sum())
    expected = np.append(expected[common], max(0.0, draws - expected[common].sum()))
    some = expected > 1e-6
    assert (
        chisquare(counts[some], expected[some] * counts[some].sum() / expected[some].sum()).pvalue
        > 1e-3
    )
    if n > 1:  # All 20 groups of adjacent rows are equally frequent.
        each = actual.sum(axis=0).reshape(20, -1).sum(axis=1)
        assert chisquare(each).pvalue > 1e-3


def test_rows_draws_and_steps_are_independent():
    """All draws share one sequence of trials, so one draw's end could affect the next one's start."""
    n, draws, sampling, rng = 5, 100_000, 0.4, generator(3)
    first, second = members(n, draws, sampling, rng), members(n, draws, sampling, rng)
    pairs = {
        "neighbours in a batch": (first[:, 1], first[:, 2]),
        "a row in the next step": (first[:, 2], second[:, 2]),
        "another row in the next step": (first[:, 4], second[:, 0]),
        "the same row of the next draw": (first[:-1, 3], first[1:, 3]),
        "last row, and the next draw's first": (first[:-1, -1], first[1:, 0]),
        "sizes of steps": (first.sum(axis=1) > 1, second.sum(axis=1) > 1),
        "sizes of draws": (first[:-1].sum(axis=1) > 1, first[1:].sum(axis=1) > 1),
    }
    for what, (a, b) in pairs.items():
        table = [[np.sum(a & b), np.sum(a & ~b)], [np.sum(~a & b), np.sum(~a & ~b)]]
        assert chi2_contingency(table).pvalue > 1e-4, what


@pytest.mark.parametrize("n", [1, 7])
def test_no_rows_and_all_rows(n):
    assert not members(n, 3, 0.0, generator(4)).any()
    assert not members(n, 3, 1e-300, generator(4)).any()
    assert not members(n, 3, 5e-324, generator(4)).any()
    assert members(n, 3, 1.0, generator(4)).all()
    almost = np.nextafter(1.0, 0.0)
    assert members(n, 3, almost, generator(4)).all()
    assert len(poisson.successes(0, 0.5, generator(4))) == 0


class Short(np.random.Generator):
    """A generator whose exponential numbers are 0, so every trial succeeds."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))
        self.sizes = []

    def standard_exponential(self, size):
        self.sizes.append(size)
        return np.zeros(size)


def test_more_gaps_are_drawn_until_the_last_trial_is_passed():
    rng = Short()
    assert poisson.successes(1000, 0.1, rng).tolist() == list(range(1000))
    assert len(rng.sizes) > 3


def test_the_work_is_in_proportion_to_the_batch():
    """With 10^9 rows, one number per row would take gigabytes and seconds."""

    class Counting(Short):
        def standard_exponential(self, size):
            self.sizes.append(size)
            return super(Short, self).standard_exponential(size)

    n, sampling, rng = 10**9, 1e-6, Counting()
    [(_, rows, edges)] = poisson.batches(n, 3, sampling, rng)
    sizes = np.diff(edges)
    assert (np.abs(sizes - 1000) < 6 * math.sqrt(1000)).all() and rows.max() < n
    assert sum(rng.sizes) < 3000 + 6 * math.sqrt(3000) + 100


@pytest.mark.parametrize("loss", ["logistic", "huber_residual", "softmax"])
@pytest.mark.parametrize("clip", [None, 0.3])
def test_the_gradient_is_the_sum_over_the_batch(monkeypatch, loss, clip):
    """With the patched limits, a batch spans several blocks, and few draws' batches are made at a time."""
    monkeypatch.setattr(full_batch, "GATHERED", 1)
    monkeypatch.setattr(full_batch, "LEAST_ROWS", 7)
    monkeypatch.setattr(poisson, "INDICES", 40)
    n, d, draws, sampling, rng = 60, 3, 9, 0.2, generator(5)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = {"logistic": None, "softmax": rng.integers(3, size=n)}.get(loss, rng.uniform(-1, 1, n))
    W = rng.standard_normal((draws, d, 3 if loss == "softmax" else 1))
    actual = full_batch.sampled_gradient(X, y, W, loss, clip, sampling, generator(6))
    chosen = members(n, draws, sampling, generator(6))
    assert len(set(chosen.sum(axis=1))) > 3
    for k in range(draws):
        total = np.zeros(W.shape[1:])
        for i in np.flatnonzero(chosen[k]):
            label = None if y is None else y[i : i + 1]
            gradient = full_batch.mean_gradient(X[i : i + 1], label, W[k : k + 1], loss)[1][0]
            if clip is not None:
                gradient = gradient * min(1.0, clip / np.linalg.norm(gradient))
            total += gradient
        np.testing.assert_allclose(actual[k], total / (sampling * n), rtol=1e-9, atol=1e-15)


def test_scores_that_are_no_numbers_leave_a_record_s_share_bounded():
    X, W = np.array([[1e200, 1e200], [1.0, 0.0]]), np.array([[[1e200], [-1e200]]])
    with np.errstate(over="ignore", invalid="ignore"):
        actual = full_batch.sampled_gradient(X, None, W, "logistic", 1.0, 1.0, generator(7))
    assert np.isfinite(actual).all() and np.linalg.norm(actual) <= 1.0
