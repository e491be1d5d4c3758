"""Weights before the noise and the noise on them (E18 figure 4.17)."""

import numpy as np

from plots import style
from study.canonical import epsilon


def weights_and_noise(experiment, spec, path):
    """Box plots on an arcsinh scale, and of the magnitudes, at three training sizes.

    Whiskers reach 1.5 times the box on the scale that is drawn.
    """
    import seaborn  # its import takes as long as all others of this job

    with np.load(path) as arrays:
        sizes, epsilons, weights, noise = (
            arrays[key] for key in ("sizes", "epsilons", "weights", "noise")
        )
    fig, grid = style.figure(
        *(3.2 * len(sizes) + 0.4, 6.4),
        **{"nrows": 2, "ncols": len(sizes), "sharex": True, "sharey": "row", "squeeze": False},
    )
    grid[0, 0].set_yscale("asinh")  # before the boxes, which seaborn measures on it
    grid[1, 0].set_yscale("log")
    names = [*(epsilon(e) for e in epsilons), "weights"]
    look = {"palette": [*style.shades(len(epsilons)), "#999999"], "saturation": 1, "fliersize": 2}
    look |= {"boxprops": {"alpha": 0.6}, "medianprops": {"color": "#000000"}, "width": 0.7}
    for column, size, before, added in zip(grid.T, sizes, weights, noise, strict=True):
        values = dict(zip(names, [*added, before], strict=True))
        magnitudes = {name: np.abs(v[v != 0]) for name, v in values.items()}
        for axes, shown in zip(column, (values, magnitudes), strict=True):
            seaborn.boxplot(shown, ax=axes, **look)
            axes.grid(axis="x", visible=False)
            axes.tick_params(axis="x", rotation=90)
        column[0].axhline(0, color="#000000", linewidth=0.6)
        column[0].set_title(f"{size:,} training rows", loc="left")
    grid[0, 0].set_ylabel("value (arcsinh scale)")
    grid[1, 0].set_ylabel("magnitude, zeros left out")
    fig.supxlabel(r"noise at privacy parameter $\varepsilon$, and the weights it hides")
    fig.suptitle(spec["title"], x=0.01, ha="left")
    return fig
