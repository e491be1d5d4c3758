"""Profiles, composition and sensitivities for proofs, and worst-case pairs for attacks."""

__all__ = ["composition", "pairs", "profiles"]
