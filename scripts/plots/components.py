"""Principal components of standardised rows: where the classes lie, and how much variance they explain."""

import numpy as np
import pandas as pd

from plots import style
from plots.relations import relation

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
    import seaborn  # its import takes as long as all others of this job

    names = dict(zip(panel["labels"], map(str, panel["names"]), strict=True))
    colours = dict(zip(names.values(), style.TEN, strict=False))
    frame = pd.DataFrame(panel["scores"][:, :2], columns=["first", "second"])
    frame["class"] = [names[label] for label in panel["y"]]
    seaborn.scatterplot(
        frame.sample(frac=1, random_state=0),  # no class lies on top of all others
        **{"x": "first", "y": "second", "hue": "class", "style": "class", "ax": axes},
        hue_order=list(names.values()),
        style_order=list(names.values()),
        palette=colours,
        markers=style.MARKERS[: len(names)],
        s=float(np.clip(9000 / len(frame), 1.5, 14)),
        **{"alpha": 0.6, "linewidth": 0, "rasterized": True},
    )
    for name, centre in frame.groupby("class")[["first", "second"]].mean().iterrows():
        axes.annotate(
            name,
            centre,
            **{"ha": "center", "va": "center", "fontsize": 12, "fontweight": "bold"},
            color=colours[name],
            path_effects=[style.halo()],
            zorder=5,
        )
    legend = axes.legend(title="class", loc="center left", bbox_to_anchor=(1.0, 0.5))
    for handle in legend.legend_handles:
        handle.set(alpha=1, markersize=6)
    first, second = panel["explained"][:2]
    axes.set_xlabel(f"first component ({first:.1%} of the variance)")
    axes.set_ylabel(f"second component ({second:.1%})")
    axes.set_title(str(panel["title"]), loc="left")


def explained_variance_curve(experiment, spec, path):
    """Share of the variance that the first components explain together, one curve per data set."""
    frame = pd.read_csv(path)
    frame = frame[frame["dataset"].isin(spec.get("datasets", frame["dataset"]))]
    two = frame[frame["components"] == 2].set_index("dataset")
    looks = {
        name: style.look(f"{row.title}: two explain {row.explained:.1%}", colour, line=line)
        for (name, row), (colour, line) in zip(two.iterrows(), LINES, strict=False)
    }
    labels = ("number of principal components", "share of the variance explained")
    frame = frame.assign(curve=frame["dataset"])
    fig = relation(spec, frame, looks, "components", "explained", None, labels, together=len(LINES))
    fig.axes[0].set(xlim=(0, None), ylim=(0, 1.02))
    return fig
