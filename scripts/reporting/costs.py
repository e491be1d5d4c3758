"""Reads run times and memory use of finished jobs, and says what a more certain verdict would cost."""

import math
from pathlib import Path
from statistics import median
from typing import NamedTuple

from checks.verdicts import ENOUGH
from study import paths
from study.jobs import cost
from study.jobs.files import read_csv

COLUMNS = (
    *("rule", "experiment", "jobs", "cpu_seconds", "cpu_seconds_median", "cpu_seconds_max"),
    *("wall_seconds", "peak_mb"),
)
CELL = ("dataset", "method", "train_size")  # with epsilon, the columns that name a cell


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


def seconds_of_cells(experiment):
    """(data set, method, training size, epsilon) -> processor seconds of a cell's job, of timing.csv.

    {} before an experiment has run.
    """
    timing = Path(paths.TIMING(experiment=experiment))
    seconds = {}
    for cell in read_csv(timing) if timing.exists() else ():
        key = (*(cell[name] for name in CELL), float(cell["epsilon"]))
        seconds[key] = seconds.get(key, 0.0) + float(cell["cpu_seconds"])
    return seconds


def needed(row, seconds):
    """How many more replicates, and processor hours, a printed number needs for a verdict of enough power.

    "" if its power is enough or unknown. row: of results/verdicts/<source>.csv. seconds: of
    `seconds_of_cells` for its experiment. The hours are those of its cell in this run, so much longer.
    """
    if not row.get("power") or float(row["power"]) >= ENOUGH:
        return ""
    said = f"power {100 * float(row['power']):.0f} %"
    if math.isinf(more := float(row["more"])):
        return f"{said}, whatever the number of replicates"
    cell = (*(row[key] for key in CELL), float(row["epsilon"] or "inf"))
    if cell not in seconds:
        return f"{said}, needs about {more:,.0f} more replicates"
    hours = seconds[cell] * more / float(row["replicates"]) / 3600
    return f"{said}, needs about {more:,.0f} more replicates, {hours:.2g} hours"
