"""Forecasts the number of jobs and the CPU hours of a run, per experiment.

python scripts/tools/forecast.py --configfile config/real.yaml config/full.yaml
python scripts/tools/forecast.py -- cm08
"""

import sys
from pathlib import Path

import home

from reporting import costs, forecast
from reporting.plan import configuration, planned
from study import paths
from study.configuration.config import ConfigError, load
from study.jobs import script
from study.jobs.files import read_csv, read_json, write_csv


def main():
    parser = home.run_arguments(__doc__)
    parser.add_argument("--all", action="store_true", help="also jobs whose results are up to date")
    parser.add_argument("--cores", type=int, default=4, help="for the time on so many cores")
    parser.add_argument(
        "--record", action="store_true", help=f"measure anew: from results to {forecast.RECORD}"
    )
    arguments = parser.parse_args()
    try:
        record() if arguments.record else show(arguments)
    except ConfigError as error:
        sys.exit(f"error: {error}")


def show(arguments):
    _, experiments, _ = load(*configuration(arguments.configfile))
    experiments = {experiment.folder: experiment.values for experiment in experiments.values()}
    jobs_to_run = [
        forecast.job(job.rule, job.experiment, job.path, experiments)
        for job in planned(arguments.configfile, arguments.targets, home.START)
        if job.pending or arguments.all
    ]
    known = forecast.Costs(read_csv(forecast.RECORD))
    totals = forecast.forecast(jobs_to_run, known)
    print(f"{'experiment':<24}{'jobs':>8}{'CPU hours':>12}{'peak MB':>10}")
    for name, total in sorted(totals.items(), key=lambda item: (item[0] == "", item[0])):
        print(line(name or "(shared)", total))
    everything = forecast.Forecast(
        sum(total.jobs for total in totals.values()),
        sum(total.cpu_seconds for total in totals.values()),
        max((total.peak_mb for total in totals.values()), default=0.0),
        sum(total.unknown for total in totals.values()),
    )
    print(line("all", everything))
    hours = everything.cpu_seconds / 3600 / arguments.cores
    print(f"On {arguments.cores} cores about {hours:.2g} hours.")
    print(
        "The record does not know the number of columns: wider data than were measured cost more."
    )
    if everything.unknown:
        print(
            f"{everything.unknown} jobs have rules that were never measured; they count as short."
        )


def line(name, total):
    hours = total.cpu_seconds / 3600
    return f"{name:<24}{total.jobs:>8}{hours:>12.3f}{total.peak_mb:>10.0f}"


def record():
    results = Path(paths.results())
    files = [
        *results.glob("*/configuration.json"),
        *results.glob("*/readings/*/configuration.json"),
    ]
    experiments = {path.parent.relative_to(results).as_posix(): read_json(path) for path in files}
    rows = {}
    if forecast.RECORD.exists():
        lines = (tuple(row.values()) for row in read_csv(forecast.RECORD))
        rows = {row[:3]: row for row in lines}
    rows |= {row[:3]: row for row in forecast.record(costs.measured(), experiments)}
    write_csv(forecast.RECORD, forecast.COLUMNS, [rows[key] for key in sorted(rows)])


if __name__ == "__main__":
    script.run(main, job=False)
