"""The table of preparations has the right shares and price, worked out by hand."""

import math

import pandas as pd
import pytest

from tables.preparation import preparation_price


def test_shares_are_of_the_first_preparation():
    losses = {
        ("a", "plain"): 0.4,
        ("a", "private"): 0.5,
        ("b", "plain"): 0.5,
        ("b", "private"): 0.6,
    }
    draws = pd.DataFrame(
        {"dataset": dataset, "method": method, "train_size": 100, "fold": fold, "replicate": fold,
         "epsilon": math.inf if method == "plain" else 1.0,
         "log_loss": loss + 0.01 * (fold - 0.5), "status": "ok"}
        for (dataset, method), loss in losses.items()
        for fold in (0, 1)
    )  # fmt: skip
    spec = {"options": {"groups": {"g": ["a", "b"]}, "without": "plain"}}
    columns, rows = preparation_price(None, spec, draws)
    first, second = (dict(zip(columns, row, strict=True)) for row in rows)
    whole = math.log(2) - 0.4
    assert (first["can_keep"], first["price"]) == (1, 0)
    assert first["keeps"] == pytest.approx((math.log(2) - 0.5) / whole)
    assert second["can_keep"] == pytest.approx((math.log(2) - 0.5) / whole)
    assert second["keeps"] == pytest.approx((math.log(2) - 0.6) / whole)
    assert second["price"] == pytest.approx(0.1 / whole)
    assert second["keeps_low"] < second["keeps"] < second["keeps_high"]
