"""Regressions with standard errors, and how often intervals cover."""

import pandas as pd


def regression(experiment, spec, path):
    """A regression table as statsmodels prints it, with and without privacy: coefficient, standard error,
    z, p-value, interval.

    If linearising is too coarse, the bootstrap's intervals, which have no standard error, are shown below.
    """
    frame = pd.read_csv(path, dtype={"epsilon": str})
    frame["z"] = frame["estimate"] / frame["standard_error"]
    frame["coarse"] = frame["coarse"].map({0: "", 1: "too coarse"})
    order = {name: k for k, name in enumerate(frame["coefficient"].unique())}
    frame = frame.sort_values("coefficient", key=lambda column: column.map(order), kind="stable")
    columns = (
        *("dataset", "coefficient", "method", "epsilon", "estimate", "standard_error", "z"),
        *("p_value", "low", "high", "coarse"),
    )
    return columns, list(frame[list(columns)].itertuples(index=False))


def coverage(experiment, spec, path):
    """Coverage of 95 % intervals. within: 1 if it is at most 2 points and 2 standard errors away."""
    frame = pd.read_csv(path, dtype={"epsilon": str})
    distance = (frame["coverage"] - 0.95).abs()
    frame["within"] = (distance <= 0.02 + 2 * frame["coverage_error"]).astype(int)
    return tuple(frame.columns), list(frame.itertuples(index=False))
