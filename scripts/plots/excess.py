"""The cost of privacy: a metric minus that of a non-private method on the same rows."""

from plots import style
from plots.relations import Curves, Scales, relation
from study.configuration.experiment import data_name, data_path
from study.configuration.inputs import DRAWS
from study.configuration.kinds import figure
from study.configuration.options import Method, Options
from study.jobs import paired
from study.jobs.files import read_json

# The axis ends here at the latest; arrows stand for values beyond. Above MOST, a model is useless.
LEAST, MOST = 1e-4, 1.0
LABELS = {
    "epsilon": r"privacy parameter $\varepsilon$",
    "train_size": "training rows",
    "columns": "columns",
}


class Excess(Options):
    along: str = "epsilon"
    metric: str = "log_loss"
    baseline: Method = "nonprivate"


@figure(DRAWS, Excess, describes_data=True)
def excess(experiment, spec, draws):
    """Mean excess over the baseline with 95 % bands, one panel per data set, on logarithmic axes.

    Bands are over folds, or over simulated data sets from one distribution. options["along"]: epsilon,
    train_size, or columns (the number of columns). For columns, every point of a curve is another data set.
    options["metric"]: a metric of `dp.metrics` for which smaller is better.
    """
    options = spec.options
    along, metric = options["along"], options["metric"]
    if along not in LABELS:
        raise ValueError(f"'along' must be one of {', '.join(LABELS)}, not {along!r}")
    frame = paired.differences(paired.fold_means(draws, metric), options["baseline"])
    frame["curve"] = frame["method"]
    for end in ("mean", "low", "high"):
        frame[end] = frame[end].clip(lower=LEAST / 10)  # positive, for a logarithmic axis
    if along == "columns":
        sizes = {
            name: len(read_json(data_path(name, "json"))["columns"])
            for name in frame["dataset"].unique()
        }
        frame["columns"] = frame["dataset"].map(sizes)
    elif frame["dataset"].nunique() > 1:
        frame["panel"] = frame["dataset"].map(data_name)
    shown = {m: v for m, v in experiment.methods.items() if m in set(frame["method"])}
    fig = relation(
        spec,
        frame.sort_values(along),
        style.looks(shown),
        along,
        Curves("mean", band=("low", "high"), together=99),
        Scales((LABELS[along], f"excess {style.TITLES[metric]}"), log="xy", within=(LEAST, MOST)),
    )
    for axes in fig.axes:
        if along != "train_size":
            start, end = axes.get_xlim()
            tried = [value for value in sorted(frame[along].unique()) if start <= value <= end]
            axes.set_xticks(tried, [f"{value:g}" for value in tried])
            axes.minorticks_off()
    return fig
