"""What a user sees of a run: a few lines, and one sentence about an overlay that does not exist."""

import re

from project import ROOT

PROFILES = [ROOT / "profiles/default", *sorted((ROOT / "workflow/profiles").iterdir())]
CHECK = re.compile(r"__definitions__:\n.*?sys\.exit\(.*?\n", re.DOTALL)


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


def test_an_overlay_that_does_not_exist_is_one_sentence(finished):
    texts = [(profile / "config.yaml").read_text(encoding="utf-8") for profile in PROFILES]
    assert len({CHECK.search(text)[0] for text in texts}) == 1 < len(texts)
    arguments = ["--workflow-profile", "workflow/profiles/slurm", "--configfile", "tests/tini.yaml"]
    output = finished.snakemake(*arguments, "wdbc", ok=False)
    assert output.splitlines()[-1] == (
        "error: --configfile: there is no file 'tests/tini.yaml' (targets are written after --)"
    )
    assert "Traceback" not in output
