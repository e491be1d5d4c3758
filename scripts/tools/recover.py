"""Cancels the cluster jobs of a killed run, unlocks its folder, and resumes the run.

    python scripts/tools/recover.py --workflow-profile workflow/profiles/slurm [any Snakemake arguments]

If Snakemake is killed, its cluster jobs keep running, and would write the same files as a new run. This
program cancels this folder's jobs; on Slurm, only those with the profiles' name prefix. If a run of the
folder is alive, on this machine or another that shares it, the program changes nothing.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import home

from study import paths
from study.jobs import alive

NAMES = re.compile("dp[-_]")  # prefix of job names in the Slurm profiles
PATIENCE = 300  # seconds within which cancelled jobs must have ended


def output(*command):
    """Return a scheduler command's standard output, or exit with its message if the command fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(
            f"recover: {' '.join(command)} failed: {done.stderr.strip() or done.stdout.strip()}"
        )
    return done.stdout


def slurm_jobs(folder):
    """The ids of unfinished Slurm jobs that belong to runs of a folder.

    The jobs' names are checked, because the job that runs Snakemake may have the same folder.
    """
    lines = output("squeue", "--noheader", "--me", "--format=%A|%j|%Z").splitlines()
    jobs = (line.split("|", 2) for line in lines)
    return sorted({job for job, name, cwd in jobs if NAMES.match(name) and cwd == str(folder)})


def lsf_jobs(folder):
    """The ids of unfinished LSF jobs that were submitted from a folder."""
    lines = output("bjobs", "-noheader", "-o", "jobid sub_cwd delimiter='|'").splitlines()
    return sorted({job for job, cwd in (x.split("|", 1) for x in lines) if cwd == str(folder)})


def in_use(command, *traces):
    """Whether the scheduler is in use: its command works, or this folder has logs of its jobs.

    An existing command is not enough: a machine without a cluster may have a scheduler installed.
    """
    if not shutil.which(command[0]):
        return False
    if any(path for pattern in traces for path in Path(".snakemake").glob(pattern)):
        return True
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def cancel(find, command):
    """Cancel the jobs that `find` returns, and wait until they have ended."""
    jobs = find()
    if not jobs:
        return
    print(f"recover: cancelling {len(jobs)} jobs that were left behind ...", flush=True)
    for start in range(0, len(jobs), 500):
        output(command, *jobs[start : start + 500])
    end = time.monotonic() + PATIENCE
    while left := find():
        if time.monotonic() > end:
            sys.exit(
                f"recover: {len(left)} jobs still run after {PATIENCE} s ({', '.join(left[:5])} ...); "
                f"ask the cluster's support to end them, then run this again"
            )
        time.sleep(1)


def refuse_beside_a_live_run(folder):
    """Exit if a run of the folder is alive, because its jobs would be cancelled."""
    runs = [f"process {number} of this machine" for number in alive.here(folder)]
    runs = runs or alive.elsewhere(lambda text: print(f"recover: {text}", flush=True))
    if runs:
        sys.exit(
            f"recover: a Snakemake run of this folder is alive ({', '.join(runs)}): wait for its end, "
            f"or stop it with Ctrl-C where it was started"
        )
    alive.forget()


def main():
    arguments = sys.argv[1:]
    if arguments in (["-h"], ["--help"]):
        print(__doc__)
        return
    folder = Path.cwd()
    refuse_beside_a_live_run(folder)
    if in_use(("squeue", "--noheader", "--me"), "slurm_logs", "sbatch-*.log"):
        cancel(lambda: slurm_jobs(folder), "scancel")
    if in_use(("bjobs", "-noheader"), "lsf_logs"):
        cancel(lambda: lsf_jobs(folder), "bkill")
    snakemake = [sys.executable, "-m", "snakemake", *paths.snakefile(home.START)]
    os.chdir(home.START)
    print("recover: unlocking and resuming ...", flush=True)
    if subprocess.run([*snakemake, "--unlock", *arguments], check=False).returncode:
        sys.exit("recover: the folder could not be unlocked; see the lines above")
    sys.exit(subprocess.run([*snakemake, "--rerun-incomplete", *arguments], check=False).returncode)


if __name__ == "__main__":
    main()
