"""Read data sets from files and scikit-learn. Error messages name file, column and row."""

import json
import math
from collections import Counter
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dp_release import rows as releasing
from dp_release.formats import PLAIN, Format
from study import canonical
from study.configuration.data_set_keys import Above, DataSet, Missing, Rows, Target
from study.data.preparation import Table
from study.data.readers_idx import read_images
from study.data.readers_sparse import read_documents
from study.data.readers_table import BLANK, Numbers, keys_for, read_blocks
from study.data.readers_text import brief, listed

# scikit-learn's data sets with more than two classes.
BUNDLED_CLASSES = {
    "digits": tuple("0123456789"),
    "iris": ("setosa", "versicolor", "virginica"),
    "wine": ("class_0", "class_1", "class_2"),
}
BUNDLED_OPTIONS = {"diabetes": {"scaled": False}}

TEXT = ("member", "names", *Format._fields)  # keys of a text table's source

DROPPED = "rows dropped"
EMPTY = tuple(cell.decode() for cell in releasing.EMPTY)  # cells that are missing, ignoring case
# Premises of guarantees.
BOTH = "that rows of both labels occur (data with one label are refused)"
COMPLETE = "how many rows have no missing cell (a record that comes to lack one can change it)"


def read(entry: DataSet, dataset, counts=None):
    """The `study.data.preparation.Table` of a data set's entry. counts: see `read_csv`."""
    source = entry.source
    counts = Counter() if counts is None else counts
    train_rows = None
    if source.csv is not None:
        X, labels, columns = read_csv(
            source.csv,
            label_column(entry),
            entry.bounds,
            numbers=entry.target is not None,
            categories=entry.categories,
            missing=entry.missing,
            listed_labels=listed_labels(entry),
            counts=counts,
            **_format(source),
        )
        where = f"{table_files(source)[0]}: column {label_column(entry)!r}"
    elif source.idx:
        X, labels, columns, train_rows = read_images(source.idx)
        where = f"{dataset} ({source.idx.labels})"
    elif source.sparse:
        X, labels, columns = read_documents(source.sparse)
        where = f"{dataset} ({source.sparse.vectors})"
    else:
        X, labels, columns = read_sklearn(source.sklearn, source.features)
        where = f"{dataset} (scikit-learn's {source.sklearn})"
    expected, rows = source.rows, len(X) if train_rows is None else train_rows
    rows += counts[DROPPED]
    if expected is not None and rows != expected:
        raise ValueError(
            f"{where}: has {rows} rows, not the {expected} that the configuration says"
        )
    groups = one_hot_columns(entry)
    table = Table(X, labels, tuple(columns), train_rows=train_rows, groups=groups)
    format = Format.of(source.mapping())
    if entry.target:
        return table._replace(**target(labels, entry.target))
    if entry.positive is not None:
        return table._replace(
            y=two_classes(labels, entry.positive, where, format), pair=label_pair(entry.positive)
        )
    classes = entry.classes or BUNDLED_CLASSES[source.sklearn]  # type: ignore[index]
    return table._replace(y=class_numbers(labels, classes, where, format), classes=tuple(classes))


def label_column(entry: DataSet):
    """The column of the target or label; None if the entry names neither."""
    return entry.target.column if entry.target else entry.label


def target(values, spec: Target):
    """`y` and `target` of a `Table`, from numbers or their logarithms.

    y is clipped to public bounds and mapped to [-1, 1]. This costs no privacy, because it treats each row
    by itself.
    """
    bounds: Any = spec.bounds  # `study.data.origins.check_bounds` refuses those to be found
    low, high = bounds
    values = np.asarray(values, dtype=float)
    if spec.log:
        if not (values > 0).all():
            raise ValueError(f"the target {spec.column!r} has numbers without a logarithm")
        values = np.log(values)
    y = 2 * ((np.clip(values, low, high) - low) / (high - low)) - 1
    return {"y": y, "target": (spec.column, *((-1, 1) if spec.scaled else (low, high)))}


def one_hot_columns(entry: DataSet):
    return tuple(
        tuple(f"{name}={category}" for category in categories)
        for name, categories in (entry.categories or {}).items()
    )


def class_numbers(labels, classes, where, format=PLAIN):
    """The index of each label in the list of public classes. Raises ValueError for other labels."""
    labels = list(map(str, labels))
    place = matching(classes, format)
    number = {label: place(label) for label in dict.fromkeys(labels)}
    unknown = next((label for label in number if number[label] is None), None)
    if unknown is not None:
        names = ", ".join(map(str, classes))
        raise ValueError(
            f"{where}: the label {brief(unknown)!r} is not among the classes ({names})"
        )
    return np.fromiter(map(number.__getitem__, labels), np.int8, len(labels))


def matching(values, format=PLAIN):
    """A function from a cell to its value's index among listed `values`, or to None, as in a release."""
    find = releasing.finder(values, format._replace(encoding="utf-8"))
    return lambda cell: find(cell.encode(errors="surrogatepass"))


def missing_rule(rules, name):
    """(codes, what takes a missing cell's place or None) of a column; "*" is for columns without a rule."""
    rule = rules.get(name, rules.get("*"))
    if isinstance(rule, Missing):
        return tuple(rule.codes), rule.is_
    return (), rule


def drops(entry: DataSet):
    """Whether rows with a missing cell are left out."""
    rules = entry.missing or {}
    return any(missing_rule(rules, name)[1] == "drop" for name in rules)


def listed_labels(entry: DataSet):
    """The labels that an entry lists."""
    positive = [] if entry.positive is None else entry.positive
    if isinstance(positive, Above):
        return []
    positive = positive if isinstance(positive, list) else [positive]
    return [*positive, *(entry.classes or [])]


def label_pair(positive):
    """The displayed names of the labels -1 and 1."""
    if isinstance(positive, Above):
        return f"at most {positive.above}", f"above {positive.above}"
    first = str(positive[0] if isinstance(positive, list) else positive)
    return f"not {first}", first


def two_classes(labels, positive, where, format=PLAIN):
    """+1 for labels that are `positive`, -1 for others. The premise `BOTH` states that both occur.

    positive: a label, a list of labels, or `Above` for all larger numbers. `matching` says how
    they are compared.
    """
    labels = list(map(str, labels))
    if isinstance(positive, Above):
        threshold = Fraction(str(positive.above))

        def chosen(label):
            number = releasing.decimal(format.plain(label.encode()))
            if number is None:
                raise ValueError(_no_number(label, format))
            return releasing.value_of(number) > threshold
    else:
        place = matching(positive if isinstance(positive, list) else [positive], format)

        def chosen(label):
            return place(label) is not None

    try:
        meant = {label: chosen(label) for label in dict.fromkeys(labels)}
    except ValueError as problem:
        raise ValueError(f"{where}: {problem}") from None
    if len(set(meant.values())) != 2:
        values = ", ".join(repr(brief(label)) for label in sorted(meant)[:5])
        shown = str(positive).lower() if isinstance(positive, bool) else repr(positive)
        problem = "every row has the label" if all(meant.values()) else "no row has the label"  # type: ignore[misc]
        remedy = ""
        if isinstance(positive, bool) and not any(meant.values()):
            remedy = "; YAML reads yes, no, on and off as true and false: write them in quotes"
        raise ValueError(f"{where}: {problem} {shown} (labels found: {values}){remedy}")
    signs = {label: 1 if chosen else -1 for label, chosen in meant.items()}
    return np.fromiter(map(signs.__getitem__, labels), np.int8, len(labels))


def table_files(source: Rows):
    return [source.csv] if isinstance(source.csv, str) else source.csv or []


def _format(source: Rows):
    given = source.mapping()
    return {key: given[key] for key in (*TEXT, "sha256") if key in given}


def check_columns(entry: DataSet):
    """Raise ValueError unless the tables of an entry have rows and all columns that the entry names."""
    source = entry.source
    named = label_column(entry), entry.bounds, entry.categories
    for path in table_files(source):

        def choose(known, path=path):
            _check_names(path, known, *named, _format(source))
            return (), ()

        _check_rows(path, next(read_blocks(path, choose, **_format(source)), None), source.names)


def _check_rows(path, rows, names):
    if not rows:
        raise ValueError(f"{path}: {'is empty' if names else 'has a header but no rows'}")


def count_rows(source: Rows):
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
    leave out the row, or `Missing`, with further cells that are missing. listed_labels: labels that are
    not missing, such as "NA". counts: a Counter, to which missing cells by column and dropped rows are
    added. format: see `study.data.readers_table`.

    Raises ValueError, with file, column and row (the first line is row 1), for a missing column, a
    repeated name, a row of the wrong length, an empty cell, an unknown category, or a cell that is not a
    finite number.
    """
    paths = [path] if isinstance(path, str | Path) else path
    categories = categories or {}
    missing = missing or {}
    counts = Counter() if counts is None else counts
    own = Format.of(format)._replace(encoding="utf-8")  # of cells that are decoded
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
            block = _Block(rows, values, missing, own)
            X = np.zeros((len(rows), len(columns) + sum(map(len, categories.values()))))
            place = len(columns)
            for j, name in enumerate(columns):
                X[:, j] = block.take(name, _number(own))
            for name, known in categories.items():
                level = block.take(name, _category(known, own), int, known)
                X[np.arange(len(rows)), place + level] = 1.0
                place += len(known)
            if numbers:
                block_labels = block.take(label, _number(own))
            else:
                convert = _label(listed_labels, own)
                block_labels = block.take(label, convert, object, listed_labels)
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
        rules = ", ".join(
            f"{name}: {{codes: {json.dumps(codes)}, is: drop}}" if codes else f"{name}: drop"
            for name, codes in empty.items()
        )
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
            said = f" (it has: {listed(known, 20)})"
            if near:
                said = f"; did you mean {near[0]!r}?"
            if other:
                said = f"; its cells seem to be separated by {other}: set `delimiter: {other}`"
            if not names:
                said = keys_for(path, stated, **format) or said
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
    def __init__(self, rows, columns, missing, format):
        self.rows, self.columns, self.missing, self.format = rows, columns, missing, format
        self.kept = np.ones(len(rows), bool)
        self.counts = Counter()  # missing cells by column
        self.problems = []  # (row, problem of a cell, whether the cell is missing)
        self.empty = {}  # columns with missing cells but no rule for them, in order -> their codes

    def take(self, name, convert, dtype=float, listed=()):
        """Convert the cells of a column, with one call of `convert` per distinct text.

        listed: values that are not missing.
        """
        cells = self.columns[name]
        codes, _ = missing_rule(self.missing, name)
        is_missing = releasing.is_missing(codes, self.format, listed)

        def missing(texts):
            return [is_missing(text.encode(errors="surrogatepass")) for text in texts]

        if not isinstance(cells, Numbers):
            places, texts = cells[0], [text.strip(BLANK) for text in cells[1]]
            everywhere = np.arange(len(self.rows))
            return self._each(name, everywhere, places, texts, missing(texts), convert, dtype)
        values, rows, places, texts = cells
        texts = [text.strip(BLANK) for text in texts]
        gone = missing(texts)
        for code in codes:
            at = np.flatnonzero(values == code)
            rows, places = np.append(rows, at), np.append(places, np.full(len(at), len(texts)))
            texts, gone = [*texts, str(code)], [*gone, True]
        if len(rows):
            values[rows] = self._each(name, rows, places, texts, gone, convert, dtype)
        return values

    def _each(self, name, rows, places, texts, gone, convert, dtype):
        """The values of the cells texts[places] in these rows of the block. gone: missing texts."""
        codes, rule = missing_rule(self.missing, name)
        instead = dtype()
        if rule not in (None, "drop") and any(gone):
            instead = float(rule) if dtype is float else convert(str(rule))
        values, wrong = [], {}
        for k, text in enumerate(texts):
            value = instead
            if not gone[k] or rule is None:
                try:
                    value = convert(text)
                except ValueError as problem:
                    value, wrong[k] = dtype(), problem
                else:
                    if gone[k]:
                        wrong[k] = f"{brief(text)!r} is a code for a missing cell"
            values.append(value)
        gone = np.array(gone, dtype=bool)[places]
        bad = np.isin(places, list(wrong))
        if bad.any():
            first = int(np.argmin(np.where(bad, rows, len(self.rows))))
            text = f"column {name!r}, row {self.rows[rows[first]]}: {wrong[places[first]]}"
            self.problems.append((rows[first], text, bool(gone[first])))
        if rule is None and gone.any():
            self.empty[name] = codes
        elif gone.any():
            self.counts[name] += int(gone.sum())
            if rule == "drop":
                self.kept[rows[gone]] = False
        return np.array(values, dtype=dtype)[places]


def _number(format):
    def convert(text):
        try:
            value = canonical.parse(format.plain(text.encode(errors="replace")).decode())
        except ValueError:
            raise ValueError(_no_number(text, format)) from None
        if not math.isfinite(value):
            raise ValueError(f"{brief(text)!r} is not a finite number")
        return value

    return convert


def _no_number(text, format):
    if not text:
        return "the cell is empty"
    hint = format.hint(text)
    return f"{brief(text)!r} is not a number{': it has ' * bool(hint)}{hint}"


def _category(known, format):
    place = matching(known, format)

    def convert(text):
        number = place(text)
        if number is None:
            raise ValueError(
                f"{brief(text)!r} is not among the categories that the configuration lists"
            )
        return number

    return convert


def _label(values, format):
    place = matching(values, format)

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
