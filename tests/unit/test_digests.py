"""The digest that decides what reruns depends on the code, not on how it is written."""

import ast
import hashlib
import re
import shutil
import textwrap
from functools import cache
from pathlib import Path

import pytest

from configured import forget_files
from dp.mechanisms import MECHANISMS
from project import ROOT
from study import dependencies
from study.configuration import kinds
from study.data.preparation import STEPS
from study.dependencies import canonical_code, digest, files_of_job

CODE = '''
"""What the module is for."""
import math


class Circle:
    """A circle."""

    def __init__(self, radius: float = 1.0, *, name=None):
        """Any radius."""
        self.radius, self.name = radius, name or f"circle of {radius:.3g}"

    def area(self):
        return math.pi * self.radius**2  # an area
'''


def code(text):
    return canonical_code(ast.parse(textwrap.dedent(text)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # an area", "  # the area, in square units"),
        ('"""A circle."""', '"""All points of the plane at one distance from its centre."""'),
        ('"""What the module is for."""\n', ""),
        (
            "return math.pi * self.radius**2",
            "return (\n            math.pi * self.radius**2\n        )",
        ),
        ("name=None):", "name=None,):"),
        ("radius: float = 1.0", "radius: int | None = 1.0"),
        ("def area(self):", "def area(self) -> float:"),
        ("import math\n", 'import math\n\n__all__ = ["Circle"]\n'),
    ],
)
def test_comments_docstrings_and_layout_are_no_code(old, new):
    assert old in CODE
    assert code(CODE.replace(old, new)) == code(CODE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("radius**2", "radius**3"),
        ("radius: float = 1.0", "radius: float = 2.0"),
        (":.3g}", ":.4g}"),
        ("circle of", "disc of"),
        ("def area", "def size"),
        ("*, name=None", "name=None"),
        ("self.radius, self.name = radius, name", "self.name, self.radius = radius, name"),
        ("import math", "import cmath as math"),
        ("        return math.pi", "        return 1 + math.pi"),
        ("1.0, *", "1, *"),
    ],
)
def test_what_executes_is_code(old, new):
    assert old in CODE
    assert code(CODE.replace(old, new)) != code(CODE)


def test_the_type_of_a_field_is_code():
    assert code("class A:\n    x: int = 1") != code("class A:\n    x: float = 1")


def test_a_string_that_is_no_docstring_is_code():
    assert code("def f():\n    x = 'a'\n    'b'") != code("def f():\n    x = 'a'\n    'c'")


def test_a_docstring_counts_where_results_show_it():
    one, two = (
        f'@step(True)\ndef f():\n    """{text}.\n\n    More."""' for text in ("Draw", "Colour")
    )
    assert code(one) != code(two)
    assert code(one) == code(one.replace("More", "Less"))
    one, two = (text.replace("step", "steps") for text in (one, two))
    assert code(one) == code(two)


def test_results_show_docstrings_of_these_decorators():
    functions = [step.apply for step in STEPS.values()]
    functions += [kind.function for kind in kinds.FIGURES.values()]
    known = cache(code)
    for function in functions:
        path = Path(function.__code__.co_filename)
        text, shown = path.read_text(encoding="utf-8"), function.__doc__.partition("\n")[0]
        assert code(text.replace(shown, "Another line.")) != known(text), function


def test_every_version_of_python_finds_the_same():
    """The digest is recorded here. A parser that keeps more or less would change every digest."""
    text, imports = code(CODE)
    assert imports == [[["math", "math", ""]]]
    assert hashlib.sha256(text.encode()).hexdigest().startswith("df60c4beacda662f")


def test_what_an_import_binds_and_takes():
    text = """
        import numpy as np, study.paths
        from dp import losses
        from dp.losses import get as loss_of

        X = 1


        def f():
            import dp.noise as draws
    """
    assert code(text)[1] == [
        [
            ["loss_of", "dp.losses", "get"],
            ["losses", "dp", "losses"],
            ["np", "numpy", ""],
            ["study", "study.paths", ""],
        ],
        [["draws", "dp.noise", ""]],
    ]
    with pytest.raises(ValueError, match="line 1: relative imports are not followed"):
        code("from . import paths")


# A job, and a package of six files: `shapes` imports its modules, of which two import it.
SIX = {
    "job.py": """
        import numpy as np
        from names import title
        from pack import area
        from pack.deep import lines
        import pack.colours as colours

        def main():
            from pack.shapes import Circle
            return area, lines, colours, Circle, title, np
    """,
    "names.py": "def title(): return 'a'",
    "pack/__init__.py": """
        '''Shapes.'''
        from pack.shapes import Circle, area
    """,
    "pack/shapes.py": """
        import pack.colours as colours
        from pack.deep.lines import length
        from pack.deep.points import distance

        class Circle: pass

        def area(): return colours, length, distance
    """,
    "pack/colours.py": "RED = 1",
    "pack/deep/__init__.py": "'''Nothing but lines.'''",
    "pack/deep/lines.py": """
        from pack import deep
        from pack.deep.points import distance

        def length(): return distance
        def distance(): return 1
    """,
    "pack/deep/points.py": """
        from names import title

        def distance():
            from pack import shapes
            return shapes, title
    """,
}


def written(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return folder


@pytest.fixture
def at(monkeypatch):
    """A function that makes a folder the only folder of code."""

    def use(folder):
        monkeypatch.setattr(dependencies, "ROOT", folder)
        monkeypatch.setattr(dependencies, "roots", lambda: [folder])
        forget_files()

    yield use
    monkeypatch.undo()
    forget_files()


@pytest.fixture
def digest_of(at, tmp_path_factory):
    """A function from files to the digest of job.py with the module `named`."""

    def made(files, *named):
        at(written(tmp_path_factory.mktemp("code"), files))
        return digest("job.py", *named)

    return made


@pytest.mark.parametrize("package", ["rooms", "house.upper.rooms"])
def test_a_package_of_six_files_moves_and_no_digest_changes(digest_of, package):
    place = package.replace(".", "/")
    moved = {
        re.sub("^pack/", f"{place}/", name): re.sub(r"\bpack\b", package, text)
        for name, text in SIX.items()
    }
    moved |= {"house/__init__.py": "'''A house.'''", "house/upper/__init__.py": ""}
    # As isort would sort them after the move.
    lines = moved["job.py"].splitlines()
    moved["job.py"] = "\n".join([*sorted(lines[1:6], reverse=True), *lines[6:]])
    assert digest_of(moved) == digest_of(SIX)
    assert digest_of(moved, f"{package}.colours") == digest_of(SIX, "pack.colours")
    assert digest_of(SIX, "pack.colours") != digest_of(SIX)


def test_the_report_does_not_import_the_release_library():
    sections = (*kinds.SECTIONS.values(), kinds.CHECKS)
    modules = {kind.module for section in sections for kind in section.values()}
    files = {path.as_posix() for path in files_of_job("jobs/report.py", *modules)}
    assert any(path.endswith("reporting/road.py") for path in files)
    own = {path.as_posix() for path in files_of_job("jobs/forecasts.py")}
    library = {path for path in own if "/dp_release/" in path}
    assert len(library) > 10 and not library & files


def test_a_file_gets_another_name_and_no_digest_changes(digest_of):
    text = "\n".join(SIX).replace("names.py", "titles.py")
    renamed = dict(
        zip(text.split(), (t.replace("names", "titles") for t in SIX.values()), strict=True)
    )
    assert digest_of(renamed) == digest_of(SIX)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        # The same name from another file, both of which are executed anyway: in a circle ...
        ("pack/shapes.py", "deep.points import distance", "deep.lines import distance"),
        (
            "pack/__init__.py",
            "import Circle, area",
            "import Circle, area as length, length as area",
        ),
        # ... outside it, and inside a function
        ("job.py", "from pack import area", "from pack.shapes import area"),
        ("job.py", "import pack.colours as colours", "import names as colours"),
        ("job.py", "from pack.shapes import Circle", "from pack.colours import Circle"),
        # another attribute, and another package
        ("pack/deep/points.py", "import title", "import other as title"),
        ("job.py", "import numpy as np", "import scipy as np"),
        ("job.py", "from names import title", "from nowhere import title"),
        # code at any distance
        ("names.py", "'a'", "'b'"),
        ("pack/colours.py", "RED = 1", "RED = 2"),
        ("pack/deep/lines.py", "return 1", "return 2"),
        ("pack/deep/__init__.py", "lines.'''", "lines.'''\nprint()"),
    ],
)
def test_what_an_import_resolves_to_counts(digest_of, file, old, new):
    assert old in SIX[file]
    assert digest_of(SIX | {file: SIX[file].replace(old, new)}) != digest_of(SIX)


def test_files_of_a_circle_with_the_same_code_differ_by_what_they_import(digest_of):
    ring = {
        "job.py": "from a import f",
        "a.py": "from b import f",
        "b.py": "from d import f\nfrom a import g",
        "c.py": "from e import f\nfrom a import g",
        "d.py": "from c import f as g\nf = 1",
        "e.py": "from b import f as g\nf = 2",
    }
    # b and c have the same code; only which of d and e they import tells them apart.
    others = {"a.py": "from c import f"}
    assert digest_of(ring) != digest_of(ring | others)


def test_no_digest_of_this_project_changes_when_a_package_moves(at, tmp_path):
    """All scripts, kinds and mechanisms, with `dp.descents` and `study.data` in other places."""
    sections = (*kinds.SECTIONS.values(), kinds.CHECKS)
    modules = {kind.module for section in sections for kind in section.values()}
    modules |= set(map(MECHANISMS.module, MECHANISMS))
    scripts = sorted(path.name for path in (ROOT / "scripts").glob("*.py"))

    def digests():
        return {name: digest(name) for name in scripts} | {
            m: digest("jobs/run.py", m) for m in modules
        }

    here, moved = ROOT / "scripts", tmp_path / "scripts"
    places = {"dp.descents": "steps", "study.data": "rooms.upper.data"}
    shutil.copytree(here, moved, ignore=shutil.ignore_patterns("__pycache__"))
    for old, new in places.items():
        (moved / new.replace(".", "/")).parent.mkdir(parents=True, exist_ok=True)
        (moved / old.replace(".", "/")).rename(moved / new.replace(".", "/"))
    touched = 0
    for path in moved.rglob("*.py"):
        text = new_text = path.read_text(encoding="utf-8")
        for old, new in places.items():
            parent, _, name = old.rpartition(".")
            new_parent = new.rpartition(".")[0]
            new_text = re.sub(rf"\b(from|import) {re.escape(old)}\b", rf"\1 {new}", new_text)
            if new_parent:
                line = rf"from {parent} import {name}$"
                new_text = re.sub(line, f"from {new_parent} import {name}", new_text, flags=re.M)
        if new_text != text:
            touched += 1
            path.write_text(new_text, encoding="utf-8")
    assert touched > 12
    at(here)
    before = digests()
    at(moved)
    assert digests() == before
    assert any(
        path.is_relative_to(moved / "steps")
        for path in files_of_job("jobs/run.py", "dp.mechanisms.sgd")
    )
