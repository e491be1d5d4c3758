"""Read YAML files, and validate them against the classes of configuration.

Every problem raises a `ConfigError`: one sentence that names the file, the key and the nearest valid name.
"""

import copy
import math
import pickle
import re
from decimal import Decimal
from functools import cache
from pathlib import Path

import pydantic
import yaml

from study import facts
from study.configuration import faults
from study.configuration.section import kind_of

LARGEST = 10**300  # bound on integers, because larger ones overflow as floats
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


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
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


def validate(value, kind, where):
    """`value` as a `kind`, a class of configuration or a dictionary of such, with defaults.

    where: the file's name, or a function from a key's parts to the file's name. Raises a ConfigError that
    names all faults.
    """
    where = where if callable(where) else in_file(where)
    # A source's tables may have numeric keys.
    found = [] if kind is facts.Source else [*_not_plain(value, ())]
    if not found:
        classes = {}
        try:
            return _adapter(kind).validate_python(value, context=classes)
        except pydantic.ValidationError as error:
            found = faults.sentences(error, value, classes)
    raise ConfigError(
        "; ".join(str(problem(where(path), faults.key(at), text)) for path, at, text in found)
    )


@cache
def _adapter(kind):
    return pydantic.TypeAdapter(kind)


def problem(source, key, text):
    """A ConfigError. key: "" if the problem concerns the whole file."""
    return ConfigError(f"{source}: {key + ': ' if key else ''}{text}")


def _not_plain(value, path):
    """NaN, infinite or huge numbers, and unquoted text that YAML converts: dates, or the key yes.

    Only options may be infinite, such as an epsilon without privacy.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                text = f"the key {faults.show(key)} is {kind_of(key)}: write it in quotes"
                yield path, path, text
            yield from _not_plain(item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for k, item in enumerate(value):
            yield from _not_plain(item, (*path, k))
    elif isinstance(value, int) and abs(value) > LARGEST:
        yield path, path, f"must be a number of at most {LARGEST:g}"
    elif isinstance(value, float) and (
        math.isnan(value) or (math.isinf(value) and "options" not in path)
    ):
        yield path, path, f"must be a finite number, not {faults.show(value)}"
    elif not isinstance(value, (str, int, float, type(None))):
        yield path, path, f"{value} is {kind_of(value)}: write it in quotes"


def check_text_numbers(options, source, key):
    """Refuse text that is meant as a number: YAML reads 1e-6 as text, and 1.0e-6 as a number."""
    items = options.items() if isinstance(options, dict) else enumerate(options)
    for name, value in items:
        inner = f"{key}.{name}" if isinstance(name, str) else f"{key}[{name}]"
        if isinstance(value, (dict, list)):
            check_text_numbers(value, source, inner)
        elif isinstance(value, str) and faults.is_number(value):
            raise problem(source, inner, faults.text_number(value))
