"""Where the time of a whole experiment goes, in a fresh copy of the project, on two cores.

    python tests/benchmarks/overhead.py [experiment]        # cm08 where none is named

Prints wall-clock seconds and, of the processor's: the numerical work of the jobs (theirs beyond the start
of an interpreter with the same imports), those starts, Snakemake itself, and what remains (shells,
waiting). The ratio is the wall-clock time over the time that two busy cores would take for the numerical
work alone; it is meant to be at most 3.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from job_start import seconds

from project import ENVIRONMENT, Project

CORES = 2
CLOCK = Path(__file__).resolve().parent / "clock"
START = "import sys, {module}; sys.argv = ['{script}', '--help']; {module}.main()"


def main():
    experiment = sys.argv[1] if len(sys.argv) > 1 else "cm08"
    with tempfile.TemporaryDirectory() as folder:
        project = Project.copy(folder, extra=())
        clock = project / "clock.txt"
        environment = os.environ | ENVIRONMENT | {"CLOCK": str(clock), "PYTHONPATH": str(CLOCK)}
        command = [sys.executable, "-m", "snakemake", "--cores", str(CORES), "--", experiment]
        start = time.perf_counter()
        with (project / "log").open("w") as log:
            code = subprocess.run(
                command, cwd=folder, env=environment, stdout=log, stderr=log, check=False
            ).returncode
        wall = time.perf_counter() - start
        if code:
            sys.exit((project / "log").read_text()[-2000:])
        found, count = Counter(), Counter()
        for line in clock.read_text().splitlines():
            script, used = line.split()
            script = script if (project / "scripts" / script).exists() else "Snakemake"
            found[script] += float(used)
            count[script] += 1
    snakemake = found.pop("Snakemake")
    starts = {
        script: seconds(START.format(module=script.removesuffix(".py"), script=script), 3)[1][0]
        for script in found
    }
    start = sum(starts[script] * count[script] for script in found)
    work = sum(found.values()) - start
    rows = {
        "numerical work": work,
        f"starts of {sum(count[script] for script in found)} jobs": start,
        "Snakemake": snakemake,
        "shells and waiting": CORES * wall - work - start - snakemake,
    }
    print(f"{experiment}: {wall:.1f} s on {CORES} cores")
    for name, value in rows.items():
        print(f"{name:24} {value:8.1f} s {100 * value / (CORES * wall):6.1f} %")
    print(f"wall-clock time / (numerical work / {CORES}) = {wall / (work / CORES):.2f}")


if __name__ == "__main__":
    main()
