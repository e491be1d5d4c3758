"""Heat maps of searches over two options."""

import numpy as np
import pandas as pd

from plots import style
from study.canonical import epsilon as canonical


def search_grid(experiment, spec, paths):
    """A map per method and epsilon: columns are values of one option of the grid, rows of another.

    options["show"]: "wins", the number of simulations, over all training sizes, in which a pair had the
    least cross-validation error; or "error_mean", that error over all training sizes. options["x"], ["y"]:
    the two options. If the grid has more options, their best values count.
    """
    import seaborn  # its import takes as long as all others of this job

    options = spec["options"]
    x, y, show = options["x"], options["y"], options["show"]
    tables = []
    for cell, path in paths.items():
        table = pd.read_csv(path)
        if missing := {x, y, show} - set(table):
            raise ValueError(f"{path} has no column {missing.pop()!r}: it has {', '.join(table)}")
        tables.append(table.assign(**cell._asdict()))
    wins = show == "wins"
    kept = ["method", "epsilon", y, x]
    found = pd.concat(tables).groupby(["dataset", "train_size", *kept], sort=False)[show]
    found = (found.sum() if wins else found.min()).groupby(kept, sort=False)
    found = (found.sum() if wins else found.mean()).unstack().sort_index(axis="columns")
    values = found.index.unique(y).sort_values(ascending=False)
    maps = {key: part.droplevel([0, 1]) for key, part in found.groupby(level=[0, 1], sort=False)}
    looks = style.looks(experiment.methods)
    count = style.columns(len(maps))
    rows = -(-len(maps) // count)
    fig, grid = style.figure(
        3.4 * count + 0.4, 2.7 * rows + 0.6, nrows=rows, ncols=count, sharey=True, squeeze=False
    )
    for axes, ((method, epsilon), table) in zip(grid.flat, maps.items(), strict=False):
        seaborn.heatmap(
            table := table.reindex(values),
            ax=axes,
            annot=table.map(lambda value: f"{value:.3g}" if value else ""),
            fmt="",
            annot_kws={"fontsize": "small"},
            cmap=seaborn.light_palette(style.LOOKS["output_perturbation"][1], as_cmap=True),
            vmin=0 if wins else found.min().min(),
            vmax=found.max().max(),
            cbar=False,
            linewidths=0.5,
            xticklabels=[f"{value:g}" for value in table.columns],
            yticklabels=[f"{value:g}" for value in table.index],
        )
        axes.grid(visible=False)
        axes.tick_params(length=0, labelrotation=0)
        axes.set(xlabel=_name(x), ylabel=_name(y) if axes in grid[:, 0] else "")
        private = rf", $\varepsilon$ = {canonical(epsilon)}" if np.isfinite(epsilon) else ""
        axes.set_title(looks[method]["label"] + private, loc="left", fontsize="medium")
    for axes in grid.flat[len(maps) :]:
        axes.set_visible(False)
    fig.suptitle(spec["title"], x=0.01, ha="left")
    return fig


def _name(option):
    return r"$\lambda$" if option == "lambda" else option.replace("_", " ")
