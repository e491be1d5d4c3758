"""Tests faults of a run: it is killed, memory or disk space runs out, or its folder is read-only."""

import os
import random
import re
import subprocess
import time

import pytest
from test_sameness import results

from project import TINY

RESULTS = "results/cm08/results.csv"
# A mechanism whose fault is a line of code from a test.
FAULTY = """
import numpy as np
from dp_privacy.accounting import REPLACE_ONE, Guarantee
from dp.mechanisms import Mechanism, register

@register("{name}")
class Faulty(Mechanism):
    def _guarantee(self, n, d, p):
        return Guarantee(p.epsilon, 0.0, 0.0, REPLACE_ONE, "ignores its data")
    def _release(self, X, y, p, draws, rng):
        {fault}
        return np.zeros((draws, X.shape[1]))
"""


def visible(files):
    """Files without the temporary ones that a killed writer leaves behind."""
    return {
        path: text for path, text in files.items() if not path.rpartition("/")[2].startswith(".")
    }


def completed(project, paths):
    """Paths that exist and are complete for Snakemake, also during a run."""
    # List existing files first, because jobs mark files as incomplete before writing them.
    there = {path for path in paths if (project / path).exists()}
    return there.difference(project.incomplete())


def wait_until_completed(project, process, paths, number):
    project.wait_for(
        lambda: process.poll() is not None or len(completed(project, paths)) >= number, seconds=120
    )


@pytest.mark.slow
def test_killed_at_random_moments(finished, fresh):
    whole = results(finished)
    rng = random.Random(9)
    resume = ("--cores", 2, *TINY)
    project, kills, met = fresh("killed"), 0, [0]  # met: number of finished files at each kill
    while kills < int(os.environ.get("DP_KILLS", "3")):
        process = project.start(*resume, program=["scripts/tools/recover.py"])
        # Kill after a number of files and a delay, since durations depend on the machine.
        wait_until_completed(project, process, whole, met[-1] + rng.randint(1, 3))
        time.sleep(rng.uniform(0, 0.5))
        if process.poll() is not None:  # start again, because the run had ended
            project.finish(process)
            assert visible(results(project)) == whole
            project = fresh("killed")
            met.append(0)
            continue
        project.kill(process)
        kills += 1
        done = completed(project, whole)
        met.append(len(done))
        there = visible(results(project))
        assert whole.keys() >= there.keys()
        for path in done:
            assert there[path] == whole[path], f"{path} is not whole"
    inside = {number for number in met if 0 < number < len(whole)}
    assert len(inside) > 1, f"the run was killed at too few different moments: {met}"
    project.python("scripts/tools/recover.py", *resume)
    assert visible(results(project)) == whole


FAULTS = {
    "faulty_memory": "np.ones(2**60, dtype='uint8')",
    "faulty_killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "faulty_shapes": "np.zeros(2) + np.zeros(3)",
}


def write_mechanisms(project, faults):
    for name, line in faults.items():
        text = FAULTY.format(name=name, fault=line)
        project.write(f"scripts/dp/mechanisms/{name}.py", text)


@pytest.mark.slow
def test_a_job_that_dies_of_memory_or_of_its_mechanism_is_told_and_runs_again(edited):
    write_mechanisms(edited, FAULTS)
    kept = "      objective_perturbation_cm08: null\n"
    methods = "".join(f"      {name}: {{}}\n" for name in FAULTS)
    edited.replace("tests/tiny.yaml", kept, kept + methods)
    output = edited.snakemake(*TINY, "--keep-going", "--", RESULTS, ok=False)
    assert "error: not enough memory (Unable to allocate" in output
    assert "A job was killed, most often because the machine had no memory left for it" in output
    assert re.search(
        r"error: mechanism faulty_shapes failed in scripts/dp/mechanisms/faulty_shapes.py, line \d+: "
        r"operands could not be broadcast together",
        output,
    )
    assert "Traceback" not in output
    write_mechanisms(edited, dict.fromkeys(FAULTS, "pass"))
    runs = {job for job in edited.plan(*TINY, "--", RESULTS) if job.startswith("run:")}
    assert runs and all("/faulty_" in job for job in runs)
    edited.snakemake(*TINY, "--", RESULTS)
    assert all(name in (edited / RESULTS).read_text() for name in FAULTS)


@pytest.fixture
def disk(edited):
    """The finished experiment, with its results on a separate file system of 48 MB."""
    folder = edited / "results"
    original = edited / "kept"
    folder.rename(original)
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        subprocess.run(["cp", "-a", f"{original}/.", str(folder)], check=True)
        yield edited
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk(disk, finished):
    (disk / RESULTS).unlink()
    filler = disk / "results/filler"
    subprocess.run(
        ["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], capture_output=True, check=False
    )
    output = disk.snakemake(*TINY, "--", RESULTS, ok=False)
    assert "the disk is full" in output and "finished jobs stay" in output
    assert not (disk / RESULTS).exists()
    filler.unlink()
    disk.snakemake(*TINY, "--", RESULTS)
    assert (disk / RESULTS).read_bytes() == (finished / RESULTS).read_bytes()


@pytest.mark.slow
def test_results_that_may_not_be_written(disk, finished):
    (disk / RESULTS).unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(disk / "results")], check=True)
    output = disk.snakemake(*TINY, "--", RESULTS, ok=False)
    assert "results/ cannot be written" in output
    assert "Traceback" not in output
    subprocess.run(["mount", "-o", "remount,rw", str(disk / "results")], check=True)
    disk.snakemake(*TINY, "--", RESULTS)
    assert (disk / RESULTS).read_bytes() == (finished / RESULTS).read_bytes()
