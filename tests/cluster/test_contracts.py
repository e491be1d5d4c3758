"""Tests the profiles of schedulers that are not installed, with mock commands."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from project import TINY

pytestmark = pytest.mark.slow

STANDINS = Path(__file__).with_name("standins.py")
RESULTS = "results/cm08/results.csv"


@pytest.fixture
def project(edited, tmp_path):
    """Copy of the project with data and fits, but without run files and results.csv."""
    commands = tmp_path / "commands"
    commands.mkdir()
    edited.commands = commands
    edited.expected = (edited / RESULTS).read_bytes()
    for path in (edited / "results/cm08/runs").rglob("eps=*.csv"):
        path.unlink()
    (edited / RESULTS).unlink()
    edited.environment = {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "STANDINS": str(commands),
    }
    return edited


def install(project, *names):
    for name in names:
        (project.commands / name).symlink_to(STANDINS)


def calls(project, name):
    lines = (project.commands / "calls.jsonl").read_text().splitlines()
    return [words for command, *words in map(json.loads, lines) if command == name]


def after(words, option):
    return words[words.index(option) + 1]


@pytest.mark.parametrize(("unit", "per_mb"), [("MB", 1), ("KB", 1024)])
def test_lsf(project, unit, per_mb):
    if unit == "KB":  # one job suffices to test this unit
        project.snakemake(*TINY, "--until", "run", "--", RESULTS)
    install(project, "bsub", "bjobs", "bkill", "badmin", "lsclusters", "bhist")
    folder = project.commands / "lsbatch/test/configdir"
    folder.mkdir(parents=True)
    (folder / "lsb.params").write_text("Begin Parameters\nEnd Parameters\n")
    project.environment |= {
        "LSF_UNIT_FOR_LIMITS": unit,
        "LSB_DEFAULT_QUEUE": "short",
        "LSB_DEFAULTPROJECT": "privacy",
    }
    project.snakemake(
        "--workflow-profile", "workflow/profiles/lsf", *TINY, "--", RESULTS, timeout=200
    )
    assert (project / RESULTS).read_bytes() == project.expected
    submitted = calls(project, "bsub")
    assert len(submitted) == (1 if unit == "KB" else 2)  # one group of cells, and the aggregate
    megabytes = [int(mb) for mb in re.findall(r"resources: .*\bmem_mb=(\d+)", project.log())]
    for words in submitted:
        assert after(words, "-q") == "short"
        assert after(words, "-P") == "privacy"
        assert 0 < int(after(words, "-W")) < 24 * 60
        (memory,) = re.findall(r"rusage\[mem=([\d.]+)\]", " ".join(words))
        total = float(memory) * int(after(words, "-n")) / per_mb
        assert any(total == pytest.approx(n * mb) for mb in megabytes for n in (1, 2)), (
            total,
            megabytes,
        )


def test_recovery_on_lsf(project):
    install(project, "bsub", "bjobs", "bkill", "squeue")
    environment = os.environ | project.environment
    folders = [project.folder.resolve(), project.commands]
    words = [
        "-J",
        "left",
        "-o",
        "/dev/null",
        "-e",
        "/dev/null",
        "-env",
        "all",
        "-W",
        "5",
        "-n",
        "1",
    ]
    for folder in folders:
        subprocess.run(
            ["bsub", *words, "-R", "span[hosts=1]", "-cwd", folder, "sleep 300"],
            env=environment,
            check=True,
        )
    try:
        output = project.python("scripts/tools/recover.py", "--cores", 1, "--dry-run", *TINY)
        assert "cancelling 1 jobs" in output
        assert calls(project, "bkill") == [["1000"]]
    finally:
        subprocess.run(["bkill", "1001"], env=environment, check=True)


def test_submit_command_with_a_status_command(project):
    install(project, "sbatch", "squeue", "scancel")
    project.snakemake(
        *("--workflow-profile", "workflow/profiles/generic", *TINY),
        "--cluster-generic-submit-cmd",
        "sbatch --parsable --job-name={rule} --cpus-per-task={threads} --mem={resources.mem_mb}"
        " --time={resources.runtime} --output=%j.log",
        *("--cluster-generic-status-cmd", "workflow/profiles/sbatch/status.py"),
        *("--cluster-generic-cancel-cmd", "scancel", "--seconds-between-status-checks", 1),
        *("--", RESULTS),
    )
    assert (project / RESULTS).read_bytes() == project.expected
    assert len(calls(project, "sbatch")) == 2  # one group of cells, and the aggregate
    assert calls(project, "squeue")


def test_generic_as_it_is_shipped(project):
    """The shipped profile `generic` submits with Grid Engine's qsub.

    Without a status command, a job signals its end with a file.
    """
    install(project, "qsub", "qdel")
    project.snakemake(
        *("--workflow-profile", "workflow/profiles/generic", *TINY),
        *("--seconds-between-status-checks", 1, "--", RESULTS),
    )
    assert (project / RESULTS).read_bytes() == project.expected
    cells, aggregate = calls(project, "qsub")
    assert after(cells, "-pe") == "smp" and cells[cells.index("smp") + 1] == "2"
    assert after(aggregate, "-pe") == "smp" and aggregate[aggregate.index("smp") + 1] == "1"
