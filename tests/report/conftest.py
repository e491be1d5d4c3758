"""Fixtures for a small, hand-made run that lacks the tuning curve's file."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from checks import statements
from checks.published import COLUMNS, compare, judged
from checks.results import Results
from configured import changed
from reporting import recommendations
from reporting.collect import Gathered
from study import facts, paths
from study.configuration.experiment import data_path
from study.jobs.files import write_csv, write_json

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "cm08": {
        "restarts": 4,
        "sweeps": {
            "learning": {"train_sizes": [1000, 14000], "epsilons": [0.1]},
            "epsilon": {"train_sizes": [10000], "epsilons": [0.01, 0.1, 0.2]},
            "table": {"train_sizes": [14000], "epsilons": [0.01, 0.1]},
        },
    }
}


def write_cell(experiment, cell, rng):
    """Write a run file whose error falls as epsilon and the training size grow."""
    epsilon = min(cell.epsilon, 100)
    error = 0.5 / (1 + epsilon * cell.train_size / 300)
    rows = [
        (fold, restart, error * (1 + 0.05 * rng.standard_normal()), error / 10, 1e-10, "ok")
        for fold in range(experiment.folds)
        for restart in range(experiment.restarts)
    ]
    columns = ("fold", "restart", "error", "excess_risk", "gradient_norm", "status")
    write_csv(experiment.run_path(cell), columns, rows)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Working folder with only the project's code and configuration."""
    for name in ("config", "scripts", "workflow"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def experiment(project):
    """cm08 at toy size, with every file that its report needs except results.csv."""
    experiment = changed("cm08", **SETTINGS["cm08"])["cm08"]
    rng = np.random.default_rng(0)
    for cell in experiment.cells():
        write_cell(experiment, cell, rng)
    for dataset in experiment.datasets:
        meta = {"rows": 17500, "columns": list("abcdefghij"), "bound": 1.0}
        write_json(
            data_path(dataset, "json"),
            meta | {"source": {"simulate": "separable"}, "private_rows": []},
        )
        tuned = {"lambda": 0.01, "ties": [0.01], "error": 0.05}
        write_json(experiment.tuned_path(dataset, "json"), tuned)
        rows = [(0.001, 0.06, 0.01, 0, "ok"), (0.01, 0.05, 0.01, 1, "ok")]
        columns = ("lambda", "error_mean", "error_sd_folds", "best", "status")
        write_csv(experiment.tuned_path(dataset), columns, rows)
    return experiment


@pytest.fixture
def decided(experiment):
    """Experiment with results.csv, published.csv, claims.csv and defects.csv."""
    source, results = facts.read(experiment.source), Results(experiment)
    frame = Gathered(experiment, {}).frame
    frame.to_csv(paths.CELLS(experiment=experiment.name), index=False)
    results.printed = list(compare(results, source, experiment.published, {}))
    tables = {"published": (COLUMNS, judged(experiment, source, results.printed))}
    for section in statements.SECTIONS:
        rows = statements.decide(results, source, section, {})
        tables[section] = (statements.COLUMNS, rows)
    for section, (columns, rows) in tables.items():
        path = paths.VERDICTS(experiment=experiment.name, section=section)
        write_csv(path, columns, ([row.get(name) for name in columns] for row in rows))
    return experiment


@pytest.fixture
def browser():
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    return path


def answer(method, share, **further):
    row = dict.fromkeys(recommendations.COLUMNS, "") | {
        **{"regime": "nothing tuned", "task": "classes", "experiment": "e", "train_size": 1000},
        **{"epsilon": "1", "adjacency": "replace-one", "standing": "not beaten"},
        **{"method": method, "title": f"The {method}", "mechanism": method, "setting": "rule"},
        "options": '{"lambda": "rule"}',
        **{"kept": share, "kept_low": share - 0.02, "kept_high": share + 0.02},
        **{"behind": 0.9 - share, "behind_high": 0.91 - share, "metric": "log_loss"},
    }
    return row | further
