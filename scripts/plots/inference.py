"""Coverage and width of private intervals."""

import pandas as pd

from plots import style
from plots.relations import relation

NAMES = {
    "without_privacy": "without privacy",
    "noise_aware": "noise-aware",
    "noise_aware_robust": "noise-aware, slopes released too",
    "noise_aware_last": "noise-aware, last step alone",
    "biased": "pull of ridge or start not undone",
    "naive": "noise ignored",
}


def coverage(experiment, spec, path):
    """Coverage, or width over that without privacy, against training rows, a panel per epsilon.

    The dotted line is what 95 % intervals say; bands are two standard errors of the simulation.
    """
    frame = pd.read_csv(path)
    wide = spec["options"]["show"] == "width"
    y = "width_ratio" if wide else "coverage"
    plain = frame[frame["method"] == "without_privacy"]
    names = {e: rf"$\varepsilon$ = {e:g}" for e in sorted(set(frame["epsilon"]) - {float("inf")})}
    frame = pd.concat(
        [frame[frame["method"] != "without_privacy"], *(plain.assign(epsilon=e) for e in names)]
    )
    frame = frame.assign(
        curve=frame["method"],
        panel=frame["epsilon"].map(names),
        low=frame["coverage"] - 2 * frame["coverage_error"],
        high=frame["coverage"] + 2 * frame["coverage_error"],
    )
    looks = {}
    for (name, label), look in zip(
        NAMES.items(), style.ordered(NAMES.values()).values(), strict=True
    ):
        if name in set(frame["method"]):
            looks[name] = look | {"label": label}
    looks["without_privacy"] |= {"color": "#000000", "marker": "", "linestyle": "--"}
    fig = relation(
        spec,
        frame,
        looks,
        "train_size",
        y=y,
        band=None if wide else ("low", "high"),
        labels=("training rows", "width / width without privacy" if wide else "coverage"),
        log="x",
        bottom=None,
    )
    for axes in fig.axes:
        axes.axhline(1 if wide else 0.95, color="#555555", linestyle=(0, (1, 1.5)), linewidth=1)
    return fig
