"""Compares published results with computed ones: values, implied epsilons, claims and defects."""
