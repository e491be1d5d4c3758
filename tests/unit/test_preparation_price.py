import math

import pandas as pd
import pytest

from configured import entry
from plots.kept_by_preparation import preparation_price as figure
from study.configuration.experiment import Experiment, data_path
from study.jobs.files import write_json
from tables.price_of_preparation import preparation_price


@pytest.fixture
def draws(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        write_json(data_path(name, "json"), {"class_counts": {"-1": 200, "1": 600}})
    losses = {
        ("a", "plain"): 0.4,
        ("a", "private"): 0.5,
        ("b", "plain"): 0.5,
        ("b", "private"): 0.6,
    }
    return pd.DataFrame(
        {"dataset": dataset, "method": method, "train_size": 100, "fold": fold, "replicate": fold,
         "epsilon": math.inf if method == "plain" else 1.0,
         "log_loss": loss + 0.01 * (fold - 0.5), "status": "ok"}
        for (dataset, method), loss in losses.items()
        for fold in (0, 1)
    )  # fmt: skip


# The log loss of the best constant if three of four labels are 1.
NOTHING = math.log(4) - 0.75 * math.log(3)


def test_shares_are_of_the_first_preparation(draws):
    spec = entry(options={"groups": {"g": ["a", "b"]}, "without": "plain"})
    columns, rows = preparation_price(None, spec, draws)
    first, second = (dict(zip(columns, row, strict=True)) for row in rows)
    whole = NOTHING - 0.4
    assert (first["can_keep"], first["price"]) == (1, 0)
    assert first["keeps"] == pytest.approx((NOTHING - 0.5) / whole)
    assert second["can_keep"] == pytest.approx((NOTHING - 0.5) / whole)
    assert second["keeps"] == pytest.approx((NOTHING - 0.6) / whole)
    assert second["price"] == pytest.approx(0.1 / whole)
    assert second["keeps_low"] < second["keeps"] < second["keeps_high"]


def test_the_figure_draws_the_numbers_of_the_table(draws):
    draws = pd.concat([draws, draws[draws["epsilon"] == 1].assign(epsilon=4.0)])
    options = {"groups": {"The title": ["b", "a"]}, "without": "plain", "ways": ["one", "two"]}
    methods = {
        name: {"mechanism": name, "private": name == "private"} for name in ("plain", "private")
    }
    experiment = Experiment("e", {"methods": methods, "folds": 2})
    fig = figure(experiment, entry(options=options), draws)
    (axes,) = fig.axes
    assert axes.get_title(loc="left") == "The title"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["one", "two"]
    _, rows = preparation_price(None, entry(options=options), draws)
    drawn = [line.get_xydata() for line in axes.lines if line.get_marker() in ("o", "s")]
    points = [xy[0] for xy in drawn if len(xy)]
    marks = sorted((x, round(y)) for x, y in points)
    assert marks == [
        (pytest.approx(100 * row[6]), options["groups"]["The title"].index(row[1]))
        for row in sorted(rows, key=lambda row: row[6])
    ]
    spans = [line.get_xdata() for line in axes.lines if line.get_marker() == "None"]
    lows = sorted(x[0] for x in spans if len(x) == 2 and x[0] != x[1])
    assert lows == pytest.approx(sorted(100 * row[7] for row in rows))
    options["ways"] = ["one"]
    with pytest.raises(ValueError, match="'The title' has not as many"):
        figure(experiment, entry(options=options), draws)
