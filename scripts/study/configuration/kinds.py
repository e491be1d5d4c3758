"""Kinds of tables, figures, analyses and checks: their functions, inputs and options.

A decorated function declares the kind of the same name:

    @figure(CELLS, EpsilonCurve, describes_data=True)
    def epsilon_curve(experiment, spec, frame): ...

Declarations are read from syntax trees, because importing their modules would import matplotlib. So a job
imports only its own kind's module, and depends on no other.
"""

import ast
import functools
import importlib
import math
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from study import paths
from study.configuration import inputs, options
from study.configuration.inputs import CELLS, Inputs
from study.configuration.options import Comparison, Options, PrintedAxis, defaults, named

SCRIPTS = Path(__file__).resolve().parents[2]
FOLDERS = ("plots", "tables", "analyses", "checks", "sources/*")


class Kind(NamedTuple):
    """A kind that a function declares.

    The function's arguments are (experiment, spec, inputs) for tables and figures, (experiment, spec,
    inputs, seed, out) for analyses, which write the file `out`, and (results, **options) for checks.

    suffix: the extension of an analysis's file. exclusive: whether the job measures time and so,
    on a small machine, runs alone. describes_data: whether the function also reads the data sets' .json.
    printed: whether the function reads the source's facts even if no option names them.
    """

    inputs: Inputs = CELLS
    options: type = Options
    suffix: str = "csv"
    exclusive: bool = False
    describes_data: bool = False
    printed: bool = False
    module: str = ""
    function: str = ""

    def load(self):
        return getattr(importlib.import_module(self.module), self.function)

    def shows_printed(self, chosen):
        return self.printed or bool(named(self.options, chosen, Comparison, PrintedAxis))


class _Declared(NamedTuple):
    section: str
    kind: Kind

    def __call__(self, function):
        return function


class _Check(_Declared):
    def __call__(self, function):
        preset = defaults(self.kind.options)

        @functools.wraps(function)
        def run(results, **chosen):
            return function(results, **(preset | chosen))

        return run


def figure(*what, **flags):
    """Declare a function that draws a kind of figure; the arguments are those of `Kind`."""
    return _Declared("figures", Kind(*what, **flags))


def table(*what, **flags):
    return _Declared("tables", Kind(*what, **flags))


def analysis(*what, **flags):
    return _Declared("analyses", Kind(*what, **flags))


def check(*what, **flags):
    """Declare a function that evaluates a kind of check. Missing options get their defaults."""
    return _Check("checks", Kind(*what, **flags))


DECORATORS = {each.__name__: each for each in (figure, table, analysis, check)}
# Names that a declaration of a kind may use.
WORDS = {name: value for name, value in (vars(options) | vars(inputs)).items() if name[0] != "_"}
WORDS |= {**DECORATORS, "math": math, "__name__": __name__}


def roots():
    return _roots(Path.cwd(), paths.in_study())


@cache
def _roots(folder, in_study):
    own = (folder / "scripts").resolve()
    return [SCRIPTS, *([own] if in_study and own != SCRIPTS else [])]


@cache
def _index(folders):
    """(decorator, function) -> file, for every kind. No file is parsed."""
    files = {}
    for root in folders:
        for file in sorted(file for name in FOLDERS for file in root.glob(f"{name}/*.py")):
            text = file.read_text(encoding="utf-8")
            for section, name in re.findall(r"^@(\w+)\((?:.*\n)+?def (\w+)\(", text, re.MULTILINE):
                if section not in DECORATORS:
                    continue
                if (section, name) in files:
                    other = files[section, name]
                    raise ValueError(
                        f"{file}: another file has a {section} of the kind {name!r}: {other}"
                    )
                files[section, name] = file
    return files


@cache
def _declared(file):
    root = next(root for root in roots() if file.is_relative_to(root))
    module = ".".join(file.relative_to(root).with_suffix("").parts)
    words, declared = _words(file), {}
    for node in _tree(file).body:
        for decorator in getattr(node, "decorator_list", ()):
            if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") in DECORATORS:
                section, kind = eval(_compiled(ast.Expression(decorator), "eval"), words)
                kind = kind._replace(module=module, function=node.name)
                declared[section, node.name] = kind
    return declared


@cache
def _words(file):
    """WORDS, and option classes that a file defines or imports from another file that declares kinds."""
    words = dict(WORDS)
    for node in _tree(file).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            for path in (root.joinpath(*parts).with_suffix(".py") for root in roots()):
                if parts[0] in {name.partition("/")[0] for name in FOLDERS} and path.is_file():
                    there = _words(path)
                    words |= {n.name: there[n.name] for n in node.names if n.name in there}
        if isinstance(node, ast.ClassDef):
            bases = [words.get(base.id) for base in node.bases if isinstance(base, ast.Name)]
            if any(isinstance(base, type) and issubclass(base, Options) for base in bases):
                exec(_compiled(ast.Module([node], []), "exec"), words)
    return words


def _compiled(node, mode):
    return compile(ast.fix_missing_locations(node), "<kinds>", mode)


@cache
def _tree(file):
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


class _Kinds(Mapping):
    def __init__(self, section):
        self.section = section
        (self.decorator,) = (
            name for name, decorator in DECORATORS.items() if decorator().section == section
        )

    def _files(self):
        files = _index(tuple(roots()))
        return {
            name: file for (decorator, name), file in files.items() if decorator == self.decorator
        }

    def __getitem__(self, name):
        file = _index(tuple(roots()))[self.decorator, name]
        if not file.is_relative_to(SCRIPTS) and str(Path("scripts").resolve()) not in sys.path:
            sys.path.append(str(Path("scripts").resolve()))
        return _declared(file)[self.section, name]

    def __contains__(self, name):
        return (self.decorator, name) in _index(tuple(roots()))

    def __iter__(self):
        return iter(self._files())

    def __len__(self):
        return len(self._files())


TABLES, FIGURES, ANALYSES = _Kinds("tables"), _Kinds("figures"), _Kinds("analyses")
SECTIONS = {"tables": TABLES, "figures": FIGURES, "analyses": ANALYSES}
# Checks of claims and defects: see `checks.statements`.
CHECKS = _Kinds("checks")
