"""Compares what is published with what is computed: values, implied epsilons, claims and defects."""
