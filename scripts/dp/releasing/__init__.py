"""Releases whose guarantee holds for the program itself, not only for real numbers.

    draws       discrete Gaussian noise in integers, from a key
    lattice     the cost of a Gaussian release with centre and noise on a lattice (lemmas 1 and 2)
    rows        one line of a file as a row of integers of bounded norm
    tilt        a minimiser with a certified gradient, and theorem 1
    statistics  Hessians and second moments of slopes
    models      the plans and releases of whole models
    holdout     errors on held out rows, at the maximum of both costs (theorem 2)
    request     a release's public facts; book, disk and making: its cost, and one draw per name
    files       model.json; card: a text for readers; using: predictions
    meaning     the best attack; forecast: accuracy and widths, without rows
    preview     how a release reads a file, for its owner alone

Releases are integers with public exponents, so low-order bits reveal nothing. The guarantee is for
replace-one adjacency, on these premises:

    key  nobody who sees the release can distinguish HMAC-SHA512 under a secret key from random bits
    P1   numbers are IEEE binary64, rounded to nearest, and matrix products sum plain products in some order
    P2   exp and tanh have a relative error of at most 4 ulp, and 1e-290 beside it
    P3   no number overflows: public numbers so large that one could are refused
    P4   the evaluated rows are the prepared ones, and the code that runs is this code
"""

__all__ = [
    "book",
    "card",
    "draws",
    "files",
    "forecast",
    "making",
    "models",
    "request",
    "rows",
    "using",
]
