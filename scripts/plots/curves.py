"""Test error, or another metric, against the training size, or against epsilon, one curve per method."""

import numpy as np
import pandas as pd

from dp import metrics
from plots import style
from study import published

LEAST = {"r2": -1.0}  # of a metric's axis
WITHIN = 5  # entries of a legend that find room among the curves; a longer one stands beside them


def learning_curve(experiment, spec, frame):
    """Mean error with 95 % bands against the number of training rows.

    options["metric"]: another of `dp.metrics` than the error (r2 of targets that are numbers).
    options["beside"]: the legend stands there, for curves and bands that leave no room for it.
    """
    axes, fig = _curves(experiment, spec, frame, "train_size")
    axes.set_xlabel("training rows")
    if spec["options"]["log_size"]:
        axes.set_xscale("log")
        style.plain_ticks(axes, frame["train_size"])
    else:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return fig


def epsilon_curve(experiment, spec, frame):
    """Mean error with 95 % bands against epsilon; methods without privacy as a level line.

    options["metric"]: as of `learning_curve`.
    options["published"]: the values that the source printed, dotted lines in their methods' colours;
    where a curve crosses its line is the epsilon that the value implies.
    """
    axes, fig = _curves(experiment, spec, frame, "epsilon")
    axes.set_xlabel(r"privacy parameter $\varepsilon$ (smaller is more private)")
    if spec["options"]["log_epsilon"]:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        axes.set_xlim(left=0)
    return fig


def tuning_curve(experiment, spec, paths):
    """Non-private cross-validation error against lambda, with the ties and the published value."""
    fig, axes = style.figure()
    for (dataset, path), (colour, marker) in zip(
        paths.items(), zip(style.SPARE, style.SPARE_MARKERS, strict=True), strict=False
    ):
        tuning = pd.read_csv(path)
        best = tuning[tuning["best"] == 1]
        look = {"color": colour, "marker": marker}
        axes.plot(tuning["lambda"], tuning["error_mean"], label=dataset, alpha=0.7, **look)
        axes.plot(
            best["lambda"],
            best["error_mean"],
            linestyle="",
            markersize=9,
            markerfacecolor="none",
            label=f"{dataset}, best ({len(best)} tied)" if len(best) > 1 else f"{dataset}, best",
            **look,
        )
    if experiment.values.get("lambda_published"):
        axes.axvline(
            experiment.lambda_published, color="#555555", linestyle=":", label="published value"
        )
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(r"regularisation $\lambda$")
    axes.set_ylabel("cross-validation error, without privacy")
    axes.set_title(spec["title"], loc="left")
    _legend(fig, axes)
    return fig


def _legend(fig, axes, beside=False, **look):
    """Among the curves, or beside them where that is asked for or it is long."""
    handles, labels = axes.get_legend_handles_labels()
    if beside or len(labels) > WITHIN:
        fig.set_size_inches(9.2, 4.2)
        fig.legend(handles, labels, loc="outside right upper", **look)
    else:
        axes.legend(**look)


def _curves(experiment, spec, frame, along):
    fig, axes = style.figure()
    metric = spec["options"].get("metric") or metrics.of(frame)
    columns = (along, *(metric + end for end in metrics.ENDS))
    # R^2 may be as far below 0 as one likes, which would leave no room for what is above
    least = LEAST.get(metric, -np.inf)
    cut = bool((frame[metric + "_low"] < least).any())
    datasets = frame["dataset"].unique()
    shown = set(frame["method"])
    looks = style.looks({m: method for m, method in experiment.methods.items() if m in shown})
    private = frame.loc[np.isfinite(frame["epsilon"]), "epsilon"]
    for method, look in looks.items():
        for dataset in datasets:
            rows = frame[(frame["method"] == method) & (frame["dataset"] == dataset)]
            rows = rows.sort_values(along)
            if rows.empty:
                continue
            x, y, low, high = (rows[column].to_numpy() for column in columns)
            if along == "epsilon" and np.isinf(x).all() and len(private):
                # A method without privacy has one value, whatever epsilon is.
                x = np.array([private.min(), private.max()])
                y, low, high = (np.repeat(values[:1], 2) for values in (y, low, high))
            name = look["label"] + (f", {dataset}" if len(datasets) > 1 else "")
            axes.plot(x, y, clip_on=cut, **{**look, "label": name})
            axes.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
    _printed(experiment, spec, axes, looks, datasets)
    axes.set_ylabel(metrics.TITLES[metric])
    if spec["options"]["log_error"]:
        style.log_errors(axes, frame[metric + "_mean"])
    elif cut:
        axes.set_ylim(bottom=least)
        axes.set_ylabel(f"{metrics.TITLES[metric]} (from {least:g} on)")
    elif metrics.ALL[metric][0] == 0:
        axes.set_ylim(bottom=0)
    axes.set_title(spec["title"], loc="left")
    title = style.replicates(experiment, frame) + ",\n95 % interval over them"
    beside = spec["options"].get("beside", False)
    _legend(fig, axes, beside, title=title, alignment="left", title_fontsize="small")
    return axes, fig


def _printed(experiment, spec, axes, looks, datasets):
    """The source's values as level lines, for private methods: one's own curve crosses its own line."""
    lines = [
        (value.method, value.value)
        for value in published.values(experiment, spec["options"].get("published"))
        if value.dataset in datasets
        and value.method in looks
        and experiment.methods[value.method]["private"]
    ]
    for method, value in lines:
        axes.axhline(value, color=looks[method]["color"], linestyle=(0, (1, 1.5)), linewidth=1.2)
    if lines:
        axes.plot([], [], color="#555555", linestyle=(0, (1, 1.5)), label="value published")
