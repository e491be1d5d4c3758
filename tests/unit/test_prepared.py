"""Large arrays are memory-mapped, and read in blocks if possible, without changing any result."""

import json
import tracemalloc
from argparse import Namespace

import numpy as np
import pytest

from dp.evaluation import error_rate, regularised_risk
from dp.mechanisms import MECHANISMS
from dp.rows import Rows, check_rows
from dp.solvers.fits import shared_fit
from dp.solvers.newton import minimise
from jobs import prepare
from study.data import prepared, readers
from study.data.prepared import Prepared
from study.jobs import folds

IN_BLOCKS = [name for name in MECHANISMS if MECHANISMS[name].in_blocks]


class Unread(Rows):
    """Rows that fail if read as one array."""

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("all rows were read at once")


def problem(n, d, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] + 0.2 * rng.standard_normal(n) > 0, 1, -1).astype(np.int8)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.uint8, np.int64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_mapped_arrays_are_the_arrays(kind, order, save, tmp_path, monkeypatch):
    X = np.asarray(np.random.default_rng(1).integers(0, 200, (50, 7)), dtype=kind, order=order)
    arrays = {"y": np.resize([1, -1], 50), "X": X, "a_longer_name": X[:3] * 2}
    save(tmp_path / "rows.npz", **arrays)
    monkeypatch.setattr(prepared, "LARGE", 0)
    actual = prepared.read_arrays(tmp_path / "rows.npz")
    assert actual.keys() == arrays.keys()
    for name, array in arrays.items():
        assert isinstance(actual[name], np.memmap) == (save is np.savez)
        assert actual[name].dtype == array.dtype
        np.testing.assert_array_equal(actual[name], array)


def test_small_arrays_are_read(tmp_path):
    X, y = problem(20, 3)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    actual = Prepared(tmp_path / "rows.npz")
    assert not isinstance(actual.X, np.memmap)
    assert isinstance(actual.floats(in_blocks=True)[0], np.ndarray)


def test_large_parts_are_the_same_rows_in_the_files_order(tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.integers(0, 255, (60, 5)).astype(np.uint8)
    later = '{"columns": ["a", "b", "c", "d", "e"], "steps": [["row_norm", {}]]}'
    np.savez(
        tmp_path / "rows.npz", X=X, y=np.arange(60) % 3, X_test=X[:9], y_test=X[:9, 0], later=later
    )
    rows = rng.permutation(60)[:40]
    whole, y = Prepared(tmp_path / "rows.npz").floats(np.sort(rows))
    monkeypatch.setattr(prepared, "LARGE", 100)
    data = Prepared(tmp_path / "rows.npz")
    actual, labels = data.floats(rows, in_blocks=True)
    assert isinstance(actual, Rows) and actual.shape == (40, 5) and actual.dtype == float
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_array_equal(actual[7:30], whole[7:30])
    np.testing.assert_array_equal(actual[::7], whole[::7])
    np.testing.assert_array_equal(np.asarray(actual), whole)
    test, _ = data.floats(part="test", in_blocks=True)
    np.testing.assert_array_equal(test[2:5], data.later.apply(X[2:5]))
    # Without `in_blocks`, rows come in the requested order, not sorted.
    np.testing.assert_array_equal(data.floats(rows)[0], data.later.apply(X[rows]))


@pytest.mark.parametrize(
    "split", [{"folds": 3, "simulations": None}, {"folds": None, "simulations": 2}]
)
def test_jobs_split_large_data_alike(split, tmp_path, monkeypatch):
    X, y = problem(90, 4)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    arguments = Namespace(
        data=tmp_path / "rows.npz", experiment="e", dataset="d", train_size=50, seed=3, **split
    )
    plain = list(folds.training_folds(arguments))
    monkeypatch.setattr(prepared, "LARGE", 100)
    large = list(folds.training_folds(arguments, in_blocks=True))
    assert len(plain) == len(large)
    for parts, others in zip(plain, large, strict=True):
        for (rows, labels), (large_rows, large_labels) in zip(parts, others, strict=True):
            assert isinstance(large_rows, Rows)
            mine = np.column_stack([rows, labels])
            theirs = np.column_stack([np.asarray(large_rows), large_labels])
            assert sorted(map(tuple, mine)) == sorted(map(tuple, theirs))


@pytest.mark.parametrize("name", IN_BLOCKS)
def test_releases_from_rows_read_in_blocks(name):
    X, y = problem(500, 4)
    order = np.flatnonzero(np.arange(500) % 5)
    mechanism = MECHANISMS[name]
    arguments = {"lam": 0.05} | ({"epsilon": 0.7} if mechanism.private else {})
    if mechanism.delta == "needed":
        arguments["delta"] = 1e-5
    if mechanism.fit:
        arguments["fit"] = shared_fit(mechanism.fit, X[order], y[order], lam=0.05)
    results = []
    for rows in (X[order], Unread(X, order)):
        rng = np.random.default_rng(4)
        release = mechanism.release(rows, y[order], rng=rng, restarts=3, **arguments)
        results.append(release)
        assert (release.status == "ok").all()
        results[-1] = (
            release.weights,
            error_rate(release.weights, rows, y[order]),
            regularised_risk(release.weights, rows, y[order], 0.05),
        )
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("n, d", [(500, 4), (20000, 4), (900, 50)])
def test_the_solver_reads_in_blocks(n, d):
    X, y = problem(n, d)
    order = np.flatnonzero(np.arange(n) % 4)
    linear = 20 * np.eye(d)[:3]
    mine, _ = minimise(X[order], y[order], 0.01, linear)
    theirs, info = minimise(Unread(X, order), y[order], 0.01, linear)
    assert (info.status == "ok").all()
    np.testing.assert_array_equal(mine, theirs)


def test_rows_read_in_blocks_obey_the_bound():
    X, y = problem(100, 3)
    X[77] *= 1.1
    check_rows(Unread(X, np.arange(70)), y[:70], 1.0)
    with pytest.raises(ValueError, match="row 77 has norm"):
        check_rows(Unread(X, np.arange(100)), y, 1.0)


def test_memory_does_not_grow_with_the_rows_as_floats():
    """500,000 rows of 20 floats would take 80 MB. The array of their indices takes 4 MB."""
    rng = np.random.default_rng(5)
    X = rng.integers(-5, 6, (500_000, 20)).astype(np.int8)
    y = np.where(X[:, 0] + X[:, 1] > rng.integers(-2, 3, 500_000), 1, -1).astype(np.int8)
    rows = Unread(X, np.arange(500_000), lambda block: block / 25.0)
    tracemalloc.start()
    try:
        release = MECHANISMS["objective_perturbation"].release(
            rows, y, epsilon=1.0, lam=0.01, restarts=5, rng=rng
        )
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (release.status == "ok").all()
    assert used < 40e6


def test_clipped_cells_are_counted(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,b,c,y\n999,1,u,yes\n18,-9,v,no\n90,-9,u,no\n17.9,12,v,no\n")
    entry = {
        "source": {"csv": str(tmp_path / "t.csv")},
        **{"label": "y", "positive": "yes", "steps": [{"row_norm": {}}]},
        **{"bounds": {"a": [18, 90], "b": [-9, 12]}, "categories": {"c": ["u", "v"]}},
    }
    words = ["--dataset", "d", "--entry", json.dumps(entry), "--seed", "3"]
    words += [
        *("--out-npz", str(tmp_path / "d.npz")),
        *("--out-json", str(tmp_path / "d.json")),
    ]
    monkeypatch.setattr("sys.argv", ["jobs/prepare.py", *words])
    prepare.main()
    made = json.loads((tmp_path / "d.json").read_text())
    assert made["clipped"] == {"a": 2} and readers.BOTH in made["premises"]
