"""Rooms import downwards only, in no circle; the picture and the walks of the architecture are true."""

import ast
import re
from collections import defaultdict
from functools import cache

import pytest

from project import ROOT

SCRIPTS = ROOT / "scripts"
README = (SCRIPTS / "README.md").read_text(encoding="utf-8")

# Room -> the rooms that its files may import. Each imports only rooms that stand above it here.
BASE = ("dp_privacy", "dp")
KINDS = ("checks", "tables", "analyses", "plots", "sources")
MAY_IMPORT = {
    "dp_privacy": (),
    "dp": ("dp_privacy",),
    "dp_audit": BASE,
    "dp_release": BASE,
    "study": (*BASE, "dp_audit", "dp_release"),
    "checks": (*BASE, "study"),
    "tables": (*BASE, "study"),
    "analyses": (*BASE, "dp_audit", "study"),
    "plots": (*BASE, "study", "tables"),
    "sources": (*BASE, "study", "checks", "tables", "plots"),
    "reporting": (*BASE, "study", "checks", "tables", "plots"),
    "jobs": (*BASE, "dp_audit", "dp_release", "study", *KINDS, "reporting"),
    "tools": (*BASE, "dp_audit", "dp_release", "study", "checks", "tables", "plots", "reporting"),
    "examples": (*BASE, "dp_audit", "dp_release"),
}


def module_of(path):
    return ".".join(path.relative_to(SCRIPTS).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in SCRIPTS.rglob("*.py")}


@cache
def imports(module):
    """The project's modules that a module imports, even inside functions."""
    names = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    near = {name if name in MODULES else name.rpartition(".")[0] for name in names}
    return near & MODULES.keys() - {module}


def arrows():
    """Room -> {other room: an import of it}."""
    between = defaultdict(dict)
    for module in MODULES:
        for other in imports(module):
            rooms = module.partition(".")[0], other.partition(".")[0]
            if rooms[0] != rooms[1]:
                between[rooms[0]][rooms[1]] = f"{module} imports {other}"
    return between


def test_every_file_is_in_a_room():
    rooms = {path.relative_to(SCRIPTS).parts[0] for path in MODULES.values()}
    assert rooms == {*MAY_IMPORT, "job.py"}


def test_rooms_import_only_rooms_below():
    for room, below in MAY_IMPORT.items():
        assert {*below} <= {*list(MAY_IMPORT)[: list(MAY_IMPORT).index(room)]}, room
    wrong = [
        why
        for room, others in arrows().items()
        for other, why in others.items()
        if other not in MAY_IMPORT.get(room, MAY_IMPORT)
    ]
    assert not wrong


def test_no_modules_import_each_other_in_a_circle():
    """Modules that import no other, or that no other imports, are in no circle: each round removes them."""
    left = {module: {*imports(module)} for module in MODULES}
    count = None
    while count != len(left):
        count = len(left)
        used = {other for others in left.values() for other in others}
        left = {module: others & left.keys() for module, others in left.items() if module in used}
        left = {module: others for module, others in left.items() if others}
    assert not left


def test_the_picture_is_that_of_the_files():
    picture = re.search(r"^```mermaid\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[1]
    drawn = re.findall(r"^    (\w+) --> (\w+)$", picture, re.MULTILINE)
    assert {room for pair in drawn for room in pair} == MAY_IMPORT.keys()
    below = {room: {b for a, b in drawn if a == room} for room in MAY_IMPORT}
    for room in MAY_IMPORT:  # the rooms below come first
        below[room] |= {other for near in below[room] for other in below[near]}
    for room, others in MAY_IMPORT.items():
        assert {*others} <= below[room], f"{room}: an allowed import has no arrow"
    assert all(b in MAY_IMPORT[a] for a, b in drawn)
    lines = re.findall(r"^\| (`.*?) \| ", README[: README.index("## Three walks")], re.MULTILINE)
    assert {*re.findall(r"`(\w+)`", " ".join(lines))} == MAY_IMPORT.keys()


WALKS = dict(
    re.findall(
        r"^\*\*(.*?):\*\*\n\n((?:\d\. .*\n(?:   .*\n)*)+)",
        README[README.index("## Three walks") : README.index("## How data flow")],
        re.MULTILINE,
    )
)


def files_of(walk):
    return [ROOT / path for path in re.findall(r"`((?:[\w.]+/)+[\w.]+|Snakefile)`", walk)]


def names(earlier, path):
    """Whether a file names another: by an import, its path, as a job, or as a registered mechanism."""
    text = earlier.read_text(encoding="utf-8")
    if path.relative_to(ROOT).as_posix() in text:
        return True
    if path.suffix != ".py":
        return False
    module = module_of(path)
    if re.search(rf'job\.py" {path.stem} ', text) and module == f"jobs.{path.stem}":
        return True
    for source, imported in re.findall(r"from ([\w.]+) import (\([^)]*\)|.*)", text):
        if module in {source, *(f"{source}.{name}" for name in re.findall(r"\w+", imported))}:
            return True
    registered = re.findall(
        r'^@register\("(\w+)"\)', path.read_text(encoding="utf-8"), re.MULTILINE
    )
    return any(re.search(rf"\b{name}\b", text) for name in registered)


def test_there_are_three_walks():
    assert len(WALKS) == 3 and all(len(files_of(walk)) > 8 for walk in WALKS.values())


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_each_file_of_a_walk_is_named_by_one_before(walk):
    """Configuration is written by people, so it needs only to exist."""
    files = files_of(walk)
    assert [path for path in files if not path.exists()] == []
    programs = [path for path in files if path.suffix != ".yaml"]
    lost = [
        path
        for path in programs[1:]
        if not any(names(earlier, path) for earlier in files[: files.index(path)])
    ]
    assert not lost
