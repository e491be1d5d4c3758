"""Rows of data: simulation, preparation, splits, principal components."""
