"""Seconds and memory of the jobs that ran, from Snakemake's benchmark files."""

import csv
from statistics import median
from typing import NamedTuple

from study import paths

COLUMNS = (
    *("rule", "experiment", "jobs", "cpu_seconds", "cpu_seconds_median", "cpu_seconds_max"),
    *("wall_seconds", "peak_mb"),
)


class Measured(NamedTuple):
    """One job: rule, experiment ("" for what experiments share), its path below the rule's folder
    without .tsv, wall-clock and CPU seconds, peak memory in MB."""

    rule: str
    experiment: str
    path: str
    wall: float
    cpu: float
    peak_mb: float


def measured():
    """`Measured` of every benchmark file.

    A job too short to be sampled has no CPU seconds of its own: its wall-clock seconds stand in.
    """
    found = []
    for path, experiment, rule, below in paths.benchmarks():
        with path.open(newline="") as handle:
            row = next(csv.DictReader(handle, delimiter="\t"), None)
        if row is None:
            continue
        wall = _number(row.get("s"))
        cpu = _number(row.get("cpu_time")) or wall
        peak = _number(row.get("max_rss"))
        found.append(Measured(rule, experiment, below, wall, cpu, peak))
    return found


def _number(text):
    try:
        value = float(text)
    except (TypeError, ValueError):
        return 0.0
    return value if value == value else 0.0


def per_rule(jobs):
    """Rows of COLUMNS: jobs, CPU seconds and peak memory of every rule of every experiment."""
    groups = {}
    for job in jobs:
        groups.setdefault((job.rule, job.experiment), []).append(job)
    for (rule, experiment), group in sorted(groups.items(), key=lambda item: item[0][::-1]):
        cpu = [job.cpu for job in group]
        yield (
            *(rule, experiment, len(group), sum(cpu), median(cpu), max(cpu)),
            *(sum(job.wall for job in group), max(job.peak_mb for job in group)),
        )
