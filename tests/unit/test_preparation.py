import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dp.rows import check_rows, row_norms
from study.data.components import distances_to_class_mean, principal_components
from study.data.preparation import STEPS, Table, prepare

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
    "one_hot": [
        ("scale_to_bounds", {"x0": [-3, 5], "x1": [0, 1e-3]}),
        ("one_hot", {"groups": [["x0", "x1"]]}),
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
@settings(max_examples=60)
def test_the_stated_bound_holds_for_all_rows(steps, X):
    prepared, record = prepare(table(X), steps)
    check_rows(prepared.X, prepared.y, prepared.bound)
    assert prepared.X.shape == (len(X), len(prepared.columns))
    assert [entry["step"] for entry in record] == [name for name, _ in steps]


@pytest.mark.parametrize("steps", CHAINS.values(), ids=CHAINS)
def test_rows_are_written_over_where_that_is_allowed(steps):
    X = np.random.default_rng(7).standard_normal((20_000, 2))  # more than one block
    original, mine = table(X.copy()), table(X.copy())
    expected, _ = prepare(original, steps)
    np.testing.assert_array_equal(original.X, X)
    actual, _ = prepare(mine, steps, overwrite=True)
    np.testing.assert_array_equal(actual.X, expected.X)
    assert np.shares_memory(actual.X, mine.X) == (len(actual.columns) == 2)


PUBLIC = {
    "scale_by_constants": {"x0": [3, 0.1], "x1": [0, 20]},
    "scale_to_bounds": {"x0": [-3, 5], "x1": [0, 1e-3]},
    "one_hot": {"groups": [["x0", "x1"]]},
    "row_norm": {},
    "clip": {"radius": 2},
    "constant_feature": {},
    "random_projection": {"dimension": 3},
}


def apply(name, data, **options):
    if name == "one_hot":
        data = data._replace(column_bounds=(1e6, 1e6))
    if STEPS[name].random:
        options["rng"] = np.random.default_rng(5)
    return STEPS[name].apply(data, **options)


@pytest.mark.parametrize("name", PUBLIC)
@given(X=X_ROWS)
@settings(max_examples=40)
def test_public_steps_treat_every_row_alone(name, X):
    assert not STEPS[name].private_rows
    assert STEPS[name].row_wise
    together = apply(name, table(X), **PUBLIC[name])
    alone = apply(name, table(X[:1]), **PUBLIC[name])
    # Matrix products may sum in an order that depends on the number of rows.
    tolerance = 1e-12 if name == "random_projection" else 0
    np.testing.assert_allclose(together.X[:1], alone.X, rtol=tolerance, atol=tolerance * 1e6)
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


PRIVATE = {"standardise": {}, "min_max": {}, "max_norm": {}, "pca": {"components": 2}}


def test_every_step_is_either_tested_as_public_or_as_private():
    assert set(STEPS) == {*PUBLIC, *PRIVATE, "binary", "subset"}
    assert {name for name, step in STEPS.items() if step.private_rows} == set(PRIVATE)


@pytest.mark.parametrize("name", PRIVATE)
def test_private_steps_change_a_row_with_the_others(name):
    X = np.random.default_rng(0).standard_normal((6, 3))
    other = np.concatenate([X[:5], 10 * X[5:]])
    one, two = (STEPS[name].apply(table(rows), **PRIVATE[name]).X[0] for rows in (X, other))
    assert not np.allclose(one, two)


@pytest.mark.parametrize("name", PRIVATE)
def test_private_steps_are_recorded_and_never_look_at_test_rows(name):
    X = np.random.default_rng(1).standard_normal((8, 3))
    other = np.concatenate([X[:6], 10 * X[6:]])
    steps = [("row_norm", {}), (name, PRIVATE[name]), ("clip", {"radius": 3})]
    prepared = []
    for rows in (X, other):
        done, record = prepare(table(rows)._replace(train_rows=6), steps)
        assert [entry["private_rows"] for entry in record] == [False, True, False]
        assert done.train_rows == 6 and done.bound == 1
        prepared.append(done.X[:6])
    np.testing.assert_array_equal(*prepared)


def test_standardise_agrees_with_scikit_learn():
    from sklearn.preprocessing import StandardScaler

    X = np.random.default_rng(2).normal(3, 5, (40, 4))
    X[:, 2] = 0.1  # a constant column whose computed mean is not exactly the constant
    actual = STEPS["standardise"].apply(table(X)._replace(train_rows=30))
    np.testing.assert_allclose(actual.X, StandardScaler().fit(X[:30]).transform(X), atol=1e-12)
    assert actual.bound == np.inf and (actual.X[:, 2] == 0).all()


@pytest.mark.parametrize("standardised", [False, True])
def test_pca_agrees_with_scikit_learn(standardised):
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 6)) @ rng.normal(size=(6, 6))
    data = table(X)._replace(train_rows=40, bound=7.0)
    if standardised:
        data = STEPS["standardise"].apply(data)
    actual = STEPS["pca"].apply(data, components=3)
    reference = PCA(3).fit(data.X[:40])
    np.testing.assert_allclose(
        np.abs(actual.X), np.abs(reference.transform(data.X)), rtol=1e-7, atol=1e-10
    )
    assert actual.columns == ("component1", "component2", "component3")
    assert actual.bound == (np.inf if standardised else 14)
    explained = principal_components(X[:40], standardise=standardised).explained
    np.testing.assert_allclose(explained[:3], reference.explained_variance_ratio_, rtol=1e-9)


@given(X=X_ROWS)
@settings(max_examples=60)
def test_the_bound_after_pca_holds(X):
    bounded = STEPS["row_norm"].apply(table(X))
    actual = STEPS["pca"].apply(bounded, components=2)
    check_rows(actual.X, actual.y, actual.bound)


@given(X=X_ROWS)
@settings(max_examples=60)
def test_max_norm_bounds_the_training_rows(X):
    if not X.any():
        with pytest.raises(ValueError, match="every training row is zero"):
            STEPS["max_norm"].apply(table(X))
        return
    actual = STEPS["max_norm"].apply(table(X))
    check_rows(actual.X, actual.y, actual.bound)
    np.testing.assert_allclose(row_norms(actual.X).max(), 1, rtol=1e-12)


def test_random_projection_keeps_squared_norms_on_average_but_gives_no_bound():
    X = np.zeros((1, 40))
    X[0, 3] = 1.0
    norms = []
    for seed in range(400):
        actual = STEPS["random_projection"].apply(
            table(X), dimension=10, rng=np.random.default_rng(seed)
        )
        assert actual.X.shape == (1, 10) and actual.bound == np.inf
        norms.append(np.square(actual.X).sum())
    # chi-squared with 10 degrees of freedom, divided by 10: mean 1, standard error sqrt(2/10/400) = 0.022
    assert abs(np.mean(norms) - 1) < 0.1
    assert max(norms) > 1.5
    with pytest.raises(ValueError, match="no public bound"):
        prepare(
            table(X),
            [("row_norm", {}), ("random_projection", {"dimension": 10})],
            rng_of=lambda number, name: np.random.default_rng(0),
        )


def test_random_projection_depends_on_the_seed_alone():
    steps = [("row_norm", {}), ("random_projection", {"dimension": 4}), ("clip", {"radius": 1})]
    rng = np.random.default_rng(0)
    X, other = rng.standard_normal((2, 5, 6))
    first, second, again = (
        prepare(table(rows), steps, lambda number, name, seed=seed: np.random.default_rng(seed))[0]
        for rows, seed in ((X, 1), (np.vstack([X[:1], other[1:]]), 1), (X, 2))
    )
    np.testing.assert_allclose(first.X[0], second.X[0], rtol=1e-12)
    assert not np.allclose(first.X[0], again.X[0])
    assert first.bound == 1


def ten_classes():
    y = np.array([4, 9, 0, 4, 9, 1, 4, 9], dtype=np.int8)
    X = np.arange(16, dtype=np.uint8).reshape(8, 2)
    return Table(X, y, ("x0", "x1"), train_rows=5, classes=tuple("0123456789"))


def test_binary_keeps_two_classes_of_both_parts():
    actual = STEPS["binary"].apply(ten_classes(), negative=4, positive=9)
    assert actual.y.tolist() == [-1, 1, -1, 1, -1, 1] and actual.train_rows == 4
    assert actual.X[:, 0].tolist() == [0, 2, 6, 8, 12, 14] and actual.X.dtype == np.uint8
    assert actual.classes == () and actual.pair == ("4", "9")


def test_subset():
    first = STEPS["subset"].apply(ten_classes(), rows=3, test_rows=1)
    assert first.X[:, 0].tolist() == [0, 2, 4, 10] and first.train_rows == 3
    rng = np.random.default_rng(0)
    mixed = STEPS["subset"].apply(ten_classes(), rows=4, shuffle=True, rng=rng)
    assert len(mixed.y) == 4 + 3 and set(mixed.X[:4, 0]) < {0, 2, 4, 6, 8}
    assert set(mixed.X[4:, 0]) == {10, 12, 14}
    for wrong in ({"rows": 6}, {"rows": 0}, {"rows": 2, "test_rows": 4}):
        with pytest.raises(ValueError, match="cannot be chosen"):
            STEPS["subset"].apply(ten_classes(), **wrong)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"negative": 4, "positive": 12}, "no class '12'"),
        ({"negative": 4, "positive": 4}, "are both '4'"),
        ({"negative": 4, "positive": 1}, "no training row is of the class '1'"),
    ],
)
def test_binary_refuses(options, match):
    with pytest.raises(ValueError, match=match):
        STEPS["binary"].apply(ten_classes(), **options)
    with pytest.raises(ValueError, match="two classes already"):
        STEPS["binary"].apply(table(np.ones((2, 2))), **options)


def test_bytes_stay_bytes_until_floats_are_asked_for():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 256, (9000, 5)).astype(np.uint8)  # more than one block
    y = rng.integers(0, 3, len(X)).astype(np.int8)
    data = Table(X, y, tuple("abcde"), train_rows=8000, classes=("u", "v", "w"))
    steps = [
        ("binary", {"negative": "u", "positive": "w"}),
        ("scale_by_constants", {"*": [0, 255], "b": [10, 300]}),
        ("clip", {"radius": 2}),
        ("constant_feature", {}),
    ]
    now, record = prepare(data, steps)
    later, same_record = prepare(data, steps, put_off=True)
    assert later.X.dtype == np.uint8 and now.X.dtype == float and record == same_record
    assert (later.columns, later.bound, later.train_rows) == (
        now.columns,
        now.bound,
        now.train_rows,
    )
    rows = rng.permutation(len(now.y))[:50]
    np.testing.assert_array_equal(later.later.apply(later.X[rows]), now.X[rows])
    np.testing.assert_array_equal(later.y, now.y)
    fitted, _ = prepare(data, [*steps, ("max_norm", {})], put_off=True)
    assert fitted.X.dtype == float and not fitted.later.steps


def test_a_one_hot_group_counts_once_in_the_bound():
    rng = np.random.default_rng(6)
    group = np.eye(3)[rng.integers(0, 3, 20)]
    X = np.column_stack([rng.uniform(-50, 150, 20), group])
    columns = ("age", "job=a", "job=b", "job=c")
    data = Table(X, np.resize([-1, 1], 20), columns, groups=(columns[1:],))
    actual = STEPS["scale_to_bounds"].apply(data, age=[0, 100])
    assert actual.bound == pytest.approx(np.sqrt(2))
    np.testing.assert_array_equal(actual.X[:, 1:], group)
    check_rows(actual.X, actual.y, actual.bound)
    with pytest.raises(ValueError, match="no such column: 'job=a'"):
        STEPS["scale_to_bounds"].apply(data, **{"age": [0, 100], "job=a": [0, 1]})
    # Columns that are no longer zeros and ones form no group.
    moved = STEPS["clip"].apply(actual, radius=1)
    assert moved.groups == ()


def test_distances_to_the_mean_of_the_class():
    X = np.array([[0, 0], [2, 0], [10, 10], [10, 16]], dtype=np.uint8)
    np.testing.assert_allclose(distances_to_class_mean(X, np.array([1, 1, 7, 7])), [1, 1, 3, 3])


def test_labels_of_several_classes():
    X = np.full((3, 2), 0.5)
    check_rows(X, np.array([0, 1, 2]), 1.0, classes=3)
    with pytest.raises(ValueError, match="integers from 0 to 1"):
        check_rows(X, np.array([0, 1, 2]), 1.0, classes=2)
    with pytest.raises(ValueError, match="labels must be -1 or 1"):
        check_rows(X, np.array([0, 1, 2]), 1.0)


@pytest.mark.parametrize("step", ["scale_to_bounds", "scale_by_constants"])
def test_a_column_may_have_any_name(step):
    table = Table(np.array([[1.0, 2.0]]), np.ones(1, np.int8), ("table", "rng"))
    scaled = STEPS[step].apply(table, **{"table": [0, 4], "rng": [0, 4]})
    assert scaled.X.tolist() == [[-0.5, 0] if step == "scale_to_bounds" else [0.25, 0.5]]


def test_one_hot_columns_of_a_file_become_blocks():
    """A one-hot row stays. Any other keeps the largest entry of a group, so the block holds for it."""
    X = np.array([[5.0, 0, 1, 0, 1], [0.0, 0, 0, 0, 0], [9.0, 1, 1, -1, 0.5], [2.0, 0.5, -1, 0, 1]])
    table = Table(X, np.array([1, -1, 1, 1]), ("a", "p", "q", "r", "s"))
    bounds = ("scale_to_bounds", {"a": [0, 10], "*": [-1, 1]})
    groups = ("one_hot", {"groups": [["p", "q", "r"]]})
    made, record = prepare(table, [bounds, groups, ("constant_feature", {})])
    assert made.blocks == ((1, 2, 3),) and made.column_bounds == (1.0,) * 6
    assert made.bound == pytest.approx(2)  # a, one of the group, s and the constant
    np.testing.assert_array_equal(made.X[:2, 1:5], X[:2, 1:])
    np.testing.assert_array_equal(made.X[2:, 1:5], [[1, 0, 0, 0.5], [0, -1, 0, 1]])
    assert not record[1]["private_rows"]
    shorter, _ = prepare(table, [bounds, groups, ("clip", {"radius": 1})])
    assert shorter.blocks == made.blocks and shorter.bound == 1
    for wrong, message in (
        ([["p", "z"]], "no such column: 'z'"),
        ([["p", "q"], ["q", "r"]], "'q' is in two groups"),
    ):
        with pytest.raises(ValueError, match=message):
            prepare(table, [bounds, ("one_hot", {"groups": wrong})])
    with pytest.raises(ValueError, match="no bounds"):
        prepare(table, [groups, ("row_norm", {})])
