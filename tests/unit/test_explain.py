"""config/README.md and the schemas agree with the classes of configuration and the code."""

import json
import re

import explain_config
import jsonschema
import pytest

from dp.mechanisms import MECHANISMS
from project import ROOT
from study import paths
from study.configuration import kinds
from study.configuration.validation import read_yaml

SCHEMAS = sorted((ROOT / "workflow/schemas").iterdir())


def test_the_page_and_the_schemas_are_what_is_generated():
    for path, made in explain_config.written().items():
        actual = path.read_text(encoding="utf-8")
        for name in MECHANISMS:  # a user's own mechanism needs no entry
            if f"| `{name}` |" not in actual:
                made = re.sub(rf"^\| `{name}` \|.*\n", "", made, flags=re.MULTILINE)
        assert actual == made, f"{path.name}: run python scripts/tools/explain_config.py"
    assert {path.name for path in SCHEMAS} == {
        f"{name}.schema.json" for name in explain_config.FILES
    }


def test_every_key_mechanism_and_kind_is_explained():
    text = (ROOT / "config/README.md").read_text(encoding="utf-8")
    for path in SCHEMAS:
        for key in keys(json.loads(path.read_text())):
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


def test_every_place_of_a_result_is_explained():
    text = (ROOT / "config/README.md").read_text(encoding="utf-8")
    for place in vars(paths).values():
        if isinstance(place, paths.Place):
            assert f"| `{place().replace('{', '<').replace('}', '>')}` |" in text


NAMED = [
    (path, match[1])
    for path in sorted((ROOT / "config").rglob("*.yaml"))
    if (match := re.match(r"# yaml-language-server: \$schema=(.*)\n", path.read_text()))
]
# Users copy the template to places from where no relative path leads to a schema.
TEMPLATE = {
    "audit": "audit",
    "datasets": "datasets",
    "experiments/my_study": "experiment",
    "releases/affairs": "release",
}
NAMED += [
    (ROOT / f"workflow/template/config/{name}.yaml", ROOT / f"workflow/schemas/{kind}.schema.json")
    for name, kind in TEMPLATE.items()
]


@pytest.mark.parametrize(("path", "schema"), NAMED, ids=[str(p.name) for p, _ in NAMED])
def test_a_file_fits_the_schema_that_it_names_to_editors(path, schema):
    schema = json.loads((path.parent / schema).read_text())
    validator = jsonschema.Draft202012Validator(schema)
    wrong = [e for e in validator.iter_errors(read_yaml(path)) if e.validator != "required"]
    assert not wrong, wrong[0]
    misspelt = read_yaml(path) | {"a b": 1}
    assert schema.get("additionalProperties", True) or not validator.is_valid(misspelt)


def test_shipped_files_name_a_schema():
    named = {path for path, _ in NAMED}
    of_sources = (ROOT / "config/sources").glob("*/*.yaml")
    shipped = {path for path in of_sources if path.name != "printed.yaml"}
    assert {*(ROOT / "config/experiments").glob("*.yaml"), *shipped} <= named
