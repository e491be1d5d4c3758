"""Prepared rows as jobs read them: integers stay integers until floats are asked for."""

import json

import numpy as np

from dp.preparation import Later


class Prepared:
    """A prepared data set's .npz.

    X, y: training rows as they are stored, labels -1 and 1 or class numbers. X_test, y_test: the
    official test part, empty without one. `floats` gives rows with the steps that were put off.
    """

    def __init__(self, path):
        with np.load(path) as arrays:
            self.arrays = {name: arrays[name] for name in arrays.files}
        self.later = Later(**json.loads(str(self.arrays.pop("later", "{}"))))

    def __getitem__(self, name):
        return self.arrays[name]

    def __contains__(self, name):
        return name in self.arrays

    @property
    def X(self):
        return self.arrays["X"]

    @property
    def y(self):
        return self.arrays["y"]

    @property
    def X_test(self):
        return self.arrays.get("X_test", self.X[:0])

    @property
    def y_test(self):
        return self.arrays.get("y_test", self.y[:0])

    def floats(self, rows=None, part=""):
        """X (n, d) floats and y (n,) of the rows (all where None) of a part: "", "test", "holdout"."""
        suffix = f"_{part}" if part else ""
        X, y = self.arrays[f"X{suffix}"], self.arrays[f"y{suffix}"]
        if rows is not None:
            X, y = X[rows], y[rows]
        return self.later.apply(X), y
