"""Non-private minimisers that several mechanisms perturb, fitted once and shared."""

from dp.solvers import minimise


def l2(X, y, lam, loss="logistic", tolerance=1e-9):
    """argmin of mean loss + lam/2 ||w||^2. Returns weights (1, d) and the solver's info."""
    return minimise(X, y, lam, loss=loss, tolerance=tolerance)


FITS = {"l2": l2}
