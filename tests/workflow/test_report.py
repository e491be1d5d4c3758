"""If something fails, a report is written anyway; once the fault is repaired, it is complete."""

import csv
import io
import re

import pytest

from project import ROOT, TINY

MECHANISM = "scripts/dp/mechanisms/output_perturbation.py"
SOUND = "        d = X.shape[1]\n"
BROKEN = SOUND + '        raise ValueError("made to fail")\n'
FAILED = "failed: error: mechanism output_perturbation failed in "


@pytest.mark.slow
def test_a_failed_cell_is_a_gap_and_the_report_is_made_anyway(fresh):
    project = fresh()
    project.replace(MECHANISM, SOUND, BROKEN)
    output = project.snakemake("--keep-going", *TINY, ok=False, timeout=300)
    assert "results/report.html: the existing results, with gaps" in output
    page = (project / "results/report.html").read_text(encoding="utf-8")
    assert "This is a partial report." in page and FAILED in page
    assert "partial: 2 of 5 cells are missing" in page
    assert not (project / "results/cm08/results.csv").exists()

    (project / "results/report.html").unlink()
    project.snakemake(*TINY, "--", "partial_report", timeout=300)
    assert (project / "results/report.html").exists()


@pytest.mark.slow
def test_the_report_of_a_whole_run_and_snakemakes_own(edited):
    page = (edited / "results/report.html").read_text(encoding="utf-8")
    assert "partial report" not in page and '<span class="badge good">complete</span>' in page
    costs = list(csv.DictReader(io.StringIO((edited / "results/costs.csv").read_text())))
    assert {row["rule"]: row["jobs"] for row in costs if row["experiment"] == "cm08"}["run"] == "5"

    # Snakemake's own report has a description, and each result's caption and category.
    edited.snakemake(*TINY, "--report", "snakemake-report.html", timeout=300)
    page = (edited / "snakemake-report.html").read_text(encoding="utf-8")
    assert "Methods that learn linear models with differential privacy" in page
    assert "All cells of the experiment" in page and "on one self-contained page" in page
    assert page.count('"caption": "<p>') == page.count('"caption": ') > 4
    assert '"cm08"' in page and '"Everything"' in page
    assert not edited.plan(*TINY)  # the report has made no result stale


@pytest.mark.slow
def test_a_killed_run_leaves_the_names_of_verdicts_on_other_cells(fresh):
    project = fresh("judged")
    project.write("judged.yaml", (ROOT / TINY[1]).read_text().replace("    claims: null\n", ""))
    judged = ("--configfile", "judged.yaml")
    project.snakemake(*judged)
    outdated = project / "results/logs/report.outdated.log"
    assert not outdated.exists()

    project.replace(MECHANISM, SOUND, SOUND + "        _ = d\n")
    process = project.start("--cores", "1", *judged)
    project.wait_for(lambda: project.incomplete() or process.poll() is not None)
    project.kill(process)
    assert "results/cm08/claims.csv" in outdated.read_text().splitlines()
    project.snakemake(*judged, "--unlock")
    project.snakemake(*judged, "--", "partial_report")  # makes no verdict
    assert outdated.exists()
    project.snakemake(*judged)
    assert not outdated.exists()


def test_all_that_reports_are_marked_with_has_a_caption():
    marks = 0
    for path in sorted((ROOT / "workflow/rules").glob("*.smk")):
        for mark in re.findall(r"(?<!\w)report\(\n(.*?)\n\s+\),", path.read_text(), re.DOTALL):
            caption = re.search(r'caption="(.+?)"', mark)[1]
            assert (path.parent / caption).exists() and "category=" in mark and "labels=" in mark
            marks += 1
    assert marks >= 10


@pytest.mark.slow
def test_the_forecast_counts_the_jobs_that_snakemake_plans(fresh):
    import subprocess
    import sys

    project = fresh()
    done = subprocess.run(
        [sys.executable, "scripts/tools/forecast.py", *TINY],
        cwd=project.folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = {line.split()[0]: line.split() for line in done.stdout.splitlines()}
    planned = project.plan(*TINY)
    assert int(lines["all"][1]) == len(planned)
    assert int(lines["cm08"][1]) == len([p for p in planned if "results/cm08/" in p])
    assert float(lines["all"][2]) > 0


def test_costs_are_recorded_from_a_run(edited):
    table = "workflow/costs.csv"
    edited.write(table, "rule,experiment,jobs,work,cpu_seconds\nrun,other,1,1,2.5\n")
    edited.python("scripts/tools/forecast.py", "--record")
    rows = csv.DictReader(io.StringIO((edited / table).read_text(encoding="utf-8")))
    rows = {(row["rule"], row["experiment"]): row for row in rows}
    assert rows["run", "other"]["cpu_seconds"] == "2.5"
    runs = [*(edited / "results/cm08/runs").rglob("*.csv")]
    assert int(rows["run", "cm08"]["jobs"]) == len(runs)
    assert float(rows["run", "cm08"]["cpu_seconds"]) > 0
