"""Every reference value of tests/vectors, of other sources than the code that is tested.

A file states a module and cases: function, inputs (keyword arguments), expected, relative tolerance and
source. Other libraries can read the same files.
"""

from importlib import import_module
from pathlib import Path

import pytest
import yaml

FILES = sorted((Path(__file__).resolve().parents[1] / "vectors").glob("*.yaml"))
VECTORS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
CASES = [
    pytest.param(vectors["module"], case, id=f"{name}-{case['function']}-{k}")
    for name, vectors in VECTORS.items()
    for k, case in enumerate(vectors["cases"])
]


@pytest.mark.parametrize(("module", "case"), CASES)
def test_reference_value(module, case):
    assert set(case) == {"function", "inputs", "expected", "tolerance", "source"}
    assert 0 < case["tolerance"] <= 0.02 and case["source"]
    found = getattr(import_module(module), case["function"])(**case["inputs"])
    assert float(found) == pytest.approx(case["expected"], rel=case["tolerance"])


def test_there_are_vectors_of_every_kind():
    assert {"gaussian", "gaussian_tilt", "last_iterate", "sketches", "selection"} <= set(VECTORS)
    assert all(vectors["cases"] for vectors in VECTORS.values())
