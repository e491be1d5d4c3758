import json
from argparse import Namespace

import numpy as np
import pytest

from dp.rows import reshuffle, simulation_rows
from study import lambdas
from study.jobs import folds
from study.jobs.cross_validation import most_frequent_best


@pytest.fixture
def prepared(tmp_path):
    """Function that writes a prepared file whose only column is the row number."""

    def write(rows, test=0):
        arrays = {"X": np.arange(rows, dtype=float)[:, None], "y": np.resize([1, -1], rows)}
        if test:
            arrays |= {"X_test": -np.arange(1.0, test + 1)[:, None], "y_test": np.ones(test)}
        np.savez(tmp_path / "data.npz", **arrays)
        return tmp_path / "data.npz"

    return write


def simulations(path, size, count=3, seed=1):
    arguments = Namespace(
        data=path,
        experiment="e",
        dataset="d",
        folds=None,
        simulations=count,
        train_size=size,
        seed=seed,
    )
    return [(set(X[:, 0]), set(Z[:, 0])) for (X, _), (Z, _) in folds.training_folds(arguments)]


def test_training_subsets_are_nested_and_apart_from_the_quarter_held_out(prepared):
    path = prepared(41)
    small, large = simulations(path, 10), simulations(path, 31)
    for (few, test), (many, same) in zip(small, large, strict=True):
        assert len(few) == 10 and len(many) == 31 and few < many
        assert test == same and len(test) == 10 and not test & many
    assert len({frozenset(few) for few, _ in small}) == 3
    with pytest.raises(ValueError, match="31 training rows, not the 32"):
        simulations(path, 32)


def test_an_official_test_part_is_every_simulations_test(prepared):
    path = prepared(20, test=4)
    for train, test in simulations(path, 20):
        assert train == set(range(20)) and test == {-1, -2, -3, -4}


def test_a_simulation_does_not_depend_on_how_many_there_are(prepared):
    path = prepared(41)
    assert simulations(path, 7, count=5)[:3] == simulations(path, 7, count=3)
    assert simulations(path, 7, seed=2) != simulations(path, 7)


@pytest.mark.parametrize(
    "split", [{"simulations": 5, "folds": None}, {"simulations": 0, "folds": 4}]
)
def test_rows_are_the_same_bits_whether_prepared_all_at_once_or_split_by_split(tmp_path, split):
    """If splits need many rows, deferred steps are applied once to all rows."""
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 256, (60, 784), dtype=np.uint8), np.resize([1, -1], 60)
    columns = [f"pixel{k}" for k in range(784)]
    later = json.dumps({"columns": columns, "steps": [["row_norm", {}]]})
    np.savez(tmp_path / "data.npz", X=X, y=y, later=later)
    arguments = {
        "data": tmp_path / "data.npz",
        "experiment": "e",
        "dataset": "d",
        "seed": 1,
        **split,
    }
    together = list(folds.training_folds(Namespace(**arguments, train_size=40)))
    for k, ((rows, labels), (test, _)) in enumerate(together):
        assert len(rows) == 40 and len(labels) == 40 and len(test) == 15
        assert (np.abs(np.linalg.norm(rows, axis=1) - 1) < 1e-12).all()
        # A size of 12 needs few rows, so each split is prepared separately.
        few = list(folds.training_folds(Namespace(**arguments, train_size=12), first=k + 1))
        assert len(few) == k + 1
        np.testing.assert_array_equal(few[k][0][0], rows[:12])
        np.testing.assert_array_equal(few[k][1][0], test)


def test_training_rows_are_some_of_all_training_rows(prepared):
    for test in (0, 4):
        settings = {"experiment": "e", "dataset": "d", "folds": None, "simulations": 3, "seed": 1}
        arguments = Namespace(data=prepared(40, test=test), train_size=6, **settings)
        everything = list(folds.all_training_rows(arguments))
        assert [len(X) for X in everything] == [40 if test else 30] * 3
        for ((X, _), (rest, _)), whole in zip(
            folds.training_folds(arguments), everything, strict=True
        ):
            assert set(X[:, 0]) < set(whole[:, 0]) and not set(rest[:, 0]) & set(whole[:, 0])


def test_reshuffle_is_a_partition():
    for rows, test in ((10, False), (361, False), (10, True)):
        train, rest = reshuffle(rows, np.random.default_rng(0), test)
        assert sorted([*train, *rest]) == list(range(rows))
        assert len(train) == simulation_rows(rows, test)


def test_the_most_frequent_winner_is_chosen():
    wins, chosen = most_frequent_best(np.array([[9, 2, 1], [9, 2, 1], [9, 0, 9]]) / 10)
    assert wins.tolist() == [0, 1, 2] and chosen == 2


def test_ties_go_to_the_lower_error_then_to_the_preferred():
    assert most_frequent_best(np.array([[0.1, 0.3], [0.4, 0.1]]))[1] == 1  # one win each
    assert most_frequent_best(np.array([[0.2, 0.2], [0.1, 0.1 + 1e-16]]))[1] == 0


def test_failed_candidates_never_win():
    errors = np.array([[np.nan, 0.4], [np.nan, 0.4]])
    assert most_frequent_best(errors)[1] == 1
    with pytest.raises(ValueError, match="every candidate failed"):
        most_frequent_best(np.full((1, 2), np.nan))


def test_grids_list_the_preferred_first():
    from jobs.search import expand

    actual = expand({"batch": [10, 5], "lambda": [1, 0.1]})
    assert actual == [
        (1, {"batch": 10}), (0.1, {"batch": 10}), (1, {"batch": 5}), (0.1, {"batch": 5}),
    ]  # fmt: skip


def test_settings_are_a_number_or_a_file(tmp_path):
    assert lambdas.parse("0.25").settings() == (0.25, {})
    path = tmp_path / "chosen.json"
    path.write_text(json.dumps({"lambda": 0.5, "options": {"batch": 7}}))
    assert lambdas.parse(str(path)).settings() == (0.5, {"batch": 7})
