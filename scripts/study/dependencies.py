"""Which of the project's own files a job executes, found from their imports.

A rule carries the digest of those files as a parameter, so an edit reruns exactly the jobs that
execute the edited file, and touching files (a git checkout) reruns nothing.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]  # scripts/, which is on the path of every job


@cache
def imports(path):
    """Project files that one file imports, at its top or inside functions, with their packages."""
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{path}:{node.lineno}: relative imports are not followed")
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(file for name in names for file in module_files(name))


def module_files(name):
    """The file of a project module and the __init__.py of the packages around it; () for others."""
    parts = name.split(".")
    found = []
    for depth in range(1, len(parts) + 1):
        base = ROOT.joinpath(*parts[:depth])
        file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        if file.is_file():
            found.append(file)
    return found


def sources(script, *modules):
    """All project files that `scripts/<script>` executes, given the modules it loads by name."""
    waiting = [ROOT / script, *(file for name in modules for file in module_files(name))]
    found = set()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(imports(path))
    return sorted(found)


@cache
def looks_up_mechanisms(script, *modules):
    """Whether such a job imports the registry, by which it may load any mechanism of its experiment."""
    return module_files("dp.mechanisms")[-1] in sources(script, *modules)


@cache
def _content(path):
    return hashlib.sha256(path.read_bytes()).digest()


@cache
def digest(script, *modules):
    """Twelve hexadecimal digits that change with the content of any file in `sources`."""
    total = hashlib.sha256()
    for path in sources(script, *modules):
        total.update(str(path.relative_to(ROOT)).encode() + b"\0" + _content(path))
    return total.hexdigest()[:12]
