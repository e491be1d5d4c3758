"""Results under the shipped Slurm profiles are byte-identical to a local run's, even after faults."""

import re
import shutil
import time
from pathlib import Path

import pytest
from runs import CELLS, DATA, OVERLAY, PLUGIN, RESULTS, SBATCH, jobs, on, run_files

from project import Project

pytestmark = pytest.mark.slow


def test_an_experiment_with_all_that_belongs_to_it(fresh, cluster, tmp_path):
    whole = ("--configfile", "config/smoke.yaml", "--", "wdbc")
    alone, project = fresh("alone"), on(cluster, fresh("cluster"))
    alone.snakemake(*whole, timeout=300)
    project.environment["SNAKEMAKE_OUTPUT_CACHE"] = str(tmp_path)
    project.snakemake(*SBATCH, "--cache", "download", "prepare", *whole, timeout=300)
    assert (project / "results-smoke/data/wdbc_row_norm.npz").resolve().parent == tmp_path.resolve()
    for path in ("results.csv", "tuned/wdbc_row_norm.csv"):
        assert (project / "results-smoke/wdbc" / path).read_bytes() == (
            alone / "results-smoke/wdbc" / path
        ).read_bytes()
    assert {path.name for path in (project / "results-smoke/wdbc/figures").iterdir()} == {
        path.name for path in (alone / "results-smoke/wdbc/figures").iterdir()
    }
    assert len(jobs(cluster, project)) <= 15 < len(run_files(project))


def test_a_crashing_daemon_leaves_no_core_dump(cluster):
    """Slurm raises its own and its jobs' soft limits on core dumps, so the hard limit must be 0."""
    for daemon in cluster.daemons.values():
        limits = Path(f"/proc/{daemon.pid}/limits").read_text()
        assert re.search(r"^Max core file size +0 +0 ", limits, flags=re.MULTILINE), limits


SMALL = """
title: "Two cells, one of the template's mechanism"
datasets: [wdbc_clip]
folds: 2
restarts: 3
lambda: 0.01
methods: {output_perturbation: {}, noisy_mean: {}}
sweeps: {main: {train_sizes: [200], epsilons: [1]}}
"""


def test_a_study_is_recovered_from_elsewhere(fresh, cluster, tmp_path):
    home = on(cluster, fresh("home"))
    studies = [Project(tmp_path / name) for name in ("alone", "study")]
    for study in studies:
        shutil.copytree(home / "workflow/template", study.folder)
        (study / "config/experiments/my_study.yaml").unlink()
        study.write("config/experiments/small.yaml", SMALL)
    alone, study = studies
    target = ("--", "results/small/results.csv")
    home.snakemake("--directory", alone.folder, *target)
    there = ("--directory", study.folder, *SBATCH)
    process = home.start(*there, *target)
    try:
        home.wait_for(lambda: jobs(cluster, study, "RUNNING"))
    finally:
        home.kill(process)
    left = jobs(cluster, study, "RUNNING", "PENDING")
    assert left
    output = home.python("scripts/tools/recover.py", *there, *target)
    assert f"cancelling {len(left)} jobs that were left behind" in output
    assert (study / target[1]).read_bytes() == (alone / target[1]).read_bytes()
    logs = list((study / ".snakemake").glob("sbatch-*.log"))
    assert len(logs) == len(jobs(cluster, study))
    assert not (home / ".snakemake").exists() and not (home / "results").exists()


@pytest.mark.parametrize("profile", [SBATCH, PLUGIN], ids=["sbatch", "slurm"])
def test_killed_run_is_recovered(project, cluster, local, profile):
    # The plugin may submit fewer jobs than are ready.
    limit = ("--group-components", "cells=2") if profile is SBATCH else ("--jobs", "3")
    process = project.start(*profile, *limit, *CELLS)
    project.wait_for(lambda: run_files(project), 120)
    project.kill(process)
    left = set(jobs(cluster, project, "RUNNING", "PENDING"))
    assert left
    output = project.python("scripts/tools/recover.py", *profile, *limit, *CELLS, timeout=300)
    assert "jobs that were left behind" in output and "unlocking and resuming" in output
    assert (project / RESULTS).read_bytes() == local
    new = {job for job in jobs(cluster, project) if job not in left}
    submitted = min(
        moment(cluster, job, "SubmitTime") for job in new if int(job) > max(map(int, left))
    )
    ended = max(moment(cluster, job, "EndTime") for job in left)
    assert ended <= submitted, "a job of the killed run went on beside the new one"


def moment(cluster, job, which):
    """Latest SubmitTime or EndTime of a job and its tasks, in Slurm's format."""
    return max(re.findall(rf"{which}=(\S+)", cluster.run("scontrol", "show", "job", job)))


def test_what_a_killed_run_finished_is_kept(project, cluster, local):
    process = project.start(*SBATCH, "--group-components", "cells=1", "--jobs", "1", *CELLS)
    project.wait_for(lambda: len(run_files(project)) >= 2, 120)
    project.kill(process)
    project.wait_for(lambda: not jobs(cluster, project, "RUNNING", "PENDING"), 60)
    done = {path: path.stat().st_mtime_ns for path in run_files(project)}
    project.python("scripts/tools/recover.py", *SBATCH, *CELLS, timeout=300)
    assert (project / RESULTS).read_bytes() == local
    unchanged = [path for path, when in done.items() if path.stat().st_mtime_ns == when]
    assert len(unchanged) >= len(done) - 1  # the killed run may have missed one job's end
    assert len(run_files(project)) > len(done)


def test_cancelled_job_is_tried_again(project, cluster, local):
    process = project.start(*SBATCH, *CELLS)
    project.wait_for(lambda: jobs(cluster, project, "RUNNING"), 120)
    cluster.run("scancel", *jobs(cluster, project, "RUNNING"))
    project.finish(process, timeout=300)
    assert (project / RESULTS).read_bytes() == local
    assert jobs(cluster, project, "CANCELLED")


def test_job_over_its_memory_gets_more(project, cluster):
    (project / DATA).unlink()
    fewer = "holdout: 10000, data_replicates: 5}"
    project.replace("config/datasets.yaml", "holdout: 10000, data_replicates: 20}", fewer)
    project.replace("workflow/rules/resources.smk", "SNAKEMAKE_MB = 300", "SNAKEMAKE_MB = 40")
    project.replace("workflow/rules/data.smk", "mem_mb=memory(540,", "mem_mb=memory(40,")
    output = project.snakemake(*SBATCH, *OVERLAY, "--", DATA, timeout=300)
    assert (project / DATA).exists(), output
    megabytes = list(map(int, re.findall(r"\bmem_mb=(\d+)", project.log())))
    assert megabytes == [100 * 2**k for k in range(len(megabytes))] and len(megabytes) > 1, (
        "not resubmitted"
    )
    assert jobs(cluster, project, "FAILED", "OUT_OF_MEMORY")


def test_node_that_goes_down_and_comes_back(project, cluster, local):
    process = project.start(*SBATCH, *CELLS)
    project.wait_for(lambda: jobs(cluster, project, "RUNNING"), 120)
    cluster.run("scontrol", "update", "nodename=n1", "state=down", "reason=test")
    time.sleep(3)
    # This may fail: Slurm refuses to resume a node that has already returned.
    cluster.run("scontrol", "update", "nodename=n1", "state=resume", check=False)
    project.wait_for(lambda: "down" not in cluster.state_of("n1"), 60)
    project.finish(process, timeout=300)
    assert (project / RESULTS).read_bytes() == local
    assert jobs(cluster, project, "NODE_FAIL", "FAILED", "CANCELLED")
