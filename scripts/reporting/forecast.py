"""Forecasts the CPU seconds of jobs from those that runs measured, to within about a factor of two.

A job takes START seconds, and a time that grows with its work. The work of a job that trains is its
training rows x folds (or simulations), times the draws of a run, or the folds and candidates of a search.
That of any other job is 1.
"""

import math
import re
from pathlib import Path

from study import paths

TABLE = paths.HOME / "workflow/costs.csv"
COLUMNS = ("rule", "experiment", "jobs", "work", "cpu_seconds")  # the last three are totals
START = 0.05  # CPU seconds of a job without work: the fork and the process that requests it
TRAIN = ("run", "fit", "search")


def by_the_clock(expected, cores):
    """Seconds by the clock of jobs with these CPU seconds, each on one core; nothing beats the longest."""
    return max(sum(expected) / cores, max(expected, default=0.0))


def work(rule, path, experiment):
    """The work of a job. path: below its rule's folder, such as <dataset>/<method>/n=<size>/eps=1."""
    size = re.search(r"n=(\d+)", path)
    if rule not in TRAIN or not size:
        return 1
    replicates = experiment.folds or experiment.simulations or 1
    if rule == "run":
        method = experiment.methods.get(path.split("/")[1])
        draws = experiment.restarts if method is None or method.private else 1
        replicates = (method and method.simulations) or replicates
        return int(size[1]) * replicates * draws
    if rule == "search" and path.split("/")[0] in experiment.searches:
        search = experiment.searches[path.split("/")[0]]
        candidates = math.prod(len(grid) for grid in search.grid.values())
        replicates = min(replicates, search.simulations or replicates)
        return int(size[1]) * replicates * search.folds * candidates
    return int(size[1]) * replicates


def totals(measured, experiments):
    """Rows of COLUMNS from `reporting.costs.measured`: jobs that train per experiment, others per rule.

    experiments: folder of results -> experiment. A reading's jobs count towards its experiment.
    """
    sums = {}
    for one in measured:
        if one.rule in TRAIN and one.experiment not in experiments:
            continue
        experiment = one.experiment.partition("/")[0] if one.rule in TRAIN else ""
        own = work(one.rule, one.path, experiments.get(one.experiment))
        count, done, cpu = sums.get((one.rule, experiment), (0, 0, 0.0))
        sums[one.rule, experiment] = count + 1, done + own, cpu + one.cpu
    return [(*key, *sums[key]) for key in sorted(sums)]


def seconds(outputs, experiments, rows):
    """{id of a job: its expected CPU seconds}.

    outputs: id -> (rule, an output file or None). experiments: as in `totals`. rows: the table's. A job of
    an unmeasured experiment is like those of the others; if no job of its rule was measured, it is short.
    """
    sums = {}
    for row in rows:
        jobs, done, cpu = (float(row[key]) for key in ("jobs", "work", "cpu_seconds"))
        for key in ((row["rule"], row["experiment"]), (row["rule"], None)):
            old = sums.get(key, (0.0, 0.0))
            sums[key] = old[0] + done, old[1] + max(0.0, cpu - START * jobs)
    expected = {}
    for number, (rule, file) in outputs.items():
        folder, rest = "", ()
        if file is not None and Path(file).is_relative_to(paths.results()):
            folder, rest = paths.split(file)
        own = work(rule, "/".join(rest[1:]), experiments[folder]) if folder in experiments else 1
        experiment = folder.partition("/")[0]
        done, cpu = sums.get((rule, experiment)) or sums.get((rule, None)) or (1.0, 0.0)
        expected[number] = START + own * cpu / done
    return expected
