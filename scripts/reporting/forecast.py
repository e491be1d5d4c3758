"""Forecasts the cost of jobs from the median of recorded jobs, or from the mean for training jobs.

A job is assumed to take START CPU seconds plus a time proportional to its work. The work of a fit is
training rows x folds (or simulations). A run multiplies this by its draws, and a search by its own folds
and candidates.
"""

import math
import re
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from study import paths

RECORD = paths.HOME / "workflow/costs.csv"
COLUMNS = ("rule", "experiment", "name", "jobs", "work", "cpu_seconds", "peak_mb")
START = 0.05  # CPU seconds of a job without work: the fork and the process that requests it
TRAIN = ("run", "fit", "search")


class Job(NamedTuple):
    """A job to forecast.

    experiment: "" for shared jobs. name: the method of a run, the name of a search, or else the rule.
    """

    rule: str
    experiment: str
    name: str
    work: float


class Forecast(NamedTuple):
    """The total cost of some jobs. unknown: the number of jobs whose rule was never measured."""

    jobs: int
    cpu_seconds: float
    peak_mb: float
    unknown: int


def job(rule, experiment, path, experiments):
    """The `Job` of a path below its rule's folder, such as <dataset>/<method>/n=<size>/eps=<epsilon>.

    experiments: folder of results -> resolved configuration. A reading's jobs count towards its experiment.
    """
    values = experiments.get(experiment)
    experiment = experiment.partition("/")[0]
    parts = path.split("/")
    size = re.search(r"n=(\d+)", path)
    if rule not in TRAIN or not size or not values:
        return Job(rule, experiment if values else "", rule, 1.0)
    replicates = values.get("folds") or values.get("simulations") or 1
    work = int(size[1]) * replicates
    name = rule
    if rule == "run":
        name = parts[1]
        method = values["methods"].get(name, {})
        work = int(size[1]) * method.get("simulations", replicates)
        work *= values["restarts"] if method.get("private", True) else 1
    if rule == "search":
        name = parts[0]
        search = values["searches"].get(name)
        if search:
            replicates = min(replicates, search.get("simulations", replicates))
            candidates = math.prod(len(grid) for grid in search["grid"].values())
            work = int(size[1]) * replicates * search["folds"] * candidates
    return Job(rule, experiment, name, float(work))


def record(measured, experiments):
    """Yield rows of COLUMNS from `reporting.costs.measured`, per rule, experiment and method.

    Training jobs get means instead of medians, because the largest jobs dominate the total time.
    """
    groups = {}
    for one in measured:
        if one.rule in TRAIN and one.experiment not in experiments:
            continue
        key = job(one.rule, one.experiment, one.path, experiments)
        groups.setdefault(key[:3], []).append((key.work, one.cpu, one.peak_mb))
    for key, costs in sorted(groups.items()):
        work, cpu, peak = zip(*costs, strict=True)
        typical = mean if key[0] in TRAIN else median
        yield (*key, len(costs), typical(work), typical(cpu), max(peak))


class Costs:
    """Recorded costs. `of` uses the measured jobs that are most similar to a job."""

    def __init__(self, rows):
        self.rows = {}
        for row in rows:
            values = tuple(float(row[key]) for key in ("work", "cpu_seconds", "peak_mb"))
            for key in (
                (row["rule"], row["experiment"], row["name"]),
                (row["rule"], None, row["name"]),
                (row["rule"], None, None),
            ):
                self.rows.setdefault(key, []).append(values)

    def of(self, one):
        """CPU seconds and peak MB of a `Job`; None if no job of its rule was measured."""
        for key in (one[:3], (one.rule, None, one.name), (one.rule, None, None)):
            if key in self.rows:
                estimates = [
                    START + max(0.0, cpu - START) * (one.work / work)
                    for work, cpu, _ in self.rows[key]
                ]
                return median(estimates), max(peak for *_, peak in self.rows[key])
        return None


def seconds(outputs, experiments, costs):
    """{id of a job: its expected CPU seconds}.

    outputs: id -> (rule, an output file or None). experiments: folder of results -> resolved configuration.
    """
    expected = {}
    for number, (rule, file) in outputs.items():
        folder, rest = "", ()
        if file is not None and Path(file).is_relative_to(paths.results()):
            folder, rest = paths.split(file)
        estimate = costs.of(job(rule, folder, "/".join(rest[1:]), experiments))
        expected[number] = estimate[0] if estimate else START
    return expected


def forecast(jobs, costs):
    """{experiment: `Forecast` of its jobs}. Jobs without a known cost count as START seconds."""
    totals = {}
    for one in jobs:
        count, seconds, peak, unknown = totals.get(one.experiment, Forecast(0, 0.0, 0.0, 0))
        estimate = costs.of(one)
        totals[one.experiment] = Forecast(
            count + 1,
            seconds + (estimate[0] if estimate else START),
            max(peak, estimate[1] if estimate else 0.0),
            unknown + (estimate is None),
        )
    return totals
