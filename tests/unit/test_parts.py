"""A job gets the keys of an experiment on which it depends, and can read no other."""

import json

import numpy as np
import pytest

from configured import configured
from sources.einarsson_2018.analyses import weights_and_noise
from study.configuration.experiment import SHARED, Experiment, data_path
from study.configuration.kinds import SECTIONS
from study.jobs.files import write_json


def part(experiment, section, name):
    return Experiment.from_json(experiment.entry_json(section, name))


def test_a_job_cannot_read_a_key_on_which_it_does_not_depend():
    experiment = configured()[1]["einarsson_logistic"]
    job = part(experiment, "analyses", "weights_and_noise")
    assert job.draws == "fresh" and job.divisions is None
    assert job.folds is None and job.repetitions == "simulations"
    for read in (
        lambda: job.recommends,
        lambda: job.claims,
        lambda: "sizes" in job.values,
        lambda: job.claims,
        lambda: job.plain().values.get("title"),
    ):
        with pytest.raises(LookupError, match="but does not depend on it"):
            read()
    few = Experiment.from_json(experiment.to_json("methods", "folds"))
    assert few.values.get("folds") is None and list(few.methods) == list(experiment.methods)
    with pytest.raises(LookupError, match="'draws'"):
        few.values.get("draws")
    assert Experiment.from_json(experiment.to_json()).values == experiment.values


def test_rows_of_a_training_fold_are_not_counted_without_knowing_the_subsets():
    """A guarantee for all 50 rows, where a fold trains on 40, was stated for too many."""
    experiment = configured()[1]["veldhuizen_file"]
    cell = next(cell for cell in experiment.cells() if cell.train_size == 50)
    keys = ("datasets", "methods", "sweeps", "folds")
    assert Experiment.from_json(experiment.to_json(*keys, "subsets")).trained_rows(cell) == 40
    with pytest.raises(LookupError, match="'subsets'"):
        Experiment.from_json(experiment.to_json(*keys)).trained_rows(cell)


def test_a_key_that_jobs_share_changes_what_every_entry_depends_on():
    """Including keys that the experiment does not have yet, and a reading's own."""
    known = configured()[1]
    for name in ("einarsson_logistic", "patton__draws_shared"):
        experiment = known[name]
        for section in SECTIONS:
            for entry in experiment.section(section):
                before = experiment.entry_json(section, entry)
                for key in SHARED:
                    changed = Experiment.from_json(experiment.to_json())
                    changed.values[key] = "changed"
                    assert changed.entry_json(section, entry) != before
    reading = known["patton__draws_shared"]
    for section in SECTIONS:
        for entry in reading.section(section):
            assert part(reading, section, entry).axis() == "patton"


@pytest.mark.parametrize("draws", ["fresh", "own"])
def test_noise_of_every_cell_is_new_where_draws_are_fresh(draws, tmp_path, monkeypatch):
    """Figure 4.17 shows the noise of one simulation. Its vectors were one draw, rescaled."""
    experiment = configured()[1]["einarsson_logistic"]
    experiment = Experiment(experiment.name, experiment.values | {"draws": draws})
    monkeypatch.chdir(tmp_path)
    job, d = part(experiment, "analyses", "weights_and_noise"), 64
    spec = job.analyses["weights_and_noise"]
    write_json(data_path("mnist_4_9", "json"), {"bound": 1.0, "columns": list(range(d))})
    arrays = {"weights": np.zeros((1, 1, d + 1)), "gradient_norm": np.zeros((1, 1))}
    np.savez("fit.npz", status=np.full((1, 1), "ok"), **arrays)
    fits = dict.fromkeys(job.entry_cells(spec), "fit.npz")
    weights_and_noise(job, spec, fits, 1, "out.npz")
    with np.load("out.npz") as result:
        vectors = result["noise"].reshape(-1, d)
    assert len(vectors) == 3 * len({cell.epsilon for cell in fits})
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = np.abs(unit @ unit.T)[np.triu_indices(len(unit), 1)]
    if draws == "fresh":
        assert alike.max() < 0.7  # 64 columns: a standard deviation of 1/8
    else:
        assert alike.min() > 1 - 1e-9
    assert json.loads(experiment.entry_json("analyses", "weights_and_noise"))["draws"] == draws
