"""No run overwrites another configuration's results or report, or a report that shows more results."""

import os
import re
import signal

import pytest
from test_report import BROKEN, FAILED, MECHANISM, SOUND

from project import TINY
from study.jobs import records

CALLED = " ".join(TINY)
REPORT, PARTIAL = "results/report.html", "results/report-partial.html"
TABLE = "results/cm08/tables/figure_1.csv"
BROKEN_CELLS = r"results/cm08/runs/cm08_separable/output_perturbation/n=100/eps=\S+.csv"


def page(project):
    return (project / REPORT).read_text(encoding="utf-8")


def test_another_configuration_is_refused_in_one_sentence(edited):
    edited.write("other.yaml", "{}\n")
    before = edited.files("results")
    called = f"--configfile {TINY[1]} other.yaml"
    output = edited.snakemake("--forceall", *called.split(), "--", "cm08", ok=False)
    assert output.splitlines()[-1] == (
        f"error: results/ holds results of `{CALLED}`, and `{called}` needs a folder of its own: "
        "choose one (--config results=NAME, or `results: NAME` in an overlay), or remove results/"
    )
    assert edited.files("results") == before
    planned = edited.plan(*TINY, "--config", "results=elsewhere", "--", "cm08")
    assert planned and all(": elsewhere/" in job for job in planned)


@pytest.mark.slow
def test_a_report_says_whose_it_is_and_follows_a_run_of_one_experiment(edited):
    assert records.page(edited / REPORT) == {"configuration": CALLED, "experiments": {"cm08": 5}}
    assert f"changed by <code>{CALLED}</code>" in page(edited)
    # An edited file counts as the same configuration, so the affected jobs rerun.
    edited.replace("tests/tiny.yaml", "figure_1: {sweep: epsilon}", "figure_1: {sweep: learning}")
    before = (edited / REPORT).stat().st_mtime_ns
    assert "does not show this run" not in edited.snakemake(*TINY, "--", TABLE)
    assert (edited / REPORT).stat().st_mtime_ns > before


@pytest.mark.slow
def test_a_failed_run_does_not_replace_a_report_that_shows_more(edited):
    edited.replace(MECHANISM, SOUND, BROKEN)
    output = edited.snakemake("--keep-going", *TINY, "--", "cm08", ok=False)
    ends = re.findall(
        rf"^error: the job run failed, which makes {BROKEN_CELLS}\n  its log \S+ ends:\n    (.*)",
        output,
        re.MULTILINE,
    )
    assert len(ends) == 2 and len(output.splitlines()) < 20, output
    assert all(FAILED in f"failed: {end}" and end.endswith("made to fail") for end in ends)
    assert f"{PARTIAL}: the existing results, with gaps; {REPORT} shows more, and is kept" in output
    assert records.page(edited / REPORT)["experiments"] == {"cm08": 5}
    assert FAILED in (edited / PARTIAL).read_text(encoding="utf-8")
    edited.replace(MECHANISM, BROKEN, SOUND)
    edited.snakemake(*TINY, "--", "cm08")
    assert "This is a partial report." not in page(edited)
    assert not (edited / PARTIAL).exists()


@pytest.mark.slow
def test_what_an_interrupted_run_left_out_is_shown_once_it_is_made(fresh):
    project = fresh()
    run = project.start("--cores", 2, *TINY)
    project.wait_for(lambda: (project / "results/cm08/logs/runs").exists(), 120)
    os.killpg(run.pid, signal.SIGINT)
    output = project.finish(run, ok=False)
    assert "Interrupted: the same command resumes this run" in output
    assert "Traceback" not in output and "Error in rule" not in output
    assert re.search(r"partial: \d of 5 cells are missing|not run", page(project))
    project.snakemake(*TINY, "--", "cm08")
    assert "This is a partial report." not in page(project)
    assert records.page(project / REPORT)["experiments"] == {"cm08": 5}
