"""Recommends methods from experiments' cells."""

from pathlib import Path

from dp_privacy.accounting import REPLACE_ONE
from plots import style
from plots.recommendations import regret
from reporting import recommendations
from study.configuration.experiment import Experiment
from study.jobs import script
from study.jobs.files import write_csv

MAIN = recommendations.UNTUNED, REPLACE_ONE


def main():
    parser = script.parser(__doc__)
    parser.add_argument("--configuration", nargs="+", required=True, help=".json of experiments")
    parser.add_argument("--out", required=True, help=".csv: per question and method")
    parser.add_argument("--out-across", required=True, help=".csv: per method, across data sets")
    parser.add_argument("--out-figure", required=True, help=".png: the same as a figure")
    arguments = parser.parse_args()

    texts = (Path(path).read_text(encoding="utf-8") for path in arguments.configuration)
    experiments = [Experiment.from_json(text) for text in texts]
    rows = recommendations.recommend(experiments)
    across = recommendations.across(rows)
    for path, columns, records in (
        (arguments.out, recommendations.COLUMNS, rows),
        (arguments.out_across, recommendations.ACROSS, across),
    ):
        write_csv(path, columns, ([row[column] for column in columns] for row in records))
    untuned = [r for r in across if (r["regime"], r["adjacency"]) == MAIN]
    style.save(regret(untuned), arguments.out_figure)
