"""Differentially private learning of linear models: arrays in, arrays out.

Packages: `mechanisms` (what is released), `solvers` (certified minima), `descents` (iterations with
noise), `privacy` (what is proven, and worst pairs), `data` (rows). Modules: noise, accounting, losses,
audit, evaluation, inference and tuning.
"""

__version__ = "0.1.0"  # of the package; its only place
