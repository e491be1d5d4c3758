"""Noisy descents that solve many problems at once."""
