"""Writes the privacy cost of methods, including tuning and preparation."""

import math
from itertools import groupby

from study.jobs import script
from study.jobs.files import read_csv, write_csv

CELL = (
    *("train_size", "epsilon", "epsilon_claimed", "epsilon_proven", "delta_proven"),
    *("adjacency", "reason"),
)
METHOD = ("experiment", "dataset", "method", "mechanism")
COLUMNS = (
    *METHOD,
    *("lambda", "lambda_from", "private_steps"),
    *("cells", "cells_together", "cells_as_claimed", "cells_beyond", "cells_without"),
    *CELL,
)


def main():
    parser = script.parser(__doc__)
    parser.add_argument("guarantees", nargs="*", help=".csv, one per experiment")
    parser.add_argument("--out", required=True, help=".csv, one row per data set and method")
    arguments = parser.parse_args()

    rows = []
    for path in arguments.guarantees:
        for method, cells in groupby(read_csv(path), lambda row: [row[key] for key in METHOD]):
            cells = list(cells)
            factors = [excess(cell) for cell in cells]
            worst = cells[factors.index(max(factors))]
            rows.append(
                (
                    *method,
                    *(worst[key] for key in ("lambda", "lambda_from", "private_steps")),
                    *(len(cells), together(cells)),
                    sum(factor <= 1 for factor in factors),
                    sum(1 < factor < math.inf for factor in factors),
                    sum(factor == math.inf for factor in factors),
                    *(worst[key] for key in CELL),
                )
            )
    write_csv(arguments.out, COLUMNS, rows)


def excess(cell):
    """The proven epsilon divided by the claimed one; infinite if no epsilon is proven."""
    proven = float(cell["epsilon_proven"] or "nan")
    return proven / float(cell["epsilon_claimed"]) if math.isfinite(proven) else math.inf


def together(cells):
    """What is guaranteed if all cells of a method are released together, in words."""
    if math.isinf(float(cells[0]["epsilon"])):  # without privacy
        return ""
    if len(cells) == 1:
        return "as the one cell"
    return "no guarantee: cells share unit draws, so two released ones can give the noise away"
