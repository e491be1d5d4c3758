"""Descents with noise that solve many problems at once."""
