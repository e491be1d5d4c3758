"""Find the project files that a job executes, by following imports.

The digest of these files is a parameter of the job's rule, so an edit reruns only jobs that execute the
edited code. Syntax trees are digested. So no job reruns after a git checkout, or after edits of comments,
layout, functions' annotations or docstrings (except first lines in the files `SHOWN`).
"""

import ast
import atexit
import contextlib
import hashlib
import json
import os
import sys
from functools import cache
from pathlib import Path

from dp.mechanisms import added_folder
from study.configuration import kinds

ROOT = Path(__file__).resolve().parents[1]  # scripts/, which is on every job's sys.path


def roots():
    """The folders of code, including a study's scripts and mechanisms."""
    added = added_folder()
    return [*kinds.roots(), *([] if added is None else [added.parent])]


# Files in which the first lines of functions' docstrings appear in results.
SHOWN = ("dp/data/preparation.py", "plots/", "sources/")
# Fields of syntax trees that do not affect what runs.
UNUSED = ("kind", "type_comment", "returns")
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# A cache of `_found`. A key is a digest of a file's name and text, this module and Python's version.
KEPT = Path(__file__).parent / "__pycache__/digests.json"
MOST = 5000  # maximum number of cache entries


@cache
def _kept():
    try:
        known = json.loads(KEPT.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    atexit.register(_keep, known, len(known))
    return known


def _keep(known, before):
    if len(known) == before:
        return
    draft = KEPT.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):  # this user may have no permission to write here
        KEPT.parent.mkdir(exist_ok=True)
        draft.write_text(json.dumps(dict([*known.items()][-MOST:])), encoding="utf-8")
        draft.replace(KEPT)


@cache
def _found(path):
    """[digest of a file's name and code, names that the file imports]."""
    root = next(root for root in roots() if path.is_relative_to(root))
    name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
    key = hashlib.sha256(f"{_version()}\0{name}\0{text}".encode()).hexdigest()
    if key not in _kept():
        tree = ast.parse(text, filename=str(path))
        code = canonical_code(tree, summaries=name.startswith(SHOWN))
        digested = hashlib.sha256(f"{name}\0{code}".encode()).hexdigest()
        _kept()[key] = [digested, sorted(_imported(tree, path))]
    return _kept()[key]


@cache
def _version():
    return sys.version + Path(__file__).read_text(encoding="utf-8")


def _imported(tree, path):
    names = set()
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{path}:{node.lineno}: relative imports are not followed")
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


@cache
def imports(path):
    """The project files that a file imports, even inside functions, and their packages' __init__.py."""
    return frozenset(file for name in _found(path)[1] for file in module_files(name))


def _statements(node):
    """All statements below a node. Expressions are skipped, because they import nothing."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        below = getattr(node, field, ())
        for child in below if isinstance(below, list) else ():  # a lambda's body is not a list
            yield child
            yield from _statements(child)


def module_files(name):
    """The file of a project module, and the __init__.py of its packages; [] for other modules."""
    parts = name.split(".")
    for root in roots():
        files = []
        for depth in range(1, len(parts) + 1):
            base = root.joinpath(*parts[:depth])
            file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
            if file.is_file():
                files.append(file)
        if files:
            return files
    return []


def files_of_job(script, *modules):
    """All project files that a script executes. modules: modules that it loads by name."""
    waiting = [ROOT / script, *(file for name in modules for file in module_files(name))]
    files = set()
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            waiting.extend(imports(path))
    return sorted(files)


@cache
def looks_up_mechanisms(script, *modules):
    """Whether a job imports the registry, and so may load any mechanism."""
    return module_files("dp.mechanisms")[-1] in files_of_job(script, *modules)


def canonical_code(tree, summaries=False):
    """A syntax tree as text that changes if the code's behaviour may change.

    The text omits docstrings, functions' annotations, `__all__`, and empty fields, which differ between
    Python versions. (`ast.dump` would take twice as long.) summaries: whether to include the first lines
    of functions' docstrings.
    """
    words = []

    def visit(node):
        if isinstance(node, list):
            words.append("[")
            for child in node:
                visit(child)
            words.append("]")
        elif not isinstance(node, ast.AST):
            words.append(repr(node))
        else:
            words.append(f"({type(node).__name__}")
            for field in node._fields:
                value = getattr(node, field, None)
                if field in UNUSED or value is None or value == []:
                    continue
                if field == "annotation" and isinstance(node, ast.arg):
                    continue
                if field == "body" and isinstance(node, WITH_DOCSTRING):
                    value = value[_has_docstring(node) :]
                if isinstance(node, ast.Module):  # `__all__` is unused: no file has `import *`
                    value = [statement for statement in value if not _sets_all(statement)]
                words.append(f"{field}=")
                visit(value)
            if summaries and isinstance(node, ast.FunctionDef) and _has_docstring(node):
                words.append(repr(ast.get_docstring(node).partition("\n")[0]))
            words.append(")")

    visit(tree)
    return " ".join(words)


def _sets_all(node):
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def _has_docstring(node):
    return ast.get_docstring(node, clean=False) is not None


@cache
def digest(script, *modules):
    """Twelve hexadecimal digits that change with the code of any file that a job executes."""
    total = hashlib.sha256()
    for path in files_of_job(script, *modules):
        total.update(bytes.fromhex(_found(path)[0]))
    return total.hexdigest()[:12]
