"""The constants of "nothing tuned" in scripts/README.md agree with the code and the configuration."""

import re

import pytest

from dp.mechanisms import MECHANISMS
from dp.mechanisms.boosted_adassp import SHARES
from dp_privacy.accounting import gaussian_mu
from project import ROOT
from study.configuration.validation import read_yaml

TEXT = (ROOT / "scripts/README.md").read_text(encoding="utf-8")
SECTION = TEXT.partition('## Where the constants of "nothing tuned" come from')[2].split("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in SECTION.splitlines()
    if line.startswith("| ")
][1:]


def methods(experiment):
    return read_yaml(ROOT / f"config/experiments/{experiment}.yaml")["methods"]


def test_defaults_are_those_of_the_mechanisms():
    compared = 0
    for constant, value, *_ in ROWS:
        names = re.fullmatch(r"`(\w+)`: `(\w+)`", constant)
        if names:
            mechanism, option = names.groups()
            assert MECHANISMS[mechanism].defaults()[option] == float(value.strip("`")), constant
            compared += 1
    assert compared >= 10


def test_values_of_the_experiments_are_those_that_are_stated():
    regression = methods("frontier_regression")
    assert regression["objective_log_cosh"]["options"]["loss"] == {"log_cosh": {"tau": 0.25}}
    assert (
        regression["dp_gd"]["options"] | {"clip": 0.25, "iterations": 50}
        == (regression["dp_gd"]["options"])
    )
    assert regression["boosted_adassp"].get("options", {}) == {}
    assert SHARES == (0.1, 0.3, 0.6)
    classes = methods("frontier_classification")
    assert classes["objective_perturbation"]["lambda"] == 0.001
    assert classes["output_perturbation"]["lambda"] == 0.01
    assert classes["dp_gd"]["options"] == {"steps": "rule"}
    health = methods("health")
    for name in ("dp_gd", "dp_gd_squared"):
        assert health[name]["options"]["iterations"] == 50 and health[name]["after_results"]


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_rules_for_steps_are_those_that_are_stated(epsilon):
    n, d, delta = 4000, 10, 1e-6
    expected = n * gaussian_mu(epsilon, delta) / d**0.5
    rule = MECHANISMS["dp_gd"].rule_steps(n, d, epsilon, delta)
    assert abs(rule["iterations"] - min(1000, expected)) <= 1 and rule["learning_rate"] == 4.0
    mechanism = MECHANISMS["preconditioned_gd"]
    p = mechanism.parameters(n, d, epsilon=epsilon, delta=delta)
    assert mechanism._scales(n, d, p)[0] == (5 if expected < 150 else 10)


def test_what_changed_after_results_competes_with_none_and_is_named():
    """scripts/README.md, or a comment next to the method, explains each method with `after_results`."""
    results = {
        name
        for experiment in ("frontier_classification", "frontier_regression", "health")
        for name, method in methods(experiment).items()
        if method.get("after_results")
    }
    stated = {"dp_gd", "dp_gd_squared", "objective_log_cosh_wide", "boosted_adassp_wide"}
    assert results == stated
    assert "clip of 1 and a width of 1" in SECTION


def test_data_sets_that_were_seen_exist_and_stand_in_the_overlay():
    known = read_yaml(ROOT / "config/datasets.yaml")
    seen = {name for *_, data in ROWS for name in re.findall(r"`(\w+)`", data)}
    assert seen <= set(known) and {"adult", "diamonds", "randhie"} <= seen
    ours = ROOT / "config/experiments"
    classes, numbers = (
        set(read_yaml(ours / f"{name}.yaml")["sizes"]["real"]["datasets"])
        for name in ("frontier_classification", "frontier_regression")
    )
    assert {"adult", "credit_default", "magic"} <= classes
    assert {"diamonds", "cps1988", "law_school_grades", "flights"} <= numbers
    default = read_yaml(ROOT / "config/experiments/frontier_classification.yaml")["datasets"]
    assert not {"adult", "credit_default", "magic"} & set(default)
