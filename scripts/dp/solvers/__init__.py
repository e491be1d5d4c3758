"""Minimisers whose results are certified by the norm of the gradient or of a subgradient."""

from dp.solvers.newton import check_certifiable, least_tolerance, minimise, rounding

__all__ = ["check_certifiable", "least_tolerance", "minimise", "rounding"]
