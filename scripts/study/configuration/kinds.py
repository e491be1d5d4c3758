"""Kinds of tables, figures, analyses and checks: which function makes them, from what, with which
options.

A job imports only its own kind's module, and depends on no other kind's source.
"""

import math
from typing import NamedTuple

from study.configuration.inputs import (
    ANALYSIS,
    CELLS,
    DATA,
    DRAWS,
    FITS,
    NOTHING,
    RESULTS,
    SEARCHES,
    TRAINED,
    TUNING,
    Inputs,
)


class Kind(NamedTuple):
    """module, function: called as function(experiment, spec, inputs).

    inputs: what the function is given.
    An analysis is called as function(experiment, spec, inputs, seed, out) and writes the file `out`.

    options: name -> default of what spec["options"] may hold; `published` always names an entry of the
    experiment's `published` section. suffix: of an analysis' file. exclusive: the job has a small machine
    to itself, because it measures time. describes_data: it also reads the .json of its prepared data
    sets, for their names or sizes. printed: it reads the source's facts whatever its options are.
    """

    module: str
    function: str
    inputs: Inputs = CELLS
    options: dict = {}
    suffix: str = "csv"
    exclusive: bool = False
    describes_data: bool = False
    printed: bool = False


PRICE = {
    "panels": {},
    "metric": "log_loss",
    "baseline": "nonprivate",
    "ways": ["by rule", "selected, paid for", "on public rows", "not paid for: void"],
}
CURVE = {
    "log_error": False,
    "beside": False,
    "metric": None,
    "published": None,
    "printed_axis": None,
    "from_zero": True,
}
PRETRAINING = {
    "plain": [],
    "pretrained": [],
    "public_only": None,
    "converged": None,
    "published": None,
}

TABLES = {
    "stopping_rules": Kind("tables.lasso", "stopping_rules", inputs=DRAWS),
    "table_a_1": Kind(
        "tables.einarsson",
        "table_a_1",
        inputs=DRAWS,
        printed=True,
    ),
    "errors": Kind("tables.errors", "errors"),
    "medians": Kind("tables.medians", "medians", inputs=DRAWS, options={"metric": "r2"}),
    "released_code": Kind("tables.released_code", "released_code", inputs=ANALYSIS),
    "settings": Kind("tables.settings", "settings", printed=True),
    "pretraining": Kind("tables.pretraining", "pretraining", options=PRETRAINING),
    "printed_accuracy": Kind(
        "tables.printed_accuracy",
        "printed_accuracy",
        options={"published": None},
    ),
    "class_counts": Kind("tables.data", "class_counts", inputs=ANALYSIS),
    "explained_variance": Kind(
        "tables.data", "explained_variance", inputs=ANALYSIS, options={"components": [2, 100]}
    ),
    "published_errors": Kind(
        "tables.published_errors", "published_errors", options={"published": None}
    ),
    "timing": Kind("tables.timing", "timing", inputs=ANALYSIS),
    "untuned_cells": Kind(
        "tables.untuned",
        "untuned_cells",
        inputs=DRAWS,
        options={"method": None, "metric": "log_loss"},
    ),
    "untuned_count": Kind(
        "tables.untuned",
        "untuned_count",
        inputs=DRAWS,
        options={"method": None, "metric": "log_loss"},
    ),
    "tuning": Kind("tables.tuning", "tuning", inputs=TUNING),
    "price_of_tuning": Kind("tables.tuning", "price_of_tuning", inputs=DRAWS, options=PRICE),
    "regression": Kind("tables.inference", "regression", inputs=ANALYSIS),
    "coverage": Kind("tables.inference", "coverage", inputs=ANALYSIS),
}

FIGURES = {
    "discarded_features": Kind("plots.lasso", "discarded_features", inputs=DRAWS),
    "heaviest_pixels": Kind(
        "plots.lasso", "heaviest_pixels", inputs=ANALYSIS, options={"heaviest": [30, 15]}
    ),
    "learning_curve": Kind(
        "plots.curves",
        "learning_curve",
        options=CURVE | {"log_size": False},
        describes_data=True,
    ),
    "decision_regions": Kind(
        "plots.pretraining",
        "decision_regions",
        inputs=ANALYSIS,
        options={"published": None},
    ),
    "loss_traces": Kind("plots.pretraining", "loss_traces", inputs=ANALYSIS),
    "moved_boundaries": Kind("plots.pretraining", "moved_boundaries", inputs=ANALYSIS),
    "pretraining": Kind(
        "plots.pretraining",
        "pretraining",
        inputs=DRAWS,
        options=PRETRAINING,
    ),
    "accuracy_panels": Kind(
        "plots.accuracy",
        "accuracy_panels",
        options={"panels": {}, "baseline": None, "published": None, "printed_of": None},
        describes_data=True,
    ),
    "epsilon_curve": Kind(
        "plots.curves",
        "epsilon_curve",
        options=CURVE | {"log_epsilon": False, "own_axes": False, "least": None},
        describes_data=True,
    ),
    "folds": Kind("plots.folds", "folds", inputs=DATA),
    "plane": Kind("plots.plane", "plane", inputs=DATA),
    "tuning_curve": Kind("plots.curves", "tuning_curve", inputs=TUNING, describes_data=True),
    "search_grid": Kind(
        "plots.grids",
        "search_grid",
        inputs=SEARCHES,
        options={"x": "batch", "y": "lambda", "show": "wins"},
    ),
    "digit_images": Kind("plots.images", "digit_images", inputs=DATA),
    "farthest_images": Kind("plots.images", "farthest_images", inputs=DATA, options={"count": 5}),
    "pixel_density": Kind("plots.images", "pixel_density", inputs=DATA, options={"bins": 64}),
    "distance_violins": Kind("plots.images", "distance_violins", inputs=DATA),
    "component_scatter": Kind("plots.components", "component_scatter", inputs=ANALYSIS),
    "explained_variance": Kind("plots.components", "explained_variance_curve", inputs=ANALYSIS),
    "noise_densities": Kind(
        "plots.densities",
        "noise_densities",
        inputs=NOTHING,
        options={"noise": "laplace", "epsilons": [0.1, 0.5, 1, 10], "deltas": [1e-5]},
    ),
    "excess": Kind(
        "plots.excess",
        "excess",
        inputs=DRAWS,
        options={"along": "epsilon", "metric": "log_loss", "baseline": "nonprivate"},
        describes_data=True,
    ),
    "price_of_tuning": Kind("plots.tuning", "price_of_tuning", inputs=DRAWS, options=PRICE),
    "epsilon_family": Kind(
        "plots.families",
        "epsilon_family",
        options={"log": False, "show": "error", "from_size": None},
    ),
    "proven_curve": Kind("plots.families", "proven_curve"),
    "weights_and_noise": Kind("plots.weights", "weights_and_noise", inputs=ANALYSIS),
    "table_a_1": Kind("plots.weights", "table_a_1", inputs=DRAWS, printed=True),
    "searched_settings": Kind("plots.sgd", "searched_settings", inputs=SEARCHES),
    "option_curve": Kind(
        "plots.options",
        "option_curve",
        inputs=RESULTS,
        options={
            "along": None,
            "columns": ["error_mean"],
            "rows": None,
            "log_along": False,
            "log_column": False,
            "none": "none",
        },
        describes_data=True,
    ),
    "iterations": Kind("plots.sgd", "iterations", inputs=ANALYSIS),
    "coverage": Kind("plots.inference", "coverage", inputs=ANALYSIS, options={"show": "coverage"}),
    "accounting": Kind("plots.accounting", "accounting", inputs=ANALYSIS),
    "released_code": Kind("plots.accounting", "released_code", inputs=ANALYSIS),
}

ANALYSES = {
    "descent_boundaries": Kind(
        "analyses.pretraining",
        "descent_boundaries",
        inputs=DATA,
        options={"epsilons": [1], "train_size": 400},
        suffix="npz",
        describes_data=True,
    ),
    "loss_traces": Kind(
        "analyses.pretraining",
        "loss_traces",
        inputs=DATA,
        options={"epsilons": [1], "train_size": 400, "restarts": 100},
        describes_data=True,
    ),
    "single_points": Kind(
        "analyses.pretraining",
        "single_points",
        inputs=DATA,
        options={"train_size": 40, "iterations": 2000},
        suffix="npz",
        describes_data=True,
    ),
    "class_counts": Kind("analyses.classes", "class_counts", inputs=DATA),
    "class_distances": Kind("analyses.classes", "class_distances", inputs=DATA),
    "released_code": Kind(
        "analyses.released_code",
        "released_code",
        inputs=NOTHING,
        options={"programs": {}, "confidence": 0.95},
    ),
    "accounting": Kind(
        "analyses.accounting",
        "accounting",
        inputs=NOTHING,
        options={"epsilons": [0.1, 0.5, 1, 4], "delta": 1e-6, "rows": 150},
    ),
    "coverage": Kind(
        "analyses.inference",
        "coverage",
        inputs=NOTHING,
        options={
            "design": "logistic",
            "train_sizes": [1000, 5000, 20000],
            "epsilons": [0.5, 1, 4],
            "delta": 1e-6,
            "replicates": 120,
            "draws": 2,
        },
    ),
    "bootstrap": Kind(
        "analyses.inference",
        "bootstrap",
        inputs=NOTHING,
        options={
            "design": "logistic",
            "train_sizes": [500, 1000],
            "epsilons": [0.5],
            "delta": 1e-6,
            "replicates": 40,
            "resamples": 80,
        },
    ),
    "regression": Kind(
        "analyses.inference",
        "regression",
        inputs=DATA,
        options={"epsilons": [0.5, 1, 4], "delta": 1e-6, "robust": True, "resamples": 200},
    ),
    "explained_variance": Kind("analyses.components", "explained_variance", inputs=DATA),
    "first_components": Kind("analyses.components", "first_components", inputs=DATA, suffix="npz"),
    "excess_risk_bounds": Kind(
        "analyses.risk",
        "excess_risk_bounds",
        inputs=DRAWS,
        options={"bounds": {}, "deltas": [0.1, 0.05, 0.01]},
    ),
    "lasso_pixels": Kind("analyses.lasso", "lasso_pixels", inputs=TRAINED, suffix="npz"),
    "sgd_trace": Kind(
        "analyses.descent",
        "sgd_trace",
        inputs=DATA,
        options={
            "epsilons": [0.1, 1, 10, math.inf],
            "simulations": 8,
            "points": 40,
            "lambda": 0.001,
            "batch": 50,
            "epochs": 1,
            "dimensions": 50,
            "schedule": "inverse_sqrt",
            "rate": 1.0,
            "loss": "logistic",
        },
    ),
    "weights_and_noise": Kind(
        "analyses.weights",
        "weights_and_noise",
        inputs=FITS,
        options={"mechanism": "laplace_coordinates_sum"},
        suffix="npz",
    ),
    "timing": Kind(
        "analyses.timing",
        "timing",
        inputs=DATA,
        options={"epsilon": 0.1, "train_size": 1000, "restarts": 200, "repeats": 5},
        exclusive=True,
    ),
}

# Checks of claims and defects. Whatever they are made from, they are called as function(results,
# **options): see checks.statements.
CHECKS = {
    "lower_than": Kind("checks.cells", "lower_than", RESULTS),
    "similar": Kind("checks.cells", "similar", RESULTS),
    "level": Kind("checks.cells", "level", RESULTS),
    "monotone": Kind("checks.cells", "monotone", RESULTS),
    "implied_below": Kind("checks.cells", "implied_below", RESULTS),
    "tuned_lambda": Kind("checks.cells", "tuned_lambda", TUNING),
    "table": Kind("checks.cells", "table", ANALYSIS),
    "table_below": Kind("checks.cells", "table_below", ANALYSIS),
    "void": Kind("checks.privacy", "void", RESULTS),
    "bound_holds": Kind("checks.cells", "bound_holds", ANALYSIS),
    "similar_epsilons": Kind("checks.cells", "similar_epsilons", RESULTS),
    "lower_across": Kind("checks.cells", "lower_across", RESULTS),
    "width_along_size": Kind("checks.cells", "width_along_size", RESULTS),
    "coincide": Kind("checks.cells", "coincide", RESULTS),
    "interval_covers": Kind("checks.printed", "interval_covers", NOTHING),
    "option_falls": Kind("checks.cells", "option_falls", RESULTS),
    "slower": Kind("checks.cells", "slower", ANALYSIS),
    "as_fast": Kind("checks.cells", "as_fast", ANALYSIS),
    "printed_spread": Kind("checks.printed", "printed_spread", NOTHING),
    "printed_twice": Kind("checks.printed", "printed_twice", NOTHING),
    "printed_ratio": Kind("checks.printed", "printed_ratio", NOTHING),
    "printed_close": Kind("checks.printed", "printed_close", NOTHING),
    "step_looks_at_rows": Kind("checks.privacy", "step_looks_at_rows", NOTHING),
    "printed_difference": Kind("checks.printed", "printed_difference", NOTHING),
    "printed_column": Kind("checks.printed", "printed_column", NOTHING),
    "costs_more": Kind("checks.cells", "costs_more", RESULTS),
    "guarantee_ratio": Kind("checks.privacy", "guarantee_ratio", NOTHING),
    "clipped_mean_moves": Kind("checks.privacy", "clipped_mean_moves", NOTHING),
    "l1_jump": Kind("checks.privacy", "l1_jump", NOTHING),
    "proven_as_claimed": Kind("checks.privacy", "proven_as_claimed", RESULTS),
    "jacobian": Kind("checks.privacy", "jacobian", NOTHING),
    "gaussian_loss_exceeds": Kind("checks.privacy", "gaussian_loss_exceeds", NOTHING),
    "gaussian_excess": Kind("checks.privacy", "gaussian_excess", NOTHING),
}

SECTIONS = {"tables": TABLES, "figures": FIGURES, "analyses": ANALYSES}
