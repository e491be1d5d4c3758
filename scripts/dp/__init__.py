"""Differentially private learning of linear models: arrays in, arrays out.

The public interface is `__all__` of:

    mechanisms    private releases: `MECHANISMS[name].guarantee(..)` and `.release(..)`
    noise         samplers of the noise that the proofs assume
    inference     confidence intervals that include the privacy noise

Other modules may change at any time: `solvers` (certified minima), `descents` (iterations with noise),
`proofs`, `rows`, losses, evaluation and tuning.
"""

__all__ = [
    "inference",
    "mechanisms",
    "noise",
]

__version__ = "0.1.0"  # stated only here
