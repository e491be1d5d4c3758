"""Reference values of tests/vectors, for tests other than `tests/unit/test_vectors.py`."""

from vectors import check

VECTORS = check.read()
# Mechanisms with labels 0, 1, .. instead of -1 and 1.
OF_CLASSES = ("softmax_objective_perturbation", "softmax_regression")


def values(name, *inputs, function=None):
    """(inputs .., expected value) for each case of a file, or of one function or mechanism in it."""
    return [
        (*(case["inputs"][key] for key in inputs), case["expected"])
        for case in VECTORS[name]["cases"]
        if function in (None, case.get("function"), case.get("mechanism"))
    ]
