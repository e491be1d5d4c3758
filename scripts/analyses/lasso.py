"""Which pixels the lasso keeps."""

from argparse import Namespace

import numpy as np

from dp.mechanisms import MECHANISMS
from study import jobs
from study.files import atomic, read_json


def lasso_pixels(experiment, spec, inputs, seed, out):
    """Weights (methods, d) of the first simulation at the sweep's largest size, and two examples.

    Saved with the weights: the methods' labels, which columns are constant in the training rows, and
    the first training row of each class.
    """
    cells = experiment.entry_cells(spec)
    largest = max(cell.train_size for cell in cells)
    cells = [cell for cell in cells if cell.train_size == largest]
    first = cells[0]
    arguments = Namespace(
        data=inputs["data", first.dataset],
        experiment=experiment.name,
        dataset=first.dataset,
        folds=experiment.values.get("folds"),
        simulations=experiment.values.get("simulations"),
        train_size=largest,
        seed=seed,
    )
    (X, y), _ = next(jobs.training_folds(arguments))
    all_rows = next(jobs.all_training_rows(arguments))
    bound = read_json(inputs["meta", first.dataset])["bound"]
    weights = []
    for cell in cells:
        method = experiment.methods[cell.method]
        source = experiment.lambda_source(method, cell.dataset, largest, cell.epsilon)
        lam, chosen = jobs.read_settings(str(source))
        release = MECHANISMS[method["mechanism"]].release(
            X, y, lam=lam, bound=bound, all_rows=all_rows, **method["options"] | chosen
        )
        weights.append(release.weights[0])
    with atomic(out, "wb") as handle:
        np.savez(
            handle,
            methods=np.array([cell.method for cell in cells]),
            weights=np.array(weights),
            constant=X.min(axis=0) == X.max(axis=0),
            examples=np.array([X[np.flatnonzero(y == label)[0]] for label in (-1, 1)]),
            train_size=largest,
        )
