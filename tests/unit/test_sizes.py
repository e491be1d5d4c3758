"""Toy sizes are recognised, and titles and printed values follow the sizes that were run."""

import re
from pathlib import Path

import pandas as pd
import pytest

import configured
from plots import curves
from project import ROOT
from study.configuration import printed_values
from study.configuration.config import ConfigError, _over, load, read_yaml


def changed(name, **settings):
    return configured.changed(name, **settings)[name]


@pytest.mark.parametrize("overlays", [(), ("real",), ("real", "full")])
def test_no_run_that_counts_is_smaller_than_the_default(overlays):
    experiments = configured.configured(*overlays)[1]
    smaller = {name: e.smaller for name, e in experiments.items()}
    assert not any(smaller.values()), {
        name: sentences for name, sentences in smaller.items() if sentences
    }


def test_every_experiment_of_the_smoke_run_is_smaller_but_the_one_that_only_counts_digits():
    actual = configured.configured("smoke")[1]
    names = read_yaml(ROOT / "config/smoke.yaml")["experiments"]
    assert [n for n in names if not actual[n].values.get("smaller")] == ["einarsson_data"]
    assert "25 instead of 1,000 draws of the noise in a cell" in actual["cm08"].smaller


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"restarts": 39}, ["195 instead of 200 draws of the noise in a cell"]),
        ({"restarts": 400}, []),
        ({"folds": 10, "restarts": 20}, []),  # intervals are over folds
        (
            {"sweeps": {"learning": {"train_sizes": [100, 200, 300, 400, 450, 453, 454, 455, 99]}}},
            [],
        ),
        (
            {"sweeps": {"learning": {"train_sizes": {"from": 50, "to": 450, "step": 50}}}},
            ["450 instead of 455 training rows at most in the sweep learning"],
        ),
        ({"sweeps": {"learning": {"epsilons": [2]}}}, []),
        ({"title": "Another", "datasets": ["wdbc_clip"], "figures": None}, []),
    ],
)  # fmt: skip
def test_what_is_smaller(settings, said):
    if "datasets" in settings:
        settings |= {"tables": None, "figures": None}
    assert changed("wdbc", **settings).smaller == said


def test_searches_and_analyses_are_sizes_too():
    actual = changed("einarsson_logistic", searches={"sum_loss": {"grid": {"lambda": [0.5]}}})
    assert len(actual.smaller) == 1 and "fits in the search sum_loss" in actual.smaller[0]
    actual = changed("einarsson_logistic", simulations=6, restarts=40)
    assert actual.smaller == ["6 instead of 12 simulations"]
    actual = changed("veldhuizen", analyses={"timing": {"options": {"repeats": 1, "epsilon": 0.1}}})
    assert actual.smaller == ["1 instead of 9 as repeats of the analysis timing"]


def titled(title, name="cm08", section="figures", entry="figure_2c", **settings):
    settings = settings | {section: {entry: {"title": title}}}
    return changed(name, **settings).section(section)[entry].title


def test_titles_take_their_numbers_from_the_cells():
    assert titled("{train_size} rows") == "10,000 rows"
    epsilon = {"epsilon": {"train_sizes": [4000], "epsilons": [0.1, 1]}}
    both = "{train_size} rows, epsilon {epsilon}"
    assert titled(both, sweeps=epsilon) == "4,000 rows, epsilon 0.1 and 1"
    epsilon["epsilon"]["train_sizes"] = [2000, 4000, 8000]
    assert titled(both, sweeps=epsilon) == "2,000 to 8,000 rows, epsilon 0.1 and 1"
    # A figure's title may show an option of its analysis.
    assert titled("{train_size}", "hoseinpour", entry="loss") == "400"
    assert (
        titled(r"$R^{2}$, $\hat{train_size}$, $x_{a}$") == r"$R^{2}$, $\hat{train_size}$, $x_{a}$"
    )


def test_a_title_cannot_name_what_its_entry_does_not_have():
    with pytest.raises(
        ConfigError,
        match=r"figure_2c\.title: has no \{size\} to fill in \(valid: data, epsilon, train_size\)",
    ):
        titled("{size} rows")
    with pytest.raises(ConfigError, match=r"figures\.tuning\.title: has no \{train_size\}"):
        titled("{train_size} rows", entry="tuning")


def test_no_title_of_cells_spells_a_number_that_an_overlay_changes():
    fixed = re.compile(r"title: .*(\d[\d,]* (training )?rows|epsilon = [\d.]+|n = [\d,]+)")
    files = [*(ROOT / "config/experiments").glob("*.yaml"), ROOT / "config/real.yaml"]
    results = []
    for file in files:
        section = ""
        for line in file.read_text(encoding="utf-8").splitlines():
            section = (re.match(r"(?:    )?(\w+):", line) or [0, section])[1]
            if section in ("tables", "figures", "analyses") and fixed.search(line):
                results.append(f"{file.name}: {line.strip()}")
    assert not results


def frame(*cells):
    columns = ["dataset", "method", "train_size", "epsilon"]
    return pd.DataFrame(cells, columns=columns)


def test_a_printed_value_is_drawn_only_beside_cells_of_its_size():
    experiment = changed("veldhuizen")
    methods = ("lasso_output_perturbation", "objective_perturbation_cm08")
    marks = {}
    for size in (8000, 2000):
        cells = frame(*(("v20_separable", method, size, 0.1) for method in methods))
        names = {"v20_separable": "separable"}
        marks[size] = curves._printed(experiment, "table_2", cells, names, set(), "epsilon")
    assert {mark.curve for mark in marks[8000]} == set(methods) and marks[2000] == []


def test_printed_values_without_a_size_stand_beside_every_size():
    experiment = changed("hoseinpour")
    every = printed_values.values(experiment, "enhancement")
    assert every and every == printed_values.values(experiment, "enhancement", frame())


def test_the_table_of_printed_errors_leaves_other_sizes_empty():
    from sources.veldhuizen_2020.tables import COLUMNS, published_errors

    experiment = changed("cm08")
    spec = configured.entry(options={"published": "figure_1"})
    method = "output_perturbation"
    cells = frame(*(("cm08_separable", method, n, 0.1) for n in (4000, 14000)))
    rest = [
        c for c in COLUMNS if c not in cells and c not in ("published", "difference", "closest")
    ]
    _, rows = published_errors(experiment, spec, cells.assign(**dict.fromkeys(rest, 0.1)))
    at = {row.train_size: row for row in rows}
    assert at[4000].published != at[4000].published and at[4000].closest == ""
    assert at[14000].published > 0 and at[14000].closest == 1


def test_overlays_that_do_not_combine_say_so():
    files = [Path("config/real.yaml"), Path("config/smoke.yaml"), Path("config/config.yaml")]
    for order in (files, [files[1], files[0], files[2]]):
        config = {}
        for file in reversed(order):
            config = _over(config, read_yaml(ROOT / file))
        with pytest.raises(ConfigError, match=r"smoke\.yaml: does not combine with real\.yaml"):
            load(config, [ROOT / file for file in order])
