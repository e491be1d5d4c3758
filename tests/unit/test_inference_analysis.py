"""The analyses of `frontier_inference`: a regression in the columns' own units, and simulated coverage."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from analyses import inference
from study.jobs.files import write_json

BOUNDS = {"age": [18, 98], "visits": [-2, 6]}


@pytest.fixture
def simulated(tmp_path):
    """What an analysis of a simulated design finds at delta 1e-6, by method."""

    def found(analysis, design, train_sizes, epsilon, **counts):
        options = {"design": design, "train_sizes": train_sizes, "epsilons": [epsilon]}
        spec = {"options": options | {"delta": 1e-6} | counts}
        analysis(SimpleNamespace(name="e"), spec, {}, 1, tmp_path / "out.csv")
        return pd.read_csv(tmp_path / "out.csv").set_index("method")

    return found


def test_coefficients_are_those_of_the_columns_as_they_came(tmp_path):
    rng = np.random.default_rng(3)
    low, high = np.array(list(BOUNDS.values()), dtype=float).T
    raw = rng.uniform(low, high, (4000, 2))
    z = 0.03 * (raw[:, 0] - 50) - 0.4 * raw[:, 1] + 0.5
    y = np.where(rng.random(4000) < 1 / (1 + np.exp(-z)), 1, -1)
    scaled = np.column_stack([2 * (raw - low) / (high - low) - 1, np.ones(4000)])
    np.savez(tmp_path / "d.npz", X=scaled / 2, y=y)
    steps = {"scale_to_bounds": BOUNDS, "constant_feature": {}, "clip": {"radius": 2}}
    steps = [{"step": name, "options": options} for name, options in steps.items()]
    facts = {"dataset": "d", "columns": [*BOUNDS, "constant"], "steps": steps, "bound": 1.0}
    write_json(tmp_path / "d.json", facts)
    spec = {"options": {"epsilons": [0.1, 4], "delta": 1e-6, "robust": True, "resamples": 40}}
    experiment = SimpleNamespace(name="e")
    out = tmp_path / "out.csv"
    inference.regression(experiment, spec, {"d": tmp_path / "d.npz"}, 1, out)
    found = pd.read_csv(out).set_index(["method", "coefficient"])
    expected = sm.Logit((y + 1) / 2, sm.add_constant(raw)).fit(disp=False)
    plain = found.loc["without_privacy"]
    np.testing.assert_allclose(plain["estimate"], np.roll(expected.params, -1), rtol=1e-5)
    np.testing.assert_allclose(plain["standard_error"], np.roll(expected.bse, -1), rtol=1e-5)
    private = found.loc["noise_aware"].query("epsilon == 4")
    distance = (private["estimate"] - plain["estimate"]) / private["standard_error"]
    assert distance.abs().max() < 3
    # at 0.1 linearisation is too coarse; the bootstrap finds wider intervals around the same release
    assert (found.query("epsilon == 0.1")["coarse"] == 1).all()
    again, normal = found.loc["bootstrap"], found.loc["noise_aware"].query("epsilon == 0.1")
    assert set(again["epsilon"]) == {0.1} and again["standard_error"].isna().all()
    assert (again["estimate"] == normal["estimate"]).all()
    ratio = (again["high"] - again["low"]) / (normal["high"] - normal["low"])
    assert ratio.between(0.3, 6).all()
    steps[2]["options"]["radius"] = 1.5  # shortened rows have no units
    write_json(tmp_path / "d.json", facts)
    with pytest.raises(ValueError, match="rows are shortened"):
        inference.regression(experiment, spec, {"d": tmp_path / "d.npz"}, 1, out)


@pytest.mark.parametrize(
    ("design", "train_sizes"), [("logistic", [400, 20_000]), ("boosted", [200, 30_000])]
)
def test_the_bootstrap_is_of_releases_that_are_too_coarse(simulated, design, train_sizes):
    found = simulated(inference.bootstrap, design, train_sizes, 0.3, replicates=2, resamples=5)
    assert set(found["train_size"]) == {train_sizes[0]}
    assert (found["coarse"] == 1).all() and (found["intervals"] == 12).all()
    assert found.loc["noise_aware", "width_ratio"] == 1
    assert found.loc["bootstrap", "width_ratio"] != 1


@pytest.mark.slow
def test_coverage_of_numbers(simulated):
    found = simulated(inference.coverage, "linear", [2000], 4, replicates=4, draws=2)
    aware = ["noise_aware", "noise_aware_robust"]
    assert set(found.index) == {"without_privacy", *aware, "biased", "naive"}
    assert (found.loc[aware, "coverage"] > 0.8).all()
    assert found.loc[aware, "width_ratio"].between(1, 1.6, inclusive="neither").all()


def test_coverage_of_boosting_is_of_the_coefficients(simulated):
    found = simulated(inference.coverage, "boosted", [4000], 2, replicates=30, draws=1)
    aware = ["noise_aware", "noise_aware_last"]
    assert set(found.index) == {"without_privacy", *aware, "biased", "naive"}
    assert found.loc[["without_privacy", *aware], "coverage"].between(0.9, 1).all()
    assert found.loc["naive", "coverage"] < 0.9
    assert (
        1 < found.loc["noise_aware", "width_ratio"] < found.loc["noise_aware_last", "width_ratio"]
    )


@pytest.mark.parametrize("design", ["logistic", "other"])
def test_coverage_counts_intervals_over_data_sets_and_draws(simulated, design):
    found = simulated(inference.coverage, design, [500], 1, replicates=3, draws=2)
    assert found.loc["without_privacy", "intervals"] == 3 * 6
    assert found.loc["noise_aware", "intervals"] == 3 * 6 * 2
    assert found.loc["naive", "width"] < found.loc["noise_aware", "width"]
    assert found["coverage"].between(0, 1).all()
    np.testing.assert_allclose(
        found["width_ratio"], found["width"] / found.loc["without_privacy", "width"]
    )
