"""What releases cost: guarantees, the noise they need, privacy profiles, and several releases together.

    accounting     guarantees, and calibration of Gaussian noise
    profiles       privacy profiles delta(epsilon)
    composition    several releases, Poisson batches, groups of records
    sensitivities  how far one record moves common statistics

It needs numpy and scipy, and for composition the extra `accounting`. It imports nothing else of this
project. Other modules (`roots`, `intervals`, `errors`) may change at any time.
"""

__all__ = ["accounting", "composition", "profiles"]
