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
def test_a_kind_is_what_its_module_declares(section, name):
    kind = section[name]
    assert kind.function is getattr(sys.modules[kind.module], name)
    assert kind.function.__name__ == name
    options.fields(kind.options)  # raises for a type that does not exist


def run(program, folder=None, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT / "scripts")} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout or done.stderr


def test_importing_all_kinds_imports_no_package_that_draws():
    program = """
        import sys
        from study.configuration import kinds
        kinds.load_all()
        heavy = {"matplotlib", "seaborn", "pandas", "PIL", "sklearn", "statsmodels"}
        print(*heavy & {name.partition(".")[0] for name in sys.modules})
    """
    assert run(program).split() == []


def test_a_job_imports_only_the_modules_of_its_own_kinds():
    program = """
        import sys
        from study.configuration import kinds
        kinds.TABLES["tuning"]
        folders = (*kinds.FOLDERS, "sources")
        print(*sorted(name for name in sys.modules if name.partition(".")[0] in folders))
    """
    assert "plots.curves" in run(program).split()
    environment = {kinds.MODULES: kinds.modules()}
    assert run(program, **environment).split() == ["tables", "tables.tuned_values"]
    unknown = program.replace("tuning", "no_such_kind")
    assert run(unknown, **environment).splitlines()[-1] == "KeyError: 'no_such_kind'"


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
        cells.lower_than(None, no_such_option=1)


OWN = """
    from study.configuration.inputs import NOTHING
    from study.configuration.kinds import figure
    from study.configuration.options import Options


    class Title(Options):
        words: str = "mine"


    @figure(NOTHING, Title)
    def title(experiment, spec, inputs):
        return spec["words"]
"""


def study(folder, name="mine", text=OWN):
    file = folder / f"scripts/sources/{name}/figures.py"
    file.parent.mkdir(parents=True)
    file.write_text(textwrap.dedent(text))
    return folder


def test_a_study_has_kinds_of_its_own(tmp_path):
    program = """
        import json
        from study import dependencies
        from study.configuration import kinds, options
        kind = kinds.FIGURES["title"]
        files = [path.name for path in dependencies.files_of_job("jobs/figure.py", kind.module)]
        print(json.dumps([options.defaults(kind.options), kind.function(0, {"words": "w"}, 0), files]))
    """
    defaults, drawn, files = json.loads(run(program, study(tmp_path)))
    assert (defaults, drawn) == ({"words": "mine"}, "w") and "figures.py" in files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OWN, "ValueError: another file has figures of the kind 'title': "),
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("def title(:", "SyntaxError: invalid syntax"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named_in_a_sentence(tmp_path, text, message):
    study(study(tmp_path), "yours", text)
    program = """
        from study.configuration.config import ConfigError, load
        try:
            load({"seed": 1, "experiments": ["adassp"]})
        except ConfigError as error:
            print(error)
    """
    assert run(program, tmp_path).startswith(f"sources/yours/figures.py: {message}")
