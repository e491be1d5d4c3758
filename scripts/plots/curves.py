"""Test error, or another metric, against the training size or epsilon, one curve per method."""

import math

import pandas as pd

from dp import metrics
from plots import style
from plots.relations import legend, level, relation
from study import published

# Axis: the options that make it logarithmic.
AXES = {"x": ("log_size", "log_epsilon"), "y": ("log_error",)}
LEAST = {"r2": -1.0}  # of a metric's axis: R^2 may be as far below 0 as one likes


def learning_curve(experiment, spec, frame):
    """Mean error with 95 % bands against the number of training rows.

    options["beside"]: the legend stands there, for curves and bands that leave no room for it.
    options["metric"]: another of `dp.metrics` than the error (r2 of targets that are numbers).
    """
    return _curves(experiment, spec, frame, "train_size", "training rows")


def epsilon_curve(experiment, spec, frame):
    """Mean error with 95 % bands against epsilon; methods without privacy as a level line.

    options["published"]: the values that the source printed, dotted lines in their methods' colours;
    where a curve crosses its line is the epsilon that the value implies.
    """
    label = r"privacy parameter $\varepsilon$ (smaller is more private)"
    return _curves(experiment, spec, level(frame), "epsilon", label)


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
    legend(fig, axes.get_legend_handles_labels()[0])
    return fig


def _curves(experiment, spec, frame, along, label):
    """Curves of all methods, and of each data set where there are several."""
    options, shown = spec["options"], set(frame["method"])
    metric = options.get("metric") or metrics.of(frame)
    mean, *band = (metric + end for end in metrics.ENDS)
    title, bottom = metrics.TITLES[metric], 0 if metrics.ALL[metric][0] == 0 else None
    if (frame[band[0]] < LEAST.get(metric, -math.inf)).any():
        bottom = LEAST[metric]
        title = f"{title} (from {bottom:g} on)"
    methods = {m: method for m, method in experiment.methods.items() if m in shown}
    datasets = frame["dataset"].unique()
    looks = {}
    for method, look in style.looks(methods).items():
        for dataset in datasets:
            name = look["label"] + (f", {dataset}" if len(datasets) > 1 else "")
            looks[f"{method}/{dataset}"] = look | {"label": name}
    printed = [
        (f"{value.method}/{value.dataset}", value.value)
        for value in published.values(experiment, options.get("published"))
        if value.dataset in datasets
        and value.method in methods
        and methods[value.method]["private"]
    ]
    return relation(
        spec,
        frame.assign(curve=frame["method"] + "/" + frame["dataset"]),
        looks,
        along,
        mean,
        band=band,
        labels=(label, title),
        bottom=bottom,
        log="".join(axis for axis, of in AXES.items() if any(options.get(name) for name in of)),
        note=style.replicates(experiment, frame) + ",\n95 % interval over them",
        behind=[name for name in looks if not methods[name.split("/")[0]]["private"]],
        printed=printed,
        beside=options.get("beside", False),
    )
