"""Non-private minimisers that several mechanisms perturb, fitted once and shared.

A fit is called as fit(X, y, lam, **options) and returns weights (1, d) and info: gradient_norm (of the
smallest subgradient where the objective has a kink) and status, each (1,).
"""

import inspect

from dp.elastic_net import minimise_elastic_net
from dp.solvers import minimise


def l2(X, y, lam, loss="logistic", tolerance=1e-9):
    """argmin of mean loss + lam/2 ||w||^2."""
    return minimise(X, y, lam, loss=loss, tolerance=tolerance)


def l1(X, y, lam, tolerance=1e-9):
    """argmin of mean logistic loss + lam ||w||_1; one of them where there are several."""
    return minimise_elastic_net(X, y, lam, 0.0, tolerance)


def elastic_net(X, y, lam, lambda1=None, tolerance=1e-9):
    """argmin of mean logistic loss + lambda1 ||w||_1 + lam/2 ||w||^2; lambda1 is lam where None."""
    return minimise_elastic_net(X, y, lam if lambda1 is None else lambda1, lam, tolerance)


FITS = {"l2": l2, "l1": l1, "elastic_net": elastic_net}


def penalties(fit, lam, lambda1=None):
    """(l1, l2): the weights of ||w||_1 and of ||w||^2 / 2 in the objective of a fit of that name."""
    if fit == "l1":
        return lam, 0.0
    if fit == "elastic_net":
        return (lam if lambda1 is None else lambda1), lam
    return 0.0, lam


def fit_options(name, options):
    """Those of a method's options that concern its fit."""
    parameters = inspect.signature(FITS[name]).parameters
    return {key: value for key, value in options.items() if key in parameters}


def shared_fit(name, X, y, lam, **arguments):
    """(weights (1, d), info) of a fit, given a release's arguments."""
    return FITS[name](X, y, lam, **fit_options(name, arguments))
