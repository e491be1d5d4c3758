"""Read and merge the configuration, and validate it. Every problem raises a `ConfigError`."""

import re
from pathlib import Path

from dp.mechanisms import MECHANISMS
from study import paths
from study.configuration import kinds, readings, sizes, sources
from study.configuration.data_set_keys import DataSets, Files
from study.configuration.faults import nearest
from study.configuration.resolve import experiment
from study.configuration.run_keys import Configuration
from study.configuration.section import NAME
from study.configuration.validation import (
    ConfigError,
    check_text_numbers,
    follow,
    in_file,
    merge,
    origin,
    problem,
    read_yaml,
    validate,
)
from study.data import origins

__all__ = ["ConfigError", "check_own_files", "load", "merge", "nearest", "read_yaml", "validate"]

SHIPPED = paths.HOME / "config"
RULES = paths.HOME / "workflow/rules"


def load(config, files=(), other="--config", only=None, runs=True):
    """(config, experiments by name, data sets by name) from Snakemake's merged config.

    Missing keys get the shipped values, but a study that lists no experiments runs all its own. only: the
    experiments to read, as `sources.experiments` returns them; None for all. Error messages name the
    merged file (`workflow.configfiles`) that has the key, or `other`. runs: whether the experiments may run
    here, so that mechanisms must accept their settings.
    """
    # Read the files again, because Snakemake's merge hides duplicate keys.
    files, merged = {file: read_yaml(file) for file in files}, config

    def where(path=()):
        return origin(path, files, merged, other)

    _check_together(files, where)
    _import_mechanisms()
    _import_kinds()
    available = sources.experiment_files()
    shipped = read_yaml(SHIPPED / "config.yaml")
    own = _own(available)
    merged = _over(shipped | ({"experiments": own} if own else {}), config)
    config = validate(merged, Configuration, where)
    datasets, config.files = _datasets()
    for key, names in (("experiments", config.experiments), ("settings", config.settings)):
        for name in names:
            if name not in available:
                source = where([key, name] if key == "settings" else [key])
                raise problem(source, key, f"no experiment {name!r}{nearest(name, available)}")
    configured = sources.experiments() if only is None else only
    chosen = [name for name, taken in config.sizes.items() if taken]
    for name in chosen:
        if not any(name in own_sizes for _, own_sizes, _ in configured.values()):
            every = configured if only is None else sources.experiments()
            known = dict.fromkeys(name for _, own_sizes, _ in every.values() for name in own_sizes)
            if name in known:
                continue
            text = f"no experiment has the size {name!r}{nearest(name, known)}"
            raise problem(where(["sizes", name]), "sizes", text)
    taken = {"all", "data", *_rule_names()}
    experiments, read = {}, {}
    for name in configured:
        path = available[name]
        if not re.search(NAME, name):
            raise problem(path, "", "the file's name may hold letters, digits and underscores only")
        if name in taken:
            raise problem(path, "", f"the name {name!r} is taken by the workflow: rename the file")
        value, own, origin_of = configured[name]
        experiments[name] = experiment(name, value, origin_of, datasets, runs=runs)
        layers = [(in_file(f"{path}: sizes.{size}"), own[size]) for size in chosen if size in own]
        if config.settings.get(name):

            def in_settings(path=(), name=name):
                return f"{where(['settings', name, *path])}: settings.{name}"

            layers.append((in_settings, config.settings[name]))
        if layers:
            gone, file = set(), experiments[name]
            for _, changes in layers:
                value = merge(value, changes)
                methods = changes.get("methods")
                methods = methods if isinstance(methods, dict) else {}
                gone |= {key for key, method in methods.items() if method is None}
            origin_of = _last(layers)
            experiments[name] = experiment(name, value, origin_of, datasets, gone, runs)
            experiments[name].smaller = sizes.smaller(experiments[name], file)
        read |= readings.derived(experiments[name], value, origin_of, datasets, runs)
    return config, experiments | read, datasets


def _own(available):
    return [name for name, path in available.items() if not path.is_relative_to(SHIPPED)]


def listed(config, available):
    """The experiments of a run without targets, and those in `settings`; None if invalid."""
    names = config.get("experiments", _own(available))
    settings = config.get("settings", {})
    if not isinstance(names, list) or not names or not isinstance(settings, dict):
        return None
    wanted = {*map(str, [*names, *settings])}
    return wanted if wanted <= available.keys() else None


def _last(layers):
    """A function from a key's parts to the place of the layer that sets the key's longest prefix.

    layers: pairs (where, changes). If several layers tie, the last one is taken.
    """

    def where(path=()):
        depths = [(follow(changes, path)[1], k) for k, (_, changes) in enumerate(layers)]
        return layers[max(depths)[1]][0](path)

    return where


def _check_together(files, where):
    """Refuse overlays that exclude each other; a later error would not name them."""
    for values in files.values():
        excluded = values.get("not_with")
        for other in files:
            if isinstance(excluded, list) and Path(other).name in excluded:
                text = f"does not combine with {Path(other).name}: give one of them (--configfile)"
                raise problem(where(["not_with"]), "", f"{text}, and the other to its own run")


def _over(defaults, values):
    """Merge as Snakemake does: mappings are merged, other values are replaced, and null is a value."""
    both = {**defaults, **values}
    for key in defaults.keys() & values.keys():
        if isinstance(defaults[key], dict) and isinstance(values[key], dict):
            both[key] = _over(defaults[key], values[key])
    return both


def _import_mechanisms():
    try:
        added = MECHANISMS.added()
    except ValueError as error:
        raise ConfigError(str(error)) from None
    for name in added:
        try:
            MECHANISMS[name]
        except Exception as error:
            file = f"{MECHANISMS.module(name).replace('.', '/')}.py"
            raise ConfigError(f"{file}: {type(error).__name__}: {error}") from None


def _import_kinds():
    try:
        kinds.load_all()
    except ImportError as error:
        raise ConfigError(str(error)) from None


def _rule_names():
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(RULES.glob("*.smk")))
    return re.findall(r"^rule (\w+):", text, flags=re.MULTILINE)


def _datasets():
    files, datasets, places = {}, {}, {}
    for path in paths.configuration("files.yaml"):
        files |= validate(read_yaml(path), Files, path)
    for path in paths.configuration("datasets.yaml"):
        own = validate(read_yaml(path), DataSets, path)
        datasets |= own
        places |= dict.fromkeys(own, path)
    for name, entry in datasets.items():
        for number, step in enumerate(entry.steps):
            for step_name, options in step.items():
                key = f"{name}.steps[{number}].{step_name}"
                check_text_numbers(options or {}, places[name], key)
        try:
            origins.resolve(name, entry, files)
        except ValueError as error:
            raise _in_entry(name, error) from None
    return datasets, files


def _in_entry(name, error):
    """The ConfigError for an error in a data set's entry. The error's text may begin with the key."""
    file = next(f for f in reversed(paths.configuration("datasets.yaml")) if name in read_yaml(f))
    key, colon, text = str(error).partition(": ")
    if colon and " " not in key.partition(".")[0]:
        return problem(file, f"{name}.{key}", text)
    return problem(file, name, str(error))


def check_own_files(experiments, datasets, files, others=()):
    """Raise ConfigError if a data set of `experiments` or in `others` lacks a file or column."""
    used = {name for experiment in experiments.values() for name in experiment.all_datasets()}
    for name in sorted(used.union(others) & datasets.keys()):
        try:
            origins.check_own_files(datasets[name], files)
        except ValueError as error:
            raise _in_entry(name, error) from None
