"""Draws curves with bands from columns of a frame: a few on common axes, or many in panels."""

import math
import textwrap
from typing import NamedTuple

import numpy as np

from plots import style

TOGETHER = 4  # maximum number of curves on common axes, not counting baselines
LINE = 100  # characters per line of the note below a single figure
BESIDE = 60  # characters per line of a title that has a legend at its right
WIDTH = 40  # characters per line of a panel's title
NAMED = 5  # maximum number of names at curves' ends, or of legend entries inside the axes
APART = 0.058  # distance between names at right ends, as a share of the axes' height
NARROW = 0.35  # panels have a common y axis only if each fills at least this share of it
TRIED = 8  # maximum number of values shown as ticks of a logarithmic axis
PARTS = ("color", "marker", "linestyle")  # properties of a look that are passed to seaborn
BAND = ("error_low", "error_high")
OTHERS = {"color": "#C4C4C4", "linewidth": 0.9, "marker": "", "linestyle": "-"}
PRINTED = {"linestyle": (0, (1, 1.5)), "linewidth": 1.2}
CROSS = {"linestyle": "", "marker": "x", "markersize": 7}
SPREAD = {"capsize": 3, "elinewidth": 1, "clip_on": False}
AXIS = {"color": "#999999", "linestyle": (0, (6, 2)), "linewidth": 0.9}


class Mark(NamedTuple):
    """A printed value of a curve.

    sd: its standard deviation, None if not printed. at: its x position, None if unknown.
    """

    curve: str
    dataset: str
    value: float
    sd: float | None
    at: float | None


class Curves(NamedTuple):
    """The column that curves show, and the two columns that bound their bands (None for no bands).

    If there are more than `together` curves, each has its own panel, which also shows the curves `behind`
    and, in grey, all others.
    """

    y: str = "error_mean"
    band: tuple | None = BAND
    behind: tuple = ()
    together: int = TOGETHER


class Scales(NamedTuple):
    """Labels and scales of the axes.

    labels: of x and y. log: the logarithmic axes, "x", "y" or "xy". bottom: the lower limit of a linear y
    axis; None for automatic. own: whether every panel has its own y axis. within: the limits of a linear y
    axis. A logarithmic y axis fits the curves, within these limits. shared: whether panels share the y axis
    in any case; otherwise, they do if each fills enough of it.
    """

    labels: tuple = ("training rows", "test error")
    log: str = ""
    bottom: float | None = 0
    own: bool = False
    within: tuple | None = None
    shared: bool = False

    def parted(self, frame, x, y):
        """The axes, of "x" and "y", that panels do not share."""
        rows = frame[frame[y].notna() & np.isfinite(frame[x])]
        parted = {name for name in "xy" if name == "y" and self.own}
        for name, column in (("x", x), ("y", y))[: 1 if self.shared else 2]:
            values = rows[column].where(rows[column] > 0) if name in self.log else rows[column]
            values = np.log(values) if name in self.log else values
            ends = values.groupby(rows["panel"]).agg(["min", "max"])
            spans, whole = ends["max"] - ends["min"], ends["max"].max() - ends["min"].min()
            parted |= {name} if (spans < (NARROW if name == "y" else 0.99) * whole).any() else set()
        return parted


class Printed(NamedTuple):
    """The source's printed values and axis.

    marks: values, drawn as crosses, or as dotted horizontal lines if their x position is unknown. axis:
    (low, high) of the source's y axis, drawn as horizontal lines.
    """

    marks: tuple = ()
    axis: tuple = ()


NOTHING = Printed()


class _Panels(NamedTuple):
    """The layout of panels.

    names: [""] for one panel. each: whether every curve has its own panel. parted: the axes ("x", "y") that
    panels do not share.
    """

    names: list
    headings: list
    each: bool
    parted: set

    @property
    def many(self):
        return len(self.names) > 1

    @property
    def columns(self):
        return style.columns(len(self.names))


def relation(spec, frame, looks, x, curves, scales, note="", printed=NOTHING):
    """A figure with one curve per value of frame["curve"] along the column x, in the style looks[value].

    A column "panel", if present, names each row's panel; rows without a name are in all panels.
    note: the legend's title.
    """
    import pandas as pd

    front = [name for name in looks if name not in curves.behind]
    separate = "panel" not in frame and len(front) > curves.together
    if separate:
        frame = frame.assign(panel=frame["curve"].where(frame["curve"].isin(front)))
    names = front if separate else [*frame["panel"].dropna().unique()] if "panel" in frame else [""]
    headings = [looks[name]["label"] if separate else name for name in names]
    parted = scales.parted(frame, x, curves.y) if len(names) > 1 and not separate else set()
    panels = _Panels(names, [textwrap.fill(head, WIDTH) for head in headings], separate, parted)
    shown = frame.merge(pd.DataFrame({"place": names}), how="cross")
    if panels.many:
        own = shown["panel"].isna() | (shown["panel"] == shown["place"])
        shown["others"] = shown[curves.y].where(~own)
        shown[curves.y] = shown[curves.y].where(own)
    fig = _plot(shown, looks, x, curves, scales, panels)
    cut = False
    for axes, name in zip(fig.axes, names, strict=True):
        for k, mark in enumerate(printed.marks):
            if name in ("", mark.curve, mark.dataset):
                _print(axes, mark, looks[mark.curve]["color"], k / len(printed.marks))
        for end in printed.axis:
            axes.axhline(end, **AXIS)
        placed = shown[shown["place"] == name]
        _limit(axes, frame, placed, curves, scales, panels)
        within = placed[placed[curves.y].notna()] if "x" in panels.parted else frame
        _label(axes, within[x], x, scales, panels)
        for curve, rows in placed.groupby("curve"):
            if curve in looks:
                cut |= style.arrows(axes, rows[x], rows[curves.y], looks[curve]["color"])
    note = "; ".join(filter(None, (note, "arrows: beyond the axis" if cut else "")))
    named = not panels.many and len(looks) <= NAMED
    _explain(fig, spec, {} if named else looks, panels, note, printed)
    if named:
        _name(fig.axes[0], frame, looks, x, curves.y)
    return fig


def _plot(shown, looks, x, curves, scales, panels):
    """Draw the curves over their bands, with other panels' curves in grey."""
    import matplotlib as mpl
    import seaborn.objects as so  # slow to import

    many, band = panels.many, curves.band
    plot = so.Plot(shown, x=x, y=curves.y)
    label = scales.labels[0]
    plot = plot.label(x=label.split(" (")[0] if many else label, y=scales.labels[1])
    if many:
        plot = plot.facet("place", order=panels.names, wrap=panels.columns)
        plot = plot.label(title=lambda name: panels.headings[panels.names.index(name)])
    if panels.each:
        plot = plot.add(so.Line(**OTHERS), y="others", group="curve", legend=False)
    # A layer shared by curves would draw every combination of colour, marker and line.
    rows = {name: shown[shown["curve"] == name] for name in looks}
    for name in looks if band else ():
        filled = so.Band(alpha=0.15, color=looks[name]["color"])
        plot = plot.add(filled, data=rows[name], ymin=band[0], ymax=band[1])
    # Marks at 0, the end of the axis, are drawn whole.
    clipped = many or bool(scales.bottom or scales.within or "y" in scales.log)
    for name, look in looks.items():
        line = so.Line({"clip_on": clipped}, **{p: look[p] for p in PARTS})
        plot = plot.add(line, data=rows[name])
    if panels.parted:
        plot = plot.share(**dict.fromkeys(panels.parted, False))
    fig = style.canvas()
    look = {"axes.titlelocation": "left", "axes.titlesize": "medium" if many else "large"}
    plot.theme(mpl.rcParams | look).on(fig).plot()
    return fig


def _limit(axes, frame, placed, curves, scales, panels):
    """Set the y axis of a panel. placed: the rows in it."""
    y, band, bottom = curves.y, curves.band, scales.bottom
    if "y" in scales.log:
        style.log_errors(axes, frame[y])
        if scales.within:
            rows = placed[placed[y].notna()] if "y" in panels.parted else frame
            (least, most), high = scales.within, rows[band[1] if band else y].max()
            axes.set_ylim(max(least, rows[y].min() / 2), 1.2 * min(most, high))
        style.log_ticks(axes.yaxis)
    elif scales.within:
        axes.set_ylim(scales.within)
    elif bottom is not None:
        axes.set_ylim(bottom=bottom)
        if bottom:  # rows below `bottom` must not change the upper end
            axes.set_ylim(top=frame[band[1] if band else y].max() + 0.05)
    fixed = scales.within or "y" in scales.log
    if (scales.own or "y" in panels.parted) and not fixed:
        rows = placed[placed[y].notna()]
        low, high = (rows[column] for column in band or (y, y))
        low, high = max(low.min(), -math.inf if bottom is None else bottom), high.max()
        beyond = 0.05 * (high - low) or 0.01
        axes.set_ylim(low - beyond, high + beyond)


def _label(axes, values, x, scales, panels):
    """Set the x axis of a panel."""
    if "x" in scales.log:
        axes.set_xscale("log")
    finite = values[np.isfinite(values)]
    if x == "train_size":
        style.sizes(axes, values, narrow=panels.many)
    elif "x" in scales.log and (finite.nunique() <= TRIED or finite.max() < 10 * finite.min()):
        style.plain_ticks(axes, finite)  # ticks only at values of this run
    else:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _explain(fig, spec, looks, panels, note, printed):
    """Add the title and the legend."""
    from matplotlib.lines import Line2D

    explained = [Line2D([], [], **look) for name, look in looks.items() if name not in panels.names]
    if printed.marks:
        mark = PRINTED if printed.marks[0].at is None else CROSS
        spread = "" if printed.marks[0].sd is None else ", with its sd"
        explained.append(Line2D([], [], color="#555555", label=f"value published{spread}", **mark))
    if printed.axis:
        explained.append(Line2D([], [], label="ends of the source's axis", **AXIS))
    if panels.each:
        explained.append(Line2D([], [], label="other panels' curves", **OTHERS))
    look = {"handles": explained, "title": note, "alignment": "left", "title_fontsize": "small"}
    if panels.many:
        columns, lines = panels.columns, 1 + max(text.count("\n") for text in panels.headings)
        rows = -(-len(panels.names) // columns)
        fig.set_size_inches(0.6 + 3.1 * columns, 1.4 + (2 + 0.2 * lines) * rows)
        style.heading(fig, spec.title)
        beside = {"loc": "outside lower left", "ncols": columns}
        if len(panels.names) % columns:  # the last row of panels has room for the legend
            beside = {"loc": "lower right"}
        fig.legend(**look, **beside)
        return
    title = ", ".join(filter(None, (spec.title, *panels.headings)))
    beside = looks and (spec.options.get("beside") or len(explained) > NAMED)
    style.title(fig.axes[0], textwrap.fill(title, BESIDE) if beside else title)
    if beside:
        fig.set_size_inches(9.2, 4.2)
        fig.legend(loc="outside right upper", **look)
    elif explained or note:  # below the axes, where it hides no curve
        look["title"] = textwrap.fill(note.replace("\n", " "), LINE)
        fig.legend(loc="outside lower left", ncols=3, **look)


def _name(axes, frame, looks, x, y):
    """Name every curve at its right end, in its colour, with the least shifts that keep names apart."""
    from scipy.optimize import isotonic_regression

    ends = {}
    for name in looks:
        rows = frame[(frame["curve"] == name) & frame[y].notna()]
        if len(rows):
            last = rows.sort_values(x)[[x, y]].iloc[-1]
            ends[name] = axes.transAxes.inverted().transform(axes.transData.transform(last))[1]
    axes.figure.set_size_inches(8.0, 4.2)
    if not ends:
        return
    order = sorted(ends, key=ends.get)
    apart = APART * np.arange(len(order))
    nearest = isotonic_regression(np.clip([ends[name] for name in order], 0, 1) - apart).x
    places = np.clip(nearest, 0, 1 - apart[-1]) + apart
    for name, place in zip(order, places, strict=True):
        look = {"transform": axes.transAxes, "va": "center", "fontsize": 8.5}
        axes.text(1.02, place, looks[name]["label"], color=style.ink(looks[name]["color"]), **look)


def _print(axes, mark, colour, share):
    """Draw a printed value. If it has no place, its sd is near the right end, shifted left by `share`.

    The shift, in units of 6 % of the axes' width, keeps error bars apart.
    """
    if mark.at is None:
        axes.axhline(mark.value, color=colour, **PRINTED)
        if mark.sd is not None:
            across = axes.get_yaxis_transform()
            x = 0.985 - 0.06 * share
            axes.errorbar(x, mark.value, mark.sd, color=colour, transform=across, **SPREAD)
    elif mark.sd is None:
        axes.plot(mark.at, mark.value, **CROSS | {"color": colour})
    else:
        axes.errorbar(mark.at, mark.value, mark.sd, **CROSS | SPREAD | {"color": colour})


def level(frame):
    """The frame with non-private rows repeated at the smallest and largest epsilon, as level lines."""
    import pandas as pd

    private = np.isfinite(frame["epsilon"])
    ends = frame.loc[private, "epsilon"].agg(["min", "max"]) if private.any() else [np.inf]
    return pd.concat([frame[private], *(frame[~private].assign(epsilon=end) for end in ends)])
