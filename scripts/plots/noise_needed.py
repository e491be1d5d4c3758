"""Figures of noise, by accounting method and by law, and of released programs' guarantees."""

import numpy as np

from plots import style
from plots.relations import Curves, Scales, relation
from study.configuration.inputs import ANALYSIS
from study.configuration.kinds import figure

CASES = {
    "adassp": "AdaSSP: 3 releases",
    "boosted": "boosted AdaSSP: 12 releases",
    "sketch": "Hessian mixing: its sketches",
}
NAMES = {
    "split": "epsilon and delta in equal parts",
    "zcdp": "zero-concentrated DP",
    "renyi": "Rényi DP",
    "gdp": "Gaussian DP (of sketches: approximate)",
    "exact": "exact",
}


@figure(ANALYSIS)
def accounting(experiment, spec, path):
    """Noise relative to exact accounting against epsilon, one panel per mechanism."""
    import pandas as pd

    frame = pd.read_csv(path)
    frame = frame.assign(curve=frame["accounting"], panel=frame["case"].map(CASES))
    looks = dict(zip(NAMES, style.ordered(NAMES.values()).values(), strict=True))
    looks["exact"] |= {"color": "#000000", "marker": "", "linestyle": "--"}
    labels = (r"privacy parameter $\varepsilon$", "noise / noise by exact accounting")
    scales = Scales(labels, log="x", bottom=None, own=True)
    return relation(spec, frame, looks, "epsilon", Curves("ratio", band=None), scales)


MARKS = {
    "claimed": ("o", "#000000"),
    "audited": ("^", "#D55E00"),
    "proven": ("s", "#0072B2"),
}
LEGEND = {
    "claimed": "claimed",
    "audited": "audited: at least, from releases alone",
    "proven": "proven (at the edge: no finite one)",
}


@figure(ANALYSIS)
def released_code(experiment, spec, path):
    """Claimed, audited and proven epsilon of each case, on a logarithmic axis, and the repaired form's."""
    import pandas as pd
    from matplotlib.lines import Line2D

    frame = pd.read_csv(path)
    epsilons = {key: frame[f"epsilon_{key}"].to_numpy(float) for key in (*MARKS, "repaired")}
    finite = np.concatenate([values[np.isfinite(values)] for values in epsilons.values()])
    low, high = epsilons["claimed"].min() / 5, 3 * finite.max()
    fig, axes = style.figure(9.6, 1.6 + 0.3 * len(frame))
    rows = np.arange(len(frame))[::-1]
    edge = np.where(np.isfinite(epsilons["proven"]), epsilons["proven"], high)
    axes.hlines(rows, epsilons["claimed"], edge, color="#C4C4C4", linewidth=1.5, zorder=1)
    for key, (marker, colour) in MARKS.items():
        values = epsilons[key]
        there, none = (values >= low) & np.isfinite(values), ~np.isfinite(values)
        axes.scatter(values[there], rows[there], 34, colour, marker=marker, zorder=3)
        axes.scatter(
            np.full(none.sum(), high), rows[none], 60, colour, marker=">", zorder=3, clip_on=False
        )
        for value, row in zip(values[values < low], rows[values < low], strict=True):
            axes.text(low * 1.1, row, _found(value), color=colour, fontsize=8, va="center")
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(-0.7, len(frame) - 0.3)
    attacks = frame["case"].str.partition(": ")[2]
    axes.set_yticks(rows, frame["mechanism"].map(style.name) + ": " + attacks)
    axes.tick_params(axis="y", length=0, pad=30)  # beside the column of claims
    columns = (
        (-0.01, "claimed", "claimed", "right"),
        (1.04, "repaired", "repaired,\naudited", "left"),
    )
    for x, key, head, side in columns:
        look = {"transform": axes.get_yaxis_transform(), "fontsize": 8, "ha": side}
        axes.text(x, len(frame) - 0.3, head, va="bottom", **look)
        for value, row in zip(epsilons[key], rows, strict=True):
            axes.text(x, row, _found(value), va="center", **look)
    style.log_ticks(axes.xaxis)
    axes.set_xlabel(r"$\varepsilon$")
    style.heading(fig, spec.title)
    handles = [
        Line2D([], [], marker=marker, color=colour, linestyle="", label=LEGEND[key], markersize=6)
        for key, (marker, colour) in MARKS.items()
    ]
    fig.legend(handles=handles, loc="outside lower left", ncols=3)
    return fig


def _found(value):
    return f"{value:.2g}" if value > 0 else "nothing found"


# law -> (name, colour, marker, line style)
LAWS = {
    "gaussian": ("Gaussian", "#D55E00", "", "--"),
    "l2": ("l2 mechanism: rows in a ball", "#0072B2", "o", "-"),
    "box": ("box: numbers within bounds (pure)", "#009E73", "s", "-"),
    "hull": ("hull: one-hot blocks of {levels} (pure)", "#CC79A7", "D", "-"),
}


@figure(ANALYSIS)
def noise_laws(experiment, spec, path):
    """Noise of each law relative to Gaussian noise against columns, and data sets as marks, per epsilon.

    The analysis of the same name says what rows it is for.
    """
    import pandas as pd
    from matplotlib.lines import Line2D

    frame = pd.read_csv(path)
    levels = int(frame[(frame["law"] == "hull") & frame["dataset"].isna()]["columns"].min())
    epsilons = list(dict.fromkeys(frame["epsilon"]))
    fig, grid = style.figure(
        4.9 * len(epsilons), 5.0, ncols=len(epsilons), sharey=True, squeeze=False
    )
    for axes, epsilon in zip(grid[0], epsilons, strict=True):
        own = frame[frame["epsilon"] == epsilon]
        axes.axhline(1, color=LAWS["gaussian"][1], linestyle=LAWS["gaussian"][3])
        for law, rows in own[own["dataset"].isna()].groupby("law"):
            _, colour, _, line = LAWS[law]
            axes.plot(rows["columns"], rows["ratio"], color=colour, linestyle=line)
        for row in own[own["dataset"].notna()].to_dict("records"):
            _, colour, marker, _ = LAWS[row["law"]]
            look = {"color": colour, "marker": marker, "markersize": 6, "markeredgecolor": "white"}
            axes.plot(row["columns"], row["ratio"], **look, zorder=3)
            name = f"  {row['dataset'].replace('_', ' ')}"
            turned = 60 if row["law"] == "l2" else -60  # the other curves are below that of l2
            place = row["columns"], row["ratio"]
            axes.text(
                *place, name, rotation=turned, rotation_mode="anchor", fontsize=7, va="center"
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        style.plain_ticks(axes, [1, 3, 10, 30, 100, 300], share=0.05)
        style.log_ticks(axes.yaxis)
        axes.set_title(rf"$\varepsilon$ = {epsilon:g}", loc="left")
        axes.set_xlabel("columns")
    grid[0, 0].set_ylabel("noise / Gaussian noise, root mean square")
    style.heading(fig, spec.title)
    handles = [
        Line2D(
            [], [], color=colour, linestyle=line, marker=marker, label=name.format(levels=levels)
        )
        for name, colour, marker, line in LAWS.values()
    ]
    fig.legend(handles=handles, loc="outside lower left", ncols=2)
    return fig
