"""Principal components of standardised rows: where the classes lie, and how much variance they explain."""

import numpy as np
import pandas as pd

from plots import style

LINES = (
    *(("#000000", "-"), ("#0072B2", "--"), ("#D55E00", ":")),
    *(("#009E73", "-."), ("#CC79A7", "-"), ("#56B4E9", "--")),
)


def component_scatter(experiment, spec, path):
    """First two principal components of every training row, one panel per data set."""
    with np.load(path) as arrays:
        names = spec.get("datasets", [str(name) for name in arrays["datasets"]])
        panels = {
            name: {
                key: arrays[f"{name}/{key}"]
                for key in ("title", "scores", "y", "labels", "names", "explained")
            }
            for name in names
        }
    fig, grid = style.figure(
        5.6 * len(panels) + (0.8 if len(panels) == 1 else 0), 5.0, ncols=len(panels), squeeze=False
    )
    for axes, panel in zip(grid[0], panels.values(), strict=True):
        _scatter(axes, panel)
    fig.suptitle(spec["title"], fontsize=11, x=0.01, ha="left")
    return fig


def _scatter(axes, panel):
    scores, y = panel["scores"], panel["y"]
    looks = dict(zip(panel["labels"], zip(style.TEN, style.MARKERS, strict=True), strict=False))
    # Classes take turns, an eighth of each at a time, so that none lies on top of all others.
    size = float(np.clip(9000 / len(y), 1.5, 14))
    for start in range(8):
        for label, (colour, marker) in looks.items():
            rows = np.flatnonzero(y == label)[start::8]
            axes.scatter(
                scores[rows, 0],
                scores[rows, 1],
                s=size,
                marker=marker,
                color=colour,
                alpha=0.6,
                linewidths=0,
                rasterized=True,
                label=None,
            )
    for label, name in zip(panel["labels"], panel["names"], strict=True):
        centre = scores[y == label].mean(axis=0)
        axes.annotate(
            str(name),
            centre,
            ha="center",
            va="center",
            fontsize=12,
            fontweight="bold",
            color=looks[label][0],
            path_effects=[style.halo()],
            zorder=5,
        )
    handles = [
        axes.scatter([], [], s=30, marker=marker, color=colour, label=str(name))
        for (colour, marker), name in zip(looks.values(), panel["names"], strict=True)
    ]
    axes.legend(handles=handles, title="class", loc="center left", bbox_to_anchor=(1.0, 0.5))
    first, second = panel["explained"][:2]
    axes.set_xlabel(f"first component ({first:.1%} of the variance)")
    axes.set_ylabel(f"second component ({second:.1%})")
    axes.set_title(str(panel["title"]), loc="left")


def explained_variance_curve(experiment, spec, path):
    """Share of the variance that the first components explain together, one curve per data set."""
    frame = pd.read_csv(path)
    fig, axes = style.figure()
    names = spec.get("datasets", list(frame["dataset"].unique()))
    for name, (colour, line) in zip(names, LINES, strict=False):
        rows = frame[frame["dataset"] == name]
        two = rows.loc[rows["components"] == 2, "explained"].item()
        axes.plot(
            rows["components"],
            rows["explained"],
            color=colour,
            linestyle=line,
            label=f"{rows['title'].iloc[0]}: two explain {two:.1%}",
        )
    axes.set_xlabel("number of principal components")
    axes.set_ylabel("share of the variance explained")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.02)
    axes.set_title(spec["title"], loc="left")
    axes.legend(loc="lower right")
    return fig
