"""Figures of Veldhuizen (2020)."""

import numpy as np

from plots import style
from plots.relations import Curves, Mark, Printed, Scales, relation
from study import facts
from study.configuration.experiment import data_name
from study.configuration.inputs import CELLS, DATA
from study.configuration.kinds import figure
from study.configuration.options import Options
from study.jobs.files import read_json

WITHIN = 1.02  # how far beyond the most rows of a curve a printed value may be


class PrintedCurve(Options):
    printed: dict = {}
    rows: str = "rows before they are cut into folds"


@figure(CELLS, PrintedCurve, describes_data=True, printed=True)
def printed_curve(experiment, spec, frame):
    """Mean error with 95 % bands against the number of rows, and printed errors as crosses.

    options["printed"]: method -> {number of rows: path in source.yaml}, also for non-private methods. No
    verdict compares these errors with ours. options["rows"]: the rows that are counted.
    """
    source, dataset = facts.read(experiment.source), data_name(frame["dataset"].iloc[0])
    marks = [
        Mark(method, dataset, float(source.look_up(path)), None, int(size))
        for method, places in spec.options["printed"].items()
        for size, path in places.items()
        if frame["train_size"].min() <= int(size) <= WITHIN * frame["train_size"].max()
    ]
    return relation(
        spec,
        frame.assign(curve=frame["method"]),
        style.looks({m: experiment.methods[m] for m in dict.fromkeys(frame["method"])}),
        "train_size",
        Curves(),
        Scales((spec.options["rows"], "test error")),
        style.replicates(experiment, frame),
        Printed(tuple(marks)),
    )


POSITIVE, NEGATIVE, BAND, FLIPPED = "#0072B2", "#E69F00", "#999999", "#000000"


@figure(DATA)
def plane(experiment, spec, paths):
    """The data set that the entry names: the whole plane, and where the separator meets the circle.

    The circle bounds rows: its radius is 1. Rings mark points on the wrong side of the separator.
    """
    if len(paths) != 1:
        raise ValueError("a figure of the plane shows exactly one data set: name it in 'datasets'")
    ((_, path),) = paths.items()
    with np.load(path) as arrays:
        X, y, separator = arrays["X"], arrays["y"], arrays.get("separator")
    if separator is None or X.shape[1] != 2:
        raise ValueError("a figure of the plane needs simulated data with two columns")
    source = read_json(path.removesuffix(".npz") + ".json")["source"]
    fig, (whole, detail) = style.figure(width=9.0, height=4.6, ncols=2)
    for axes in (whole, detail):
        _draw(axes, X, y, separator, source)
        axes.set_aspect("equal")
        axes.set_xlabel(r"$x_1$")
        axes.set_ylabel(r"$x_2$")
    whole.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
    whole.set_title(spec.title, loc="left")
    along = np.array([-separator[1], separator[0]])
    reach = 1.6 * max(source.get("band", 0.0), source.get("margin", 0.0), 0.1)
    detail.set(xlim=(along[0] - reach, along[0] + reach), ylim=(along[1] - reach, along[1] + reach))
    detail.set_title("where the separator meets the circle", loc="left")
    handles, labels = whole.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3)
    return fig


def _draw(axes, X, y, separator, source):
    along = np.array([-separator[1], separator[0]])
    ends = np.array([-2.0, 2.0])[:, None] * along
    if "band" in source:
        corners = [end + side * source["band"] * separator for side in (1, -1) for end in ends]
        axes.fill(
            *np.array([corners[0], corners[1], corners[3], corners[2]]).T,
            color=BAND,
            alpha=0.25,
            linewidth=0,
            label=f"band of {source['band']:g}: flipped with probability "
            f"{source['flip_probability']:g}",
        )
    estimated = source["simulate"] == "expanded_band"
    axes.plot(
        *ends.T,
        color="black",
        linestyle="-",
        label="separator estimated by a linear SVM" if estimated else "separator",
    )
    # The configuration states the margin of the simulation's separator, not of an estimated one.
    margin = np.abs(X @ separator).min() if estimated else source.get("margin")
    if margin:
        name = f"its margin, {margin:.3f}" if estimated else f"margin of {margin:g}"
        for side, label in ((1, name), (-1, None)):
            axes.plot(
                *(ends + side * margin * separator).T, color="black", linestyle="--", label=label
            )
    for value, colour, marker in ((1, POSITIVE, "o"), (-1, NEGATIVE, "s")):
        axes.scatter(*X[y == value].T, s=9, color=colour, marker=marker, label=f"y = {value:+d}")
    flipped = y != np.where(X @ separator > 0, 1, -1)
    if flipped.any():
        axes.scatter(
            *X[flipped].T,
            s=38,
            facecolor="none",
            edgecolor=FLIPPED,
            linewidth=0.8,
            label=f"label flipped ({flipped.sum()} of {len(X)})",
        )


TRAIN, TEST = "#56B4E9", "#E69F00"


@figure(DATA)
def folds(experiment, spec, paths):
    """One line per fold: the part it is tested on, and the parts it is trained on."""
    import seaborn  # slow to import

    if len(paths) != 1:
        raise ValueError("a figure of the folds shows exactly one data set: name it in 'datasets'")
    ((_, path),) = paths.items()
    rows = read_json(path.removesuffix(".npz") + ".json")["rows"]
    count = experiment.folds
    # As in dp.rows.split_folds: sizes differ by at most one, larger parts first.
    sizes = np.full(count, rows // count) + (np.arange(count) < rows % count)
    tested = np.eye(count, dtype=bool)
    words = np.char.add(np.where(tested, "test\n", "train\n"), [f"{size:,}" for size in sizes])
    fig, axes = style.figure(width=7.2, height=0.52 * count + 1.2)
    look = {"cmap": [TRAIN, TEST], "cbar": False, "linewidths": 2, "annot_kws": {"color": "black"}}
    seaborn.heatmap(tested, annot=words, fmt="", ax=axes, **look)
    axes.set_yticks(np.arange(count) + 0.5, [f"fold {k + 1}" for k in range(count)], rotation=0)
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.set_xlabel(f"the {rows:,} rows, shuffled once, in {count} parts")
    style.title(axes, spec.title)
    return fig
