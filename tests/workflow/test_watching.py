"""What a user sees of a run: a few lines, and one sentence about an overlay that does not exist."""

import re

import pytest
from test_report import BROKEN, FAILED, MECHANISM, SOUND

from project import ROOT, TINY

PROFILES = [ROOT / "profiles/default", *sorted((ROOT / "workflow/profiles").iterdir())]


def test_a_run_prints_a_few_lines_and_its_log_has_the_rest(finished):
    lines = finished.output.splitlines()
    assert len(lines) < 15, finished.output
    assert not re.search(
        r"^(local)?rule |reason:|[Hh]ost:|jobid|input:", finished.output, re.MULTILINE
    )
    assert re.search(r"^\d+ seconds; everything else is in /.+\.snakemake\.log$", lines[-1])
    log = finished.log()
    assert "rule run:" in log and "reason:" in log and "steps (100%) done" in log
    assert (finished / "results/report.html").exists()
    assert not (finished / "results/so-far.html").exists()


@pytest.mark.parametrize("profile", PROFILES, ids=lambda path: path.name)
def test_an_overlay_that_does_not_exist_is_one_sentence(fresh, tmp_path, profile):
    project = fresh()
    name = profile.relative_to(ROOT)
    arguments = ["--workflow-profile", name, "--configfile", "tests/tini.yaml", "wdbc"]
    output = project.snakemake(*arguments, ok=False)
    assert output.splitlines()[-1] == (
        "error: --configfile: there is no file 'tests/tini.yaml' (targets are written after --)"
    )
    assert "Traceback" not in output


def test_a_failed_job_is_shown_at_once_with_the_end_of_its_log(edited):
    edited.replace(MECHANISM, SOUND, BROKEN)
    cell = "results/cm08/runs/cm08_separable/output_perturbation/n=100/eps=1"
    output = edited.snakemake(*TINY, "--", f"{cell}.csv", ok=False)
    (end,) = re.findall(
        rf"^error: the job run failed, which makes {re.escape(cell)}.csv\n  its log \S+ ends:\n    (.*)",
        output,
        re.MULTILINE,
    )
    assert FAILED in f"failed: {end}" and end.endswith("made to fail")
    assert len(output.splitlines()) < 15, output
