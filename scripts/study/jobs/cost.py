"""Write and read a job's time and memory, which form the last line of its log.

Snakemake's `benchmark:` needs a thread and a file per job, which take a quarter of a short job's time on a
machine with many cores. It also misses jobs that end before its first sample.
"""

import os
import re
import resource
import sys
import time
from pathlib import Path
from typing import NamedTuple

LINE = re.compile(
    r"^(\w+) took ([\d.]+) s of a processor, ([\d.]+) s by the clock, ([\d.]+) MB$", re.MULTILINE
)
MAXRSS_MB = 1024**2 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS


class Cost(NamedTuple):
    """The time and memory of a job.

    script: the job's name. cpu, wall: seconds. peak_mb: maximum memory, including pages that
    forks share (`study.jobs.fork`).
    """

    script: str
    cpu: float
    wall: float
    peak_mb: float


def line():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    peak = max(one.ru_maxrss for one in used) / MAXRSS_MB
    script = Path(sys.argv[0]).stem  # a tool's file, or a job's name
    return f"{script} took {cpu:.3f} s of a processor, {_age():.3f} s by the clock, {peak:.1f} MB"


def read(log):
    """The `Cost` in a log; None if the job failed or has no log."""
    try:
        lines = LINE.findall(Path(log).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return Cost(lines[-1][0], *map(float, lines[-1][1:])) if lines else None


def _age():
    """Seconds since this process was started or forked; its CPU time if there is no /proc."""
    try:
        ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, AttributeError):
        return time.process_time()
    return now - int(ticks) / os.sysconf("SC_CLK_TCK")
