"""Follows the recipes for additions as a user would, whose file is then missing or has changed."""

import ast
import csv
import os
import re
import shutil

import numpy as np
import pytest

from dp.mechanisms import MECHANISMS
from project import ROOT, Project

ROWS = 500
PREPARED = "results/data/my_survey.npz"
CELL = "results/my_study/runs/my_survey/nonprivate/n=400/eps=inf.csv"


DOCUMENTS = (".github/CONTRIBUTING.md", "workflow/guides/add_a_mechanism.md")
TEXT = "".join((ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS)


def block(language, word):
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
    (code,) = (each for each in blocks if word in each)
    return code


def entry(start):
    (code,) = re.findall(rf"`({re.escape(start)}[^`]*)`", TEXT)
    return code


@pytest.fixture(scope="module")
def project(fresh):
    """A copy with everything that the recipes add, after a run. `.output`: the run's output."""
    project = fresh("adding")
    project.write("scripts/dp/mechanisms/noisy_mean.py", block("python", '@register("noisy_mean")'))
    project.append("config/datasets.yaml", "\n" + block("yaml", "my_survey:\n"))
    project.write("scripts/plots/spread.py", block("python", "def spread"))
    shutil.copytree(project / "config/sources/_template", project / "config/sources/my_source")
    experiment = block("yaml", 'title: "My study"\n') + block("yaml", "source: my_source")
    experiment = experiment.replace("figures: {", "figures: {" + entry("spread: {kind") + ", ")
    project.write("config/sources/my_source/my_study.yaml", experiment)

    rng = np.random.default_rng(1)
    ages, incomes = rng.integers(18, 90, ROWS), rng.integers(0, 150000, ROWS)
    visits = rng.integers(0, 40, ROWS)
    rows = zip(ages, incomes, visits, strict=True)
    text = "".join(
        f"{age},{income},{visit},{'yes' if age > 50 else 'no'}\n" for age, income, visit in rows
    )
    project.write("my_survey.csv", "age,income,visits,outcome\n" + text)
    project.output = project.snakemake("--", "my_study")
    return project


def test_a_mechanism_a_data_set_and_an_experiment_are_three_files(project):
    with (project / "results/my_study/results.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    cells = {(row["method"], row["epsilon"]) for row in rows}
    assert cells == {
        ("nonprivate", "inf"),
        *((m, e) for m in ("output_perturbation", "noisy_mean") for e in ("0.1", "1", "10")),
    }
    assert {row["dataset"] for row in rows} == {"my_survey"}
    assert {row["status"] for row in rows} == {"ok"}
    error = {(row["method"], row["epsilon"]): float(row["error_mean"]) for row in rows}
    assert error["noisy_mean", "10"] < error["noisy_mean", "0.1"]
    assert error["nonprivate", "inf"] < 0.15
    assert error["output_perturbation", "10"] < error["output_perturbation", "0.1"]
    assert (project / "results/my_study/figures/error.png").stat().st_size > 10000
    assert "results/my_study/figures/: error.png" in project.output


def test_a_source_is_a_file_of_facts_and_three_sections(project):
    def rows(section, *columns):
        with (project / f"results/my_study/{section}.csv").open(newline="") as handle:
            return [tuple(row[name] for name in columns) for row in csv.DictReader(handle)]

    printed = rows("published", "published_at", "method", "epsilon")
    assert len(printed) == 8  # four means, each with its standard deviation
    for epsilon in ("0.1", "1", "10"):
        place = f"tables/table_1/output_perturbation/{epsilon}"
        assert printed.count((place, "output_perturbation", epsilon)) == 2
    (rises, speed) = rows("claims", "id", "verdict", "decided_by")
    assert rises[:2] == ("my-rises", "reproduced") and "1 of 1 curves" in rises[2]
    assert speed == ("my-speed", "not tested", "the source does not name its laptop")
    assert rows("defects", "id", "verdict") == [("my-same-sd", "shown")]


def test_a_kind_of_figure_is_a_function_and_an_entry(project):
    assert (project / "results/my_study/figures/spread.png").stat().st_size > 10000


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of project and tests, to which only the mechanism's and the figure's files are added."""
    folder = tmp_path_factory.mktemp("extended") / "project"
    extra = ("tests", "README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", ".ci", ".github")
    extra += (".pre-commit-config.yaml", ".snakemake-workflow-catalog.yml")
    project = Project.copy(folder, extra=extra)
    project.write("scripts/dp/mechanisms/noisy_mean.py", block("python", '@register("noisy_mean")'))
    project.write("scripts/plots/spread.py", block("python", "def spread"))
    return project


def test_the_mechanism_keeps_the_contract_and_the_style(extended):
    contract = "tests/unit/test_mechanisms.py"
    output = extended.python("-m", "pytest", "-q", "-n", "0", contract, "-k", "noisy_mean")
    assert int(re.search(r"(\d+) passed", output)[1]) > 9 and "failed" not in output
    added = ("scripts/dp/mechanisms/noisy_mean.py", "scripts/plots/spread.py")
    for command in (("check",), ("format", "--check")):
        extended.python("-m", "ruff", *command, *added)


def can_notice(path):
    """Whether a test file lists mechanisms, or searches folders for Python files.

    Looking up one mechanism by name does not count.
    """
    text = path.read_text("utf-8")
    if re.search(r'glob\("[^"]*\.py"\)', text):
        return True
    nodes = list(ast.walk(ast.parse(text)))
    looked_up = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Subscript) or getattr(node, "attr", "") == "module"
    }
    names = (node for node in nodes if getattr(node, "id", None) == "MECHANISMS")
    return any(id(node) not in looked_up for node in names)


# Slow tests that list no mechanisms.
LIST_NONE = ["test_setup_", "test_planted", "test_the_attack", "released_programs", "published"]
LIST_NONE += ["functional", "linted"]
# Tests of one other mechanism do not depend on the new one.
OF_ANOTHER = [part for name in MECHANISMS for part in (f"{name}]", f"[{name}")]


@pytest.mark.slow
def test_no_test_demands_an_entry_for_the_mechanism(extended):
    paths = filter(can_notice, sorted((ROOT / "tests/unit").glob("test_*.py")))
    names = [path.relative_to(ROOT) for path in paths]
    assert {"test_mechanisms.py", "test_explain.py", "test_envs.py"} < {path.name for path in names}
    # Remove the figure kind, which config/README.md lists only after the recipe's last step.
    (extended / "scripts/plots/spread.py").unlink()
    others = " and ".join(f"not {part}" for part in [*LIST_NONE, *OF_ANOTHER])
    output = extended.python("-m", "pytest", "-q", "-n", "0", "-k", others, *names, timeout=1200)
    assert "passed" in output


@pytest.fixture
def copy(project, tmp_path):
    return project.duplicate(tmp_path / "project")


def prepares(project):
    return f"prepare: {PREPARED}" in project.plan("--", "my_study")


def test_a_missing_file_is_refused_although_there_are_results(copy):
    copy.replace("config/datasets.yaml", "{csv: my_survey.csv}", "{csv: my_survy.csv}")
    expected = (
        "error: config/datasets.yaml: my_survey.source.csv: no file 'my_survy.csv'; did you mean "
        "'my_survey.csv'?"
    )
    for arguments in (["-n", "--", "audit"], ["--", PREPARED]):
        output = copy.snakemake(*arguments, ok=False)
        assert output.splitlines()[-1] == expected and "Traceback" not in output
    assert copy.plan("--", "wdbc")  # wdbc does not need the missing file


@pytest.mark.slow
def test_a_report_and_a_job_elsewhere_do_not_miss_the_file(copy):
    (copy / "my_survey.csv").unlink()
    copy.snakemake("--report", "report.zip", "--", "my_study")
    assert (copy / "report.zip").stat().st_size > 0
    # Run the job as a cluster node does.
    before = (copy / CELL).read_bytes()
    (copy / CELL).unlink()
    words = ("--mode", "remote", "--nolock", "--force", "--allowed-rules", "run", "--", CELL)
    copy.snakemake(*words)
    assert (copy / CELL).read_bytes() == before


@pytest.mark.slow
def test_other_rows_or_another_file_are_prepared_although_it_is_older(copy):
    os.utime(copy / "my_survey.csv")
    assert not prepares(copy)
    copy.write("other.csv", (copy / "my_survey.csv").read_text())
    os.utime(copy / "other.csv", (1e9, 1e9))
    copy.replace("config/datasets.yaml", "{csv: my_survey.csv}", "{csv: other.csv}")
    assert prepares(copy)
    copy.replace("config/datasets.yaml", "{csv: other.csv}", "{csv: my_survey.csv}")
    copy.replace("my_survey.csv", ",yes\n", ",no\n")
    os.utime(copy / "my_survey.csv", (1e9, 1e9))
    assert prepares(copy)


@pytest.mark.slow
def test_a_cell_that_is_no_number_is_told_with_file_column_and_row(project):
    lines = (project / "my_survey.csv").read_text().splitlines()
    age, _, visits, outcome = lines[41].split(",")
    lines[41] = f"{age},unknown,{visits},{outcome}"
    project.write("my_survey.csv", "\n".join(lines) + "\n")
    output = project.snakemake("--", PREPARED, ok=False)
    assert "error: my_survey.csv: column 'income', row 42: 'unknown' is not a number" in output
    assert "Traceback" not in output


def test_a_bad_overlay_ends_in_one_line(project):
    project.write("bad.yaml", "settings: {my_study: {sweeps: {main: {epsilons: [1e-1]}}}}")
    output = project.snakemake("--configfile", "bad.yaml", "--", "my_study", ok=False)
    said = [line for line in output.splitlines() if "bad.yaml" in line]
    assert said == [
        "error: bad.yaml: settings.my_study: sweeps.main.epsilons[0]: '1e-1' is text, not a number: "
        "write 0.1, without quotes"
    ]
    assert output.strip().endswith(said[0])
    assert "Traceback" not in output and "File " not in output
