"""Writes the schemas in workflow/schemas, and the tables below comments in config/README.md.

Keys, values and meanings come from the classes of `study.configuration`. Mechanisms, steps and kinds come
from the code; their docstrings' first paragraphs explain them.
"""

import argparse
import inspect
import json
import re

import home  # noqa: F401, first: it makes scripts/ importable
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from dp.mechanisms import MECHANISMS
from study import paths
from study.configuration import kinds, options, sources
from study.configuration.audit_keys import AuditSettings
from study.configuration.data_set_keys import DataSets, Files
from study.configuration.experiment_keys import ExperimentFile
from study.configuration.faults import in_yaml
from study.configuration.release_keys import ReleaseRequest
from study.configuration.run_keys import Configuration
from study.configuration.source_keys import Document
from study.configuration.validation import read_yaml
from study.data.preparation import STEPS

PAGE = paths.HOME / "config/README.md"
FILES = {"config": Configuration, "datasets": DataSets, "files": Files, "audit": AuditSettings}
FILES |= {"release": ReleaseRequest, "experiment": ExperimentFile, "source": Document}
TYPES = {"array": "list", "object": "mapping", "string": "text", "integer": "whole number"}
TYPES |= {"number": "number", "boolean": "true or false", "null": "null"}
LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
ANYTHING = ("Facts", "Values")  # types whose parts are of the same type
DELTAS = {"none": "none", "needed": "needed", "optional": "0 or more"}
NEEDS = ("sweep", "analysis")  # keys that an entry must have (`datasets` has a default)


class _Schema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema):
        return False  # a key's name says enough

    def default_schema(self, schema):
        made = super().default_schema(schema)
        return {k: v for k, v in made.items() if k != "default" or v is not None}


def schema(name):
    made = TypeAdapter(FILES[name]).json_schema(schema_generator=_Schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | made


def _rows(root, part, path, listed):
    """A row for each key below a part of a schema. listed: class -> where its keys are listed."""
    for choice in part.get("oneOf", [part]):
        name = choice.get("$ref", "").rpartition("/")[2]
        if name in ANYTHING:
            continue
        if listed.setdefault(name, path) != path and name:
            yield f"`{path}`", "mapping", f"The keys of `{listed[name]}`."
            continue
        choice = root["$defs"].get(name, choice)
        for key, value in choice.get("properties", {}).items():
            place = f"{path}.{key}".lstrip(".")
            notes = ["*required*"] if key in choice.get("required", ()) else []
            if value.get("default") not in (None, {}, []):
                notes.append(f"default `{in_yaml(value['default'])}`")
            text = ", ".join([_value(root, value), *notes])
            yield f"`{place}`", text, " ".join(_full(root, value)["description"].split())
            yield from _rows(root, value, place, listed)
        if "items" in choice:
            yield from _rows(root, choice["items"], f"{path}[]", listed)
        for inner in (
            choice.get("additionalProperties"),
            *choice.get("patternProperties", {}).values(),
        ):
            if isinstance(inner, dict):
                yield from _rows(root, inner, f"{path}.<name>".lstrip("."), listed)


def _full(root, part):
    return root["$defs"].get(part.get("$ref", "").rpartition("/")[2], {}) | part


def _value(root, part):
    if part.get("$ref", "").rpartition("/")[2] in ANYTHING:
        return "anything"
    part = _full(root, part)
    if "enum" in part or "const" in part:
        words = part.get("enum", [part.get("const")])
        return " or ".join(f"`{w if isinstance(w, str) else in_yaml(w)}`" for w in words)
    if "oneOf" in part:
        return " or ".join(dict.fromkeys(_value(root, each) for each in part["oneOf"]))
    text = TYPES[part["type"]] if "type" in part else "anything"
    if "items" in part:
        items = re.sub(r"\b(number|mapping|list)\b", r"\1s", _value(root, part["items"]))
        text = f"list of {items}"
    limits = [f"{sign} {part[key]:g}" for key, sign in LIMITS.items() if key in part]
    return " ".join([text, *limits])


def _options(defaults):
    """Options with their defaults, except defaults that have no YAML form, such as REQUIRED."""
    shown = []
    for name, default in defaults.items():
        plain = isinstance(default, (str, int, float, bool, list, tuple, dict, type(None)))
        shown.append(f"`{name}: {in_yaml(default)}`" if plain else f"`{name}`")
    return ", ".join(shown) or "none"


def _first_line(docstring):
    return (docstring or "").strip().partition("\n\n")[0].replace("\n", " ")


def _examples(section):
    """kind -> an entry with it, from an experiment of the default run if possible."""
    files, examples = sources.experiments(), {}
    listed = read_yaml(paths.HOME / "config/config.yaml")["experiments"]
    for name in dict.fromkeys([*listed, *files]):
        for part in ("claims", "defects") if section == "checks" else (section,):
            for label, entry in (files[name][0].get(part) or {}).items():
                for each in entry.get("checks", ()) if section == "checks" else [entry]:
                    examples.setdefault(each["kind"], f"`{name}`: `{label}`")
    return examples


def _kinds(section):
    head = "what it decides" if section == "checks" else "what it shows"
    yield "kind", "needs", "options", head, "example"
    examples = _examples(section)
    for name, kind in (kinds.SECTIONS | {"checks": kinds.CHECKS})[section].items():
        needs = f"`{kind.inputs.needs}`" if kind.inputs.needs in NEEDS else ""
        fields = options.fields(kind.options).items()
        own = _options({k: f.default for k, f in fields if k not in ("analysis", "table")})
        yield (
            f"`{name}`",
            needs,
            own,
            _first_line(inspect.getdoc(kind.function)),
            examples.get(name, ""),
        )


def _steps():
    yield "step", "options", "looks at private rows", "what it does"
    for name, step in STEPS.items():
        taken = [*inspect.signature(step.apply).parameters.values()][1:]
        taken = {p.name if p.kind is not p.VAR_KEYWORD else "<column>": p.default for p in taken}
        private = "yes: no guarantee after it" if step.private_rows else "no"
        yield f"`{name}`", _options(taken), private, step.what


def _mechanisms():
    yield "mechanism", "delta", "options", "what it is"
    for name, mechanism in sorted(MECHANISMS.items()):
        delta = DELTAS[mechanism.delta] if mechanism.private else "not private"
        said = _first_line(inspect.getdoc(type(mechanism)))
        yield f"`{name}`", delta, _options(mechanism.defaults()), said


def _table(what):
    if what in FILES:
        root = {"$defs": {}} | schema(what)
        rows = [("key", "value", "meaning"), *_rows(root, root, "", {})]
    else:
        rows = [*{"steps": _steps, "mechanisms": _mechanisms}.get(what, lambda: _kinds(what))()]
    rows.insert(1, ["---"] * len(rows[0]))
    cells = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def written():
    """File -> the text that it must have."""
    files = {
        paths.HOME / f"workflow/schemas/{name}.schema.json": json.dumps(schema(name), indent=1)
        + "\n"
        for name in FILES
    }
    page = PAGE.read_text(encoding="utf-8")
    tables = re.compile(r"(<!-- (\w+) -->\n\n)(?:\|.*\n)*")
    return files | {PAGE: tables.sub(lambda found: found[1] + _table(found[2]), page)}


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
