import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from analyses import designs, interval_coverage
from configured import entry
from plots import interval_curves as plots
from study.configuration.data_set_keys import DataSet
from study.data import units
from study.jobs.files import write_json
from tables import regressions as tables

BOUNDS = {"age": [18, 98], "visits": [-2, 6]}
SITES = ["north", "south", "west"]


@pytest.fixture
def simulated(tmp_path):
    """Function that analyses a simulated design at delta 1e-6, and returns rows by method."""

    def found(analysis, design, train_sizes, epsilon, **counts):
        options = {
            "design": design,
            "designs": [design],
            "train_sizes": train_sizes,
            "epsilons": [epsilon],
        }
        spec = entry(options=options | {"delta": 1e-6} | counts)
        analysis(SimpleNamespace(name="e"), spec, {}, 1, tmp_path / "out.csv")
        return pd.read_csv(tmp_path / "out.csv").set_index("method")

    return found


def survey(tmp_path, n=4000):
    """Write a prepared data set. Return two numeric columns, a one-hot category, labels and facts."""
    rng = np.random.default_rng(3)
    low, high = np.array(list(BOUNDS.values()), dtype=float).T
    raw = rng.uniform(low, high, (n, 2))
    levels = rng.choice(3, n, p=[0.5, 0.4, 0.1])[:, None] == np.arange(3)
    z = 0.03 * (raw[:, 0] - 50) - 0.4 * raw[:, 1] + levels @ [0.0, 0.8, -0.5] + 0.5
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-z)), 1, -1)
    scaled = np.column_stack([2 * (raw - low) / (high - low) - 1, levels, np.ones(n)])
    np.savez(tmp_path / "d.npz", X=scaled / 2, y=y)
    steps = {"scale_to_bounds": BOUNDS, "constant_feature": {}, "clip": {"radius": 2}}
    facts = {
        "dataset": "d",
        "columns": [*BOUNDS, *(f"site={level}" for level in SITES), "constant"],
        "categories": {"site": SITES},
        "steps": [{"step": name, "options": options} for name, options in steps.items()],
        "bound": 1.0,
    }
    write_json(tmp_path / "d.json", facts)
    return raw, levels, y, facts


def regression(tmp_path, **options):
    options = {"epsilons": [0.1, 8], "delta": 1e-6, "robust": True, "reference": {}} | options
    out, paths = tmp_path / "out.csv", {"d": tmp_path / "d.npz"}
    interval_coverage.regression(SimpleNamespace(name="e"), entry(options=options), paths, 1, out)
    return pd.read_csv(out).set_index(["method", "coefficient"])


@pytest.mark.parametrize("reference", ["north", "west"])
def test_coefficients_are_those_of_the_columns_as_they_came(tmp_path, reference):
    raw, levels, y, _ = survey(tmp_path, 20_000)
    actual = regression(tmp_path, reference={"site": reference})
    columns = [k for k, level in enumerate(SITES) if level != reference]
    expected = sm.Logit((y + 1) / 2, sm.add_constant(np.column_stack([raw, levels[:, columns]])))
    expected = expected.fit(disp=False)
    plain = actual.loc["without_privacy"]
    assert list(plain.index) == [*BOUNDS, *(f"site={SITES[k]}" for k in columns), "constant"]
    np.testing.assert_allclose(plain["estimate"], np.roll(expected.params, -1), rtol=1e-4)
    np.testing.assert_allclose(plain["standard_error"], np.roll(expected.bse, -1), rtol=1e-4)
    private = actual.loc["noise_aware"].query("epsilon == 8")
    distance = (private["estimate"] - plain["estimate"]) / private["standard_error"]
    assert distance.abs().max() < 3.5 and private["says"].isna().all()


def test_a_coefficient_of_which_a_release_tells_too_little_has_a_sentence(tmp_path):
    survey(tmp_path, 300)
    actual = regression(tmp_path, epsilons=[0.1]).loc["noise_aware"]
    silent = actual[actual["says"].notna()]
    assert len(silent) and (silent["says"] == interval_coverage.SILENT).all()
    numbers = ["standard_error", "low", "high", "p_value"]
    assert silent[numbers].isna().all(axis=None) and silent["estimate"].notna().all()
    columns, rows = tables.regression(None, None, tmp_path / "out.csv")
    shown = pd.DataFrame(rows, columns=columns)
    assert (shown["says"] == interval_coverage.SILENT).sum() == len(silent)
    assert shown.loc[shown["says"] != "", ["z", "p_value", "low"]].isna().all(axis=None)


def test_rows_that_are_shortened_have_no_units(tmp_path):
    *_, facts = survey(tmp_path, 50)
    facts["steps"][2]["options"]["radius"] = 1.9
    write_json(tmp_path / "d.json", facts)
    with pytest.raises(ValueError, match=r"radius 1.9 shortens rows.*\{clip: \{radius: 2.0000\}\}"):
        regression(tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, None),
        ({"steps": [{"constant_feature": {}}, {"clip": {"radius": 2.5}}]}, None),
        ({"steps": [{"row_norm": {}}]}, r"its steps are row_norm. Write `steps: \[\{constant"),
        (
            {"steps": [{"constant_feature": {}}, {"clip": {"radius": 1}}]},
            "{clip: {radius: 2.0000}}",
        ),
        ({"bounds": {"*": [0, 1]}}, "`bounds` name every column"),
        ({"positive": None}, "two classes"),
    ],
)
def test_units_are_checked_before_rows_are_read(change, says):
    entry = {
        "source": {"csv": "d.csv"},
        "label": "ill",
        "positive": "yes",
        "bounds": BOUNDS,
        "categories": {"site": SITES},
        "steps": [{"constant_feature": {}}, {"clip": {"radius": 2}}],
    } | change
    values = {name: value for name, value in entry.items() if value is not None}
    actual = units.of_entry(DataSet.model_validate(values))
    assert (
        actual is None
        if says is None
        else says in actual.replace("\\", "") or re.search(says, actual)
    )


@pytest.mark.parametrize(
    ("chosen", "says"), [({"age": "x"}, "no column with"), ({"site": "s"}, "no level of 'site'")]
)
def test_references_are_known_levels(chosen, says):
    with pytest.raises(ValueError, match=says):
        units.references({"site": SITES}, chosen)


@pytest.mark.parametrize("design", ["logistic", "linear"])
def test_bootstraps_stand_beside_the_intervals_of_the_same_releases(simulated, design):
    actual = simulated(
        interval_coverage.bootstrap, design, [600], 1, replicates=3, resamples=8, rounds=2
    ).reset_index()
    methods = actual.groupby("method", sort=False)
    assert list(methods.groups) == ["noise_aware", "bootstrap", "bootstrap_debiased"]
    assert (methods["intervals"].sum() == 3 * 6).all()
    assert actual.query("method != 'noise_aware'")["printed"].isna().all()
    assert actual["coverage"].between(0, 1).all() and (actual["width"] > 0).all()


@pytest.mark.slow
def test_coverage_of_numbers(simulated):
    actual = simulated(interval_coverage.coverage, "linear", [2000], 4, replicates=6, draws=2)
    aware = ["noise_aware", "noise_aware_robust"]
    assert set(actual.index) == {"without_privacy", *aware, "biased", "naive"}
    assert actual.loc[aware, "coverage"].mean() > 0.85
    assert actual.loc[aware, "width_ratio"].between(1, 1.8, inclusive="neither").all()


def test_coverage_of_boosting_is_of_the_coefficients(simulated):
    actual = simulated(interval_coverage.coverage, "boosted", [4000], 2, replicates=30, draws=1)
    aware = ["noise_aware", "noise_aware_last"]
    mean = actual.groupby("method")[["coverage", "width_ratio"]].mean()
    assert set(mean.index) == {"without_privacy", *aware, "biased", "naive"}
    assert mean.loc[["without_privacy", *aware], "coverage"].between(0.9, 1).all()
    assert mean.loc["naive", "coverage"] < 0.9
    assert 1 < mean.loc["noise_aware", "width_ratio"] < mean.loc["noise_aware_last", "width_ratio"]


@pytest.mark.parametrize("design", ["logistic", "other"])
def test_coverage_counts_intervals_by_coefficient_and_flag(simulated, design):
    """At epsilon 0.2, some intervals are not printed."""
    actual = simulated(interval_coverage.coverage, design, [500], 0.2, replicates=8, draws=2)
    plain = actual.loc["without_privacy"]
    assert list(plain["coefficient"]) == list(range(6)) and (plain["intervals"] == 8).all()
    aware = actual.loc["noise_aware"]
    assert set(aware["printed"]) == {0, 1}
    by_coefficient = aware.groupby("coefficient")
    assert (by_coefficient["intervals"].sum() == 8 * 2).all()
    np.testing.assert_allclose(by_coefficient["share"].sum(), 1)
    np.testing.assert_allclose(aware["share"], aware["intervals"] / 16)
    assert actual["coverage"].between(0, 1).all()
    widths = plain.set_index("coefficient")["width"]
    other = actual.loc["naive"].set_index("coefficient")
    assert (other["width"] < by_coefficient["width"].min()).all()
    np.testing.assert_allclose(other["width_ratio"], other["width"] / widths, rtol=0.15)


def test_standard_errors_are_over_data_sets():
    low, high = np.full((2, 3, 1), -1.0), np.full((2, 3, 1), 1.0)
    low[1] = 0.5
    (line,) = interval_coverage._judged(low, high, np.zeros(1), None, np.ones(1))
    assert line[:6] == (0, "", 6, 1.0, 0.5, pytest.approx(math.sqrt(2 * 1.5**2) / 6))
    flags = np.array([[[True]] * 3, [[False]] * 3])
    printed, others = interval_coverage._judged(low, high, np.zeros(1), flags, np.ones(1))
    assert printed[1:5] == (1, 3, 0.5, 1.0) and others[1:5] == (0, 3, 0.5, 0.0)


def test_the_table_of_the_rule_keeps_flags_apart(simulated, tmp_path):
    simulated(interval_coverage.coverage, "logistic", [500], 0.6, replicates=8, draws=2)
    columns, rows = tables.coverage_rule(None, None, tmp_path / "out.csv")
    actual = pd.DataFrame(rows, columns=columns).set_index("method").loc["noise_aware"]
    each = pd.read_csv(tmp_path / "out.csv").query("method == 'noise_aware'")
    printed = each[each["printed"] == 1]
    assert actual["answered"] == pytest.approx(printed["intervals"].sum() / (6 * 16))
    expected = np.average(printed["coverage"], weights=printed["intervals"])
    assert actual["coverage"] == pytest.approx(expected)
    columns, rows = tables.coverage(None, None, tmp_path / "out.csv")
    assert "covers" in columns and len(rows) == len(pd.read_csv(tmp_path / "out.csv"))


def test_the_figure_of_designs_shows_each_coefficient_and_flag(tmp_path):
    lines = [
        ("plain", "chosen", 0.5, 0, 1, 60, 0.6, 0.95),
        ("plain", "chosen", 0.5, 0, 0, 40, 0.4, 0.99),
        ("plain", "chosen", 0.5, 1, 1, 100, 1.0, 0.92),
        ("clinic", "tested", 0.5, 0, 1, 96, 0.96, 0.94),
        ("clinic", "tested", 0.5, 0, 0, 4, 0.04, 0.25),
    ]
    names = [
        "design",
        "half",
        "epsilon",
        "coefficient",
        "printed",
        "intervals",
        "share",
        "coverage",
    ]
    frame = pd.DataFrame(lines, columns=names).assign(method="noise_aware")
    frame.to_csv(tmp_path / "c.csv", index=False)
    figure = plots.coverage_designs(None, entry(title="Coverage"), tmp_path / "c.csv")
    (axes,) = figure.axes
    hollow, full = (collection.get_offsets()[:, 0] for collection in axes.collections)
    assert sorted(hollow) == [0.99] and sorted(full) == [0.92, 0.94, 0.95]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["plain", "clinic"]


@pytest.mark.parametrize("name", [*designs.CHOSEN, *designs.HELD_OUT])
def test_designs_are_what_a_mechanism_takes_and_have_their_coefficients(name):
    rng = np.random.default_rng(5)
    X, y = designs.draw(name, 60_000, rng)
    table = designs.DESIGNS[name].table
    assert np.linalg.norm(X, axis=1).max() <= 1 + 1e-12 and X.shape[1] == len(table.theta)
    if "collinear" in name or name == "three_way":
        assert np.linalg.cond(X.T @ X) > 30
    fit = sm.Logit((y + 1) / 2, X).fit(disp=False)
    assert (np.abs(fit.params - table.theta) < 4.5 * fit.bse).all()
