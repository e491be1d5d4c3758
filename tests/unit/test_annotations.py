import ast
import importlib
import inspect
import typing

import pytest

from project import ROOT

FOLDER = ROOT / "scripts"
MODULES = sorted(path for path in FOLDER.glob("dp*/**/*.py"))


def public(body, prefix=""):
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public(node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield prefix + node.name, node


def untyped(function):
    arguments = function.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if each.annotation is None and each.arg not in ("self", "cls"):
            yield each.arg
    if function.returns is None:
        yield "the result"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_public_functions_are_annotated(path):
    missing = {name: list(untyped(node)) for name, node in public(ast.parse(path.read_text()).body)}
    assert not {name: unannotated for name, unannotated in missing.items() if unannotated}
    name = ".".join(path.relative_to(FOLDER).with_suffix("").parts).removesuffix(".__init__")
    module = importlib.import_module(name)
    for function in vars(module).values():
        if inspect.isfunction(function) and function.__module__ == name:
            typing.get_type_hints(function)  # raises if an annotation uses an unknown name
