"""The verdict rule and the implied epsilon, against cases worked out by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from checks.implied import crossing, falling, implied_epsilon
from checks.verdicts import Sample, prediction_interval, sd_of, verdict


def test_prediction_interval_by_hand():
    # five folds, sd 0.02: half width = t_{4, 0.975} * 0.02 * sqrt(2/5) = 2.7764451 * 0.0126491
    low, high = prediction_interval(Sample(0.30, 0.02, 5), 5)
    assert low == pytest.approx(0.30 - 0.0351196, abs=1e-6)
    assert high == pytest.approx(0.30 + 0.0351196, abs=1e-6)


def test_the_spread_behind_an_interval():
    low, high = stats.t.interval(0.95, 4, loc=0.3, scale=0.02 / math.sqrt(5))
    assert sd_of((high - low) / 2, 5) == pytest.approx(0.02)
    assert math.isnan(sd_of(math.nan, 5)) and math.isnan(sd_of(0.1, 1))


def test_prediction_interval_with_a_printed_sd_is_welchs():
    ours, theirs, k = Sample(0.30, 0.02, 5), 0.06, 8
    low, high = prediction_interval(ours, k, theirs)
    # Welch's two-sample test from scipy: at the interval's end its p-value is 5 %
    p = stats.ttest_ind_from_stats(0.30, 0.02, 5, high, 0.06, k, equal_var=False).pvalue
    assert p == pytest.approx(0.05, abs=1e-9)
    assert low + high == pytest.approx(0.60)


def test_prediction_interval_covers_a_new_run_as_often_as_it_says():
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.3, 0.05, (2, 4000, 5))
    inside = 0
    for mine, theirs in zip(first, second, strict=True):
        low, high = prediction_interval(Sample(mine.mean(), mine.std(ddof=1), 5), 5)
        inside += low <= theirs.mean() <= high
    assert inside / 4000 == pytest.approx(0.95, abs=4 * math.sqrt(0.05 * 0.95 / 4000))


def test_prediction_interval_stays_where_the_quantity_lives_and_needs_replicates():
    assert prediction_interval(Sample(0.01, 0.02, 5), 5, limits=(0, 1))[0] == 0
    assert prediction_interval(Sample(0.01, 0.02, 1), 5) is None
    assert prediction_interval(Sample(0.01, math.nan, 5), 5) is None
    assert prediction_interval(Sample(0.01, 0.0, 5), 5, 0.0) == (0.01, 0.01)


@pytest.mark.parametrize(
    ("published", "ours", "interval", "options", "expected"),
    [
        (0.30, 0.31, (0.29, 0.33), {}, "inside"),
        (0.30, 0.33, (0.32, 0.34), {}, "close"),  # 10 % of 0.30 is 0.03
        (0.30, 0.331, (0.32, 0.34), {}, "off"),
        (0.02, 0.03, (0.025, 0.035), {}, "close"),  # 0.01 absolute
        (0.02, 0.0301, (0.025, 0.035), {}, "off"),
        (0.02, 0.0301, None, {"absolute": 0.0}, "off"),
        (0.0, 0.0, None, {}, "inside"),
        (0.30, 0.31, (0.29, 0.33), {"calibrated": "lambda was chosen"}, "calibrated"),
        (0.30, 0.90, None, {"stand_in": "digits"}, "not tested"),
        (0.30, math.nan, None, {}, "not run"),
        (0.30, math.nan, None, {"calibrated": "lambda was chosen"}, "not run"),
    ],
)
def test_verdicts_by_hand(published, ours, interval, options, expected):
    assert verdict(published, ours, interval, **options)[0] == expected


def test_falling_agrees_with_isotonic_regression():
    from sklearn.isotonic import IsotonicRegression

    values = np.random.default_rng(2).normal(size=40) - np.arange(40) / 10
    expected = IsotonicRegression(increasing=False).fit_transform(np.arange(40), values)
    assert falling(values) == pytest.approx(expected)


def test_crossing_interpolates_in_log_epsilon():
    # halfway between 0.4 at 0.01 and 0.2 at 1: the geometric mean, 0.1
    assert crossing([0.01, 1], [0.4, 0.2], 0.3) == pytest.approx((0.1, 0.1))
    assert crossing([0.01, 1], [0.4, 0.2], 0.5) == (0, 0)
    assert crossing([0.01, 1], [0.4, 0.2], 0.1) == (math.inf, math.inf)
    assert crossing([0.01, 0.1, 1], [0.4, 0.4, 0.2], 0.4) == (0.01, 0.1)
    assert crossing([0.01, 0.1, 1], [0.4, 0.3, 0.2], 0.3) == (0.1, 0.1)


def test_implied_epsilon_of_a_known_curve():
    # error = 0.5 - 0.1 log10(1000 epsilon): 0.3 at epsilon = 0.1
    epsilons = np.array([0.001, 0.01, 0.1, 1.0])[::-1]  # in any order
    errors = 0.5 - 0.1 * np.log10(1000 * epsilons)
    found = implied_epsilon(epsilons, errors, errors - 0.05, errors + 0.05, 0.3)
    assert found.epsilon == pytest.approx(0.1)
    assert found.low == pytest.approx(10**-1.5)
    assert found.high == pytest.approx(10**-0.5)


def test_implied_epsilon_beyond_the_curve_and_with_nothing_to_go_on():
    curve = ([0.1, 1], [0.3, 0.2], [0.25, 0.15], [0.35, 0.25])
    assert implied_epsilon(*curve, 0.4).epsilon == 0
    assert implied_epsilon(*curve, 0.1).epsilon == math.inf
    at_the_end = implied_epsilon(*curve, 0.22)
    assert 0 < at_the_end.epsilon < 1 < at_the_end.high == math.inf
    assert implied_epsilon([0.1], [0.3], [0.2], [0.4], 0.3) is None
    nan = math.nan
    assert implied_epsilon([0.1, 1, 10], [0.3, nan, 0.1], [nan] * 3, [nan] * 3, 0.2).epsilon == (
        pytest.approx(1.0)
    )
