import csv
import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from analyses import timing as analysis
from checks.results import Missing, Results
from configured import changed, entry
from sources.veldhuizen_2020 import checks
from sources.veldhuizen_2020.figures import folds, plane, printed_curve
from study.configuration.config import ConfigError
from study.configuration.experiment import Experiment

MAPPING = {"table": "table_2", "rows": {"real": "v20_real"}, "columns": {}}


def loaded(**settings):
    return changed("veldhuizen", **settings)["veldhuizen"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tables": {"table_2": {"sweep": ["epsilon_real", "eps"]}}}, "no sweep 'eps'"),
        ({"figures": {"figure_4": {"datasets": ["v20_separable_2d"]}}}, "no data set"),
        ({"figures": {"figure_1": {"options": {"published": MAPPING}}}}, "no option 'published'"),
        ({"sweeps": {"epsilon_real": {"train_sizes": [453]}}}, "more than the 452 training rows"),
    ],
)
def test_what_cannot_run_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        loaded(**settings)


def simulated(path, columns=2, **source):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((60, columns))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    np.savez(path, X=X, y=np.where(X[:, 0] > 0, 1, -1), separator=np.eye(columns)[0])
    meta = {"source": source, "rows": 60, "bound": 1.0}
    path.with_suffix(".json").write_text(json.dumps(meta))
    return str(path)


def test_timing_measures_every_procedure_once_per_repeat(tmp_path):
    methods = {
        "nonprivate": {"mechanism": "nonprivate", "private": False},
        "lasso": {"mechanism": "lasso_output_perturbation", "private": True},
        "tilted": {"mechanism": "objective_perturbation_cm08", "private": True},
    }
    for method in methods.values():
        method |= {"options": {}, "delta": 0, "lambda": 0.1}
    experiment = Experiment("v", {"methods": methods, "folds": 3})
    spec = entry(options={"epsilon": 1, "train_size": 40, "restarts": 7, "repeats": 2})
    paths = {"ours": simulated(tmp_path / "ours.npz", 3, simulate="separable")}
    out = tmp_path / "timing.csv"
    analysis.timing(experiment, spec, paths, 1, out)
    with out.open(newline="") as handle:
        actual = list(csv.DictReader(handle))
    measured = [(row["procedure"], int(row["draws"]), int(row["repeat"])) for row in actual]
    single = (
        "plain",
        "scikit_learn",
        "lasso",
        "tilted",
        "general_purpose",
        "general_purpose_plain",
    )
    expected = {(name, 1, k) for name in single for k in (0, 1)}
    expected |= {(name, 7, k) for name in ("lasso", "tilted") for k in (0, 1)}
    assert len(measured) == len(set(measured)) and set(measured) == expected
    assert all(float(row["seconds"]) > 0 for row in actual)


def test_timing_runs_on_one_thread():
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    with analysis.one_thread():
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}


def test_the_plane_shows_separator_margin_and_band(tmp_path):
    path = simulated(
        tmp_path / "a.npz", simulate="unseparable", margin=0.05, band=0.2, flip_probability=0.5
    )
    fig = plane(None, entry(title="plane"), {"a": path})
    labels = fig.axes[0].get_legend_handles_labels()[1]
    assert labels[:4] == [
        "band of 0.2: flipped with probability 0.5",
        "separator",
        "margin of 0.05",
        "y = +1",
    ]
    plt.close(fig)


@pytest.mark.parametrize("columns, count", [(3, 1), (2, 2)])
def test_the_plane_refuses_what_it_cannot_draw(tmp_path, columns, count):
    path = simulated(tmp_path / "a.npz", columns, simulate="separable")
    with pytest.raises(ValueError, match="the plane"):
        plane(None, entry(title="plane"), {str(k): path for k in range(count)})


def test_the_scheme_has_the_sizes_that_the_folds_have(tmp_path):
    from dp.rows import split_folds

    path = simulated(tmp_path / "a.npz", simulate="separable")
    fig = folds(Experiment("v", {"folds": 7}), entry(title="folds"), {"a": path})
    words = [text.get_text() for text in fig.axes[0].texts]
    sizes = [len(test) for _, test in split_folds(60, 7, np.random.default_rng(1))]
    of = [["test" if part == fold else "train" for part in range(7)] for fold in range(7)]
    assert words == [f"{word}\n{n}" for row in of for word, n in zip(row, sizes, strict=True)]
    plt.close(fig)


def test_printed_errors_are_crosses_beside_the_curve_of_a_method_without_privacy(monkeypatch):
    experiment = changed("veldhuizen_file")["veldhuizen_file"]
    spec = experiment.figures["figure_6"]
    frame = pd.DataFrame(
        [
            {
                "dataset": "v20_real_file", "method": method, "train_size": size, "epsilon": 0.05,
                "error_mean": 0.4, "error_low": 0.3, "error_high": 0.5, "folds": 5, "restarts": 2,
                "data_sets": 1, "status": "ok",
            }
            for method in experiment.methods
            for size in (50, 495)
        ]
    )  # fmt: skip
    (axes,) = printed_curve(experiment, spec, frame).axes
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    # Those of 500 rows are where they belong, near the end of the curves.
    places = {(*line.get_xdata(), *line.get_ydata()) for line in crosses}
    assert places == {(50, 0.86), (500, 0.391), (500, 0.395), (500, 0.461)}
    shorter = frame[frame["train_size"] == 50]
    (axes,) = printed_curve(experiment, spec, shorter).axes
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    assert [(*line.get_xdata(), *line.get_ydata()) for line in crosses] == [(50, 0.86)]


@pytest.mark.parametrize(
    ("errors", "holds"), [((0.1, 0.2), True), ((0.19, 0.2), None), ((0.3, 0.2), False)]
)
def test_a_data_set_is_easier_for_every_method(errors, holds):
    rows = [
        {"dataset": name, "method": method, "train_size": 9, "epsilon": 1.0, "status": "ok"}
        | {"error_mean": error, "error_low": error - 0.01, "error_high": error + 0.01}
        for method, pair in (("one", (0.1, 0.3)), ("two", errors))
        for name, error in zip(("easy", "hard"), pair, strict=True)
    ]
    made = Results(Experiment("made", {}), pd.DataFrame(rows))
    options = {"methods": ["one", "two"], "easier": "easy", "harder": "hard"}
    assert checks.easier(made, **options).holds is holds
    with pytest.raises(Missing, match="three"):
        checks.easier(made, **options | {"methods": ["one", "three"]})


def test_printed_ratios_are_averaged(monkeypatch):
    printed = {"a": 8.0, "b": 2.0, "c": 1.0}
    monkeypatch.setattr(checks, "numbers", lambda results, *names: [printed[n] for n in names])
    options = {"numerators": ["a", "b"], "denominators": ["c", "c"]}  # 8 and 2 times, so 4 times
    assert checks.printed_ratio(None, **options, at_least=3, at_most=5).holds
    assert not checks.printed_ratio(None, **options, at_least=4.5, at_most=20).holds
    assert not checks.printed_ratio(None, **options, at_least=1, at_most=3.5).holds
