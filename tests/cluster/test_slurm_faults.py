"""Tests that workflow/README.md's remedies for cluster faults give the same bytes as an undisturbed run."""

import os
import subprocess
import sys
import time

import pytest
from runs import CELLS, RESULTS, SBATCH, jobs, run_files

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "DP_SLURM_FAULTS" not in os.environ,
        reason="takes minutes of waiting: set DP_SLURM_FAULTS=1",
    ),
]

ONE_EACH = (*SBATCH, "--group-components", "cells=1")


def begun(project, cluster, *options):
    process = project.start(*ONE_EACH, *options, "--jobs", "2", *CELLS)
    project.wait_for(lambda: run_files(project) and jobs(cluster, project, "RUNNING"), 120)
    return process


def recovered(project):
    return project.python("scripts/tools/recover.py", *ONE_EACH, *CELLS, timeout=300)


def test_the_controller_is_killed_and_comes_back(project, cluster, local):
    process = begun(project, cluster)
    cluster.kill_controller()
    time.sleep(8)
    cluster.start_controller()
    with cluster.resumed():
        project.finish(process, ok=None, timeout=300)
        recovered(project)
    assert (project / RESULTS).read_bytes() == local


def test_a_node_dies_under_its_jobs_and_comes_back(project, cluster, local):
    process = begun(project, cluster)
    cluster.kill_node("n1")
    time.sleep(3)
    cluster.start_node("n1")
    project.finish(process, timeout=300)
    assert (project / RESULTS).read_bytes() == local
    assert jobs(cluster, project, "NODE_FAIL", "FAILED", "CANCELLED")


def test_one_of_two_nodes_is_lost(project, cluster, local):
    project.environment["SBATCH_PARTITION"] = "pair"
    process = project.start(*ONE_EACH, "--jobs", "8", *CELLS)  # more jobs than one node can run
    try:
        project.wait_for(lambda: cluster.processes("n2"), 120)
        cluster.kill_node("n2")
        project.finish(process, timeout=300)
    finally:
        cluster.start_node("n2")
    assert (project / RESULTS).read_bytes() == local
    assert jobs(cluster, project, "NODE_FAIL", "FAILED", "CANCELLED")


def test_a_full_disk_on_the_node(project, cluster, local):
    """Slurm drains a node with a full disk; an administrator resumes it once the disk has space."""
    spool = cluster.root / "spool/n1"
    cluster.kill_node("n1")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(spool)]
    subprocess.run(mount, check=True)
    try:
        cluster.start_node("n1")
        filler = ["dd", "if=/dev/zero", f"of={spool}/filler", "bs=4k"]
        subprocess.run(filler, capture_output=True, check=False)
        process = project.start(*ONE_EACH, *CELLS)
        project.wait_for(lambda: "drain" in cluster.state_of("n1"), 120)
        (spool / "filler").unlink()
        cluster.run("scontrol", "update", "nodename=n1", "state=resume")
        project.finish(process, ok=None, timeout=300)
        recovered(project)
        assert (project / RESULTS).read_bytes() == local
    finally:
        cluster.kill_node("n1")
        subprocess.run(["umount", str(spool)], check=True)
        cluster.start_node("n1")


# Submits a job, then kills the caller before it can record the job's id.
SUBMITS_AND_KILLS = """\
#!{python}
import os, signal, subprocess, sys
print(subprocess.check_output(["{sbatch}", *sys.argv[1:]], text=True))
os.killpg(0, signal.SIGKILL)
"""


def test_killed_between_a_submission_and_its_record(project, cluster, local, tmp_path):
    sbatch = tmp_path / "bin/sbatch"
    sbatch.parent.mkdir()
    real = subprocess.run(["which", "sbatch"], capture_output=True, text=True, check=True)
    sbatch.write_text(SUBMITS_AND_KILLS.format(python=sys.executable, sbatch=real.stdout.strip()))
    sbatch.chmod(0o755)
    environment = dict(project.environment)
    project.environment["PATH"] = f"{sbatch.parent}:{os.environ['PATH']}"
    project.finish(project.start(*SBATCH, *CELLS), ok=False)
    left = jobs(cluster, project, "RUNNING", "PENDING")
    assert len(left) == 1
    project.environment = environment
    assert "cancelling 1 jobs that were left behind" in recovered(project)
    assert (project / RESULTS).read_bytes() == local
