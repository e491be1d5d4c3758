"""Forecasts the number of jobs and the CPU hours of a run, per experiment, and its hours by the clock.

python scripts/tools/forecast.py --configfile config/real.yaml config/full.yaml
python scripts/tools/forecast.py -- cm08
"""

import sys
from pathlib import Path

import home

from reporting import costs, forecast, terminal
from reporting.plan import configuration, planned
from study import paths
from study.configuration.config import ConfigError, load
from study.configuration.experiment import Experiment
from study.jobs import script
from study.jobs.files import read_csv, write_csv


def main():
    parser = home.run_arguments(__doc__)
    parser.add_argument("--all", action="store_true", help="also jobs whose results are up to date")
    parser.add_argument(
        "--cores",
        type=int,
        default=4,
        help="cores that work at a time; of a cluster, submissions x the profile's cores",
    )
    parser.add_argument(
        "--record", action="store_true", help=f"measure anew: from results to {forecast.TABLE}"
    )
    arguments = parser.parse_args()
    try:
        record() if arguments.record else show(arguments)
    except ConfigError as error:
        sys.exit(f"error: {error}")


def show(arguments):
    _, experiments, _ = load(*configuration(arguments.configfile))
    names = {experiment.folder.partition("/")[0] for experiment in experiments.values()}
    experiments = {experiment.folder: experiment for experiment in experiments.values()}
    jobs = [
        job
        for job in planned(arguments.configfile, arguments.targets, home.START)
        if job.pending or arguments.all
    ]
    outputs = {number: (job.rule, job.file) for number, job in enumerate(jobs)}
    expected = forecast.seconds(outputs, experiments, read_csv(forecast.TABLE))
    totals = {}
    for number, job in enumerate(jobs):
        name = job.experiment.partition("/")[0]
        name = name if name in names else "(shared)"
        count, seconds = totals.get(name, (0, 0.0))
        totals[name] = count + 1, seconds + expected[number]
    print(f"{'experiment':<24}{'jobs':>8}{'CPU hours':>12}")
    for name in sorted(totals, key=lambda name: (name == "(shared)", name)):
        print(line(name, *totals[name]))
    seconds = sum(expected.values())
    print(line("all", len(jobs), seconds))
    clock = forecast.by_the_clock(expected.values(), arguments.cores)
    duration = terminal.duration(clock)
    print(f"On {arguments.cores} cores {duration} by the clock, not counting time in queues.")
    print("Wider data than were measured cost more.")


def line(name, jobs, seconds):
    return f"{name:<24}{jobs:>8}{seconds / 3600:>12.3f}"


def record():
    results = Path(paths.results())
    files = [
        *results.glob("*/configuration.json"),
        *results.glob("*/readings/*/configuration.json"),
    ]
    experiments = {
        path.parent.relative_to(results).as_posix(): Experiment.from_json(path.read_text("utf-8"))
        for path in files
    }
    rows = [tuple(row.values()) for row in read_csv(forecast.TABLE)]
    known = {row[:2]: row for row in (*rows, *forecast.totals(costs.measured(), experiments))}
    write_csv(forecast.TABLE, forecast.COLUMNS, [known[key] for key in sorted(known)])


if __name__ == "__main__":
    script.run(main, job=False)
