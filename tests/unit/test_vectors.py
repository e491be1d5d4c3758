"""Every reference value of tests/vectors, all from other sources than the tested code.

A file names a module and its cases. A case has a function (or a mechanism whose proven epsilon is meant),
inputs (keyword arguments), the expected value, a relative tolerance and the source. Other libraries can
read the same files.
"""

from importlib import import_module

import pytest

from dp.mechanisms import MECHANISMS
from reference import VECTORS

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
    if "mechanism" in case:
        found = MECHANISMS[case["mechanism"]].guarantee(**case["inputs"]).epsilon
    else:
        found = getattr(import_module(module), case["function"])(**case["inputs"])
    assert float(found) == pytest.approx(case["expected"], rel=case["tolerance"])


def test_there_are_vectors_of_every_kind():
    assert {"gaussian", "gaussian_tilt", "last_iterate", "sketches", "selection"} <= set(VECTORS)
    assert {"noise_scales", "gaussian_profile", "tukey", "guarantees"} <= set(VECTORS)
    assert all(vectors["cases"] for vectors in VECTORS.values())
