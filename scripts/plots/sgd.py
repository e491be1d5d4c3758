"""Figures of private stochastic gradient descent: its tuning and its iterations."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from plots import style
from study.canonical import epsilon as canonical


def _choices(paths):
    """A frame of the searches' choices: cell coordinates with lambda and every option."""
    rows = []
    for cell, path in paths.items():
        chosen = json.loads(Path(path).with_suffix(".json").read_text(encoding="utf-8"))
        rows.append(cell._asdict() | {"lambda": chosen["lambda"]} | chosen["options"])
    return pd.DataFrame(rows)


def searched_settings(experiment, spec, paths):
    """Chosen lambda and batch size against the training size, one line per epsilon."""
    frame = _choices(paths)
    fig, grid = style.figure(6.8, 5.4, nrows=2, sharex=True)
    values = sorted(frame["epsilon"].unique())
    for (value, colour), marker in zip(
        zip(values, _colours(values), strict=True), style.MARKERS, strict=False
    ):
        rows = frame[frame["epsilon"] == value].sort_values("train_size")
        look = {"color": colour, "marker": marker, "label": _name(value)}
        grid[0].plot(rows["train_size"], rows["lambda"], **look)
        grid[1].plot(rows["train_size"], rows["batch"], **look)
    for axes, name in zip(grid, (r"chosen $\lambda$", "chosen batch size"), strict=True):
        axes.set_ylabel(name)
        axes.set_yscale("log")
    grid[1].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    grid[1].set_xlabel("training rows")
    grid[1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    grid[0].set_title(spec["title"], loc="left")
    grid[0].legend(loc="upper left", bbox_to_anchor=(1, 1))
    return fig


def iterations(experiment, spec, path):
    """Objective and gradient norm against the iteration, one curve per epsilon."""
    frame = pd.read_csv(path)
    fig, grid = style.figure(8.6, 3.9, ncols=2)
    values = sorted(frame["epsilon"].unique())
    for value, colour in zip(values, _colours(values), strict=True):
        rows = frame[frame["epsilon"] == value]
        for axes, column in zip(grid, ("objective", "gradient_norm"), strict=True):
            axes.plot(rows["step"], rows[column], color=colour, label=_name(value))
    for axes, name in zip(grid, ("objective", "norm of its gradient"), strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("iteration")
        axes.set_ylabel(name)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    grid[0].set_title(spec["title"], loc="left")
    grid[1].legend(loc="upper left", bbox_to_anchor=(1, 1))
    return fig


def _colours(values):
    """A colour per epsilon, black without noise."""
    finite = style.shades(sum(np.isfinite(v) for v in values))
    return [*finite, *["#000000"] * (len(values) - len(finite))]


def _name(value):
    return rf"$\varepsilon$ = {canonical(value)}" if np.isfinite(value) else "without noise"
