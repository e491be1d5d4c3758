"""The classes of a data set: how many rows each has, and how far they are from its mean."""

from pathlib import Path

import numpy as np

from dp.data.components import distances_to_class_mean
from study.data.prepared import Prepared
from study.jobs.files import read_json, write_csv

COLUMNS = ("dataset", "part", "class", "rows")


def class_counts(experiment, spec, paths, seed, out):
    """Rows of every class, in the training part and in the official test part where there is one."""
    rows = []
    for name, path in paths.items():
        meta = read_json(Path(path).with_suffix(".json"))
        for part, key in (("train", "class_counts"), ("test", "test_class_counts")):
            for label, label_name in meta["labels"].items():
                if meta[key]:
                    rows.append((name, part, label_name, meta[key].get(label, 0)))
    write_csv(out, COLUMNS, rows)


def class_distances(experiment, spec, paths, seed, out):
    """Euclidean distances of training rows to their class' mean: median and largest of every class, with
    the class' rank among them, 1 the least."""
    rows = []
    for name, path in paths.items():
        data, meta = Prepared(path), read_json(Path(path).with_suffix(".json"))
        distances = distances_to_class_mean(data.X, data.y)
        names = {int(label): each for label, each in meta["labels"].items()}
        found = np.array([[f(distances[data.y == k]) for f in (np.median, np.max)] for k in names])
        ranks = found.argsort(axis=0).argsort(axis=0) + 1
        rows += (
            (name, each, *values, *map(int, places))
            for each, values, places in zip(names.values(), found, ranks, strict=True)
        )
    write_csv(out, ("dataset", "class", "median", "largest", "rank_median", "rank_largest"), rows)
