"""Names and ranges of metrics, without the imports that computing them needs."""

import math

# Metric -> range of its values.
CLASSES = {"error": (0, 1), "log_loss": (0, math.inf), "auc": (0, 1)}
TARGETS = {"mse": (0, math.inf), "mae": (0, math.inf), "r2": (-math.inf, 1)}
COUNTS = {"deviance": (0, math.inf), "d2": (-math.inf, 1)}
ALL = CLASSES | TARGETS | COUNTS
RISING = ("auc", "r2", "d2")  # larger values are better
ENDS = ("_mean", "_low", "_high")  # suffixes of columns in results.csv


def of(frame: object) -> str:
    """The metric to show for results.csv: the error for classes, R^2 for numbers, D^2 for counts."""
    for name in ("r2", "d2"):
        there = f"{name}_mean" in frame and frame[f"{name}_mean"].notna().any()
        if there and frame["error_mean"].isna().all():
            return name
    return "error"
