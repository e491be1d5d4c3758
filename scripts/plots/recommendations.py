"""Draws each method's regret, the loss against the best method, over all questions."""

import math
import textwrap

from plots import style

POINTS = 100


def regret(rows):
    """Mean regret over data sets with 95 % intervals, one panel per task, the smallest at the top, in blue.

    A panel shows the experiment with the most data sets, and only methods that answer the same questions
    (data sets, sizes and epsilons). The number beside a method counts the questions in which it is
    unbeaten. Its point is full if it is unbeaten in all.

    rows: the rows of `reporting.recommendations.across` for one regime and adjacency.
    """
    panels = {}
    for task in NOUNS:
        own = [row for row in rows if row["task"] == task and row["shared_questions"] > 0]
        if own:
            most = max(own, key=lambda row: row["shared_data_sets"])["experiment"]
            panels[task] = [row for row in own if row["experiment"] == most]
    count = max(1, len(panels))
    heights = [0.9 + LINE * len(methods) for methods in panels.values()] or [1.5]
    fig, grid = style.figure(
        WIDTH, 0.2 + sum(heights), nrows=count, squeeze=False, height_ratios=heights
    )
    for axes, (task, methods) in zip(grid.flat, panels.items(), strict=False):
        methods = sorted(methods, key=lambda row: -row["shared_regret"])
        for y, row in enumerate(methods):
            mean, low, high = (POINTS * row[f"shared_regret{end}"] for end in ("", "_low", "_high"))
            colour = BEST if row is methods[-1] else style.GREY
            if not math.isnan(low):
                axes.plot([low, high], [y, y], color=colour, linewidth=2)
            count, of = row["shared_not_beaten"], row["shared_questions"]
            face = colour if count == of else "white"
            axes.plot(mean, y, "o", markersize=7, color=colour, markerfacecolor=face)
            place = axes.get_yaxis_transform()
            axes.text(1.01, y, f"{count} of {of}", va="center", transform=place)
        names = [
            "\n".join(textwrap.wrap(row["title"], NAME, break_on_hyphens=False)) for row in methods
        ]
        axes.set_yticks(range(len(methods)), names)
        axes.set_ylim(-0.6, len(methods) - 0.4)
        axes.set_xlim(-1, 1.02 * max(5, *(POINTS * _top(row) for row in methods)))
        sets = methods[0]["shared_data_sets"]
        style.title(axes, f"{NOUNS[task]}, {sets} data sets")
        place = axes.get_yaxis_transform()
        axes.text(1.01, len(methods) - 0.35, "not beaten", transform=place, color="#555555")
        axes.grid(axis="y", visible=False)
    grid[-1, 0].set_xlabel("share of the gain lost against the best, %")
    return fig


WIDTH, LINE = 6.4, 0.36  # inches: of the figure, and of a method's line
NAME = 32  # characters per line of a method's name
BEST = "#0072B2"
NOUNS = {"classes": "Learning classes", "numbers": "Learning numbers"}


def _top(row):
    high = row["shared_regret_high"]
    return row["shared_regret"] if math.isnan(high) else high
