"""A release and the statement about it get the same arguments."""

import csv
import json
import math
import re
import sys
from functools import cache
from unittest import mock

import numpy as np
import pytest

from configured import configured
from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from dp_privacy.errors import Refused
from jobs.guarantees import Guarantees
from study import arguments
from study.configuration.cell import Cell
from study.configuration.config import ConfigError
from study.configuration.experiment import data_path
from study.data import origins, readers
from study.data.prepared import Prepared
from study.jobs.files import read_json, write_json
from study.kept import Kept

# mechanism -> the noise parameter that its `reason` states, if it is not info["scale"]
STATES = {
    "laplace_l1": lambda info, keywords: info["scale"] * keywords["epsilon"],
    "lasso_output_perturbation": lambda info, keywords: info["scale"] * keywords["epsilon"],
    "posterior_sampling": lambda info, keywords: info["gamma"],
    "dp_distributed_lasso": lambda info, keywords: info["sigma"],
}
STATES_NONE = {"laplace_coordinates_sum"}  # nothing is proven about its noise

OVERLAYS = {"default": (), "real": ("real",)}


@cache
def configuration(overlay):
    """The widest simulations are cut from 10,000 columns to 300."""
    config, experiments, datasets = configured(*OVERLAYS[overlay])
    narrow = {
        name: entry.but(source=entry.source.but(columns=300))
        for name, entry in datasets.items()
        if (entry.source.columns or 0) > 1000
    }
    return config, experiments, datasets | narrow


@cache
def public_facts(dataset, overlay):
    return origins.public_facts(configuration(overlay)[2][dataset])


@cache
def cases():
    """(overlay, experiment, data set, private method) of some cells.

    They cover every data set, and each mechanism's settings, kinds of data set and kinds of experiment.
    """
    overlays, met = {}, set()
    for overlay in OVERLAYS:
        _, experiments, datasets = configuration(overlay)
        for name, experiment in experiments.items():
            for cell in experiment.cells():
                method = experiment.methods[cell.method]
                if not method.private:
                    continue
                mechanism, settings = method.mechanism, json.dumps(method.options)
                facts = datasets[cell.dataset].plain() | public_facts(cell.dataset, overlay)
                keys = "coordinate_bound", "labels", "premise", "unit"
                sort = [bool(facts.get(key)) for key in keys]
                new = {
                    (mechanism, settings, method.lambda_),
                    (mechanism, facts["bound"] == 1, *sort),
                    (mechanism, experiment.axis()),
                    (cell.dataset,),
                }
                if not new <= met:
                    overlays.setdefault((name, cell.dataset, cell.method), overlay)
                met |= new
    return [(overlay, *case) for case, overlay in overlays.items()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The prepared data sets that need no download, and public facts about the others."""
    from jobs import prepare

    folder = tmp_path_factory.mktemp("project")
    for overlay in OVERLAYS:
        _, experiments, datasets = configuration(overlay)
        for name in {name for experiment in experiments.values() for name in experiment.datasets}:
            data, meta = (folder / data_path(name, end) for end in ("npz", "json"))
            source = datasets[name].source
            if meta.exists():
                continue
            if source.sklearn or source.simulate:
                words = [
                    "--dataset",
                    name,
                    "--entry",
                    json.dumps(datasets[name].plain()),
                    "--seed",
                    1,
                ]
                words += ["--out-npz", data, "--out-json", meta]
                with mock.patch.object(sys, "argv", ["prepare", *map(str, words)]):
                    prepare.main()
                continue
            facts = origins.public_facts(datasets[name])
            if source.idx:  # 28 x 28 pixels: only the file states this size
                facts["columns"] = [f"pixel{k}" for k in range(784)]
            stated = {"unit": datasets[name].unit.plain() if datasets[name].unit else {}}
            stated["premises"] = [datasets[name].premise] if datasets[name].premise else []
            write_json(meta, facts | stated | {"private_rows": []})
    return folder


def rows(data, meta, size):
    """The data set's rows, or substitutes with its bounds and classes if it is not downloaded."""
    if data.exists():
        prepared = Prepared(data)
        return prepared.floats(np.arange(size) % len(prepared.y))
    rng = generator(1, "stand-in rows")
    X = rng.uniform(-1, 1, (size, len(meta["columns"])))
    largest = meta["bound"] / np.linalg.norm(X, axis=1).max()
    X *= min(largest, (meta.get("coordinate_bound") or math.inf) / np.abs(X).max())
    bounds = np.array(meta.get("column_bounds") or [math.inf] * X.shape[1])
    shares = [*(np.abs(X) / bounds).max(axis=0)]
    shares += [
        np.abs(X[:, block]).sum(axis=1).max() / bounds[block[0]]
        for block in meta.get("blocks") or []
    ]
    X /= max(1.0, *shares)
    classes = len(meta["labels"])
    signs = np.where(np.arange(size) % 2, -1, 1)
    return X, (np.arange(size) % classes if classes else signs).astype(np.int8)


@pytest.mark.slow
def test_the_noise_that_is_stated_is_the_noise_that_is_drawn(folder, monkeypatch):
    monkeypatch.chdir(folder)
    # The cost of group privacy takes seconds to compute, and does not affect the noise.
    monkeypatch.setattr("jobs.guarantees.of_group", lambda one, size: (one.epsilon, one.delta))
    for case in cases():
        stated_is_drawn(folder, *case)


def stated_is_drawn(folder, overlay, name, dataset, label):
    experiment = configuration(overlay)[1][name]
    mechanism = MECHANISMS[experiment.methods[label].mechanism]
    cells = experiment.cells(datasets=[dataset], methods=[label])
    # Published lambdas exist only for the sweeps' sizes; otherwise 100 rows suffice.
    fixed = experiment.methods[label].lambda_ == "published"
    size = min(cell.train_size for cell in cells) if fixed else 100
    meta = read_json(data_path(dataset, "json"))
    trained = experiment.trained_rows(cells[0]._replace(train_size=size))
    X, y = rows(folder / data_path(dataset), meta, trained)
    epsilon = cells[-1].epsilon
    # With an unusual epsilon, no reason contains the noise parameter by chance.
    cell = Cell(dataset, label, size, epsilon * (1.0937 if epsilon < 1 else 0.9137))
    lam = experiment.regularisation(experiment.methods[label], *cell[:1], *cell[2:])
    if lam.file:
        write_json(lam.file, {"lambda": 0.137, "private_rows": False})
    guarantees = Guarantees(experiment)
    _, _, stated = guarantees.of(cell)
    options, settings = arguments.of_cell(experiment, cell, guarantees.meta[dataset])
    keywords = arguments.of_release(
        mechanism, guarantees.meta[dataset], options, data_path(dataset), **settings
    )
    release = mechanism.release(X, y, rng=generator(2, "noise"), **keywords)
    numbers = [float(text) for text in re.findall(r"\d+\.?\d*(?:e[+-]?\d+)?", stated.reason)]
    expected = STATES.get(mechanism.name, lambda info, keywords: np.max(info["scale"]))
    drawn = float(expected(release.info, keywords))
    met = any(math.isclose(number, drawn, rel_tol=1e-5) for number in numbers)
    none = mechanism.name in STATES_NONE or (
        keywords.get("batches"),
        keywords.get("noise", "once"),
    ) == (
        "shuffled",
        "once",
    )
    assert met != none, (overlay, name, dataset, label, drawn, stated.reason)


def test_what_is_taken_as_public_reaches_the_reason(folder, monkeypatch):
    monkeypatch.chdir(folder)
    _, experiments, datasets = configuration("default")

    def reason(name, dataset, label):
        cell = experiments[name].cells(datasets=[dataset], methods=[label])[0]
        return Guarantees(experiments[name]).of(cell)[2].reason

    bounds = reason("patton", "wdbc_bounds", "functional_laplace")
    both = f", and {readers.BOTH}"
    assert bounds.endswith(f"; taken as public: {datasets['wdbc_bounds'].premise}{both}")
    centres = reason("wdbc", "wdbc_row_norm", "output_perturbation")
    assert centres.endswith(f"; taken as public: {datasets['wdbc_row_norm'].premise}{both}")
    chosen = reason("frontier_classification", "digits_4_9", "gaussian_objective_perturbation")
    assert "; taken as public: how many rows are of the two classes" in chosen
    bound_by_rows = reason("frontier_tuning", "fair_public", "gop_rule")
    assert f"; taken as public: {datasets['fair'].premise}" in bound_by_rows
    year = reason("frontier_classification", "randhie", "gaussian_objective_perturbation")
    assert "; a record is a person's year: for a person with at most 5 records, epsilon is" in year
    assert "taken as public" not in reason("cm08", "cm08_separable", "output_perturbation")


def test_spending_says_that_cells_do_not_compose(folder, monkeypatch, tmp_path):
    from jobs import guarantees, spending

    monkeypatch.chdir(folder)
    experiment = configuration("default")[1]["patton"].to_json()
    guarantees_path, out = str(tmp_path / "guarantees.csv"), str(tmp_path / "spending.csv")
    for job, words in (
        (guarantees, ["--experiment", experiment, "--out", guarantees_path]),
        (
            spending,
            [guarantees_path, "--out", out],
        ),
    ):
        monkeypatch.setattr(sys, "argv", [job.__name__, *words])
        job.main()
    with (tmp_path / "spending.csv").open(newline="") as handle:
        rows = {(row["dataset"], row["method"]): row for row in csv.DictReader(handle)}
    private = rows["wdbc_bounds", "functional_laplace"]
    assert private["cells"] == "7"
    assert private["cells_together"].startswith("no guarantee")
    assert rows["wdbc_bounds", "linear_regression"]["cells_together"] == ""


def test_the_breast_cancer_constants_describe_their_rows():
    """Each `premise` states how far the centring constants are from the columns' means."""
    from sklearn.datasets import load_breast_cancer

    datasets, data = configuration("default")[2], load_breast_cancer()

    def column(name):
        return data.data[:, list(data.feature_names).index(name)]

    def distances(dataset):
        constants = datasets[dataset].steps[0]["scale_by_constants"]
        return np.array(
            [
                abs(centre - column(name).mean()) / column(name).std()
                for name, (centre, _) in constants.items()
            ]
        )

    actual = distances("wdbc_row_norm")
    assert len(actual) == 30
    assert (actual <= 0.03).sum() == 15
    assert 0.3 < actual.max() <= 0.4
    actual = distances("v20_real_standardised")
    assert len(actual) == 5
    assert (actual <= 0.03).sum() == 2
    assert actual.max() <= 0.3
    for name, (low, high) in datasets["wdbc_bounds"].bounds.items():
        assert low <= column(name).min() <= column(name).max() <= high


def test_cells_that_share_unit_draws_give_the_minimiser_away(folder):
    """Two such cells suffice, without the seed, so guarantees do not compose."""
    X, y = Prepared(folder / data_path("wdbc_row_norm")).floats()
    mechanism = MECHANISMS["output_perturbation"]
    one, two = (
        mechanism.release(X, y, epsilon=epsilon, lam=0.1, rng=generator(3, "unit draws"))
        for epsilon in (0.1, 0.2)
    )
    minimiser = MECHANISMS["nonprivate"].release(X, y, lam=0.1).weights[0]
    assert np.linalg.norm(one.weights[0] - minimiser) > 1
    assert 2 * two.weights[0] - one.weights[0] == pytest.approx(minimiser, abs=1e-8)


def test_the_lists_above_name_used_mechanisms_only():
    used = {
        configuration(overlay)[1][name].methods[label].mechanism
        for overlay, name, _, label in cases()
    }
    assert used >= STATES_NONE
    assert set(STATES) <= used
    assert len(used) > 15


def test_facts_known_before_the_preparation_are_those_it_writes(folder):
    datasets = configuration("default")[2]
    seen = 0
    for name, entry in datasets.items():
        path = folder / data_path(name, "json")
        if not path.exists() or not (entry.source.sklearn or entry.source.simulate):
            continue
        facts, meta = origins.public_facts(entry), read_json(path)
        assert facts["bound"] == pytest.approx(meta["bound"])
        assert facts["coordinate_bound"] == meta["coordinate_bound"]
        for each in ("dp_gd", "functional_laplace"):
            assert MECHANISMS[each].of_data(facts) == MECHANISMS[each].of_data(meta)
        if entry.source.sklearn != "digits":
            assert len(facts["columns"]) == len(meta["columns"])
            seen += 1
    assert seen > 10


def test_settings_are_checked_once_with_the_bounds_of_their_own_data(monkeypatch, tmp_path):
    from study.configuration import accepted, experiment_checks

    _, experiments, datasets = configuration("default")
    bounds, asked, guarantee = set(), [], arguments.guarantee

    def ask(mechanism, meta, *rest, **cell):
        bounds.add((len(meta["columns"]), meta["bound"], meta["coordinate_bound"]))
        asked.append(mechanism.name)
        return guarantee(mechanism, meta, *rest, **cell)

    monkeypatch.setattr(arguments, "check", ask)
    monkeypatch.setattr(accepted, "KEPT", Kept(tmp_path / "accepted.json", most=500))
    for _ in range(2):
        experiment_checks.check(experiments["patton"], ValueError, datasets)
    assert bounds == {(31, float(np.hypot(np.sqrt(30), 1)), 1.0), (31, 1.0, None)}
    assert 100 < len(asked) == len(accepted.KEPT.values)
    # Other code may not accept the same settings.
    monkeypatch.setattr(accepted, "digest", lambda *modules: "other")
    experiment_checks.check(experiments["patton"], ValueError, datasets, runs=False)
    assert len(asked) == len(accepted.KEPT.values)
    experiment_checks.check(experiments["patton"], ValueError, datasets)
    assert len(asked) == len(accepted.KEPT.values) > 200


def test_settings_that_a_mechanism_refuses_are_refused_again(monkeypatch, tmp_path):
    from study.configuration import accepted, experiment_checks

    _, experiments, datasets = configuration("default")
    monkeypatch.setattr(accepted, "KEPT", Kept(tmp_path / "accepted.json", most=500))
    check = mock.Mock(side_effect=Refused("no"))
    monkeypatch.setattr(arguments, "check", check)
    for _ in range(2):
        with pytest.raises(ConfigError, match="no"):
            experiment_checks.check(
                experiments["patton"], lambda _, text: ConfigError(text), datasets
            )
    # A record's settings ran once, and need no mechanism that accepts them now.
    experiment_checks.check(experiments["patton"], ValueError, datasets, runs=False)
    assert check.call_count == 2
