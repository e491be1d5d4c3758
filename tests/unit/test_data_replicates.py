"""If data sets are drawn from one distribution, intervals are over data sets."""

import json
import math
import subprocess
import sys
from argparse import Namespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from checks.paired import interval
from checks.prediction import Protocol, predict
from plots import style
from study.configuration import sources
from study.configuration.config import load
from study.configuration.experiment import Experiment
from study.data.prepared import Prepared
from study.jobs import folds
from study.jobs.summary import interval_over, replicate_of, summarise

SOURCE = {"simulate": "separable", "rows": 40, "columns": 3, "margin": 0.01, "holdout": 15}


def prepared(tmp_path, name, **more):
    entry = {"source": SOURCE | more, "steps": [{"row_norm": {}}]}
    out = [str(tmp_path / f"{name}.{suffix}") for suffix in ("npz", "json")]
    words = ["--dataset", "d", "--entry", json.dumps(entry), "--seed", "3"]
    words += ["--out-npz", out[0], "--out-json", out[1]]
    subprocess.run([sys.executable, "scripts/job.py", "prepare", *words], check=True)
    return Prepared(out[0]), json.loads((tmp_path / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return *prepared(folder, "three", data_replicates=3), *prepared(folder, "one"), folder


def test_the_first_data_set_stays_the_same_and_others_have_other_separators(data):
    three, meta, one, plain, _ = data
    assert three.replicates == ["", "replicate1", "replicate2"] and one.replicates == [""]
    assert (meta["data_replicates"], plain["data_replicates"]) == (3, 1)
    for name in ("X", "y", "X_holdout", "separator"):
        assert (three[name] == one[name]).all()
    for part in three.replicates[1:]:
        X, y = three.floats(part=part)
        assert X.shape == (40, 3) and np.linalg.norm(X, axis=1) == pytest.approx(np.ones(40))
        # Classes are separable, but not by the first data set's separator.
        assert ((X @ three["separator"] > 0) != (y > 0)).any()
    assert not (three["X_replicate1"] == three["X_replicate2"]).any()


def test_folds_are_of_each_data_set_and_all_draws_are_shared_among_them(data):
    three, meta, _, plain, folder = data
    arguments = {"experiment": "e", "dataset": "d", "seed": 3, "folds": 4, "simulations": None}
    namespace = Namespace(data=folder / "three.npz", train_size=30, **arguments)
    splits = list(folds.training_folds(namespace))
    assert len(splits) == 12
    for number, ((X, _), (X_test, y_test)) in enumerate(splits):
        part = three.replicates[number // 4]
        own = {tuple(row) for row in three.floats(part=part)[0]}
        assert {tuple(row) for row in (*X, *X_test)} == own and len(y_test) == 10
    alone = Namespace(data=folder / "one.npz", train_size=30, **arguments)
    for several, single in zip(splits, folds.training_folds(alone), strict=False):
        assert (several[0][0] == single[0][0]).all()
    assert [len(X) for X in folds.all_training_rows(namespace)] == [30] * 12
    assert [folds.draws_on_each(Namespace(restarts=20), m) for m in (meta, plain)] == [7, 20]


def draws(values):
    """The data frame of a run file, from values of shape (data sets, folds, draws)."""
    at = np.indices(values.shape).reshape(3, -1)
    names = ("data_set", "fold", "restart")
    frame = pd.DataFrame(dict(zip(names, at, strict=True)) | {"error": values.ravel()})
    return frame.assign(gradient_norm=0.0, status="ok")


def test_the_interval_is_over_the_data_sets():
    values = np.random.default_rng(1).uniform(size=(4, 3, 5))
    actual, means = summarise(draws(values)), values.mean(axis=(1, 2))
    low, high = stats.t.interval(0.95, 3, means.mean(), stats.sem(means))
    assert (actual["error_low"], actual["error_high"]) == pytest.approx((low, high))
    assert (actual["data_sets"], actual["folds"], actual["restarts"]) == (4, 3, 5)
    assert actual["error_sd_folds"] == pytest.approx(values.mean(axis=2).std(ddof=1))
    one = summarise(draws(values[:1]))
    assert one["data_sets"] == 1
    assert one["error_low"] == pytest.approx(max(0, interval(values[0].mean(axis=1))[1]))
    assert (replicate_of(draws(values[:1])) == draws(values[:1])["fold"]).all()


def test_captions_say_over_what_an_interval_is():
    experiment = Experiment("e", {"folds": 5})
    frame = pd.DataFrame({"data_sets": [10, 1], "folds": [5, 5], "restarts": [20, 200]})
    assert style.replicates(experiment, frame[:1]) == (
        "mean of 10 data sets x 5 folds x 20 draws,\n95 % interval over data sets"
    )
    assert style.replicates(experiment, frame, interval=False) == (
        "mean of 10 data sets x 5 folds x 20 draws or 5 folds x 200 draws"
    )
    assert [interval_over(experiment, count) for count in (1, 2)] == ["folds", "data sets"]
    assert interval_over(Experiment("e", {"simulations": 5}), 1) == "simulations"
    divided = Experiment("e", {"folds": 5, "divisions": 20})
    assert [interval_over(divided, count) for count in (1, 5, 20)] == [
        *("folds", "data sets", "divisions"),
    ]


def test_figures_name_the_divisions_of_one_data_set_what_they_are():
    """A figure's job gets part of its experiment's configuration, including `divisions`."""
    _, experiments, _ = load(
        {"seed": 1, "experiments": ["patton"]}, only=sources.concerned({"patton"})
    )
    patton = experiments["patton"]
    for section in ("tables", "figures"):
        for name in patton.values[section]:
            part = Experiment.from_json(patton.entry_json(section, name))
            assert part.divisions == 10 and list(part.values[section]) == [name]
    frame = pd.DataFrame({"data_sets": [10], "folds": [5], "restarts": [20]})
    assert style.replicates(part, frame) == (
        "mean of 10 divisions x 5 folds x 20 draws,\n95 % interval over divisions"
    )
    assert "claims" not in json.loads(patton.entry_json(section, name))
    assert [*part.sweeps] == [patton.figures[name].sweep]


def test_rows_that_were_not_drawn_are_divided_anew_and_draws_shared_among_divisions(data):
    *_, folder = data
    arguments = {"experiment": "e", "dataset": "d", "seed": 3, "folds": 4, "simulations": None}
    arguments |= {"train_size": 30, "restarts": 20}
    one = Namespace(data=folder / "one.npz", **arguments)
    divided = Namespace(**vars(one), divisions=3)
    rows = np.sort(Prepared(one.data).X[:, 0])
    results = [test[0][:, 0] for _, test in folds.training_folds(divided)]
    assert len(results) == 12
    for k in range(3):
        np.testing.assert_allclose(
            np.sort(np.concatenate(results[4 * k : 4 * k + 4])), rows, atol=1e-6
        )
    for ours, theirs in zip(results, folds.training_folds(one), strict=False):
        np.testing.assert_array_equal(ours, theirs[1][0][:, 0])
    assert all(set(results[0]) != set(other) for other in results[4:])
    assert [folds.draws_on_each(each, {"data_replicates": 1}) for each in (one, divided)] == [20, 7]
    # data sets drawn from one law are each divided once
    three = Namespace(**vars(divided) | {"data": folder / "three.npz", "divisions": 2})
    assert len(list(folds.training_folds(three))) == 12
    assert folds.draws_on_each(three, {"data_replicates": 3}) == 7


def test_another_division_of_the_same_rows_lies_in_the_interval_of_divisions():
    rng, inside = np.random.default_rng(3), 0
    # All divisions share the rows' sampling error (0.05). It makes folds differ, but not the
    # divisions' means.
    for _ in range(200):
        chance = rng.permuted(np.tile(rng.normal(0, 0.05, 5), (21, 1)), axis=1)
        draws = 0.37 + chance - chance.mean(axis=1, keepdims=True)
        draws += rng.normal(0, 0.01, (21, 1))  # the division's own error
        actual = predict(draws[:20, :, None], Protocol(5, 1), rng)
        inside += actual.interval[0] <= draws[20].mean() <= actual.interval[1]
        assert actual.interval[1] - actual.interval[0] < 0.09  # a single division's: about 0.18
    assert inside / 200 > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 200)


@pytest.mark.parametrize("spreads", [(0.02, 0.0, 0.05), (0.02, 0.03, 0.05), (0.0, 0.0, 0.05)])
def test_a_prediction_covers_a_run_on_another_data_set_as_often_as_it_says(spreads):
    rng, inside = np.random.default_rng(8), 0

    def run(data_sets, draws):
        sizes = ((data_sets, 1, 1), (data_sets, 5, 1), (data_sets, 5, draws))
        return sum(s * rng.normal(size=size) for s, size in zip(spreads, sizes, strict=True))

    for _ in range(150):
        low, high = predict(run(5, 4), Protocol(5, 6, data_drawn=True), rng).interval
        inside += low <= run(1, 6).mean() <= high
    assert 0.95 - 3 * math.sqrt(0.95 * 0.05 / 150) < inside / 150 < 1
