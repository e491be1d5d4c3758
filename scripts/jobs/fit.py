"""Fits non-private minimisers on every fold, for methods that perturb one or start from one."""

import numpy as np

from dp.solvers.fits import FITS, fit_each
from study.jobs import folds, script
from study.jobs.files import atomic


def main():
    parser = script.parser(__doc__)
    script.add_data_arguments(parser)
    parser.add_argument("--fit", choices=sorted(FITS), required=True)
    parser.add_argument("--options", type=script.parse_options, default={}, help="JSON")
    parser.add_argument("--out", required=True, help=".npz: weights, gradient_norm, status")
    arguments = parser.parse_args()

    lam = arguments.lam.settings()[0]
    trains = (train for train, _ in folds.training_folds(arguments, in_blocks=True))
    fits = list(fit_each(arguments.fit, trains, lam, **arguments.options))
    with atomic(arguments.out, "wb") as handle:
        np.savez(
            handle,
            weights=np.array([weights for weights, _ in fits]),
            gradient_norm=np.array([info["gradient_norm"] for _, info in fits]),
            status=np.array([info["status"] for _, info in fits]),
        )
