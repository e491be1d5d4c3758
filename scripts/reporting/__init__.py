"""Gathers results and writes the report, one self-contained page."""
