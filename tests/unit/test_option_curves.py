import matplotlib.pyplot as plt
import numpy as np
import pytest

from configured import configured
from plots.option_curves import option_curve
from study import paths
from study.configuration.resolve import experiment as resolved
from study.configuration.validation import ConfigError, in_file
from study.jobs.files import write_csv
from study.jobs.summary import results_frame

FAMILY = {"mechanism": "dp_sgd", "vary": {"batch": [1, 10, 100]}, "title": "noisy steps"}
KEYS = ("dataset", "method", "train_size", "epsilon", "lambda", "folds", "restarts")
NUMBERS = ("error_mean", "error_low", "error_high", "seconds")


@pytest.fixture(scope="module")
def datasets():
    return configured()[2]


@pytest.fixture
def drawn(datasets, tmp_path, monkeypatch):
    """Function that draws a figure from made-up results and returns both."""

    def draw(methods, epsilons=(1,), **options):
        figure = {"kind": "option_curve", "title": "A title", "sweep": "main", "options": options}
        value = {
            "title": "A study",
            "datasets": ["wdbc_row_norm"],
            "folds": 5,
            "restarts": 2,
            "lambda": 0.01,
            "methods": methods,
            "sweeps": {"main": {"train_sizes": [100, 400], "epsilons": list(epsilons)}},
            "figures": {"figure": figure},
        }
        experiment = resolved("study", value, in_file("study.yaml"), datasets)
        monkeypatch.chdir(tmp_path)
        varied = [name for name in experiment.varied() if name != "lambda"]
        rng, rows = np.random.default_rng(3), []
        for cell in experiment.cells():
            mean = rng.uniform(0.2, 0.4)
            settings = experiment.methods[cell.method].options
            own = {None: "null"}
            values = [own.get(settings.get(name, ""), settings.get(name, "")) for name in varied]
            lam = experiment.methods[cell.method].lambda_
            rows.append(
                [*cell, lam, 5, 2, mean, mean - 0.1, mean + 0.1, rng.uniform(1, 2), *values]
            )
        path = tmp_path / paths.CELLS(experiment="study")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_csv(path, (*KEYS, *NUMBERS, *varied), rows)
        spec = experiment.figures["figure"]
        frame = results_frame(experiment, experiment.entry_cells(spec))
        assert len(frame) == len(rows)
        return option_curve(experiment, spec, frame), frame

    yield draw
    plt.close("all")


def curves(axes):
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def labels(fig):
    return [text.get_text() for text in fig.legends[0].get_texts()]


def test_a_curve_per_remaining_combination(drawn):
    fig, frame = drawn({"sgd": FAMILY}, epsilons=(1, 10), along="batch", log_along=True)
    (axes,) = fig.axes
    names = [f"{n} rows, $\\varepsilon$ = {e}" for n in (100, 400) for e in (1, 10)]
    assert labels(fig) == names and axes.get_xscale() == "log"
    for name, (size, epsilon) in zip(
        names, [(100, 1), (100, 10), (400, 1), (400, 10)], strict=True
    ):
        rows = frame[(frame["train_size"] == size) & (frame["epsilon"] == epsilon)]
        line = curves(axes)[name]
        assert line.get_xdata().tolist() == [1, 10, 100]
        np.testing.assert_array_equal(line.get_ydata(), rows["error_mean"])
    looks = {(c.get_color(), c.get_marker()) for c in curves(axes).values()}
    assert len(looks) == 4
    band = axes.collections[0].get_paths()[0].vertices
    first = frame[(frame["train_size"] == 100) & (frame["epsilon"] == 1)]
    assert band[:, 1].min() == pytest.approx(first["error_low"].min())
    assert band[:, 1].max() == pytest.approx(first["error_high"].max())


def test_null_stands_beyond_the_numbers_and_others_are_level_lines(drawn):
    methods = {
        "sgd": {"mechanism": "dp_sgd", "vary": {"dimensions": [4, None, 16]}},
        "output_perturbation": {"title": "no dimensions"},
    }
    fig, frame = drawn(methods, along="dimensions", rows="train_size", none="all", log_along=True)
    assert labels(fig) == ["SGD, norm-Laplace noise", "no dimensions"]
    assert len(fig.axes) == 2
    for axes, size in zip(fig.axes, (100, 400), strict=True):
        rows = frame[frame["train_size"] == size].set_index("method")["error_mean"]
        line = curves(axes)["SGD, norm-Laplace noise"]
        assert line.get_xdata().tolist() == [4, 16]
        expected = [rows["sgd_dimensions4"], rows["sgd_dimensions16"]]
        np.testing.assert_array_equal(line.get_ydata(), expected)
        (beyond,) = (bar.lines[0] for bar in axes.containers)
        assert beyond.get_xdata().tolist() == [64]
        assert beyond.get_ydata().tolist() == [rows["sgd_dimensionsnull"]]
        level = curves(axes)["no dimensions"].get_ydata()
        assert set(level) == {rows["output_perturbation"]}
    assert [tick.get_text() for tick in fig.axes[-1].get_xticklabels()] == ["4", "16", "all"]


def test_words_and_other_columns(drawn):
    family = {"mechanism": "dp_sgd", "vary": {"loss": ["logistic", "huber"]}}
    fig, frame = drawn({"sgd": family}, along="loss", rows="train_size", columns=["seconds"])
    for axes, size in zip(fig.axes, (100, 400), strict=True):
        (bars,) = axes.containers
        expected = frame.loc[frame["train_size"] == size, "seconds"]
        np.testing.assert_array_equal(bars.lines[0].get_ydata(), expected)
        assert axes.get_ylabel().endswith("seconds")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["logistic", "huber"]


def test_options_are_curves_along_the_training_size(drawn):
    fig, frame = drawn(
        {"sgd": FAMILY}, along="train_size", columns=["error_mean", "seconds"], rows="epsilon"
    )
    assert labels(fig) == ["batch = 1", "batch = 10", "batch = 100"]
    for axes, column in zip(fig.axes, ("error_mean", "seconds"), strict=True):
        line = curves(axes)["batch = 10"]
        assert line.get_xdata().tolist() == [100, 400]
        expected = frame.loc[frame["batch"] == "10", column]
        np.testing.assert_array_equal(line.get_ydata(), expected)


def test_lambda_is_an_axis_too(drawn):
    family = {"mechanism": "output_perturbation", "vary": {"lambda": [0.1, 0.001]}}
    fig, frame = drawn({"f": family}, along="lambda", rows="train_size", log_along=True)
    (line,) = curves(fig.axes[0]).values()
    assert line.get_xdata().tolist() == [0.001, 0.1]
    rows = frame[frame["train_size"] == 100].sort_values("lambda")
    np.testing.assert_array_equal(line.get_ydata(), rows["error_mean"])


def test_families_with_a_title_are_named_by_it(drawn):
    methods = {"a": FAMILY, "b": FAMILY | {"lambda": 0.5}, "c": FAMILY | {"title": "other"}}
    methods["c"] = methods["c"] | {"options": {"loss": "huber"}}
    fig, _ = drawn(methods, along="batch", rows="train_size")
    assert labels(fig) == ["noisy steps", "noisy steps (b_batch1)", "other"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"along": "bach"}, "options.along: no varied option 'bach'; did you mean 'batch'"),
        ({}, "options.along: no varied option None"),
        ({"along": "batch", "rows": "batch"}, "options.rows: is the same as 'along'"),
        ({"along": "batch", "rows": "epsilo"}, "no column 'epsilo'; did you mean 'epsilon'"),
        ({"along": "batch", "columns": []}, "options.columns: must be names of columns"),
    ],
)
def test_mistakes_are_told_in_a_sentence(drawn, options, message):
    with pytest.raises(ConfigError, match=message):
        drawn({"sgd": FAMILY}, **options)


def test_a_column_that_is_no_number_is_refused(drawn):
    with pytest.raises(ValueError, match=r"has no numbers 'method' \(it has: .*error_mean"):
        drawn({"sgd": FAMILY}, along="batch", columns=["method"])
