"""Differentially private learning of linear models: arrays in, arrays out."""
