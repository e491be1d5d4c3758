"""Test error, or another metric, against the training size or epsilon, one curve per method."""

import math
from collections import Counter

from dp import metrics
from plots import style
from plots.relations import Curves, Mark, Printed, Scales, level, relation
from study import facts as source_file
from study.configuration import printed_values
from study.configuration.experiment import data_name
from study.configuration.inputs import CELLS, TUNING
from study.configuration.kinds import figure
from study.configuration.options import Comparison, Method, Options, PrintedAxis

# axis -> names of the options that make it logarithmic
AXES = {"x": ("log_size", "log_epsilon"), "y": ("log_error",)}
FROM_ZERO = ("error", "mse", "mae")  # AUC and log loss are far from 0 for any model
# metric -> the lower limit of its axis, because R^2 and D^2 have no lower bound
LEAST = {"r2": -1.0, "d2": -1.0}
TUNED, FLAT = "#0072B2", 0.01  # the colour of errors, and what the axis of errors that are 0 shows


class Curve(Options):
    log_error: bool = False
    beside: bool = False
    metric: str | None = None
    published: Comparison | None = None
    printed_axis: PrintedAxis | None = None
    from_zero: bool = True
    least: float | None = None
    finding: str | None = None
    lower: Method | None = None
    higher: Method | None = None


class LearningCurve(Curve):
    log_size: bool = False


@figure(CELLS, LearningCurve, describes_data=True)
def learning_curve(experiment, spec, frame):
    """Mean error with 95 % bands against the number of training rows.

    options["beside"]: whether the legend is beside the axes, not inside.
    options["metric"]: a metric of `dp.metrics` instead of the error.
    options["published"]: printed values, drawn as crosses with their standard deviations.
    options["printed_axis"]: the path in source.yaml of the source's axis range.
    options["from_zero"]: whether the axis of errors starts at 0.
    options["least"]: the lower limit of the y axis if values are below it; arrows stand for these.
    options["finding"]: what the figure shows, for its title, if at most of its points the interval of
    options["lower"] is below that of options["higher"].
    """
    return _curves(experiment, spec, frame, "train_size", "training rows")


class EpsilonCurve(Curve):
    log_epsilon: bool = False
    own_axes: bool = False


@figure(CELLS, EpsilonCurve, describes_data=True)
def epsilon_curve(experiment, spec, frame):
    """Mean error with 95 % bands against epsilon; non-private methods are level lines.

    options["published"]: printed values, drawn as crosses. If a curve has only one, it is a dotted line
    in the method's colour, with its standard deviation at the right end. The curve crosses this line at the
    epsilon that the value implies.
    options["beside"], ["metric"], ["printed_axis"], ["from_zero"], ["least"], ["finding"]: as for
    `learning_curve`.
    options["own_axes"]: whether every panel has its own y axis.
    """
    label = r"privacy parameter $\varepsilon$ (smaller is more private)"
    return _curves(experiment, spec, level(frame), "epsilon", label)


@figure(TUNING, describes_data=True)
def tuning_curve(experiment, spec, paths):
    """Non-private cross-validation error against lambda, from 0 on, with the best and published values."""
    import pandas as pd

    frames = {name: pd.read_csv(path) for name, path in paths.items()}
    titles = {name: f"{data_name(name)}: {_best(frame)}" for name, frame in frames.items()}
    looks = {title: style.look(title, TUNED) for title in titles.values()}
    frame = pd.concat(frames[name].assign(curve=titles[name], panel=titles[name]) for name in paths)
    note = "circles: the least error"
    published = experiment.lambda_published
    if published:
        note += ",\ndotted line: the published value"
    fig = relation(
        spec,
        frame,
        looks,
        "lambda",
        Curves(band=None, together=99),
        Scales((r"regularisation $\lambda$", "error, without privacy"), log="x", own=True),
        note,
    )
    for axes, title in zip(fig.axes, looks, strict=True):
        rows = frame[frame["curve"] == title]
        best = rows[(rows["best"] == 1) & (rows["best"].sum() < len(rows))]
        axes.plot(best["lambda"], best["error_mean"], "o", color=TUNED, markersize=6)
        top = 1.15 * max(rows["error_mean"].max(), FLAT)
        axes.set_ylim(-0.02 * top, top)  # so that errors of 0 are seen
        if published:
            axes.axvline(experiment.lambda_published, color="#555555", linestyle=":")
    return fig


def _best(frame):
    best = int(frame["best"].sum())
    return f"all {len(frame)} tie" if best == len(frame) else f"{best} of {len(frame)} are best"


def _curves(experiment, spec, frame, along, label):
    """Curves of all methods, with one panel per data set."""
    options, shown = spec.options, set(frame["method"])
    metric = options.get("metric") or metrics.of(frame)
    mean, *band = (metric + end for end in metrics.ENDS)
    from_zero = metric in FROM_ZERO and options.get("from_zero", True)
    title, bottom = style.TITLES[metric], 0 if from_zero else None
    least = options.get("least") or LEAST.get(metric, -math.inf)
    if (frame[band[0]] < least).any():
        bottom = least
    methods = {m: method for m, method in experiment.methods.items() if m in shown}
    frame = frame.assign(curve=frame["method"])
    names = {name: data_name(name) for name in frame["dataset"].unique()}
    if len(names) > 1:
        frame["panel"] = frame["dataset"].map(names)
    behind = [m for m in methods if not methods[m].private]
    looks = style.looks(methods)
    if options.get("finding") and _holds(frame, options["lower"], options["higher"], band):
        spec = spec.but(title=f"{spec.title}: {options['finding']}")
    return relation(
        spec,
        frame,
        looks,
        along,
        Curves(mean, band, behind),
        Scales(
            (label, title),
            "".join(axis for axis, of in AXES.items() if any(options.get(name) for name in of)),
            bottom,
            bool(options.get("own_axes")),
        ),
        style.replicates(experiment, frame) + left_out(frame, looks),
        Printed(
            _printed(experiment, options.get("published"), frame, names, {*behind}, along),
            _axis(experiment, options.get("printed_axis")),
        ),
    )


def _holds(frame, lower, higher, band):
    """Whether one method's interval is below another's at most points that both have."""
    at = ["dataset", "train_size", "epsilon"]
    first, second = (frame[frame["method"] == name].set_index(at) for name in (lower, higher))
    low, high = band
    apart = (first[high] < second[low].reindex(first.index))[first.index.isin(second.index)]
    return bool(len(apart)) and apart.mean() > 0.5


def _printed(experiment, name, frame, datasets, behind, along):
    """A `plots.relations.Mark` for every printed value at a training size of this run.

    If the x axis is epsilon, a curve's only mark has no x position, and becomes a horizontal line (see
    `epsilon_curve`). datasets: data set -> displayed name. behind: non-private methods, which get no marks.
    """
    methods = {*frame["method"]} - behind
    printed = [
        value
        for value in printed_values.values(experiment, name, frame)
        if value.dataset in datasets and value.method in methods
    ]
    counts = Counter((value.method, value.dataset) for value in printed)
    marks = []
    for value in printed:
        one = along == "epsilon" and counts[value.method, value.dataset] == 1
        at = None if one else getattr(value, along)
        marks.append(Mark(value.method, datasets[value.dataset], value.value, value.sd, at))
    return marks


def _axis(experiment, path):
    """(low, high) of the printed axis at `path`; () without a path."""
    return tuple(source_file.read(experiment.source).look_up(path)) if path else ()


def left_out(frame, looks):
    """Legend text with the number of draws that were refused or diverged; the mean leaves them out."""
    counted = frame.set_index("method")["status"].str.extractall(
        r"(?P<draws>\d+) of \d+ (?P<why>refused|diverged)"
    )
    text = ""
    for (method, why), counts in counted.groupby(["method", "why"]):
        cells = frame[frame["method"] == method]
        draws = int((cells["folds"] * cells["restarts"] * cells.get("data_sets", 1)).sum())
        name, number = looks[method]["label"], counts["draws"].astype(int).sum()
        text += f";\n{name}: {number:,} of {draws:,}\ndraws {why}"
        text += ", mean of the others" if number < draws else ""
    return text
