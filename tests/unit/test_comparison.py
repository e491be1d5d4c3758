import numpy as np
import pytest
from scipy.stats import rankdata, ttest_rel
from statsmodels.stats.multitest import multipletests

from dp import comparison


def test_one_sided_paired_test_is_scipys():
    rng = np.random.default_rng(1)
    for folds in (2, 5, 30):
        a, b = rng.normal(0.3, 1, folds), rng.normal(0, 1, folds)
        expected = ttest_rel(a, b, alternative="greater").pvalue
        assert comparison.greater(a - b) == pytest.approx(expected, rel=1e-9)


def test_equal_differences_decide_and_a_single_fold_does_not():
    assert comparison.greater([0.1] * 5) == 0 and comparison.greater([-0.1] * 5) == 1
    assert comparison.greater([0.0] * 5) == 1 and comparison.greater([3.0]) == 1


def test_holm_is_statsmodels():
    rng = np.random.default_rng(2)
    for count in (1, 2, 7):
        p = rng.uniform(0, 0.2, count)
        expected = multipletests(p, method="holm")[1]
        assert comparison.holm(p) == pytest.approx(expected)
    assert list(comparison.holm([0.01, 0.01, 0.9])) == pytest.approx([0.03, 0.03, 0.9])


def test_a_method_is_beaten_by_the_one_that_says_so():
    rng = np.random.default_rng(3)
    fold = rng.normal(0, 10, 6)  # common to all methods, larger than every difference
    means = np.array([0.0, 0.02, 1.0])
    losses = fold + means[:, None] + rng.normal(0, 0.1, (3, 6))
    p, by = comparison.beaten(losses)
    assert p[0] > 0.05 and p[1] > 0.05 and p[2] < 0.001 and by[2] in (0, 1)
    tests = [ttest_rel(losses[2], losses[k], alternative="greater").pvalue for k in (0, 1)]
    assert p[2] == pytest.approx(multipletests(tests, method="holm")[1].min())
    p, by = comparison.beaten(losses[:1])
    assert list(p) == [1.0] and list(by) == [-1]


def test_the_best_method_is_kept_in_the_set_as_often_as_promised():
    rng = np.random.default_rng(4)
    missed = 0
    for _ in range(800):
        p, _ = comparison.beaten(rng.normal(size=(7, 5)))
        missed += p[0] <= 0.05
    assert missed / 800 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 800)
    assert missed > 8


def test_rows_for_a_gain():
    sizes = np.array([100, 1000, 10000])
    assert comparison.rows_for(sizes, [0.0, 0.5, 1.0], 0.75) == pytest.approx(
        (1000 * 10**0.5, "interpolated")
    )
    assert comparison.rows_for(sizes, [0.8, 0.9, 1.0], 0.75) == (100, "at most")
    assert comparison.rows_for(sizes, [0.1, 0.2, 0.3], 0.75) == (10000, "more than")
    rows, what = comparison.rows_for(sizes, [0.5, 0.4, 1.0], 0.75)  # a fall counts as no change
    assert what == "interpolated" and rows == pytest.approx(1000 * 10**0.5)


def test_relative_ranks_are_scipys():
    losses = np.array([0.3, 0.1, 0.3, 0.9])
    expected = (rankdata(losses) - 1) / 3
    assert comparison.relative_ranks(losses) == pytest.approx(expected)
    assert list(comparison.relative_ranks([5.0])) == [0]
