"""Runs one cell: one method at one epsilon and training size, on every fold, with `restarts` draws each."""

import math
from functools import partial
from itertools import count

import numpy as np

from dp import metrics
from dp.evaluation import classification, counts, regression, regularised_risk
from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from dp.solvers.fits import penalties
from study.arguments import chosen, of_release
from study.jobs import folds, script
from study.jobs.files import read_json, write_csv

COLUMNS = ("excess_risk", "gradient_norm", "status")


def main():
    parser = script.parser(__doc__)
    script.add_data_arguments(parser)
    parser.add_argument("--method", required=True, help="label, an axis of the seed")
    parser.add_argument("--mechanism", required=True)
    parser.add_argument("--options", type=script.parse_options, default={}, help="JSON")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, default=0.0)
    parser.add_argument("--restarts", type=int, required=True)
    parser.add_argument("--fit", nargs="?", help="shared fits, .npz")
    parser.add_argument("--out", required=True, help=".csv: one row per data set, fold and restart")
    arguments = parser.parse_args()

    mechanism = MECHANISMS[arguments.mechanism]
    meta = read_json(arguments.meta)
    cell = {"epsilon": arguments.epsilon, "delta": arguments.delta}
    size, lam, options = arguments.train_size, arguments.lam, arguments.options
    lam, options = chosen(lam, mechanism, meta, size, options, **cell)
    keywords = of_release(mechanism, meta, options, arguments.data, **cell, lam=lam)
    if mechanism.uses_all_rows:
        keywords["all_rows"] = folds.all_training_rows(arguments)
    restarts = folds.draws_on_each(arguments, meta) if mechanism.private else 1
    fits = read_fits(arguments.fit) if arguments.fit else None
    fit_name = mechanism.shared_fit(options)
    l1, l2 = penalties(fit_name, lam, options.get("lambda1"))
    axes = (arguments.experiment, arguments.dataset, arguments.method)
    axes += folds.noise_axes(arguments.fresh, size, arguments.epsilon)
    fold_count = folds.per_data_set(arguments)
    alike = (number // fold_count for number in count()) if arguments.shared else count()
    rngs = (generator(arguments.seed, *axes, fold, "noise") for fold in alike)
    releases = mechanism.release_many(
        folds.training_folds(arguments, in_blocks=mechanism.in_blocks),
        rngs=rngs,
        **({} if fits is None else {"fits": fits}),
        restarts=restarts,
        **keywords,
    )
    evaluate, names = classification, metrics.CLASSES
    if "target" in meta:
        low, high = meta["target"]["bounds"]
        evaluate, names = partial(regression, unit=(high - low) / 2), metrics.TARGETS
        if meta["target"].get("counts"):
            evaluate, names = partial(counts, largest=high), metrics.COUNTS
    rows = []
    for fold, ((train, test), release) in enumerate(releases):
        ok = release.status == "ok"
        intercept = release.info.get("intercept", 0.0)
        values = evaluate(release.weights, *test, intercept)
        values = [np.where(ok, values[name], np.nan) for name in names]
        excess = np.full(restarts, np.nan)
        summed = options.get("penalty_scale", "mean") != "mean"
        if fits and not summed and fit_name in ("l2", "l1", "elastic_net"):
            loss = options.get("loss", "logistic")
            candidates = np.concatenate([release.weights, fits[fold][0]])
            risk = regularised_risk(candidates, *train, l2, loss, l1)
            excess = np.where(ok, risk[:-1] - risk[-1], np.nan)
        gradient = release.info.get("gradient_norm", np.full(restarts, math.nan))
        reports = (release.info[name] for name in mechanism.reports)
        rows += zip(
            *([fold // fold_count] * restarts, [fold % fold_count] * restarts, range(restarts)),
            *(*values, excess, gradient, release.status),
            *reports,
            strict=True,
        )
    columns = ("data_set", "fold", "restart", *names, *COLUMNS, *mechanism.reports)
    write_csv(arguments.out, columns, rows)


def read_fits(path):
    """For every fold, the (weights (1, d), info) that `dp.solvers.fits` returned."""
    with np.load(path) as arrays:
        weights, gradient_norm, status = (
            arrays[key] for key in ("weights", "gradient_norm", "status")
        )
    return [
        (w, {"gradient_norm": g, "status": s})
        for w, g, s in zip(weights, gradient_norm, status, strict=True)
    ]
