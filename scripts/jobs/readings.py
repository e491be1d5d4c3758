"""Judges every printed value and claim under each reading (interpretation) of the source."""

from pathlib import Path

from checks.under_readings import COLUMNS, confront
from study import facts as source_file
from study.configuration.experiment import Experiment
from study.jobs import script
from study.jobs.files import write_csv


def main():
    parser = script.parser(__doc__)
    parser.add_argument("--experiment", type=Experiment.from_json, required=True, help="JSON")
    parser.add_argument(
        "--readings", nargs="*", default=[], help=".json of each: its configuration"
    )
    parser.add_argument("--out", required=True, help=".csv")
    arguments = parser.parse_args()

    experiment = arguments.experiment
    texts = (Path(path).read_text(encoding="utf-8") for path in arguments.readings)
    readings = [Experiment.from_json(text) for text in texts]
    rows = confront(experiment, readings, source_file.read(experiment.source))
    write_csv(arguments.out, COLUMNS, ([row.get(name) for name in COLUMNS] for row in rows))
