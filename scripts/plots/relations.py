"""Curves with bands from the columns of a frame: a few on common axes, or many with a panel each."""

import math
import textwrap
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from plots import style

TOGETHER = 4  # curves, without baselines, that are told apart on common axes
WIDTH = 40  # characters of a panel's title on a line
WITHIN = 5  # entries of a legend that find room among the curves
PARTS = ("color", "marker", "linestyle")  # of a look, for seaborn
BAND = ("error_low", "error_high")
OTHERS = {"color": "#C4C4C4", "linewidth": 0.9, "marker": "", "linestyle": "-"}
PRINTED = {"linestyle": (0, (1, 1.5)), "linewidth": 1.2}
CROSS = {"linestyle": "", "marker": "x", "markersize": 7}
SPREAD = {"capsize": 3, "elinewidth": 1, "clip_on": False}
AXIS = {"color": "#999999", "linestyle": (0, (6, 2)), "linewidth": 0.9}


class Mark(NamedTuple):
    """A printed value beside a curve, with its standard deviation (None if none is printed) and its place
    along the axis (None if that is not known)."""

    curve: str
    dataset: str
    value: float
    sd: float | None
    at: float | None


def relation(
    spec,
    frame,
    looks,
    x,
    y="error_mean",
    band=BAND,
    labels=("training rows", "test error"),
    log="",
    bottom=0,
    note="",
    behind=(),
    printed=(),
    axis=(),
    together=TOGETHER,
    own_axes=False,
):
    """Figure of one curve per value of frame["curve"], drawn as looks[value] says, over its band.

    The band is between two columns; None draws no band. If there are more than `together` curves, each gets
    a panel, in which those of `behind` are drawn again and all others are grey. A column "panel" says
    instead where each row is drawn; rows without a panel are in all of them.
    own_axes: every panel has its own y axis. labels: those of the axes. log: "x", "y" or both. bottom: the
    start of a linear y axis, None for an automatic one. note: the legend's title. printed: `Mark`s, drawn
    as a cross, or as a dotted line at the value if its place is not known. axis: (low, high) of the
    source's own axis, drawn as level lines. spec["options"]["beside"]: the legend stands beside the axes,
    if curves leave it no room.
    """
    import seaborn.objects as so  # its import takes as long as all others of this job

    front = [name for name in looks if name not in behind]
    each = "panel" not in frame and len(front) > together
    if each:
        frame = frame.assign(panel=frame["curve"].where(frame["curve"].isin(front)))
    panels = front if each else [*frame["panel"].dropna().unique()] if "panel" in frame else [""]
    many = len(panels) > 1
    columns = style.columns(len(panels))
    headings = [looks[panel]["label"] if each else panel for panel in panels]
    headings = [textwrap.fill(heading, WIDTH) for heading in headings]
    lines = 1 + max(heading.count("\n") for heading in headings)
    shown = frame.merge(pd.DataFrame({"place": panels}), how="cross")
    if many:
        own = shown["panel"].isna() | (shown["panel"] == shown["place"])
        shown["others"] = shown[y].where(~own)
        shown[y] = shown[y].where(own)

    plot = so.Plot(shown, x=x, y=y, **dict.fromkeys(PARTS, "curve"))
    plot = plot.label(x=labels[0].split(" (")[0] if many else labels[0], y=labels[1])
    if many:
        plot = plot.facet("place", order=panels, wrap=columns)
        plot = plot.label(title=lambda panel: headings[panels.index(panel)])
    if each:
        plain = dict.fromkeys(PARTS) | {"group": "curve"}
        plot = plot.add(so.Line(**OTHERS), y="others", legend=False, **plain)
    if band:
        plot = plot.add(so.Band(alpha=0.15), ymin=band[0], ymax=band[1], legend=False)
    plot = plot.add(so.Line({"clip_on": many or bool(bottom)}), legend=False)
    if own_axes:
        plot = plot.share(y=False)
    plot = plot.scale(**{p: {name: looks[name][p] for name in looks} for p in PARTS})
    fig = style.canvas()
    look = {"axes.titlelocation": "left", "axes.titlesize": "medium" if many else "large"}
    plot.theme(mpl.rcParams | look).on(fig).plot()

    for axes, panel in zip(fig.axes, panels, strict=True):
        for k, mark in enumerate(printed):
            if panel in ("", mark.curve, mark.dataset):
                _print(axes, mark, looks[mark.curve]["color"], k / len(printed))
        for end in axis:
            axes.axhline(end, **AXIS)
        if "y" in log:
            style.log_errors(axes, frame[y])
        elif bottom is not None:
            axes.set_ylim(bottom=bottom)
            if bottom:  # values below it would leave room above, too
                axes.set_ylim(top=frame[band[1] if band else y].max() + 0.05)
        if own_axes and "y" not in log:
            rows = shown[(shown["place"] == panel) & shown[y].notna()]
            low, high = (rows[column] for column in band or (y, y))
            low, high = max(low.min(), -math.inf if bottom is None else bottom), high.max()
            beyond = 0.05 * (high - low) or 0.01
            axes.set_ylim(low - beyond, high + beyond)
        if "x" in log:
            axes.set_xscale("log")
        values = frame.loc[np.isfinite(frame[x]), x]
        if x == "train_size":
            style.sizes(axes, frame[x], narrow=many)
        elif "x" in log and values.max() < 10 * values.min():  # a decade's ticks would be too few
            style.plain_ticks(axes, values)
        else:
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    explained = [Line2D([], [], **look) for name, look in looks.items() if name not in panels]
    if printed:
        mark = PRINTED if printed[0].at is None else CROSS
        name = "value published" if printed[0].sd is None else "value published, with its sd"
        explained.append(Line2D([], [], color="#555555", label=name, **mark))
    if axis:
        explained.append(Line2D([], [], label="ends of the source's axis", **AXIS))
    if each:
        explained.append(Line2D([], [], label="other panels' curves", **OTHERS))
    look = {"handles": explained, "title": note, "alignment": "left", "title_fontsize": "small"}
    if many:
        fig.set_size_inches(
            0.6 + 3.1 * columns, 1.4 + (2 + 0.2 * lines) * -(-len(panels) // columns)
        )
        fig.suptitle(spec["title"], x=0.01, ha="left")
        missing = len(panels) % columns  # the legend takes a missing panel's place
        where = (
            {"loc": "lower right"} if missing else {"loc": "outside lower left", "ncols": columns}
        )
        fig.legend(**look, **where)
        return fig
    fig.axes[0].set_title(", ".join(filter(None, (spec["title"], *headings))), loc="left")
    if spec.get("options", {}).get("beside") or len(explained) > WITHIN:
        fig.set_size_inches(9.2, 4.2)
        fig.legend(loc="outside right upper", **look)
    else:
        fig.axes[0].legend(**look)
    return fig


def _print(axes, mark, colour, share):
    """Draw a printed value. If it has no place, its spread is at the right end, shifted by the share."""
    if mark.at is None:
        axes.axhline(mark.value, color=colour, **PRINTED)
        if mark.sd is not None:
            across = axes.get_yaxis_transform()
            x = 1.01 + 0.04 * share
            axes.errorbar(x, mark.value, mark.sd, color=colour, transform=across, **SPREAD)
    elif mark.sd is None:
        axes.plot(mark.at, mark.value, **CROSS | {"color": colour})
    else:
        axes.errorbar(mark.at, mark.value, mark.sd, **CROSS | SPREAD | {"color": colour})


def level(frame):
    """The rows without privacy, at the least and the largest epsilon, since they hold at every epsilon."""
    private = np.isfinite(frame["epsilon"])
    ends = frame.loc[private, "epsilon"].agg(["min", "max"]) if private.any() else [np.inf]
    return pd.concat([frame[private], *(frame[~private].assign(epsilon=end) for end in ends)])
