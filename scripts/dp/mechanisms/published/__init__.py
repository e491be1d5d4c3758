"""Defective forms of mechanisms that sources print or run, each under its own name."""
