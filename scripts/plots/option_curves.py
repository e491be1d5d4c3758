"""Draws a column of results.csv against an option that an experiment varies."""

import itertools
import json
import textwrap

import numpy as np

from plots import style
from study import canonical
from study.configuration.experiment import data_name
from study.configuration.inputs import RESULTS
from study.configuration.kinds import figure
from study.configuration.options import Options

NAMES = {
    "train_size": "training rows",
    "error_mean": "test error",
    "error_sd_folds": "sd of the test error",
    "error_width": "width of its 95 % interval",
    "lambda": r"$\lambda$",
    "epsilon": r"$\varepsilon$",
}
WIDTH = 22  # characters per line of a panel's name, beside its axis
LINES = ("-", "--", ":", "-.")


class OptionCurve(Options):
    along: str | None = None
    columns: list = ["error_mean"]
    rows: str | None = None
    log_along: bool = False
    none: str = "none"


@figure(RESULTS, OptionCurve, describes_data=True)
def option_curve(experiment, spec, frame):
    """Columns of results.csv against an option, one curve per remaining combination, with 95 % intervals.

    options["along"]: the option on the x axis. If it is train_size, curves differ in the varied options.
    options["columns"]: the columns, one panel each; NAME_mean has the interval [NAME_low, NAME_high],
    whose width is error_width.
    options["rows"]: a column that has one row of panels per value.
    options["none"]: the displayed name of the option's value null.

    A method without the option is drawn as a horizontal line.
    """
    options = spec.options
    along, rows, columns = options["along"], options["rows"], options["columns"]
    frame = frame.assign(error_width=frame["error_high"] - frame["error_low"])
    numeric = [name for name in frame if frame[name].dtype.kind in "if"]
    for name in columns:
        if name not in numeric:
            raise ValueError(f"results.csv has no numbers {name!r} (it has: {', '.join(numeric)})")
    varied = experiment.varied()
    groups = _groups(experiment, set(frame["method"]))
    own = {
        group: style.LOOKS.get(experiment.methods[label].mechanism, ("", style.SPARE[0]))[1]
        for label, group in groups.items()
    }
    frame = frame.assign(
        method=frame["method"].map(groups),
        **{name: [_value(text, options["none"]) for text in frame[name]] for name in varied},
    )
    panels = _ordered(frame[rows]) if rows else [None]
    parts = [frame[frame[rows] == panel] if rows else frame for panel in panels]
    keys = [
        key
        for key in dict.fromkeys(("dataset", "method", *varied, "train_size", "epsilon"))
        if key not in (along, rows) and any(part[key].nunique() > 1 for part in parts)
    ] or ["method"]
    looks = _looks(frame, keys, own)
    places = _places(frame[along], options["log_along"])
    words = any(isinstance(value, str) for value in places)
    fig, grid = style.figure(
        max(3.4 * len(columns) + 0.6, 7.0),
        max(2.2 * len(panels) + 0.6, 4.2) + 0.13 * len(looks),
        nrows=len(panels),
        ncols=len(columns),
        sharex=True,
        squeeze=False,
    )
    for line, part, panel in zip(grid, parts, panels, strict=True):
        for axes, column in zip(line, columns, strict=True):
            for curve, look in looks.items():
                shown = np.all([part[key] == value for key, value in curve], axis=0)
                _draw(axes, part[shown], along, column, places, look)
            axes.set_ylabel(NAMES.get(column, column.replace("_", " ")))
            if not (frame[column] < 0).any():
                axes.set_ylim(bottom=0)
        if rows:
            name = textwrap.fill(_named(rows, panel), WIDTH)
            line[0].set_ylabel(f"{name}\n{line[0].get_ylabel()}")
    for axes in grid[-1]:
        axes.set_xlabel(NAMES.get(along, along.replace("_", " ")))
        if options["log_along"]:
            axes.set_xscale("log")
        if not words and options["log_along"]:
            style.plain_ticks(axes, places)
            if axes.get_yscale() == "log":
                style.log_ticks(axes.yaxis)
        elif words:
            axes.set_xticks([*places.values()], [_text(value) for value in places])
            axes.minorticks_off()
        else:
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    if grid.size == 1:
        style.title(grid[0, 0], spec.title)
    else:
        style.heading(fig, spec.title)
    drawn = {}
    for axes in grid.flat:
        handles, labels = axes.get_legend_handles_labels()
        drawn = dict(zip(labels, handles, strict=True)) | drawn  # earlier axes take precedence
    labels = [look["label"] for look in looks.values() if look["label"] in drawn]
    fig.legend(
        [drawn[label] for label in labels],
        labels,
        loc="outside lower left",
        ncols=2,
        alignment="left",
        title=style.replicates(experiment, frame).replace("\n", " "),
        title_fontsize="small",
    )
    return fig


def _groups(experiment, shown):
    """Method -> the common name of methods that differ only in varied options."""
    varied = experiment.varied()
    titles = {
        label: family.title
        for family in (experiment.families or {}).values()
        for label in family.members
        if family.title and "{" not in family.title
    }
    groups, names = {}, {}
    for label, method in experiment.methods.items():
        if label not in shown:
            continue
        settings = method.plain()
        settings = {k: v for k, v in settings.items() if k not in (*varied, "title", "fit")}
        settings["options"] = {k: v for k, v in method.options.items() if k not in varied}
        groups.setdefault(json.dumps(settings, sort_keys=True), []).append(label)
    for labels in groups.values():
        first = experiment.methods[labels[0]]
        own = first.title if len(labels) == 1 else None
        name = titles.get(labels[0]) or own or style.name(first.mechanism)
        name = f"{name} ({labels[0]})" if name in names.values() else name
        names |= dict.fromkeys(labels, name)
    return names


def _value(text, none):
    """An option's value from results.csv: a number, a word, or "" for a method without the option."""
    if not isinstance(text, str):
        return "" if text != text else text
    try:
        number = canonical.parse(text)
    except ValueError:
        return none if text == "null" else text
    return int(number) if number.is_integer() else number


def _ordered(values):
    """Distinct values: sorted numbers, then words in their order."""
    values = dict.fromkeys(values)
    numbers = sorted(value for value in values if not isinstance(value, str))
    return numbers + [value for value in values if isinstance(value, str)]


def _places(values, log):
    """Value -> its place on the axis; words follow the numbers, one step apart."""
    values = [value for value in _ordered(values) if value != ""]
    places = {value: value for value in values if not isinstance(value, str)}
    before, last = [0, 0, *places][-2:]
    for word in values[len(places) :]:
        following = last * (last / before if before else 2) if log else 2 * last - before
        before, last = last, following or 1
        places[word] = last
    return places


def _looks(frame, keys, own):
    """Curve ((key, value), ..) -> look: a colour for the last key, marker and line for the others.

    own: method -> its colour, which it has if the last key is an epsilon for all that are private.
    """
    orders = {key: _ordered(frame[key]) for key in keys}
    there = set(frame[keys].itertuples(index=False, name=None))
    curves = [curve for curve in itertools.product(*orders.values()) if curve in there]
    last = orders[keys[-1]]
    noiseless = [value for value in last if keys[-1] == "epsilon" and value == np.inf]
    colours = style.shades(len(last) - len(noiseless)) + ["#000000"] * len(noiseless)
    colours = dict(zip(last, colours, strict=True))
    alone = "method" in keys and len({*own.values()}) == len(own)
    alone &= keys[-1] == "method" or (keys[-1] == "epsilon" and len(last) - len(noiseless) == 1)
    kinds = list(dict.fromkeys(curve[:-1] for curve in curves))
    looks = {}
    for curve in curves:
        number = kinds.index(curve[:-1]) if len(kinds) > 1 else last.index(curve[-1])
        named = dict(zip(keys, curve, strict=True))
        if named.get("epsilon") == np.inf and "method" in named:
            del named["epsilon"]  # the method's name already says "without privacy"
        looks[tuple(zip(keys, curve, strict=True))] = {
            "label": ", ".join(_named(key, value) for key, value in named.items() if value != ""),
            "color": own[curve[keys.index("method")]] if alone else colours[curve[-1]],
            "marker": style.MARKERS[number % len(style.MARKERS)],
            "linestyle": LINES[number % len(LINES)] if len(kinds) > 1 else "-",
        }
    return looks


def _draw(axes, rows, along, column, places, look):
    ends = [column.removesuffix("_mean") + end for end in ("_low", "_high")]
    ends = ends if column.endswith("_mean") and set(ends) <= set(rows) else [column, column]
    for value, low, high in rows.loc[rows[along] == "", [column, *ends]].to_numpy():
        axes.axhline(value, **look | {"marker": ""})
        axes.axhspan(low, high, color=look["color"], alpha=0.1, linewidth=0)
    words = np.array([isinstance(value, str) for value in rows[along]], dtype=bool)
    numbers = rows[~words].sort_values(along)
    if len(numbers):
        x, (y, low, high) = numbers[along].astype(float), numbers[[column, *ends]].to_numpy().T
        axes.plot(x, y, **look)
        axes.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
    named = rows[words & (rows[along] != "")]
    if len(named):
        y, low, high = named[[column, *ends]].to_numpy().T
        x, error = [places[value] for value in named[along]], [y - low, high - y]
        axes.errorbar(x, y, error, capsize=2, elinewidth=0.8, **look | {"linestyle": ""})


def _named(key, value):
    text = _text(value)
    if key == "epsilon":
        return f"{NAMES[key]} = {text}" if np.isfinite(value) else "without noise"
    if key == "dataset":
        return data_name(value)
    if key == "method":
        return text
    return f"{text} rows" if key == "train_size" else f"{NAMES.get(key, key)} = {text}"


def _text(value):
    return value if isinstance(value, str) else f"{value:,.6g}"
