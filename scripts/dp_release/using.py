"""Predictions of a published model for new records: post-processing, which costs no privacy.

`dp_release.rows` reads a new record like a training row.
"""

import csv
from collections.abc import Iterable, Sequence
from typing import TextIO

import numpy as np

from dp_privacy.errors import Refused
from dp_release import files, rows

__all__ = ["of_file", "write_csv"]

BLOCK = 1 << 14  # records read together


def names(model: files.Model) -> list[str]:
    """The columns that a record needs, in the order that `design` expects."""
    schema = model.schema
    return [schema.columns[k].name for k in schema.used]


def design(model: files.Model, records: Sequence[Sequence[bytes] | None]) -> np.ndarray:
    """Rows (n, d) of records with one cell per column of `names`. Rows of invalid records are NaN."""
    schema = model.reads
    V, some = np.zeros((len(records), schema.d), np.int32), np.zeros(len(records), dtype=bool)
    for i, cells in enumerate(records):
        some[i] = cells is not None and schema.row(cells, V[i])
    X = rows.shortened(V) / rows.ONE
    X[~some] = np.nan
    return X


def scores(model: files.Model, X: np.ndarray) -> np.ndarray:
    """Log odds of the second class, or numbers in the target's own units, (n,). X: from `design`."""
    linear = X @ model.weights + model.offset
    if model.target is None:
        return linear
    low, high = model.target
    return low + (high - low) * (np.clip(linear, -1, 1) + 1) / 2


def probabilities(log_odds: np.ndarray) -> np.ndarray:
    """Probabilities of the second class, from log odds."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-log_odds))


def classes(log_odds: np.ndarray) -> np.ndarray:
    """Classes 0 and 1 from log odds, none of which is NaN. Log odds of 0 give class 0, as in `holdout`."""
    return (log_odds > 0).astype(int)


def of_file(model: files.Model, data: bytes) -> Iterable[tuple[str, ...]]:
    """Predictions for a CSV with a header.

    Parameters
    ----------
    model : dp_release.files.Model
    data : bytes
        The file. Columns may have any order; the target and additional columns are ignored. Quoted cells
        may hold line feeds.

    Yields
    ------
    tuple of str
        The header first: "prediction" and, for classes, "probability" (of the second class). Then one per
        record, with empty cells if the record is invalid.

    Raises
    ------
    dp_privacy.errors.Refused
        If a column is missing, or occurs twice, or lines end in a carriage return alone.

    See Also
    --------
    dp_release.making.make : Its example uses this.
    """
    format, separator = model.schema.format, model.schema.separator
    lines = rows.split_lines(data, header=False)
    if len(lines) == 1 and b"\r" in lines[0].rstrip(b"\r"):
        raise Refused("the file's lines end in a carriage return alone: save it with line feeds")
    # New rows may come without the lines that stood above the names of the columns.
    for form in (format._replace(header=1), format):
        records = list(rows.records(data, separator, form.names_at(lines)))
        header = rows.header_names(b"".join(records[:1]), form)
        missing = [name for name in names(model) if name not in header]
        if not missing:
            break
    if missing:
        raise Refused(f"the file has no column {missing[0]!r}, which the model needs")
    for name in names(model):
        if header.count(name) > 1:
            raise Refused(
                f"the file has {header.count(name)} columns {name!r}, which the model needs: columns need "
                f"different names"
            )
    lines = records[1:]
    places = [header.index(name) for name in names(model)]
    yield ("prediction",) if model.classes is None else ("prediction", "probability")
    for start in range(0, len(lines), BLOCK):
        cells = [rows.cells_of(line, separator) for line in lines[start : start + BLOCK]]
        records = [
            [each[k] for k in places]
            if each and len(each) == len(header) and not format.is_comment(each)
            else None
            for each in cells
        ]
        yield from _said(model, scores(model, design(model, records)))


def write_csv(model: files.Model, data: bytes, file: TextIO) -> int:
    """Write the predictions of `of_file` as a CSV.

    Parameters
    ----------
    model : dp_release.files.Model
    data : bytes
        A file's content, header included.
    file : TextIO
        Where to write.

    Returns
    -------
    int
        The number of records without a prediction.

    See Also
    --------
    of_file
    """
    writer, without = csv.writer(file, lineterminator="\n"), 0
    for line in of_file(model, data):
        writer.writerow(line)
        without += not line[0]
    return without


def _said(model, model_scores):
    for value in model_scores.tolist():
        if value != value:
            yield ("",) if model.classes is None else ("", "")
        elif model.classes is None:
            yield (f"{value:.9g}",)
        else:
            yield model.classes[int(value > 0)], f"{float(probabilities(np.array(value))):.9g}"
