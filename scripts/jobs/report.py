"""Writes the report (a self-contained page of all existing results) and each rule's time and memory."""

import json
from pathlib import Path

from reporting import costs
from reporting.collect import Gathered
from reporting.page import render
from study import paths
from study.configuration.experiment import Experiment
from study.jobs import records, script
from study.jobs.files import atomic, write_csv


def main():
    parser = script.parser(__doc__)
    parser.add_argument(
        "--configuration",
        nargs="+",
        required=True,
        help=".json of each experiment: its configuration, every default filled in",
    )
    parser.add_argument("--stand-ins", type=json.loads, default={}, help="data set -> why, JSON")
    parser.add_argument(
        "--stale",
        type=json.loads,
        help="record -> why it is stale, JSON; without it, nothing recorded is shown",
    )
    parser.add_argument(
        "--outdated", nargs="*", default=(), help="files that do not follow from this run's cells"
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--of", required=True, help="what calls the configuration")
    parser.add_argument(
        "--partial",
        action="store_true",
        help="show the existing results, beside a page that shows more; print the path",
    )
    parser.add_argument("--out-html", required=True)
    parser.add_argument("--out-costs", required=True, help=f".csv: {', '.join(costs.COLUMNS)}")
    arguments = parser.parse_args()

    gathered = []
    for path in arguments.configuration:
        experiment = Experiment.from_json(Path(path).read_text(encoding="utf-8"))
        gathered.append(Gathered(experiment, arguments.stand_ins, arguments.outdated))
    shows = {
        "configuration": arguments.of,
        "experiments": {g.experiment.name: g.there for g in gathered},
    }
    old, path = records.page(arguments.out_html), arguments.out_html
    if arguments.partial and old and records.shows_less(shows, old):
        path = paths.PARTIAL_REPORT()
    with atomic(path) as handle:
        handle.write(render(gathered, arguments.seed, shows, arguments.stale, arguments.outdated))
    if path == arguments.out_html:
        Path(paths.PARTIAL_REPORT()).unlink(missing_ok=True)
    if arguments.partial:
        print(path)
    write_csv(arguments.out_costs, costs.COLUMNS, costs.per_rule(costs.measured()))
