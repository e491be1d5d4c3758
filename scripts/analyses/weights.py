"""Weights before the noise, and the noise, at a few training sizes."""

import numpy as np

from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from study import arguments
from study.configuration.experiment import data_path
from study.jobs.files import atomic, read_json
from study.jobs.folds import noise_axes


def weights_and_noise(experiment, spec, fits, seed, out):
    """The first simulation's weights (sizes, d) and noise (sizes, epsilons, d) of one method.

    Sizes are the smallest, middle and largest of the sweep. The noise is the mechanism's own, with the
    draws of the experiment's runs.
    """
    name = spec["options"]["mechanism"]
    cells = [c for c in fits if experiment.methods[c.method]["mechanism"] == name]
    if not cells:
        raise ValueError(f"no method of this sweep has the mechanism {name}")
    first = [c for c in cells if c[:2] == cells[0][:2]]
    sizes = sorted({c.train_size for c in first})
    sizes = sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]})
    epsilons = sorted({c.epsilon for c in first})
    fresh = experiment.values.get("draws") == "fresh"
    weights, noise = [], []
    for size in sizes:
        chosen = [c for c in first if c.train_size == size]
        with np.load(fits[chosen[0]]) as arrays:
            fit = (
                arrays["weights"][0],
                {key: arrays[key][0] for key in ("gradient_norm", "status")},
            )
        d = fit[0].shape[1] - (MECHANISMS[name].fit == "sum_intercept")
        row = []
        for cell in sorted(chosen, key=lambda c: c.epsilon):
            meta = read_json(data_path(cell.dataset, "json"))
            options, settings = arguments.of_cell(experiment, cell, meta)
            axes = experiment.name, cell.dataset, cell.method
            release = MECHANISMS[name].release(
                np.zeros((size, d)),  # the fit is given, so only the number of rows matters
                np.ones(size),
                rng=generator(seed, *axes, *noise_axes(fresh, size, cell.epsilon), 0, "noise"),
                fit=fit,
                **arguments.of_mechanism(MECHANISMS[name], meta, options, **settings),
            )
            row.append(release.weights[0] - fit[0][0, :d])
        weights.append(fit[0][0, :d])
        noise.append(row)
    with atomic(out, "wb") as handle:
        np.savez(
            handle,
            sizes=np.array(sizes),
            epsilons=np.array(epsilons),
            weights=np.array(weights),
            noise=np.array(noise),
        )
