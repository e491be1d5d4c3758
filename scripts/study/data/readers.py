"""Read data sets from files and scikit-learn. Error messages name file, column and row."""

import json
import math
import re
from collections import Counter
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path

import numpy as np

from dp_release import rows as releasing
from study import canonical
from study.data.preparation import Table
from study.data.readers_idx import read_images
from study.data.readers_sparse import read_documents
from study.data.readers_table import first_row, read_blocks
from study.data.readers_text import brief, listed

# scikit-learn's data sets with more than two classes.
BUNDLED_CLASSES = {
    "digits": tuple("0123456789"),
    "iris": ("setosa", "versicolor", "virginica"),
    "wine": ("class_0", "class_1", "class_2"),
}
BUNDLED_OPTIONS = {"diabetes": {"scaled": False}}

FORMAT = ("member", "delimiter", "names", "comment", "sha256")  # keys of a table's source

COMMAS = re.compile(r"[+-]?\d[\d.' \u00a0\u202f]*(,\d+)+(\.\d*)?")  # numbers of spreadsheets
DROPPED = "rows dropped"
# Premises of guarantees.
BOTH = "that rows of both labels occur (data with one label are refused)"
COMPLETE = "how many rows have no missing cell (a record that comes to lack one can change it)"
EMPTY = ("", "nan", "na", "n/a", "null", "?")  # cell contents that count as missing


def read(entry, dataset, counts=None):
    """The `study.data.preparation.Table` of a data set's entry. counts: see `read_csv`."""
    source = entry["source"]
    counts = Counter() if counts is None else counts
    train_rows = None
    if "csv" in source:
        X, labels, columns = read_csv(
            source["csv"],
            label_column(entry),
            entry.get("bounds"),
            numbers="target" in entry,
            categories=entry.get("categories"),
            missing=entry.get("missing"),
            listed_labels=listed_labels(entry),
            counts=counts,
            **_format(source),
        )
        where = f"{table_files(source)[0]}: column {label_column(entry)!r}"
    elif "idx" in source:
        X, labels, columns, train_rows = read_images(source["idx"])
        where = f"{dataset} ({source['idx']['labels']})"
    elif "sparse" in source:
        X, labels, columns = read_documents(source["sparse"])
        where = f"{dataset} ({source['sparse']['vectors']})"
    else:
        X, labels, columns = read_sklearn(source["sklearn"], source.get("features"))
        where = f"{dataset} (scikit-learn's {source['sklearn']})"
    expected, rows = source.get("rows"), len(X) if train_rows is None else train_rows
    rows += counts[DROPPED]
    if expected is not None and rows != expected:
        raise ValueError(
            f"{where}: has {rows} rows, not the {expected} that the configuration says"
        )
    groups = one_hot_columns(entry)
    table = Table(X, labels, tuple(columns), train_rows=train_rows, groups=groups)
    if "target" in entry:
        return table._replace(**target(labels, entry["target"]))
    if "positive" in entry:
        return table._replace(
            y=two_classes(labels, entry["positive"], where),
            pair=label_pair(entry["positive"]),
        )
    classes = entry.get("classes") or BUNDLED_CLASSES[source["sklearn"]]
    return table._replace(y=class_numbers(labels, classes, where), classes=tuple(classes))


def label_column(entry):
    """The column of the target or label; None if the entry names neither."""
    return entry["target"]["column"] if "target" in entry else entry.get("label")


def target(values, spec):
    """`y` and `target` of a `Table`, from numbers or their logarithms.

    y is clipped to public bounds and mapped to [-1, 1]. This costs no privacy, because it treats each row
    by itself.
    """
    low, high = spec["bounds"]
    values = np.asarray(values, dtype=float)
    if spec.get("log"):
        if not (values > 0).all():
            raise ValueError(f"the target {spec['column']!r} has numbers without a logarithm")
        values = np.log(values)
    y = 2 * ((np.clip(values, low, high) - low) / (high - low)) - 1
    return {"y": y, "target": (spec["column"], *((-1, 1) if spec.get("scaled") else (low, high)))}


def one_hot_columns(entry):
    return tuple(
        tuple(f"{name}={category}" for category in categories)
        for name, categories in entry.get("categories", {}).items()
    )


def class_numbers(labels, classes, where):
    """The index of each label in the list of public classes. Raises ValueError for other labels."""
    labels = list(map(str, labels))
    place = matching(classes)
    number = {label: place(label) for label in dict.fromkeys(labels)}
    unknown = next((label for label in number if number[label] is None), None)
    if unknown is not None:
        names = ", ".join(map(str, classes))
        raise ValueError(
            f"{where}: the label {brief(unknown)!r} is not among the classes ({names})"
        )
    return np.fromiter(map(number.__getitem__, labels), np.int8, len(labels))


def matching(values):
    """A function from a cell to the index of its value among listed `values`, or to None.

    As in a release, text is compared exactly, true and false without regard to case, and numbers by their
    exact value: the cell 1.0 is a listed 1.
    """
    known = {}
    for k, value in enumerate(values):
        if isinstance(value, bool):
            value = str(value).lower()
        known.setdefault(value if isinstance(value, str) else Fraction(str(value)), k)

    def index(cell):
        if cell in known:
            return known[cell]
        if cell.lower() in ("true", "false"):
            return known.get(cell.lower())
        number = releasing.decimal(cell.encode())
        return None if number is None else known.get(releasing.value_of(number))

    return index


def listed_labels(entry):
    """The labels that an entry lists."""
    positive = entry.get("positive", [])
    if isinstance(positive, dict):
        return []
    positive = positive if isinstance(positive, list) else [positive]
    return [*positive, *entry.get("classes", [])]


def label_pair(positive):
    """The displayed names of the labels -1 and 1."""
    if isinstance(positive, dict):
        return f"at most {positive['above']}", f"above {positive['above']}"
    first = str(positive[0] if isinstance(positive, list) else positive)
    return f"not {first}", first


def two_classes(labels, positive, where):
    """+1 for labels that are `positive`, -1 for others. The premise `BOTH` states that both occur.

    positive: a label, a list of labels, or {"above": number} for all larger numbers. `matching` says how
    they are compared.
    """
    labels = list(map(str, labels))
    if isinstance(positive, dict):
        threshold = Fraction(str(positive["above"]))

        def chosen(label):
            number = releasing.decimal(label.encode())
            if number is None:
                raise ValueError(_no_number(label))
            return releasing.value_of(number) > threshold
    else:
        place = matching(positive if isinstance(positive, list) else [positive])

        def chosen(label):
            return place(label) is not None

    try:
        meant = {label: chosen(label) for label in dict.fromkeys(labels)}
    except ValueError as problem:
        raise ValueError(f"{where}: {problem}") from None
    if len(set(meant.values())) != 2:
        values = ", ".join(repr(brief(label)) for label in sorted(meant)[:5])
        shown = str(positive).lower() if isinstance(positive, bool) else repr(positive)
        problem = "every row has the label" if all(meant.values()) else "no row has the label"
        remedy = ""
        if isinstance(positive, bool) and not any(meant.values()):
            remedy = "; YAML reads yes, no, on and off as true and false: write them in quotes"
        raise ValueError(f"{where}: {problem} {shown} (labels found: {values}){remedy}")
    signs = {label: 1 if chosen else -1 for label, chosen in meant.items()}
    return np.fromiter(map(signs.__getitem__, labels), np.int8, len(labels))


def table_files(source):
    return [source["csv"]] if isinstance(source["csv"], str) else source["csv"]


def _format(source):
    return {key: source[key] for key in FORMAT if key in source}


def check_columns(entry):
    """Raise ValueError unless the tables of an entry have rows and all columns that the entry names."""
    source = entry["source"]
    named = label_column(entry), entry.get("bounds"), entry.get("categories")
    names = source.get("names")
    for path in table_files(source):

        def choose(known, path=path):
            _check_names(path, known, *named, _format(source))
            return (), ()

        _check_rows(path, next(read_blocks(path, choose, **_format(source)), None), names)


def _check_rows(path, rows, names):
    if not rows:
        raise ValueError(f"{path}: {'is empty' if names else 'has a header but no rows'}")


def count_rows(source):
    return sum(
        len(rows)
        for path in table_files(source)
        for rows, _ in read_blocks(path, lambda known: ((), ()), **_format(source))
    )


def read_csv(
    path,
    label,
    columns=None,
    *,
    numbers=False,
    categories=None,
    missing=None,
    listed_labels=(),
    counts=None,
    **format,
):
    """X, labels and feature names of a table, or of several tables (a sequence of paths).

    numbers: whether labels are numbers. columns: the numeric features, by default all other columns.
    categories: column -> public list of categories, each of which becomes a feature "column=category" of
    zeros and ones. missing: column, or "*" for all others -> the replacement of missing cells, or "drop" to
    leave out the row. listed_labels: labels that are not missing, such as "NA". counts: a Counter, to which
    missing cells by column and dropped rows are added. format: see `study.data.readers_table`.

    Raises ValueError, with file, column and row (the first line is row 1), for a missing column, a
    repeated name, a row of the wrong length, an empty cell, an unknown category, or a cell that is not a
    finite number.
    """
    paths = [path] if isinstance(path, str | Path) else path
    categories = categories or {}
    missing = missing or {}
    counts = Counter() if counts is None else counts
    first = None  # the columns of the first file
    blocks, labels = [], []
    problem, empty = "", {}  # the first problem; columns with empty cells but no rule for them
    for path in paths:

        def choose(known, path=path):
            nonlocal columns, first
            columns = _check_names(path, known, label, columns, categories, format)
            first = first or known
            if set(known) != set(first):
                other = min(set(known) ^ set(first))
                raise ValueError(f"{path}: has other columns than {paths[0]} ({other!r})")
            return columns, [*categories, label]

        read = False
        for rows, values in read_blocks(path, choose, **format):
            read = True
            block = _Block(rows, values, missing)
            X = np.zeros((len(rows), len(columns) + sum(map(len, categories.values()))))
            place = len(columns)
            for j, name in enumerate(columns):
                X[:, j] = block.take(name, _number)
            for name, known in categories.items():
                X[np.arange(len(rows)), place + block.take(name, _category(known), int)] = 1.0
                place += len(known)
            take_label = (_number, float) if numbers else (_label(listed_labels), object)
            block_labels = block.take(label, *take_label)
            if block.problems and not problem:
                problem = f"{path}: {min(block.problems)[1]}"
                if not min(block.problems)[2]:
                    raise ValueError(problem)
            empty |= block.empty
            counts.update(block.counts)
            counts[DROPPED] += len(rows) - int(block.kept.sum())
            blocks.append(X if block.kept.all() else X[block.kept])
            labels.extend(block_labels[block.kept].tolist())
        _check_rows(path, read, format.get("names"))
    if problem:
        # Name all columns with empty cells at once, so users edit the entry once.
        rules = ", ".join(f"{name}: drop" for name in empty)
        raise ValueError(
            f"{problem}; `missing: {{{rules}}}` leaves out the rows without a value, and another value "
            f"in place of `drop` fills them in"
        )
    if not labels:
        raise ValueError(f"{path}: every row has a missing cell, so none is left")
    one_hot = [f"{name}={category}" for name in categories for category in categories[name]]
    return _joined(blocks), labels, [*columns, *one_hot]


def _check_names(path, known, label, columns, categories, format):
    """The numeric features of a table. Raises ValueError for a column that is missing or named twice.

    By default, these are all columns but trailing ones without a name, which come from trailing delimiters.
    """
    delimiter, names = format.get("delimiter", ","), format.get("names")
    categories = categories or {}
    stated = {label, *(columns or ()), *categories}
    if not columns:
        named = max((k for k, name in enumerate(known, 1) if name), default=0)
        columns = [name for name in known[:named] if name != label and name not in categories]
    columns = list(columns)
    for name in [label, *columns, *categories]:
        if name not in known:
            other = None if names else other_delimiter(known, delimiter, name)
            near = get_close_matches(name, known, n=1)
            row = None if names else first_row(path, stated, **format)
            if delimiter.join(known).startswith("sep="):
                said = f": row 1 is {delimiter.join(known)!r}, for spreadsheets: delete this line"
            elif row:
                said = f" in row 1; row {row} has it: delete the lines above row {row}"
            elif other:
                said = f"; its cells seem to be separated by {other}: set `delimiter: {other}`"
            elif near:
                said = f"; did you mean {near[0]!r}?"
            else:
                said = f" (it has: {listed(known, 20)})"
            raise ValueError(f"{path}: has no column {name!r}{said}")
        if known.count(name) > 1:
            raise ValueError(
                f"{path}: the header names {brief(name)!r} twice: give each column that is used its "
                f"own name"
            )
    if not columns and not categories:
        raise ValueError(f"{path}: has no column besides the label")
    if label in columns:
        raise ValueError(f"{path}: the label {label!r} is no feature")
    return columns


def other_delimiter(known, delimiter, name):
    """Another delimiter, as YAML text, that gives the header a column `name`; None if there is none."""
    for other in ",;\t|".replace(delimiter, ""):
        if name in [part.strip(' "') for part in delimiter.join(known).split(other)]:
            return json.dumps(other)
    return None


def _joined(blocks):
    """Join blocks of rows, and free each block's memory once it is copied."""
    if len(blocks) == 1:
        return blocks[0]
    X = np.empty((sum(map(len, blocks)), blocks[0].shape[1]))
    end = len(X)
    while blocks:
        block = blocks.pop()
        X[end - len(block) : end] = block
        end -= len(block)
    return X


class _Block:
    def __init__(self, rows, columns, missing):
        self.rows, self.columns, self.missing = rows, columns, missing
        self.kept = np.ones(len(rows), bool)
        self.counts = Counter()  # missing cells by column
        self.problems = []  # (row, problem of a cell, whether the cell is empty)
        self.empty = {}  # columns with empty cells but no rule for them, in order

    def take(self, name, convert, dtype=float):
        """Convert the cells of a column, with one call of `convert` per distinct text."""
        cells, rule = self.columns[name], self.missing.get(name, self.missing.get("*"))
        if not isinstance(cells, tuple):
            if np.isfinite(cells).all():
                return cells
            different, codes = np.unique(cells, return_inverse=True)
            cells = codes, ["" if np.isnan(cell) else repr(float(cell)) for cell in different]
        codes, texts = cells
        values, empty, wrong = [], np.zeros(len(texts), bool), {}
        unsaid = set()
        for k, text in enumerate(map(str.strip, texts)):
            try:
                values.append(convert(text))
            except ValueError as problem:
                empty[k] = rule is not None and text.lower() in EMPTY
                values.append(convert(str(rule)) if empty[k] and rule != "drop" else dtype())
                if not empty[k]:
                    wrong[k] = problem
                if rule is None and text.lower() in EMPTY:
                    unsaid.add(k)
        bad = np.isin(np.arange(len(texts)), list(wrong))[codes]
        if bad.any():
            row = int(bad.argmax())
            at = codes[row] % len(texts)  # the code -1 stands for the last text
            text = f"column {name!r}, row {self.rows[row]}: {wrong[at]}"
            self.problems.append((row, text, at in unsaid))
        if unsaid and np.isin(codes % len(texts), list(unsaid)).any():
            self.empty[name] = None
        if empty.any():
            self.counts[name] += int(empty[codes].sum())
            if rule == "drop":
                self.kept &= ~empty[codes]
        return np.array(values, dtype=dtype)[codes]


def _number(text):
    try:
        value = canonical.parse(text)
    except ValueError:
        raise ValueError(_no_number(text)) from None
    if not math.isfinite(value):
        raise ValueError(f"{brief(text)!r} is not a finite number")
    return value


def _no_number(text):
    if not text:
        return "the cell is empty"
    commas = ": it has a decimal comma, or commas between thousands; write numbers in the file like 1234.5"
    return f"{brief(text)!r} is not a number{commas * bool(COMMAS.fullmatch(text))}"


def _category(known):
    place = matching(known)

    def convert(text):
        number = place(text)
        if number is None:
            raise ValueError(
                f"{brief(text)!r} is not among the categories that the configuration lists"
            )
        return number

    return convert


def _label(values):
    place = matching(values)

    def convert(text):
        if text.lower() in EMPTY and place(text) is None:
            raise ValueError("the label is missing")
        return text

    return convert


def read_sklearn(name, features=None):
    """X, class names (or target values) and feature names of a scikit-learn data set.

    features: the names of features to keep, in this order; None for all.
    """
    from sklearn import datasets  # a slow import: 1.8 s

    bunch = getattr(datasets, f"load_{name}")(**BUNDLED_OPTIONS.get(name, {}))
    names = bunch.target
    if "target_names" in bunch:
        names = [str(bunch.target_names[k]) for k in bunch.target]
    # Pixels are integers from 0 to 16, stored as bytes.
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
