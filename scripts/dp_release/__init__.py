"""Releases whose guarantee holds for the program's finite-precision arithmetic, not only for real numbers.

    draws       discrete Gaussian noise in integers, from a key
    lattice     the cost of a Gaussian release on a lattice (lemmas 1 and 2)
    formats     how a file's text stands for cells
    rows        lines of a file as integer rows of bounded norm
    bounds      bounds of columns that a release finds, and theorem 3
    tilt        a minimiser with a certified gradient, and theorem 1
    statistics  Hessians and second moments of slopes
    models      plans and releases of models
    norm_draws  noise of a norm's law in integers: balls, boxes and hulls of one-hot blocks
    norm_noise  the theorems for such noise, and its scales
    rate        a noisy class rate first, as an offset of all scores, and theorem 5
    contrasts   rows with all levels of every category, and the map from their weights to a table
    norm_models plans with such noise: weights or a table with delta 0, or a table with a delta
    norm_tables estimates and intervals from them
    persons     which rows of a person count, if a person is protected and not a row (lemma 5)
    holdout     errors on held-out rows; model and errors together cost the larger of the two (theorem 2)
    request     a release's public facts
    book        the costs of releases
    disk        private files
    making      makes a release, with one draw per name
    files       model.json
    card        a summary for a model's readers
    using       predictions of a released model
    meaning     a guarantee as the success of the best attack
    forecast    accuracy and interval widths, without rows
    estimators  scikit-learn's conventions, on tables before preprocessing
    preview     how a release reads a file, only for the owner

Released numbers are integers with public exponents, so low-order bits reveal nothing. The guarantee is
for replace-one adjacency (with `persons`, of all rows of a person), under these premises:

    key  nobody who sees the release can distinguish HMAC-SHA512 under a secret key from random bits
    P1   numbers are IEEE binary64, rounded to nearest, and matrix products sum plain products in some order
    P2   exp and tanh have a relative error of at most 4 ulp, plus an absolute error of 1e-290
    P3   no number overflows: public numbers that could cause overflow are refused
    P4   the evaluated rows are the prepared ones, and the code that runs is this code
"""

__all__ = [
    "book",
    "card",
    "draws",
    "estimators",
    "files",
    "forecast",
    "formats",
    "making",
    "models",
    "request",
    "rows",
    "using",
]
