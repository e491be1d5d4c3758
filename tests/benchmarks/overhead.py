"""Breaks down the time of an experiment in a fresh copy of the project, on two cores.

    python tests/benchmarks/overhead.py [experiment]        # default: cm08

It prints the wall-clock time, and splits the time of both cores into the jobs' CPU time ("work"), that of
Snakemake and its shells, and the rest: waiting, and imports that forks share (`study.jobs.fork`). The
wall-clock time should be at most 1.8 times the jobs' work per core.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from project import ENVIRONMENT, Project
from study.jobs import cost

CORES = 2


def main():
    experiment = sys.argv[1] if len(sys.argv) > 1 else "cm08"
    with tempfile.TemporaryDirectory() as folder:
        project = Project.copy(folder, extra=())
        command = [sys.executable, "-m", "snakemake", "--cores", str(CORES), "--", experiment]
        start = time.perf_counter()
        with (project / "log").open("w") as log:
            code = subprocess.run(
                command, cwd=folder, env=os.environ | ENVIRONMENT, stdout=log, stderr=log
            ).returncode
        wall = time.perf_counter() - start
        if code:
            sys.exit((project / "log").read_text()[-2000:])
        results = [cost.read(log) for log in (project / "results").rglob("*.log")]
    jobs = [one.cpu for one in results if one]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # excludes forked jobs
    snakemake = used.ru_utime + used.ru_stime
    rows = {
        f"work of {len(jobs)} jobs": sum(jobs),
        "Snakemake and shells": snakemake,
        "shared imports, waiting": CORES * wall - sum(jobs) - snakemake,
    }
    print(f"{experiment}: {wall:.1f} s on {CORES} cores")
    for name, value in rows.items():
        print(f"{name:24} {value:8.1f} s {100 * value / (CORES * wall):6.1f} %")
    print(f"wall-clock time / (work of the jobs / {CORES}) = {CORES * wall / sum(jobs):.2f}")
    # This ratio is less sensitive to other load than the wall-clock ratio.
    print(f"processor seconds / work of the jobs = {1 + snakemake / sum(jobs):.2f}")


if __name__ == "__main__":
    main()
