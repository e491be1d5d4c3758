"""Digest the project code that a job executes, by following imports.

The digest is a parameter of the job's rule, so an edit reruns only jobs that execute the edited code.
Syntax trees are digested. So no job reruns after a git checkout, or after edits of comments, layout,
functions' annotations or docstrings (except first lines that results show: `SHOWN`).

No path is digested, so no job reruns after files have moved. An import counts by the name that it binds,
the attribute that it takes, and the digests of the files that it executes, which cover their own imports.
"""

import ast
import hashlib
import inspect
import json
import sys
from functools import cache
from itertools import groupby
from pathlib import Path

from dp.mechanisms import MECHANISMS
from dp.registry import added_folder
from study.configuration import kinds
from study.kept import Kept

ROOT = Path(__file__).resolve().parents[1]  # scripts/, which is on every job's sys.path


def roots():
    """The folders of code, including a study's scripts and mechanisms."""
    added = added_folder()
    return [*kinds.roots(), *([] if added is None else [added.parent])]


# Decorators of functions whose docstrings' first lines appear in results.
SHOWN = ("figure", "step")
# Fields of syntax trees that do not affect what runs.
UNUSED = ("kind", "type_comment", "returns")
# Names on whose values no result depends. `__all__` is unused, as no file has `import *`.
UNREAD = ("__all__", "__version__")
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# A cache of `_found`. A key is a digest of a file's text, this module and Python's version.
FOUND = Kept(Path(__file__).parent / "__pycache__/digests.json", most=5000)


@cache
def _found(path):
    """A file's `imports` as in `canonical_code`, and the digest of its other `code`, "" if it has none."""
    text = path.read_text(encoding="utf-8")
    key = hashlib.sha256(f"{_version()}\0{text}".encode()).hexdigest()
    if key not in FOUND.values:
        try:
            code, imports = canonical_code(ast.parse(text, filename=str(path)))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        digested = "" if code == NO_CODE else hashlib.sha256(code.encode()).hexdigest()
        FOUND.values[key] = {"code": digested, "imports": imports}
    return FOUND.values[key]


@cache
def _version():
    return sys.version + Path(__file__).read_text(encoding="utf-8")


@cache
def module_files(name):
    """The packages' __init__.py and the file that an import of a project module reads; () for others."""
    parts = name.split(".")
    for root in roots():
        files = []
        for depth in range(1, len(parts) + 1):
            base = root.joinpath(*parts[:depth])
            files.append(base / "__init__.py" if base.is_dir() else base.with_suffix(".py"))
        if files[-1].is_file():
            return tuple(file for file in files if file.is_file())
    return ()


@cache
def _blocks(path):
    """A file's blocks of imports. Each import is (bound name, attribute, project files that it reads).

    For modules outside the project, the attribute includes the module's name, and no files are read.
    """
    return [[_resolved(*each) for each in block] for block in _found(path)["imports"]]


def _resolved(bound, module, attribute):
    files = attribute and module_files(f"{module}.{attribute}")
    if files:  # a module of the package `module`
        return bound, "", files
    files = module_files(module)
    return bound, attribute if files else f"{module} {attribute}", files


@cache
def _imported(path):
    """The project files that a file imports, even inside functions, and their packages' __init__.py."""
    return frozenset(f for block in _blocks(path) for _, _, files in block for f in files)


@cache
def _executed(path):
    """A file, and all that it imports directly or indirectly."""
    waiting, files = [path], set()
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            waiting.extend(_imported(path))
    return files


def files_of_job(script, *modules):
    """All project files that a script executes. modules: modules that it loads by name."""
    loaded = [ROOT / script, *(file for name in modules for file in module_files(name))]
    return sorted(set().union(*map(_executed, loaded)))


@cache
def looks_up_mechanisms(script, *modules):
    """Whether a job imports the registry, and so may load any mechanism."""
    return Path(inspect.getfile(type(MECHANISMS))).resolve() in files_of_job(script, *modules)


def canonical_code(tree):
    """A syntax tree as text that changes if the code's behaviour may change, and the tree's imports.

    The text omits imports, docstrings, functions' annotations, values of `UNREAD`, and empty fields, which
    differ between Python versions. (`ast.dump` would take twice as long.)

    The imports are a list of blocks, statements that follow each other, so that their order does not count.
    A block is a list of [bound name, module, attribute], with the attribute "" for the module itself.
    """
    words, imports = [], []

    def visit(node):
        if isinstance(node, list):
            words.append("[")
            for importing, children in groupby(node, _imports):
                if importing:
                    words.append("imports")
                    imports.append(sorted(name for child in children for name in _names(child)))
                else:
                    for child in children:
                        visit(child)
            words.append("]")
        elif not isinstance(node, ast.AST):
            words.append(repr(node))
        else:
            words.append(f"({type(node).__name__}")
            for field in node._fields:
                value = getattr(node, field, None)
                if field == "body" and isinstance(node, WITH_DOCSTRING):
                    value = value[_has_docstring(node) :]
                if isinstance(node, ast.Module):
                    value = [statement for statement in value if not _sets_unread(statement)]
                if field in UNUSED or value is None or value == []:
                    continue
                if field == "annotation" and isinstance(node, ast.arg):
                    continue
                words.append(f"{field}=")
                visit(value)
            if isinstance(node, ast.FunctionDef) and _is_shown(node) and _has_docstring(node):
                words.append(repr(ast.get_docstring(node).partition("\n")[0]))
            words.append(")")

    visit(tree)
    return " ".join(words), imports


def _imports(node):
    return isinstance(node, (ast.Import, ast.ImportFrom))


def _names(node):
    """[bound name, module, attribute] for each name of an import."""
    if isinstance(node, ast.Import):
        return [[a.asname or a.name.partition(".")[0], a.name, ""] for a in node.names]
    if node.level:
        raise ValueError(f"line {node.lineno}: relative imports are not followed")
    return [[a.asname or a.name, node.module, a.name] for a in node.names]


def _sets_unread(node):
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in UNREAD


def _is_shown(node):
    called = [each.func for each in node.decorator_list if isinstance(each, ast.Call)]
    return any(ast.unparse(each).rpartition(".")[2] in SHOWN for each in called)


def _has_docstring(node):
    return ast.get_docstring(node, clean=False) is not None


NO_CODE = canonical_code(ast.parse(""))[0]


@cache
def _circle(path):
    """A file, and the files that it imports which also import it, both directly or indirectly."""
    return frozenset({path, *(file for file in _executed(path) if path in _executed(file))})


@cache
def _digests(circle):
    """The digest of each file of a circle, which covers all that the file imports.

    It is computed from the digests of the files that it imports. In a circle, these are not known before,
    so all are computed from the last ones, as often as the circle has files. Then what distinguishes one
    file has reached every other, however many imports away it is.
    """
    known = dict.fromkeys(circle, "")

    def now(file):
        return known[file] if file in circle else _digests(_circle(file))[file]

    for _ in circle:
        known = {file: _digest_of(file, now) for file in circle}
    return known


def _digest_of(path, now):
    blocks = [
        sorted(
            [bound, attribute, *map(now, filter(_has_code, files))]
            for bound, attribute, files in block
        )
        for block in _blocks(path)
    ]
    return hashlib.sha256(json.dumps([_found(path)["code"], blocks]).encode()).hexdigest()


def _has_code(path):
    return bool(_found(path)["code"])


@cache
def digest(script, *modules):
    """Twelve hexadecimal digits that change with any code that a job executes.

    modules: modules that it loads by name. Names are part of the job's other parameters.
    """
    loaded = {file for name in modules for file in module_files(name) if _has_code(file)}
    own, *others = (_digests(_circle(file))[file] for file in (ROOT / script, *loaded))
    return hashlib.sha256(" ".join([own, *sorted(others)]).encode()).hexdigest()[:12]
