"""Reads run times and memory use of finished jobs from their logs."""

from statistics import median
from typing import NamedTuple

from study import paths
from study.jobs import cost

COLUMNS = (
    *("rule", "experiment", "jobs", "cpu_seconds", "cpu_seconds_median", "cpu_seconds_max"),
    *("wall_seconds", "peak_mb"),
)


class Measured(NamedTuple):
    """The cost of one job, in seconds and MB.

    rule: the job, usually named after its rule. experiment: the folder of results, such as an
    experiment's or "data". path: the log's path below the rule's folder.
    """

    rule: str
    experiment: str
    path: str
    wall: float
    cpu: float
    peak_mb: float


def measured():
    jobs = []
    for log, experiment, path in paths.logs():
        took = cost.read(log)
        if took:
            below = path.partition("/")[2]
            jobs.append(Measured(took.script, experiment, below, took.wall, took.cpu, took.peak_mb))
    return jobs


def per_rule(jobs):
    """Rows of COLUMNS, one per rule and experiment."""
    groups = {}
    for job in jobs:
        groups.setdefault((job.rule, job.experiment), []).append(job)
    for (rule, experiment), group in sorted(groups.items(), key=lambda item: item[0][::-1]):
        cpu = [job.cpu for job in group]
        yield (
            *(rule, experiment, len(group), sum(cpu), median(cpu), max(cpu)),
            *(sum(job.wall for job in group), max(job.peak_mb for job in group)),
        )
