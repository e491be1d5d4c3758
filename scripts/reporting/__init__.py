"""Gathers what was computed, and writes it as one self-contained page: the report."""
