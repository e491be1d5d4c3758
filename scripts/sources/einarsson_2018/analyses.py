"""Analyses for Einarsson (2018)."""

import math
from argparse import Namespace
from pathlib import Path

import numpy as np

from dp import losses
from dp.descents import stochastic
from dp.mechanisms import MECHANISMS
from dp.noise import l2_laplace
from dp.seeds import generator
from study import arguments
from study.configuration.experiment import data_path
from study.configuration.inputs import DATA, FITS, TRAINED
from study.configuration.kinds import analysis
from study.configuration.options import Mechanism, Options
from study.data.components import distances_to_class_mean, principal_components
from study.data.prepared import Prepared
from study.jobs import folds
from study.jobs.files import atomic, read_json, write_csv
from study.jobs.folds import noise_axes

TRACE = ("dataset", "epsilon", "epoch", "step", "objective", "gradient_norm", "error")


class SgdTrace(Options):
    epsilons: list = [0.1, 1, 10, math.inf]
    simulations: int = 8
    points: int = 40
    lambda_: float = 0.001
    batch: int = 50
    epochs: int = 1
    dimensions: int = 50
    schedule: str = "inverse_sqrt"
    rate: float = 1.0
    loss: str = "logistic"


@analysis(DATA, SgdTrace)
def sgd_trace(experiment, spec, paths, seed, out):
    """Objective, gradient norm and training error along the iterations: medians over simulations.

    Every simulation uses all training rows, with its own order of rows, projection and noise.
    Options are those of `dp_sgd`, epsilons (each pass spends epsilon/epochs; inf means no noise),
    simulations, and points (checkpoints).
    """
    options = spec.options
    loss = losses.get(options["loss"])
    rows = []
    for dataset, path in paths.items():
        X, y = Prepared(path).floats()
        n, d = X.shape
        k = min(options["dimensions"] or d, d)
        axes = (experiment.name, dataset, "descent trace")
        plan = stochastic.batch_plan(n, options["batch"])
        steps = len(plan[0]) * options["epochs"]
        checkpoints = np.unique(np.geomspace(1, steps, options["points"]).round().astype(int))
        lam = options["lambda"]
        all_traces = {epsilon: [] for epsilon in options["epsilons"]}
        for simulation in range(options["simulations"]):
            matrix = generator(seed, *axes, simulation, "projection").standard_normal((d, k))
            Z = np.column_stack([X @ matrix / math.sqrt(k), np.ones(n)])
            if not loss.residual:
                Z *= y[:, None]
            for epsilon, traces in all_traces.items():
                order = generator(seed, *axes, simulation, "order")
                noise = generator(seed, *axes, simulation, "noise")
                passes = _passes(order, noise, n, k + 1, len(plan[0]), epsilon, options)
                _, iterates = stochastic.descend(
                    Z[None],
                    [0],
                    [lam],
                    passes,
                    plan,
                    targets=y[None] if loss.residual else None,
                    loss=loss,
                    schedule=options["schedule"],
                    rate=options["rate"],
                    checkpoints=checkpoints.tolist(),
                )
                traces.append(_progress(Z, y, iterates[:, 0, 0], lam, loss))
        for epsilon, traces in all_traces.items():
            middle = np.median(traces, axis=0)
            rows += [
                (dataset, epsilon, step / len(plan[0]), step, *values)
                for step, values in zip(checkpoints, middle, strict=True)
            ]
    write_csv(out, TRACE, rows)


def _passes(order, noise, n, width, steps, epsilon, options):
    scale = 2 * options["epochs"] / epsilon
    for _ in range(options["epochs"]):
        yield (
            order.permutation(n)[None],
            (l2_laplace(width, scale, steps, noise)[None] if scale else None),
        )


def _progress(Z, y, weights, lam, loss):
    """(objective, gradient norm, training error) at each of the weights. Z: the rows given to `descend`."""
    scores = Z @ weights.T
    margins = scores - y[:, None] if loss.residual else scores
    objective = loss.value(margins).mean(axis=0) + lam / 2 * (weights**2).sum(axis=1)
    gradient = loss.derivative(margins).T @ Z / len(Z) + lam * weights
    wrong = (scores * y[:, None] if loss.residual else scores) <= 0
    return np.column_stack([objective, np.linalg.norm(gradient, axis=1), wrong.mean(axis=0)])


COUNTS = ("dataset", "part", "class", "rows")


@analysis(DATA)
def class_counts(experiment, spec, paths, seed, out):
    """Rows of every class in the training part and, if there is one, in the official test part."""
    rows = []
    for name, path in paths.items():
        meta = read_json(Path(path).with_suffix(".json"))
        for part, key in (("train", "class_counts"), ("test", "test_class_counts")):
            for label, label_name in meta["labels"].items():
                if meta[key]:
                    rows.append((name, part, label_name, meta[key].get(label, 0)))
    write_csv(out, COUNTS, rows)


@analysis(DATA)
def class_distances(experiment, spec, paths, seed, out):
    """Median and largest Euclidean distance of every class's training rows to their mean. Ranks of the
    classes by either distance begin at 1 for the smallest.
    """
    rows = []
    for name, path in paths.items():
        data, meta = Prepared(path), read_json(Path(path).with_suffix(".json"))
        distances = distances_to_class_mean(data.X, data.y)
        names = {int(label): label_name for label, label_name in meta["labels"].items()}
        statistics = np.array(
            [[f(distances[data.y == k]) for f in (np.median, np.max)] for k in names]
        )
        ranks = statistics.argsort(axis=0).argsort(axis=0) + 1
        rows += (
            (name, label_name, *values, *map(int, places))
            for label_name, values, places in zip(names.values(), statistics, ranks, strict=True)
        )
    write_csv(out, ("dataset", "class", "median", "largest", "rank_median", "rank_largest"), rows)


VARIANCE = ("dataset", "title", "components", "explained")


@analysis(DATA)
def explained_variance(experiment, spec, paths, seed, out):
    """Share of the variance that the first k components explain together, for every k."""
    rows = []
    for name, path in paths.items():
        title = read_json(Path(path).with_suffix(".json"))["title"]
        explained = principal_components(Prepared(path).X, standardise=True).explained.cumsum()
        rows += ((name, title, k, share) for k, share in enumerate(explained, 1))
    write_csv(out, VARIANCE, rows)


@analysis(DATA, suffix="npz")
def first_components(experiment, spec, paths, seed, out):
    """Every training row's first two component scores, with labels, names and explained variance."""
    arrays = {"datasets": np.array(list(paths))}
    for name, path in paths.items():
        prepared, meta = Prepared(path), read_json(Path(path).with_suffix(".json"))
        components = principal_components(prepared.X, standardise=True)
        arrays |= {
            f"{name}/title": np.array(meta["title"]),
            f"{name}/scores": components.scores(prepared.X, 2).astype(np.float32),
            f"{name}/y": prepared.y,
            f"{name}/labels": np.array([int(label) for label in meta["labels"]]),
            f"{name}/names": np.array(list(meta["labels"].values())),
            f"{name}/explained": components.explained,
        }
    with atomic(out, "wb") as handle:
        np.savez(handle, **arrays)


@analysis(TRAINED, suffix="npz")
def lasso_pixels(experiment, spec, inputs, seed, out):
    """Weights (methods, d) of the first simulation at the sweep's largest size, and two examples.

    If a method standardises pixels, the weights are for standardised pixels. Weights for original pixels
    would be largest at the border, where almost no image has ink and pixels vary least.
    """
    cells = experiment.entry_cells(spec)
    largest = max(cell.train_size for cell in cells)
    cells = [cell for cell in cells if cell.train_size == largest]
    first = cells[0]
    split = Namespace(
        data=inputs["data", first.dataset],
        experiment=experiment.axis(),
        dataset=first.dataset,
        folds=experiment.folds,
        simulations=experiment.simulations,
        train_size=largest,
        seed=seed,
    )
    (X, y), _ = next(folds.training_folds(split))
    all_rows = next(folds.all_training_rows(split))
    meta = read_json(inputs["meta", first.dataset])
    weights = []
    for cell in cells:
        mechanism = MECHANISMS[experiment.methods[cell.method].mechanism]
        options, settings = arguments.of_cell(experiment, cell, meta)
        keywords = arguments.of_mechanism(mechanism, meta, options, **settings)
        release = mechanism.release(X, y, all_rows=all_rows, **keywords)
        weights.append(release.weights[0] * (all_rows.std(axis=0) if standardised(options) else 1))
    with atomic(out, "wb") as handle:
        np.savez(
            handle,
            methods=np.array([cell.method for cell in cells]),
            weights=np.array(weights),
            constant=X.min(axis=0) == X.max(axis=0),
            examples=np.array([X[np.flatnonzero(y == label)[0]] for label in (-1, 1)]),
            train_size=largest,
        )


def standardised(options):
    """Whether a method with these options learns weights of standardised columns."""
    return options.get("preparation", "standardise") == "standardise"


class WeightsAndNoise(Options):
    mechanism: Mechanism = "laplace_coordinates_sum"


@analysis(FITS, WeightsAndNoise, suffix="npz")
def weights_and_noise(experiment, spec, fits, seed, out):
    """The first simulation's weights (sizes, d) and noise (sizes, epsilons, d) of one method.

    Sizes are the smallest, middle and largest of the sweep. The noise is that of the experiment's runs.
    """
    name = spec.options["mechanism"]
    cells = [c for c in fits if experiment.methods[c.method].mechanism == name]
    if not cells:
        raise ValueError(f"no method of this sweep has the mechanism {name}")
    first = [c for c in cells if c[:2] == cells[0][:2]]
    sizes = sorted({c.train_size for c in first})
    sizes = sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]})
    epsilons = sorted({c.epsilon for c in first})
    fresh = experiment.draws == "fresh"
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
            axes = experiment.axis(), cell.dataset, cell.method
            release = MECHANISMS[name].release(
                np.zeros((size, d)),  # with `fit` given, only the number of these rows matters
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
