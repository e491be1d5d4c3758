"""Analyses: computations of an experiment that are not a sweep of cells, one module per kind."""
