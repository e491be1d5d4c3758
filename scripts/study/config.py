"""The configuration: read, merged, validated against schemas and against itself.

Every problem is a `ConfigError`: one sentence with the file, the key and the nearest valid name.
"""

import csv
import inspect
import math
import re
from pathlib import Path

import numpy as np

from dp.data import smallest_training_fold
from dp.fits import FITS
from dp.mechanisms import MECHANISMS
from dp.preparation import STEPS, Table, prepare
from study import canonical, kinds
from study.experiment import Experiment
from study.validation import (
    NAME,
    ConfigError,
    check_options,
    check_text_numbers,
    in_file,
    merge,
    nearest,
    origin,
    problem,
    read_yaml,
    validate,
)

__all__ = ["ConfigError", "load"]

DATASETS = Path("config/datasets.yaml")
EXPERIMENTS = Path("config/experiments")
RULES = Path("workflow/rules")

# Keys of each kind of simulation; a key that its data set would ignore is refused.
SIMULATIONS = {
    "separable": ("rows", "columns", "margin"),
    "unseparable": ("rows", "columns", "band", "flip_probability"),
}


def load(config, files=()):
    """Experiments by name and data sets by name, from Snakemake's merged config.

    files: the configuration files that were merged (`workflow.configfiles`), for messages. Raises
    ConfigError.
    """
    # Read again, because a key that stands twice is lost when Snakemake merges.
    files = {file: read_yaml(file) for file in files}

    def where(path=()):
        return origin(path, files, config)

    config = validate(dict(config), "config", where)
    datasets = _datasets()
    available = {path.stem: path for path in experiment_files()}
    for key in ("experiments", "settings"):
        for name in config[key]:
            if name not in available:
                source = where([key, name] if key == "settings" else [key])
                raise problem(source, key, f"no experiment {name!r}{nearest(name, available)}")
    taken = {"all", "data", *_rule_names()}
    experiments = {}
    for name, path in available.items():
        if not re.search(NAME, name):
            raise problem(path, "", "the file's name may hold letters, digits and underscores only")
        if name in taken:
            raise problem(path, "", f"the name {name!r} is taken by the workflow: rename the file")
        value = read_yaml(path)
        experiments[name] = _experiment(name, value, in_file(path), datasets)
        changes = config["settings"].get(name)
        if changes:

            def where_changed(path=(), name=name):
                return f"{where(['settings', name, *path])}: settings.{name}"

            experiments[name] = _experiment(name, merge(value, changes), where_changed, datasets)
    return config, experiments, datasets


def experiment_files():
    """Files of config/experiments/; a name that begins with a dot or _ is none (a template)."""
    return [path for path in sorted(EXPERIMENTS.glob("*.yaml")) if path.name[0] not in "._"]


def _rule_names():
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(RULES.glob("*.smk")))
    return re.findall(r"^rule (\w+):", text, flags=re.MULTILINE)


def _datasets():
    datasets = validate(read_yaml(DATASETS), "datasets", in_file(DATASETS))
    for name, entry in datasets.items():
        _check_source(name, entry)
        _check_steps(name, entry)
        source = entry["source"]
        if "csv" in source and "rows" not in source:
            source["rows"] = _count_rows(Path(source["csv"]))
    return datasets


def _check_source(name, entry):
    source = entry["source"]
    given = [kind for kind in ("simulate", "sklearn", "csv") if kind in source]
    if len(given) != 1:
        raise problem(DATASETS, f"{name}.source", "needs exactly one of simulate, sklearn and csv")
    (kind,) = given
    needed = SIMULATIONS.get(source.get("simulate"), ())
    for key in needed:
        if key not in source:
            raise problem(DATASETS, f"{name}.source", f"the key {key!r} is missing")
    simulation_keys = {
        "columns",
        "holdout",
        *(key for keys in SIMULATIONS.values() for key in keys),
    }
    allowed = {"rows", *needed, *(["holdout"] if kind == "simulate" else [])}
    for key in sorted(simulation_keys - allowed):
        if source.get(key):
            what = source["simulate"] if kind == "simulate" else kind
            raise problem(DATASETS, f"{name}.source", f"{what} takes no {key!r}")
    keys = {"simulate": (), "sklearn": ("positive",), "csv": ("label", "positive")}[kind]
    for key in ("label", "positive"):
        if key in keys and key not in entry:
            raise problem(DATASETS, name, f"the key {key!r} is missing")
        if key in entry and key not in keys:
            raise problem(DATASETS, name, f"{kind} takes no {key!r}")
    if entry.get("label") in entry.get("bounds", ()):
        raise problem(DATASETS, f"{name}.bounds", f"the label {entry['label']!r} is no feature")


def _check_steps(name, entry):
    """Refuse unknown steps and options, and try the steps on a few rows where columns are known."""
    columns = list(entry.get("bounds", ()))
    if entry["source"].get("simulate"):
        columns = columns or [f"x{k}" for k in range(entry["source"]["columns"])]
    steps = []
    for number, step in enumerate(entry["steps"]):
        ((step_name, options),) = step.items()
        options = options or {}
        key = f"{name}.steps[{number}]"
        if step_name not in STEPS:
            raise problem(DATASETS, key, f"no step {step_name!r}{nearest(step_name, STEPS)}")
        key += f".{step_name}"
        check_text_numbers(options, DATASETS, key)
        _, *parameters = inspect.signature(STEPS[step_name].apply).parameters.values()
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            columns = columns or list(options)
            for column, pair in options.items():
                if not (
                    isinstance(pair, list) and [type(v) in (int, float) for v in pair] == [True] * 2
                ):
                    raise problem(DATASETS, f"{key}.{column}", f"must be two numbers, not {pair!r}")
        else:
            check_options(options, {p.name: None for p in parameters}, DATASETS, key)
            for parameter in parameters:
                if parameter.default is parameter.empty and parameter.name not in options:
                    raise problem(DATASETS, key, f"the key {parameter.name!r} is missing")
        steps.append((step_name, options))
    if not columns:
        return
    if "bounds" in entry:
        steps.insert(0, ("scale_to_bounds", entry["bounds"]))
    X = np.random.default_rng(0).uniform(1, 2, size=(200, len(columns)))
    try:
        prepare(Table(X, np.resize([-1, 1], len(X)), tuple(columns)), steps)
    except (ValueError, TypeError) as error:
        raise problem(DATASETS, name, str(error)) from None


def _count_rows(path):
    """Rows of a CSV without its header; None where it cannot be counted (reading it will say why)."""
    try:
        with path.open(newline="", encoding="utf-8") as handle:
            return max(0, sum(1 for row in csv.reader(handle) if row) - 1)
    except (OSError, UnicodeDecodeError, csv.Error):
        return None


def _experiment(name, value, where, datasets):
    """Validated and resolved: every default filled in, every number in canonical form.

    where: a function from a key's parts to the name of the file that it comes from.
    """
    value = validate(value, "experiment", where)

    def fail(key, text):
        return problem(where(re.sub(r"\[.*", "", key).split(".")), key, text)

    def known(key, given, valid, what):
        for item in given:
            if item not in valid:
                raise fail(key, f"no {what} {item!r}{nearest(item, list(valid))}")

    known("datasets", value["datasets"], datasets, "data set")
    for label, method in value["methods"].items():
        key = f"methods.{label}"
        method.setdefault("mechanism", label)
        known(key, [method["mechanism"]], MECHANISMS, "mechanism")
        mechanism = MECHANISMS[method["mechanism"]]
        check_text_numbers(method["options"], where(key.split(".")), f"{key}.options")
        method["private"] = mechanism.private
        method["fit"] = mechanism.fit and _fit(mechanism.fit, method["options"])
        lam = method.setdefault("lambda", value["lambda"])
        if lam == "published":
            if value.get("lambda_published") is None:
                raise fail(key, "lambda is 'published' but lambda_published is not set")
            method["lambda"] = value["lambda_published"]
        if lam == "tuned" and "tune" not in value:
            raise fail(key, "lambda is 'tuned' but there is no 'tune' section")
    for key, whole in (("train_sizes", True), ("epsilons", False)):
        for sweep_name, sweep in value["sweeps"].items():
            sweep[key] = canonical.sequence(sweep[key], whole=whole)
            if not sweep[key]:
                raise fail(f"sweeps.{sweep_name}.{key}", "the range is empty: 'from' exceeds 'to'")
    for section in ("sweeps", *kinds.SECTIONS):
        for entry_name, entry in value[section].items():
            key = f"{section}.{entry_name}"
            known(f"{key}.datasets", entry.get("datasets", ()), value["datasets"], "data set")
            known(f"{key}.methods", entry.get("methods", ()), value["methods"], "method")
            if section != "sweeps":
                known(f"{key}.kind", [entry["kind"]], kinds.SECTIONS[section], "kind")
                kind = kinds.SECTIONS[section][entry["kind"]]
                source = where([section, entry_name])
                check_text_numbers(entry["options"], source, f"{key}.options")
                check_options(entry["options"], kind.options, source, f"{key}.options")
                entry["options"] = kind.options | entry["options"]
                needed = {"cells": "sweep", "analysis": "analysis"}.get(kind.inputs)
                for other, entries in (("sweep", "sweeps"), ("analysis", "analyses")):
                    if other == needed and other not in entry:
                        raise fail(key, f"the key {other!r} is missing")
                    if other != needed and other in entry:
                        raise fail(key, f"{entry['kind']} takes no {other!r}")
                    known(f"{key}.{other}", filter(None, [entry.get(other)]), value[entries], other)
                if kind.inputs == "tuning" and "tune" not in value:
                    raise fail(key, f"{entry['kind']} needs a 'tune' section")
    if "tune" in value and not value["tune"]["grid"]["low"] < value["tune"]["grid"]["high"]:
        raise fail("tune.grid", "low must be less than high")
    experiment = Experiment(name, value)
    _check_sizes(experiment, fail, datasets)
    _check_entries(experiment, fail)
    _check_mechanisms(experiment, fail)
    return experiment


def _fit(name, options):
    """The shared non-private fit of a method: its name, and those of the options that concern it."""
    parameters = inspect.signature(FITS[name]).parameters
    return {"name": name, "options": {key: v for key, v in options.items() if key in parameters}}


def _check_sizes(experiment, fail, datasets):
    for sweep_name, sweep in experiment.sweeps.items():
        for dataset in sweep.get("datasets", experiment.datasets):
            rows = datasets[dataset]["source"].get("rows")
            if rows is None:
                continue
            if rows < experiment.folds:
                raise fail(
                    "folds", f"{dataset} has {rows} rows, fewer than {experiment.folds} folds"
                )
            limit = smallest_training_fold(rows, experiment.folds)
            largest = sweep["train_sizes"][-1]
            if largest > limit:
                raise fail(
                    f"sweeps.{sweep_name}.train_sizes",
                    f"{largest} is more than the {limit} training rows of {dataset} "
                    f"({rows} rows in {experiment.folds} folds)",
                )
    if "tune" in experiment.values:
        folds = experiment.tune["folds"]
        for dataset in experiment.datasets:
            source = datasets[dataset]["source"]
            rows = source.get("holdout") or source.get("rows")
            if rows is not None and rows < folds:
                raise fail("tune.folds", f"{dataset} has {rows} rows to tune on, not {folds} folds")


def _check_entries(experiment, fail):
    """Refuse a table or figure of cells whose data sets and methods its sweep does not run."""
    for section in kinds.SECTIONS:
        for name, entry in experiment.values[section].items():
            if "sweep" in entry and not experiment.entry_cells(entry):
                text = f"the sweep {entry['sweep']!r} runs none of its data sets and methods"
                raise fail(f"{section}.{name}", text)


def _check_mechanisms(experiment, fail):
    """Ask every mechanism for its guarantee once per cell's parameters: it checks all of them."""
    seen = set()
    for cell in experiment.cells():
        if cell[1:] in seen:
            continue
        seen.add(cell[1:])
        method = experiment.methods[cell.method]
        mechanism = MECHANISMS[method["mechanism"]]
        lam = method["lambda"] if method["lambda"] != "tuned" else 1.0
        try:
            mechanism.check_options(method["options"])
            mechanism.guarantee(
                cell.train_size,
                10,
                epsilon=math.inf if not mechanism.private else cell.epsilon,
                delta=method["delta"],
                lam=lam,
                **method["options"],
            )
        except ValueError as error:
            raise fail(f"methods.{cell.method}", str(error)) from None
        except (TypeError, LookupError, ArithmeticError, AttributeError) as error:
            given = ", ".join(f"{key}: {value}" for key, value in method["options"].items())
            text = f"{method['mechanism']} cannot run with {given or 'its defaults'} ({error})"
            raise fail(f"methods.{cell.method}", text) from None
