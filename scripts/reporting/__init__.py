"""The report: what was computed, gathered and written as one self-contained page."""
