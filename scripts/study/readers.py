"""Data sets from files and from scikit-learn, with messages that name file, column and row."""

import csv
import math
from pathlib import Path

import numpy as np

from dp.preparation import Table

MISSING = ("", "nan", "na", "n/a", "null")  # labels that are none


def read(entry, dataset):
    """`dp.preparation.Table` of a data set's entry; labels in {-1, 1}."""
    source = entry["source"]
    if "csv" in source:
        X, labels, columns = read_csv(source["csv"], entry["label"], entry.get("bounds"))
        where = f"{source['csv']}: column {entry['label']!r}"
    else:
        X, labels, columns = read_sklearn(source["sklearn"])
        where = f"{dataset} (scikit-learn's {source['sklearn']})"
    expected = source.get("rows")
    if expected is not None and len(X) != expected:
        raise ValueError(
            f"{where}: has {len(X)} rows, not the {expected} that the configuration says"
        )
    return Table(X, two_classes(labels, entry["positive"], where), tuple(columns))


def two_classes(labels, positive, where):
    """+1 where a label is `positive`, -1 elsewhere; both must occur.

    Text is compared as text, true and false without regard to case, numbers by value: 1 is 1.0.
    """
    labels = np.array([str(label) for label in labels])
    chosen = np.array([_is_label(label, positive) for label in labels])
    if chosen.all() or not chosen.any():
        values = ", ".join(repr(str(value)) for value in np.unique(labels)[:5])
        shown = str(positive).lower() if isinstance(positive, bool) else repr(positive)
        problem = "every row has the label" if chosen.all() else "no row has the label"
        remedy = ""
        if isinstance(positive, bool) and not chosen.any():
            remedy = "; YAML reads yes, no, on and off as true and false: write them in quotes"
        raise ValueError(f"{where}: {problem} {shown} (labels found: {values}){remedy}")
    return np.where(chosen, 1, -1).astype(np.int8)


def _is_label(label, positive):
    if isinstance(positive, bool):
        return label.lower() == str(positive).lower()
    if isinstance(positive, str):
        return label == positive
    try:
        return float(label) == positive
    except ValueError:
        return False


def read_csv(path, label, columns=None):
    """X, labels and feature names of a CSV file with a header line.

    label: the label's column. columns: the features to read; all others where not given. A missing
    column, a repeated name, a short or long row, an empty or non-numeric cell and a value that is not
    finite raise ValueError with file, column and row (the header is row 1, as in a spreadsheet).
    """
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as handle:
            rows = [(number, row) for number, row in enumerate(csv.reader(handle), 1) if row]
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is not UTF-8 text") from None
    except csv.Error as error:
        raise ValueError(f"{path}: is not a CSV file ({error})") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    if not rows:
        raise ValueError(f"{path}: is empty")
    header = [name.strip() for name in rows[0][1]]
    repeated = next((name for name in header if header.count(name) > 1), None)
    if repeated is not None:
        raise ValueError(f"{path}: the header names {repeated!r} twice")
    columns = list(columns or [name for name in header if name != label])
    for name in [label, *columns]:
        if name not in header:
            raise ValueError(f"{path}: has no column {name!r} (it has: {', '.join(header[:20])})")
    if len(rows) == 1:
        raise ValueError(f"{path}: has a header but no rows")
    if not columns:
        raise ValueError(f"{path}: has no column besides the label")
    if label in columns:
        raise ValueError(f"{path}: the label {label!r} is no feature")
    where = {name: header.index(name) for name in [label, *columns]}
    X = np.empty((len(rows) - 1, len(columns)))
    labels = []
    for k, (number, row) in enumerate(rows[1:]):
        if len(row) != len(header):
            raise ValueError(f"{path}: row {number} has {len(row)} cells, the header {len(header)}")
        for j, name in enumerate(columns):
            X[k, j] = _finite(row[where[name]], f"{path}: column {name!r}, row {number}")
        text = row[where[label]].strip()
        if text.lower() in MISSING:
            raise ValueError(f"{path}: column {label!r}, row {number}: the label is missing")
        labels.append(text)
    return X, labels, columns


def _finite(text, where):
    try:
        value = float(text)
    except ValueError:
        problem = f"{text!r} is not a number" if text.strip() else "the cell is empty"
        raise ValueError(f"{where}: {problem}") from None
    if not math.isfinite(value):
        raise ValueError(f"{where}: {text.strip()!r} is not a finite number")
    return value


def read_sklearn(name):
    """X, class names and feature names of a data set that comes with scikit-learn."""
    from sklearn import datasets  # 1.8 s to import: only for these data sets

    bunch = getattr(datasets, f"load_{name}")()
    names = [str(bunch.target_names[k]) for k in bunch.target]
    return np.asarray(bunch.data, dtype=float), names, [str(c) for c in bunch.feature_names]
