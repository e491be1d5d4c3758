"""Results have the same bytes whatever the number of cores and the order of jobs."""

import os

import pytest

from project import TINY

VARYING = ("/logs/", "timing.csv", "provenance.json", "report.html", "costs.csv")


def results(project):
    """Path -> content of every file that must be the same in all runs."""
    files = project.files("results")
    return {path: text for path, text in files.items() if not any(v in path for v in VARYING)}


def order_of_runs(project):
    paths = (project / "results/cm08/runs").rglob("*.csv")
    return [str(p.relative_to(project.folder)) for p in sorted(paths, key=os.path.getmtime)]


@pytest.mark.slow
def test_one_core_and_another_order_give_the_same_bytes(finished, fresh):
    """Each job has its own interpreter here, but was a fork in the finished run."""
    project = fresh("one_core")
    project.environment["DP_FORK"] = "0"
    last = order_of_runs(finished)[-1]
    project.snakemake(*TINY, "--prioritize", last, cores=1)
    assert order_of_runs(project)[0] == last
    expected = results(finished)
    assert {"results/cm08/results.csv", last} < set(expected)
    assert results(project) == expected
