"""Every claim about results fails on some random table of them: none is true whatever happens."""

import itertools
import json

import numpy as np
import pandas as pd

from checks import statements
from checks.results import Results
from configured import configured
from dp import metrics
from project import ROOT
from study.configuration.cell import Cell
from study.configuration.sources import experiment_files

# Kinds of checks that read single draws, another experiment or nothing, and the file of tests where each
# fails.
ELSEWHERE = {
    **dict.fromkeys(("bound_holds", "time_ratio", "lower_across"), "test_checks"),
    **dict.fromkeys(("never_lower", "least_loss", "minimiser_moves"), "test_chaudhuri_monteleoni"),
    **dict.fromkeys(("cost_falls", "degrades_less", "bound_ratio"), "test_chaudhuri_monteleoni"),
    **dict.fromkeys(("lambda_falls_with_size", "noise_law"), "test_einarsson_checks"),
    **dict.fromkeys(("near_in_single_runs", "equal_rows"), "test_patton_hoseinpour"),
    **dict.fromkeys(("laplace_is_less", "falls_from"), "test_patton_hoseinpour"),
    "printed_ratio": "test_veldhuizen",
}
TABLES = 6


def rows_of(checks):
    """The rows that checks of tables select, one for each combination of the values that they name."""
    selected = [
        place
        for check in checks
        for place in (check.options.get(key) for key in ("where", "lower", "higher"))
        if isinstance(place, dict)
    ]
    for place in selected:
        values = [value if isinstance(value, list) else [value] for value in place.values()]
        for combination in itertools.product(*values):
            yield dict(zip(place, combination, strict=True))


def made(experiment, checks, seed):
    """Results with random errors and intervals in every cell, and random tables."""
    cells = pd.DataFrame(experiment.cells(), columns=Cell._fields)
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.05, 0.95, len(cells))
    half = rng.uniform(1e-4, 1e-3, len(cells))
    columns = {"error_sd": values / 10, "error_sd_folds": values / 10, "status": "ok"}
    columns |= {"folds": 5, "restarts": 1, "data_sets": 1}
    columns["options"] = [json.dumps({"batch": value}) for value in values]
    for name in metrics.ALL:
        ends = (values, values - half, values + half)
        columns |= dict(zip((f"{name}{end}" for end in metrics.ENDS), ends, strict=True))
    results = Results(experiment, cells.assign(**columns))
    results.printed = []
    table = pd.DataFrame(rows_of(checks)).drop_duplicates(ignore_index=True)
    for column in {check.options.get("column") for check in checks} - {None}:
        table[column] = rng.uniform(0, 1000, len(table))
    results.named = lambda analysis, name: table
    return results


def claims():
    experiments = configured("real")[1]
    for name in experiment_files():
        experiment = experiments.get(name)
        if experiment is None:
            continue
        for claim, entry in experiment.claims.items():
            kinds = {check.kind for check in entry.checks or ()}
            if kinds and kinds.isdisjoint(ELSEWHERE):
                yield claim, experiment, entry


def test_every_claim_fails_on_some_random_table(tmp_path, monkeypatch):
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)  # where no results are
    for claim, experiment, entry in claims():
        outcomes = (
            statements.join([statements.run(results, check) for check in entry.checks])
            for results in (made(experiment, entry.checks, seed) for seed in range(TABLES))
        )
        assert any(outcome.holds is False for outcome in outcomes), claim
