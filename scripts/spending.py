"""What an experiment's methods spend on privacy, their tuning and preparation included."""

import argparse
import math

from aggregate import Guarantees
from study import canonical, jobs
from study.experiment import Experiment, data_path
from study.files import read_json, write_csv

COLUMNS = (
    *("experiment", "dataset", "method", "mechanism", "lambda", "lambda_from", "private_steps"),
    *("cells", "cells_as_claimed", "cells_beyond", "cells_without", "train_size", "epsilon"),
    *("epsilon_claimed", "epsilon_proven", "delta_proven", "adjacency", "reason"),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiment", type=Experiment.from_json, required=True, help="JSON")
    parser.add_argument("--out", required=True, help=".csv, one row per data set and method")
    arguments = parser.parse_args()

    experiment = arguments.experiment
    guarantees = Guarantees(experiment)
    rows = []
    for dataset in experiment.datasets:
        steps = read_json(data_path(dataset, "json"))["private_rows"]
        for label, method in experiment.methods.items():
            cells = experiment.cells(datasets=[dataset], methods=[label])
            if not cells:
                continue
            found = [(cell, *guarantees.of(cell._asdict())) for cell in cells]
            cell, lam, worst = max(found, key=lambda item: excess(item[2]))
            factors = [excess(guarantee) for _, _, guarantee in found]
            rows.append(
                (
                    *(experiment.name, dataset, label, method["mechanism"]),
                    lam,
                    lambda_from(experiment, dataset, method["lambda"]),
                    ", ".join(steps),
                    len(found),
                    sum(factor <= 1 for factor in factors),
                    sum(1 < factor < math.inf for factor in factors),
                    sum(factor == math.inf for factor in factors),
                    cell.train_size,
                    canonical.epsilon(cell.epsilon),
                    *worst[:5],
                )
            )
    write_csv(arguments.out, COLUMNS, rows)


def excess(guarantee):
    """How many times the claimed epsilon is proven; infinite without a guarantee."""
    if math.isinf(guarantee.epsilon):
        return math.inf
    return guarantee.epsilon / guarantee.claimed_epsilon * (1 - 1e-12)  # equal up to rounding


def lambda_from(experiment, dataset, lam):
    """Where the regularisation comes from, and what that spends."""
    if lam != "tuned":
        return "stated in the configuration"
    tuned = read_json(experiment.tuned_path(dataset, "json"))
    if "guarantee" in tuned:
        epsilon = tuned["guarantee"]["epsilon"]
        return f"private tuning on {tuned['tuned_on']}, epsilon {epsilon:g}"
    if tuned["private_rows"]:
        return f"cross-validation on {tuned['tuned_on']}, not paid for"
    return f"tuned on {tuned['tuned_on']}"


if __name__ == "__main__":
    jobs.run(main)
