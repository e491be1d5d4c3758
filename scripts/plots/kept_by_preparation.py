"""The share of the gain that each preparation of rows keeps."""

import numpy as np

from plots import style
from study.configuration.inputs import DRAWS
from study.configuration.kinds import figure
from tables.price_of_preparation import PreparationPrice
from tables.price_of_preparation import preparation_price as shares

POINTS = 100
LIMIT = {"color": "#777777", "marker": "|", "markersize": 13, "markeredgewidth": 1.5}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
APART = 0.6  # height of a preparation's points, as a share of the distance between preparations


class Kept(PreparationPrice):
    ways: list[str]


@figure(DRAWS, Kept)
def preparation_price(experiment, spec, draws):
    """Share of the gain that each preparation keeps, with 95 % intervals over folds, per data set.

    The table of the same name has the numbers, the definition of the gain and the same options, except
    `ways`. Names of groups are titles of panels. ways: the preparations' names, in the order in which each
    group lists its data sets. A grey mark shows the non-private method's share with the same preparation.
    """
    columns, rows = shares(experiment, spec, draws)
    rows = [dict(zip(columns, row, strict=True)) for row in rows]
    groups, ways = spec.options["groups"], spec.options["ways"]
    wrong = [name for name, datasets in groups.items() if len(datasets) != len(ways)]
    if wrong:
        raise ValueError(f"{wrong[0]!r} has not as many data sets as 'ways' has names")
    series = list(dict.fromkeys((row["method"], row["epsilon"]) for row in rows))
    fig, grid = style.figure(
        3 + 3.2 * len(groups),
        1.7 + len(ways) * (0.3 + 0.1 * len(series)),
        ncols=len(groups),
        sharey=True,
        sharex=True,
        squeeze=False,
    )
    for axes, (group, datasets) in zip(grid[0], groups.items(), strict=True):
        for row in rows:
            if row["group"] == group:
                at = series.index((row["method"], row["epsilon"]))
                y = datasets.index(row["dataset"]) + _below(at, len(series))
                _draw(axes, row, y, COLOURS[at % len(COLOURS)], style.MARKERS[at])
        axes.axvline(POINTS, color="#999999", linewidth=0.8)
        axes.set_title(group, loc="left", fontsize="medium")
        axes.set_xlabel("share of the gain, %")
        axes.grid(axis="y", visible=False)
    grid[0, 0].set_yticks(range(len(ways)), ways)
    grid[0, 0].set_ylim(len(ways) - 0.5, -0.5)
    style.heading(fig, spec.title)
    looks = style.looks(experiment.methods)
    several = len({method for method, _ in series}) > 1
    for at, (method, epsilon) in enumerate(series):
        name = f"{looks[method]['label']}, " * several + rf"$\varepsilon$ = {epsilon}"
        look = {"color": COLOURS[at % len(COLOURS)], "marker": style.MARKERS[at]}
        grid[0, 0].plot([], [], linestyle="", label=name, **look)
    grid[0, 0].plot([], [], linestyle="", label="without privacy (first line: 100 %)", **LIMIT)
    note = f"mean and 95 % interval over {experiment.repetitions}"
    look = {"title": note, "title_fontsize": "small", "alignment": "left"}
    fig.legend(loc="outside lower left", ncols=2, **look)
    return fig


def _below(at, count):
    """The offset of point `at` of `count` below its preparation's line."""
    return APART * (np.arange(count) - (count - 1) / 2)[at] / max(1, count)


def _draw(axes, row, y, colour, marker):
    mean, low, high, most = (
        POINTS * row[name] for name in ("keeps", "keeps_low", "keeps_high", "can_keep")
    )
    axes.plot(most, y, **LIMIT)
    axes.plot([low, high], [y, y], color=colour, linewidth=1.5)
    axes.plot(mean, y, marker, color=colour, markersize=6)
