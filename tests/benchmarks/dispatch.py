"""Simulates how fast Snakemake would start the default run's jobs on more cores.

    python tests/benchmarks/dispatch.py [cores [target ...]]         # default: 24 cores, everything

results/ must contain the logs of a finished run. In a temporary copy of the checkout, every job sleeps for
its recorded CPU seconds and writes empty files. The printed wall-clock time should be at most 1.5 times the
larger of two lower bounds: the critical path, and all CPU seconds divided by the cores.
"""

import inspect
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

from snakemake.cli import main as snakemake
from snakemake.shell import shell

from project import Project
from study.jobs import cost

OVERHEAD = 0.02  # seconds that a job's shell and fork take
run_shell = shell.__new__


class StandIns:
    """Replaces every job with a sleep. `ends`: file -> seconds of the critical path that ends at it."""

    def __init__(self):
        self.ends, self.work, self.unknown, self.lock = {}, 0.0, 0, threading.Lock()

    def __call__(self, cls, command, *_, **__):
        job = inspect.currentframe().f_back.f_locals
        took = [cost.read(ROOT / log) for log in job["log"]]
        seconds = OVERHEAD + sum(one.cpu for one in took if one)
        run_shell(cls, f"sleep {seconds}", jobid=job["jobid"])
        for file in job["output"]:
            Path(file).write_text("")
        with self.lock:
            begins = max((self.ends.get(file, 0.0) for file in job["input"]), default=0.0)
            self.ends |= dict.fromkeys(job["output"], begins + seconds)
            self.work += seconds
            self.unknown += not any(took)


def main():
    cores = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    stand_ins = StandIns()
    shell.__new__ = stand_ins
    os.environ["DP_FORK"] = "0"
    with tempfile.TemporaryDirectory() as folder:
        Project.copy(folder, extra=())
        os.chdir(folder)
        log = os.open("log", os.O_WRONLY | os.O_CREAT)
        terminal = os.dup(2)
        os.dup2(log, 2)
        start = time.perf_counter()
        try:
            snakemake(["--cores", str(cores), "--quiet", "rules", "--", *sys.argv[2:]])
        except SystemExit as end:
            failed = end.code
        wall = time.perf_counter() - start
        os.dup2(terminal, 2)
        used = time.process_time()
        if failed:
            sys.exit(Path("log").read_text()[-2000:])
        os.chdir(ROOT)
    chain, share = max(stand_ins.ends.values()), stand_ins.work / cores
    print(f"{wall:.1f} s on {cores} cores, of which Snakemake's own processor seconds {used:.1f}")
    print(f"longest chain {chain:.1f} s, all seconds / cores {share:.1f} s")
    print(f"ratio {wall / max(chain, share):.2f}; {stand_ins.unknown} jobs without a known time")


if __name__ == "__main__":
    main()
