"""Figures of the coverage and width of private intervals."""

import numpy as np

from plots import style
from plots.relations import Curves, Scales, relation
from study.configuration.inputs import ANALYSIS
from study.configuration.kinds import figure
from study.configuration.options import Options

LEAST = 0.9  # the axis of coverage of designs ends here; arrows stand for less
ALWAYS = 0.9995  # coverage that is 1.00 in print
WORDS = {  # of designs whose names say too little
    "balls": "normal rows in a ball",
    "many_levels": "a category of many levels",
    "strong": "strong effects",
    "imbalanced_rare": "imbalanced, a rare level",
    "dominated": "dominated columns",
    "dominating": "a dominating column",
    "collinear_few": "collinear, few columns",
    "many": "many columns",
    "weak": "weak effects",
    "yes_no": "yes-no columns",
    "dominating_one": "one dominating column",
    "dominated_six": "dominated, six columns",
    "collinear_near": "nearly collinear",
    "three_way": "one column about a sum of two",
    "imbalanced_few": "imbalanced, few columns",
    "strong_few": "strong effects, few columns",
    "skewed_few": "skewed, few columns",
    "many_weak": "many weak effects",
    "plain_five": "plain, five columns",
}
FEW = 40  # minimum number of intervals for an estimate of coverage
# Red ignores the noise, blue is aware of it. method: (name, colour, marker, line)
LOOKS = {
    "without_privacy": ("without privacy", "#000000", "", "--"),
    "noise_aware": ("noise-aware", "#0072B2", "s", "-"),
    "noise_aware_robust": ("noise-aware, slopes released too", "#0072B2", "^", "--"),
    "noise_aware_last": ("noise-aware, last step alone", "#56B4E9", "D", "-"),
    "biased": ("pull of ridge or start not undone", "#E69F00", "v", "-"),
    "naive": ("noise ignored", "#D55E00", "X", "-"),
}


class Coverage(Options):
    show: str = "coverage"


@figure(ANALYSIS, Coverage)
def coverage(experiment, spec, path):
    """Coverage, or width relative to the non-private interval, against training rows, per epsilon.

    Lines show the median over coefficients, and bands their range. Only printed intervals are counted.
    """
    import pandas as pd

    frame = pd.read_csv(path)
    frame = frame[frame["printed"] != 0]
    wide = spec.options["show"] == "width"
    y = "width_ratio" if wide else "coverage"
    values = frame.groupby(["epsilon", "method", "train_size"])[y]
    ends = {"low": values.min(), y: values.median(), "high": values.max()}
    frame = pd.DataFrame(ends).reset_index()
    plain = frame[frame["method"] == "without_privacy"]
    names = {e: rf"$\varepsilon$ = {e:g}" for e in sorted(set(frame["epsilon"]) - {float("inf")})}
    frame = pd.concat(
        [frame[frame["method"] != "without_privacy"], *(plain.assign(epsilon=e) for e in names)]
    )
    frame = frame.assign(curve=frame["method"], panel=frame["epsilon"].map(names))
    looks = {
        name: style.look(*look) for name, look in LOOKS.items() if name in set(frame["method"])
    }
    fig = relation(
        spec,
        frame,
        looks,
        "train_size",
        Curves(y, band=("low", "high")),
        Scales(
            ("training rows", "width / width without privacy" if wide else "coverage"),
            log="xy" if wide else "x",
            bottom=None,
            shared=True,
        ),
    )
    for axes in fig.axes:
        axes.axhline(1 if wide else 0.95, color="#555555", linestyle=(0, (1, 1.5)), linewidth=1)
    return fig


@figure(ANALYSIS)
def coverage_designs(experiment, spec, path):
    """Coverage of every coefficient of every design, one panel per epsilon and one row per design.

    Full points are for printed intervals, hollow ones for others. A point's size shows its share of all
    intervals. Points based on fewer than 40 intervals are left out. The rule for printing intervals was
    chosen on the designs above the line, and tested on those below it. Panels say how many points are at
    1.00; if they are more than half of all, the title says that intervals are often too wide.
    """
    import pandas as pd

    frame = pd.read_csv(path)
    frame = frame[frame["method"] == "noise_aware"]
    designs, epsilons = list(frame["design"].unique()), sorted(frame["epsilon"].unique())
    chosen = frame.loc[frame["half"] == "chosen", "design"].nunique()
    frame = frame[frame["intervals"] >= FEW]
    always = frame["coverage"] > ALWAYS
    fig, grid = style.figure(
        3.4 * len(epsilons) + 2.4, 0.22 * len(designs) + 1.5, ncols=len(epsilons), sharey=True
    )
    colour = LOOKS["noise_aware"][1]
    beyond = False
    for axes, epsilon in zip(np.atleast_1d(grid), epsilons, strict=True):
        part = frame[frame["epsilon"] == epsilon]
        places = part["design"].map(designs.index) + (part["coefficient"] - 4) / 24
        for flag, face, label in ((0, "none", "not printed"), (1, colour, "printed")):
            own = (part["printed"] == flag) & (part["coverage"] >= LEAST)
            size = 6 + 18 * part["share"][own]
            axes.scatter(
                part["coverage"][own],
                places[own],
                size,
                facecolors=face,
                edgecolors=colour,
                linewidths=0.7,
                label=label,
                clip_on=False,
                zorder=3,
            )
        axes.axvline(0.95, color="#555555", linestyle=(0, (1, 1.5)), linewidth=1)
        if 0 < chosen < len(designs):
            axes.axhline(chosen - 0.5, color="#555555", linewidth=0.8)
        low = part["coverage"] < LEAST
        beyond |= low.any()
        look = {"color": colour, "linestyle": "", "markersize": 10, "clip_on": False}
        if low.any():
            axes.plot(np.full(low.sum(), LEAST), places[low], marker=r"$\leftarrow$", **look)
        said = f"{always[part.index].sum()} of {len(part)} at 1.00"
        style.title(axes, rf"$\varepsilon$ = {epsilon:g}: {said}", fontsize="medium")
        axes.set(xlabel="coverage", xlim=(LEAST, 1))
        axes.set_yticks(
            range(len(designs)), [WORDS.get(name, name.replace("_", " ")) for name in designs]
        )
        axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    style.heading(fig, spec.title + (": often too wide" if always.mean() > 0.5 else ""))
    note = "a point is a coefficient; the larger, the more of its intervals"
    note += f"; arrows: below {LEAST:g}" if beyond else ""
    look = {"title": note, "title_fontsize": "small"}
    fig.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, **look)
    return fig
