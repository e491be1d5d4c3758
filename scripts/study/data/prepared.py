"""Read prepared rows for jobs. Integers stay integers until a job needs floats."""

import json
import zipfile
from pathlib import Path

import numpy as np

from dp.rows import Rows
from study.data.preparation import PutOff

# bytes; larger arrays are memory-mapped, and rows that are larger as floats are read in blocks if possible
LARGE = 1 << 28


def read_arrays(path):
    """Name -> array of an .npz file. Large arrays are memory-mapped, read-only."""
    content = {}
    with np.load(path) as arrays, path.open("rb") as file:
        for entry in arrays.zip.infolist():
            name = entry.filename.removesuffix(".npy")
            if entry.file_size > LARGE and entry.compress_type == zipfile.ZIP_STORED:
                content[name] = _map(path, file, entry.header_offset)
            else:
                content[name] = arrays[name]
    return content


def _map(path, file, offset):
    """Memory-map an uncompressed .npy file in a zip file. offset: where the member's zip header begins."""
    file.seek(offset + 26)  # the lengths of the name and of the extra field are here
    file.seek(sum(np.frombuffer(file.read(4), "<u2").tolist()), 1)
    version = np.lib.format.read_magic(file)
    read_header = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
    shape, column_by_column, dtype = read_header(file)
    order = "F" if column_by_column else "C"
    return np.memmap(path, dtype, "r", offset=file.tell(), shape=shape, order=order)


class Prepared:
    """The content of a prepared data set's .npz file.

    X, y: training rows as stored; y has labels -1 and 1, class numbers, or targets in [-1, 1]. `floats`
    applies deferred steps. Further data sets from the same distribution are the parts "replicate1", ...
    """

    def __init__(self, path):
        self.arrays = read_arrays(Path(path))
        self.later = PutOff(**json.loads(str(self.arrays.pop("later", "{}"))))

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
    def replicates(self):
        """Names of the parts that are data sets from one distribution; [""] for a single data set."""
        count = sum(name.startswith("X_replicate") for name in self.arrays)
        return ["", *(f"replicate{k + 1}" for k in range(count))]

    def large(self, rows=None, part=""):
        """Whether rows of a part take more than LARGE bytes as floats. rows: None for all."""
        X = self.arrays[f"X_{part}" if part else "X"]
        return 8 * X.shape[1] * len(X if rows is None else rows) > LARGE

    def floats(self, rows=None, part="", in_blocks=False):
        """X (n, d) and y (n,) as floats, for some rows of a part.

        rows: row numbers; None for all. part: "", "test", "holdout", "public", "replicate1", ... in_blocks:
        whether the caller only slices X. If so, a large X is returned as `dp.rows.Rows`, and
        `rows` is sorted in place.
        """
        suffix = f"_{part}" if part else ""
        X, y = self.arrays[f"X{suffix}"], self.arrays[f"y{suffix}"]
        if in_blocks and self.large(rows, part):
            rows = np.arange(len(X)) if rows is None else rows
            rows.sort()  # in place, because a copy would take a lot of memory
            return Rows(X, rows, self.later.apply), y[rows]
        if rows is not None:
            X, y = X[rows], y[rows]
        return self.later.apply(X), y
