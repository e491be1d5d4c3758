"""Draws a printed table as bars, beside ours at several epsilons."""

import numpy as np

from plots import style
from study.configuration import printed_values
from study.configuration.experiment import data_name
from study.configuration.inputs import CELLS
from study.configuration.kinds import figure
from study.configuration.options import Comparison, Options

THICK = 0.75
PRINTED = {"facecolor": "white", "hatch": "////", "linewidth": 1}


class PrintedBars(Options):
    published: Comparison
    epsilons: list[float] = []


@figure(CELLS, PrintedBars, describes_data=True)
def printed_bars(experiment, spec, frame):
    """A bar for each printed error with its standard deviation, and for ours, one panel per data set.

    It is for a table that names no epsilon: ours are at each of options["epsilons"], or at all if none of
    them ran. options["published"]: the printed values.
    """
    wanted = {*spec.options["epsilons"]} & {*frame["epsilon"]} or {*frame["epsilon"]}
    frame = frame[~np.isfinite(frame["epsilon"]) | frame["epsilon"].isin(wanted)]
    shown = {*frame["method"]}
    looks = style.looks({m: v for m, v in experiment.methods.items() if m in shown})
    printed = {
        (value.dataset, value.method): value
        for value in printed_values.values(experiment, spec.options["published"], frame)
    }
    datasets = [*frame["dataset"].unique()]
    lines = _lines(frame, looks, {method for _, method in printed})
    fig, grid = style.figure(
        4.6 * len(datasets),
        1.2 + 0.26 * len(lines),
        ncols=len(datasets),
        sharey=True,
        squeeze=False,
    )
    for axes, dataset in zip(grid[0], datasets, strict=True):
        own = frame[frame["dataset"] == dataset].set_index(["method", "epsilon"])
        for y, (method, epsilon, _) in enumerate(lines):
            if epsilon is None and (dataset, method) in printed:
                value = printed[dataset, method]
                _bar(
                    axes,
                    y,
                    value.value,
                    value.sd or 0.0,
                    PRINTED | {"edgecolor": looks[method]["color"]},
                )
            elif (method, epsilon) in own.index:
                row = own.loc[(method, epsilon)]
                _bar(axes, y, row["error_mean"], 0.0, {"color": looks[method]["color"]})
        style.title(axes, data_name(dataset), fontsize="medium")
        axes.set_xlabel("test error")
        axes.set_xlim(left=0)
        axes.grid(axis="y", visible=False)
    grid[0, 0].set_yticks(range(len(lines)), [name for *_, name in lines])
    grid[0, 0].set_ylim(len(lines) - 0.4, -0.6)
    style.heading(fig, spec.title)
    return fig


def _lines(frame, looks, printed):
    """(method, epsilon, name) of each bar; printed ones have the epsilon None, and come first."""
    lines = []
    for method, look in looks.items():
        own = sorted(frame.loc[frame["method"] == method, "epsilon"].unique())
        lines += [(method, None, f"{look['label']}: printed")] * (method in printed)
        names = [rf"$\varepsilon$ = {e:g}" if np.isfinite(e) else "ours" for e in own]
        if method not in printed and names:
            names[0] = f"{look['label']}: {names[0]}"
        lines += zip([method] * len(own), own, names, strict=True)
    return lines


def _bar(axes, y, value, sd, look):
    axes.barh(y, value, THICK, **look)
    if sd:
        low = min(sd, value)  # no error is below 0
        axes.errorbar(value, y, xerr=[[low], [sd]], color="#555555", capsize=2, elinewidth=1)
    said = f" {value:.3g} ± {sd:.3g}" if sd else f" {value:.3g}"
    axes.text(value + sd, y, said, va="center", fontsize=8)
