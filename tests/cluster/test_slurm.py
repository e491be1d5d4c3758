"""The shipped profiles on a real scheduler: same bytes as a local run, and every fault survived."""

import os
import re
import signal
import time

import pytest

pytestmark = pytest.mark.slow

SBATCH = ("--workflow-profile", "workflow/profiles/sbatch", "--seconds-between-status-checks", "2")
ARRAY = (
    *("--workflow-profile", "workflow/profiles/slurm"),
    *("--slurm-init-seconds-before-status-checks", "4"),
)
# Few cells, each slow enough to be caught in the middle.
CELLS = ("--configfile", "tests/cluster/cells.yaml")
RESULTS = "results/cm08/results.csv"


@pytest.fixture(scope="module")
def local(fresh):
    """What a run on this machine alone makes of the same cells."""
    project = fresh("local")
    project.snakemake(*CELLS, RESULTS)
    return (project / RESULTS).read_bytes()


@pytest.fixture
def project(fresh, cluster):
    copy = fresh("cluster")
    copy.environment = {"SLURM_CONF": str(cluster.conf), "DP_SLURM_STATUS": "squeue"}
    return copy


def jobs(cluster, project, *states):
    """Ids of this copy's jobs, of those in the given states where some are given."""
    from recover import job_prefix

    prefix = job_prefix(project.folder.resolve())
    return [
        job
        for job, state, name in cluster.queue()
        if name.startswith(prefix) and (not states or state in states)
    ]


def run_files(project):
    return list((project / "results").rglob("eps=*.csv"))


def test_grouped_submissions_give_the_same_bytes(project, cluster, local):
    project.snakemake(*SBATCH, *CELLS, RESULTS, timeout=300)
    assert (project / RESULTS).read_bytes() == local
    # prepare, fits, cells and aggregate: not one submission per cell
    assert len(jobs(cluster, project)) <= 6 < len(run_files(project))


def test_array_submissions_give_the_same_bytes(project, cluster, local):
    project.snakemake(*ARRAY, *CELLS, RESULTS, timeout=400)
    assert (project / RESULTS).read_bytes() == local
    names = {name for _, _, name in cluster.queue()}
    assert names


def test_killed_run_is_recovered(project, cluster, local):
    """kill -9 in the middle: one command cancels what is left, unlocks, and finishes the rest."""
    process = project.start(*SBATCH, "--group-components", "cells=2", *CELLS, RESULTS)
    project.wait_for(lambda: run_files(project), 120)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = {path: path.stat().st_mtime_ns for path in run_files(project)}
    assert done
    output = project.python("scripts/recover.py", *SBATCH, *CELLS, RESULTS, timeout=300)
    assert "unlocking and resuming" in output
    assert (project / RESULTS).read_bytes() == local
    kept = [path for path, when in done.items() if path.stat().st_mtime_ns == when]
    assert kept, "everything was made again"
    assert not jobs(cluster, project, "RUNNING", "PENDING")


def test_cancelled_job_is_tried_again(project, cluster, local):
    process = project.start(*SBATCH, *CELLS, RESULTS)
    project.wait_for(lambda: jobs(cluster, project, "RUNNING"), 120)
    cluster.run("scancel", *jobs(cluster, project, "RUNNING"))
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert (project / RESULTS).read_bytes() == local
    assert jobs(cluster, project, "CANCELLED")


def test_job_over_its_memory_gets_more(project, cluster):
    """The first request is too small for Python alone; the doubled ones are not."""
    output = project.snakemake(
        *SBATCH, *CELLS, "--set-resources", "prepare:mem_mb='60 * 4 ** attempt'",
        "results/data/cm08_separable.npz", timeout=300,
    )  # fmt: skip
    assert (project / "results/data/cm08_separable.npz").exists(), output
    assert re.search(r"mem_mb=240\b", output)
    assert re.search(r"mem_mb=960\b", output), "not resubmitted with more"


def test_node_that_goes_down_and_comes_back(project, cluster, local):
    process = project.start(*SBATCH, *CELLS, RESULTS)
    project.wait_for(lambda: jobs(cluster, project, "RUNNING"), 120)
    cluster.run("scontrol", "update", "nodename=n1", "state=down", "reason=test")
    time.sleep(3)
    cluster.run("scontrol", "update", "nodename=n1", "state=resume")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert (project / RESULTS).read_bytes() == local
