"""Draws the cost of each way of tuning, at one total epsilon."""

import numpy as np

from plots import style
from study.configuration.inputs import DRAWS
from study.configuration.kinds import figure
from study.jobs import paired
from tables.tuned_values import Price

LEAST = 1e-4  # the axis ends here at the latest; arrows stand for smaller excesses
LOOKS = (("#0072B2", "o", "-"), ("#D55E00", "D", "-"), ("#009E73", "^", "-"), ("#777777", "X", ":"))


@figure(DRAWS, Price)
def price_of_tuning(experiment, spec, draws):
    """Mean excess over the baseline with 95 % bars over folds, against epsilon, one panel per mechanism.

    options["panels"]: a panel's title -> its methods, one per way of tuning, in the order of
    options["ways"]. options["metric"]: a metric of `dp.metrics` for which smaller is better.
    options["baseline"]: the non-private method.
    """
    from matplotlib.ticker import NullLocator

    options = spec.options
    means = paired.fold_means(draws, options["metric"])
    frame = paired.differences(means, options["baseline"])
    panels = {
        title: [(k, method) for k, method in enumerate(methods) if method in set(frame["method"])]
        for title, methods in options["panels"].items()
    }
    panels = {title: methods for title, methods in panels.items() if len(methods) > 1}
    fig, grid = style.figure(
        0.6 + 4.2 * len(panels), 4.4, ncols=len(panels), sharey=True, squeeze=False
    )
    points, least = [], np.inf
    for axes, (title, methods) in zip(grid[0], panels.items(), strict=True):
        for place, method in methods:
            rows = frame[frame["method"] == method].sort_values("epsilon")
            # positive, for a logarithmic axis
            y, low, high = (rows[name].clip(lower=LEAST / 10) for name in ("mean", "low", "high"))
            look = style.look(options["ways"][place], *LOOKS[place])
            # Shift points sideways, so bars do not overlap.
            x = rows["epsilon"] * 1.06 ** (place - 1.5)
            axes.errorbar(x, y, yerr=(y - low, high - y), capsize=2, elinewidth=1, **look)
            least = min(least, y.min() / 2)
            points.append((axes, x, y, look["color"]))
        style.title(axes, title, fontsize="medium")
        axes.set(xscale="log", yscale="log", xlabel=r"total $\varepsilon$")
        axes.set_xticks(np.sort(frame["epsilon"].unique()))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_locator(NullLocator())
    grid[0, 0].set_ylabel(f"excess {style.TITLES[options['metric']]}")
    grid[0, 0].set_ylim(bottom=max(least, LEAST))
    style.log_ticks(grid[0, 0].yaxis)
    cut = [style.arrows(*point) for point in points]
    handles, labels = grid[0, 0].get_legend_handles_labels()
    title = "settings (arrows: beyond the axis)" if any(cut) else "settings"
    look = {"fontsize": "small", "title": title, "title_fontsize": "small", "alignment": "left"}
    fig.legend(handles, labels, loc="outside lower left", ncols=2, **look)
    style.heading(fig, spec.title)
    return fig
