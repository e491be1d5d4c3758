"""One cell: one method at one epsilon and training size, on every fold, `restarts` draws each."""

import argparse
import math

import numpy as np

from dp.evaluation import error_rate, regularised_risk
from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from study import jobs
from study.files import read_json, write_csv

COLUMNS = ("fold", "restart", "error", "excess_risk", "gradient_norm", "status", "train_error")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    jobs.add_data_arguments(parser)
    parser.add_argument("--method", required=True, help="label, an axis of the seed")
    parser.add_argument("--mechanism", required=True)
    parser.add_argument("--options", type=jobs.parse_options, default={}, help="JSON")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, default=0.0)
    parser.add_argument("--restarts", type=int, required=True)
    parser.add_argument("--fit", nargs="?", help="shared fits, .npz")
    parser.add_argument("--out", required=True, help=f".csv: {', '.join(COLUMNS)}")
    arguments = parser.parse_args()

    mechanism = MECHANISMS[arguments.mechanism]
    lam = jobs.read_lambda(arguments.lam)
    meta = read_json(arguments.meta)
    given = mechanism.of_data(meta)
    if mechanism.uses_public_rows and meta.get("public_rows"):
        given["public"] = jobs.public_rows(arguments.data)
    restarts = arguments.restarts if mechanism.private else 1
    fits = read_fits(arguments.fit) if arguments.fit else None
    rows = []
    for fold, (train, test) in enumerate(jobs.training_folds(arguments)):
        # No axis for epsilon and size: the same unit draws along every curve.
        axes = (arguments.experiment, arguments.dataset, arguments.method, fold, "noise")
        release = mechanism.release(
            *train,
            epsilon=arguments.epsilon,
            delta=arguments.delta,
            lam=lam,
            restarts=restarts,
            rng=generator(arguments.seed, *axes),
            bound=meta["bound"],
            **given,
            **({} if fits is None else {"fit": fits[fold]}),
            **arguments.options,
        )
        ok = release.status == "ok"
        error, train_error = (
            np.where(ok, error_rate(release.weights, *part), np.nan) for part in (test, train)
        )
        excess = np.full(restarts, np.nan)
        if fits is not None:
            loss = arguments.options.get("loss", "logistic")
            candidates = np.concatenate([release.weights, fits[fold][0]])
            risk = regularised_risk(candidates, *train, lam, loss)
            excess = np.where(ok, risk[:-1] - risk[-1], np.nan)
        gradient = release.info.get("gradient_norm", np.full(restarts, math.nan))
        rows += zip(
            *([fold] * restarts, range(restarts), error, excess, gradient, release.status),
            train_error,
            strict=True,
        )
    write_csv(arguments.out, COLUMNS, rows)


def read_fits(path):
    """(weights (1, d), info) of every fold, as `dp.fits` returned them."""
    with np.load(path) as arrays:
        weights, gradient_norm, status = (
            arrays[key] for key in ("weights", "gradient_norm", "status")
        )
    return [
        (w, {"gradient_norm": g, "status": s})
        for w, g, s in zip(weights, gradient_norm, status, strict=True)
    ]


if __name__ == "__main__":
    jobs.run(main)
