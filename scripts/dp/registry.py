"""The registry: how a mechanism's name leads to its file.

`MECHANISMS["my_mechanism"]` imports only that mechanism's file, so a job depends on no other
mechanism's source.

The environment variable DP_MECHANISMS names a folder of further mechanisms, whose claims count as unproven.
"""

import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from dp_privacy.errors import Refused

ADDED = "DP_MECHANISMS"
FOLDER, PACKAGE = Path(__file__).parent / "mechanisms", "dp.mechanisms"


def register(name: str) -> Callable:
    """A class decorator that makes an instance available as MECHANISMS[name].

    Parameters
    ----------
    name : str
        A literal string.

    Returns
    -------
    Callable

    Examples
    --------
    >>> "output_perturbation" in MECHANISMS
    True
    """

    def decorate(mechanism):
        MECHANISMS._loaded[name] = instance = mechanism()
        instance.name = name
        if not mechanism.__module__.startswith(f"{PACKAGE}."):
            instance.proven = False
        return mechanism

    return decorate


def added_folder() -> Path | None:
    """The folder of additional mechanisms, or None."""
    return Path(os.environ[ADDED]) if os.environ.get(ADDED) else None


@cache
def _files(added):
    """Map each name in a line `@register("name")` to (module, whether it is added), without imports.

    added: `added_folder()`, which is a package.
    """
    modules, here = {}, FOLDER
    folders = [(here, PACKAGE, False), (here / "published", f"{PACKAGE}.published", False)]
    folders += [(added, added.name, True)] if added else []
    for folder, package, is_added in folders:
        for path in sorted(folder.glob("*.py")):
            if path.name == "__init__.py":
                continue
            text = path.read_text(encoding="utf-8")
            for name in re.findall(r'^@register\("(\w+)"\)', text, flags=re.MULTILINE):
                if name in modules:
                    raise Refused(f"{path}: another file registers a mechanism {name!r} too")
                modules[name] = f"{package}.{path.stem}", is_added
    return modules


class _Mechanisms(Mapping):
    def __init__(self):
        self._loaded = {}

    def __getitem__(self, name):
        if name not in self._loaded:
            folder = added_folder()
            module, added = _files(folder)[name]
            if added:
                sys.path.append(str(folder.resolve().parent))
            importlib.import_module(module)
        return self._loaded[name]

    def __contains__(self, name):
        return name in _files(added_folder())

    def __iter__(self):
        return iter(_files(added_folder()))

    def __len__(self):
        return len(_files(added_folder()))

    @staticmethod
    def module(name: str) -> str:
        """The name of a mechanism's module, without importing it."""
        return _files(added_folder())[name][0]

    def added(self) -> list[str]:
        """The names of mechanisms from outside this package."""
        return [name for name, (_, added) in _files(added_folder()).items() if added]


MECHANISMS = _Mechanisms()
