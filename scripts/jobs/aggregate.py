"""Writes all cells of an experiment, with their guarantees, to results.csv."""

from dp import metrics
from study import canonical
from study.configuration.cell import Cell
from study.configuration.experiment import Experiment
from study.jobs import script
from study.jobs.files import read_csv, write_csv
from study.jobs.summary import cells_frame, interval_over

COLUMNS = (
    *("experiment", "dataset", "method", "mechanism", "options", "train_size", "epsilon", "delta"),
    *("lambda", "folds", "restarts", "data_sets", "interval_over", "error_mean", "error_sd"),
    *("error_sd_folds", "error_low", "error_high"),
    *(f"{name}{end}" for name in metrics.ALL if name != "error" for end in metrics.ENDS),
    *("excess_risk_mean", "gradient_norm_max", "status", "epsilon_claimed"),
    *("epsilon_proven", "delta_proven", "adjacency", "reason", "seed"),
)


def main():
    parser = script.parser(__doc__, seed=True)
    parser.add_argument("--experiment", type=Experiment.from_json, required=True, help="JSON")
    parser.add_argument("--guarantees", required=True, help=".csv, of the same cells")
    parser.add_argument("--out", required=True, help=".csv")
    arguments = parser.parse_args()

    experiment = arguments.experiment
    stated = {
        tuple(row[key] for key in Cell._fields): row for row in read_csv(arguments.guarantees)
    }
    varied = [name for name in experiment.varied() if name not in COLUMNS]  # lambda is in COLUMNS
    rows = []
    for row in cells_frame(experiment, experiment.cells()).to_dict("records"):
        size, epsilon = str(row["train_size"]), canonical.epsilon(row["epsilon"])
        values = row | stated[row["dataset"], row["method"], size, epsilon]
        values["interval_over"] = interval_over(experiment, row["data_sets"])
        values["seed"] = arguments.seed
        rows.append([values[column] for column in (*COLUMNS, *varied)])
    write_csv(arguments.out, (*COLUMNS, *varied), rows)
