"""Proofs of mechanisms, and worst-case pairs for attacks."""

__all__ = ["pairs"]
"""Proofs of mechanisms, and worst-case pairs for attacks."""

__all__ = ["pairs"]
