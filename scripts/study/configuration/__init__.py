"""Reads, merges and resolves the configuration, and refuses a bad one in one sentence."""
