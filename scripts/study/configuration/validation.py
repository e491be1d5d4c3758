"""Validate YAML files against JSON schemas.

Every problem raises a `ConfigError`: one sentence that names the file, the key and the nearest valid name.
"""

import copy
import datetime
import json
import math
import pickle
import re
import textwrap
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import jsonschema
import yaml

from study import canonical, paths

SCHEMAS = paths.HOME / "workflow/schemas"
LISTED = 700  # maximum length of the list of valid names in a message
LARGEST = 10**300  # bound on integers, because larger ones overflow as floats
NAME = "^[A-Za-z0-9][A-Za-z0-9_]*$"
RENAMED = {"separator": "delimiter", "sep": "delimiter"}  # key by another name -> the key
# Keys whose values are compared with cells and names of a table.
CODES = {"categories", "classes", "column", "label", "missing", "names"}
CODES |= {"negative", "positive", "reference"}
MERGE = "tag:yaml.org,2002:merge"  # of the key <<
DECIMAL = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


class ConfigError(Exception):
    """An error in the configuration, as one sentence on one line."""

    def __str__(self):
        return "\\n".join(super().__str__().splitlines())


class _NotItsText(yaml.MarkedYAMLError):
    """A code that YAML reads as something else, such as 010, which becomes the number 8."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """A YAML loader that refuses duplicate keys, and codes that YAML would change.

    PyYAML silently keeps the last of duplicate keys.
    """

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, value_node in node.value:
            if key_node.tag == MERGE:
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be text", key_node.start_mark
                )
            self._check_codes(key_node, "key")  # it may name a column
            if key_node.value in CODES:
                self._check_codes(value_node, key_node.value)
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key {key!r}", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)

    def _check_codes(self, node, key):
        if isinstance(node, yaml.MappingNode):
            nodes = [each for pair in node.value for each in pair if each.tag != MERGE]
        elif isinstance(node, yaml.SequenceNode):
            nodes = node.value
        else:
            changed = self._changed(node)
            if changed and not (key == "names" and changed == "null"):  # null: an unused column
                text = f"{key}: {node.value} is {changed} in YAML: write it in quotes"
                raise _NotItsText(None, None, text, node.start_mark)
            return
        for each in nodes:
            self._check_codes(each, key)

    def _changed(self, node):
        """What YAML makes of a scalar, in words; "" if it is the text, or a number with its value."""
        kind, text = node.tag.removeprefix("tag:yaml.org,2002:"), node.value
        if kind == "str" or not text:
            return ""
        if kind in ("int", "float"):
            value = str(self.construct_object(node))
            same = DECIMAL.fullmatch(text) and Decimal(text) == Decimal(value)
            return "" if same else f"the number {value}"
        if kind == "bool":
            value = str(self.construct_object(node)).lower()
            return "" if text.lower() == value else value
        return {"timestamp": "a date or time", "null": "null"}.get(kind, "no text")


def read_yaml(path):
    """Read a YAML mapping; {} for an empty file."""
    path = Path(path)
    try:
        value = pickle.loads(_parsed(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text") from None
    except _NotItsText as error:
        line = error.problem_mark.line + 1
        raise ConfigError(f"{path}: line {line}: {error.problem}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"{path}:{line} not valid YAML ({problem})") from None
    except ValueError as error:  # a date or a number that does not exist, such as 2024-02-30
        raise ConfigError(f"{path}: not valid YAML ({error}): write text in quotes") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: must hold keys with values, not {kind_of(value)}")
    return value


@cache
def _parsed(text):
    """The value of YAML text, pickled: unpickling takes a tenth of the time that parsing takes."""
    return pickle.dumps(yaml.load(text, _Loader))


def in_file(path):
    """The argument `where` of `validate` for a file that contains all keys."""
    return lambda key=(): str(path)


def origin(path, files, config, other="--config"):
    """The file from which a key of Snakemake's merged configuration comes; `other` if there is none.

    path: the key's parts; the last part need not exist in any file. files: name -> content of the files in
    `workflow.configfiles`. Overlays override the last file, the default; later overlays override earlier
    ones.
    """
    names = list(files)
    merged = follow(config, path)[0]
    deepest, source = 1, other
    for file in [*reversed(names[:-1]), *names[-1:]]:
        value, depth = follow(files[file], path)
        if depth == len(path) and not isinstance(value, dict) and repr(value) != repr(merged):
            continue  # a file of higher priority overrides this value
        if depth > deepest or depth == len(path):
            deepest, source = depth, _relative(file)
        if depth == len(path):
            break
    return source


def follow(value, path):
    """(value, depth) of the longest prefix of `path` that exists."""
    for depth, part in enumerate(path):
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return value, depth
    return value, len(path)


def _relative(file):
    file = Path(file).resolve()
    return str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)


def nearest(name, valid):
    """The end of an error message: "; did you mean 'x'?" or the list of valid names."""
    near = get_close_matches(str(name), [str(v) for v in valid], n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    listed = textwrap.shorten(", ".join(map(str, valid)), LISTED, placeholder=" ..")
    return f" (valid: {listed})" if valid else ""


def merge(base, changes):
    """A copy of `base` with `changes`: mappings are merged, other values replaced, null removes a key."""
    merged = copy.deepcopy(base)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            before = merged.get(key)
            merged[key] = merge(before if isinstance(before, dict) else {}, value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def validate(value, schema_name, where):
    """`value` with defaults. Raises ConfigError for the first problem.

    where: the file's name, or a function from a key's parts to the file's name.
    """
    where = where if callable(where) else in_file(where)
    if schema_name != "source":  # a source's tables may have numeric keys
        _check_plain(value, (), where)
    validator = _validator(schema_name)
    errors = validator.iter_errors(value)
    # Report a misspelt key rather than the required key that is then missing.
    order = [
        ([str(part) for part in e.absolute_path], e.validator != "additionalProperties", k, e)
        for k, e in enumerate(errors)
    ]
    if order:
        error = min(order)[-1]
        path = [*error.absolute_path]
        if error.validator == "additionalProperties":
            path.append(_unknown(error))
        raise problem(where(path), _key(error.absolute_path), _problem(error))
    return _with_defaults(value, validator.schema, validator.schema)


@cache
def _validator(schema_name):
    return jsonschema.Draft202012Validator(read_yaml(SCHEMAS / f"{schema_name}.schema.yaml"))


def problem(source, key, text):
    """A ConfigError. key: "" if the problem concerns the whole file."""
    return ConfigError(f"{source}: {key + ': ' if key else ''}{text}")


def _check_plain(value, path, where):
    """Refuse NaN, infinite or huge numbers, and unquoted text that YAML converts: dates, or the key yes.

    Only options may be infinite, such as an epsilon without privacy.
    """

    def refuse(text):
        raise problem(where(list(path)), _key(path), text)

    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                refuse(f"the key {_show(key)} is {kind_of(key)}: write it in quotes")
            _check_plain(item, (*path, key), where)
    elif isinstance(value, (list, tuple)):
        for k, item in enumerate(value):
            _check_plain(item, (*path, k), where)
    elif isinstance(value, int) and abs(value) > LARGEST:
        refuse(f"must be a number of at most {LARGEST:g}")
    elif isinstance(value, float) and (
        math.isnan(value) or (math.isinf(value) and "options" not in path)
    ):
        refuse(f"must be a finite number, not {_show(value)}")
    elif not isinstance(value, (str, int, float, type(None))):
        refuse(f"{value} is {kind_of(value)}: write it in quotes")


def check_text_numbers(options, source, key):
    """Refuse text that is meant as a number: YAML reads 1e-6 as text, and 1.0e-6 as a number."""
    items = options.items() if isinstance(options, dict) else enumerate(options)
    for name, value in items:
        inner = f"{key}.{name}" if isinstance(name, str) else f"{key}[{name}]"
        if isinstance(value, (dict, list)):
            check_text_numbers(value, source, inner)
        elif isinstance(value, str) and _is_number(value):
            raise problem(source, inner, _text_number(value))


def _key(path):
    key = ""
    for part in path:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
    return key


def kind_of(value):
    kinds = {
        str: "text",
        bool: "true/false",
        dict: "a mapping",
        list: "a list",
        tuple: "a list",
        type(None): "null",
        datetime.date: "a date",
        datetime.datetime: "a time",
        bytes: "binary data",
        set: "a set",
    }
    return kinds.get(type(value), "a number")


def _show(value):
    words = {"True": "true", "False": "false", "None": "null", "inf": ".inf", "nan": ".nan"}
    return words.get(str(value), repr(value)) if not isinstance(value, str) else repr(value)


def wrong_type(expected, value):
    shown = "" if value is None or isinstance(value, (dict, list)) else f" ({_show(value)})"
    quotes = ": write it in quotes" if isinstance(value, bool) and "text" in expected else ""
    return f"must be {expected}, not {kind_of(value)}{shown}{quotes}"


def in_yaml(value):
    """A value as YAML text. YAML reads an exponent only after a decimal point."""
    if isinstance(value, float) and math.isfinite(value):
        mantissa, e, exponent = canonical.number(value).partition("e")
        return f"{mantissa}{'.0' if e and '.' not in mantissa else ''}{e}{exponent}"
    return json.dumps(value)


def _text_number(value):
    number = in_yaml(float(value))
    return f"{value!r} is text, not a number: write {number}, without quotes"


def _is_number(text):
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text.strip()) is not None


_NAMES = {
    "array": "a list",
    "object": "a mapping",
    "string": "text",
    "null": "null",
    "boolean": "true/false",
    "integer": "a whole number",
    "number": "a number",
}


def _problem(error):
    while error.context:  # descend to the alternative that fits best
        error = max(error.context, key=lambda e: len(e.absolute_path))
    value, limit = error.instance, error.validator_value
    if error.validator == "additionalProperties":
        unknown, known = _unknown(error), error.schema["properties"]
        if RENAMED.get(unknown) in known:
            return f"the key {unknown!r} is called {RENAMED[unknown]!r}"
        return f"unknown key {unknown!r}{nearest(unknown, list(known))}"
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
    if error.validator == "pattern" and limit == NAME:
        return f"the name {value!r} may hold letters, digits and underscores only"
    if error.validator in ("type", "pattern") and isinstance(value, str) and _is_number(value):
        return _text_number(value)
    if error.validator == "pattern":
        words = limit.strip("^()$").split("|")
        if all(map(str.isalpha, words)):
            expected = " or ".join(
                _NAMES[kind] for kind in error.schema["type"] if kind != "string"
            )
            return f"must be {expected} or one of {', '.join(words)}, not {value!r}" + (
                nearest(value, words) if get_close_matches(value, words) else ""
            )
    if error.validator == "type":
        kinds = [limit] if isinstance(limit, str) else limit
        return wrong_type(" or ".join(_NAMES[kind] for kind in kinds), value)
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
        return "must not be empty" if limit == 1 else f"needs at least {limit} values"
    if error.validator in ("maxItems", "maxProperties"):
        return f"takes at most {limit} values"
    return error.message


def _unknown(error):
    return next(key for key in error.instance if key not in error.schema["properties"])


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
    if isinstance(value, list):
        return [_with_defaults(item, schema.get("items", {}), root) for item in value]
    return value
