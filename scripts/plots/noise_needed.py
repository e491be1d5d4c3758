"""Figures of the noise that accounting methods need, and of released programs' guarantees."""

import math

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
    "repaired": ("v", "#009E73"),
}
LEGEND = {
    "claimed": "claimed",
    "audited": "audited: at least, from releases alone",
    "proven": "proven (at the edge: no finite one)",
    "repaired": "audited of the repaired form",
}


@figure(ANALYSIS)
def released_code(experiment, spec, path):
    """Claimed, audited and proven epsilon of each case, on a logarithmic axis."""
    import pandas as pd
    from matplotlib.lines import Line2D

    frame = pd.read_csv(path)
    epsilons = {key: frame[f"epsilon_{key}"].to_numpy(float) for key in MARKS}
    finite = np.concatenate([values[np.isfinite(values)] for values in epsilons.values()])
    low, high = 10.0 ** math.floor(math.log10(finite[finite > 0].min())), 3 * finite.max()
    fig, axes = style.figure(9.2, 1.4 + 0.3 * len(frame))
    rows = np.arange(len(frame))[::-1]
    edge = np.where(np.isfinite(epsilons["proven"]), epsilons["proven"], high)
    axes.hlines(rows, epsilons["claimed"], edge, color="#C4C4C4", linewidth=1.5, zorder=1)
    for key, (marker, colour) in MARKS.items():
        values = np.clip(epsilons[key], low, high)
        none = ~np.isfinite(epsilons[key])
        axes.scatter(values[~none], rows[~none], 34, colour, marker, zorder=3, clip_on=False)
        axes.scatter(values[none], rows[none], 60, colour, ">", zorder=3, clip_on=False)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    names = [
        f"{case}, {claimed:g}"
        for case, claimed in zip(frame["case"], epsilons["claimed"], strict=True)
    ]
    axes.set_yticks(rows, names)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel(rf"$\varepsilon$ (at {low:g}: that or less)")
    axes.set_title(spec["title"], loc="left")
    handles = [
        Line2D([], [], marker=marker, color=colour, linestyle="", label=LEGEND[key], markersize=6)
        for key, (marker, colour) in MARKS.items()
    ]
    fig.legend(handles=handles, loc="outside lower left", ncols=2)
    return fig
