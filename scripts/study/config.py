"""The configuration: read, merged, validated against schemas and against itself.

Every problem is a `ConfigError`: one sentence with the file, the key and the nearest valid name.
"""

import math
import re
from pathlib import Path

from dp.data import simulation_rows, smallest_training_fold
from dp.fits import fit_options
from dp.mechanisms import MECHANISMS
from study import canonical, data_sources, kinds, printed, published
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

__all__ = ["ConfigError", "load", "merge", "nearest", "read_yaml", "validate"]

DATASETS = Path("config/datasets.yaml")
EXPERIMENTS = Path("config/experiments")
RULES = Path("workflow/rules")

# Keys of each kind of simulation; a key that its data set would ignore is refused.
SIMULATIONS = {
    "separable": ("rows", "columns", "margin"),
    "unseparable": ("rows", "columns", "band", "flip_probability"),
    "expanded_band": ("rows", "columns", "margin", "band", "flip_probability"),
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
    datasets, config["files"] = _datasets()
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
    """Data sets by name, and the files to download by name."""
    files = validate(read_yaml(data_sources.FILES), "files", data_sources.FILES)
    datasets = validate(read_yaml(DATASETS), "datasets", DATASETS)
    for name, entry in datasets.items():
        source = entry["source"]
        simulated = {"columns", "holdout", *(key for keys in SIMULATIONS.values() for key in keys)}
        needed = SIMULATIONS.get(source.get("simulate"), ())
        for key in needed:
            if key not in source:
                raise problem(DATASETS, f"{name}.source", f"the key {key!r} is missing")
        takes = {"rows", *needed, *(["holdout"] if "simulate" in source else [])}
        for key in sorted(simulated - takes):
            if source.get(key):
                what = source.get("simulate") or " and ".join(set(source) & set(data_sources.KINDS))
                raise problem(DATASETS, f"{name}.source", f"{what or 'it'} takes no {key!r}")
        for key in ("features", "first"):
            if key in source and "sklearn" not in source:
                raise problem(
                    DATASETS, f"{name}.source", f"{key!r} is for scikit-learn's data only"
                )
        if source.get("first", 0) > source.get("rows", math.inf):
            text = f"'first' is more than its {source['rows']} rows"
            raise problem(DATASETS, f"{name}.source", text)
        for number, step in enumerate(entry["steps"]):
            for step_name, options in step.items():
                key = f"{name}.steps[{number}].{step_name}"
                check_text_numbers(options or {}, DATASETS, key)
                for column, pair in (options or {}).items():
                    if step_name.startswith("scale_") and not _is_pair(pair):
                        raise problem(DATASETS, f"{key}.{column}", "must be two numbers: [a, b]")
        for column, (low, high) in entry.get("bounds", {}).items():
            if not low < high:
                text = f"must be [low, high] with low < high, not [{low}, {high}]"
                raise problem(DATASETS, f"{name}.bounds.{column}", text)
        try:
            data_sources.resolve(name, entry, files)
        except ValueError as error:
            key, colon, text = str(error).partition(": ")
            if colon and " " not in key:  # a key of the entry, and what is wrong with it
                raise problem(DATASETS, f"{name}.{key}", text) from None
            raise problem(DATASETS, name, str(error)) from None
    return datasets, files


def _is_pair(value):
    return isinstance(value, list) and [type(v) in (int, float) for v in value] == [True, True]


def _experiment(name, value, where, datasets):
    """Validated and resolved: every default filled in, every number in canonical form.

    where: a function from a key's parts to the name of the file that it comes from.
    """
    value = validate(value, "experiment", where)

    def fail(key, text):
        return problem(where(re.sub(r"\[.*", "", key).split(".")) if key else where(), key, text)

    def known(key, given, valid, what):
        for item in given:
            if item not in valid:
                raise fail(key, f"no {what} {item!r}{nearest(item, list(valid))}")

    known("datasets", value["datasets"], datasets, "data set")
    if ("folds" in value) + ("simulations" in value) != bool(value["sweeps"]):
        raise fail("", "needs exactly one of the keys 'folds' and 'simulations'")
    lambdas = value.get("lambda_published")
    if isinstance(lambdas, dict) and len(lambdas["train_sizes"]) != len(lambdas["lambdas"]):
        raise fail(
            "lambda_published",
            f"{len(lambdas['train_sizes'])} train_sizes have {len(lambdas['lambdas'])} lambdas",
        )
    for label, method in value["methods"].items():
        key = f"methods.{label}"
        method.setdefault("mechanism", label)
        known(key, [method["mechanism"]], MECHANISMS, "mechanism")
        mechanism = MECHANISMS[method["mechanism"]]
        method["private"] = mechanism.private
        check_text_numbers(method["options"], where(key.split(".")), f"{key}.options")
        try:
            mechanism.check_options(method["options"])
            fit = mechanism.shared_fit(method["options"])
        except ValueError as error:
            raise fail(key, f"{error}") from None
        method["fit"] = fit and _fit(fit, method["options"])
        if "simulations" in method and ("folds" in value or fit):
            reason = "the experiment has folds" if "folds" in value else "it shares its fit"
            raise fail(key, f"cannot have simulations of its own: {reason}")
        lam = method.setdefault("lambda", value["lambda"])
        if lam == "published":
            if value.get("lambda_published") is None:
                raise fail(key, "lambda is 'published' but lambda_published is not set")
            if not isinstance(lambdas, dict):
                method["lambda"] = lambdas
        if (lam == "searched") != ("search" in method):
            raise fail(key, "'lambda: searched' and 'search' go together")
        known(f"{key}.search", filter(None, [method.get("search")]), value["searches"], "search")
        if lam == "tuned" and "tune" not in value:
            raise fail(key, "lambda is 'tuned' but there is no 'tune' section")
    for search_name, search in value["searches"].items():
        key = f"searches.{search_name}"
        known(f"{key}.method", [search["method"]], value["methods"], "method")
        method = value["methods"][search["method"]]
        options = MECHANISMS[method["mechanism"]].options()
        known(f"{key}.grid", search["grid"], ["lambda", *options], "option")
        for label, user in value["methods"].items():
            if user.get("search") == search_name and method["private"] and user["fit"]:
                raise fail(
                    f"methods.{label}",
                    "shares its fit among all epsilons, so its search must "
                    "be of a method without privacy",
                )
    for key, whole in (("train_sizes", True), ("epsilons", False)):
        for sweep_name, sweep in value["sweeps"].items():
            sweep[key] = canonical.sequence(sweep[key], whole=whole)
            if not sweep[key]:
                raise fail(f"sweeps.{sweep_name}.{key}", "the range is empty: 'from' exceeds 'to'")
    for section in ("sweeps", *kinds.SECTIONS):
        for entry_name, entry in value[section].items():
            key = f"{section}.{entry_name}"
            valid = value["datasets"]
            if section != "sweeps":
                known(f"{key}.kind", [entry["kind"]], kinds.SECTIONS[section], "kind")
                kind = kinds.SECTIONS[section][entry["kind"]]
                if kind.inputs == "data":
                    valid = datasets  # an illustration's data need no cells
            known(f"{key}.datasets", entry.get("datasets", ()), valid, "data set")
            known(f"{key}.methods", entry.get("methods", ()), value["methods"], "method")
            if section != "sweeps":
                source = where([section, entry_name])
                check_text_numbers(entry["options"], source, f"{key}.options")
                check_options(entry["options"], kind.options, source, f"{key}.options")
                entry["options"] = kind.options | entry["options"]
                needed = "analysis" if kind.inputs == "analysis" else "sweep"
                needed = None if kind.inputs in ("data", "tuning", "none") else needed
                for other, entries in (("sweep", "sweeps"), ("analysis", "analyses")):
                    if other == needed and other not in entry:
                        raise fail(key, f"the key {other!r} is missing")
                    if other != needed and other in entry:
                        raise fail(key, f"{entry['kind']} takes no {other!r}")
                    named = entry.get(other, [])
                    named = [named] if isinstance(named, str) else named
                    known(f"{key}.{other}", named, value[entries], other)
                if kind.inputs == "tuning" and "tune" not in value:
                    raise fail(key, f"{entry['kind']} needs a 'tune' section")
                if isinstance(entry["options"].get("published"), dict):
                    try:
                        published.check(value, entry["options"]["published"])
                    except ValueError as error:
                        raise fail(f"{key}.options.published", f"{error}") from None
    for section in kinds.SECTIONS:
        for entry_name, entry in value[section].items():
            _check_printed(value, entry, f"{section}.{entry_name}.options", fail)
    if "tune" in value and not value["tune"]["grid"]["low"] < value["tune"]["grid"]["high"]:
        raise fail("tune.grid", "low must be less than high")
    _check_private_tuning(value.get("tune", {}).get("private_tuning"), fail)
    experiment = Experiment(name, value)
    _check_classes(experiment, fail, datasets)
    _check_sizes(experiment, fail, datasets)
    _check_entries(experiment, fail)
    _check_mechanisms(experiment, fail)
    _check_public(experiment, fail, datasets)
    return experiment


def _check_printed(value, entry, key, fail):
    """Published tables and the methods beside them exist, in entries that show them."""
    options = entry["options"]
    columns = {name: options[name] for name in ("plain", "pretrained") if name in options}
    for title, methods in ((options.get("panels") or {}) | columns).items():
        for method in methods:
            if method not in value["methods"]:
                text = f"no method {method!r}{nearest(method, list(value['methods']))}"
                raise fail(f"{key}.{title}", text)
    mapping = options if "rows" in options else options.get("printed") or {}
    for name in mapping:
        if name not in ("table", "rows") and mapping is not options:
            text = f"unknown key {name!r}{nearest(name, ['table', 'rows'])}"
            raise fail(f"{key}.printed", text)
    try:
        if columns:
            printed.pairs(value, options["table"])
        else:
            printed.accuracies(value, mapping.get("table"), mapping.get("rows"))
    except ValueError as error:
        raise fail(key, f"{error}") from None


def _fit(name, options):
    """The shared non-private fit of a method: its name, and those of the options that concern it."""
    return {"name": name, "options": fit_options(name, options)}


def _check_private_tuning(private, fail):
    """Either an epsilon with its mechanism, whose defaults are filled in, or a default lambda."""
    if private is None:
        return
    key = "tune.private_tuning"
    if ("epsilon" in private) == ("default" in private):
        raise fail(key, "needs exactly one of 'epsilon' and 'default'")
    if "default" in private:
        for other in ("delta", "mechanism"):
            if other in private:
                raise fail(key, f"a fixed default takes no {other!r}")
        return
    private.setdefault("delta", 0.0)
    name = private.setdefault("mechanism", "objective_perturbation")
    if name not in MECHANISMS:
        raise fail(key, f"no mechanism {name!r}{nearest(name, MECHANISMS)}")
    try:
        MECHANISMS[name].guarantee(
            100, 10, epsilon=private["epsilon"], delta=private["delta"], lam=1.0
        )
    except ValueError as error:
        raise fail(key, f"{error}") from None
    if not MECHANISMS[name].private:
        raise fail(key, f"{name} is not private")


def _check_classes(experiment, fail, datasets):
    for cell in experiment.cells():
        mechanism = experiment.methods[cell.method]["mechanism"]
        if (
            data_sources.many_classes(datasets[cell.dataset])
            and not MECHANISMS[mechanism].multiclass
        ):
            raise fail(
                f"methods.{cell.method}",
                f"{mechanism} learns two classes, but {cell.dataset} has more; choose two with the "
                f"step 'binary'",
            )


def _check_public(experiment, fail, datasets):
    """Methods that start from public rows run on data sets that have some."""
    for cell in experiment.cells():
        has = data_sources.has_public_rows(datasets[cell.dataset])
        if experiment.methods[cell.method]["options"].get("pretrain") and not has:
            raise fail(
                f"methods.{cell.method}",
                f"pretrain needs public rows, and {cell.dataset} has none: give it a public_share, "
                f"or leave it out of the method's sweeps",
            )


def _check_sizes(experiment, fail, datasets):
    for sweep_name, sweep in experiment.sweeps.items():
        for dataset in sweep.get("datasets", experiment.datasets):
            rows = data_sources.prepared_rows(datasets[dataset])
            if rows is None:
                continue
            if "simulations" in experiment.values:
                limit = simulation_rows(
                    rows, "test_images" in datasets[dataset]["source"].get("idx", {})
                )
                largest = sweep["train_sizes"][-1]
                if largest > limit:
                    raise fail(
                        f"sweeps.{sweep_name}.train_sizes",
                        f"{largest} is more than the "
                        f"{limit} training rows of {dataset} ({rows} rows, {rows - limit} to test on)",
                    )
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
                    f"{largest} is more than the {limit} "
                    f"training rows of {dataset} ({rows} rows in {experiment.folds} folds)",
                )
    if "tune" in experiment.values:
        folds = experiment.tune["folds"]
        for dataset in experiment.datasets:
            source = datasets[dataset]["source"]
            rows = source.get("holdout") or data_sources.prepared_rows(datasets[dataset])
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
        method = experiment.methods[cell.method]
        mechanism = MECHANISMS[method["mechanism"]]
        try:
            lam = experiment.lambda_source(method, cell.dataset, cell.train_size, cell.epsilon)
            lam = 1.0 if isinstance(lam, str) else lam
            if (cell[1:], lam) in seen:
                continue
            seen.add((cell[1:], lam))
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
