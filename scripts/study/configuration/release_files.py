"""Read release files, config/releases/<name>.yaml, and find their data sets."""

from pathlib import Path

from study import paths
from study.configuration.data_set_keys import DataSets
from study.configuration.faults import nearest
from study.configuration.release_keys import ReleaseRequest
from study.configuration.validation import ConfigError, problem, read_yaml, validate


def files():
    """Release -> its file. A study's file replaces a shipped file of the same name."""
    return {path.stem: path for path in paths.configuration("releases/*.yaml")}


def of_study():
    """Release -> its file, of the releases that the study in this folder asks for."""
    found = sorted(Path("config/releases").glob("*.yaml")) if paths.in_study() else []
    return {path.stem: path for path in found}


def read(name):
    """(a release's file, its `ReleaseRequest`). Raises ConfigError."""
    known = files()
    if name not in known:
        text = f"no release {name!r}{nearest(name, known)}"
        raise ConfigError(f"config/releases: {text}" if known else "config/releases: there is none")
    return known[name], validate(read_yaml(known[name]), ReleaseRequest, known[name])


def data_sets():
    """Name -> (file, entry) of every data set. An entry has `steps` only if the file states them."""
    entries = {}
    for path in paths.configuration("datasets.yaml"):
        raw = read_yaml(path)
        for key, dataset in validate(raw, DataSets, path).items():
            if "steps" not in raw[key]:
                dataset.steps = []
            entries[key] = path, dataset
    return entries


def entry(name, where):
    """(file, entry) of a data set."""
    entries = data_sets()
    if name not in entries:
        raise problem(where, "data", f"no data set {name!r}{nearest(name, entries)}")
    return entries[name]


def downloads():
    return {key for path in paths.configuration("files.yaml") for key in read_yaml(path)}


def download(name):
    """[path of a release's rows] if a job downloads them; otherwise []."""
    rows = _rows(name)
    return [f"{paths.RAW}/{rows}"] if rows in downloads() else []


def has_rows(name):
    """Whether a release's file of rows is there."""
    rows = _rows(name)
    return rows is not None and Path(*download(name) or [rows]).expanduser().is_file()


def _rows(name):
    """What a release's data set names as its file of rows; None if the configuration is invalid."""
    try:
        file, values = read(name)
        rows = entry(values.data, file)[1].source.csv
    except ConfigError:  # the job of the release reports this error
        return None
    return rows if isinstance(rows, str) else None
