"""Validates the published documents, and what experiments say about them, before anything runs."""

import inspect
import itertools
from importlib import import_module
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

from dp.data.preparation import STEPS
from dp.mechanisms import MECHANISMS
from study import facts as source_file
from study import paths
from study.configuration import check_options, families, kinds
from study.configuration.config import ConfigError, experiment_files, nearest, read_yaml, validate
from study.configuration.printed_values import expand, look_up
from study.configuration.validation import check_text_numbers, kind_of, merge, wrong_type


def load():
    """Key -> `study.facts.Source` of every file in config/published. Raises ConfigError."""
    sources = {}
    for path in source_file.files().values():
        values = validate(read_yaml(path), "published", str(path))
        if values["key"] != path.stem:
            raise ConfigError(f"{path}: key: must be {path.stem!r}, the file's name")
        for section in ("claims", "defects"):
            ids = [entry["id"] for entry in values[section]]
            if len(set(ids)) < len(ids):
                twice = next(name for name in ids if ids.count(name) > 1)
                raise ConfigError(f"{path}: {section}: duplicate id {twice!r}")
        try:
            values = source_file.with_tables(values, path.parent)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        for name, table in values["tables"].items():
            if isinstance(table, str):
                raise ConfigError(
                    f"{path}: tables.{name}: {table!r} is neither a number nor a .csv file"
                )
        sources[path.stem] = source_file.Source(path.stem, values["short"], values)
    return sources


def files(key):
    """The files that hold a source's facts."""
    path = source_file.files()[key]
    tables = read_yaml(path).get("tables", {}).values()
    return [path, *(path.parent / table for table in tables if isinstance(table, str))]


def check(experiments, sources, datasets):
    """Raise ConfigError unless the `published`, `claims` and `defects` of every experiment name what
    exists: printed values, data sets, methods, analyses, kinds of checks and their options.

    An overlay may add or remove a method or a sweep that they name. If a run lacks it, they are reported as
    not run or not tested. So the names in the experiment's own file and in the overlays in config/, and
    all data sets, are valid too. A check that names a family of methods becomes one check per member.
    """
    files = {path.stem: path for path in experiment_files()}
    names = _names(experiments, files)
    members = {
        name: {family: found["members"] for family, found in each.values["families"].items()}
        for name, each in experiments.items()
        if "families" in each.values
    }
    for name, experiment in experiments.items():
        where = str(files.get(name, name))
        if not any(experiment.values[key] for key in ("published", "claims", "defects")):
            continue
        source = experiment.values.get("source")
        if source not in sources:
            raise ConfigError(f"{where}: source: {source!r} is not known{nearest(source, sources)}")
        valid = names[name] | {"datasets": datasets}
        for key, spec in experiment.published.items():
            _comparison(spec, f"{where}: published.{key}", sources[source], valid)
        for key, entry in experiment.figures.items():
            axis = entry["options"].get("printed_axis")
            for end in "01" if axis else "":
                place = f"{where}: figures.{key}.options.printed_axis"
                _printed(sources[source], f"{axis}/{end}", "number", place)
        for section in ("claims", "defects"):
            stated = sources[source].statements(section)
            for key, entry in experiment.values[section].items():
                place = f"{where}: {section}.{key}"
                if key not in stated:
                    raise ConfigError(f"{place}: {source} has no such id{nearest(key, stated)}")
                _statement(entry, place, valid, names, sources[source])
                if members and "checks" in entry:
                    checks = [_of_members(check, name, members) for check in entry["checks"]]
                    entry["checks"] = list(itertools.chain(*checks))


def _names(experiments, files):
    """Experiment -> section -> valid names: its own, those in its file and in the overlays in config/."""
    overlays = [read_yaml(path) for path in paths.configuration("*.yaml")]
    names = {}
    for name, experiment in experiments.items():
        if "reading" in experiment.values:  # its overlay may leave out what its experiment has
            continue
        found = [experiment.values, read_yaml(files[name]) if name in files else {}]
        found += [_below(overlay, "settings", name) for overlay in overlays]
        names[name] = {
            key: list(dict.fromkeys(label for values in found for label in _below(values, key)))
            for key in ("methods", "sweeps", "analyses", "tables", "published")
        }
        own = found[1]
        for changes in found[2:]:
            names[name]["methods"] += _members(_below(merge(own, changes), "methods"))
        names[name]["methods"] += _members(_below(own, "methods"))
        names[name]["methods"] += experiment.values.get("families", {})
    of = {name: each.axis() for name, each in experiments.items() if name not in names}
    return names | {name: names[axis] for name, axis in of.items()}


def _members(methods):
    """Labels of the members of all families in a file that is not validated."""
    found = []
    for name, method in methods.items():
        vary = _below(method, "vary")
        if vary and all(isinstance(values, list) for values in vary.values()):
            method = {"vary": vary} | ({"label": str(method["label"])} if "label" in method else {})
            found += [label for label, _ in families.labels(str(name), method)]
    return found


def _of_members(check, name, members):
    """The checks that a check with names of families stands for.

    In a list of methods, a family stands for all its members together; in place of a single method, for
    each member in turn, in a check of its own. members: experiment -> family -> its members."""
    parameters, given, single = _parameters(kinds.CHECKS[check["kind"]]), {}, {}
    for option, value in check["options"].items():
        annotation = parameters[option][0]
        if annotation is check_options.Method:
            single[option] = members.get(name, {}).get(value, [value])
        elif annotation is check_options.OtherMethod:
            other = members.get(check["options"].get("experiment"), {})
            single[option] = other.get(value, [value])
        elif annotation == check_options.Methods:
            if not isinstance(value, list):
                value = members.get(name, {}).get(value, value)
            given[option] = families.named(value, members.get(name, {}))
    return [
        check | {"options": check["options"] | given | dict(zip(single, each, strict=True))}
        for each in itertools.product(*single.values())
    ]


def _below(value, *keys):
    """The mapping below these keys in a file that is not validated, {} if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _known(value, valid, where, what):
    if value is not None and (not isinstance(value, str) or value not in valid):
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
        _printed(source, item["path"], spec["layout"], where)


def _statement(entry, where, valid, names, source):
    if ("checks" in entry) == ("not_tested" in entry):
        raise ConfigError(f"{where}: needs either checks or not_tested, the reason")
    for number, check in enumerate(entry.get("checks", ())):
        place = f"{where}.checks[{number}]"
        _known(check["kind"], kinds.CHECKS, place, "kind")
        kind = kinds.CHECKS[check["kind"]]
        needed = kind.inputs.needs == "analysis"
        if needed != ("analysis" in check or "table" in check):
            needs = "needs an" if needed else "takes no"
            raise ConfigError(f"{place}: {check['kind']} {needs} analysis")
        _known(check.get("analysis"), valid["analyses"], place, "analysis")
        _known(check.get("table"), valid["tables"], place, "table")
        given = check["options"] | {key: "" for key in ("analysis", "table") if key in check}
        _options(given, kind, f"{place}.options", valid, names, source)


def _options(given, kind, where, valid, names, source):
    """Refuse options that a check does not take, values of a wrong type, and names that do not exist."""
    parameters = _parameters(kind)
    for option in given:
        _known(option, parameters, where, "option")
    for option, (_, required) in parameters.items():
        if required and option not in given:
            raise ConfigError(f"{where}: the option {option!r} is missing")
    file, _, key = where.partition(": ")
    check_text_numbers(given, file, key)
    other = names.get(str(given.get("experiment")), {"methods": []})
    known = {
        check_options.Method: (valid["methods"], "method"),
        check_options.Sweep: (valid["sweeps"], "sweep"),
        check_options.DataSet: (valid["datasets"], "data set"),
        check_options.Comparison: (valid["published"], "comparison"),
        check_options.Other: (names, "experiment"),
        check_options.OtherMethod: (other["methods"], "method"),
        check_options.Mechanism: (MECHANISMS, "mechanism"),
        check_options.Step: (STEPS, "step"),
        check_options.End: (("smallest", "largest"), "value"),
        check_options.Axis: (("epsilon", "train_size"), "value"),
    }
    for option, value in given.items():
        place = f"{where}.{option}"
        _fits(value, parameters[option][0], known, place)
        if parameters[option][0] is check_options.Printed:
            _printed(source, value, "number", place)
    if "mechanism" in parameters:
        try:
            MECHANISMS[given["mechanism"]].check_options(given.get("options") or {})
        except ValueError as error:
            raise ConfigError(f"{where}.options: {error}") from None


def _parameters(kind):
    """Name -> (annotation, whether it must be given) for each option of a check."""
    function = getattr(import_module(kind.module), kind.function)
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = parameter.annotation
        if parameter.kind is parameter.VAR_KEYWORD:
            (handed_on,) = get_args(annotation)
            found |= {key: (each, False) for key, each in get_type_hints(handed_on).items()}
        elif parameter.kind is parameter.KEYWORD_ONLY:
            required = parameter.default is parameter.empty
            if annotation is parameter.empty:
                annotation = str if name in ("analysis", "table") else type(parameter.default)
            found[name] = (annotation, required)
    return found


def _fits(value, annotation, known, where):
    """Raise ConfigError unless a value has an annotation's type and, if that names things, is `known`."""
    union = get_origin(annotation) in (Union, UnionType)
    expected = []
    for part in get_args(annotation) if union else (annotation,):
        kind = kind_of((get_origin(part) or (part if isinstance(part, type) else str))())
        if kind == kind_of(value):
            if part in known:
                _known(value, *known[part][:1], where, known[part][1])
            for item in value if get_args(part) else ():
                _fits(item, *get_args(part), known, where)
            return
        expected.append(kind)
    wanted = " or ".join(kind for kind in dict.fromkeys(expected) if kind != "null")
    raise ConfigError(f"{where}: {wrong_type(wanted, value)}")


def _printed(source, path, layout, where):
    """Raise ConfigError unless a source prints a number at a path."""
    try:
        look_up(source, path, layout)
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{where}: {error.args[0]}") from None
