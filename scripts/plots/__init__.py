"""Figures: one style for all of them, and one module per group of kinds."""
