"""Accuracy against epsilon in panels of a few methods."""

import numpy as np

from plots import style
from study.configuration import printed_values
from study.configuration.experiment import data_path
from study.configuration.inputs import CELLS
from study.configuration.kinds import figure
from study.configuration.options import Comparison, Method, Options
from study.jobs.files import read_json

MAJORITY = "#777777"
SHORT = 27  # characters; two names of at most this length fit side by side below a panel


class AccuracyPanels(Options):
    panels: dict[str, list[Method]] = {}
    baseline: Method | None = None
    published: Comparison | None = None
    printed_of: str | None = None
    printed_by: dict[str, Method] = {}


@figure(CELLS, AccuracyPanels, describes_data=True)
def accuracy_panels(experiment, spec, frame):
    """Mean accuracy with 95 % intervals against epsilon, one panel per group of methods.

    Every panel shows the majority class's accuracy and the non-private baseline. Hollow markers show
    printed values, with their standard deviations as bars, in the panel of the method compared with them.

    options["printed_of"]: the data set with which verdicts compare the printed values, if the figure shows
    its rows prepared in another way. options["printed_by"]: method -> another method, whose printed values
    are also drawn for this method.
    """
    (dataset,) = frame["dataset"].unique()
    counts = read_json(data_path(dataset, "json"))["class_counts"].values()
    panels = spec.options["panels"]
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    fig, grid = style.figure(
        5.2 * columns, 4.3 * rows + 0.5, nrows=rows, ncols=columns, sharey=True, squeeze=False
    )
    printed = {}  # method -> path in the source -> value
    for value in printed_values.values(experiment, spec.options["published"], frame):
        if value.dataset == (spec.options["printed_of"] or dataset):
            printed.setdefault(value.method, {})[value.path] = value
    # A printed value is drawn once, at the first method compared with it; only `printed_by` repeats it.
    drawn = set()
    for axes, (title, methods) in zip(grid.flat, panels.items(), strict=False):
        baseline = spec.options["baseline"]
        _panel(axes, experiment, frame, methods, baseline, max(counts) / sum(counts))
        for method in methods:
            again = spec.options["printed_by"].get(method)
            own = printed.get(again or method, {})
            new = own.keys() - (() if again else drawn)
            if new:
                drawn |= new
                _printed(axes, experiment, method, [own[path] for path in sorted(new)])
        axes.set_title(title, loc="left", fontsize="medium")
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel(r"privacy parameter $\varepsilon$ (smaller is more private)")
    for axes in grid[:, 0]:
        axes.set_ylabel("test accuracy")
    note = style.replicates(experiment, frame).replace("\n", " ")
    _explain(fig, [axes for axes in grid.flat if axes.get_visible()], grid[-1], note)
    style.heading(fig, spec.title)
    return fig


def _explain(fig, panels, last, note):
    """Draw a legend below each panel for its own entries, and one for entries of several panels.

    last: axes that have an x label, so their legend starts lower. note: the title of the common legend; as
    a label of the figure it would be drawn over it.
    """
    legends = [dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True)) for axes in panels]
    common = {}
    for k, own in enumerate(legends):
        others = {label for legend in legends[:k] + legends[k + 1 :] for label in legend}
        common |= {label: handle for label, handle in own.items() if label in others}
    look = {"fontsize": "small", "borderaxespad": 0}
    for axes, own in zip(panels, legends, strict=True):
        alone = [label for label in own if label not in common]
        below = (0, -0.2 if axes in last else -0.12)
        handles = [own[label] for label in alone]
        two = max(map(len, alone), default=0) <= SHORT
        place = {"loc": "upper left", "bbox_to_anchor": below, "ncols": 1 + two}
        axes.legend(handles, alone, **place, **look)
    titled = {"title": note, "title_fontsize": "small", "alignment": "left"}
    fig.legend(
        common.values(), common, loc="outside lower left", ncols=3, fontsize="small", **titled
    )


def _panel(axes, experiment, frame, methods, baseline, majority):
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    private = np.sort(frame.loc[np.isfinite(frame["epsilon"]), "epsilon"].unique())
    ends = np.array([private.min() / 1.6, private.max() * 1.6])
    looks = style.looks({method: experiment.methods[method] for method in methods})
    axes.axhline(majority, color=MAJORITY, linewidth=1, label=f"majority class, {majority:.3f}")
    base = frame[frame["method"] == baseline]["error_mean"]
    if baseline not in methods and len(base):
        look = style.looks({baseline: experiment.methods[baseline]})[baseline]
        axes.plot(ends, 1 - np.repeat(base.to_numpy()[:1], 2), **look)
    for position, (method, look) in enumerate(looks.items()):
        rows = frame[frame["method"] == method].sort_values("epsilon")
        if rows.empty:
            continue
        y, low, high = (
            1 - rows[column].to_numpy() for column in ("error_mean", "error_high", "error_low")
        )
        if not experiment.methods[method].private:
            axes.plot(ends, np.repeat(y[:1], 2), **look | {"marker": ""})
            continue
        # Points are shifted sideways so that error bars do not overlap.
        x = rows["epsilon"].to_numpy() * 1.07 ** (position - (len(looks) - 1) / 2)
        axes.errorbar(x, y, yerr=(y - low, high - y), capsize=2, elinewidth=1, **look)
    axes.set_xscale("log")
    axes.set_xlim(*ends)
    axes.set_ylim(0.0, 1.02)
    axes.xaxis.set_major_locator(LogLocator(numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _printed(axes, experiment, method, values):
    # A method's colour may differ between panels, so it is read from this panel.
    look = style.looks({method: experiment.methods[method]})[method]
    drawn = {container.get_label(): container for container in axes.containers}
    colour = drawn[look["label"]].lines[0].get_color() if look["label"] in drawn else look["color"]
    if values[0].epsilon is None:  # without privacy: a horizontal line, with a band for its sd
        (level,) = values
        label = "published: without privacy"
        axes.axhline(level.value, color=colour, linestyle=(0, (1, 1.5)), linewidth=1.2, label=label)
        low, high = level.value - (level.sd or 0), level.value + (level.sd or 0)
        axes.axhspan(low, high, color=colour, alpha=0.12, linewidth=0)
        return
    epsilons, means, sds = np.array([(v.epsilon, v.value, v.sd) for v in values], dtype=float).T
    axes.errorbar(
        *(epsilons * 1.25, means),
        yerr=sds,
        linestyle="",
        marker="D",
        markersize=6,
        markerfacecolor="white",
        color=colour,
        capsize=2,
        elinewidth=0.8,
        alpha=0.8,
        label=f"published: {look['label'].split(',')[0]}",
    )
