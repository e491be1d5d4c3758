"""Non-private minimisers that several mechanisms perturb, fitted once and shared."""

import inspect

from dp.solvers import minimise


def l2(X, y, lam, loss="logistic", tolerance=1e-9):
    """argmin of mean loss + lam/2 ||w||^2. Returns weights (1, d) and the solver's info."""
    return minimise(X, y, lam, loss=loss, tolerance=tolerance)


FITS = {"l2": l2}


def fit_options(name, options):
    """Those of a method's options that concern its fit."""
    parameters = inspect.signature(FITS[name]).parameters
    return {key: value for key, value in options.items() if key in parameters}


def shared_fit(name, X, y, lam, **arguments):
    """(weights (1, d), info) of a fit, given a release's arguments."""
    return FITS[name](X, y, lam, **fit_options(name, arguments))
