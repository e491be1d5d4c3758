"""Tests of mechanisms, also of your own functions of rows: what would show that a claimed epsilon is wrong.

    check          one answer on a program: `python -m dp_audit PROGRAM.py:FUNCTION --epsilon E`
    audit          attacks on two neighbouring data sets, from many releases
    replay         how far a record moves the quantities that get noise, without random numbers
    branches       whether one record changes how others are treated
    low_bits       an attack on the low-order bits of floating-point noise
    pairs          worst-case pairs of neighbouring data sets
    exact_losses   privacy losses with a known density
    pytest_plugin  `@dp_claim(epsilon=1)` on a test's function

An attack can only refute: what it does not find proves nothing.
"""

__all__ = ["audit", "branches", "check", "low_bits", "pairs", "pytest_plugin", "replay"]
