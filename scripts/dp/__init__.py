"""Differentially private learning of linear models: arrays in, arrays out.

    mechanisms    private releases: `MECHANISMS[name].guarantee(..)` and `.release(..)`
    noise         samplers of the noise that the proofs assume
    inference     confidence intervals that include the privacy noise
    estimators    benchmarks on public rows in scikit-learn's own tools

`__all__` of these modules is the public interface, with that of three packages beside this one:

    dp_privacy    what releases cost: accounting, profiles, composition
    dp_audit      tests of mechanisms by attacks and deterministic runs
    dp_release    publishable models: request, forecast, make, use; scikit-learn's conventions

Other modules may change at any time: `mechanism` (the contract), `registry`, `options`, `losses`, `rows`,
`solvers` (certified minima), `descents` (iterations with noise), `proofs`, `evaluation`, `seeds`.
"""

__all__ = [
    "estimators",
    "inference",
    "mechanisms",
    "noise",
]

__version__ = "0.1.0"  # stated only here
