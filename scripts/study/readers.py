"""Data sets from files and from scikit-learn, with messages that name file, column and row."""

import csv
import itertools
import json
import math
from difflib import get_close_matches

import numpy as np

from dp.preparation import Table
from study import canonical
from study.readers_idx import read_images
from study.readers_text import brief, listed, open_text

# Classes of the data sets that come with scikit-learn and have more than two.
BUNDLED_CLASSES = {
    "digits": tuple("0123456789"),
    "iris": ("setosa", "versicolor", "virginica"),
    "wine": ("class_0", "class_1", "class_2"),
}

MISSING = ("", "nan", "na", "n/a", "null")  # labels that are none


def read(entry, dataset):
    """`dp.preparation.Table` of a data set's entry, its labels as the entry says."""
    source = entry["source"]
    train_rows = None
    if "csv" in source:
        X, labels, columns = read_csv(
            source["csv"],
            entry["label"],
            entry.get("bounds"),
            categories=entry.get("categories"),
            **{key: source[key] for key in ("member", "delimiter", "names") if key in source},
        )
        where = f"{source['csv']}: column {entry['label']!r}"
    elif "idx" in source:
        X, labels, columns, train_rows = read_images(source["idx"])
        where = f"{dataset} ({source['idx']['labels']})"
    else:
        X, labels, columns = read_sklearn(source["sklearn"], source.get("features"))
        where = f"{dataset} (scikit-learn's {source['sklearn']})"
    expected, rows = source.get("rows"), len(X) if train_rows is None else train_rows
    if expected is not None and rows != expected:
        raise ValueError(
            f"{where}: has {rows} rows, not the {expected} that the configuration says"
        )
    groups = one_hot_columns(entry)
    table = Table(X, labels, tuple(columns), train_rows=train_rows, groups=groups)
    if "positive" in entry:
        return table._replace(
            y=two_classes(labels, entry["positive"], where),
            pair=(f"not {entry['positive']}", str(entry["positive"])),
        )
    classes = entry.get("classes") or BUNDLED_CLASSES[source["sklearn"]]
    return table._replace(y=class_numbers(labels, classes, where), classes=tuple(classes))


def one_hot_columns(entry):
    """Names of the columns of each categorical feature."""
    return tuple(
        tuple(f"{name}={category}" for category in categories)
        for name, categories in entry.get("categories", {}).items()
    )


def class_numbers(labels, classes, where):
    """Index of each label (compared as text) among the public classes; all must be known."""
    names = [str(name) for name in classes]
    labels = np.array([str(label) for label in labels])
    unknown = ~np.isin(labels, names)
    if unknown.any():
        raise ValueError(
            f"{where}: the label {brief(labels[unknown][0])!r} is not among the classes "
            f"({', '.join(names)})"
        )
    order = np.argsort(names)
    return order[np.searchsorted(np.array(names)[order], labels)].astype(np.int8)


def two_classes(labels, positive, where):
    """+1 where a label is `positive`, -1 elsewhere; both must occur.

    Text is compared as text, true and false without regard to case, numbers by value: 1 is 1.0.
    """
    labels = np.array([str(label) for label in labels])
    chosen = np.array([_is_label(label, positive) for label in labels])
    if chosen.all() or not chosen.any():
        values = ", ".join(repr(brief(value)) for value in np.unique(labels)[:5])
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
        return canonical.parse(label) == positive
    except ValueError:
        return False


def check_columns(entry):
    """Raise ValueError unless the first lines of an entry's CSV file hold the columns that it names."""
    source = entry["source"]
    member, delimiter = source.get("member"), source.get("delimiter", ",")
    rows = list(itertools.islice(_records(source["csv"], member, delimiter), 2))
    named = entry["label"], entry.get("bounds"), entry.get("categories")
    _columns(source["csv"], rows, *named, delimiter, source.get("names"))


def count_rows(source):
    """Rows of a CSV without its header."""
    records = _records(source["csv"], source.get("member"), source.get("delimiter", ","))
    return max(0, sum(1 for _ in records) - ("names" not in source))


def _records(path, member, delimiter):
    """(number, cells) of every row that is not empty, its header included."""
    try:
        with open_text(path, member) as handle:
            reader = enumerate(csv.reader(handle, delimiter=delimiter), 1)
            yield from ((number, row) for number, row in reader if row)
    except csv.Error as error:
        raise ValueError(f"{path}: is not a CSV file ({error})") from None


def _columns(path, rows, label, columns, categories, delimiter, names):
    """(the name of each cell in a row, the numeric features), of the first rows of a CSV file."""
    if not rows:
        raise ValueError(f"{path}: is empty")
    header = names or [name.strip() for name in rows[0][1]]
    known = [name for name in header if name is not None]
    repeated = next((name for name in known if known.count(name) > 1), None)
    if repeated is not None:
        raise ValueError(f"{path}: the header names {brief(repeated)!r} twice")
    categories = categories or {}
    columns = list(columns or [name for name in known if name != label and name not in categories])
    for name in [label, *columns, *categories]:
        if name not in known:
            other = None if names else _other_delimiter(delimiter.join(header), delimiter, name)
            near = get_close_matches(name, known, n=1)
            if other:
                said = f"; its cells seem to be separated by {other}: set `delimiter: {other}`"
            elif near:
                said = f"; did you mean {near[0]!r}?"
            else:
                said = f" (it has: {listed(known, 20)})"
            raise ValueError(f"{path}: has no column {name!r}{said}")
    if len(rows) == 1 and not names:
        raise ValueError(f"{path}: has a header but no rows")
    if not columns and not categories:
        raise ValueError(f"{path}: has no column besides the label")
    if label in columns:
        raise ValueError(f"{path}: the label {label!r} is no feature")
    return header, columns


def _other_delimiter(line, delimiter, name):
    """What separates a column's name from others in a header line, as YAML writes it; None for nothing."""
    for other in ",;\t|".replace(delimiter, ""):
        if name in [part.strip(' "') for part in line.split(other)]:
            return json.dumps(other)
    return None


def read_csv(path, label, columns=None, *, categories=None, member=None, delimiter=",", names=None):
    """X, labels and feature names of a CSV file.

    label: the label's column. columns: the numeric features to read; all others where not given.
    categories: categorical features, column name -> its public list of categories, each of which
    becomes a feature "name=category" of zeros and ones. member: the file inside a zip archive. names:
    the columns of a file without a header line, None for one that is not read.

    A missing column, a repeated name, a short or long row, an empty or non-numeric cell, an unknown
    category and a value that is not finite raise ValueError with file, column and row (the first line
    is row 1, as in a spreadsheet).
    """
    rows = list(_records(path, member, delimiter))
    header, columns = _columns(path, rows, label, columns, categories, delimiter, names)
    rows = rows if names else rows[1:]
    categories = categories or {}
    where = {name: header.index(name) for name in [label, *columns, *categories]}
    one_hot = [(name, str(category)) for name in categories for category in categories[name]]
    place = {pair: len(columns) + k for k, pair in enumerate(one_hot)}
    X = np.zeros((len(rows), len(columns) + len(one_hot)))
    labels = []
    for k, (number, row) in enumerate(rows):
        if len(row) != len(header):
            raise ValueError(f"{path}: row {number} has {len(row)} cells, the header {len(header)}")
        for j, name in enumerate(columns):
            X[k, j] = _finite(row[where[name]], f"{path}: column {name!r}, row {number}")
        for name in categories:
            category = row[where[name]].strip()
            if (name, category) not in place:
                raise ValueError(
                    f"{path}: column {name!r}, row {number}: {brief(category)!r} is not among the "
                    f"categories that the configuration lists"
                )
            X[k, place[name, category]] = 1.0
        text = row[where[label]].strip()
        if text.lower() in MISSING:
            raise ValueError(f"{path}: column {label!r}, row {number}: the label is missing")
        labels.append(text)
    return X, labels, [*columns, *(f"{name}={category}" for name, category in one_hot)]


def _finite(text, where):
    try:
        value = canonical.parse(text)
    except ValueError:
        problem = f"{brief(text)!r} is not a number" if text.strip() else "the cell is empty"
        raise ValueError(f"{where}: {problem}") from None
    if not math.isfinite(value):
        raise ValueError(f"{where}: {brief(text.strip())!r} is not a finite number")
    return value


def read_sklearn(name, features=None):
    """X, class names and feature names of a data set that comes with scikit-learn.

    features: the ones to keep, in this order; all where None.
    """
    from sklearn import datasets  # 1.8 s to import: only for these data sets

    bunch = getattr(datasets, f"load_{name}")()
    names = [str(bunch.target_names[k]) for k in bunch.target]
    # Pixels are whole numbers from 0 to 16: a byte each, as in an image file.
    X = np.asarray(bunch.data, dtype=np.uint8 if name == "digits" else float)
    columns = [str(c) for c in bunch.feature_names]
    for feature in features or ():
        if feature not in columns:
            raise ValueError(
                f"scikit-learn's {name}: has no feature {feature!r} (it has: {', '.join(columns)})"
            )
    if features:
        X, columns = X[:, [columns.index(feature) for feature in features]], list(features)
    return X, names, columns
