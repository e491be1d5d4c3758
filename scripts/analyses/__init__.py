"""Analyses, one module per kind: computations of an experiment beside its cells."""
