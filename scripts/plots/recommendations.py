"""Draws each method's regret, the loss against the best method, over all questions."""

import math

from plots import style

POINTS = 100


def regret(rows):
    """Mean regret over data sets with 95 % intervals, one panel per task, the smallest at the top.

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
    height = 1.1 + max(map(len, panels.values()), default=1) * 0.28
    fig, grid = style.figure(6.2 * count, height, ncols=count, squeeze=False)
    for axes, (task, methods) in zip(grid.flat, panels.items(), strict=False):
        methods = sorted(methods, key=lambda row: -row["shared_regret"])
        for y, row in enumerate(methods):
            mean, low, high = (POINTS * row[f"shared_regret{end}"] for end in ("", "_low", "_high"))
            colour = style.LOOKS.get(row["mechanism"], ("", "#555555"))[1]
            if not math.isnan(low):
                axes.plot([low, high], [y, y], color=colour, linewidth=1.5)
            count, of = row["shared_not_beaten"], row["shared_questions"]
            face = colour if count == of else "white"
            axes.plot(mean, y, "o", markersize=6, color=colour, markerfacecolor=face)
            text = f"{count} of {of}"
            axes.text(1.01, y, text, va="center", fontsize=8, transform=axes.get_yaxis_transform())
        axes.set_yticks(range(len(methods)), [row["title"] for row in methods], fontsize=9)
        axes.set_ylim(-0.6, len(methods) - 0.4)
        axes.set_xlim(-1, 1.02 * max(5, *(POINTS * _top(row) for row in methods)))
        sets = methods[0]["shared_data_sets"]
        axes.set_title(f"{NOUNS[task]}, {sets} data sets")
        top = len(methods) - 0.45
        place = axes.get_yaxis_transform()
        axes.text(1.01, top, "not beaten", fontsize=8, transform=place, color="#555555")
        axes.set_xlabel("share of the gain lost against the best, %")
        axes.grid(axis="y", visible=False)
    return fig


NOUNS = {"classes": "Learning classes", "numbers": "Learning numbers"}


def _top(row):
    high = row["shared_regret_high"]
    return row["shared_regret"] if math.isnan(high) else high
