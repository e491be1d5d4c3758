"""Check that the names in experiments' `published`, `claims` and `defects` exist, before anything runs."""

from dp.mechanisms import MECHANISMS
from study import paths
from study.configuration import families, kinds, option_checks, options
from study.configuration import sources as source_files
from study.configuration.experiment import Reading
from study.configuration.experiment_keys import Method
from study.configuration.faults import nearest
from study.configuration.printed_values import expand, look_up
from study.configuration.validation import ConfigError, check_text_numbers, merge, read_yaml


def check(experiments, sources, datasets):
    """Raise ConfigError unless every name in `published`, `claims` and `defects` exists.

    Overlays may add or remove methods and sweeps. So a name is valid if it is in the experiment's file or
    in any overlay in config/.
    """
    files = source_files.experiments(experiments)
    names = _names(experiments, files)
    for name, experiment in experiments.items():
        where = files[name][2] if name in files else lambda parts=(), name=name: name
        if not any(experiment.section(key) for key in ("published", "claims", "defects")):
            continue
        source = experiment.source
        if source not in sources:
            raise ConfigError(
                f"{where()}: source: {source!r} is not known{nearest(source, sources)}"
            )
        for key, entry in sources[source].statements("claims").items():
            for shown in entry.shown_in or ():
                other, _, figure = shown.partition("/")
                if other == name:
                    place = f"{where(['claims', key])}: claims.{key}.shown_in"
                    _known(figure, names[name]["figures"], place, "figure")
        valid = names[name] | {"datasets": datasets}
        read = experiments[experiment.axis()].published if isinstance(experiment, Reading) else {}
        for key, spec in experiment.published.items():
            if read.get(key) != spec:  # entries equal to the main experiment's are checked there
                _comparison(spec, f"{where()}: published.{key}", sources[source], valid)
        for key, entry in experiment.figures.items():
            taken = kinds.FIGURES[entry.kind].options
            for axis in options.named(taken, entry.options, options.PrintedAxis):
                place = f"{where()}: figures.{key}.options.printed_axis"
                for end in "01":
                    _printed(sources[source], f"{axis}/{end}", "number", place)
        for section in ("claims", "defects"):
            stated = sources[source].statements(section)
            for key, entry in experiment.section(section).items():
                place = f"{where([section, key])}: {section}.{key}"
                if key not in stated:
                    raise ConfigError(f"{place}: {source} has no such id{nearest(key, stated)}")
                _statement(entry, place, valid, names, sources[source])


def _names(experiments, files):
    """Experiment -> section -> names that its values, its file or any overlay contain."""
    # Parse only files that contain `settings`, because long files are slow to parse.
    overlays = paths.configuration("*.yaml")
    overlays = [read_yaml(path) for path in overlays if b"settings" in path.read_bytes()]
    names = {}
    for name, experiment in experiments.items():
        if isinstance(experiment, Reading):
            continue
        own, sizes, _ = files.get(name, ({}, {}, None))
        changed = [*sizes.values(), *(_below(overlay, "settings", name) for overlay in overlays)]
        layers = [experiment.values, own, *changed]
        names[name] = {
            key: list(dict.fromkeys(label for values in layers for label in _below(values, key)))
            for key in ("sweeps", "analyses", "tables", "figures", "published")
        }
        names[name]["methods"] = [*experiment.methods, *_labels(_below(own, "methods"))]
        for changes in changed:
            merged = merge(_below(own, "methods"), _below(changes, "methods"))
            names[name]["methods"] += _labels(merged)
    of = {name: experiment.axis() for name, experiment in experiments.items() if name not in names}
    return names | {name: names[axis] for name, axis in of.items()}


def _labels(methods):
    """Labels of all methods, with the members of families, from values not yet validated."""
    labels = []
    for name, method in methods.items():
        vary = _below(method, "vary")
        if not vary:
            labels.append(name)
        elif all(isinstance(values, list) for values in vary.values()):
            label = str(method["label"]) if "label" in method else None
            method = Method.model_construct(vary=vary, label=label)
            labels += [label for label, _ in families.labels(str(name), method)]
    return labels


def _below(value, *keys):
    """The mapping below these keys in values not yet validated."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _known(value, valid, where, what):
    if value is not None and (not isinstance(value, str) or value not in valid):
        raise ConfigError(f"{where}: no {what} {value!r}{nearest(value, list(valid))}")


def _comparison(spec, where, source, valid):
    _known(spec.analysis, valid["analyses"], where, "analysis")
    _known(spec.table, valid["tables"], where, "table")
    cells = not (spec.analysis or spec.table)
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
        _printed(source, item["path"], spec.layout, where)


def _statement(entry, where, valid, names, source):
    if bool(entry.checks) == (entry.not_tested is not None):
        raise ConfigError(f"{where}: needs either checks or not_tested, the reason")
    for number, check in enumerate(entry.checks or ()):
        place = f"{where}.checks[{number}]"
        _known(check.kind, kinds.CHECKS, place, "kind")
        kind = kinds.CHECKS[check.kind]
        needed = kind.inputs.needs == "analysis"
        if needed != (check.analysis is not None or check.table is not None):
            needs = "needs an" if needed else "takes no"
            raise ConfigError(f"{place}: {check.kind} {needs} analysis")
        _known(check.analysis, valid["analyses"], place, "analysis")
        _known(check.table, valid["tables"], place, "table")
        values = check.options | dict.fromkeys({"analysis", "table"} & check.mapping().keys(), "")
        _options(values, kind, f"{place}.options", valid, names, source)


def _options(values, kind, where, valid, names, source):
    file, _, key = where.partition(": ")
    check_text_numbers(values, file, key)
    other = names.get(str(values.get("experiment")), {"methods": []})
    known = {
        options.Method: (valid["methods"], "method"),
        options.Sweep: (valid["sweeps"], "sweep"),
        options.DataSet: (valid["datasets"], "data set"),
        options.Comparison: (valid["published"], "comparison"),
        options.Other: (names, "experiment"),
        options.OtherMethod: (other["methods"], "method"),
        options.Mechanism: (MECHANISMS, "mechanism"),
        options.End: (("smallest", "largest"), "value"),
        options.Axis: (("epsilon", "train_size"), "value"),
        options.Operator: (("=", "!=", ">="), "operator"),
    }
    option_checks.check(
        kind.options, values, known, lambda place, text: ConfigError(f"{where}{place}: {text}")
    )
    for part in options.parts(kind.options, values):
        if part.type is options.Printed:
            _printed(source, part.value, "number", f"{where}{part.place}")
        if part.type is options.Mechanism:
            try:
                MECHANISMS[part.value].check_options(values.get("options") or {})
            except ValueError as error:
                raise ConfigError(f"{where}.options: {error}") from None


def _printed(source, path, layout, where):
    try:
        look_up(source, path, layout)
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{where}: {error.args[0]}") from None
