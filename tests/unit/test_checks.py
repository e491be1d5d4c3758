import math
from argparse import Namespace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from checks import cells, paired, privacy, statements
from checks.printed import printed
from checks.published import compare, judged
from checks.results import Missing, Results
from configured import entry
from dp import metrics
from sources.chaudhuri_monteleoni_2008 import checks as of_cm08
from sources.einarsson_2018 import checks as of_einarsson
from sources.hoseinpour_2023 import checks as of_hoseinpour
from sources.patton_linear import checks as of_patton
from sources.veldhuizen_2020 import checks as of_veldhuizen
from study import facts
from study.configuration.experiment import Experiment
from study.configuration.experiment_keys import Check, Comparison
from study.configuration.printed_values import expand

PRIVATE = {"private": True, "mechanism": "output_perturbation"}


def results(rows, **values):
    """`Results` from rows (dataset, method, n, epsilon, error, half-width of its interval)."""
    frame = pd.DataFrame(
        [
            {
                **dict(zip(("dataset", "method", "train_size", "epsilon"), row[:4], strict=True)),
                "error_mean": row[4],
                "error_low": row[4] - row[5],
                "error_high": row[4] + row[5],
                "error_sd_folds": row[5],
                "folds": 5,
                "status": "ok",
            }
            for row in rows
        ]
    )
    methods = {name: PRIVATE | {"private": math.isfinite(e)} for _, name, _, e, *_ in rows}
    sweeps = {"all": {"train_sizes": sorted({r[2] for r in rows}), "epsilons": [0.1, 1.0]}}
    datasets = sorted({row[0] for row in rows})
    whole = {"datasets": datasets, "methods": methods, "sweeps": sweeps, "analyses": {}} | values
    return Results(Experiment("made", whole), frame)


def verdicts_of(results, source, specs, stand_ins=None, readings=(), best=()):
    experiment = Experiment("made", results.experiment.values | {"published": specs})
    rows = compare(results, source, experiment.published, stand_ins or {})
    return list(judged(experiment, source, rows, readings, best))


PLACED = {
    **dict.fromkeys(("sweep", "datasets", "train_size", "epsilon")),
    **{"share": 1.0, "factor": 1.0, "per_dataset": True, "column": "error_mean"},
}

CURVES = results(
    [
        ("a", "good", 100, 0.1, 0.30, 0.01),
        ("a", "good", 100, 1.0, 0.10, 0.01),
        ("a", "bad", 100, 0.1, 0.45, 0.01),
        ("a", "bad", 100, 1.0, 0.08, 0.01),
        ("a", "plain", 100, math.inf, 0.05, 0.01),
    ]
)


def test_lower_than_counts_points():
    half = cells.lower_than(CURVES, lower="good", higher="bad", share=0.5)
    assert half.holds and half.number == 0.5
    assert "at 1 of 2 points" in half.decided_by
    # 0.10 +- 0.01 against 0.08 +- 0.01: the difference exceeds its interval's half-width of 0.014
    assert "0.1 against 0.08, difference 0.02 [0.005858, 0.03414] at n" in half.decided_by
    assert cells.lower_than(CURVES, lower="good", higher="bad").holds is False
    assert cells.lower_than(CURVES, lower="good", higher="bad", epsilon="smallest").holds
    # Methods without privacy are compared at every epsilon.
    assert "2 of 2" in cells.lower_than(CURVES, lower="plain", higher="bad").decided_by
    with pytest.raises(Missing):
        cells.lower_than(CURVES, lower="good", higher="bad", train_size=7)
    spread = {"lower": "good", "higher": "bad", "column": "error_sd_folds"}
    assert not cells.lower_than(CURVES, **spread).holds  # all standard deviations are 0.01
    assert "a, error sd folds: good is below 1.1 x bad at 2 of 2" in (
        cells.lower_than(CURVES, **spread, factor=1.1).decided_by
    )


def test_an_order_within_chance_is_open_unless_the_folds_agree(monkeypatch):
    made = results([("a", "one", 100, 1.0, 0.30, 0.05), ("a", "two", 100, 1.0, 0.31, 0.05)])
    assert cells.lower_than(made, lower="one", higher="two").holds is None
    assert cells.lower_than(made, lower="two", higher="one", share=0.0).holds
    folds = np.random.default_rng(1).normal(0.3, 0.05, (5, 1))
    shift = {"one": 0.0, "two": 0.01}
    noise = {"one": 0.0, "two": np.random.default_rng(2).normal(0, 0.001, (5, 1))}
    draws = {name: folds + shift[name] + noise[name] for name in shift}
    monkeypatch.setattr(made, "draws", lambda cell, column: draws[cell.method])
    outcome = cells.lower_than(made, lower="one", higher="two")
    assert outcome.holds  # the spread between folds cancels
    assert cells.lower_than(made, lower="two", higher="one").holds is False


def test_spreads_are_compared_fold_by_fold(monkeypatch):
    rows = [("a", "one", 100, 1.0, 0.3, 0.05), ("a", "two", 100, 1.0, 0.3, 0.05)]
    made = results(rows)
    made.frame = made.frame.assign(error_sd=[0.010, 0.011])
    rng = np.random.default_rng(5)
    draws = {name: rng.normal(0.3, sd, (1, 5, 40)) for name, sd in (("one", 0.01), ("two", 0.05))}
    monkeypatch.setattr(made, "draws", lambda cell, column: draws[cell.method])
    arguments = {"lower": "one", "higher": "two", "column": "error_sd"}
    assert cells.lower_than(made, **arguments).holds
    draws["two"] = rng.normal(0.3, 0.0101, (1, 5, 40))
    assert cells.lower_than(made, **arguments).holds is None  # within chance
    mean, low, high = paired.difference(made, *made.frame.to_dict("records"), "error_sd")
    sds = [draws[name][0].std(axis=1, ddof=1) for name in ("one", "two")]
    assert mean == pytest.approx((sds[0] - sds[1]).mean()) and low < mean < high


@pytest.mark.parametrize("shape", [(1, 24), (12, 8)])
@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_intervals_of_the_folds_spread_cover_its_difference(shape, law, monkeypatch):
    """About 95 % of 400 intervals cover the true difference; about 90 % with 24 folds and heavy tails."""
    rng, covered, widths = np.random.default_rng(11), 0, []
    made = results([("a", "one", 100, 1.0, 0.3, 0.05), ("a", "two", 100, 1.0, 0.3, 0.05)])
    made.frame = made.frame.assign(error_sd_folds=[0.03, 0.02])
    draws = {}
    monkeypatch.setattr(made, "draws", lambda cell, column: draws[cell.method])
    # Folds are shared, so the two methods' means share a component.
    sds = {"one": math.hypot(0.02, 0.03), "two": math.hypot(0.02, 0.01)}
    for _ in range(400):
        common = rng.normal(0.3, 0.02, shape)
        for name, sd in (("one", 0.03), ("two", 0.01)):
            own = getattr(rng, law)(0, sd if law == "normal" else sd / math.sqrt(2), shape)
            draws[name] = (common + own)[:, :, None]
        _, low, high = paired.difference(made, *made.frame.to_dict("records"), "error_sd_folds")
        covered += low < sds["one"] - sds["two"] < high
        widths.append(high - low)
    few = law == "laplace" and shape[1] == 24
    assert (0.86 if few else 0.915) <= covered / 400 <= 0.98
    assert np.mean(widths) < 0.03


def test_a_spread_within_chance_decides_nothing(monkeypatch):
    made = results([("a", "one", 100, 1.0, 0.3, 0.05), ("a", "two", 100, 1.0, 0.3, 0.05)])
    rng = np.random.default_rng(6)
    draws = {name: rng.normal(0.3, sd, (1, 72, 1)) for name, sd in (("one", 0.029), ("two", 0.03))}
    monkeypatch.setattr(made, "draws", lambda cell, column: draws[cell.method])
    arguments = {"lower": "one", "higher": "two", "column": "error_sd_folds"}
    assert cells.lower_than(made, **arguments).holds is None
    draws["two"] = rng.normal(0.3, 0.06, (1, 72, 1))
    assert cells.lower_than(made, **arguments).holds
    draws["two"] = draws["two"][:, :2]  # too few folds for an interval
    draws["one"] = draws["one"][:, :2]
    _, low, high = paired.difference(made, *made.frame.to_dict("records"), "error_sd_folds")
    assert low == high


def test_similar_is_a_test_of_equivalence():
    outcome = cells.similar(CURVES, method="good", other="bad", within=0.17)
    assert outcome.holds and outcome.number == pytest.approx(0.15)
    # the interval is +- 0.014
    assert cells.similar(CURVES, method="good", other="bad", within=0.155).holds is None
    assert cells.similar(CURVES, method="good", other="bad", within=0.1).holds is False


def test_a_difference_of_one_test_row_does_not_decide_a_threshold(monkeypatch):
    errors = (91 / 1991, 71 / 1991)  # 20 rows apart, where 19.9 are allowed
    made = results(
        [("a", name, 100, math.inf, e, 0.0) for name, e in zip("pq", errors, strict=True)]
    )
    monkeypatch.setattr(made, "data", lambda dataset: {"rows": 11791, "test_rows": 1991})
    apart = {"method": "p", "other": "q"}
    assert cells.similar(made, **apart, within=0.01).holds is None
    assert cells.similar(made, **apart, within=19.4 / 1991).holds is False
    assert cells.similar(made, **apart, within=20.6 / 1991).holds is True


def test_what_is_equal_by_construction_tests_nothing(monkeypatch):
    made = results([("a", name, 100, 1.0, 0.3, 0.02) for name in ("one", "two")])
    draws = np.random.default_rng(1).normal(0.3, 0.05, (5, 4))
    monkeypatch.setattr(made, "draws", lambda cell, column: draws)
    monkeypatch.setattr(made, "test_rows", lambda cell: 100)
    assert cells.similar(made, method="one", other="two", within=0.1).holds is None
    assert cells.lower_than(made, lower="one", higher="two").holds is None


def test_metrics_other_than_the_error_are_not_confined_to_0_and_1():
    made = results([("a", "good", 100, e, 0.5, 0.01) for e in (0.1, 1.0, 10.0)])
    r2 = pd.Series([-3.0, 0.2, 0.4])
    made.frame = made.frame.assign(
        error_mean=math.nan, r2_mean=r2, r2_low=r2 - 0.1, r2_high=r2 + 0.1
    )
    assert metrics.of(made.frame) == "r2" and metrics.of(CURVES.frame) == "error"
    below = cells.level(made, methods="good", epsilon=0.1, column="r2_mean", at_most=0)
    assert below.holds and below.decided_by.startswith("r2 -3 ")
    assert not cells.level(made, methods="good", epsilon=0.1, column="r2_mean", at_least=0).holds
    rising = cells.monotone(made, along="epsilon", metric="r2")
    assert rising.holds and "-3 to 0.4" in rising.decided_by
    with pytest.raises(Missing):
        cells.level(made, methods="good", epsilon=0.1)
    with pytest.raises(Missing, match="no column 'auc_mean'"):
        cells.level(made, methods="good", column="auc_mean")


def test_level_and_its_limits():
    assert cells.level(CURVES, methods="bad", epsilon=0.1, at_least=0.4).holds
    assert not cells.level(CURVES, methods="bad", at_least=0.4).holds
    assert cells.level(CURVES, methods="bad", at_least=0.4, share=0.5)[2:4] == (0.5, 0.5)
    farthest = CURVES.cells(methods="bad")["error_mean"].min()
    assert cells.level(CURVES, methods="bad", at_least=0.4)[2:4] == (farthest, 0.4)
    assert cells.level(CURVES, methods="bad", at_least=0.4, share=0.5).holds
    # the error is 0.45 +- 0.01
    for least, holds in ((0.43, True), (0.445, None), (0.455, None), (0.47, False)):
        actual = cells.level(CURVES, methods="bad", epsilon=0.1, at_least=least)
        assert actual.holds is holds
    half = cells.level(CURVES, methods="bad", at_least=0.445, share=0.5)
    assert half.holds is None and "0 of 2 cells inside, 1 within chance" in half.decided_by


def test_two_epsilons_are_equivalent_if_the_interval_says_so():
    two = {"first": 0.1, "second": 1.0}
    for within, holds in ((0.3, True), (0.2, None), (0.1, False)):  # 0.2 +- 0.014
        assert (
            of_einarsson.similar_epsilons(CURVES, method="good", within=within, **two).holds
            is holds
        )
    with pytest.raises(Missing):
        of_einarsson.similar_epsilons(CURVES, method="good", within=1, first=0.1, second=7.0)


def test_methods_of_two_experiments_are_compared_as_independent(monkeypatch):
    monkeypatch.setattr(CURVES, "other", lambda name: CURVES.frame, raising=False)
    arguments = {"experiment": "made", "as_prepared": None, "epsilon": 1.0}
    for method, other, other_epsilon, holds in (
        ("good", "bad", 0.1, True),  # errors 0.1 and 0.45
        ("good", "bad", 1.0, False),  # errors 0.1 and 0.08, a difference of 0.02 +- 0.014
        ("bad", "good", 0.1, True),
        ("good", "good", 1.0, None),
    ):
        actual = cells.lower_across(
            CURVES, method=method, other_method=other, other_epsilon=other_epsilon, **arguments
        )
        assert actual.holds is holds


def test_a_trend_is_the_slope_and_not_single_steps(monkeypatch):
    def curve(*errors):
        points = zip((0.1, 1.0, 10.0), errors, strict=True)
        return results([("a", "m", 100, epsilon, error, 0.02) for epsilon, error in points])

    # The slope in log10 epsilon is (last - first)/2, with an interval of +- 0.02 / sqrt(2).
    falls = cells.monotone(curve(0.4, 0.3, 0.2), along="epsilon")
    assert falls.holds and "(slope per factor of 10: [-0.1141, -0.08586])" in falls.decided_by
    assert cells.monotone(curve(0.4, 0.2, 0.25), along="epsilon").holds  # one step rises
    assert cells.monotone(curve(0.4, 0.4, 0.4), along="epsilon").holds is None
    assert cells.monotone(curve(0.2, 0.3, 0.4), along="epsilon").holds is False
    with pytest.raises(Missing):
        cells.monotone(curve(0.4, 0.3, 0.2), along="train_size")
    made = curve(0.31, 0.30, 0.29)
    assert cells.monotone(made, along="epsilon").holds is None
    folds = np.random.default_rng(4).normal(0, 0.1, (5, 1))
    at = {0.1: 0.31, 1.0: 0.30, 10.0: 0.29}
    tiny = np.random.default_rng(5).normal(0, 0.001, (5, 1))
    monkeypatch.setattr(made, "draws", lambda cell, _: folds + at[cell.epsilon] * (1 + tiny))
    assert cells.monotone(made, along="epsilon").holds


def test_combining_checks():
    yes, no, open_ = (
        statements.Outcome(holds, "x", n) for n, holds in enumerate((True, False, None))
    )
    assert statements.join([yes, yes]).holds is True
    assert statements.join([yes, open_]).holds is None
    # The joint outcome has the number of the check that decides it.
    said = "1 of 3 conditions fail: undecided: x; x; fails: x"
    assert statements.join([open_, yes, no])[:3] == (False, said, 1)
    assert statements.join([]).holds is None


def test_no_claim_fails_that_a_reading_leaves_open():
    failed = statements.Outcome(False, "as stated")
    said = {"reason": "r", "distance": ""}
    fails, leaves, agrees = (
        said | {"reading": name, "holds": holds}
        for name, holds in (("a", "no"), ("b", ""), ("c", "yes"))
    )
    for readings, verdict, count in (
        ([fails], "not reproduced by any of 2 readings", 2),
        ([fails, leaves], "undecided", None),
        ([leaves, agrees], "reproduced if c", 2),
    ):
        actual = statements._judged(failed, "claims", readings, False, ["c"])
        assert (actual["verdict"], actual.get("readings")) == (verdict, count)
    assert (
        "as read, b: r"
        in statements._judged(failed, "claims", [fails, leaves], False, ())["decided_by"]
    )
    refuted = statements._judged(failed, "claims", [fails, agrees], False, ["a"])
    assert refuted["verdict"] == "undecided"
    assert "agrees only under c, and of all single readings a is the best" in refuted["decided_by"]


def test_a_missing_result_decides_nothing():
    check = {"kind": "table", "analysis": "absent", "options": {"column": "x", "at_least": 0}}
    outcome = statements.run(CURVES, Check(**check))
    assert outcome.holds is None and "absent" in outcome.decided_by


def test_a_sweep_or_comparison_that_an_overlay_took_away_decides_nothing():
    lower = {"kind": "lower_than", "options": {"lower": "good", "higher": "bad", "sweep": "gone"}}
    outcome = statements.run(CURVES, Check(**lower))
    assert outcome.holds is None and outcome.decided_by == "this run has no sweep 'gone'"


def test_a_column_of_differences(monkeypatch):
    tables = {"gain": {0.1: 1.25, 5: 11}, "rows": {0.1: [40.25, 41.25], 5: [66.25, 77.25]}}
    monkeypatch.setattr(
        "study.facts.read", lambda key: facts.Source(key="m", short="M", tables=tables)
    )
    options = {"column": "tables/gain", "first": "tables/rows/{}/1", "second": "tables/rows/{}/0"}
    named = Namespace(experiment=Namespace(source="m"))
    actual = of_hoseinpour.printed_column(named, **options)
    assert (actual.holds, actual.number) == (True, 1.0)
    assert "in 1 of 2 rows" in actual.decided_by and "at 0.1 1.25" in actual.decided_by
    tables["gain"][0.1] = 1.0
    assert not of_hoseinpour.printed_column(named, **options).holds


def test_jacobian_refuses_a_wrong_expectation():
    assert privacy.jacobian(CURVES, cases=[[0.1, 1, 0.2989], [1, 0.01, 4.0242]]).holds
    assert not privacy.jacobian(CURVES, cases=[[0.1, 1, 0.25]]).holds
    assert not privacy.jacobian(CURVES, cases=[[0.1, 140, 0.1]]).holds  # private: no excess


def test_gaussian_excess_of_known_cases():
    assert privacy.gaussian_excess(CURVES, cases=[[15, 17.37], [150, 610.4]], delta=1e-5).holds
    assert not privacy.gaussian_excess(CURVES, cases=[[1, 1]], delta=1e-5).holds


def test_gaussian_noise_is_not_pure():
    """The privacy loss mu^2/2 + mu z exceeds epsilon if z > epsilon/mu - mu/2."""
    actual = of_patton.gaussian_loss_exceeds(CURVES, epsilons=[1], delta=1e-5, at_least=1e-7)
    mu = 1 / math.sqrt(2 * math.log(1.25e5))
    assert actual.holds and actual.number == pytest.approx(
        0.5 * math.erfc((1 / mu - mu / 2) / math.sqrt(2)), rel=1e-9
    )
    assert not of_patton.gaussian_loss_exceeds(
        CURVES, epsilons=[1], delta=1e-9, at_least=1e-7
    ).holds


def test_laplace_noise_of_a_standard_deviation_loses_more_than_epsilon():
    """Its scale is the standard deviation divided by sqrt(2)."""
    actual = privacy.laplace_deviation(CURVES, epsilons=[0.1, 1, 10], at_least=1.414)
    assert actual.holds and actual.number == pytest.approx(math.sqrt(2), rel=1e-9)
    assert "at a claimed epsilon of 10 the loss is 14.14" in actual.decided_by
    assert not privacy.laplace_deviation(CURVES, epsilons=[1], at_least=1.42).holds


def test_widths_of_intervals_along_sizes():
    def curve(epsilon, widths):
        return [("a", "m", 100 * k, epsilon, 0.3, w) for k, w in enumerate(widths, 1)]

    rising, falling = np.arange(1, 11) / 100, np.arange(10, 0, -1) / 100
    check = partial(of_einarsson.width_along_size, method="m", widens=[0.1], narrows=[1])
    assert check(results(curve(0.1, rising) + curve(1.0, falling))).holds is True
    assert check(results(curve(0.1, falling) + curve(1.0, falling))).holds is False
    mixed = [0.03, 0.01, 0.02, 0.03, 0.01, 0.02, 0.02, 0.03, 0.01, 0.02]
    assert check(results(curve(0.1, mixed) + curve(1.0, falling))).holds is None
    with pytest.raises(Missing):
        check(results(curve(0.1, rising[:3]) + curve(1.0, falling[:3])))


def test_methods_coincide_draw_by_draw(monkeypatch):
    other = {"good": 0.0}
    draws = np.linspace(0, 1, 6).reshape(1, 3, 2)
    monkeypatch.setattr(
        Results, "draws", lambda self, cell, column: draws + other.get(cell.method, 0.0)
    )
    assert of_einarsson.coincide(CURVES, method="good", other="bad").holds
    draws[0, 1, 0] = np.nan  # both methods failed here
    assert of_einarsson.coincide(CURVES, method="good", other="bad").holds
    other["good"] = np.where(np.arange(6).reshape(1, 3, 2) == 4, np.nan, 0.0)  # only "good" failed
    assert not of_einarsson.coincide(CURVES, method="good", other="bad").holds
    other["good"] = 1e-3
    assert not of_einarsson.coincide(CURVES, method="good", other="bad").holds
    # Means are not compared, so draws may fail, but not all of them.
    other["good"] = 0.0
    monkeypatch.setattr(CURVES, "frame", CURVES.frame.assign(status="3 of 6 diverged"))
    draws[0, :2] = np.nan
    assert of_einarsson.coincide(CURVES, method="good", other="bad").holds
    draws[:] = np.nan
    with pytest.raises(Missing, match="3 of 6 diverged"):
        of_einarsson.coincide(CURVES, method="good", other="bad")


def test_a_column_of_the_draws_is_compared_by_their_spread(monkeypatch):
    """Printed numbers may be compared with a quantity of each draw that results.csv lacks."""
    rng = np.random.default_rng(0)
    draws = 2 + 0.1 * rng.standard_normal((1, 48, 1))
    results = {"noise_variance": draws}
    monkeypatch.setattr(Results, "draws", lambda self, cell, column: results.get(column))
    source = facts.Source(key="s", short="S", tables={"t": [2.02, 3e-7]})
    spec = {"title": "t", "values": "tables/t", "layout": "number", "quantity": "value"}
    spec |= {"column": "noise_variance", "train_size": 100, "epsilon": 0.1, "decimals": 4}
    spec |= {"implied_epsilon": False, "protocol": {"folds": 48, "draws": 1}}
    spec["rows"] = [{"value": str(k), "dataset": "a", "method": "good"} for k in (0, 1)]
    near, far = compare(CURVES, source, {"t": Comparison(**spec)}, {})
    assert near["ours"] == pytest.approx(draws.mean())
    half = 1.96 * 0.1 * math.sqrt(2 / 48)
    assert near["prediction_high"] - near["prediction_low"] == pytest.approx(2 * half, rel=0.2)
    assert (near["distance"], far["distance"]) == ("inside", "off")
    assert (near["half"], far["half"]) == (0.5e-4, 0.5e-7)


SOURCE = facts.Source(
    key="made_2020",
    short="M20",
    tables={"t": {"row": {0.1: [0.30, 0.02], 1: [0.15, 0.02]}, "plain": [0.05, 0.01]}},
)
SPEC = {
    "title": "t",
    "values": "tables/t",
    "layout": "mean_sd",
    "quantity": "error",
    "train_size": 100,
    "implied_epsilon": True,
    "rows": [
        {"value": "row/{epsilon}", "dataset": "a", "method": "good", "epsilon": [0.1, 1.0]},
        {"value": "plain", "dataset": "a", "method": "plain"},
        {"value": "plain", "dataset": "b", "method": "plain"},
        {"value": "plain", "dataset": "a", "method": "good", "epsilon": 7.0},
    ],
}


def test_a_number_that_a_defect_is_about_is_judged_there_only():
    defects = [{"id": "d", "what": "w", "numbers": ["tables/t/plain/1"]}]
    source = facts.Source(key="made_2020", short="M20", tables=SOURCE.tables, defects=defects)
    rows = {row["id"]: row for row in verdicts_of(CURVES, source, {"t": SPEC})}
    assert (
        rows["t/2/sd"]["verdict"] == "judged as a defect" and "defect d" in rows["t/2/sd"]["reason"]
    )
    assert [rows[name]["counted"] for name in ("t/2", "t/2/sd", "t/0/sd")] == [
        *("result", "again", "other")
    ]


def test_no_number_fails_for_a_setting_that_the_source_does_not_state():
    first, *others = SPEC["rows"]
    for unlike, verdict in ((None, "not reproduced by any of 1 reading"), ("why", "not tested")):
        spec = SPEC | {"rows": [first | {"unlike": unlike} if unlike else first, *others]}
        rows = {row["id"]: row for row in verdicts_of(CURVES, SOURCE, {"t": spec})}
        assert rows["t/1"]["verdict"] == verdict  # 0.15 against 0.10
        assert rows["t/0"]["verdict"] == "reproduced"


@pytest.mark.parametrize(
    ("bound", "printed", "verdict"),
    [
        ("at_least", 0.2, "reproduced"),  # ours is 0.3, with an interval of 0.27 to 0.33
        ("at_least", 0.31, "undecided"),
        ("at_least", 0.4, "not reproduced by any of 1 reading"),
        ("at_most", 0.4, "reproduced"),
        ("at_most", 0.2, "not reproduced by any of 1 reading"),
    ],
)
def test_a_printed_bound_is_satisfied_by_more(bound, printed, verdict):
    source = facts.Source(key="m", short="M", tables={"t": {"row": {0.1: printed}}})
    rows = [SPEC["rows"][0] | {"epsilon": 0.1}]
    spec = SPEC | {"layout": "number", "bound": bound, "rows": rows}
    assert verdicts_of(CURVES, source, {"t": spec})[0]["verdict"] == verdict


def test_trivia_and_what_is_printed_again_do_not_count_as_results():
    spec = SPEC | {"rows": SPEC["rows"][:2]}
    for changes, counted in (
        ({}, "result"),
        ({"trivia": "it follows"}, "other"),
        ({"again": True}, "again"),
    ):
        assert verdicts_of(CURVES, SOURCE, {"t": spec | changes})[0]["counted"] == counted


def test_calibrated_numbers_print_their_residual():
    rows = verdicts_of(CURVES, SOURCE, {"t": SPEC | {"calibrated": "fitted"}})
    assert rows[0]["verdict"] == "calibrated"
    assert [
        row["reason"].partition("; fitted")[0] for row in rows if row["id"] in ("t/0", "t/1")
    ] == [*("residual +0", "residual -0.05")]


def test_published_values_beside_their_cells():
    rows = verdicts_of(CURVES, SOURCE, {"t": SPEC}, {"b": "digits stand in"})
    means = [row for row in rows if not row["id"].endswith("/sd")]
    assert [row["verdict"] for row in means] == [
        "reproduced",
        # The printed 0.15 stands for at least 0.145, which is outside 0.10 +- 0.0176. The printed
        # standard deviation of 0.02 does not widen the interval.
        "not reproduced by any of 1 reading",
        # The values agree, but the interval of +- 0.0176 also contains values 0.01 above or below the
        # printed one.
        "too wide to decide",
        "not tested",
        "not run",
    ]
    assert [row["distance"] for row in means[:2]] == ["equal to the printed precision", "off"]
    assert means[2]["distance"] == "equal to the printed precision" and means[2]["holds"] == ""
    assert means[0]["implied_epsilon"] == pytest.approx(0.1)
    assert means[1]["difference"] == pytest.approx(-0.05)
    assert "epsilon 7" in means[4]["reason"]
    spreads = [row for row in rows if row["id"].endswith("/sd")]
    assert [row["published"] for row in spreads[:3]] == [0.02, 0.02, 0.01]
    assert {row["verdict"] for row in spreads} == {"not tested", "not run"}


def test_a_value_of_a_private_method_is_given_that_of_the_model_without_noise():
    plain, private = SPEC["rows"][1], SPEC["rows"][0] | {"epsilon": 0.1}
    other = facts.Source(
        key="m", short="M", tables={"t": {"plain": [0.2, 0.1], "row": {0.1: [0.3, 0.1]}}}
    )
    # For the noiseless model, the source prints an error of 0.2, and ours is 0.05.
    for rows, at in (([plain, private], 1), ([private, plain], 0)):
        spec = {"t": SPEC | {"rows": rows}}
        actual = [r for r in verdicts_of(CURVES, other, spec) if not r["id"].endswith("/sd")]
        assert actual[at]["verdict"] == "undecided" and actual[at]["distance"] == ""
        assert "without noise this model is not the source's" in actual[at]["reason"]
        assert actual[1 - at]["verdict"] == "not reproduced by any of 1 reading"
        # If the noiseless model agrees under a reading, this reading decides the verdict.
        read = actual[at] | {"reading": "a", "concerned": "yes", "distance": "inside"}
        for holds, verdict in (
            ("yes", "reproduced if a"),
            ("no", "not reproduced by any of 1 reading"),
            ("", "too wide to decide"),
        ):
            readings = [read | {"holds": holds}]
            rows_ = verdicts_of(CURVES, other, spec, readings=readings, best=["a"])
            assert {row["id"]: row["verdict"] for row in rows_}[f"t/{at}"] == verdict
    # A noiseless model counts as the source's if the printed error is within one printed standard
    # deviation of ours.
    near = facts.Source(
        key="m", short="M", tables={"t": {"plain": [0.2, 0.16], "row": {0.1: [0.3, 0.1]}}}
    )
    actual = verdicts_of(CURVES, near, {"t": SPEC | {"rows": [plain, private]}})
    assert [row["verdict"] for row in actual[::2]] == [
        *("not reproduced by any of 1 reading", "reproduced"),
    ]
    # A noiseless model printed for other data is not compared.
    spec = {"t": SPEC | {"rows": [plain | {"dataset": "b"}, private]}}
    assert [r["verdict"] for r in verdicts_of(CURVES, other, spec)][2] == "reproduced"


def test_what_most_draws_failed_of_decides_nothing():
    failing = results(
        [(*row, 0.01) for row in (("a", "good", 9, 0.1, 0.2), ("a", "bad", 9, 0.1, 0.3))]
    )
    for status, decides in (
        ("ok", True),
        ("5 of 100 diverged", True),
        ("6 of 100 diverged", False),
        ("4 of 100 diverged, 2 of 100 not_converged", False),
        ("99 of 100 not_converged", False),
    ):
        failing.frame["status"] = [status, "ok"]
        check = {"kind": "lower_than", "options": {"lower": "good", "higher": "bad"}}
        check = Check(**check | {"options": PLACED | check["options"]})
        process = statements.run(failing, check)
        assert (process.holds, process.tested) == ((True, True) if decides else (None, False))
        assert decides or f"{status} (good at a, n = 9, epsilon = 0.1)" in process.decided_by
        spec = SPEC | {"layout": "number", "rows": [{**SPEC["rows"][1], "method": "good"}]}
        source = facts.Source(key="m", short="M", tables={"t": {"plain": 0.2}})
        spec = spec | {"train_size": 9, "epsilon": 0.1}
        (row,) = verdicts_of(failing, source, {"t": spec})
        assert (row["verdict"] == "not tested") is not decides
        assert decides or row["reason"].startswith(status)
    failing.frame.loc[0, ["status", "error_mean"]] = ["100 of 100 diverged", math.nan]
    assert not statements.run(failing, check).tested


def test_points_where_most_draws_failed_do_not_hide_what_the_others_decide():
    places = [("a", 9), ("a", 18), ("a", 27), ("b", 9)]
    good = [(d, "good", n, 0.1, 0.2, 0.01) for d, n in places]
    bad = [(d, "bad", n, 0.1, 0.3, 0.01) for d, n in places]
    failing = results(good + bad)
    failing.frame.loc[2, ["status", "error_mean"]] = ["48 of 48 diverged", math.nan]

    def outcome(lower, higher, **options):
        options |= {"lower": lower, "higher": higher}
        return statements.run(failing, Check(kind="lower_than", options=PLACED | options))

    enough = outcome("good", "bad", datasets="a", share=0.6)
    assert enough.holds and "at 2 of 3 points, 1 not comparable" in enough.decided_by
    assert not outcome("good", "bad", datasets="a", share=0.7).tested
    assert outcome("bad", "good", datasets="a", share=0.4).holds is False
    assert not outcome("bad", "good", datasets="a", share=0.3).tested
    # On all data sets together, 3 of 4 points decide; a data set of its own has none that does.
    assert outcome("good", "bad", share=0.75, per_dataset=False).holds
    assert outcome("bad", "good").holds is False
    failing.frame.loc[3, "status"] = "6 of 100 diverged"
    assert not outcome("good", "bad", share=0.5).tested
    assert not outcome("good", "bad", datasets="b").tested
    # Two points are within chance, so the claim is open whatever the incomparable point says.
    failing.frame.loc[[0, 1], ["error_mean", "error_low", "error_high"]] = [0.3, 0.29, 0.31]
    chance = outcome("good", "bad", datasets="a", share=0.5)
    assert chance.tested and chance.holds is None
    failing.frame.loc[[0, 1], ["error_mean", "error_low", "error_high"]] = [0.2, 0.19, 0.21]
    # The number is that of a data set with comparable points.
    fails = outcome("bad", "good", share=0.5)
    assert (
        fails.holds is False
        and fails.number == 0
        and "b: 1 points not comparable" in fails.decided_by
    )

    alike = {"method": "good", "other": "bad", "datasets": "a"}
    assert cells.similar(failing, **alike, within=0.01).holds is False
    with pytest.raises(Missing, match="48 of 48 diverged"):
        cells.similar(failing, **alike, within=0.2)


def test_half_a_row_of_those_counted_is_not_seen(monkeypatch):
    # 195 of 500 rows were wrong; every division tests each row once
    draws = np.full((4, 5, 1), 0.39)
    made = results([("a", "plain", 500, math.inf, 0.39, 0.0)], folds=5, subsets="whole")
    monkeypatch.setattr(made, "draws", lambda cell, column: draws, raising=False)
    spec = SPEC | {"layout": "number", "train_size": 500, "rows": SPEC["rows"][1:2]}
    for number, verdict in ((0.391, "reproduced"), (0.392, "not reproduced by any of 1 reading")):
        source = facts.Source(key="m", short="M", tables={"t": {"plain": number}})
        (row,) = verdicts_of(made, source, {"t": spec})
        assert row["verdict"] == verdict
        assert row["prediction_low"] == pytest.approx(0.389)


TUNE = {"grid": {"low": 0.1, "high": 1, "values": 25}, "folds": 5}


def test_a_setting_for_which_all_values_tie_is_not_excluded(monkeypatch):
    source = facts.Source(key="m", short="M", tables={"lambda": 0.01})
    spec = {"title": "t", "values": "tables", "layout": "number", "quantity": "setting"}
    spec |= {"implied_epsilon": False, "table": "tuning", "column": "best"}
    spec["rows"] = [{"value": "lambda", "dataset": "a"}]
    for ties, best, verdict in (
        (25, 0.01, "not excluded"),
        (3, 0.01, "reproduced"),
        (3, 0.1, "not reproduced by any of 1 reading"),
    ):
        made = results([("a", "good", 9, 0.1, 0.2, 0.01)], tune=TUNE)
        made.named = lambda *_, row=(ties, best): pd.DataFrame(
            {"dataset": ["a"], "ties": [row[0]], "best": [row[1]]}
        )
        (row,) = verdicts_of(made, source, {"t": spec})
        assert row["verdict"] == verdict and row["quantity"] == "setting"


def test_what_readings_give_decides_a_verdict():
    source = facts.Source(key="m", short="M", tables={"t": {"row": {0.1: [0.5, 0.9]}}})
    spec = {"t": SPEC | {"rows": [SPEC["rows"][0] | {"epsilon": 0.1}]}}
    made = {"id": "t/0", "concerned": "yes", "ours": "0.48", "prediction_low": "0.4"}
    made |= {
        "prediction_high": "0.6",
        "distance": "inside",
        "reading": "a",
        "holds": "yes",
        "reason": "b",
    }
    for readings, verdict, tried in (
        ([made], "reproduced if a", 2),
        ([made | {"distance": "off", "holds": "no"}], "not reproduced by any of 2 readings", 2),
        ([made | {"concerned": "no"}], "not reproduced by any of 1 reading", 1),
        ([made | {"id": "t/1"}], "not reproduced by any of 1 reading", 1),
    ):
        row = verdicts_of(CURVES, source, spec, readings=readings, best=["a"])[0]
        assert (row["verdict"], row["readings"]) == (verdict, tried)
        assert 0 < row["luck"] <= 1
        # The table also has the number of the reading that the verdict names, and why it agrees.
        read = [row.get(f"read_{key}") for key in ("ours", "low", "high")]
        holds = verdict == "reproduced if a"
        assert read == (["0.48", "0.4", "0.6"] if holds else [None] * 3)
        assert row["reason"].endswith("; as read, a: b") == holds


def test_a_protocols_draws_make_the_interval_and_judge_the_spread(monkeypatch):
    draws = np.random.default_rng(3).normal(0.3, 0.02, (5, 20))
    monkeypatch.setattr(CURVES, "draws", lambda cell, column: draws, raising=False)
    spec = SPEC | {
        "protocol": {"folds": 5, "draws": 1},
        "rows": [SPEC["rows"][0] | {"epsilon": 0.1}],
    }
    mean, spread = verdicts_of(CURVES, SOURCE, {"t": spec})
    assert mean["protocol"] == "5 folds; 1 draw on each"
    assert mean["prediction_high"] - mean["prediction_low"] < 0.06
    assert spread["quantity"] == "error, standard deviation over folds"
    assert spread["published"] == 0.02 and spread["distance"] == "equal to the printed precision"
    # The standard deviation of five numbers is so uncertain that the interval also contains half and
    # 1.5 times the printed one.
    assert spread["verdict"] == "too wide to decide"
    wide = facts.Source(key="m", short="M", tables={"t": {"row": {0.1: [0.5, 0.9]}}})
    mean, spread = compare(CURVES, wide, {"t": Comparison(**spec)}, {})
    assert mean["distance"] == spread["distance"] == "off"


def test_accuracies_are_compared_as_shares():
    spec = SPEC | {"quantity": "accuracy_percent", "layout": "number", "rows": SPEC["rows"][:1]}
    percent = facts.Source(key="m", short="M", tables={"t": {"row": {0.1: 70.0, 1: 95.0}}})
    rows = list(compare(CURVES, percent, {"t": Comparison(**spec)}, {}))
    assert rows[0]["published"] == 0.7 and rows[0]["ours"] == pytest.approx(0.7)
    assert rows[0]["ours_low"] == pytest.approx(0.69)
    assert rows[1]["difference"] == pytest.approx(-0.05)


def test_paths_of_published_values():
    paths = [item["path"] for item in expand(Comparison(**SPEC))]
    assert paths[:2] == ["tables/t/row/0.1", "tables/t/row/1"]
    assert SOURCE.look_up("tables/t/row/0.1/1") == 0.02
    with pytest.raises(KeyError, match=r"tables/t has no 'rows' \(it has: row, plain\)"):
        SOURCE.look_up("tables/t/rows")


def test_tables_of_published_numbers_are_checked(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n,x\n1,2\n3,4.5\n")
    assert facts.read_table(path) == {1.0: {"x": 2.0}, 3.0: {"x": 4.5}}
    for text, problem in (
        ("n,x\n1,two\n", "row 2"),
        ("n,x\n1,2\n1,3\n", "duplicate n 1"),
        ("n,n\n1,2\n", "repeats a name"),
        ("n,x\n1\n", "2 finite numbers"),
        ("n,x\n1,nan\n", "2 finite numbers"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=problem):
            facts.read_table(path)


def test_bounds_are_judged_at_every_delta(monkeypatch):
    def frame(*shares):
        return pd.DataFrame(
            [
                {"dataset": "a", "method": "m", "train_size": 10, "epsilon": 1.0, "bound": "b",
                 "delta": delta, "draws": 100, "share_within": share, "looseness": 7.0}
                for delta, share in zip((0.1, 0.01), shares, strict=True)
            ]
        )  # fmt: skip

    for shares, holds in (((0.95, 0.99), True), ((0.95, 0.98), False)):
        monkeypatch.setattr(CURVES, "analysis", lambda name, s=shares: frame(*s))
        outcome = cells.bound_holds(CURVES, analysis="risk", bound="b")
        assert outcome.holds is holds
        assert (outcome.number, outcome.threshold) == (shares[1], 0.99)
        assert "1 cells, 100 draws" in outcome.decided_by
        with pytest.raises(Missing):
            cells.bound_holds(CURVES, analysis="risk", bound="c")


def test_claims_on_stand_in_data_are_not_tested_but_their_numbers_are_given():
    values = {
        "claims": [{"id": "m-1", "says": "good is better"}],
        "defects": [{"id": "d-1", "what": "bad is bad"}],
        "tables": {},
    }
    made = facts.Source.model_validate({"key": "m", "short": "M"} | values)
    check = {"kind": "lower_than", "options": {"lower": "good", "higher": "bad", "epsilon": 0.1}}
    statement = {"checks": [check]}
    here = results(
        [("a", "good", 9, 0.1, 0.2, 0.01), ("a", "bad", 9, 0.1, 0.4, 0.01)],
        claims={"m-1": statement},
        defects={"d-1": statement},
    )
    (row,) = statements.decide(here, made, "claims", {"a": "digits stand in"})
    assert row["verdict"] == "not tested"
    assert row["decided_by"].startswith("digits stand in; here: reproduced: a: good is below bad")
    (row,) = statements.decide(here, made, "claims", {"other": "digits stand in"})
    assert row["verdict"] == "reproduced"
    (row,) = statements.decide(here, made, "defects", {"a": "digits stand in"})
    assert row["verdict"] == "not tested" and "here: shown: a: good" in row["decided_by"]
    (row,) = statements.decide(here, made, "defects", {"other": "digits stand in"})
    assert row["verdict"] == "shown"


def test_what_fails_after_a_search_among_fewer_values_is_not_tested():
    tables = {"t": {"row": {0.1: [0.5, 0.02]}}, "grid": [1, 0.1, 0.01], "votes": 6}
    stated = [{"id": "m-1", "says": "bad is better"}, {"id": "m-2", "says": "good is better"}]
    stated.append({"id": "m-3", "says": "so is a table of it"})
    made = facts.Source(key="m", short="M", claims=stated, defects=[], tables=tables)
    claims = {
        name: {"checks": [{"kind": "lower_than", "options": {"lower": lower, "higher": higher}}]}
        for name, lower, higher in (("m-1", "bad", "good"), ("m-2", "good", "bad"))
    }
    table = {"kind": "table", "table": "stops", "options": {"column": "error", "at_most": 0}}
    named = {"options": table["options"] | {"where": {"method": ["good"]}}}
    for about in ({}, named):
        for grid, counted, verdict in (
            ([1, 0.1], "search (lambda 2 of 3)", "not tested"),
            ([1, 5, 7], "search (lambda 1 of 3)", "not tested"),
            ([0.01, 5, 1.0, 0.1], "", "not reproduced by any of 1 reading"),
            ([0.01, 0.1, 1], "search (simulations 5 of 6)", "not tested"),
        ):
            search = {"method": "good", "folds": 2, "grid": {"lambda": grid}}
            search["published"] = {"lambda": "tables/grid"}
            if "simulations" in counted:
                search["published"]["simulations"] = "tables/votes"
                search["simulations"] = 5
            here = results(
                [("a", "good", 9, 0.1, 0.2, 0.01), ("a", "bad", 9, 0.1, 0.4, 0.01)],
                claims=claims | {"m-3": {"checks": [table | about]}},
                searches={"search": search},
                tables={"stops": entry(sweep="all")},
            )
            here.named = lambda *_: pd.DataFrame({"method": ["good"], "error": [0.2]})
            here.experiment.methods["good"].search = "search"
            fails, holds, of_table = statements.decide(here, made, "claims", {})
            for row in (fails, of_table):
                assert row["verdict"] == verdict
                assert counted in row["decided_by"]
                assert "not reproduced by any" in row["verdict"] + row["decided_by"]
            assert holds["verdict"] == "reproduced"
            spec = SPEC | {"train_size": 9, "rows": [SPEC["rows"][0] | {"epsilon": 0.1}]}
            value = verdicts_of(here, made, {"t": spec})[0]
            assert (value["verdict"], value["distance"]) == (verdict, "off")
            assert counted in value["reason"]
            value = verdicts_of(here, made, {"t": spec | {"unlike": "other data"}})[0]
            assert value["verdict"] == "not tested"
            assert value["reason"].startswith("other data; here: differs by 0.3")


def test_known_defects_of_privacy_are_found():
    jump = of_veldhuizen.l1_jump(CURVES, n=1000, lam=0.1)
    assert jump.holds and jump.number == pytest.approx(3.606, abs=5e-3)
    assert jump.threshold == pytest.approx(0.02)


def timed(**times):
    rows = [
        {"dataset": "d", "procedure": name, "draws": 1, "repeat": repeat, "seconds": seconds}
        for name, values in times.items()
        for repeat, seconds in enumerate(values)
    ]
    return Namespace(analysis=lambda name: pd.DataFrame(rows))


def test_least_times_are_compared_fit_by_fit_or_by_a_protocol_of_many():
    results = timed(gp=[3.0, 4.0, 9.0], fit=[2.0, 2.0, 2.0])
    slower = {"analysis": "t", "first": "gp", "second": "fit"}
    actual = cells.time_ratio(results, **slower, at_least=5)
    assert (actual.holds, actual.number, actual.threshold) == (False, 1.5, 5)
    # one repeat took 4.5 times as long
    assert cells.time_ratio(results, **slower, at_least=3).holds is None
    actual = cells.time_ratio(results, **slower, at_least=3, fits=200)
    assert (actual.holds, actual.number) == (True, 300.0)
    for first, second, number in (("gp", "fit", 1.5), ("fit", "gp", 1 / 1.5)):
        arguments = {"analysis": "t", "first": first, "second": second}
        close = cells.time_ratio(results, **arguments, at_least=0.625, at_most=1.6)
        assert (close.holds, close.number) == (True, pytest.approx(number))
        far = cells.time_ratio(results, **arguments, at_least=0.7, at_most=1.4)
        assert far.holds is False
    with pytest.raises(Missing, match="did not time other"):
        cells.time_ratio(results, analysis="t", first="gp", second="other", at_least=2)


def test_a_busy_machine_does_not_refute_a_claim_about_time():
    busy = timed(first=[3.0, 4.0, 9.0], second=[1.0, 4.0, 4.0])
    pair = {"analysis": "t", "first": "first", "second": "second"}
    outcome = cells.time_ratio(busy, **pair, at_least=0.5, at_most=2)
    assert outcome.holds is None  # in the second repeat, both took equally long
    assert "takes 3 times second on d (1 to 3 by repeat)" in outcome.decided_by


@pytest.mark.parametrize(
    ("options", "holds", "number", "threshold"),
    [
        ({"operator": ">=", "right": "tables/b", "factor": 2}, True, 2.0, 2),
        ({"operator": ">=", "right": "tables/b", "factor": 2.01}, False, 2.0, 2.01),
        ({"operator": "=", "right": "tables/b"}, False, 0.25, 0),
        ({"operator": "=", "right": "tables/b", "factor": 2}, True, 0.0, 0),
        ({"operator": "=", "right": 0.75, "within": 0.25}, True, 0.25, 0.25),
        ({"operator": "!=", "right": 0.75, "within": 0.25}, False, 0.25, 0.25),
        ({"operator": "!=", "right": 0.75, "within": 0.125}, True, 0.25, 0.125),
    ],
)
def test_printed_numbers_are_compared(options, holds, number, threshold, monkeypatch):
    tables = {"a": 0.5, "b": 0.25}
    monkeypatch.setattr(
        "study.facts.read", lambda key: facts.Source(key="m", short="M", tables=tables)
    )
    named = Namespace(experiment=Namespace(source="m"))
    actual = printed(named, left="tables/a", **options)
    assert (actual.holds, actual.number, actual.threshold) == (holds, number, threshold)


def test_a_spread_that_a_mean_does_not_allow(monkeypatch):
    monkeypatch.setattr(of_cm08, "numbers", lambda results, *paths: [float(p) for p in paths])
    # 0, 0, 0, 0 and 0.005 have mean 0.001 and standard deviation 0.001 sqrt(5)
    allowed = {"mean": "0.001", "half": 0.0, "count": 5}
    assert np.std([0, 0, 0, 0, 0.005], ddof=1) == pytest.approx(math.sqrt(5) * 0.001)
    assert not of_cm08.printed_spread(None, sd="0.00223", **allowed).holds
    assert of_cm08.printed_spread(None, sd="0.00224", **allowed).holds
    rounded = of_cm08.printed_spread(None, mean="0", sd="0.0016", half=0.001, count=5)
    assert not rounded.holds
