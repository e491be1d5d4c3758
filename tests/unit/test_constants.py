"""The constants of "nothing tuned" in scripts/README.md agree with the code and the configuration."""

import re

import pytest

from dp.mechanisms import MECHANISMS
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
