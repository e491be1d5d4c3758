"""config/README.md agrees with the schemas and the code."""

import re
import subprocess
import sys

import jsonschema
import pytest

from dp.mechanisms import MECHANISMS
from project import ROOT
from study.configuration import kinds
from study.configuration.validation import read_yaml

SCHEMAS = sorted((ROOT / "workflow/schemas").glob("*.yaml"))


def test_the_configurations_readme_is_what_is_generated():
    made = subprocess.run(
        [sys.executable, "scripts/tools/explain_config.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    remedy = "run: python scripts/tools/explain_config.py > config/README.md"
    actual = (ROOT / "config/README.md").read_text(encoding="utf-8")
    for name in MECHANISMS:  # a user's own mechanism needs no entry
        if f"| `{name}` |" not in actual:
            made = re.sub(rf"^\| `{name}` \|.*\n", "", made, flags=re.MULTILINE)
    assert actual == made, remedy


def test_every_key_mechanism_and_kind_is_explained():
    text = (ROOT / "config/README.md").read_text(encoding="utf-8")
    for path in SCHEMAS:
        for key in keys(read_yaml(path)):
            assert f"`{key}`" in text or f".{key}`" in text, f"{path.name}: {key}"
    for section in (*kinds.SECTIONS.values(), kinds.CHECKS):
        for name in section:
            row = rf"^\| `{name}` \|.*\| `\w+`: `[\w-]+` \|$"  # the last column is an example
            assert re.search(row, text, re.MULTILINE), name


def keys(schema):
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            yield from properties
        for value in schema.values():
            yield from keys(value)


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_schemas_hold_known_words_only(path):
    """In a YAML flow mapping, an unquoted description ends at a comma; the rest is an unknown keyword."""
    schema = read_yaml(path)
    jsonschema.Draft202012Validator.check_schema(schema)
    known = {*jsonschema.Draft202012Validator.VALIDATORS, "title", "description", "default"}
    known |= {"$schema", "$defs", "if", "then", "else", "$comment", "examples", "deprecated"}
    stack = [schema]
    while stack:
        node = stack.pop()
        assert set(node) <= known
        for word in ("properties", "$defs", "patternProperties"):
            stack.extend(node.get(word, {}).values())
        for word in ("items", "additionalProperties", "propertyNames"):
            stack.extend([node[word]] if isinstance(node.get(word), dict) else [])
        for word in ("anyOf", "oneOf", "allOf"):
            stack.extend(node.get(word, ()))
