"""Tests the mathematics package: files, dependencies, and a wheel that works without the checkout."""

import os
import re
import subprocess
import sys
import textwrap
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import dp
from project import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NAME = PROJECT["project"]["name"]
PACKAGES = ("dp", "dp_audit", "dp_privacy", "dp_release")
EXTRAS = PROJECT["project"]["optional-dependencies"]


def tracked():
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("this is no git checkout, so nothing tells its files from others")
    return [Path(line) for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def test_every_package_is_in_the_wheel():
    folders = {path.parent for name in PACKAGES for path in (ROOT / "scripts" / name).rglob("*.py")}
    results = {".".join(folder.relative_to(ROOT / "scripts").parts) for folder in folders}
    assert {*PROJECT["tool"]["setuptools"]["packages"]} == results | {"dp.vectors"}
    assert all((ROOT / "scripts" / name / "py.typed").exists() for name in PACKAGES)


def test_the_version_stands_in_one_place():
    assert re.fullmatch(r"\d+\.\d+\.\d+", dp.__version__)
    assert PROJECT["tool"]["setuptools"]["dynamic"] == {"version": {"attr": "dp.__version__"}}
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert "version" not in citation and citation["license"] == PROJECT["project"]["license"]


def test_dependencies_are_those_of_the_environment():
    """`workflow` and the extras it includes list all dependencies except those of tests and clusters."""
    text = (ROOT / "envs/requirements.txt").read_text(encoding="utf-8")
    parts = re.split(r"^# (the workflow|submission.*|checks and tests)$", text, flags=re.MULTILINE)
    lines = [line for line in parts[2].splitlines() if line.strip()]
    workflow = {Requirement(line).name.lower() for line in lines}
    needed = {Requirement(each).name for each in PROJECT["project"]["dependencies"]}
    for extra in ("accounting", "learn", "vectors", "workflow"):
        needed |= {Requirement(each).name for each in EXTRAS[extra]}
    assert needed - {NAME} == workflow


def test_the_install_line_has_what_the_examples_below_it_import():
    text = (ROOT / "scripts/dp_release/README.md").read_text(encoding="utf-8")
    ((extras, others),) = re.findall(
        r'^    pip install "\.\[([\w,]+)\]" ([\w ]+?) *#', text, re.MULTILINE
    )
    lines = PROJECT["project"]["dependencies"] + [r for x in extras.split(",") for r in EXTRAS[x]]
    installed = {Requirement(line).name for line in lines} | {*others.split()}
    programs = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    imported = set(re.findall(r"^(?:import|from) (\w+)", programs, re.MULTILINE)) - {*PACKAGES}
    distributions = packages_distributions()
    others = imported - sys.stdlib_module_names
    assert "pandas" in others and {distributions[name][0] for name in others} <= installed


def test_the_catalogue_finds_the_workflow():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage["report"] is True  # tests/workflow/test_report.py makes Snakemake's report
    assert usage["software-stack-deployment"]["conda"] is True
    assert 'include: "../Snakefile"' in (ROOT / "workflow/Snakefile").read_text(encoding="utf-8")


LINTS = """
import sys
for name in ("scipy", "matplotlib", "seaborn", "statsmodels", "sklearn", "threadpoolctl", "dp_accounting"):
    sys.modules[name] = None  # as where it is not installed
from snakemake.cli import main
main(["--lint"])
"""


def test_rules_are_linted_without_the_packages_of_jobs():
    """As the public catalogue does. (pandas comes with a plugin of Snakemake's.)"""
    done = subprocess.run(
        [sys.executable, "-c", LINTS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_checks_run_with_few_rights_and_fixed_actions():
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}
        steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
        used = [step["uses"] for step in steps if "uses" in step]
        assert used and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each) for each in used)


MODULE = """
module dp:
    snakefile: github("owner/name", path="Snakefile", branch="main")
    config: {}

use rule * from dp as dp_*
"""


@pytest.mark.slow
def test_a_module_by_github_is_refused_with_the_reason(tmp_path):
    """git fetches a local repository in place of the GitHub address."""
    repository, use = tmp_path / "repository", tmp_path / "use"
    for name in ("Snakefile", "workflow/rules/common.smk", "scripts/job.py"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_bytes((ROOT / name).read_bytes())
    git = ("git", "-C", repository, "-c", "user.name=n", "-c", "user.email=n@example.org")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "all")):
        subprocess.run([*git, *words], check=True)
    use.mkdir()
    (use / "Snakefile").write_text(MODULE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "-n", "--cores", "1"],
        cwd=use,
        env=os.environ
        | {"GIT_CONFIG_COUNT": "1", "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
        | {"GIT_CONFIG_KEY_0": f"url.{repository.as_uri()}.insteadOf"}
        | {"GIT_CONFIG_VALUE_0": "https://github.com/owner/name"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode and "cannot be a module by github()" in done.stderr, done.stderr


TOOLS = (*PROJECT["build-system"]["requires"], "build", "wheel", "pyyaml", "numpy", "scipy")

TOUR = """
import numpy as np
import dp
from dp.mechanisms import MECHANISMS
from dp_audit import audit, pairs, replay

assert dp.__version__ == {version!r} and {folder!r} in dp.__file__, dp.__file__
rng = np.random.default_rng(1)
X = rng.uniform(0, 1, (5000, 3)) / np.sqrt(3)
y = np.where(X[:, 0] > X[:, 2], 1, -1)
mechanism, asked = MECHANISMS["gaussian_objective_perturbation"], dict(epsilon=1.0, delta=1e-6)
lam = mechanism.rule_lambda(*X.shape, **asked)
assert mechanism.guarantee(*X.shape, lam=lam, **asked).epsilon == 1.0
weights = mechanism.release(X, y, lam=lam, rng=rng, **asked).weights[0]
assert np.mean((X @ weights > 0) == (y > 0)) > 0.7
mean = lambda X, y, rng: X.sum(axis=0) + 2.0 * rng.standard_normal(X.shape[1])
sides = pairs.find(replay.GENERAL[0]).sides
found = replay.replay(mean, *sides, epsilon=1.0, delta=1e-6)
assert found.finding in replay.FINDINGS and np.isfinite(found.epsilon)
print("the tour ends")
"""


# Imports every module, and prints the missing packages of optional extras.
EVERY = """
import importlib, pkgutil
import dp
from dp.vectors import check

modules = [
    module.name
    for name in {packages!r}
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{{name}}.")
]
for module in modules:
    try:
        importlib.import_module(module)
    except ImportError as error:
        if not check.missing(error):
            raise
        print(check.missing(error))
"""


@pytest.mark.slow
def test_the_wheel_works_where_nothing_else_is(tmp_path):
    source, place = tmp_path / "source", tmp_path / "place"
    place.mkdir()
    for path in tracked():
        if path.parts[0] in {"scripts", "tests", "pyproject.toml", "LICENSE"}:
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_bytes((ROOT / path).read_bytes())
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    python = place / "env" / "bin" / "python"

    def run(*words, fails=False):
        done = subprocess.run(
            words, cwd=place, env=environment, capture_output=True, text=True, check=False
        )
        assert fails or done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        return done

    run(sys.executable, "-m", "venv", place / "env")
    tools = run(python, "-m", "pip", "install", "-q", *TOOLS, fails=True)
    if tools.returncode:
        pytest.skip(f"pip finds no packages here: {tools.stderr.splitlines()[-1]}")
    run(python, "-m", "build", "--no-isolation", "--outdir", place / "dist", source)
    assert {path.suffix for path in (place / "dist").iterdir()} == {".whl", ".gz"}
    (wheel,) = (place / "dist").glob("*.whl")
    run(python, "-m", "pip", "install", "-q", wheel)
    installed = {
        name
        for name in ("snakemake", "pandas", "sklearn", "dp_accounting")
        if not run(python, "-c", f"import {name}", fails=True).returncode
    }
    assert not installed

    tour = TOUR.format(version=dp.__version__, folder=str(place))
    assert "the tour ends" in run(python, "-c", tour).stdout
    assert set(run(python, "-c", EVERY.format(packages=PACKAGES)).stdout.split()) <= {
        "dp_accounting",
        "pytest",
        "sklearn",
    }
    report = run(python, "-m", "dp.vectors.check").stdout
    agree, differ = map(
        int, re.search(r"^(\d+) agree, (\d+) differ$", report, re.MULTILINE).groups()
    )
    assert agree > 200 and differ == 0
    skipped = re.findall(
        r"^\w+: \d+ skipped, which need (\w+): pip install '(.*)'$", report, re.MULTILINE
    )
    assert skipped == [("dp_accounting", f"{NAME}[accounting]")]


def test_estimators_without_scikit_learn_name_the_remedy():
    program = """
    import sys

    sys.modules["sklearn"] = None  # an import of it fails
    try:
        from dp_release.estimators import PrivateClassifier
    except ImportError as error:
        print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={"PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(done.stdout.splitlines()) == 1
    assert done.stdout.strip().endswith(f"pip install '{NAME}[learn]'")
