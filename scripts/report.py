"""The report, one self-contained page, of whatever results there are; and the costs per rule."""

import argparse
import json
from pathlib import Path

from reporting import costs
from reporting.collect import Gathered
from reporting.page import render
from study import jobs
from study.experiment import Experiment
from study.files import atomic, write_csv


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--configuration",
        nargs="+",
        required=True,
        help=".json of each experiment: its configuration, every default filled in",
    )
    parser.add_argument("--stand-ins", type=json.loads, default={}, help="data set -> why, JSON")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out-html", required=True)
    parser.add_argument("--out-costs", required=True, help=f".csv: {', '.join(costs.COLUMNS)}")
    arguments = parser.parse_args()

    gathered = []
    for path in arguments.configuration:
        experiment = Experiment.from_json(Path(path).read_text(encoding="utf-8"))
        gathered.append(Gathered(experiment, arguments.stand_ins))
    page = render(gathered, arguments.seed)
    with atomic(arguments.out_html) as handle:
        handle.write(page)
    write_csv(arguments.out_costs, costs.COLUMNS, costs.per_rule(costs.measured()))


if __name__ == "__main__":
    jobs.run(main)
