"""Names and ranges of the metrics. This module imports little, for readers of results."""

import math

# The metrics' ranges by name, for data with classes and for data with numbers as targets.
CLASSES = {"error": (0, 1), "log_loss": (0, math.inf), "auc": (0, 1)}
TARGETS = {"mse": (0, math.inf), "mae": (0, math.inf), "r2": (-math.inf, 1)}
ALL = CLASSES | TARGETS
RISING = ("auc", "r2")  # metrics whose larger values are better
ENDS = ("_mean", "_low", "_high")  # endings of the metrics' columns in results.csv


def of(frame: object) -> str:
    """The metric to show: the error for classes, R^2 for numbers. frame: results.csv."""
    numbers = "r2_mean" in frame and frame["r2_mean"].notna().any()
    return "r2" if numbers and frame["error_mean"].isna().all() else "error"
