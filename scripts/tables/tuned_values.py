"""Tuned values next to published ones, and the cost of each way of tuning."""

import math
from pathlib import Path

from study.canonical import number
from study.configuration.inputs import DRAWS, TUNING
from study.configuration.kinds import table
from study.configuration.options import Method, Options
from study.jobs import paired
from study.jobs.files import read_csv, read_json

COLUMNS = (
    *("dataset", "lambda_tuned", "error_tuned", "ties", "lambdas_tied", "lambda_published"),
    *("error_published", "lambda_nearest", "tuned_on"),
)
ENDS = ("mean", "low", "high")
PRICE = (
    *("mechanism", "dataset", "train_size", "epsilon", "settings", "metric", "mean"),
    *("over_rule", "over_rule_low", "over_rule_high"),
)


@table(TUNING)
def tuning(experiment, spec, paths):
    """One row per data set: the best lambda (the largest of the ties), all ties, and their error.

    If a published lambda is known, further columns are its error and the tie nearest to it.
    """
    published = experiment.lambda_published
    rows = []
    for dataset, path in paths.items():
        tuned = read_json(Path(path).with_suffix(".json"))
        errors = {float(row["lambda"]): row["error_mean"] for row in read_csv(path)}
        ties = sorted(tuned["ties"])
        rows.append(
            (
                *(dataset, tuned["lambda"], tuned["error"], len(ties)),
                " ".join(number(float(lam)) for lam in ties),
                "" if published is None else published,
                float(errors.get(published) or "nan"),
                math.nan if published is None else _nearest(ties, published),
                tuned["tuned_on"],
            )
        )
    return COLUMNS, rows


def _nearest(lambdas, value):
    return min(lambdas, key=lambda lam: abs(math.log(lam / value)))


class Price(Options):
    panels: dict[str, list[Method]] = {}
    metric: str = "log_loss"
    baseline: Method = "nonprivate"
    ways: list = ["by rule", "selected, paid for", "on public rows", "not paid for: void"]


@table(DRAWS, Price)
def price_of_tuning(experiment, spec, draws):
    """One row per mechanism, cell and way of tuning: the metric, and its excess over the rule's.

    options["panels"], options["ways"]: as for the figure of the same name. The first method of each panel
    uses the rule, which is not tuned on rows. over_rule: the excess over this method, paired by fold, with
    a 95 % interval.
    """
    options = spec.options
    means = paired.fold_means(draws, options["metric"])
    rows = []
    for title, ways in options["panels"].items():
        ways = dict(zip(ways, options["ways"], strict=True))
        own = means[means["method"].isin(ways)]
        if own["method"].nunique() < 2:
            continue
        over = paired.differences(means, next(iter(ways))).set_index([*paired.AT, "method"])
        for at, cell in own.groupby(paired.AT, sort=False):
            values = cell.groupby("method")["value"].mean()
            if len(values) < 2:
                continue
            for method in [method for method in ways if method in values]:
                key = (*at, method)
                ends = (over.loc[key][name] if key in over.index else "" for name in ENDS)
                rows.append((title, *at, ways[method], options["metric"], values[method], *ends))
    return PRICE, rows
