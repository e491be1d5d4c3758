"""Judges a source's printed values, claims or defects, and writes the numbers behind the verdicts."""

import json

from checks import published, statements
from checks.results import Results
from checks.under_readings import best_single, most_telling_first
from study import facts as source_file
from study.configuration.experiment import Experiment
from study.jobs import script
from study.jobs.files import read_csv, write_csv


def main():
    parser = script.parser(__doc__)
    parser.add_argument("--experiment", type=Experiment.from_json, required=True, help="JSON")
    parser.add_argument("--section", choices=("published", *statements.SECTIONS), required=True)
    parser.add_argument("--stand-ins", type=json.loads, default={}, help="data set -> why, JSON")
    parser.add_argument("--readings", nargs="?", help="what each reading gives, .csv")
    parser.add_argument("--out", required=True, help=".csv")
    arguments = parser.parse_args()

    experiment, section = arguments.experiment, arguments.section
    results, source = Results(experiment), source_file.read(experiment.source)
    rows = read_csv(arguments.readings) if arguments.readings else []
    readings, best = most_telling_first(rows), best_single(rows).readings
    if section == "published":
        columns = published.COLUMNS
        rows = published.judged(experiment, source, results.printed, readings, best)
    else:
        columns = statements.COLUMNS
        rows = statements.decide(results, source, section, arguments.stand_ins, readings, best)
    write_csv(arguments.out, columns, ([row.get(name) for name in columns] for row in rows))
