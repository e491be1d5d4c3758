"""What an experiment's methods spend of privacy, including their tuning and preparation."""

import argparse
import math

from aggregate import Guarantees
from study import canonical
from study.configuration.experiment import Experiment, data_path
from study.jobs import script
from study.jobs.files import read_json, write_csv

COLUMNS = (
    *("experiment", "dataset", "method", "mechanism", "lambda", "lambda_from", "private_steps"),
    *("cells", "cells_together", "cells_as_claimed", "cells_beyond", "cells_without"),
    *("train_size", "epsilon"),
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
            cell, lam, _, worst = max(found, key=lambda item: excess(item[-1]))
            factors = [excess(guarantee) for *_, guarantee in found]
            rows.append(
                (
                    *(experiment.name, dataset, label, method["mechanism"]),
                    lam,
                    lambda_from(experiment, method, cell),
                    ", ".join(steps),
                    len(found),
                    together(method, found),
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
    """The proven epsilon over the claimed one; infinite if none is proven."""
    if not math.isfinite(guarantee.epsilon):
        return math.inf
    return guarantee.epsilon / guarantee.claimed_epsilon * (1 - 1e-12)  # equal up to rounding


def together(method, cells):
    """What holds if all of a method's cells are released together: nothing is composed here."""
    if not method["private"]:
        return ""
    if len(cells) == 1:
        return "as the one cell"
    return "no guarantee: cells share unit draws, so two released ones can give the noise away"


def lambda_from(experiment, method, cell):
    """Where lambda comes from, and what that spends."""
    at = cell.dataset, cell.train_size, cell.epsilon
    return experiment.regularisation(method, *at).origin()


if __name__ == "__main__":
    script.run(main)
