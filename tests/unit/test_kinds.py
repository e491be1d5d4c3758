"""Kinds of figures, tables, analyses and checks are read from source code, without importing it."""

import json
import subprocess
import sys
import textwrap

import pytest

from checks import cells
from project import ROOT
from study.configuration import kinds, option_checks, options
from study.configuration.options import Method, Options, Printed, Rows

ALL = [(section, name) for section in (*kinds.SECTIONS.values(), kinds.CHECKS) for name in section]


@pytest.mark.parametrize(
    ("section", "name"), ALL, ids=lambda value: getattr(value, "section", value)
)
def test_what_is_read_is_what_the_module_defines(section, name):
    kind = section[name]
    function = kind.load()
    assert function.__name__ == name == kind.function and function.__module__ == kind.module
    module = sys.modules[kind.module]
    if kind.options is not Options and hasattr(module, kind.options.__name__):
        imported = options.fields(getattr(module, kind.options.__name__))
        assert imported == options.fields(kind.options)


def test_reading_kinds_imports_none_of_their_modules():
    program = """
        import sys
        from study.configuration import kinds
        for section in (*kinds.SECTIONS.values(), kinds.CHECKS):
            for name in section:
                section[name]
        heavy = {"matplotlib", "pandas", "scipy", "jsonschema", "dp", "plots", "checks", "sources"}
        print(*heavy & {name.partition(".")[0] for name in sys.modules})
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={"PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []


class Made(Options):
    first: Method
    others: dict[str, list[Method]] = {}
    where: Rows | None = None
    path: Printed | None = None
    lambda_: float = 0.5


def test_options_are_named_by_their_types():
    assert list(options.fields(Made)) == ["first", "others", "where", "path", "lambda"]
    assert options.defaults(Made) == {"others": {}, "where": None, "path": None, "lambda": 0.5}
    arguments = {"first": "a", "others": {"x": ["b", "a"]}, "where": {"method": ["c"], "size": "d"}}
    assert options.named(Made, arguments, Method) == ["a", "b"]
    assert options.named(Made, arguments, Rows) == ["c"]
    assert options.named(Made, arguments, Printed) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, ": the option 'first' is missing"),
        ({"frist": "a"}, ": no option 'frist'; did you mean 'first'?"),
        ({"first": "zz"}, ".first: no method 'zz' (valid: a, b)"),
        ({"first": ["a"]}, ".first: must be text, not a list"),
        ({"first": "a", "others": {"x": "a"}}, ".others.x: must be a list, not text ('a')"),
        ({"first": "a", "others": {"x": ["c"]}}, ".others.x: no method 'c' (valid: a, b)"),
        ({"first": "a", "where": ["b"]}, ".where: must be a mapping, not a list"),
        ({"first": "a", "lambda": True}, ".lambda: must be a number, not true/false (true)"),
    ],
)
def test_options_that_do_not_fit_are_refused(given, message):
    with pytest.raises(ValueError) as caught:
        option_checks.check(
            Made,
            given,
            {Method: (["a", "b"], "method")},
            lambda place, text: ValueError(f"{place}: {text}"),
        )
    assert str(caught.value) == message


def test_a_check_takes_the_defaults_of_its_class():
    fields = options.fields(kinds.CHECKS["level"].options)
    assert fields["at_most"].default == float("inf") and "methods" in fields
    with pytest.raises(TypeError):
        cells.tuned_lambda(None, value=1, no_such_option=1)


def test_a_study_has_kinds_of_its_own(tmp_path):
    (tmp_path / "scripts/sources/mine").mkdir(parents=True)
    (tmp_path / "scripts/sources/mine/figures.py").write_text(
        textwrap.dedent("""
            from study.configuration.inputs import NOTHING
            from study.configuration.kinds import figure
            from study.configuration.options import Options


            class Title(Options):
                words: str = "mine"


            @figure(NOTHING, Title)
            def title(experiment, spec, inputs):
                return spec["words"]
        """)
    )
    program = """
        import json
        from study import dependencies
        from study.configuration import kinds, options
        kind = kinds.FIGURES["title"]
        files = [path.name for path in dependencies.files_of_job("figure.py", kind.module)]
        print(json.dumps([options.defaults(kind.options), kind.load()(0, {"words": "w"}, 0), files]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    defaults, drawn, files = json.loads(done.stdout)
    assert (defaults, drawn) == ({"words": "mine"}, "w") and "figures.py" in files
