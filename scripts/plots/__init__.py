"""Figures: one style for the project, one module per kind."""
