"""The cross-validation scheme, drawn with a data set's own numbers."""

import numpy as np

from plots import style
from study.jobs.files import read_json

TRAIN, TEST = "#56B4E9", "#E69F00"


def folds(experiment, spec, paths):
    """One line per fold: the part it is tested on, and the parts it is trained on."""
    import seaborn  # its import takes as long as all others of this job

    if len(paths) != 1:
        raise ValueError("a figure of the folds shows exactly one data set: name it in 'datasets'")
    ((_, path),) = paths.items()
    rows = read_json(path.removesuffix(".npz") + ".json")["rows"]
    count = experiment.folds
    # as dp.data.examples.split_folds cuts: sizes differ by at most one, the larger parts first
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
    axes.set_title(spec["title"], loc="left")
    return fig
