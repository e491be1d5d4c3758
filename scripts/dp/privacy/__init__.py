"""Profiles, composition and sensitivities for proofs, and worst pairs for attacks."""

__all__ = ["composition", "pairs", "profiles"]
