"""Which pixels the lasso keeps."""

from argparse import Namespace

import numpy as np

from dp.mechanisms import MECHANISMS
from study import arguments
from study.jobs import folds
from study.jobs.files import atomic, read_json


def lasso_pixels(experiment, spec, inputs, seed, out):
    """Weights (methods, d) of the first simulation at the sweep's largest size, and two examples.

    For methods that standardise pixels, these are weights of standardised pixels, as the lasso finds them.
    Weights of original pixels would be larger the less a pixel varies, and largest at the border, where
    almost no image has ink. Saved with the weights are the methods' labels, which columns are constant in
    the training rows, and the first training row of each class.
    """
    cells = experiment.entry_cells(spec)
    largest = max(cell.train_size for cell in cells)
    cells = [cell for cell in cells if cell.train_size == largest]
    first = cells[0]
    split = Namespace(
        data=inputs["data", first.dataset],
        experiment=experiment.name,
        dataset=first.dataset,
        folds=experiment.values.get("folds"),
        simulations=experiment.values.get("simulations"),
        train_size=largest,
        seed=seed,
    )
    (X, y), _ = next(folds.training_folds(split))
    all_rows = next(folds.all_training_rows(split))
    meta = read_json(inputs["meta", first.dataset])
    weights = []
    for cell in cells:
        mechanism = MECHANISMS[experiment.methods[cell.method]["mechanism"]]
        options, settings = arguments.of_cell(experiment, cell, meta)
        given = arguments.of_mechanism(mechanism, meta, options, **settings)
        release = mechanism.release(X, y, all_rows=all_rows, **given)
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
