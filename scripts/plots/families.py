"""Families of learning curves, one per epsilon, and errors against the epsilon that is proven."""

import numpy as np

from dp.mechanisms import MECHANISMS
from plots import style
from study import arguments
from study.canonical import epsilon as canonical
from study.experiment import Cell, data_path
from study.files import read_json


def epsilon_family(experiment, spec, frame):
    """Test error, or the width of its 95 % interval, against training rows: one curve per epsilon.

    Methods without privacy are black. Options: log (both axes), show ("error" or "width"),
    from_size (training sizes below it are left out).
    """
    options = spec["options"]
    fig, axes = style.figure()
    if options["from_size"]:
        frame = frame[frame["train_size"] >= options["from_size"]]
    finite = sorted(e for e in frame["epsilon"].unique() if np.isfinite(e))
    colours = dict(zip(finite, style.sequence(len(finite)), strict=True))
    labels = [m for m in experiment.methods if m in set(frame["method"])]
    private = [m for m in labels if experiment.methods[m]["private"]]
    looks = style.looks(experiment.methods)
    lines = dict(zip(private, ("-", "--", ":"), strict=False))
    plain = dict(zip([m for m in labels if m not in private], ("--", ":", "-."), strict=False))
    for method in labels:
        for value in (*finite, np.inf):
            rows = frame[(frame["method"] == method) & (frame["epsilon"] == value)]
            if rows.empty:
                continue
            rows = rows.sort_values("train_size")
            name = looks[method]["label"]
            if np.isfinite(value):
                several = f"{name}, " if len(private) > 1 else ""
                look = {"color": colours[value], "linestyle": lines[method]}
                look |= {"marker": style.MARKERS[finite.index(value) % len(style.MARKERS)]}
                name = rf"{several}$\varepsilon$ = {canonical(value)}"
            else:
                look = {"color": "#000000", "linestyle": plain[method], "linewidth": 2}
            x = rows["train_size"].to_numpy()
            low, high = rows["error_low"].to_numpy(), rows["error_high"].to_numpy()
            if options["show"] == "width":
                axes.plot(x, high - low, label=name, **look)
                continue
            axes.plot(x, rows["error_mean"].to_numpy(), label=name, **look)
            axes.fill_between(x, low, high, color=look["color"], alpha=0.12, linewidth=0)
    axes.set_xlabel("training rows")
    axes.set_ylabel(
        "test error" if options["show"] == "error" else "width of the 95 % interval of the error"
    )
    if options["log"]:
        axes.set_xscale("log")
        if options["show"] == "error":
            style.log_errors(axes, frame["error_mean"])
        else:
            axes.set_yscale("log")
        style.plain_ticks(axes, frame["train_size"])
    else:
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_title(spec["title"], loc="left")
    axes.legend(
        title=style.replicates(experiment, frame),
        title_fontsize="small",
        fontsize="small",
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
    )
    fig.set_size_inches(7.6, 4.4)
    return fig


def proven_curve(experiment, spec, frame):
    """Test error against the epsilon that is proven of each method, where one is.

    A method whose proven epsilon is larger than the source's moves to the right; one without a finite
    epsilon is a band at the right edge that no epsilon belongs to.
    """
    fig, axes = style.figure(7.2, 4.4)
    looks = style.looks(experiment.methods)
    unproven = []
    for method, look in looks.items():
        rows = frame[frame["method"] == method].sort_values("epsilon")
        if rows.empty:
            continue
        if not experiment.methods[method]["private"]:
            axes.axhline(rows["error_mean"].iloc[0], **{**look, "marker": ""})
            continue
        proven = np.array([_proven(experiment, row) for row in rows.to_dict("records")])
        if not np.isfinite(proven).all():
            unproven.append(look["label"])
            continue
        axes.plot(proven, rows["error_mean"], **look)
        low, high = rows["error_low"], rows["error_high"]
        axes.fill_between(proven, low, high, color=look["color"], alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(r"proven $\varepsilon$ (replace-one)")
    axes.set_ylabel("test error")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    size = int(frame["train_size"].max())
    axes.set_title(f"{spec['title']}, {size:,} training rows", loc="left")
    title = "\n".join(f"no finite $\\varepsilon$: {name}" for name in unproven)
    axes.legend(title=title or None, title_fontsize="small", fontsize="small", alignment="left")
    return fig


def _proven(experiment, row):
    """The mechanism's own proven epsilon at a cell's settings, before what tuning them spent."""
    cell = Cell(*(row[key] for key in Cell._fields))
    options, settings = arguments.of_cell(experiment, cell)
    mechanism = MECHANISMS[experiment.methods[cell.method]["mechanism"]]
    meta = read_json(data_path(cell.dataset, "json"))
    return arguments.guarantee(mechanism, meta, cell.train_size, options, **settings).epsilon
