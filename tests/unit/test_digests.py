"""The digest that decides what reruns depends on the code, not on how it is written."""

import ast
import hashlib
import textwrap

import pytest

from study import dependencies
from study.dependencies import canonical_code

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


def code(text, **options):
    return canonical_code(ast.parse(textwrap.dedent(text)), **options)


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


def test_summaries_count_where_they_are_shown():
    one, two = (f'def f():\n    """{text}.\n\n    More."""' for text in ("Draw", "Colour"))
    assert code(one) == code(two)
    assert code(one, summaries=True) != code(two, summaries=True)
    assert code(one, summaries=True) == code(one.replace("More", "Less"), summaries=True)
    assert all((dependencies.ROOT / name).exists() for name in dependencies.SHOWN)


def test_every_version_of_python_finds_the_same():
    """The digest is recorded here. A parser that keeps more or less would change every digest."""
    digest = hashlib.sha256(code(CODE).encode()).hexdigest()
    assert digest.startswith("74e0be08662706b0")
