"""Differentially private learning of linear models: arrays in, arrays out.

The public interface is `__all__` of:

    mechanisms    private releases: `MECHANISMS[name].guarantee(..)` and `.release(..)`
    estimators    private models with scikit-learn's conventions, on tables before preprocessing
    releasing     publishable models: request, forecast, make, use
    noise         samplers of the noise that the proofs assume
    inference     confidence intervals that include the privacy noise

Other modules may change at any time: `solvers` (certified minima), `descents` (iterations with noise),
`data` (rows), losses, evaluation and tuning.
"""

__all__ = [
    "estimators",
    "inference",
    "mechanisms",
    "noise",
    "releasing",
]

__version__ = "0.1.0"  # stated only here
