"""Reference values of tests/vectors, for tests other than `tests/unit/test_vectors.py`."""

from vectors import check

VECTORS = check.read()
# Mechanisms whose labels are always 0, 1, .., never -1 and 1.
OF_CLASSES = ("softmax_objective_perturbation",)


def values(name, *inputs, function=None):
    """The inputs and expected value of each case in a file, or of one function's or mechanism's cases."""
    return [
        (*(case["inputs"][key] for key in inputs), case["expected"])
        for case in VECTORS[name]["cases"]
        if function in (None, case.get("function"), case.get("mechanism"))
    ]
