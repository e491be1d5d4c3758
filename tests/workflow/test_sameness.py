"""Results have the same bytes whatever the number of cores, order of jobs or interruptions."""

import os
import signal

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
    """Jobs are forks here, but each had its own interpreter in the finished run."""
    project = fresh("one_core")
    last = order_of_runs(finished)[-1]
    project.snakemake(*TINY, "--prioritize", last, cores=1)
    assert order_of_runs(project)[0] == last
    expected = results(finished)
    assert {"results/cm08/results.csv", last} < set(expected)
    assert results(project) == expected


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bytes(finished, fresh):
    project = fresh("killed")

    def in_the_middle():
        done = [*(project / "results").glob("cm08/runs/*/*/*/*.csv")]
        return done and project.incomplete()

    process = project.start("--cores", 2, *TINY)
    try:
        project.wait_for(in_the_middle)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (project / "results/cm08/results.csv").exists()

    # An interrupted writer leaves an incomplete file.
    cut_off = project.incomplete()
    assert cut_off
    for path in cut_off:
        project.write(path, "fold,restart,error\n0,0,0.\n")

    # If the killed run left its lock, the next run only names the remedy.
    output = project.snakemake(*TINY, ok=None)
    if "its lock is still there" in output:
        assert "recover.py" in output and "--unlock" not in output
        project.snakemake(*TINY, "--unlock")
        project.snakemake(*TINY)
    assert results(project) == results(finished)
