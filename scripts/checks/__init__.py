"""Published against computed: comparisons, implied epsilons, claims and defects."""
