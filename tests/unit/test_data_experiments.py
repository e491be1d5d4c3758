"""Tests experiments that only describe data, and data that a mechanism cannot use."""

import pytest
import yaml

from configured import configured
from study import facts
from study.configuration import config, sources
from study.configuration.config import ConfigError, read_yaml
from study.data import origins


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    """Function that loads an experiment with given values."""

    def load(**values):
        (tmp_path / "study.yaml").write_text(yaml.safe_dump({"title": "A study"} | values))
        monkeypatch.setattr(sources, "experiment_files", lambda: {"study": tmp_path / "study.yaml"})
        monkeypatch.setattr(facts, "files", dict)
        return config.load({"seed": 1, "experiments": ["study"]})[1]["study"]

    return load


SWEEP = {"main": {"train_sizes": [100], "epsilons": [1]}}
CELLS = {"folds": 5, "restarts": 2, "lambda": 0.1, "methods": {"nonprivate": {}}, "sweeps": SWEEP}


def test_an_experiment_without_cells(experiment):
    actual = experiment(datasets=["digits"])
    assert actual.cells() == [] and actual.methods == {} and actual.sweeps == {}


@pytest.mark.parametrize("missing", ["folds", "restarts", "lambda", "methods", "sweeps"])
def test_an_experiment_with_cells_needs_all_that_they_need(experiment, missing):
    assert experiment(datasets=["digits_4_9"], **CELLS).cells()
    rest = {key: value for key, value in CELLS.items() if key != missing}
    with pytest.raises(ConfigError, match=f"'{missing}' (is missing|and 'simulations')"):
        experiment(datasets=["digits_4_9"], **rest)


def test_more_than_two_classes_are_refused_before_anything_runs(experiment):
    with pytest.raises(ConfigError, match="nonprivate learns two classes, but digits has more"):
        experiment(datasets=["digits"], **CELLS)


def test_training_sizes_are_checked_against_the_rows_of_two_classes(experiment):
    sweep = {"main": {"train_sizes": [300], "epsilons": [1]}}
    with pytest.raises(ConfigError, match="300 is more than the 288 training rows of digits_4_9"):
        experiment(datasets=["digits_4_9"], **CELLS | {"sweeps": sweep})


def downloads(*overlays):
    values, experiments, datasets = configured(*overlays)
    files = read_yaml("config/files.yaml")
    carried = {
        f"data/raw/{name}"
        for name, file in files.items()
        if file["urls"][0].startswith("installed:")
    }
    needed = {}
    for name in values.experiments:
        sources = [datasets[dataset].source for dataset in experiments[name].datasets]
        needed[name] = {
            p for source in sources for p in origins.source_files(source).values()
        } - carried
    return needed


@pytest.mark.slow
def test_the_default_downloads_mnist_alone_and_smoke_nothing():
    images = "data/raw/train-images-idx3-ubyte.gz"
    needed = {name: files for name, files in downloads().items() if files}
    assert set(needed) == {f"einarsson_{part}" for part in ("data", "logistic", "sgd", "lasso")}
    assert all(images in files and len(files) == 4 for files in needed.values())
    assert images in downloads("real", "full")["einarsson_data"]
    assert not any(downloads("smoke").values())
