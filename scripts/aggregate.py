"""All cells of an experiment in results.csv, each with what it guarantees."""

import argparse
import json

from dp import metrics
from dp.accounting import Guarantee, after_preparation, given_that
from dp.mechanisms import MECHANISMS
from dp.privacy.composition import disjoint, sequence
from study.arguments import guarantee, of_cell
from study.canonical import epsilon
from study.configuration.experiment import Cell, Experiment, data_path
from study.configuration.families import shown
from study.jobs import script
from study.jobs.files import read_json, write_csv
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiment", type=Experiment.from_json, required=True, help="JSON")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", required=True, help=".csv")
    arguments = parser.parse_args()

    experiment = arguments.experiment
    frame = cells_frame(experiment, experiment.cells())
    guarantees = Guarantees(experiment)
    varied = [name for name in experiment.varied() if name not in COLUMNS]  # not lambda
    rows = []
    for row in frame.to_dict("records"):
        method = experiment.methods[row["method"]]
        lam, options, stated = guarantees.of(row)
        values = row | {
            "experiment": experiment.name,
            "mechanism": method["mechanism"],
            "options": json.dumps(options, sort_keys=True),
            "epsilon": epsilon(row["epsilon"]),
            "delta": experiment.delta(row["method"], row["train_size"]),
            "lambda": lam,
            "interval_over": interval_over(experiment, row["data_sets"]),
            "epsilon_claimed": stated.claimed_epsilon,
            "epsilon_proven": stated.epsilon,
            "delta_proven": stated.delta,
            "adjacency": stated.adjacency,
            "reason": stated.reason,
            "seed": arguments.seed,
        }
        taken = MECHANISMS[method["mechanism"]].defaults() | options
        own = [shown(taken[name]) if name in taken else "" for name in varied]
        rows.append([*(values[column] for column in COLUMNS), *own])
    write_csv(arguments.out, (*COLUMNS, *varied), rows)


class Guarantees:
    """What each cell's release guarantees, counting its data's preparation and the choice of lambda."""

    def __init__(self, experiment):
        self.experiment = experiment
        self.meta = {name: read_json(data_path(name, "json")) for name in experiment.datasets}

    def of(self, cell):
        """(lambda, options, `dp.accounting.Guarantee`) for a row of `cells_frame`."""
        cell = Cell(*(cell[key] for key in Cell._fields))
        method = self.experiment.methods[cell.method]
        meta = self.meta[cell.dataset]
        tuning = None
        looked, premises = list(meta["private_rows"]), list(meta.get("premises", ()))
        options, settings = of_cell(self.experiment, cell, meta)
        at = cell.dataset, cell.train_size, cell.epsilon
        chosen = self.experiment.regularisation(method, *at).facts()
        looked += ["tuning of lambda"] * chosen.get("private_rows", False)
        premises += chosen.get("premises", ())
        premises += ["its settings, changed after results had been seen"] * method.get(
            "after_results", False
        )
        if "guarantee" in chosen:
            tuning = Guarantee(**chosen["guarantee"])
            spent = sequence if chosen["same_rows"] else disjoint
        mechanism = MECHANISMS[method["mechanism"]]
        rows = self.experiment.trained_rows(cell)
        alone = guarantee(mechanism, meta, rows, options, **settings)
        total = alone if tuning is None else spent([alone, tuning])
        return settings["lam"], options, given_that(after_preparation(total, looked), premises)


if __name__ == "__main__":
    script.run(main)
