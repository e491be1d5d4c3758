"""Proofs of mechanisms."""

"""Proofs of mechanisms."""
