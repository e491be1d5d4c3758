"""Rows: simulated, prepared, split; their components."""
