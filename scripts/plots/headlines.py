"""Draws the three pictures of the first screens: what to use, what holds, and what leaks.

They are seen at 900 pixels and on phones, so each is narrow, with few words.
"""

import math
import re
import textwrap

import numpy as np

from plots import style

WIDTH = 5.6  # inches; 896 pixels at the resolution of `style.save`
ENOUGH = 0.95  # share of the gain that counts as nearly free
# Shown verdict -> (colour, words). Verdicts that are not named count as the last one.
OUTCOMES = {
    "as stated": ("#009E73", "as stated"),
    "under a reading": ("#56B4E9", "under a reading"),
    "not reproduced": ("#D55E00", "not reproduced"),
    "open": ("#CCCCCC", "open"),
}
SHOWN = 15  # number of forms
FAR = 1000.0  # multiples of the claim up to which bars are drawn
HELD, RELEASED, OTHERS, FOUND = "#56B4E9", "#D55E00", "#E69F00", "#000000"


def keeps(rows, titles):
    """The percentage of what can be learnt that the best method keeps, per data set: rows x epsilon.

    rows: {dataset, size, epsilon, kept}. titles: data set -> its panel's title, in the panels' order. A
    thick line encloses what keeps ENOUGH. What can be learnt is an estimate, so shares above 1 are shown
    as 1.
    """
    panels = {name: [row for row in rows if row["dataset"] == name] for name in titles}
    panels = {name: own for name, own in panels.items() if own}
    columns = min(2, max(1, len(panels)))
    lines = math.ceil(len(panels) / columns) or 1
    fig, grid = style.figure(WIDTH, 0.7 + 2.0 * lines, nrows=lines, ncols=columns, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, (name, own) in zip(grid.flat, panels.items(), strict=False):
        _grid(axes, own)
        axes.set_title("\n".join(textwrap.wrap(titles[name], 34)), fontsize=9)
    for axes in grid[:, 0]:
        axes.set_ylabel("rows")
    for axes in list(grid.flat)[max(0, len(panels) - columns) : len(panels)]:
        axes.set_xlabel("epsilon")
    return fig


def _grid(axes, rows):
    sizes = sorted({row["size"] for row in rows})
    epsilons = sorted({row["epsilon"] for row in rows})
    kept = np.full((len(sizes), len(epsilons)), math.nan)
    for row in rows:
        kept[sizes.index(row["size"]), epsilons.index(row["epsilon"])] = row["kept"]
    axes.imshow(
        np.ma.masked_invalid(kept), vmin=0, vmax=1, cmap="Blues", origin="lower", aspect="auto"
    )
    for (y, x), value in np.ndenumerate(kept):
        if math.isnan(value):
            text = axes.text(x, y, "not tried", ha="center", va="center", fontsize=7)
            text.set_path_effects([style.halo()])
        else:
            colour = "white" if value > 0.6 else "black"
            text = f"{100 * min(max(value, 0), 1):.0f}"
            axes.text(x, y, text, ha="center", va="center", color=colour, fontsize=9)
            _border(axes, kept, y, x)
    axes.set_xticks(range(len(epsilons)), [f"{e:g}" for e in epsilons])
    axes.set_yticks(range(len(sizes)), [f"{size:,}" for size in sizes])
    axes.patch.set(hatch="///", edgecolor="#DDDDDD")  # what was not tried
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _border(axes, kept, y, x):
    """Draw the edges of a cell that keeps ENOUGH towards cells that do not."""
    if not kept[y, x] >= ENOUGH:
        return
    for dy, dx in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        j, i = y + dy, x + dx
        inside = 0 <= j < kept.shape[0] and 0 <= i < kept.shape[1]
        if inside and kept[j, i] >= ENOUGH:
            continue
        ends = (
            ([x - 0.5, x + 0.5], [y + dy / 2] * 2) if dy else ([x + dx / 2] * 2, [y - 0.5, y + 0.5])
        )
        axes.plot(*ends, color="#D55E00", linewidth=2.5, clip_on=False, solid_capstyle="round")


def holds(sources):
    """One bar per source: the shares of its results by verdict, with counts; recorded runs are hatched.

    sources: [(name, {outcome of OUTCOMES: (count in this run, count in recorded runs)})].
    """
    fig, axes = style.figure(WIDTH, 1.3 + 0.42 * len(sources))
    for y, (_, counts) in enumerate(reversed(sources)):
        total, left = sum(map(sum, counts.values())) or 1, 0.0
        for outcome, (colour, _) in OUTCOMES.items():
            for count, hatch in zip(counts.get(outcome, (0, 0)), ("", "////"), strict=True):
                if not count:
                    continue
                share = 100 * count / total
                look = {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.5}
                axes.barh(y, share, left=left, height=0.7, **look)
                if share > 5:
                    text = axes.text(
                        left + share / 2, y, f"{count:,}", ha="center", va="center", fontsize=9
                    )
                    text.set_path_effects([style.halo()])
                left += share
    names = [
        "\n".join(textwrap.wrap(f"{name} ({sum(map(sum, counts.values())):,})", 24))
        for name, counts in reversed(sources)
    ]
    axes.set_yticks(range(len(sources)), names, fontsize=9)
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the source's results")
    axes.grid(visible=False)
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=words) for colour, words in OUTCOMES.values()]
    if any(recorded for _, counts in sources for _, recorded in counts.values()):
        handles.append(
            Patch(facecolor="#EEEEEE", hatch="////", edgecolor="#888888", label="recorded run")
        )
    fig.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=9)
    return fig


def leaks(forms):
    """One bar per form: from 1 to how many times its claimed epsilon is proven; a diamond for attacks.

    forms: [{name, released: whether authors released it as a program, proven: proven over claimed epsilon,
    inf if nothing bounds it, attacked: the attack's lower bound over the claim, or None}]. The SHOWN worst
    are drawn.
    """

    def order(form):
        return (form["proven"], form["attacked"] or 0)

    shown = sorted(forms, key=order, reverse=True)[:SHOWN]
    attacked = [form["attacked"] for form in shown if form["attacked"]]
    finite = [form["proven"] for form in shown if form["proven"] < math.inf]
    # At a tiny epsilon a proof may be far beyond all others: its bar is cut, with its number beside it.
    high = min(4 * max((*attacked, *finite), default=10), max(4 * max(attacked, default=1), FAR))
    fig, axes = style.figure(WIDTH, 1.4 + 0.3 * len(shown))
    for y, form in enumerate(reversed(shown)):
        colour = RELEASED if form["released"] else OTHERS
        cut = form["proven"] > high
        axes.barh(y, (high if cut else form["proven"]) - 1, left=1, height=0.62, color=colour)
        if cut:
            said = "no bound" if form["proven"] == math.inf else f"{form['proven']:,.0f}x"
            place = axes.get_yaxis_transform()
            axes.text(1.01, y, said, va="center", fontsize=8, transform=place)
        if form["attacked"] and form["attacked"] > 1:
            axes.plot(form["attacked"], y, "D", color=FOUND, markersize=5, markeredgecolor="white")
    axes.set_xscale("log")
    axes.set_xlim(1, high)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}x")
    axes.set_yticks(
        range(len(shown)),
        ["\n".join(textwrap.wrap(_short(form), 34)) for form in reversed(shown)],
        fontsize=8,
    )
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("real over claimed epsilon")
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(color=RELEASED, label="proven, a program that authors released"),
        Patch(color=OTHERS, label="proven, a form as printed or run"),
        Line2D(
            [], [], marker="D", linestyle="", color=FOUND, label="an attack shows at least so much"
        ),
    ]
    fig.legend(handles=handles, loc="outside upper center", ncols=1, fontsize=9)
    return fig


def _short(form):
    """A form's name. Of the settings to which its verdict is confined, only those that are words stay."""
    name, _, settings = form["name"].rstrip(")").partition(" (only with ")
    words = ", ".join(each for each in settings.split(", ") if not re.search(r"\d", each))
    return f"{name} (only with {words})" if words else name
