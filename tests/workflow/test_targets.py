"""Targets: a figure runs only what it needs, and every experiment's name is a target."""

from collections import Counter

import pytest
import yaml

from project import ROOT, TINY


@pytest.fixture(scope="module")
def project(fresh):
    return fresh("targets")


def test_one_figure_runs_only_what_it_needs(project):
    planned = project.plan("--", "results/cm08/figures/figure_2c.png")
    jobs = Counter(job.partition(":")[0] for job in planned)
    values = yaml.safe_load((ROOT / "config/experiments/cm08.yaml").read_text())
    private = len(values["methods"]) - 1
    assert jobs == {"prepare": 1, "fit": 1, "run": 20 * private + 1, "figure": 1}
    assert all("cm08_separable" in job or "figure_2c" in job for job in planned)
    assert all("n=10000/" in job or "n=10000." in job for job in planned if "run" in job[:4])


def test_every_experiment_is_a_target(project):
    names = sorted(path.stem for path in (ROOT / "config/experiments").glob("[!._]*.yaml"))
    assert {"cm08", "wdbc"} <= set(names)
    planned = project.plan("--configfile", "config/smoke.yaml", "--", *names)
    made = {job.partition(": results-smoke/")[2].partition("/")[0] for job in planned}
    assert set(names) <= made


def test_an_experiment_s_target_makes_all_of_its_folder(project):
    """A plain run has nothing left to do there, and its progress is 100 %."""
    whole = {job for job in project.plan(*TINY) if ": results/cm08/" in job}
    own = {job for job in project.plan(*TINY, "--", "cm08") if ": results/cm08/" in job}
    assert own == whole and len(own) > 5
