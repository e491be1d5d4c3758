"""Noisy descents that take many problems at once."""
