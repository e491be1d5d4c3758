import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from study.jobs.files import write_csv
from study.jobs.summary import read_cell, summarise

COLUMNS = ("fold", "restart", "error", "excess_risk", "gradient_norm", "status")


def draws(error, status=None):
    error = np.asarray(error, dtype=float)
    folds, restarts = error.shape
    frame = pd.DataFrame(
        {
            "fold": np.repeat(np.arange(folds), restarts),
            "restart": np.tile(np.arange(restarts), folds),
            "error": error.ravel(),
            "excess_risk": error.ravel() / 10,
            "gradient_norm": np.linspace(1e-12, 1e-10, error.size),
        }
    )
    frame["status"] = "ok" if status is None else np.ravel(status)
    return frame


def test_by_hand():
    # The fold means are 0.2, 0.3 and 0.4: mean 0.3, sd 0.1, t(2; 0.975) = 4.302652730.
    summary = summarise(draws([[0.1, 0.3], [0.2, 0.4], [0.3, 0.5]]))
    assert summary["error_mean"] == pytest.approx(0.3)
    assert summary["error_sd_folds"] == pytest.approx(0.1)
    half = 4.302652729696142 * 0.1 / math.sqrt(3)
    assert summary["error_low"] == pytest.approx(0.3 - half)
    assert summary["error_high"] == pytest.approx(0.3 + half)
    # The squared deviations of all six draws are 0.04, 0, 0.01, 0.01, 0, 0.04.
    assert summary["error_sd"] == pytest.approx(math.sqrt(0.10 / 5))
    assert summary["excess_risk_mean"] == pytest.approx(0.03)
    assert summary["gradient_norm_max"] == pytest.approx(1e-10)
    assert (summary["folds"], summary["restarts"], summary["status"]) == (3, 2, "ok")


def test_against_scipy():
    error = np.random.default_rng(5).uniform(0.1, 0.4, size=(5, 40))
    summary = summarise(draws(error))
    means = error.mean(axis=1)
    low, high = stats.t.interval(0.95, len(means) - 1, loc=means.mean(), scale=stats.sem(means))
    assert (summary["error_low"], summary["error_high"]) == pytest.approx((low, high))
    assert summary["error_sd_folds"] == pytest.approx(stats.tstd(means))
    assert summary["error_sd"] == pytest.approx(stats.tstd(error.ravel()))


def test_the_interval_covers_the_mean_of_folds_as_often_as_it_says():
    rng = np.random.default_rng(6)
    trials, covered = 400, 0
    for _ in range(trials):
        # Folds differ far more than draws within a fold, which are not independent data.
        error = np.clip(0.3 + rng.normal(0, 0.05, (5, 1)) + rng.normal(0, 0.005, (5, 20)), 0, 1)
        summary = summarise(draws(error))
        covered += summary["error_low"] <= 0.3 <= summary["error_high"]
    low, high = stats.binom.interval(0.999, trials, 0.95)
    assert low <= covered <= high


def test_an_interval_stays_within_the_possible_errors():
    summary = summarise(draws([[0.0], [0.0], [0.2]]))
    assert summary["error_low"] == 0
    summary = summarise(draws([[1.0], [1.0], [0.8]]))
    assert summary["error_high"] == 1


def test_failed_draws_are_counted_and_enter_no_mean():
    error = [[0.1, math.nan], [0.2, 0.2], [0.3, math.nan]]
    status = [["ok", "not_converged"], ["ok", "ok"], ["ok", "not_finite"]]
    summary = summarise(draws(error, status))
    assert summary["error_mean"] == pytest.approx(0.2)
    assert summary["error_sd_folds"] == pytest.approx(0.1)
    assert summary["status"] == "1 of 6 not_converged, 1 of 6 not_finite"
    # A failed draw with a number still counts as failed.
    summary = summarise(draws([[0.1, 0.9], [0.2, 0.2], [0.3, 0.9]], status))
    assert summary["error_mean"] == pytest.approx(0.2)
    assert summary["error_sd"] == pytest.approx(np.std([0.1, 0.2, 0.2, 0.3], ddof=1))
    assert summary["excess_risk_mean"] == pytest.approx(0.02)


def test_a_fold_of_failures_leaves_fewer_replicates():
    error = [[0.1, 0.1], [math.nan] * 2, [0.3, 0.3]]
    status = [["ok"] * 2, ["not_converged"] * 2, ["ok"] * 2]
    summary = summarise(draws(error, status))
    low, high = stats.t.interval(0.95, 1, loc=0.2, scale=stats.sem([0.1, 0.3]))
    assert (summary["error_low"], summary["error_high"]) == (max(0, low), min(1, high))
    assert summary["status"] == "2 of 6 not_converged"


def test_nothing_is_made_up_where_all_failed_or_one_fold_is_left():
    summary = summarise(draws([[math.nan] * 2] * 2, [["failed"] * 2] * 2))
    for key in ("error_mean", "error_sd", "error_sd_folds", "error_low", "error_high"):
        assert math.isnan(summary[key]), key
    assert summary["status"] == "4 of 4 failed"
    summary = summarise(draws([[0.2, 0.2], [math.nan] * 2], [["ok"] * 2, ["failed"] * 2]))
    assert summary["error_mean"] == pytest.approx(0.2)
    assert all(math.isnan(summary[k]) for k in ("error_sd_folds", "error_low", "error_high"))


def test_one_draw_per_fold():
    summary = summarise(draws([[0.1], [0.2], [0.3], [0.4], [0.5]]))
    assert summary["restarts"] == 1
    assert summary["error_sd"] == pytest.approx(summary["error_sd_folds"])


def test_a_run_file_is_read_as_it_was_written(tmp_path):
    errors = np.random.default_rng(7).uniform(size=1000).round(9)
    rows = [(0, k, error, 1e-12, 1e-10, "ok") for k, error in enumerate(errors)]
    rows.append((0, 1000, math.nan, math.nan, math.nan, "not_finite"))
    write_csv(tmp_path / "eps=1.csv", COLUMNS, rows)
    frame = read_cell(tmp_path / "eps=1.csv")
    assert tuple(frame.columns) == COLUMNS
    assert frame["error"][:-1].tolist() == errors.tolist()
    assert frame["error"].isna().tolist() == [False] * 1000 + [True]
    assert frame["status"].tolist() == ["ok"] * 1000 + ["not_finite"]
    assert np.issubdtype(frame["fold"].dtype, np.integer)


def test_a_run_file_without_draws_is_refused(tmp_path):
    write_csv(tmp_path / "eps=1.csv", COLUMNS, [])
    with pytest.raises(ValueError, match="has no draws"):
        read_cell(tmp_path / "eps=1.csv")


def test_every_metric_has_its_mean_and_interval_within_its_range():
    values = np.random.default_rng(8).uniform(0.3, 0.9, size=(4, 6))
    frame = draws(values).assign(log_loss=3 * values.ravel(), auc=0.1 + values.ravel())
    summary = summarise(frame)
    for name, means in {"log_loss": 3 * values, "auc": 0.1 + values}.items():
        means = means.mean(axis=1)
        low, high = stats.t.interval(0.95, 3, loc=means.mean(), scale=stats.sem(means))
        assert summary[f"{name}_mean"] == pytest.approx(means.mean())
        assert summary[f"{name}_low"] == pytest.approx(low)
        assert summary[f"{name}_high"] == pytest.approx(min(1, high) if name == "auc" else high)
    assert all(math.isnan(summary[f"{name}_mean"]) for name in ("mse", "mae", "r2"))


def test_regression_has_no_error_and_r2_may_be_far_below_zero():
    frame = draws([[0.5, 0.7], [0.6, 0.8]]).rename(columns={"error": "r2"})
    frame["r2"] *= -100
    summary = summarise(frame)
    assert summary["r2_mean"] == pytest.approx(-65) and summary["r2_low"] < -100
    assert all(
        math.isnan(summary[f"error_{end}"]) for end in ("mean", "sd", "sd_folds", "low", "high")
    )
