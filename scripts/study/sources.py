"""The published documents and what experiments say about them, validated before anything runs."""

import inspect
from importlib import import_module
from pathlib import Path

from checks import source as source_file
from study import kinds
from study.config import EXPERIMENTS, ConfigError, nearest, read_yaml, validate
from study.published import expand, look_up


def load():
    """Key -> `checks.source.Source` of every file in config/published. Raises ConfigError."""
    sources = {}
    for path in sorted(source_file.FOLDER.glob("*.yaml")):
        values = validate(read_yaml(path), "published", str(path))
        if values["key"] != path.stem:
            raise ConfigError(f"{path}: key: must be {path.stem!r}, the file's name")
        for section in ("claims", "defects"):
            ids = [entry["id"] for entry in values[section]]
            if len(set(ids)) < len(ids):
                twice = next(name for name in ids if ids.count(name) > 1)
                raise ConfigError(f"{path}: {section}: the id {twice!r} stands twice")
        try:
            values = source_file.with_tables(values)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        for name, table in values["tables"].items():
            if isinstance(table, str):
                raise ConfigError(f"{path}: tables.{name}: {table!r} is no number and no .csv file")
        sources[path.stem] = source_file.Source(path.stem, values["short"], values)
    return sources


def files(key):
    """The files that hold a source's facts."""
    path = source_file.FOLDER / f"{key}.yaml"
    tables = read_yaml(path)["tables"].values()
    return [str(path), *(str(source_file.FOLDER / t) for t in tables if isinstance(t, str))]


def check(experiments, sources, datasets):
    """Raise ConfigError unless the `published`, `claims` and `defects` of every experiment name what
    exists: printed values, data sets, methods, analyses, kinds of checks and their options.

    An overlay may take a method or data set away that a comparison names: it is then reported as
    not run. So the names of the experiment's own file, and all data sets, are valid too.
    """
    for name, experiment in experiments.items():
        where = f"{EXPERIMENTS}/{name}.yaml"
        if not any(experiment.values[key] for key in ("published", "claims", "defects")):
            continue
        source = experiment.values.get("source")
        if source not in sources:
            raise ConfigError(f"{where}: source: {source!r} is not known{nearest(source, sources)}")
        own = read_yaml(where) if Path(where).exists() else {}
        valid = {
            key: [*dict.fromkeys([*experiment.values[key], *own.get(key, ())])]
            for key in ("methods", "analyses", "tables")
        }
        valid["datasets"] = datasets
        for key, spec in experiment.published.items():
            _comparison(spec, f"{where}: published.{key}", sources[source], valid)
        for section in ("claims", "defects"):
            stated = sources[source].statements(section)
            for key, entry in experiment.values[section].items():
                place = f"{where}: {section}.{key}"
                if key not in stated:
                    raise ConfigError(f"{place}: {source} has no such id{nearest(key, stated)}")
                _statement(entry, place, valid)


def _known(value, valid, where, what):
    if value is not None and value not in valid:
        raise ConfigError(f"{where}: no {what} {value!r}{nearest(value, list(valid))}")


def _comparison(spec, where, source, valid):
    _known(spec.get("analysis"), valid["analyses"], where, "analysis")
    _known(spec.get("table"), valid["tables"], where, "table")
    cells = not (spec.get("analysis") or spec.get("table"))
    try:
        items = list(expand(spec))
    except (KeyError, ValueError, IndexError) as error:
        raise ConfigError(f"{where}.rows: a path has an unknown placeholder ({error})") from None
    for item in items:
        _known(item["dataset"], valid["datasets"], where, "data set")
        _known(item["method"], valid["methods"], where, "method")
        if cells and None in (
            item["dataset"],
            item["method"],
            item["train_size"],
        ):
            raise ConfigError(f"{where}.rows: {item['path']}: needs dataset, method and train_size")
        try:
            look_up(source, item["path"], spec["layout"])
        except KeyError as error:
            raise ConfigError(f"{where}: {error.args[0]}") from None
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from None


def _statement(entry, where, valid):
    if ("checks" in entry) == ("not_tested" in entry):
        raise ConfigError(f"{where}: needs either checks or not_tested, the reason")
    for number, check in enumerate(entry.get("checks", ())):
        place = f"{where}.checks[{number}]"
        _known(check["kind"], kinds.CHECKS, place, "kind")
        kind = kinds.CHECKS[check["kind"]]
        if (kind.inputs == "analysis") != ("analysis" in check or "table" in check):
            needs = "needs an" if kind.inputs == "analysis" else "takes no"
            raise ConfigError(f"{place}: {check['kind']} {needs} analysis")
        _known(check.get("analysis"), valid["analyses"], place, "analysis")
        _known(check.get("table"), valid["tables"], place, "table")
        function = getattr(import_module(kind.module), kind.function)
        given = check["options"] | {key: "" for key in ("analysis", "table") if key in check}
        parameters = inspect.signature(function).parameters
        free = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        cells = ("sweep", "datasets", "methods", "train_size", "epsilon") if free else ()
        options = [
            *(k for k, p in parameters.items() if k != "results" and p.kind is not p.VAR_KEYWORD),
            *cells,
        ]
        for option in given:
            _known(option, options, place, "option")
        for option, parameter in parameters.items():
            required = parameter.default is parameter.empty and parameter.kind is not (
                parameter.VAR_KEYWORD
            )
            if required and option != "results" and option not in given:
                raise ConfigError(f"{place}: the option {option!r} is missing")
