#!/usr/bin/env python3
"""Prints the state of a Slurm job for Snakemake's cluster-generic executor: running, success or failed."""

import subprocess
import sys
import time

GOING_ON = {
    *("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "RESIZING"),
    *("STAGE_OUT", "SIGNALING", "STOPPED"),
}


def state(job):
    """The state that squeue reports, which needs no accounting database."""
    for _ in range(5):
        queue = subprocess.run(
            ["squeue", "-h", "-t", "all", "-o", "%T", "-j", job],
            capture_output=True,
            text=True,
            check=False,
        )
        if queue.returncode == 0 and queue.stdout.strip():
            code = queue.stdout.split()[0]
            return "success" if code == "COMPLETED" else "running" if code in GOING_ON else "failed"
        if "Invalid job id" in queue.stderr:
            return "failed"  # Slurm has forgotten the job, so Snakemake reruns it
        time.sleep(1)
    return "running"  # the controller does not answer; the job may still run


if __name__ == "__main__":
    print(state(sys.argv[1].split(";")[0]))
