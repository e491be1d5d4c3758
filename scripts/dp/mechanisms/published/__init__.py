"""Mechanisms as sources print or run them, with their defects, each under its own name."""
