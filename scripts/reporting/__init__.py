"""Gathers what was computed, and writes it as the report, one self-contained page."""
