"""Kinds of tables, figures, analyses and checks: their functions, inputs and options.

A decorated function declares the kind of the same name:

    @figure(CELLS, EpsilonCurve, describes_data=True)
    def epsilon_curve(experiment, spec, frame): ...

The workflow imports all modules that declare kinds, so they import matplotlib, seaborn and pandas only
inside functions. A job imports only its own kinds' modules, and depends on no other.
"""

import functools
import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from study import paths
from study.configuration.inputs import CELLS, Inputs
from study.configuration.options import Comparison, Options, PrintedAxis, defaults, named

SCRIPTS = Path(__file__).resolve().parents[2]
# Modules that declare kinds: the workflow's, and those of sources, which a study may have, too.
FOLDERS = ("plots", "tables", "analyses", "checks")
OF_SOURCE = ("figures", "tables", "analyses", "checks")
# Environment variable of jobs: section -> kind -> module, as JSON.
MODULES = "DP_KINDS"


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
    function: Callable | None = None

    @property
    def module(self):
        return self.function.__module__

    def shows_printed(self, chosen):
        return self.printed or bool(named(self.options, chosen, Comparison, PrintedAxis))


class _Kinds(Mapping):
    """The kinds of one section by name. Asking for one imports its module or, in the workflow, all."""

    def __init__(self, section):
        self.section, self._declared = section, {}

    def declare(self, kind, function):
        name = function.__name__
        other = self._declared.get(name)
        if other and other.module != function.__module__:
            there = sys.modules[other.module].__file__
            raise ValueError(f"another file has {self.section} of the kind {name!r}: {there}")
        self._declared[name] = kind._replace(function=function)
        return function

    def __getitem__(self, name):
        if name not in self._declared:
            of_job = json.loads(os.environ.get(MODULES, "{}")).get(self.section, {})
            _load([of_job[name]] if name in of_job else _modules())
        return self._declared[name]

    def _all(self):
        """All kinds, in the order of their modules, whichever was imported first."""
        modules = _modules()
        _load(modules)
        kinds = self._declared.items()
        return dict(sorted(kinds, key=lambda item: modules.index(item[1].module)))

    def __iter__(self):
        return iter(self._all())

    def __contains__(self, name):
        return name in self._all()

    def __len__(self):
        return len(self._all())


TABLES, FIGURES, ANALYSES = _Kinds("tables"), _Kinds("figures"), _Kinds("analyses")
SECTIONS = {"tables": TABLES, "figures": FIGURES, "analyses": ANALYSES}
# Checks of claims and defects: see `checks.statements`.
CHECKS = _Kinds("checks")


def figure(*what, **flags):
    """Declare a function that draws a kind of figure; the arguments are those of `Kind`."""
    return functools.partial(FIGURES.declare, Kind(*what, **flags))


def table(*what, **flags):
    return functools.partial(TABLES.declare, Kind(*what, **flags))


def analysis(*what, **flags):
    return functools.partial(ANALYSES.declare, Kind(*what, **flags))


def check(*what, **flags):
    """Declare a function that evaluates a kind of check. Missing options get their defaults."""
    kind = Kind(*what, **flags)

    def declare(function):
        @functools.wraps(function)
        def run(results, **chosen):
            return function(results, **(defaults(kind.options) | chosen))

        return CHECKS.declare(kind, run)

    return declare


def roots():
    return _roots(Path.cwd(), paths.in_study())


@cache
def _roots(folder, in_study):
    own = (folder / "scripts").resolve()
    return [SCRIPTS, *([own] if in_study and own != SCRIPTS else [])]


def load_all():
    """Import all modules that declare kinds."""
    _load(_modules())


def _modules():
    return _found(tuple(roots()))


@cache
def _found(folders):
    names = []
    for root in folders:
        patterns = [f"sources/*/{name}.py" for name in OF_SOURCE]
        patterns += [f"{name}/*.py" for name in FOLDERS] if root == SCRIPTS else []
        files = sorted(file for pattern in patterns for file in root.glob(pattern))
        names += [".".join(file.relative_to(root).with_suffix("").parts) for file in files]
    return [name for name in names if not name.endswith(".__init__")]


def _load(modules):
    sys.path += [str(root) for root in roots() if str(root) not in sys.path]
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:
            file = f"{name.replace('.', '/')}.py"
            raise ImportError(f"{file}: {type(error).__name__}: {error}") from error


def modules():
    """The modules of all kinds, as the value of `MODULES`."""
    sections = SECTIONS | {"checks": CHECKS}
    return json.dumps(
        {key: {name: sections[key][name].module for name in sections[key]} for key in sections}
    )
