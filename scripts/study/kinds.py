"""Kinds of tables, figures and analyses: which function makes them, from what, with which options.

A job imports only its own kind's module, and depends on no other kind's source.
"""

from typing import NamedTuple


class Kind(NamedTuple):
    """module, function: called as function(experiment, spec, inputs), see `inputs`.

    inputs, what the function is given:
      "cells"     a data frame, one row per cell of spec["sweep"] (study.summary.cells_frame)
      "data"      data set -> path of its prepared .npz (its .json stands beside it)
      "tuning"    data set -> path of its tuning's .csv (its .json stands beside it)
      "analysis"  path of the result of spec["analysis"]
    An analysis is called as function(experiment, spec, inputs, seed, out) and writes the file `out`.

    options: name -> default of what spec["options"] may hold; `published` is everywhere the map that
    `study.published` describes. suffix: of an analysis' file. exclusive: the job has the machine to
    itself, because it measures time. mechanisms: it runs the experiment's mechanisms itself.
    """

    module: str
    function: str
    inputs: str = "cells"
    options: dict = {}  # noqa: RUF012 (never written to)
    suffix: str = "csv"
    exclusive: bool = False
    mechanisms: bool = False


TABLES = {
    "errors": Kind("tables.errors", "errors"),
    "published_errors": Kind(
        "tables.published_errors", "published_errors", options={"published": None}
    ),
    "timing": Kind("tables.timing", "timing", inputs="analysis"),
    "tuning": Kind("tables.tuning", "tuning", inputs="tuning"),
}

FIGURES = {
    "learning_curve": Kind("plots.curves", "learning_curve", options={"log_error": False}),
    "epsilon_curve": Kind(
        "plots.curves",
        "epsilon_curve",
        options={"log_error": False, "log_epsilon": False, "published": None},
    ),
    "folds": Kind("plots.folds", "folds", inputs="data"),
    "plane": Kind("plots.plane", "plane", inputs="data"),
    "tuning_curve": Kind("plots.curves", "tuning_curve", inputs="tuning"),
}

ANALYSES = {
    "timing": Kind(
        "analyses.timing",
        "timing",
        inputs="data",
        options={"epsilon": 0.1, "train_size": 1000, "restarts": 200, "repeats": 5},
        exclusive=True,
        mechanisms=True,
    ),
}

SECTIONS = {"tables": TABLES, "figures": FIGURES, "analyses": ANALYSES}
