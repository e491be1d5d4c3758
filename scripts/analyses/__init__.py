"""Analyses, one module per kind: computations of an experiment that are not a sweep of cells."""
