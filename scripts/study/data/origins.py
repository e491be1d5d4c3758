"""Check configured data sets: files, addresses, labels and numbers of rows."""

import contextlib
import glob
import hashlib
import inspect
import urllib.parse
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from dp_release import rows as releasing
from dp_release.formats import PLAIN, Format
from study import paths
from study.configuration.data_set_keys import DataSet, Found, Rows
from study.configuration.faults import nearest
from study.data import readers, simulations
from study.data.downloads import Wanted
from study.data.preparation import STEPS, Table
from study.data.readers_table import is_parquet, is_pickle

FILES = paths.HOME / "config/files.yaml"
KINDS = ("simulate", "sklearn", "csv", "idx", "sparse")
# Kind of source -> keys that name its files.
NAMED_FILES = {
    "idx": ("images", "labels", "test_images", "test_labels"),
    "sparse": ("vectors", "topics"),
}


def resolve(name, entry: DataSet, files):
    """Replace the file names and addresses in a source by paths, and add the addresses to `files`.

    files: name -> `File`, from config/files.yaml, or `Wanted`. Raises a ValueError, whose text begins with
    the key.
    """
    source = entry.source
    _check_kind(source)
    _check_simulation(source)
    _check_labels(entry)
    _check_columns(entry)
    _check_mixture(source)
    for number, step in enumerate(entry.steps):
        ((step_name, options),) = step.items()
        problem = step_problem(step_name, options or {})
        if problem:
            raise ValueError(f"steps[{number}]: {problem}")
        for column, pair in (options or {}).items():
            if step_name.startswith("scale_") and not _is_pair(pair):
                text = "must be two numbers: [a, b]"
                raise ValueError(f"steps[{number}].{step_name}.{column}: {text}")
    for kind, key, file in _named_files(source):
        if file in files:
            setattr(getattr(source, kind), key, f"{paths.RAW}/{file}")
        elif "/" not in file:
            raise ValueError(
                f"source.{kind}.{key}: no file {file!r} in {FILES}{nearest(file, files)} "
                f"(your own file is given with its folder)"
            )
    if source.csv is not None:
        _resolve_csv(name, source, files)


def _named_files(source: Rows):
    return [
        (kind, key, file)
        for kind, keys in NAMED_FILES.items()
        for key in keys
        if (file := getattr(getattr(source, kind), key, None))
    ]


def _resolve_csv(name, source: Rows, files):
    csv_files = readers.table_files(source)
    downloads = [file for file in csv_files if file in files or "://" in file]
    if source.sha256 and not (len(csv_files) == 1 and "://" in csv_files[0]):
        raise ValueError("source.sha256: is for a file given by its address (https://...)")
    tables = [path for file in csv_files for path in _places(name, file, source, files)]
    source.csv = tables[0] if len(tables) == 1 else tables
    _check_format(source, files)
    if source.rows is None and not downloads:
        with contextlib.suppress(ValueError):
            rows = readers.count_rows(source)
            if rows:
                source.rows = rows


def _places(name, file, source: Rows, files):
    """The paths that a name, an address or a pattern stands for. An address is added to `files`."""
    if file in files:
        return [f"{paths.RAW}/{file}"]
    if "://" in file:
        own = f"{name}-{Path(urllib.parse.urlsplit(file).path).name or 'data'}"
        files[own] = Wanted(own, (file,), source.sha256)
        return [f"{paths.RAW}/{own}"]
    # `Path.glob` refuses absolute patterns. A pattern without matches is returned, so messages name it.
    return [file] if Path(file).exists() else sorted(glob.glob(file)) or [file]  # noqa: PTH207


def _check_format(source: Rows, files):
    """Add a pickle's checksum to the source; refuse text-file options for files that are not text."""
    tables = readers.table_files(source)
    for path in tables:
        if is_pickle(path):
            file = files.get(Path(path).name) if paths.RAW in path else None
            pinned = file and file.sha256
            if pinned is None or len(tables) > 1:
                raise ValueError(
                    f"source.csv: {path!r} is a pickle, which runs as a program: it is read alone, and "
                    f"only under a SHA-256, of {FILES} or beside its address; or save the table as CSV"
                )
            source.sha256 = pinned
        for key in readers.TEXT:
            if key in source.mapping() and (is_pickle(path) or is_parquet(path)):
                raise ValueError(f"source.{key}: is for text, which {path!r} is not")


def source_files(source: Rows):
    """Key -> path of each file from which a data set is read."""
    if source.csv is not None:
        tables = readers.table_files(source)
        return {f"csv[{k}]" if len(tables) > 1 else "csv": path for k, path in enumerate(tables)}
    return {f"{kind}.{key}": path for kind, key, path in _named_files(source)}


def own_files(source: Rows, files):
    """Key -> path of each file that must exist, because it is not downloaded."""
    downloads = {f"{paths.RAW}/{name}" for name in files}
    return {key: path for key, path in source_files(source).items() if path not in downloads}


def check_bounds(entry: DataSet):
    """Raise ValueError, as `resolve` does, if bounds are to be found, which only a release does."""
    stated = {"target": entry.target.bounds} if entry.target else {}
    for name, pair in ((entry.bounds or {}) | stated).items():
        if isinstance(pair, Found):
            raise ValueError(
                f"bounds: {name!r} has `find`, which a release pays for: a benchmark takes [low, high]"
            )


def check_own_files(entry: DataSet, files):
    """Raise ValueError, as `resolve` does, if one of the source's own files or a column is missing."""
    check_bounds(entry)
    for key, path in own_files(entry.source, files).items():
        try:
            Path(path).open("rb").close()
        except FileNotFoundError:
            folder = Path(path).parent
            there = {each.name: str(each) for each in folder.iterdir()} if folder.is_dir() else {}
            there |= {name: name for name in files}
            near = get_close_matches(Path(path).name, there, n=1)
            said = "put it there, or correct the path"
            said = f"did you mean {there[near[0]]!r}?" if near else said
            raise ValueError(f"source.{key}: no file {path!r}; {said}") from None
        except OSError as error:
            raise ValueError(f"source.{key}: {path!r} cannot be read ({error.strerror})") from None
        if key in ("csv", "csv[0]"):
            try:
                readers.check_columns(entry)
            except ValueError as error:
                raise ValueError(f"source.csv: {error}") from None


def content(paths):
    """One SHA-256 for the contents of all files that exist."""
    digest = hashlib.sha256()
    for path in filter(Path.is_file, map(Path, paths)):
        with path.open("rb") as handle:
            digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()


def _check_kind(source: Rows):
    given = source.mapping()
    if sum(kind in given for kind in KINDS) != 1:
        raise ValueError(f"source: needs exactly one of {', '.join(KINDS[:-1])} and {KINDS[-1]}")
    for key in (*readers.TEXT, "sha256"):
        if key in given and "csv" not in given:
            raise ValueError(f"source.{key}: is for 'csv' only")
    try:
        Format.of(given)
    except ValueError as error:
        raise ValueError(f"source.{error}") from None


def _check_simulation(source: Rows):
    """Check that a source has the keys of its kind of simulation, and of no other kind."""
    given, kind = source.mapping(), source.simulate
    needed, optional = simulations.keys(kind)
    for key in needed:
        if key not in given:
            raise ValueError(f"source: the key {key!r} is missing")
    of_all = [key for each in simulations.KINDS for keys in simulations.keys(each) for key in keys]
    others = {"holdout", "data_replicates", *of_all} - {"rows", *needed, *optional}
    others -= {"holdout"} if kind else set()
    others -= {"data_replicates"} if needed else set()
    for key in sorted(others):
        if given.get(key):
            raise ValueError(f"source: {kind or min(given.keys() & {*KINDS})} takes no {key!r}")
    for key in ("features", "first"):
        if key in given and source.sklearn is None:
            raise ValueError(f"source: {key!r} is for scikit-learn's data only")
    if source.first and source.rows and source.first > source.rows:
        raise ValueError(f"source: 'first' is more than its {source.rows} rows")


def _is_pair(value):
    return isinstance(value, list) and [type(v) in (int, float) for v in value] == [True, True]


def _check_labels(entry: DataSet):
    """Check that an entry has two classes (`positive`), named classes, or a numeric target."""
    source, target = entry.source, entry.target
    if target:
        for key in ("label", "positive", "classes"):
            if key in entry.mapping():
                raise ValueError(f"has both 'target' (a number) and {key!r} (classes); keep one")
        if source.simulate != "linear" and source.csv is None and source.sklearn is None:
            raise ValueError("target: is for 'csv', 'sklearn' and `simulate: linear` only")
        if source.sklearn and source.sklearn not in readers.BUNDLED_OPTIONS:
            raise ValueError(f"target: scikit-learn's {source.sklearn} has classes; use 'positive'")
        # A release finds bounds that are not given.
        low, high = (0, 1) if isinstance(target.bounds, Found) else target.bounds
        if not low < high:
            raise ValueError(f"target.bounds: {low} is not below {high}")
        if target.counts and (low or {"log", "scaled"} & target.mapping().keys()):
            raise ValueError("target.counts: counts start at 0, and have no `log` and no `scaled`")
        if any("binary" in step for step in entry.steps):
            raise ValueError("steps: 'binary' chooses among classes, and the target is a number")
        return
    if source.sklearn in readers.BUNDLED_OPTIONS:
        raise ValueError(f"scikit-learn's {source.sklearn} is learnt by regression: use 'target'")
    if source.simulate == "linear":
        raise ValueError("the key 'target' is missing: its name and bounds, to which it is clipped")
    if source.simulate:
        return
    if entry.positive is not None and entry.classes:
        raise ValueError("has both 'positive' (two classes) and 'classes' (more); keep one")
    known = entry.positive is not None or entry.classes
    if not known and source.sklearn not in readers.BUNDLED_CLASSES:
        raise ValueError(
            "the key 'positive' is missing (the label that becomes +1; or 'classes', the names of "
            "more than two)"
        )


def _check_columns(entry: DataSet):
    if entry.source.csv is None:
        for key in ("categories", "missing"):
            if key in entry.mapping():
                raise ValueError(f"{key}: {'are' if key == 'categories' else 'is'} for 'csv' only")
        return
    label = readers.label_column(entry)
    if label is None:
        raise ValueError("the key 'label' is missing (or 'target', a column of numbers)")
    bounds, categories = entry.bounds or {}, entry.categories or {}
    for key, columns in (("bounds", bounds), ("categories", categories)):
        if label in columns:
            raise ValueError(f"{key}: the label {label!r} is no feature")
    for column, pair in bounds.items():
        if not isinstance(pair, Found) and not pair[0] < pair[1]:
            text = f"must be [low, high] with low < high, not [{pair[0]}, {pair[1]}]"
            raise ValueError(f"bounds.{column}: {text}")
    both = set(bounds) & set(categories)
    if both:
        raise ValueError(f"categories: {min(both)!r} has bounds too; a column is one or the other")
    rules = entry.missing or {}
    for column in rules:
        problem = _missing_problem(entry, column, *readers.missing_rule(rules, column))
        if problem:
            raise ValueError(f"missing.{column}: {problem}")


def _missing_problem(entry: DataSet, column, codes, value):
    """An error message, or None, about a column's codes and the value that replaces missing cells."""
    bounds, categories = entry.bounds, entry.categories or {}
    stated = {**categories, readers.label_column(entry): readers.listed_labels(entry)}
    for name in stated if column == "*" else {column} & stated.keys():
        own, _ = readers.missing_rule(entry.missing, name)
        try:
            releasing.is_missing(own, PLAIN, stated[name])
        except ValueError as error:
            return str(error)
    if column in categories and value is not None:
        known = list(map(str, categories[column]))
        if value == "drop" and "drop" in known:
            return "'drop' is a category here, and rows to be dropped: rename the category"
        if value != "drop" and str(value) not in known:
            return f"{value!r} is neither 'drop' nor a listed category{nearest(value, known)}"
    elif column == "*" and value not in (None, "drop"):
        return f"every other column takes 'drop' alone, not {value!r}"
    elif column not in ("*", *categories, entry.label):
        if bounds is not None and column not in (*bounds, readers.label_column(entry)):
            return f"no such column is read{nearest(column, [*bounds, *categories])}"
        if value != "drop" and isinstance(value, str):
            return f"must be 'drop' or a number, not {value!r}"
    return None


def _check_mixture(source: Rows):
    if source.simulate != "mixture":
        for key in ("components", "public_rows", "public_shift"):
            if key in source.mapping():
                raise ValueError(f"source.{key}: is for `simulate: mixture` only")
        return
    if source.rows is None or source.components is None:
        missing = "components" if source.rows else "rows"
        raise ValueError(f"source: the key {missing!r} is missing")
    columns = source.simulated_columns()
    for number, component in enumerate(source.components):
        for key, values in (("mean", component.mean), ("deviation", component.deviation)):
            if len(values) != columns:
                text = f"has {len(values)} values, not {columns}"
                raise ValueError(f"source.components[{number}].{key}: {text}")
    if source.public_shift is not None and len(source.public_shift) != columns:
        raise ValueError(f"source.public_shift: must have {columns} values")


def step_problem(name, options):
    """An error message, or None, about a preparation step or its options."""
    if name not in STEPS:
        return f"no step {name!r}{nearest(name, STEPS)}"
    parameters = inspect.signature(STEPS[name].apply).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None  # the options are names of columns, which are not yet known
    valid = [key for key in parameters if key not in ("table", "rng")]
    for key in options:
        if key not in valid:
            return f"{name} has no option {key!r}{nearest(key, valid)}"
    for key in valid:
        if parameters[key].default is parameters[key].empty and key not in options:
            return f"{name} needs the option {key!r}"
    return None


def prepared_rows(entry: DataSet):
    """The number of private training rows after preparation; None if not configured."""
    selects = any(STEPS[name].selects for name, _ in entry.all_steps()) or readers.drops(entry)
    rows = entry.rows if selects else entry.source.first or entry.source.rows
    return rows and rows - round((entry.public_share or 0) * rows)


def public_facts(entry: DataSet):
    """The bounds, columns and classes that the preparation will record, as far as they are known now.

    If the columns' names are only in the file, or a step is fitted on rows, ten columns and a bound of 1
    are assumed.
    """
    source = entry.source
    classes: Sequence = entry.classes or [each.class_ for each in source.components or ()]
    if source.sklearn and not classes and entry.positive is None and not entry.target:
        classes = readers.BUNDLED_CLASSES.get(source.sklearn, ())
    if any("binary" in step for step in entry.steps):
        classes = ()
    try:
        table = _stand_in(entry)
    except ValueError:  # the preparation reports unknown names and too few rows
        table = None
    if table is None or not np.isfinite(table.bound):
        table = Table(np.empty(0), np.empty(0), tuple(range(10)), bound=1.0)
    own = table.coordinate_bound < table.bound
    return {
        "bound": table.bound,
        "coordinate_bound": table.coordinate_bound if own else None,
        "column_bounds": list(table.column_bounds) or None,
        "blocks": list(map(list, table.blocks)) or None,
        "columns": table.columns,
        "labels": dict(enumerate(classes)),
        **({"target": entry.target.plain()} if entry.target else {}),
    }


def _stand_in(entry: DataSet):
    """A row of ones after all steps that do not select rows; None if columns have no names."""
    source, steps = entry.source, entry.all_steps()
    constants = next((options for name, options in steps if "constants" in name), ())
    named = tuple(source.features or entry.bounds or constants)
    if source.simulate:
        named = tuple(f"x{k}" for k in range(source.simulated_columns()))
    if source.sparse:
        named = tuple(f"term_{k}" for k in range(source.sparse.columns))
    if not (named or entry.bounds is not None) or "*" in named:
        return None
    groups = readers.one_hot_columns(entry)
    columns = (*named, *(column for group in groups for column in group))
    table = Table(np.ones((1, len(columns))), np.ones(1, np.int8), columns, groups=groups)
    for name, options in steps:
        if not STEPS[name].selects:
            drawn = {"rng": np.random.default_rng(0)} if STEPS[name].random else {}
            table = STEPS[name].apply(table, **options, **drawn)
    return table


def data_bytes(entry: DataSet):
    """Bytes of all rows as floats; 0 if the configuration does not determine them.

    A table's columns are the listed numbers and categories. If no numbers are listed, the result is the
    files' size, because a number and its delimiter take about as much as a float, eight bytes.
    """
    source = entry.source
    rows = (source.rows or 0) + source.holdout + (source.public_rows or 0)
    if source.simulate:
        return 8 * rows * (source.data_replicates or 1) * source.simulated_columns()
    if source.sparse:
        return 8 * rows * source.sparse.columns
    if source.csv is not None:
        listed = map(len, (entry.categories or {}).values())
        columns = len(entry.bounds or ()) + sum(listed)
        sizes = [
            Path(path).stat().st_size for path in readers.table_files(source) if Path(path).exists()
        ]
        return 8 * rows * columns if entry.bounds is not None else sum(sizes)
    return 0


def has_public_rows(entry: DataSet):
    return bool(entry.public_share or entry.source.public_rows)


def many_classes(entry: DataSet):
    """Whether a data set has more than two classes after its steps."""
    chosen = any("binary" in step for step in entry.steps)
    simulated = entry.source.simulate not in (None, "mixture")
    return not (simulated or entry.positive is not None or entry.target or chosen)
