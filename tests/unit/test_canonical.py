"""Every number in a path or a table has one spelling."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study import canonical


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (0.1 + 0.2, "0.3"),
        (1, "1"),
        (1.0, "1"),
        (10, "10"),
        (100000, "100000"),
        (1e-5, "0.00001"),
        (0.005, "0.005"),
        (np.float64(0.07), "0.07"),
        (np.float32(0.5), "0.5"),
        (3 * 0.01, "0.03"),
        (1e20, "100000000000000000000"),
        (math.inf, "inf"),
        ("0.25", "0.25"),
    ],
)
def test_epsilon(value, text):
    assert canonical.epsilon(value) == text


@settings(max_examples=300)
@given(st.floats(min_value=1e-9, max_value=1e9))
def test_every_epsilon_is_a_path_that_names_its_value(value):
    text = canonical.epsilon(value)
    assert re.fullmatch(canonical.EPSILON_PATTERN, text)
    assert float(text) == pytest.approx(value, rel=1e-11)
    assert canonical.epsilon(text) == canonical.epsilon(float(text)) == text


@pytest.mark.parametrize(
    "text", ["0.10", "1.0", "1.", ".5", "1e-05", "-1", "nan", "", "+1", "infx"]
)
def test_other_spellings_match_no_rule(text):
    assert not re.fullmatch(canonical.EPSILON_PATTERN, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (np.int32(3), "3"),
        (3.0, "3"),
        (1 / 3, "0.333333333"),
        (2e-10, "2e-10"),
        (123456789.0, "123456789"),
        (1234567891.0, "1.23456789e+09"),
        (10**12, "1000000000000"),
        (-0.0, "0"),
        (np.float64(-1.5), "-1.5"),
        (math.nan, ""),
        (-math.inf, "-inf"),
        ("ok", "ok"),
        (None, ""),
    ],
)
def test_number(value, text):
    assert canonical.number(value) == text


def test_a_range_has_both_ends_and_no_rounding():
    values = canonical.grid({"from": 0.01, "to": 0.2, "step": 0.01})
    assert values == [k / 100 for k in range(1, 21)]
    sizes = canonical.grid({"from": 1000, "to": 14000, "step": 1000}, whole=True)
    assert sizes == [1000 * k for k in range(1, 15)]
    assert all(type(size) is int for size in sizes)


def test_a_range_stops_before_an_end_that_no_step_reaches():
    assert canonical.grid({"from": 1, "to": 2, "step": 0.4}) == [1, 1.4, 1.8]
    assert canonical.grid({"from": 2, "to": 1, "step": 1}) == []
    assert canonical.grid({"from": 2, "to": 2, "step": 1}) == [2]


def test_a_list_is_sorted_and_names_each_value_once():
    assert canonical.grid([2, 0.3, 0.1 + 0.2, 1]) == [0.3, 1, 2]
    assert canonical.grid([300, 100, 100], whole=True) == [100, 300]


@pytest.mark.parametrize(("text", "value"), [("1", 1), (" -4.5e1 ", -45), (".5", 0.5), ("+3.", 3)])
def test_numbers_of_a_csv(text, value):
    assert canonical.parse(text) == value


@pytest.mark.parametrize(
    "text", ["", "x", "1_000", "1,5", "0x10", "\u0661", "\uff11", "1 2", "\u221e"]
)
def test_text_of_a_csv_that_is_no_number(text):
    with pytest.raises(ValueError):
        canonical.parse(text)
