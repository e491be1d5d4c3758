from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from configured import entry
from plots.price_of_tuning import price_of_tuning as figure
from tables.tuned_values import price_of_tuning as table

LOSSES = {"plain": 0.4, "rule": 0.5, "selected": 0.55, "other_rule": 0.6}
OPTIONS = {
    "panels": {"one": ["rule", "selected"], "two": ["other_rule", "other_selected"]},
    "metric": "log_loss",
    "baseline": "plain",
    "ways": ["by rule", "selected"],
}


@pytest.fixture
def draws():
    rng, rows = np.random.default_rng(1), []
    for method, loss in LOSSES.items():
        for epsilon in [np.inf] if method == "plain" else [0.5, 2.0]:
            for fold in range(4):
                noise = 0.1 * fold + 0.01 * rng.standard_normal(3)
                rows += [(method, epsilon, fold, loss + each) for each in noise]
    frame = pd.DataFrame(rows, columns=["method", "epsilon", "fold", "log_loss"])
    return frame.assign(dataset="d", train_size=10, status="ok")


def test_differences_are_paired_by_fold(draws):
    columns, rows = table(None, entry(options=OPTIONS), draws)
    actual = pd.DataFrame(rows, columns=columns)
    assert set(actual["mechanism"]) == {"one"}  # panel two has one setting, so no difference
    assert list(actual["settings"]) == ["by rule", "selected"] * 2
    means = draws.groupby(["epsilon", "method", "fold"])["log_loss"].mean()
    by_fold = means.loc[2.0, "selected"] - means.loc[2.0, "rule"]
    row = actual.iloc[3]
    assert row["mean"] == pytest.approx(means.loc[2.0, "selected"].mean())
    assert row["over_rule"] == pytest.approx(by_fold.mean())
    half = t.ppf(0.975, 3) * by_fold.std(ddof=1) / 2
    assert row["over_rule_high"] - row["over_rule"] == pytest.approx(half)
    assert half < 0.03  # differences between folds do not widen the interval
    assert list(actual["over_rule"][::2]) == ["", ""]


def test_a_panel_per_mechanism_with_several_ways(draws):
    fig = figure(SimpleNamespace(methods={}), entry(options=OPTIONS), draws)
    assert len(fig.axes) == 1
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["by rule", "selected"]
