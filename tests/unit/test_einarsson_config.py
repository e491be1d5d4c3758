import csv
import math
from pathlib import Path

import pytest
from snakemake.utils import update_config

from configured import changed, configured
from study.configuration.config import ConfigError, load, read_yaml
from study.configuration.sources import concerned

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


def resolved(*overlays):
    return configured(*overlays)[1]


def einarssons(*overlays):
    """The experiments of this source alone, which load faster than all."""
    files = [ROOT / f"config/{name}.yaml" for name in ("config", *overlays)]
    merged = {}
    for file in files:
        update_config(merged, read_yaml(file))
    names = {f"einarsson_{name}" for name in ("logistic", "sgd", "lasso")}
    return load(merged, [*files[1:], files[0]], only=concerned(names))[1]


def test_published_lambdas_are_those_of_the_noise_variances():
    """Laplace noise of scale 2/(N lambda epsilon) has variance 2 (2/(N lambda epsilon))^2."""
    table = resolved()["einarsson_logistic"].lambda_published
    with Path("config/sources/einarsson_2018/table_a1.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert table.train_sizes == [int(row["n_train"]) for row in rows]
    for row, lam in zip(rows, table.lambdas, strict=True):
        n, variance = int(row["n_train"]), float(row["noise_variance_eps_0.0005"])
        assert lam == pytest.approx(2 / (n * 0.0005 * math.sqrt(variance / 2)), rel=0.02)
        assert 2 * round(0.5 / lam) == pytest.approx(1 / lam, rel=1e-9)  # C = 1/lambda is even


def test_full_configuration_is_the_published_protocol():
    facts = read_yaml("config/sources/einarsson_2018/source.yaml")["settings"]
    actual = einarssons("real", "full")
    sizes = list(range(235, 11751, 235))
    logistic, sgd, lasso = (actual[f"einarsson_{name}"] for name in ("logistic", "sgd", "lasso"))
    assert logistic.simulations == facts["simulations"]["logistic"]
    assert logistic.sweeps["as_run"].train_sizes == sizes
    assert logistic.sweeps["as_run"].epsilons == facts["logistic"]["epsilons"]
    assert sgd.simulations == facts["simulations"]["sgd"]
    assert sgd.sweeps["tuned"].train_sizes == sizes
    grid = sgd.searches["dp_sgd"].grid
    assert sorted(grid["batch"]) == sorted(facts["sgd"]["batch_grid"])
    assert grid["batch"] == sorted(grid["batch"], reverse=True)  # ties go to the larger batch
    assert sorted(grid["lambda"]) == sorted(facts["sgd"]["lambda_grid"])
    study = facts["sgd"]["dimension_study"]
    shown = sgd.sweeps["dimensions"].methods
    dimensions = {sgd.methods[m].options.get("dimensions", 784) for m in shown}
    assert dimensions == set(study["dimensions"])
    assert {sgd.methods[m].options["batch"] for m in shown} == {study["batch"]}
    assert {sgd.methods[m].lambda_ for m in shown} == {study["lambda"]}
    assert sgd.searches["dp_sgd_as_run"].grid == grid
    assert sgd.sweeps["as_run"].train_sizes == sizes
    for sweep, key in (("pca", "lasso_pca"), ("pixels", "lasso"), ("centres", "lasso")):
        for method in lasso.sweeps[sweep].methods:
            assert lasso.split(method) == f"--simulations {facts['simulations'][key]}"
    grids = {"pca_distributed": "grid_pca", "pixels_distributed": "grid_no_pca"}
    for search, key in grids.items():
        found_grid = lasso.searches[search].grid
        assert sorted(found_grid["lambda"]) == sorted(facts["lasso"][key]["lambda"])
        assert sorted(found_grid["rate"]) == sorted(facts["lasso"][key]["eta"])
    assert len(lasso.sweeps["pca"].train_sizes) == 105
    assert len(lasso.sweeps["pixels"].train_sizes) == 53


def test_settings_table_says_what_is_published_and_how_thin_the_grids_are():
    import pandas as pd

    from sources.einarsson_2018.tables import SETTINGS, settings

    results = {}
    for overlays in ((), ("real",)):
        for name, experiment in resolved(*overlays).items():
            if not name.startswith("einarsson") or name == "einarsson_data" or "__" in name:
                continue
            spec = experiment.tables["settings"]
            cells = experiment.entry_cells(spec)
            assert len(cells) == len(experiment.cells())
            frame = pd.DataFrame(cells).assign(folds=8)
            columns, rows = settings(experiment, spec, frame)
            assert columns == SETTINGS
            for row in rows:
                row = dict(zip(columns, row, strict=True))
                results[overlays and overlays[-1], row["method"]] = row
    grid = results[(), "dp_sgd"]
    assert grid["lambda"] == "cross-validated for every size and epsilon"
    assert grid["grid"] == "batch 100 50 10; lambda 0.1 0.01 1e-05"
    assert grid["of_the_published_grid"] == "batch 3 of 15; lambda 3 of 9"
    grid = results["real", "dp_sgd"]
    assert (grid["sizes"], grid["search_simulations"]) == (8, 4)
    assert results["real", "sgd"]["lambda"] == "cross-validated for every size"
    assert results["real", "dp_sgd_d15"]["lambda"] == "fixed: 0.0001"
    assert results["real", "nonprivate_sum"]["lambda"] == "published, one for every size"
    for method in ("dp_sgd", "pca_central", "pixels_central"):
        parts = results["real", method]["of_the_published_grid"].split("; ")
        assert all(a == b for a, b in (part.split()[1::2] for part in parts)), parts
    # a thinned grid has only values of the published one
    assert not any("more" in row["of_the_published_grid"] for row in results.values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"methods": {"laplace_l1": {"simulations": 5}}},
            "methods.laplace_l1: cannot have simulations of its own: it shares its fit",
        ),
        ({"folds": 5}, "exactly one of the keys 'folds' and 'simulations'"),
        (
            {"sweeps": {"as_run": {"train_sizes": [11792]}}},
            "11792 is more than the 11791 training rows",
        ),
        (
            {"methods": {"nonprivate_sum": {"lambda": "searched", "search": "sum"}}},
            "no search 'sum'",
        ),
        (
            {"methods": {"nonprivate_sum": {"lambda": 0.1, "search": "sum_loss"}}},
            "'search' goes together with 'lambda: searched' and with 'lambda: selected'",
        ),
        ({"searches": {"sum_loss": {"grid": {"batch": [1]}}}}, "no option 'batch'"),
        (
            {"searches": {"sum_loss": {"grid": "published", "published": None}}},
            "sum_loss.grid: is 'published', but 'published' does not say where its values are",
        ),
        (
            {"searches": {"sum_loss": {"published": {"lambda": "settings/sgd/grid"}}}},
            "searches.sum_loss.published.lambda: settings/sgd has no 'grid'",
        ),
        (
            {"searches": {"sum_loss": {"published": {"simulations": "settings/sgd/tie_rule"}}}},
            "published.simulations: must be a whole number, not text",
        ),
        ({"lambda_published": {"lambdas": [0.1]}}, "50 train_sizes have 1 lambdas"),
        (
            {"lambda": "published", "sweeps": {"proven_sizes": {"train_sizes": [100]}}},
            "none for 100 rows",
        ),
    ],
)
def test_mistakes_are_told_in_a_sentence(changes, message):
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        changed("einarsson_logistic", **changes)
