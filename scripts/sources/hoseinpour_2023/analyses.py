"""Gradient descent in detail: losses of iterates, weights, and the effect of single points."""

import numpy as np

from dp.descents import full_batch
from dp.mechanisms import MECHANISMS
from dp.seeds import generator
from study import arguments
from study.configuration.experiment import data_path
from study.configuration.inputs import DATA
from study.configuration.kinds import analysis
from study.configuration.options import Options
from study.data.prepared import Prepared
from study.jobs.files import atomic, read_json, write_csv

LEVELS = (0.025, 0.975)


class LossTraces(Options):
    epsilons: list = [1]
    train_size: int = 400
    restarts: int = 100


@analysis(DATA, LossTraces, describes_data=True)
def loss_traces(experiment, spec, paths, seed, out):
    """Mean training loss of every iterate, and the central 95 % of the restarts, as a CSV."""
    options, dataset, meta, data = _read(experiment, spec, paths)
    rows = []
    for method, epsilon in _pairs(experiment, spec, options["epsilons"]):
        release = _release(
            experiment, method, dataset, meta, data, seed, epsilon, options, options["restarts"]
        )
        trace = release.info["loss"]
        low, high = np.quantile(trace, LEVELS, axis=0)
        rows += zip(
            *([method] * trace.shape[1], [epsilon] * trace.shape[1], range(trace.shape[1])),
            *(trace.mean(axis=0), low, high),
            strict=True,
        )
    write_csv(out, ("method", "epsilon", "iteration", "loss_mean", "loss_low", "loss_high"), rows)


class DescentBoundaries(Options):
    epsilons: list = [1]
    train_size: int = 400


@analysis(DATA, DescentBoundaries, suffix="npz", describes_data=True)
def descent_boundaries(experiment, spec, paths, seed, out):
    """The training rows, and one released weight array per method and epsilon (npz).

    weights: (methods, epsilons, d, K). Every release is the first draw, whatever its result.
    """
    options, dataset, meta, data = _read(experiment, spec, paths)
    X, y = _rows(data, options)
    weights = [
        [
            _release(experiment, m, dataset, meta, data, seed, epsilon, options, 1).weights[0]
            for epsilon in options["epsilons"]
        ]
        for m in spec.methods
    ]
    with atomic(out, "wb") as handle:
        np.savez(
            handle,
            X=X,
            y=y,
            methods=np.array(spec.methods),
            epsilons=np.array(options["epsilons"], dtype=float),
            weights=np.array(weights),
            classes=np.array(list(meta["labels"].values())),
        )


class SinglePoints(Options):
    train_size: int = 40
    iterations: int = 2000


@analysis(DATA, SinglePoints, suffix="npz", describes_data=True)
def single_points(experiment, spec, paths, seed, out):
    """Non-private descent on a few points, and once more per point with that point moved (npz).

    A moved point keeps its label, but its two features change sign. moved: the weights after each move,
    (n, d, K).
    """
    options, _, meta, data = _read(experiment, spec, paths)
    X, y = _rows(data, options)
    (method,) = spec.methods
    chosen = experiment.methods[method].options
    settings = {
        "loss": chosen["loss"],
        "classes": len(meta["labels"]),
        "learning_rate": chosen["learning_rate"],
        "iterations": options["iterations"],
    }
    full = full_batch.descend(X, y, **settings)[0][0]
    moved = []
    for row in range(len(X)):
        neighbour = X.copy()
        neighbour[row, :2] *= -1
        moved.append(full_batch.descend(neighbour, y, **settings)[0][0])
    with atomic(out, "wb") as handle:
        np.savez(
            handle,
            X=X,
            y=y,
            full=full,
            moved=np.array(moved),
            classes=np.array(list(meta["labels"].values())),
        )


def _read(experiment, spec, paths):
    ((dataset, path),) = paths.items()
    return spec.options, dataset, read_json(data_path(dataset, "json")), Prepared(path)


def _rows(data, options):
    return data.floats(np.arange(options["train_size"]))


def _pairs(experiment, spec, epsilons):
    for method in spec.methods:
        for epsilon in epsilons if experiment.methods[method].private else [np.inf]:
            yield method, epsilon


def _release(experiment, label, dataset, meta, data, seed, epsilon, options, restarts):
    method = experiment.methods[label]
    mechanism = MECHANISMS[method.mechanism]
    cell = {"epsilon": epsilon, "delta": experiment.delta(label, options["train_size"])}
    taken = method.options | ({"traced": True} if "traced" in mechanism.options else {})
    # The seed does not depend on the method, so the noise is the same with and without pre-training.
    rng = generator(seed, experiment.name, dataset, "descent")
    return mechanism.release(
        *_rows(data, options),
        restarts=restarts if method.private else 1,
        rng=rng,
        **arguments.of_release(mechanism, meta, taken, data_path(dataset), **cell),
    )
