"""Check configured data sets: files, addresses, labels and numbers of rows."""

import contextlib
import glob
import hashlib
import inspect
import urllib.parse
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from dp_release import rows as releasing
from dp_release.formats import PLAIN, Format
from study import paths
from study.configuration.faults import nearest
from study.data import readers
from study.data.preparation import STEPS, Table
from study.data.readers_table import is_parquet, is_pickle

FILES = paths.HOME / "config/files.yaml"
KINDS = ("simulate", "sklearn", "csv", "idx", "sparse")
# Kind of source -> keys that name its files.
NAMED_FILES = {
    "idx": ("images", "labels", "test_images", "test_labels"),
    "sparse": ("vectors", "topics"),
}


def resolve(name, entry, files):
    """Replace the file names and addresses in a source by paths, and add the addresses to `files`.

    files: name -> {urls, sha256}, from config/files.yaml. Raises a ValueError, whose text begins with
    the key.
    """
    source = entry["source"]
    _check_kind(source)
    _check_labels(entry)
    _check_columns(entry)
    _check_mixture(source)
    for number, step in enumerate(entry["steps"]):
        ((step_name, options),) = step.items()
        problem = step_problem(step_name, options or {})
        if problem:
            raise ValueError(f"steps[{number}]: {problem}")
    for kind, key, file in _named_files(source):
        if file in files:
            source[kind][key] = f"{paths.RAW}/{file}"
        elif "/" not in file:
            raise ValueError(
                f"source.{kind}.{key}: no file {file!r} in {FILES}{nearest(file, files)} "
                f"(your own file is given with its folder)"
            )
    if "csv" in source:
        _resolve_csv(name, source, files)


def _named_files(source):
    return [
        (kind, key, source[kind][key])
        for kind, keys in NAMED_FILES.items()
        for key in keys
        if key in source.get(kind, {})
    ]


def _resolve_csv(name, source, files):
    csv_files = [source["csv"]] if isinstance(source["csv"], str) else source["csv"]
    downloads = [file for file in csv_files if file in files or "://" in file]
    if "sha256" in source and not (len(csv_files) == 1 and "://" in csv_files[0]):
        raise ValueError("source.sha256: is for a file given by its address (https://...)")
    tables = [path for file in csv_files for path in _places(name, file, source, files)]
    source["csv"] = tables[0] if len(tables) == 1 else tables
    _check_format(source, files)
    if "rows" not in source and not downloads:
        with contextlib.suppress(ValueError):
            rows = readers.count_rows(source)
            if rows:
                source["rows"] = rows


def _places(name, file, source, files):
    """The paths that a name, an address or a pattern stands for. An address is added to `files`."""
    if file in files:
        return [f"{paths.RAW}/{file}"]
    if "://" in file:
        own = f"{name}-{Path(urllib.parse.urlsplit(file).path).name or 'data'}"
        files[own] = {"urls": [file], "own": True}
        if "sha256" in source:
            files[own]["sha256"] = source["sha256"]
        return [f"{paths.RAW}/{own}"]
    # `Path.glob` refuses absolute patterns. A pattern without matches is returned, so messages name it.
    return [file] if Path(file).exists() else sorted(glob.glob(file)) or [file]  # noqa: PTH207


def _check_format(source, files):
    """Add a pickle's checksum to the source; refuse text-file options for files that are not text."""
    tables = readers.table_files(source)
    for path in tables:
        if is_pickle(path):
            pinned = files.get(Path(path).name, {}).get("sha256") if paths.RAW in path else None
            if pinned is None or len(tables) > 1:
                raise ValueError(
                    f"source.csv: {path!r} is a pickle, which runs as a program: it is read alone, and "
                    f"only under a SHA-256, of {FILES} or beside its address; or save the table as CSV"
                )
            source["sha256"] = pinned
        for key in readers.TEXT:
            if key in source and (is_pickle(path) or is_parquet(path)):
                raise ValueError(f"source.{key}: is for text, which {path!r} is not")


def source_files(source):
    """Key -> path of each file from which a data set is read."""
    if "csv" in source:
        tables = readers.table_files(source)
        return {f"csv[{k}]" if len(tables) > 1 else "csv": path for k, path in enumerate(tables)}
    return {f"{kind}.{key}": path for kind, key, path in _named_files(source)}


def own_files(source, files):
    """Key -> path of each file that must exist, because it is not downloaded."""
    downloads = {f"{paths.RAW}/{name}" for name in files}
    return {key: path for key, path in source_files(source).items() if path not in downloads}


def check_bounds(entry):
    """Raise ValueError, as `resolve` does, if bounds are to be found, which only a release does."""
    stated = {"target": entry["target"]["bounds"]} if "target" in entry else {}
    for name, pair in (entry.get("bounds", {}) | stated).items():
        if isinstance(pair, dict):
            raise ValueError(
                f"bounds: {name!r} has `find`, which a release pays for: a benchmark takes [low, high]"
            )


def check_own_files(entry, files):
    """Raise ValueError, as `resolve` does, if one of the source's own files or a column is missing."""
    check_bounds(entry)
    for key, path in own_files(entry["source"], files).items():
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


def _check_kind(source):
    if sum(kind in source for kind in KINDS) != 1:
        raise ValueError(f"source: needs exactly one of {', '.join(KINDS[:-1])} and {KINDS[-1]}")
    for key in (*readers.TEXT, "sha256"):
        if key in source and "csv" not in source:
            raise ValueError(f"source.{key}: is for 'csv' only")
    try:
        Format.of(source)
    except ValueError as error:
        raise ValueError(f"source.{error}") from None


def _check_labels(entry):
    """Check that an entry has two classes (`positive`), named classes, or a numeric target."""
    if "target" in entry:
        for key in ("label", "positive", "classes"):
            if key in entry:
                raise ValueError(f"has both 'target' (a number) and {key!r} (classes); keep one")
        linear = entry["source"].get("simulate") == "linear"
        if not linear and not {"csv", "sklearn"} & entry["source"].keys():
            raise ValueError("target: is for 'csv', 'sklearn' and `simulate: linear` only")
        bundled = entry["source"].get("sklearn")
        if bundled and bundled not in readers.BUNDLED_OPTIONS:
            raise ValueError(f"target: scikit-learn's {bundled} has classes; use 'positive'")
        bounds = entry["target"]["bounds"]
        low, high = (0, 1) if isinstance(bounds, dict) else bounds  # a release finds them
        if not low < high:
            raise ValueError(f"target.bounds: {low} is not below {high}")
        if entry["target"].get("counts") and (low or {"log", "scaled"} & entry["target"].keys()):
            raise ValueError("target.counts: counts start at 0, and have no `log` and no `scaled`")
        if any("binary" in step for step in entry["steps"]):
            raise ValueError("steps: 'binary' chooses among classes, and the target is a number")
        return
    if entry["source"].get("sklearn") in readers.BUNDLED_OPTIONS:
        name = entry["source"]["sklearn"]
        raise ValueError(f"scikit-learn's {name} is learnt by regression: use 'target'")
    if entry["source"].get("simulate") == "linear":
        raise ValueError("the key 'target' is missing: its name and bounds, to which it is clipped")
    if "simulate" in entry["source"]:
        return
    if "positive" in entry and "classes" in entry:
        raise ValueError("has both 'positive' (two classes) and 'classes' (more); keep one")
    known = "positive" in entry or "classes" in entry
    if not known and entry["source"].get("sklearn") not in readers.BUNDLED_CLASSES:
        raise ValueError(
            "the key 'positive' is missing (the label that becomes +1; or 'classes', the names of "
            "more than two)"
        )


def _check_columns(entry):
    source = entry["source"]
    for key in ("categories", "missing"):
        if key in entry and "csv" not in source:
            raise ValueError(f"{key}: {'are' if key == 'categories' else 'is'} for 'csv' only")
    if "csv" not in source:
        return
    label = readers.label_column(entry)
    if label is None:
        raise ValueError("the key 'label' is missing (or 'target', a column of numbers)")
    for key in ("bounds", "categories"):
        if label in entry.get(key, {}):
            raise ValueError(f"{key}: the label {label!r} is no feature")
    both = set(entry.get("bounds", {})) & set(entry.get("categories", {}))
    if both:
        raise ValueError(f"categories: {min(both)!r} has bounds too; a column is one or the other")
    rules = entry.get("missing", {})
    for column in rules:
        problem = _missing_problem(entry, column, *readers.missing_rule(rules, column))
        if problem:
            raise ValueError(f"missing.{column}: {problem}")


def _missing_problem(entry, column, codes, value):
    """An error message, or None, about a column's codes and the value that replaces missing cells."""
    bounds, categories = entry.get("bounds"), entry.get("categories", {})
    stated = {**categories, readers.label_column(entry): readers.listed_labels(entry)}
    for name in stated if column == "*" else {column} & stated.keys():
        own, _ = readers.missing_rule(entry["missing"], name)
        try:
            releasing.is_missing(own, PLAIN, stated[name])
        except ValueError as error:
            return str(error)
    if value is None:
        return None
    if column in categories:
        known = list(map(str, categories[column]))
        if value == "drop" and "drop" in known:
            return "'drop' is a category here, and rows to be dropped: rename the category"
        if value != "drop" and str(value) not in known:
            return f"{value!r} is neither 'drop' nor a listed category{nearest(value, known)}"
    elif column == "*" and value != "drop":
        return f"every other column takes 'drop' alone, not {value!r}"
    elif "target" in entry or column not in ("*", entry["label"]):
        if bounds is not None and column not in (*bounds, readers.label_column(entry)):
            return f"no such column is read{nearest(column, [*bounds, *categories])}"
        if value != "drop" and isinstance(value, str):
            return f"must be 'drop' or a number, not {value!r}"
    return None


def _check_mixture(source):
    if source.get("simulate") != "mixture":
        for key in ("components", "public_rows", "public_shift"):
            if key in source:
                raise ValueError(f"source.{key}: is for `simulate: mixture` only")
        return
    for key in ("rows", "components"):
        if key not in source:
            raise ValueError(f"source: the key {key!r} is missing")
    columns = len(source["components"][0]["mean"])
    for number, component in enumerate(source["components"]):
        for key in ("mean", "deviation"):
            if len(component[key]) != columns:
                raise ValueError(
                    f"source.components[{number}].{key}: has {len(component[key])} values, not "
                    f"{columns}"
                )
    if len(source.get("public_shift", [0] * columns)) != columns:
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


def prepared_rows(entry):
    """The number of private training rows after preparation; None if not configured."""
    selects = any(STEPS[name].selects for step in entry["steps"] for name in step)
    selects = selects or readers.drops(entry)
    source = entry["source"]
    rows = entry.get("rows") if selects else source.get("first", source.get("rows"))
    return rows and rows - round(entry.get("public_share", 0) * rows)


def public_facts(entry):
    """The bounds, columns and classes that the preparation will record, as far as they are known now.

    If the columns' names are only in the file, or a step is fitted on rows, ten columns and a bound of 1
    are assumed.
    """
    source = entry["source"]
    classes = entry.get("classes") or [each["class"] for each in source.get("components", ())]
    if not classes and not {"positive", "target"} & entry.keys():
        classes = readers.BUNDLED_CLASSES.get(source.get("sklearn"), ())
    if any("binary" in step for step in entry["steps"]):
        classes = ()
    try:
        table = _stand_in(entry)
    except ValueError:  # the preparation reports unknown names and too few rows
        table = None
    if table is None or not np.isfinite(table.bound):
        table = Table(None, None, tuple(range(10)), bound=1.0)
    own = table.coordinate_bound < table.bound
    return {
        "bound": table.bound,
        "coordinate_bound": table.coordinate_bound if own else None,
        "column_bounds": list(table.column_bounds) or None,
        "blocks": list(map(list, table.blocks)) or None,
        "columns": table.columns,
        "labels": dict(enumerate(classes)),
        **({"target": entry["target"]} if "target" in entry else {}),
    }


def _stand_in(entry):
    """A row of ones after all steps that do not select rows; None if columns have no names."""
    source, steps = entry["source"], [*entry["steps"]]
    constants = next((step[key] for step in steps for key in step if "constants" in key), ())
    named = tuple(source.get("features") or entry.get("bounds") or constants)
    if "simulate" in source:
        number = source.get("columns") or len(source["components"][0]["mean"])
        named = tuple(f"x{k}" for k in range(number))
    if "sparse" in source:
        named = tuple(f"term_{k}" for k in range(source["sparse"]["columns"]))
    if not (named or "bounds" in entry) or "*" in named:
        return None
    groups = readers.one_hot_columns(entry)
    columns = (*named, *(column for group in groups for column in group))
    table = Table(np.ones((1, len(columns))), np.ones(1, np.int8), columns, groups=groups)
    if "bounds" in entry:
        steps.insert(0, {"scale_to_bounds": entry["bounds"]})
    for name, options in (item for step in steps for item in step.items()):
        if not STEPS[name].selects:
            drawn = {"rng": np.random.default_rng(0)} if STEPS[name].random else {}
            table = STEPS[name].apply(table, **(options or {}), **drawn)
    return table


def data_bytes(entry):
    """Bytes of all rows as floats; 0 if the configuration does not determine them.

    A table's columns are the listed numbers and categories. If no numbers are listed, the result is the
    files' size, because a number and its delimiter take about as much as a float, eight bytes.
    """
    source = entry["source"]
    rows = source.get("rows", 0) + source.get("holdout", 0) + source.get("public_rows", 0)
    if "simulate" in source:
        rows *= source.get("data_replicates", 1)
        return 8 * rows * (source.get("columns") or len(source["components"][0]["mean"]))
    if "sparse" in source:
        return 8 * rows * source["sparse"]["columns"]
    if "csv" in source:
        listed = map(len, entry.get("categories", {}).values())
        columns = len(entry.get("bounds", ())) + sum(listed)
        sizes = [
            Path(path).stat().st_size for path in readers.table_files(source) if Path(path).exists()
        ]
        return 8 * rows * columns if "bounds" in entry else sum(sizes)
    return 0


def has_public_rows(entry):
    return "public_share" in entry or entry["source"].get("public_rows", 0) > 0


def many_classes(entry):
    """Whether a data set has more than two classes after its steps."""
    chosen = any("binary" in step for step in entry["steps"])
    simulated = entry["source"].get("simulate", "mixture") != "mixture"
    return not (simulated or {"positive", "target"} & entry.keys() or chosen)
