"""Weights before the noise and the noise on them (E18 figure 4.17)."""

import numpy as np

from plots import style
from study.canonical import epsilon


def weights_and_noise(experiment, spec, path):
    """Box plots on an arcsinh scale, and medians of the magnitudes, at three training sizes."""
    with np.load(path) as arrays:
        sizes, epsilons, weights, noise = (
            arrays[key] for key in ("sizes", "epsilons", "weights", "noise")
        )
    fig, grid = style.figure(
        3.2 * len(sizes) + 0.4,
        6.4,
        nrows=2,
        ncols=len(sizes),
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    names = [*(epsilon(e) for e in epsilons), "weights"]
    colours = [*style.sequence(len(epsilons)), "#999999"]
    for k, size in enumerate(sizes):
        values = [*noise[k], weights[k]]
        for top, axes in ((True, grid[0, k]), (False, grid[1, k])):
            shown = values if top else [np.abs(v)[v != 0] for v in values]
            boxes = axes.boxplot(
                shown, patch_artist=True, widths=0.7, flierprops={"marker": ".", "markersize": 2}
            )
            for box, colour in zip(boxes["boxes"], colours, strict=True):
                box.set(facecolor=colour, alpha=0.6)
            for line in boxes["medians"]:
                line.set(color="#000000")
            axes.set_yscale(*(("asinh",) if top else ("log",)))
            axes.grid(axis="x", visible=False)
            axes.set_xticks(range(1, len(names) + 1), names, rotation=90)
        grid[0, k].axhline(0, color="#000000", linewidth=0.6)
        grid[0, k].set_title(f"{size:,} training rows", loc="left")
    grid[0, 0].set_ylabel("value (arcsinh scale)")
    grid[1, 0].set_ylabel("magnitude, zeros left out")
    fig.supxlabel(r"noise at privacy parameter $\varepsilon$, and the weights it hides")
    fig.suptitle(spec["title"], x=0.01, ha="left")
    return fig
