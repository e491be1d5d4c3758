"""Tests every reference value of tests/vectors. No value comes from the tested code."""

import pytest

from reference import VECTORS
from vectors import check

CASES = [
    pytest.param(vectors["module"], case, id=f"{name}-{case.get('function', 'epsilon')}-{k}")
    for name, vectors in VECTORS.items()
    for k, case in enumerate(vectors["cases"])
]


@pytest.mark.parametrize(("module", "case"), CASES)
def test_reference_value(module, case):
    what = {"mechanism"} if module == "dp.mechanisms" else {"function"}
    assert set(case) == what | {"inputs", "expected", "tolerance", "source"}
    assert 0 < case["tolerance"] <= 0.02 and case["source"]
    assert check.agrees(check.value(module, case), case)


def test_a_value_that_differs_is_found(monkeypatch, capsys):
    (case, *_) = VECTORS["gaussian"]["cases"]
    other = case | {"expected": case["expected"] * (1 + 3 * case["tolerance"])}
    assert not check.agrees(check.value("dp_privacy.accounting", case), other)
    assert check.agrees(float("inf"), other | {"expected": float("inf")})
    assert not check.agrees(float("nan"), case)
    files = {"gaussian": {"module": "dp_privacy.accounting", "cases": [case, other]}}
    monkeypatch.setattr(check, "read", lambda: files)
    assert check.main() == 1
    assert "1 agree, 1 differ" in capsys.readouterr().out
    files.clear()
    assert check.main() == 1  # nothing was compared


def test_there_are_vectors_of_every_kind():
    assert {"gaussian", "gaussian_tilt", "last_iterate", "sketches", "selection"} <= set(VECTORS)
    assert {"noise_scales", "gaussian_profile", "tukey", "guarantees", "l2"} <= set(VECTORS)
    assert all(vectors["cases"] for vectors in VECTORS.values())
