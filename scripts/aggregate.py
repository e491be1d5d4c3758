"""All cells of an experiment in results.csv, each with what it guarantees."""

import argparse
import json

from dp.accounting import after_preparation
from dp.mechanisms import MECHANISMS
from study import jobs
from study.canonical import epsilon
from study.experiment import Experiment, data_path
from study.files import read_json, write_csv
from study.summary import cells_frame

COLUMNS = (
    *("experiment", "dataset", "method", "mechanism", "options", "train_size", "epsilon", "delta"),
    *("lambda", "folds", "restarts", "error_mean", "error_sd", "error_sd_folds", "error_low"),
    *(
        "error_high",
        "train_error_mean",
        "excess_risk_mean",
        "gradient_norm_max",
        "status",
        "epsilon_claimed",
    ),
    *("epsilon_proven", "delta_proven", "adjacency", "reason", "seed"),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiment", type=Experiment.from_json, required=True, help="JSON")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", required=True, help=".csv")
    arguments = parser.parse_args()

    experiment = arguments.experiment
    frame = cells_frame(experiment, experiment.cells())
    guarantees = Guarantees(experiment)
    rows = []
    for row in frame.to_dict("records"):
        method = experiment.methods[row["method"]]
        lam, guarantee = guarantees.of(row)
        values = row | {
            "experiment": experiment.name,
            "mechanism": method["mechanism"],
            "options": json.dumps(method["options"], sort_keys=True),
            "epsilon": epsilon(row["epsilon"]),
            "delta": method["delta"],
            "lambda": lam,
            "epsilon_claimed": guarantee.claimed_epsilon,
            "epsilon_proven": guarantee.epsilon,
            "delta_proven": guarantee.delta,
            "adjacency": guarantee.adjacency,
            "reason": guarantee.reason,
            "seed": arguments.seed,
        }
        rows.append([values[column] for column in COLUMNS])
    write_csv(arguments.out, COLUMNS, rows)


class Guarantees:
    """What each cell's release guarantees, its data's preparation and its lambda's tuning included."""

    def __init__(self, experiment):
        self.experiment = experiment
        self.meta = {name: read_json(data_path(name, "json")) for name in experiment.datasets}

    def of(self, cell):
        """(lambda, `dp.accounting.Guarantee`) of a row with dataset, method, train_size, epsilon."""
        method = self.experiment.methods[cell["method"]]
        meta = self.meta[cell["dataset"]]
        looked, lam = list(meta["private_rows"]), method["lambda"]
        if lam == "tuned":
            tuned = read_json(self.experiment.tuned_path(cell["dataset"], "json"))
            lam = tuned["lambda"]
            looked += ["tuning of lambda"] * tuned["private_rows"]
        guarantee = MECHANISMS[method["mechanism"]].guarantee(
            cell["train_size"],
            len(meta["columns"]),
            epsilon=cell["epsilon"],
            delta=method["delta"],
            lam=lam,
            bound=meta["bound"],
            **MECHANISMS[method["mechanism"]].of_data(meta),
            **method["options"],
        )
        return lam, after_preparation(guarantee, looked)


if __name__ == "__main__":
    jobs.run(main)
