import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, ttest_1samp

from configured import entry
from plots.excess import excess
from study.configuration.experiment import Experiment
from study.jobs import paired
from tables.untuned import untuned_cells, untuned_count

FOLDS, DRAWS = 4, 3


def draws(levels, seed=3, failed=()):
    """Draws of methods whose log loss is a level plus a large term for the fold.

    levels: the level by (dataset, method, epsilon). failed: cells with one failed draw.
    """
    rng = np.random.default_rng(seed)
    of_fold = {}
    rows = []
    for (dataset, method, epsilon), level in levels.items():
        for fold in range(FOLDS):
            own = of_fold.setdefault((dataset, fold), rng.normal(scale=5))
            for draw in range(DRAWS):
                bad = (dataset, method, epsilon) in failed and draw == 1
                value = 1e9 if bad else own + level + rng.normal(scale=0.01)
                rows.append(
                    (dataset, 100, epsilon, method, fold, value, "diverged" if bad else "ok")
                )
    names = ["dataset", "train_size", "epsilon", "method", "fold", "log_loss", "status"]
    return pd.DataFrame(rows, columns=names)


def test_differences_are_those_of_the_same_fold():
    frame = draws({("a", "m", 1.0): 0.3, ("a", "other", 1.0): 0.1, ("b", "m", 1.0): 0.0})
    actual = paired.differences(paired.fold_means(frame, "log_loss"), "other")
    assert len(actual) == 1  # data set b has no row
    means = frame[frame["dataset"] == "a"].groupby(["method", "fold"])["log_loss"].mean()
    expected = (means["m"] - means["other"]).to_numpy()
    row = actual.iloc[0]
    interval = ttest_1samp(expected, 0).confidence_interval()
    assert row["mean"] == pytest.approx(expected.mean()) and row["folds"] == FOLDS
    assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
    assert row["high"] - row["low"] < 0.1


def test_a_method_without_privacy_is_compared_at_every_epsilon_and_failures_enter_nothing():
    frame = draws(
        {("a", "m", 0.5): 0.3, ("a", "m", 2.0): 0.2, ("a", "plain", math.inf): 0.0},
        failed=[("a", "m", 2.0)],
    )
    actual = paired.differences(paired.fold_means(frame, "log_loss"), "plain")
    assert list(actual["epsilon"]) == [0.5, 2.0]
    assert actual["mean"].to_numpy() == pytest.approx([0.3, 0.2], abs=0.05)


LEVELS = {  # as epsilon grows, `rule` is better than x and y, equal to x, worse than x, and again better
    **{("a", "rule", e): v for e, v in ((1.0, 0.0), (2.0, 0.0), (4.0, 0.5), (8.0, 0.0))},
    **{("a", "x", e): v for e, v in ((1.0, 1.0), (2.0, 0.0), (4.0, 0.1), (8.0, 1.0))},
    **{("a", "y", e): v for e, v in ((1.0, 1.0), (2.0, 1.0), (4.0, 1.0), (8.0, 1.0))},
}
SPEC = entry(options={"method": "rule", "metric": "log_loss"})


def test_the_count_is_of_cells_in_which_no_other_is_better():
    columns, rows = untuned_count(None, SPEC, draws(LEVELS))
    results = {row[0]: dict(zip(columns, row, strict=True)) for row in rows}
    counts = {
        name: [row["better"], row["within_noise"], row["worse"]] for name, row in results.items()
    }
    assert counts == {"x": [2, 1, 1], "y": [4, 0, 0], "every other": [2, 1, 1]}
    exact = binomtest(3, 4).proportion_ci(method="exact")
    every = results["every other"]
    assert (every["share_low"], every["share_high"]) == pytest.approx((exact.low, exact.high))
    assert every["share_not_worse"] == 0.75 and results["y"]["share_high"] == 1
    exact = binomtest(4, 4).proportion_ci(method="exact")
    assert results["y"]["share_low"] == pytest.approx(exact.low)


def test_cells_say_by_how_much():
    columns, rows = untuned_cells(None, SPEC, draws(LEVELS))
    results = [dict(zip(columns, row, strict=True)) for row in rows]
    assert len(results) == 8
    for row in results:
        own, other = (LEVELS["a", m, float(row["epsilon"])] for m in ("rule", row["other"]))
        assert row["difference"] == pytest.approx(own - other, abs=0.05)
        assert row["verdict"] == (
            "better" if own < other else "worse" if own > other else "within noise"
        )


def test_a_method_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="must name a method of the sweep, not 'none'"):
        untuned_count(None, entry(options={"method": "none", "metric": "log_loss"}), draws(LEVELS))


def test_the_figure_draws_the_excess_within_its_range():
    levels = {("a", "plain", math.inf): 0.0, ("b", "plain", math.inf): 0.0}
    values = {0.1: 50.0, 1.0: 0.2, 4.0: -0.2}
    levels |= {(name, "m", e): value for name in "ab" for e, value in values.items()}
    methods = {"plain": {"mechanism": "nonprivate"}, "m": {"mechanism": "dp_gd"}}
    options = {"along": "epsilon", "metric": "log_loss", "baseline": "plain"}
    experiment = Experiment("e", {"methods": methods})
    fig = excess(experiment, entry(options=options), draws(levels))
    assert [axes.get_title(loc="left") for axes in fig.axes] == ["a", "b"]
    drawn = fig.axes[0].lines[0].get_xydata()
    assert drawn[:, 0] == pytest.approx([0.1, 1, 4])
    low, high = fig.axes[0].get_ylim()
    assert low == 1e-4 and drawn[0, 1] > high >= 1 and drawn[2, 1] < low
    arrows = {line.get_marker(): line.get_xydata().tolist() for line in fig.axes[0].lines}
    assert arrows[r"$\uparrow$"] == [[0.1, high]] and arrows[r"$\downarrow$"] == [[4, low]]
    assert drawn[1, 1] == pytest.approx(0.2, abs=0.05)
    options |= {"along": "rows"}
    with pytest.raises(ValueError, match="'along' must be one of epsilon, train_size, columns"):
        excess(experiment, entry(options=options), draws(levels))
