"""Computes the cross-validation error of non-private fits along a logarithmic grid of lambdas."""

import numpy as np

from dp.rows import split_folds
from dp.seeds import generator
from study.data.prepared import Prepared
from study.jobs import folds, script
from study.jobs.cross_validation import cross_validate
from study.jobs.files import read_json, write_csv, write_json


def main():
    parser = script.parser(__doc__, seed=True)
    parser.add_argument("--data", required=True, help="prepared rows, .npz")
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--grid", nargs=3, type=float, metavar=("LOW", "HIGH", "VALUES"))
    parser.add_argument("--folds", type=int, required=True)
    parser.add_argument("--loss", default="logistic")
    parser.add_argument("--lasso", help="scale of an L1 penalty, in place of L2's")
    parser.add_argument("--meta", required=True, help="what was done to the rows, .json")
    parser.add_argument("--out-json", required=True, help="the tuned lambda and its ties")
    parser.add_argument("--out-csv", required=True, help="error of every lambda")
    arguments = parser.parse_args()

    prepared = Prepared(arguments.data)
    holdout = "X_holdout" in prepared
    X, y = prepared.floats(part="holdout" if holdout else "")
    low, high, values = arguments.grid
    # Rounding makes values such as 0.01 exact.
    grid = np.array([float(f"{lam:.9g}") for lam in np.geomspace(low, high, int(values))])
    rng = generator(arguments.seed, arguments.experiment, arguments.dataset, "tuning folds")
    errors, status = cross_validate(
        X,
        y,
        grid,
        split_folds(len(X), arguments.folds, rng),
        loss=arguments.loss,
        lasso=arguments.lasso,
        measure=folds.measure(read_json(arguments.meta)),
    )
    # The means of equal error counts may differ in their last bits; rounding turns them into ties.
    mean = errors.mean(axis=1).round(12)
    if np.isnan(mean).all():
        raise ValueError(
            f"{arguments.dataset}: no lambda of the grid could be fitted on every fold"
        )
    best = mean == np.nanmin(mean)
    write_csv(
        arguments.out_csv,
        ("lambda", "error_mean", "error_sd_folds", "best", "status"),
        zip(
            grid,
            mean,
            errors.std(axis=1, ddof=1),
            best.astype(int),
            ["ok" if (row == "ok").all() else row[row != "ok"][0] for row in status],
            strict=True,
        ),
    )
    write_json(
        arguments.out_json,
        {
            # of tied lambdas, the largest needs the least noise
            "lambda": grid[best].max(),
            "ties": grid[best].tolist(),
            "error": np.nanmin(mean),
            "rows": len(X),
            "tuned_on": "a separate holdout" if holdout else "the private rows themselves",
            "private_rows": not holdout,
            "premises": ["the holdout rows that chose lambda"] if holdout else [],
        },
    )
