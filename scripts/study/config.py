"""The configuration: read, merged, validated against schemas and against itself.

Every problem is a `ConfigError`: one sentence with the file, the key and the nearest valid name.
"""

import copy
import math
from difflib import get_close_matches
from pathlib import Path

import jsonschema
import yaml

from dp.data import simulation_rows, smallest_training_fold
from dp.fits import fit_options
from dp.mechanisms import MECHANISMS
from study import canonical, data_sources, kinds, printed, published
from study.experiment import Experiment

SCHEMAS = Path("workflow/schemas")
DATASETS = Path("config/datasets.yaml")
EXPERIMENTS = Path("config/experiments")


class ConfigError(Exception):
    """A configuration that cannot run, in one plain sentence."""


class _Loader(yaml.SafeLoader):
    """YAML without repeated keys, of which only the last would count."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key_node.tag != "tag:yaml.org,2002:merge" and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path):
    """A YAML mapping, {} for an empty file."""
    path = Path(path)
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"{path}:{line} not valid YAML ({problem})") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: must hold keys with values, not {_kind(value)}")
    return value


def nearest(name, valid):
    """ "; did you mean 'x'?", or the valid names where none is near."""
    near = get_close_matches(str(name), [str(v) for v in valid], n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f" (valid: {', '.join(map(str, valid))})" if valid else ""


def merge(base, changes):
    """A copy of `base` with `changes`: mappings merged, other values replaced, null removes."""
    merged = copy.deepcopy(base)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def validate(value, schema_name, where):
    """Raise ConfigError for the first problem of `value`; return it with the defaults filled in."""
    schema = read_yaml(SCHEMAS / f"{schema_name}.schema.yaml")
    validator = jsonschema.Draft202012Validator(schema)
    errors = sorted(validator.iter_errors(value), key=lambda e: [str(p) for p in e.absolute_path])
    if errors:
        error = errors[0]
        path = [*error.absolute_path]
        if error.validator == "additionalProperties":
            path.append(_unknown(error))
        source = where(path) if callable(where) else where
        key = _key(error.absolute_path)
        raise ConfigError(f"{source}: {key + ': ' if key else ''}{_problem(error)}")
    return _with_defaults(value, schema, schema)


def _key(path):
    key = ""
    for part in path:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
    return key


def _kind(value):
    kinds = {str: "text", bool: "true/false", dict: "a mapping", list: "a list", type(None): "null"}
    return kinds.get(type(value), "a number")


def _problem(error):
    value, limit = error.instance, error.validator_value
    if error.validator == "additionalProperties":
        unknown = _unknown(error)
        return f"unknown key {unknown!r}{nearest(unknown, list(error.schema['properties']))}"
    if error.validator == "dependentRequired":
        key, missing = next(
            (key, other)
            for key in limit
            if key in value
            for other in limit[key]
            if other not in value
        )
        return f"the key {missing!r} is missing ({key!r} needs it)"
    if error.validator == "required":
        return f"the key {next(key for key in limit if key not in value)!r} is missing"
    if error.validator in ("type", "pattern") and isinstance(value, str):
        if _is_number(value):
            number = canonical.number(float(value))
            return f"{value!r} is text, not a number: write {number}, without quotes"
        if error.validator == "pattern":
            words = limit.strip("^()$").replace("|", "', '")
            if words.replace("', '", "").isalpha():
                return f"must be a number or one of '{words}', not {value!r}"
            return f"the name {value!r} may hold letters, digits and underscores only"
    if error.validator == "type":
        kinds = [limit] if isinstance(limit, str) else limit
        names = {"array": "a list", "object": "a mapping", "string": "text", "null": "null"}
        expected = " or ".join(
            names.get(
                kind, "true/false" if kind == "boolean" else f"a{'n' * (kind[0] == 'i')} {kind}"
            )
            for kind in kinds
        )
        return f"must be {expected}, not {_kind(value)} ({value!r})"
    if error.validator == "enum":
        return f"{value!r} is not known{nearest(value, limit)}"
    comparison = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "greater than",
        "exclusiveMaximum": "less than",
    }.get(error.validator)
    if comparison:
        return f"must be {comparison} {limit}, not {value}"
    if error.validator == "uniqueItems":
        return f"names {next(v for v in value if value.count(v) > 1)!r} twice"
    if error.validator in ("minItems", "minProperties"):
        return "must not be empty"
    return error.message


def _unknown(error):
    return next(key for key in error.instance if key not in error.schema["properties"])


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _with_defaults(value, schema, root):
    if "$ref" in schema:
        schema = {**root["$defs"][schema["$ref"].rsplit("/", 1)[1]], **schema}
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        other = schema.get("additionalProperties")
        filled = {
            key: copy.deepcopy(sub["default"])
            for key, sub in properties.items()
            if "default" in sub and key not in value
        }
        for key, item in value.items():
            sub = properties.get(key, other if isinstance(other, dict) else {})
            filled[key] = _with_defaults(item, sub, root)
        return filled
    return value


def load(config, files=()):
    """Experiments by name and data sets by name, from Snakemake's merged config.

    files: the configuration files that were merged, for messages. Raises ConfigError.
    """

    def where(path):
        return _origin(path, files)

    config = validate(dict(config), "config", where)
    datasets, config["files"] = _datasets()
    available = {path.stem: path for path in sorted(EXPERIMENTS.glob("*.yaml"))}
    for key in ("experiments", "settings"):
        for name in config[key]:
            if name not in available:
                source = where([key, name] if key == "settings" else [key])
                raise ConfigError(
                    f"{source}: {key}: no experiment {name!r}{nearest(name, available)}"
                )
    experiments = {}
    for name, path in available.items():
        value = read_yaml(path)
        experiments[name] = _experiment(name, value, str(path), datasets)
        changes = config["settings"].get(name)
        if changes:
            source = f"{where(['settings', name])}: settings.{name}"
            experiments[name] = _experiment(name, merge(value, changes), source, datasets)
    return config, experiments, datasets


def _origin(path, files):
    """The configuration file that has a key of the merged configuration, overlays first."""
    for file in files:
        value = read_yaml(file)
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            file = Path(file).resolve()
            return str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)
    return "--config"


def _datasets():
    """Data sets by name, and the files to download by name."""
    where = str(DATASETS)
    files = validate(read_yaml(data_sources.FILES), "files", str(data_sources.FILES))
    datasets = validate(read_yaml(DATASETS), "datasets", where)
    for name, entry in datasets.items():
        source = entry["source"]
        needed = {
            "separable": ("rows", "columns", "margin"),
            "unseparable": ("rows", "columns", "band", "flip_probability"),
            "expanded_band": ("rows", "columns", "margin", "band", "flip_probability"),
        }.get(source.get("simulate"), ())
        for key in needed:
            if key not in source:
                raise ConfigError(f"{where}: {name}.source: the key {key!r} is missing")
        for key in ("features", "first"):
            if key in source and "sklearn" not in source:
                raise ConfigError(
                    f"{where}: {name}.source: {key!r} is for scikit-learn's data only"
                )
        if source.get("first", 0) > source.get("rows", math.inf):
            raise ConfigError(
                f"{where}: {name}.source: 'first' is more than its {source['rows']} rows"
            )
        try:
            data_sources.resolve(name, entry, files)
        except ValueError as error:
            raise ConfigError(f"{where}: {name}.{error}") from None
    return datasets, files


def _experiment(name, value, where, datasets):
    """Validated and resolved: every default filled in, every number in canonical form."""
    value = validate(value, "experiment", where)

    def known(key, given, valid, what):
        for item in given:
            if item not in valid:
                raise ConfigError(f"{where}: {key}: no {what} {item!r}{nearest(item, list(valid))}")

    known("datasets", value["datasets"], datasets, "data set")
    if value["sweeps"] and ("folds" in value) == ("simulations" in value):
        raise ConfigError(f"{where}: needs exactly one of the keys 'folds' and 'simulations'")
    printed = value.get("lambda_published")
    if isinstance(printed, dict) and len(printed["train_sizes"]) != len(printed["lambdas"]):
        raise ConfigError(
            f"{where}: lambda_published: {len(published['train_sizes'])} train_sizes have "
            f"{len(published['lambdas'])} lambdas"
        )
    for label, method in value["methods"].items():
        key = f"methods.{label}"
        method.setdefault("mechanism", label)
        known(key, [method["mechanism"]], MECHANISMS, "mechanism")
        mechanism = MECHANISMS[method["mechanism"]]
        method["private"] = mechanism.private
        try:
            fit = mechanism.shared_fit(method["options"])
        except ValueError as error:
            raise ConfigError(f"{where}: {key}: {error}") from None
        method["fit"] = fit and _fit(fit, method["options"])
        lam = method.setdefault("lambda", value["lambda"])
        if lam == "published":
            if value.get("lambda_published") is None:
                raise ConfigError(
                    f"{where}: {key}: lambda is 'published' but lambda_published is not set"
                )
            if not isinstance(printed, dict):
                method["lambda"] = printed
        if (lam == "searched") != ("search" in method):
            raise ConfigError(f"{where}: {key}: 'lambda: searched' and 'search' go together")
        known(f"{key}.search", filter(None, [method.get("search")]), value["searches"], "search")
        if lam == "tuned" and "tune" not in value:
            raise ConfigError(f"{where}: {key}: lambda is 'tuned' but there is no 'tune' section")
    for search_name, search in value["searches"].items():
        key = f"searches.{search_name}"
        known(f"{key}.method", [search["method"]], value["methods"], "method")
        method = value["methods"][search["method"]]
        options = MECHANISMS[method["mechanism"]].options()
        known(f"{key}.grid", search["grid"], ["lambda", *options], "option")
        for label, user in value["methods"].items():
            if user.get("search") == search_name and method["private"] and user["fit"]:
                raise ConfigError(
                    f"{where}: methods.{label}: shares its fit among all epsilons, so its search must "
                    f"be of a method without privacy"
                )
    for kind, key, whole in (("train_sizes", "train_sizes", True), ("epsilons", "epsilons", False)):
        for sweep_name, sweep in value["sweeps"].items():
            try:
                sweep[key] = canonical.sequence(sweep[kind], whole=whole)
            except ValueError as error:
                raise ConfigError(f"{where}: sweeps.{sweep_name}.{kind}: {error}") from None
            if not sweep[key]:
                raise ConfigError(f"{where}: sweeps.{sweep_name}.{kind}: the range is empty")
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
                known(f"{key}.options", entry["options"], kind.options, "option")
                entry["options"] = kind.options | entry["options"]
                needed = "analysis" if kind.inputs == "analysis" else "sweep"
                needed = None if kind.inputs in ("data", "tuning", "none") else needed
                for other, entries in (("sweep", "sweeps"), ("analysis", "analyses")):
                    if other == needed and other not in entry:
                        raise ConfigError(f"{where}: {key}: the key {other!r} is missing")
                    if other != needed and other in entry:
                        raise ConfigError(f"{where}: {key}: {entry['kind']} takes no {other!r}")
                    named = entry.get(other, [])
                    named = [named] if isinstance(named, str) else named
                    known(f"{key}.{other}", named, value[entries], other)
                if isinstance(entry["options"].get("published"), dict):
                    try:
                        published.check(value, entry["options"]["published"])
                    except ValueError as error:
                        raise ConfigError(f"{where}: {key}.options.published: {error}") from None
    for section in kinds.SECTIONS:
        for entry_name, entry in value[section].items():
            _check_printed(value, entry, f"{where}: {section}.{entry_name}.options")
    if "tune" in value and not value["tune"]["grid"]["low"] < value["tune"]["grid"]["high"]:
        raise ConfigError(f"{where}: tune.grid: low must be less than high")
    _check_private_tuning(value.get("tune", {}).get("private_tuning"), where)
    experiment = Experiment(name, value)
    _check_sizes(experiment, where, datasets)
    _check_mechanisms(experiment, where)
    _check_public(experiment, where, datasets)
    return experiment


def _check_printed(value, entry, where):
    """Published tables and the methods beside them exist, in entries that show them."""
    options = entry["options"]
    columns = {key: options[key] for key in ("plain", "pretrained") if key in options}
    for title, methods in ((options.get("panels") or {}) | columns).items():
        for method in methods:
            if method not in value["methods"]:
                raise ConfigError(
                    f"{where}: {title}: no method {method!r}"
                    f"{nearest(method, list(value['methods']))}"
                )
    mapping = options if "rows" in options else options.get("printed") or {}
    for key in mapping:
        if key not in ("table", "rows") and mapping is not options:
            raise ConfigError(
                f"{where}.printed: unknown key {key!r}{nearest(key, ['table', 'rows'])}"
            )
    try:
        if columns:
            printed.pairs(value, options["table"])
        else:
            printed.accuracies(value, mapping.get("table"), mapping.get("rows"))
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def _fit(name, options):
    """The shared non-private fit of a method: its name, and those of the options that concern it."""
    return {"name": name, "options": fit_options(name, options)}


def _check_private_tuning(private, where):
    """Either an epsilon with its mechanism, whose defaults are filled in, or a default lambda."""
    if private is None:
        return
    where = f"{where}: tune.private_tuning"
    if ("epsilon" in private) == ("default" in private):
        raise ConfigError(f"{where}: needs exactly one of 'epsilon' and 'default'")
    if "default" in private:
        for key in ("delta", "mechanism"):
            if key in private:
                raise ConfigError(f"{where}: a fixed default takes no {key!r}")
        return
    private.setdefault("delta", 0.0)
    name = private.setdefault("mechanism", "objective_perturbation")
    if name not in MECHANISMS:
        raise ConfigError(f"{where}: no mechanism {name!r}{nearest(name, MECHANISMS)}")
    try:
        MECHANISMS[name].guarantee(
            100, 10, epsilon=private["epsilon"], delta=private["delta"], lam=1.0
        )
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
    if not MECHANISMS[name].private:
        raise ConfigError(f"{where}: {name} is not private")


def _check_public(experiment, where, datasets):
    """Methods that start from public rows run on data sets that have some."""
    for cell in experiment.cells():
        entry = datasets[cell.dataset]
        has = data_sources.has_public_rows(entry)
        if experiment.methods[cell.method]["options"].get("pretrain") and not has:
            raise ConfigError(
                f"{where}: methods.{cell.method}: pretrain needs public rows, and {cell.dataset} has "
                f"none: give it a public_share, or leave it out of the method's sweeps"
            )


def _check_sizes(experiment, where, datasets):
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
                    raise ConfigError(
                        f"{where}: sweeps.{sweep_name}.train_sizes: {largest} is more than the "
                        f"{limit} training rows of {dataset} ({rows} rows, {rows - limit} to test on)"
                    )
                continue
            if rows < experiment.folds:
                raise ConfigError(
                    f"{where}: folds: {dataset} has {rows} rows, fewer than {experiment.folds} folds"
                )
            limit = smallest_training_fold(rows, experiment.folds)
            largest = sweep["train_sizes"][-1]
            if largest > limit:
                raise ConfigError(
                    f"{where}: sweeps.{sweep_name}.train_sizes: {largest} is more than the {limit} "
                    f"training rows of {dataset} ({rows} rows in {experiment.folds} folds)"
                )


def _check_mechanisms(experiment, where):
    """Ask every mechanism for its guarantee once per cell's parameters: it checks all of them."""
    for cell in experiment.cells():
        method = experiment.methods[cell.method]
        mechanism = MECHANISMS[method["mechanism"]]
        try:
            lam = experiment.lambda_source(method, cell.dataset, cell.train_size, cell.epsilon)
            lam = 1.0 if isinstance(lam, str) else lam
            mechanism.check_options(method["options"])
            mechanism.guarantee(
                cell.train_size,
                10,
                epsilon=math.inf if not mechanism.private else cell.epsilon,
                delta=method["delta"],
                lam=lam,
                **method["options"],
            )
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{where}: methods.{cell.method}: {error}") from None
