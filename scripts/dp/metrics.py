"""Names and ranges of the metrics, and nothing else, so that programs that read results import little."""

import math

CLASSES = {"error": (0, 1), "log_loss": (0, math.inf), "auc": (0, 1)}  # of data with classes
TARGETS = {
    "mse": (0, math.inf),
    "mae": (0, math.inf),
    "r2": (-math.inf, 1),
}  # with numbers as targets
ALL = CLASSES | TARGETS
RISING = ("auc", "r2")  # the larger, the better
ENDS = ("_mean", "_low", "_high")  # of their columns in results.csv
TITLES = {
    "error": "test error",
    "log_loss": "test log loss",
    "auc": "test AUC",
    "mse": "test mean squared error",
    "mae": "test mean absolute error",
    "r2": "test $R^2$",
}


def of(frame: object) -> str:
    """The metric to show: the error for classes, R^2 for targets that are numbers. frame: results.csv."""
    numbers = "r2_mean" in frame and frame["r2_mean"].notna().any()
    return "r2" if numbers and frame["error_mean"].isna().all() else "error"
