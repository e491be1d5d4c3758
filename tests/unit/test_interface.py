"""Every public name of the packages documents arguments and results, with tested examples."""

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec

import pytest

import dp_privacy.accounting
from project import ROOT


def modules(package):
    for name in importlib.import_module(package).__all__:
        module = importlib.import_module(f"{package}.{name}")
        lists_modules = hasattr(module, "__path__") and find_spec(
            f"{package}.{name}.{module.__all__[0]}"
        )
        yield from modules(module.__name__) if lists_modules else [module.__name__]


PACKAGES = ("dp", "dp_audit", "dp_privacy", "dp_release")
MODULES = [module for package in PACKAGES for module in modules(package)]


def public():
    """Classes and functions in `__all__`, and the methods that class docstrings list, by name."""
    for name in MODULES:
        module = importlib.import_module(name)
        for each in module.__all__:
            thing = getattr(module, each)
            if not inspect.isclass(thing) and not callable(thing):
                continue  # a constant or a registry
            yield f"{name}.{each}", thing
            if inspect.isclass(thing):
                for method in listed(sections(thing).get("Methods", "")):
                    yield f"{name}.{each}.{method}", getattr(thing, method)


def sections(thing):
    """Sections of an object's numpydoc docstring, by heading."""
    text = "" if thing.__doc__ is None else inspect.cleandoc(thing.__doc__)
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n(-+)$", text, flags=re.MULTILINE)
    for name, line in zip(parts[1::3], parts[2::3], strict=True):
        assert len(name) == len(line), name
    return dict(zip(parts[1::3], parts[3::3], strict=True))


def listed(section):
    """Names that a section describes."""
    heads = [line.partition(" : ")[0] for line in section.splitlines() if re.match(r"\S", line)]
    return [name.lstrip("*") for head in heads for name in head.split(", ")]


PUBLIC = dict(public())


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_is_described(name):
    thing = PUBLIC[name]
    actual = sections(thing)
    if not inspect.isclass(thing):
        parameters = [p for p in inspect.signature(thing).parameters if p not in ("self", "cls")]
        assert listed(actual.get("Parameters", "")) == parameters
        result = inspect.signature(thing).return_annotation
        assert result in (None, "None") or actual.keys() & {"Returns", "Yields"}
        method = name.rpartition(".")[0] not in MODULES
        assert method or actual.keys() & {"Examples", "See Also"}
    elif fields := getattr(thing, "_fields", getattr(thing, "__match_args__", None)):
        assert set(listed(actual["Attributes"])) == set(fields)
    elif "Parameters" in actual:
        parameters = list(inspect.signature(thing).parameters)
        assert set(listed(actual["Parameters"])) <= set(parameters)
        assert "__init__" not in vars(thing) or listed(actual["Parameters"]) == parameters
    else:
        assert "__init__" not in vars(thing) and "Methods" in actual


@cache
def of_module(module):
    return doctest.testmod(importlib.import_module(module))


@pytest.mark.parametrize("name", MODULES)
def test_examples_run_as_printed(name):
    own = {thing.__module__ for n, thing in PUBLIC.items() if n.startswith(f"{name}.")}
    results = [of_module(each) for each in {name, *own}]
    assert not any(actual.failed for actual in results)
    described = any(
        "Examples" in sections(x) for n, x in PUBLIC.items() if n.startswith(f"{name}.")
    )
    assert any(actual.attempted for actual in results) == described


@pytest.mark.slow
def test_the_reference_is_made_by_one_command(tmp_path):
    text = (ROOT / "scripts/dp/README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    .*bin/(pdoc .*) -o reference$", text, flags=re.MULTILINE)
    words = [sys.executable, "-m", *command.split(), "-o", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    pages = {path.relative_to(tmp_path).with_suffix("") for path in tmp_path.rglob("*.html")}
    assert {".".join(page.parts) for page in pages} == {
        "index",
        *PACKAGES,
        *MODULES,
    }
    page = (tmp_path / "dp_privacy/accounting.html").read_text(encoding="utf-8")
    assert all(name in page for name in dp_privacy.accounting.__all__)
