"""Preparation steps: bounds that hold whatever the rows, and an honest privacy status."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dp import data
from dp.preparation import STEPS, Table, prepare

X_ROWS = hnp.arrays(
    np.float64, st.tuples(st.integers(2, 12), st.just(2)), elements=st.floats(-1e6, 1e6)
)


def table(X):
    X = np.asarray(X, dtype=float)
    y = np.where(np.arange(len(X)) % 2, -1, 1).astype(np.int8)
    return Table(X, y, tuple(f"x{k}" for k in range(X.shape[1])))


CHAINS = {
    "row_norm": [("row_norm", {})],
    "clip": [("clip", {"radius": 7.5})],
    "bounds": [("scale_to_bounds", {"x0": [-3, 5], "x1": [0, 1e-3]})],
    "constants": [
        ("scale_by_constants", {"x0": [3, 0.1], "x1": [0, 20]}),
        ("row_norm", {}),
    ],
    "intercept": [("clip", {"radius": 2}), ("constant_feature", {})],
    "renormalised intercept": [
        ("row_norm", {}),
        ("constant_feature", {}),
        ("row_norm", {}),
    ],
}


@pytest.mark.parametrize("steps", CHAINS.values(), ids=CHAINS)
@given(X=X_ROWS)
@settings(max_examples=60, deadline=None)
def test_the_stated_bound_holds_for_all_rows(steps, X):
    prepared, record = prepare(table(X), steps)
    data.check_rows(prepared.X, prepared.y, prepared.bound)
    assert prepared.X.shape == (len(X), len(prepared.columns))
    assert [entry["step"] for entry in record] == [name for name, _ in steps]


PUBLIC = {
    "scale_by_constants": {"x0": [3, 0.1], "x1": [0, 20]},
    "scale_to_bounds": {"x0": [-3, 5], "x1": [0, 1e-3]},
    "row_norm": {},
    "clip": {"radius": 2},
    "constant_feature": {},
}


@pytest.mark.parametrize("name", PUBLIC)
@given(X=X_ROWS)
@settings(max_examples=40, deadline=None)
def test_public_steps_treat_every_row_alone(name, X):
    """A step that claims to look at no other private row gives a row the same result without them."""
    assert not STEPS[name].private_rows
    together = STEPS[name].apply(table(X), **PUBLIC[name])
    alone = STEPS[name].apply(table(X[:1]), **PUBLIC[name])
    np.testing.assert_array_equal(together.X[:1], alone.X)
    assert together.bound == alone.bound and together.columns == alone.columns


def test_values():
    scaled = STEPS["scale_to_bounds"].apply(table([[-9, 0.5], [1, 2]]), x0=[-3, 5], x1=[0, 1])
    np.testing.assert_allclose(scaled.X, [[-1, 0], [0, 1]])
    assert scaled.bound == pytest.approx(np.sqrt(2))
    constant = STEPS["constant_feature"].apply(scaled)
    assert constant.bound == pytest.approx(np.sqrt(3))
    assert constant.columns == ("x0", "x1", "constant") and (constant.X[:, 2] == 1).all()
    clipped = STEPS["clip"].apply(table([[3, 4], [30, 40]]), radius=10)
    np.testing.assert_allclose(clipped.X, [[0.3, 0.4], [0.6, 0.8]])


@pytest.mark.parametrize(
    ("steps", "match"),
    [
        ([], "no step at all"),
        ([("scale_by_constants", {"x0": [0, 1], "x1": [0, 1]})], "no public bound"),
        ([("row_norm", {}), ("scale_by_constants", {"x0": [0, 9], "x1": [0, 1]})], "no public"),
        ([("constant_feature", {})], "no public bound"),
        ([("clip", {"radius": 0})], "radius"),
        ([("scale_by_constants", {"x0": [0, 0], "x1": [0, 1]})], "'x0' must be positive"),
        ([("scale_by_constants", {"x0": [0, 1]})], "no values for 'x1'"),
        ([("scale_to_bounds", {"x0": [1, 1], "x1": [0, 1]})], "low < high"),
        ([("scale_to_bounds", {"x0": [0, 1], "x1": [0, 1], "x2": [0, 1]})], "no such column"),
    ],
)
def test_refuses(steps, match):
    with pytest.raises(ValueError, match=match):
        prepare(table([[0.1, 0.2], [0.3, 0.4]]), steps)
