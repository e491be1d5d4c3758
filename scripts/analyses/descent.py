"""How far stochastic gradient descent has come after every few steps."""

import math

import numpy as np

from dp import losses
from dp.descents import stochastic
from dp.noise import l2_laplace
from dp.seeds import generator
from study.data.prepared import Prepared
from study.jobs.files import write_csv

COLUMNS = ("dataset", "epsilon", "epoch", "step", "objective", "gradient_norm", "error")


def sgd_trace(experiment, spec, paths, seed, out):
    """Objective, gradient norm and training error, medians over simulations, along the iterations.

    Every simulation descends on its own order of all training rows, projection and noise. Options:
    those of `dp_sgd`, with epsilons (each pass gets epsilon/epochs; inf is without noise),
    simulations, and points, the number of checkpoints.
    """
    options = spec["options"]
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
        found = {epsilon: [] for epsilon in options["epsilons"]}
        for simulation in range(options["simulations"]):
            matrix = generator(seed, *axes, simulation, "projection").standard_normal((d, k))
            Z = np.column_stack([X @ matrix / math.sqrt(k), np.ones(n)])
            if not loss.residual:
                Z *= y[:, None]
            for epsilon, traces in found.items():
                order = generator(seed, *axes, simulation, "order")
                noise = generator(seed, *axes, simulation, "noise")
                passes = _passes(order, noise, n, k + 1, len(plan[0]), epsilon, options)
                _, kept = stochastic.descend(
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
                traces.append(_progress(Z, y, kept[:, 0, 0], lam, loss))
        for epsilon, traces in found.items():
            middle = np.median(traces, axis=0)
            rows += [
                (dataset, epsilon, step / len(plan[0]), step, *values)
                for step, values in zip(checkpoints, middle, strict=True)
            ]
    write_csv(out, COLUMNS, rows)


def _passes(order, noise, n, width, steps, epsilon, options):
    scale = 2 * options["epochs"] / epsilon
    for _ in range(options["epochs"]):
        yield (
            order.permutation(n)[None],
            (l2_laplace(width, scale, steps, noise)[None] if scale else None),
        )


def _progress(Z, y, weights, lam, loss):
    """(objective, gradient norm, training error) at each of the weights; Z as `descend` has it."""
    scores = Z @ weights.T
    margins = scores - y[:, None] if loss.residual else scores
    objective = loss.value(margins).mean(axis=0) + lam / 2 * (weights**2).sum(axis=1)
    gradient = loss.derivative(margins).T @ Z / len(Z) + lam * weights
    wrong = (scores * y[:, None] if loss.residual else scores) <= 0
    return np.column_stack([objective, np.linalg.norm(gradient, axis=1), wrong.mean(axis=0)])
