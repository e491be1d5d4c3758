"""Proofs of what mechanisms cost: how much noise a release needs, and why."""
