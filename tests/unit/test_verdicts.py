import math

import numpy as np
import pytest
from scipy import stats

from checks.implied import crossing, implied_epsilon
from checks.prediction import Protocol, predict
from checks.verdicts import (
    CLOSE,
    EDGE,
    EQUAL,
    INSIDE,
    OFF,
    Sample,
    counted,
    covered,
    distance,
    joint,
    margin,
    power,
    prediction_interval,
    sd_of,
    times_needed,
    too_wide,
    with_readings,
)


def test_prediction_interval_by_hand():
    # Five folds with sd 0.02: half width = t_{4, 0.975} * 0.02 * sqrt(2/5) = 2.7764451 * 0.0126491.
    (low, high), _ = prediction_interval(Sample(0.30, 0.02, 5), 5)
    assert low == pytest.approx(0.30 - 0.0351196, abs=1e-6)
    assert high == pytest.approx(0.30 + 0.0351196, abs=1e-6)


def test_the_spread_behind_an_interval():
    low, high = stats.t.interval(0.95, 4, loc=0.3, scale=0.02 / math.sqrt(5))
    assert sd_of((high - low) / 2, 5) == pytest.approx(0.02)
    assert math.isnan(sd_of(math.nan, 5)) and math.isnan(sd_of(0.1, 1))


def test_prediction_interval_covers_a_new_run_as_often_as_it_says():
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.3, 0.05, (2, 4000, 5))
    inside = 0
    for mine, theirs in zip(first, second, strict=True):
        (low, high), _ = prediction_interval(Sample(mine.mean(), mine.std(ddof=1), 5), 5)
        inside += low <= theirs.mean() <= high
    assert inside / 4000 == pytest.approx(0.95, abs=4 * math.sqrt(0.05 * 0.95 / 4000))


def test_prediction_interval_stays_where_the_quantity_lives_and_needs_replicates():
    assert prediction_interval(Sample(0.01, 0.02, 5), 5, limits=(0, 1))[0][0] == 0
    assert prediction_interval(Sample(0.01, 0.02, 1), 5) == (None, 0)
    assert prediction_interval(Sample(0.01, math.nan, 5), 5) == (None, 0)
    assert prediction_interval(Sample(0.01, 0.0, 5), 5) == ((0.01, 0.01), 0)


def test_errors_of_an_intervals_ends_are_those_of_many_runs():
    runs = np.random.default_rng(1).normal(0.3, 0.05, (2000, 10))
    results = [prediction_interval(Sample(x.mean(), x.std(ddof=1), 10), 10) for x in runs]
    ends = np.array([interval for interval, _ in results])
    errors = [error for _, error in results]
    assert ends.std(axis=0) == pytest.approx(2 * [np.sqrt(np.mean(np.square(errors)))], rel=0.05)


@pytest.mark.parametrize(
    ("ours", "spreads", "protocol"),
    [
        ((1, 5, 20), (0.0, 0.05, 0.0), Protocol(5, 1)),  # only folds
        ((1, 5, 20), (0.0, 0.01, 0.05), Protocol(5, 1)),
        ((10, 5, 20), (0.02, 0.05, 0.05), Protocol(5, 1, shared=True)),  # divisions, and draws
        ((20, 5, 10), (0.02, 0.02, 0.02), Protocol(5, 200)),
    ],
)
def test_so_are_those_of_predictions_and_of_their_standard_deviations(ours, spreads, protocol):
    rng, actual = np.random.default_rng(2), []
    for _ in range(120):
        parts = (rng.normal(size=(*ours[: k + 1], *[1] * (2 - k))) for k in range(3))
        draws = 0.3 + sum(a * part for a, part in zip(spreads, parts, strict=True))
        actual.append(predict(draws, protocol, rng))
    ends, errors = (np.array([getattr(f, key) for f in actual]) for key in ("interval", "error"))
    assert ends.std(axis=0) == pytest.approx(2 * [np.sqrt(np.mean(errors**2))], rel=0.25)
    sds, errors = (np.array([getattr(f, key) for f in actual]) for key in ("sd", "sd_error"))
    assert sds.std() / sds.mean() == pytest.approx(np.sqrt(np.mean(errors**2)), rel=0.4)


def test_what_little_is_left_of_a_spread_is_known_badly():
    # Each fold has two draws, of sd 0.2, and folds are only 0.01 apart. Once the draws' noise is
    # subtracted, the folds' remaining spread is chance.
    rng, protocol = np.random.default_rng(2), Protocol(5, 1, shared=True)
    results = [
        predict(normal(rng, 50, 2, 0.01, 0.2).reshape(10, 5, 2), protocol, rng) for _ in range(60)
    ]
    sds, errors = (np.array([getattr(f, key) for f in results]) for key in ("sd", "sd_error"))
    assert sds.std() / sds.mean() > 0.3
    assert np.median(errors) > sds.std() / sds.mean()


def test_a_count_has_no_narrower_interval_than_a_row():
    # In every split, 195 of 500 rows (0.39) were wrong. 0.391 is half a row more.
    interval = counted((0.39, 0.39), 500, (0, 1))
    assert interval == pytest.approx((0.389, 0.391))
    assert distance(0.391, 0.39, interval, half=0.0005)[0] == INSIDE
    assert distance(0.392, 0.39, interval, half=0.0005)[0] == CLOSE  # 196 of 500 rows
    assert distance(0.391, 0.39, (0.39, 0.39), half=0.0005)[0] == CLOSE
    assert counted((0.0, 1.0), 10, (0, 1)) == (0.0, 1.0)
    assert counted(None, 10) is None and counted((0.1, 0.2), None) == (0.1, 0.2)


@pytest.mark.parametrize(
    ("published", "error", "options", "expected"),
    [
        (0.338, 0.005, {}, EDGE),  # 0.4 standard errors inside
        (0.342, 0.005, {}, EDGE),
        (0.338, 0.001, {}, INSIDE),
        (0.342, 0.001, {"absolute": 0.1}, CLOSE),
        (0.342, 0.001, {"half": 0.0005}, EDGE),  # the number may have been 0.3415
        (0.342, 0.0, {"half": 0.002}, INSIDE),
        (0.305, 0.04, {}, EDGE),  # with poorly known ends, every value is near an end
        (0.3, 0.04, {"half": 0.0005}, EQUAL),
        (0.262, 0.01, {"limits": (0.26, 1)}, INSIDE),  # no lower value is possible
    ],
)
def test_what_is_near_an_end_is_neither_inside_nor_outside(published, error, options, expected):
    actual = distance(published, 0.3, (0.26, 0.34), errors=(error, error), **options)
    assert actual[0] == expected


@pytest.mark.parametrize(
    ("published", "ours", "interval", "options", "expected"),
    [
        (0.097, 0.0972, None, {"half": 0.0005}, EQUAL),
        (0.097, 0.0976, None, {"half": 0.0005}, CLOSE),
        (0.30, 0.31, (0.29, 0.33), {}, INSIDE),
        (0.30, 0.33, (0.32, 0.34), {}, CLOSE),  # 10 % of 0.30 is 0.03
        (0.30, 0.331, (0.32, 0.34), {}, OFF),
        (0.02, 0.03, (0.025, 0.035), {}, CLOSE),  # 0.01 absolute
        (0.02, 0.0301, (0.025, 0.035), {}, OFF),
        (0.02, 0.0301, None, {"absolute": 0.0}, OFF),
        (0.0, 0.0, None, {}, EQUAL),
    ],
)
def test_distances_by_hand(published, ours, interval, options, expected):
    assert distance(published, ours, interval, **options)[0] == expected


@pytest.mark.parametrize(
    ("tried", "expected"),
    [
        ([("", "yes"), ("a", "no")], "reproduced"),
        ([("", "no"), ("a", "no"), ("b", "yes"), ("c", "yes")], "reproduced if b"),
        # Only readings that the source's other numbers refute agree.
        ([("", "no"), ("a", "yes"), ("b", "no")], "undecided"),
        ([("", "yes"), ("a", "no"), ("b", "no")], "undecided"),
        # The best reading does not concern it.
        ([("", "yes"), ("a", "no")], "reproduced"),
        ([("", "no"), ("a", "yes")], "undecided"),
        ([("", "yes"), ("b", "")], "reproduced"),
        ([("", "yes"), ("b", "yes")], "reproduced"),
        ([("a", "yes"), ("c", "yes")], "undecided"),
        ([("a", "yes"), ("b", "yes")], "reproduced if b"),
        ([("", "no"), ("a", "no")], "not reproduced by any of 2 readings"),
        ([("", "no")], "not reproduced by any of 1 reading"),
        # As stated, the claim is about another model, so only readings decide it.
        ([("b", "yes")], "reproduced if b"),
        ([("a", "yes")], "undecided"),
        ([("a", "no")], "not reproduced by any of 1 reading"),
        ([], "undecided"),
        # A claim open as stated stays open. A claim open only under a reading does not fail.
        ([("", ""), ("a", "yes")], "open"),
        ([("", "no"), ("a", "")], "open"),
        ([("", "no"), ("a", ""), ("b", "yes")], "reproduced if b"),
    ],
)
def test_the_best_single_reading_decides_what_readings_decide_differently(tried, expected):
    assert with_readings(tried, "open", ["b"]) == expected


def test_an_interval_decides_if_a_value_a_margin_away_would_fail():
    assert margin(0.857, 0.154, share=True) == 0.154
    assert margin(0.391, share=True) == pytest.approx(0.0391)
    # an accuracy has its error rate's margin
    assert margin(0.8, share=True) == pytest.approx(margin(0.2, share=True)) == pytest.approx(0.02)
    assert margin(0.03, share=True) == margin(0.958, share=True) == 0.01
    assert margin(-50.0) == pytest.approx(5.0) and margin(0.02) == pytest.approx(0.002)
    assert margin(0.02, spread=True) == 0.01
    # This project's interval of 0.303 to 0.444 is too wide to tell whether V20's 0.391 agrees.
    assert too_wide((0.303, 0.444), 0.0391)
    assert not too_wide((0.35, 0.42), 0.0391) and not too_wide((0.39, 0.41), 0.01)
    assert not too_wide(None, 0.0)


def test_luck_is_what_the_intervals_cover_together():
    # [0.1, 0.3] and [0.2, 0.4] overlap and cover 0.3 of the range. Parts outside the range do not
    # count.
    assert covered([(0.2, 0.4), (0.1, 0.3), (0.9, 2.0)], 0.0, 1.0) == pytest.approx(0.4)
    assert covered([], 0.0, 1.0) == 0
    assert math.isnan(covered([(0, 1)], 0.5, 0.5))


def normal(rng, folds, draws, of_folds, of_draws):
    return 0.3 + of_folds * rng.normal(size=(folds, 1)) + of_draws * rng.normal(size=(folds, draws))


@pytest.mark.parametrize(
    ("ours", "theirs", "spreads"),
    [
        ((5, 1), (5, 1), (0.05, 0.0)),
        ((5, 20), (5, 1), (0.01, 0.05)),
        ((5, 20), (1, 20), (0.05, 0.02)),
    ],
)
def test_predictions_cover_another_run_as_often_as_they_say(ours, theirs, spreads):
    rng, inside = np.random.default_rng(5), 0
    for _ in range(150):
        actual = predict(normal(rng, *ours, *spreads), Protocol(*theirs), rng).interval
        inside += actual[0] <= normal(rng, *theirs, *spreads).mean() <= actual[1]
    assert inside / 150 > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 150)


def test_a_prediction_without_draws_is_students():
    means = np.random.default_rng(6).normal(0.3, 0.02, (400, 1))
    actual = predict(means, Protocol(400, 1), np.random.default_rng(1)).interval
    (low, high), _ = prediction_interval(Sample(means.mean(), means.std(ddof=1), 400), 400)
    assert actual == pytest.approx((low, high), abs=2e-4)


def test_shared_draws_spread_a_mean_more_and_the_draws_sd_is_theirs():
    rng = np.random.default_rng(7)
    draws = normal(rng, 5, 400, 0.0, 0.1)
    alone = predict(draws, Protocol(5, 1), rng)
    shared = predict(draws, Protocol(5, 1, shared=True), rng)
    # If five folds share a draw, the interval is sqrt(5) times as wide.
    widths = [end[1] - end[0] for end in (alone.interval, shared.interval)]
    assert widths[1] / widths[0] == pytest.approx(math.sqrt(5), rel=0.1)
    assert predict(draws, Protocol(5, 200, sd="draws"), rng).sd == pytest.approx(0.1, rel=0.05)
    assert predict(draws, Protocol(5, 200), rng).sd == pytest.approx(0.1 / math.sqrt(200), rel=0.3)
    assert predict(draws[:1], Protocol(5, 1), rng) is None
    holes = draws.copy()
    holes[2, 3:] = math.nan
    assert predict(holes, Protocol(5, 1), rng).mean == pytest.approx(draws[:, :3].mean())


def test_crossing_interpolates_in_log_epsilon():
    # 0.3 is halfway between 0.4 and 0.2, so the crossing is at 0.1, the geometric mean of 0.01 and 1.
    assert crossing([0.01, 1], [0.4, 0.2], 0.3) == pytest.approx((0.1, 0.1))
    assert crossing([0.01, 1], [0.4, 0.2], 0.5) == (0, 0)
    assert crossing([0.01, 1], [0.4, 0.2], 0.1) == (math.inf, math.inf)
    assert crossing([0.01, 0.1, 1], [0.4, 0.4, 0.2], 0.4) == (0.01, 0.1)
    assert crossing([0.01, 0.1, 1], [0.4, 0.3, 0.2], 0.3) == (0.1, 0.1)


def test_implied_epsilon_of_a_known_curve():
    # With error = 0.5 - 0.1 log10(1000 epsilon), the error is 0.3 at epsilon = 0.1.
    epsilons = np.array([0.001, 0.01, 0.1, 1.0])[::-1]
    errors = 0.5 - 0.1 * np.log10(1000 * epsilons)
    actual = implied_epsilon(epsilons, errors, errors - 0.05, errors + 0.05, 0.3)
    assert actual.epsilon == pytest.approx(0.1)
    assert actual.low == pytest.approx(10**-1.5)
    assert actual.high == pytest.approx(10**-0.5)


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


@pytest.mark.parametrize("sets", [5, 40])
def test_power_is_the_share_of_true_numbers_that_are_called_reproduced(sets):
    """The printed number is another run's by the same protocol. 200 pairs of runs are compared."""
    rng, protocol = np.random.default_rng(8), Protocol(5, 20, data_drawn=True)

    def run(count):
        of_sets, of_folds = rng.normal(0, 0.01, (count, 1, 1)), rng.normal(0, 0.01, (count, 5, 1))
        return 0.3 + of_sets + of_folds + rng.normal(0, 0.02, (count, 5, 20))

    powers, called = [], 0
    for _ in range(200):
        ours, printed = predict(run(sets), protocol, rng), float(run(1).mean())
        known = {"interval": ours.interval, "error": ours.error, "own": ours.own}
        powers.append(power(**known, half=0.0005, margin=1.0, middle=ours.mean))
        errors = (ours.error, ours.error)
        found = distance(printed, ours.mean, ours.interval, half=0.0005, errors=errors)[0]
        called += found in (EQUAL, INSIDE)
    assert called / 200 == pytest.approx(np.mean(powers), abs=0.1)
    assert np.mean(powers) > 0.8 if sets == 40 else np.mean(powers) < 0.8


def test_more_replicates_are_asked_for_only_where_they_help():
    known = {"interval": (0.26, 0.34), "half": 0.0, "middle": 0.3}
    # Our own error is half of the interval's standard deviation, 0.0204, and the ends' error 0.012.
    enough = times_needed(**known, error=0.012, own=0.0102, margin=0.04)
    assert 1 < enough < 100 and power(**known, error=0.012, own=0.0102, margin=0.04) < 0.8
    assert power(**known, error=0.012, own=0.0102, margin=0.04, more=enough) >= 0.8
    # The source's own run varies too much for its number to disagree with anything.
    assert times_needed(**known, error=0.012, own=0.0102, margin=0.03) == math.inf
    assert times_needed(**known, error=0.0, own=0.0, margin=0.04) == 1.0
    assert power((0.3, 0.3), error=0.0, own=0.0, half=0.0, margin=0.01, middle=0.3) == 1.0
    # An end at the quantity's limit is no end.
    at_limit = {"interval": (0.0, 0.02), "error": 0.0, "own": 0.0, "half": 0.0, "middle": 0.005}
    assert power(**at_limit, margin=0.1, limits=(0, 1)) == pytest.approx(0.975)


@pytest.mark.parametrize("draw", ["standard_normal", "standard_exponential"])
def test_of_a_table_of_true_numbers_hardly_ever_one_is_outside(draw):
    """300 tables of 20 numbers, each over 48 simulations of the source, from 12 of ours."""
    rng, tables, outside, alone = np.random.default_rng(4), 300, 0, 0
    for _ in range(tables):
        values, printed = getattr(rng, draw)((20, 12)), getattr(rng, draw)((20, 48)).mean(axis=1)
        found, single = [], []
        for number, own in zip(printed, values, strict=True):
            ours = Sample(own.mean(), own.std(ddof=1), 12)
            ends, error = prediction_interval(ours, 48)
            known = {"absolute": 0.0, "errors": (error, error)}
            found.append(distance(number, ours.mean, ends, **known, wider=joint(12, 20))[0])
            single.append(distance(number, ours.mean, ends, **known)[0])
        outside += not {CLOSE, OFF}.isdisjoint(found)
        alone += not {CLOSE, OFF}.isdisjoint(single)
    # Values as skewed as these break Student's t. The joint interval then fails in 13 % of tables, not 5 %.
    assert outside / tables < (0.02 if draw == "standard_normal" else 0.16)
    assert alone / tables > (0.02 if draw == "standard_normal" else 0.25)


def test_a_number_far_off_is_outside_however_many_its_table_has():
    interval, errors = (0.26, 0.34), (0.005, 0.005)
    assert joint(12, 1) == 1.0 and joint(12, 100) > joint(48, 100) > 1.8
    for wider, published, expected in (
        *((1.0, 0.35, OFF), (2.0, 0.35, EDGE), (2.0, 0.385, EDGE), (2.0, 0.395, OFF)),
        *((2.0, 0.215, EDGE), (2.0, 0.205, OFF), (2.0, 0.31, INSIDE)),
    ):
        known = {"errors": errors, "absolute": 0.0, "wider": wider}
        actual = distance(published, 0.3, interval, **known)[0]
        assert (OFF if actual == CLOSE else actual) == expected, published
    assert distance(0.1, 0.3, (0.0, 0.34), errors=errors, limits=(0, 1), wider=2.0)[0] == INSIDE
