"""Tables of regressions with standard errors, and of the coverage of intervals."""

from study.configuration.inputs import ANALYSIS
from study.configuration.kinds import table

LEAST = 0.93  # required coverage of 95 % intervals


@table(ANALYSIS)
def regression(experiment, spec, path):
    """A regression table as statsmodels prints it, with and without privacy.

    If a release reveals too little about a coefficient, a sentence replaces its numbers.
    """
    import pandas as pd

    frame = pd.read_csv(path, dtype={"epsilon": str})
    frame["z"] = frame["estimate"] / frame["standard_error"]
    frame["says"] = frame["says"].fillna("")
    order = {name: k for k, name in enumerate(frame["coefficient"].unique())}
    frame = frame.sort_values("coefficient", key=lambda column: column.map(order), kind="stable")
    columns = (
        *("dataset", "coefficient", "method", "epsilon", "estimate", "standard_error", "z"),
        *("p_value", "low", "high", "says"),
    )
    return columns, list(frame[list(columns)].itertuples(index=False))


def _read(path):
    import pandas as pd

    frame = pd.read_csv(path, dtype={"epsilon": str, "printed": str, "half": str})
    return frame.fillna({"printed": "", "half": ""})


@table(ANALYSIS)
def coverage(experiment, spec, path):
    """Coverage of 95 % intervals, one row per coefficient and `printed` (1 if printed, else 0).

    The column `covers` is 1 if coverage plus two standard errors is at least 93 %.
    """
    frame = _read(path)
    enough = frame["coverage"] + 2 * frame["coverage_error"] >= LEAST
    frame["covers"] = enough.astype(int)
    return tuple(frame.columns), list(frame.itertuples(index=False))


@table(ANALYSIS)
def coverage_rule(experiment, spec, path):
    """The effect of the rule for printing intervals, one row per design.

    answered: the share of intervals that are printed. coverage, coverage_of_others: the mean coverage of
    printed and of other intervals. least: the lowest coverage of a coefficient with at least 40 printed
    intervals. width_ratio: its median over coefficients, for printed intervals.
    """
    frame, rows = _read(path), []
    keys = ["half", "design", "train_size", "epsilon", "method"]
    for key, group in frame[frame["printed"] != ""].groupby(keys, sort=False):
        printed, withheld = (group[group["printed"] == flag] for flag in "10")
        some = printed[printed["intervals"] >= 40]
        answered = printed["intervals"].sum() / group["intervals"].sum()
        widths = printed["width_ratio"].median()
        coverages = _mean(printed), some["coverage"].min(), widths, _mean(withheld)
        rows.append((*key, group["coefficient"].nunique(), answered, *coverages))
    columns = "coefficients", "answered", "coverage", "least", "width_ratio", "coverage_of_others"
    return (*keys, *columns), rows


def _mean(group):
    count = group["intervals"].sum()
    return (group["coverage"] * group["intervals"]).sum() / count if count else float("nan")
