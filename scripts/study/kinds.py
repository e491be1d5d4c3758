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

    options: name -> default of what spec["options"] may hold. suffix: of an analysis' file.
    exclusive: the job has the machine to itself, because it measures time. describes_data: it reads
    the .json of its prepared data sets too. printed: it reads config/published/<source>.yaml too.
    """

    module: str
    function: str
    inputs: str = "cells"
    options: dict = {}  # noqa: RUF012 (never written to)
    suffix: str = "csv"
    exclusive: bool = False
    describes_data: bool = False
    printed: bool = False


TABLES = {
    "errors": Kind("tables.errors", "errors"),
    "pretraining": Kind(
        "tables.pretraining",
        "pretraining",
        options={"plain": [], "pretrained": [], "table": None},
        printed=True,
    ),
    "printed_accuracy": Kind(
        "tables.printed_accuracy",
        "printed_accuracy",
        options={"table": None, "rows": None},
        printed=True,
    ),
    "class_counts": Kind("tables.data", "class_counts", inputs="analysis"),
    "explained_variance": Kind(
        "tables.data", "explained_variance", inputs="analysis", options={"components": [2, 100]}
    ),
}

FIGURES = {
    "decision_regions": Kind("plots.pretraining", "decision_regions", inputs="analysis"),
    "loss_traces": Kind("plots.pretraining", "loss_traces", inputs="analysis"),
    "moved_boundaries": Kind("plots.pretraining", "moved_boundaries", inputs="analysis"),
    "pretraining": Kind(
        "plots.pretraining",
        "pretraining",
        options={"plain": [], "pretrained": [], "table": None},
        printed=True,
    ),
    "accuracy_panels": Kind(
        "plots.accuracy",
        "accuracy_panels",
        options={"panels": {}, "baseline": None, "printed": None},
        describes_data=True,
        printed=True,
    ),
    "learning_curve": Kind("plots.curves", "learning_curve", options={"log_error": False}),
    "epsilon_curve": Kind(
        "plots.curves", "epsilon_curve", options={"log_error": False, "log_epsilon": False}
    ),
    "tuning_curve": Kind("plots.curves", "tuning_curve", inputs="tuning"),
    "digit_images": Kind("plots.images", "digit_images", inputs="data"),
    "farthest_images": Kind("plots.images", "farthest_images", inputs="data", options={"count": 5}),
    "pixel_density": Kind("plots.images", "pixel_density", inputs="data", options={"bins": 64}),
    "distance_violins": Kind("plots.images", "distance_violins", inputs="data"),
    "component_scatter": Kind("plots.components", "component_scatter", inputs="analysis"),
    "explained_variance": Kind("plots.components", "explained_variance_curve", inputs="analysis"),
}

ANALYSES = {
    "descent_boundaries": Kind(
        "analyses.descent",
        "descent_boundaries",
        inputs="data",
        options={"epsilons": [1], "train_size": 400},
        suffix="npz",
        describes_data=True,
    ),
    "descent_traces": Kind(
        "analyses.descent",
        "descent_traces",
        inputs="data",
        options={"epsilons": [1], "train_size": 400, "restarts": 100},
        describes_data=True,
    ),
    "single_points": Kind(
        "analyses.descent",
        "single_points",
        inputs="data",
        options={"train_size": 40, "iterations": 2000},
        suffix="npz",
        describes_data=True,
    ),
    "class_counts": Kind("analyses.classes", "class_counts", inputs="data"),
    "explained_variance": Kind("analyses.components", "explained_variance", inputs="data"),
    "first_components": Kind(
        "analyses.components", "first_components", inputs="data", suffix="npz"
    ),
}

SECTIONS = {"tables": TABLES, "figures": FIGURES, "analyses": ANALYSES}
