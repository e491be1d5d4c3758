"""Figures of the distributed lasso: what it discards, which pixels weigh most, how many centres."""

import textwrap

import numpy as np

from plots import style
from plots.relations import relation


def discarded_features(experiment, spec, draws):
    """Number of features whose weight is below 1e-100 against training rows, mean and range."""
    counts = draws.groupby(["method", "train_size"])["discarded"].agg(["mean", "min", "max"])
    counts = counts.reset_index().assign(curve=lambda rows: rows["method"])
    return relation(
        spec | {"options": spec["options"] | {"beside": True}},
        counts,
        style.looks(_shown(experiment, draws)),
        "train_size",
        y="mean",
        band=("min", "max"),
        labels=("training rows", "discarded features"),
        log="x",
        note="mean and range over simulations",
    )


def heaviest_pixels(experiment, spec, path):
    """Discarded pixels, and the heaviest positive and negative ones, drawn over a 4 and a 9."""
    heaviest = spec["options"]["heaviest"]
    with np.load(path) as arrays:
        methods, weights, examples, size = (
            arrays[key] for key in ("methods", "weights", "examples", "train_size")
        )
    side = round(np.sqrt(weights.shape[1]))
    columns = 1 + len(heaviest)
    fig, grid = style.figure(
        1.75 * columns * 2, 2.0 * len(methods) + 0.6,
        nrows=len(methods), ncols=2 * columns, squeeze=False,
    )  # fmt: skip
    for row, method, w in zip(grid, methods, weights, strict=True):
        title = experiment.methods[method].get("title", str(method).replace("_", " "))
        gone = np.flatnonzero(np.abs(w) < 1e-100)
        order = np.argsort(-np.abs(w))
        for k, example in enumerate(examples):
            panels = row[k * columns : (k + 1) * columns]
            for axes in panels:
                axes.imshow(example.reshape(side, side), cmap="Greys", alpha=0.55)
                axes.set_xticks([])
                axes.set_yticks([])
                axes.grid(visible=False)
                axes.set_xlim(-0.5, side - 0.5)
                axes.set_ylim(side - 0.5, -0.5)
            _mark(panels[0], gone, side, "#0072B2", "x")
            panels[0].set_title(f"{len(gone)} discarded", fontsize="small")
            for axes, count in zip(panels[1:], heaviest, strict=True):
                top = order[: min(count, len(w) - len(gone))]
                _mark(axes, top[w[top] > 0], side, "#D55E00", "+")
                _mark(axes, top[w[top] < 0], side, "#009E73", "o")
                axes.set_title(f"{len(top)} heaviest", fontsize="small")
        row[0].set_ylabel("\n".join(textwrap.wrap(title, 22)), fontsize="small")
    fig.suptitle(
        f"{spec['title']}, {int(size):,} training rows (+ for 9, o for 4, x discarded)",
        x=0.01, ha="left",
    )  # fmt: skip
    return fig


def _mark(axes, pixels, side, colour, marker):
    filled = {"facecolors": "none"} if marker == "o" else {}
    colours = {"edgecolors": colour, **filled} if filled else {"color": colour}
    axes.scatter(
        pixels % side, pixels // side, marker=marker, s=22 * (16 / side), linewidths=1.2, **colours
    )


def _shown(experiment, frame):
    shown = set(frame["method"])
    return {label: method for label, method in experiment.methods.items() if label in shown}
