"""Kinds of tables, figures, analyses and checks: which function makes them, from what, with which
options.

A job imports only its own kind's module, and depends on no other kind's source.
"""

from typing import NamedTuple


class Kind(NamedTuple):
    """module, function: called as function(experiment, spec, inputs), see `inputs`.

    inputs, what the function is given:
      "cells"     a data frame, one row per cell of spec["sweep"] (study.summary.cells_frame)
      "runs"      cell -> path of its run file, for the cells of spec["sweep"]; its data set's .json is
                  there too (study.experiment.data_path)
      "data"      data set -> path of its prepared .npz (its .json stands beside it)
      "tuning"    data set -> path of its tuning's .csv (its .json stands beside it)
      "analysis"  path of the result of spec["analysis"]
    An analysis is called as function(experiment, spec, inputs, seed, out) and writes the file `out`.

    options: name -> default of what spec["options"] may hold. suffix: of an analysis' file.
    exclusive: the job has the machine to itself, because it measures time.
    """

    module: str
    function: str
    inputs: str = "cells"
    options: dict = {}  # noqa: RUF012 (never written to)
    suffix: str = "csv"
    exclusive: bool = False


TABLES = {
    "errors": Kind("tables.errors", "errors"),
}

FIGURES = {
    "learning_curve": Kind("plots.curves", "learning_curve", options={"log_error": False}),
    "epsilon_curve": Kind(
        "plots.curves", "epsilon_curve", options={"log_error": False, "log_epsilon": False}
    ),
    "tuning_curve": Kind("plots.curves", "tuning_curve", inputs="tuning"),
}

ANALYSES = {
    "excess_risk_bounds": Kind(
        "analyses.risk",
        "excess_risk_bounds",
        inputs="runs",
        options={"bounds": {}, "deltas": [0.1, 0.05, 0.01]},
    ),
}

# Checks of claims and defects, called as function(results, **options), see checks.statements. inputs:
# "results" (results.csv), "tuning", "analysis" (the check names it) or "none"; options: their names.
CHECKS = {
    "lower_than": Kind("checks.cells", "lower_than", "results"),
    "similar": Kind("checks.cells", "similar", "results"),
    "level": Kind("checks.cells", "level", "results"),
    "monotone": Kind("checks.cells", "monotone", "results"),
    "implied_below": Kind("checks.cells", "implied_below", "results"),
    "tuned_lambda": Kind("checks.cells", "tuned_lambda", "tuning"),
    "table": Kind("checks.cells", "table", "analysis"),
    "bound_holds": Kind("checks.cells", "bound_holds", "analysis"),
    "printed_twice": Kind("checks.cells", "printed_twice", "none"),
    "proven_as_claimed": Kind("checks.privacy", "proven_as_claimed", "results"),
    "jacobian": Kind("checks.privacy", "jacobian", "none"),
    "gaussian_excess": Kind("checks.privacy", "gaussian_excess", "none"),
}

SECTIONS = {"tables": TABLES, "figures": FIGURES, "analyses": ANALYSES}
