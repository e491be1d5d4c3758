"""Families of learning curves, one per epsilon, and errors against the epsilon that is proven."""

import numpy as np

from dp.mechanisms import MECHANISMS
from plots import style
from plots.relations import BAND, level, relation
from study import arguments
from study.canonical import epsilon as canonical
from study.configuration.experiment import Cell, data_path
from study.jobs.files import read_json


def epsilon_family(experiment, spec, frame):
    """Test error, or the width of its 95 % interval, against training rows: one curve per epsilon.

    Several private methods have a panel per epsilon instead. Methods without privacy are black.
    Options: log (both axes), show ("error" or "width"), from_size (training sizes below it are left out).
    """
    options = spec["options"]
    frame = frame[frame["train_size"] >= (options["from_size"] or 0)]
    frame = frame.assign(curve=frame["method"], width=frame["error_high"] - frame["error_low"])
    finite = sorted(e for e in frame["epsilon"].unique() if np.isfinite(e))
    names = {value: rf"$\varepsilon$ = {canonical(value)}" for value in finite}
    methods = {m: v for m, v in experiment.methods.items() if m in set(frame["method"])}
    behind = [m for m in methods if not methods[m]["private"]]
    looks = style.looks(methods)
    for method, line in zip(behind, ("--", ":", "-."), strict=False):
        looks[method] |= {"color": "#000000", "marker": "", "linestyle": line}
    if len(methods) > len(behind) + 1:
        frame["panel"] = frame["epsilon"].map(names)
    else:
        frame["curve"] = frame["epsilon"].map(names).fillna(frame["method"])
        looks = {method: looks[method] for method in behind} | style.ordered(names.values())
    error = options["show"] == "error"
    return relation(
        spec | {"options": options | {"beside": True}},
        frame,
        looks,
        "train_size",
        y="error_mean" if error else "width",
        band=BAND if error else None,
        labels=("training rows", "test error" if error else "width of the 95 % interval"),
        log="xy" if options["log"] else "",
        note=style.replicates(experiment, frame, interval=error),
        behind=behind,
    )


def proven_curve(experiment, spec, frame):
    """Test error against the epsilon that is proven for each method, if one is.

    A method whose proven epsilon is larger than the source's moves to the right. A method without a finite
    epsilon is not drawn but named. Methods without privacy have one value for all epsilons.
    """
    methods = {m: v for m, v in experiment.methods.items() if m in set(frame["method"])}
    looks, private = style.looks(methods), frame["method"].map(lambda m: methods[m]["private"])
    proven = [_proven(experiment, row) for row in frame[private].to_dict("records")]
    frame = frame.assign(curve=frame["method"])
    frame.loc[private, "epsilon"] = proven
    unproven = set(frame.loc[private & np.isinf(frame["epsilon"]), "method"])
    lost = [f"no finite $\\varepsilon$: {looks.pop(m)['label']}" for m in methods if m in unproven]
    size = int(frame["train_size"].max())
    return relation(
        spec | {"title": f"{spec['title']}, {size:,} training rows"},
        level(frame[~frame["method"].isin(unproven)]),
        looks,
        "epsilon",
        labels=(r"proven $\varepsilon$ (replace-one)", "test error"),
        log="x",
        note="\n".join(lost),
        behind=[m for m in looks if not methods[m]["private"]],
    )


def _proven(experiment, row):
    """The mechanism's own proven epsilon at a cell's settings, before what tuning them spent."""
    cell = Cell(*(row[key] for key in Cell._fields))
    meta = read_json(data_path(cell.dataset, "json"))
    options, settings = arguments.of_cell(experiment, cell, meta)
    mechanism = MECHANISMS[experiment.methods[cell.method]["mechanism"]]
    return arguments.guarantee(mechanism, meta, cell.train_size, options, **settings).epsilon
