"""Writes a source's printed numbers next to ours, for the experiment and each reading (interpretation)."""

import json
from pathlib import Path

from checks.published import compare
from checks.results import Read, Results
from study import facts as source_file
from study.configuration.experiment import Experiment
from study.jobs import script
from study.jobs.files import write_json


def main():
    parser = script.parser(__doc__)
    parser.add_argument("--experiment", type=Experiment.from_json, required=True, help="JSON")
    parser.add_argument(
        "--readings", nargs="*", default=[], help=".json of each: its configuration"
    )
    parser.add_argument("--stand-ins", type=json.loads, default={}, help="data set -> why, JSON")
    parser.add_argument("--out", required=True, help=".json: experiment or reading -> rows")
    arguments = parser.parse_args()

    main, source = Results(arguments.experiment), source_file.read(arguments.experiment.source)
    texts = (Path(path).read_text(encoding="utf-8") for path in arguments.readings)
    every = [main, *(Read(Experiment.from_json(text), main) for text in texts)]
    compared = {
        results.experiment.name: list(
            compare(results, source, results.experiment.published, arguments.stand_ins)
        )
        for results in every
    }
    write_json(arguments.out, compared)
