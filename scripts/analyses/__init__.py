"""Analyses: computations of an experiment in addition to its cells, one module per kind."""
