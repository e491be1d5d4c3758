"""Cross-validates a method's settings at one size and epsilon, on private training rows or public rows."""

import itertools

import numpy as np

from dp.evaluation import error_rate
from dp.mechanisms import MECHANISMS
from dp.rows import split_folds
from dp.seeds import generator
from study.arguments import of_mechanism, of_release
from study.configuration.experiment_keys import Search
from study.configuration.families import expand
from study.jobs import folds, script
from study.jobs.cross_validation import most_frequent_best
from study.jobs.files import read_json, write_csv, write_json


def main():
    parser = script.parser(__doc__)
    script.add_data_arguments(parser, lam=False)
    parser.add_argument("--search", required=True, help="its name, an axis of the seed")
    parser.add_argument(
        "--grid", type=Search.model_validate_json, required=True, help="its entry, as JSON"
    )
    parser.add_argument("--mechanism", required=True)
    parser.add_argument("--options", type=script.parse_options, default={}, help="JSON")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, default=0.0)
    parser.add_argument("--out-json", required=True, help="the choice")
    parser.add_argument("--out-csv", required=True, help="validation error of every candidate")
    arguments = parser.parse_args()

    entry, mechanism = arguments.grid, MECHANISMS[arguments.mechanism]
    candidates = expand(entry.grid)
    cell = {"epsilon": arguments.epsilon, "delta": arguments.delta}
    meta, options = read_json(arguments.meta), arguments.options
    public = entry.rows == "public"
    if public:
        rows = folds.public_rows(arguments.data, ("public", "holdout"))
        if rows is None:
            raise ValueError(
                f"{arguments.dataset} has neither public nor holdout rows to search on"
            )
        # The rows are public, so this epsilon protects nothing. It is scaled so that the noise equals that
        # of a run on the private rows.
        cell["epsilon"] *= arguments.train_size / (len(rows[1]) * (1 - 1 / entry.folds))
        simulations, all_rows = [(rows, None)], iter([rows[0]])
    else:
        simulations = folds.training_folds(arguments, first=entry.simulations)
        all_rows = folds.all_training_rows(arguments)
    shared = of_release(mechanism, meta, options, arguments.data, **cell)
    measure, errors = folds.measure(meta, entry.by), []

    def by_rule(chosen, size, d):
        keywords = of_mechanism(mechanism, meta, options | chosen, **cell)
        return mechanism.rule_lambda(size, d, **keywords)

    axes = (arguments.experiment, arguments.dataset, arguments.search)

    def divided():
        """Yield (rows to train on, all rows of the simulation, indices of held-out rows) for every part."""
        for simulation, (train, _) in enumerate(simulations):
            shuffle = generator(arguments.seed, *axes, simulation, "search folds")
            parts = split_folds(len(train[0]), entry.folds, shuffle)
            # Training sets are cut to the same size, so the folds can run together.
            size = min(len(fit) for fit, _ in parts)
            for fit, part in parts:
                yield (train[0][fit[:size]], train[1][fit[:size]]), train, part

    rngs = (
        rng
        for simulation in itertools.count()
        for rng in generator(arguments.seed, *axes, simulation, "search noise").spawn(entry.folds)
    )
    if mechanism.uses_all_rows:
        shared["all_rows"] = (rows for rows in all_rows for _ in range(entry.folds))
    for (size, d), tasks in itertools.groupby(divided(), key=lambda task: task[0][0].shape):
        releases = mechanism.release_many(
            tasks,
            rngs=rngs,
            candidates=[
                {"lam": lam or by_rule(chosen, size, d), **chosen} for lam, chosen in candidates
            ],
            **shared,
        )
        errors += [_errors(release, train, part, measure) for (_, train, part), release in releases]
    errors = np.array(errors).reshape(-1, entry.folds, len(candidates)).mean(axis=1)
    wins, chosen = most_frequent_best(errors)
    names = sorted({name for _, options in candidates for name in options})
    rows = [
        (
            "" if lam is None else lam,
            *(options.get(name, "") for name in names),
            errors[:, k].mean(),
            wins[k],
            int(k == chosen),
        )
        for k, (lam, options) in enumerate(candidates)
    ]
    write_csv(arguments.out_csv, ("lambda", *names, "error_mean", "wins", "chosen"), rows)
    lam, options = candidates[chosen]
    write_json(
        arguments.out_json,
        {
            "lambda": lam,
            "options": options,
            "error": errors[:, chosen].mean(),
            "wins": int(wins[chosen]),
            "simulations": len(errors),
            "tuned_on": "public rows" if public else "the private rows themselves",
            "private_rows": not public,
            "premises": ["the rows that chose settings"] if public else [],
        },
    )


def _errors(release, train, part, measure):
    X, y = train[0][part], train[1][part]
    error = measure(release.weights, X, y, release.info.get("intercept", 0.0))
    # A failed fit classifies no row correctly, as in E18's program. Other errors have no largest value.
    return np.where(release.status == "ok", error, 1.0 if measure is error_rate else np.nan)
