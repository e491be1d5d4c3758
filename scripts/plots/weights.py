"""Weights before the noise and the noise on them (E18 figure 4.17, table A.1)."""

import numpy as np

from plots import style
from study import facts
from study.canonical import epsilon


def weights_and_noise(experiment, spec, path):
    """Box plots on an arcsinh scale, and of the magnitudes, at three training sizes.

    Whiskers extend 1.5 times the box on the scale of the figure.
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


def table_a_1(experiment, spec, draws):
    """Table A.1 as curves: mean and variance of the weights, and variance of the noise per epsilon, against
    training rows; crosses are what is printed, at the sizes that ran."""
    printed = facts.read(experiment.source).values["tables"]["table_a_1"]
    draws = draws[draws["noise_variance"].notna()]
    sizes, epsilons = (sorted(draws[name].unique()) for name in ("train_size", "epsilon"))
    fig, grid = style.figure(11.4, 3.9, ncols=3)
    curves = [(name, name, "#000000", "") for name in ("weights_mean", "weights_variance")]
    of_noise = [
        ("noise_variance", f"noise_variance_eps_{epsilon(e)}", colour, epsilon(e))
        for e, colour in zip(epsilons, style.shades(len(epsilons)), strict=True)
    ]
    crosses = [size for size in sizes if size in printed]
    for column, name, colour, at in [*curves, *of_noise]:
        axes = grid[["weights_mean", "weights_variance"].index(column) if not at else 2]
        rows = draws[draws["epsilon"].map(epsilon) == at] if at else draws
        means = rows.groupby("train_size")[column].mean().reindex(sizes)
        axes.plot(sizes, means, color=colour, linewidth=1.2, label=rf"$\varepsilon$ = {at}")
        values = [printed[size].get(name, np.nan) for size in crosses]
        axes.plot(crosses, values, color=colour, linestyle="", marker="x", markersize=4.5)
    titles = ("mean of the weights", "variance of the weights", "variance of the noise")
    for axes, title in zip(grid, titles, strict=True):
        axes.set_title(title, loc="left", fontsize="medium")
        axes.set_xlabel("training rows")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    grid[2].set_yscale("log")
    grid[2].legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    told = f", x printed at {len(crosses)} sizes" if crosses else ""
    simulations = draws.groupby(["dataset", "train_size"])["fold"].nunique().min()
    fig.suptitle(f"{spec['title']}, mean of {simulations} simulations{told}", x=0.01, ha="left")
    return fig
