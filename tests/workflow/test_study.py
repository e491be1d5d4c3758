"""Tests a study in its own folder, with the workflow's Snakefile or one that includes it as a module."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from project import ROOT, Project
from reporting.page import badge_class

pytestmark = pytest.mark.slow

EXPERIMENT = """
title: "A study"
source: a_paper
datasets: [survey]
folds: 2
restarts: 3
lambda: 0.01
methods: {nonprivate: {}, output_perturbation: {}}
sweeps: {main: {train_sizes: [20], epsilons: [1]}}
figures: {error: {kind: epsilon_curve, title: "A study", sweep: main}}
published:
  table:
    title: "Its table"
    values: tables/error
    rows: [{value: ours, dataset: survey, method: nonprivate, train_size: 20}]
"""
PAPER = """
key: a_paper
short: "A paper"
settings: {}
tables: {error: {ours: 0.1}}
claims: []
defects: []
"""
DATASETS = """
survey:
  source: {csv: rows/survey.csv}
  label: answer
  positive: "yes"
  bounds: {age: [0, 100]}
"""
ROWS = "".join(f"{20 + k % 60},{'yes' if k % 3 else 'no'}\n" for k in range(60))
OTHER = """
configfile: "settings.yaml"

rule all:
    input:
        "rows.txt",

module dp:
    snakefile: "{home}/Snakefile"
    config: config["dp"]
    {more}

use rule * from dp as dp_*

rule count:
    input:
        "kept/study/results.csv",
    output:
        "rows.txt",
    shell:
        "wc -l < {{input}} > {{output}}"

onstart:
    dp.begin(workflow.dag)

onsuccess:
    dp.end(workflow.dag, True, log)

onerror:
    dp.end(workflow.dag, False, log)
"""


class Study(Project):
    """A study's folder. `.home`: the checkout that it uses."""

    def start(self, *arguments, program=("-m", "snakemake"), **options):
        if program and not (self / "Snakefile").exists():
            arguments = ("--snakefile", self.home / "Snakefile", *arguments)
        return super().start(*arguments, program=program, **options)

    def duplicate(self, folder):
        copy = Study(super().duplicate(folder).folder)
        copy.home = self.home
        return copy


def commit(folder):
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=b"]
    subprocess.run([*git, "init", "-q"], check=True)
    Path(folder, ".git/info/exclude").write_text("__pycache__\n")
    for words in (["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], check=True)
    return subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()


def new(folder, home):
    study = Study(folder)
    study.home = home
    study.write("config/experiments/study.yaml", EXPERIMENT)
    study.write("config/published/a_paper.yaml", PAPER)
    study.write("config/datasets.yaml", DATASETS)
    study.write("rows/survey.csv", "age,answer\n" + ROWS)
    return study


@pytest.fixture(scope="module")
def made(fresh, tmp_path_factory):
    """A study that has run, with a shipped experiment's table at toy size. Tests only read it."""
    home = fresh("checkout").folder
    study = new(tmp_path_factory.mktemp("study"), home)
    study.write("config/audit.yaml", "trials: 2000\n")
    study.commits = commit(home), commit(study.folder)
    study.output = study.snakemake(timeout=300)
    return study


@pytest.fixture
def study(made, tmp_path):
    return made.duplicate(tmp_path / "study")


def test_a_plain_run_makes_the_studys_own(made):
    assert sorted(p.name for p in (made / "results").iterdir() if p.is_dir()) == [
        *("audit", "data", "logs", "study", "verdicts"),
    ]
    assert {p.stem for p in (made / "results/audit").glob("*.csv")} == {
        *("ledger", "exact", "spending", "cells", "replay", "ignores_data", "output_perturbation"),
    }
    assert (made / "results/study/figures/error.png").stat().st_size > 10000
    assert "a_paper" in (made / "results/report.html").read_text()
    provenance = json.loads((made / "results/study/provenance.json").read_text())
    assert (provenance["commit"], provenance["study_commit"]) == made.commits
    assert not provenance["uncommitted_changes"]
    status = ["git", "-C", str(made.home), "status", "--porcelain"]
    assert subprocess.run(status, check=True, capture_output=True).stdout == b""


KIND = """
from matplotlib.figure import Figure

from study.configuration.inputs import CELLS
from study.configuration.kinds import figure
from study.configuration.options import Method, Options


class Dots(Options):
    method: Method
    size: float = 4.0


@figure(CELLS, Dots)
def dots(experiment, spec, frame):
    drawn = Figure()
    drawn.subplots().plot(frame["error_mean"], "o", markersize=spec.options["size"])
    return drawn
"""


def test_a_study_may_have_a_source_s_folders(made, tmp_path):
    study = new(tmp_path / "study", made.home)
    for name in ("config/experiments/study.yaml", "config/published/a_paper.yaml"):
        (study / name).unlink()
    claims = (
        "[{id: a, says: x, checks: [{kind: level, options: {methods: nonprivate, at_most: 1}}]}]"
    )
    study.write(
        "config/sources/a_paper/source.yaml", PAPER.replace("claims: []", f"claims: {claims}")
    )
    own = "figures: {dots: {kind: dots, title: Dots, sweep: main, options: {method: nonprivate}}, "
    sizes = "sizes: {smoke: {restarts: 2}}\n"
    study.write("config/sources/a_paper/study.yaml", EXPERIMENT.replace("figures: {", own) + sizes)
    study.write("scripts/sources/a_paper/figures.py", KIND)
    study.snakemake("--", "results/study/figures/dots.png", "results/study/claims.csv")
    (claim,) = rows(study / "results/study/claims.csv")
    assert claim["verdict"] == "reproduced"
    study.write("toy.yaml", "results: toy\nsizes: {smoke: true}\n")
    study.snakemake("--configfile", "toy.yaml", "--", "toy/study/configuration.json")
    assert json.loads((study / "toy/study/configuration.json").read_text())["restarts"] == 2
    study.replace("scripts/sources/a_paper/figures.py", "4.0", "5.0")
    assert study.plan("--", "results/study/figures/dots.png") == {
        "figure: results/study/figures/dots.png"
    }
    study.replace("config/sources/a_paper/study.yaml", "method: nonprivate}", "method: nonprivat}")
    output = study.snakemake("-n", ok=False)
    assert "study.yaml: figures.dots.options.method: no method 'nonprivat'; did you mean" in output


def test_nothing_is_to_be_done_when_both_have_moved(made, fresh, tmp_path):
    study = made.duplicate(tmp_path / "elsewhere")
    study.home = made.home.rename(tmp_path / "moved")
    try:
        assert "Nothing to be done" in study.snakemake("-n")
        assert "Nothing to be done" in study.snakemake("-n", "--directory", study.folder)
        study.replace("config/published/a_paper.yaml", "0.1", "0.2")
        planned = {job.partition(":")[0] for job in study.plan()}
        assert planned == {"compare", "check", "by_source", "report"}
    finally:
        study.home.rename(made.home)


def test_shipped_experiments_are_targets_and_overlays(study):
    overlay = ("--configfile", study.home / "tests/tiny.yaml")
    table = "results/cm08/tables/figure_1.csv"
    assert {f"table: {table}"} <= study.plan(*overlay, "--", "cm08")
    assert not any("/cm08/" in job for job in study.plan())


def test_faults_name_the_files_of_the_study(study):
    study.replace("config/datasets.yaml", "positive", "positiv")
    output = study.snakemake("-n", ok=False)
    assert (
        "error: config/datasets.yaml: survey: unknown key 'positiv'; did you mean 'positive'?"
        in output
    )
    study.write("config/config.yaml", "experiments: [stdy]\n")
    study.replace("config/datasets.yaml", "positiv", "positive")
    output = study.snakemake("-n", ok=False)
    assert "config/config.yaml: experiments: no experiment 'stdy'; did you mean 'study'?" in output


@pytest.fixture
def other(made, tmp_path):
    """Another workflow that uses this one as a module."""
    study = new(tmp_path / "other", made.home)
    study.write("Snakefile", OTHER.format(home=made.home, more=""))
    study.write("settings.yaml", "threshold: 4\ndp: {results: kept, audit: {enabled: false}}\n")
    return study


def test_another_workflow_takes_results_from_a_module(other):
    output = other.snakemake()
    assert (other / "rows.txt").read_text().strip() == "3"
    assert "rule dp_run:" in output and not (other / "results").exists()
    assert {job.partition(":")[0] for job in other.plan("--", "dp_study")} == {
        *("dp_provenance", "dp_configuration", "dp_figure", "dp_compare", "dp_check"),
    }
    other.write("more.yaml", "dp: {settings: {study: {restarts: 4}}}\n")
    output = other.snakemake("--configfile", "more.yaml", ok=False)
    assert "error: kept/ holds results of" in output and "Traceback" not in output


@pytest.mark.parametrize(
    ("settings", "more", "message"),
    [
        ("dp: {sample: a}", "", "error: the module's config: unknown key 'sample'"),
        ("dp: {}", 'replace_prefix: {"kept": "k"}', "error: this module takes neither prefix"),
    ],
)
def test_what_a_module_refuses(other, settings, more, message):
    other.write("settings.yaml", settings)
    other.write("Snakefile", OTHER.format(home=other.home, more=more))
    output = other.snakemake("-n", ok=False)
    assert message in output and "Traceback" not in output


def test_a_cache_is_shared_by_a_study_and_a_module(made, other, tmp_path):
    (tmp_path / "cache").mkdir()
    study = new(tmp_path / "study", made.home)
    for each in (study, other):
        each.environment = {"SNAKEMAKE_OUTPUT_CACHE": str(tmp_path / "cache")}
    study.snakemake("--cache", "--", "results/data/survey.npz")
    assert study.log().count(" to cache.") == 2
    study.home = made.home.rename(tmp_path / "moved")
    try:
        other.replace("Snakefile", str(made.home), str(study.home))
        output = other.snakemake("--cache", "--", "kept/data/survey.npz")
        assert output.count(" from cache.") == 2 and " to cache." not in output
    finally:
        study.home.rename(made.home)


def test_a_cluster_finds_the_workflow(made, tmp_path):
    study = new(tmp_path / "study", made.home)
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ("sbatch", "squeue", "scancel"):
        (commands / name).symlink_to(ROOT / "tests/cluster/standins.py")
    study.environment = {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "STANDINS": str(commands),
    }
    study.snakemake(
        *("--workflow-profile", made.home / "workflow/profiles/sbatch"),
        *("--seconds-between-status-checks", 1, "--", "results/study/results.csv"),
    )
    assert (study / "results/study/results.csv").read_bytes() == (
        made / "results/study/results.csv"
    ).read_bytes()


NOISE = "draws, rng)\n"
# With this overlay, the audit makes one attack on the mechanism.
OTHERS = "flipped_label: null, shortened_row: null"
OVERLAY = f"audit: {{trials: 20000, default: {{opposite_corner: [1], {OTHERS}}}}}\n"


def printed_commands():
    """workflow/README.md's commands for a study from the template."""
    text = (ROOT / "workflow/README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^    export DP_HOME=.*\n(?:    .*\n)+", text, flags=re.MULTILINE)
    (block,) = (each for each in blocks if "pytest" in each)  # not the block for releases
    return textwrap.dedent(block)


@pytest.fixture(scope="module")
def templated(tmp_path_factory):
    """The study that the printed commands make. `.output`: their output."""
    checkout = Project.copy(tmp_path_factory.mktemp("place") / "checkout", extra=("tests",))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", printed_commands()],
        cwd=checkout.folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    study = Study(checkout.folder.with_name("my_study"))
    study.home, study.output = checkout.folder, done.stdout + done.stderr
    assert done.returncode == 0, study.output
    return study


def rows(path):
    with path.open(newline="") as handle:
        return list(csv.DictReader(handle))


def test_the_template_as_printed(templated):
    assert re.search(r"\b1 passed in\b", templated.output)
    cells = rows(templated / "results/my_study/results.csv")
    own = [cell for cell in cells if cell["mechanism"] == "noisy_mean"]
    assert {cell["epsilon_claimed"] for cell in own} == {"0.1", "1", "10"}
    assert {(cell["epsilon_proven"], cell["delta_proven"]) for cell in own} == {("", "")}
    shipped = [cell for cell in cells if cell["mechanism"] == "output_perturbation"]
    assert all(cell["epsilon_proven"] == cell["epsilon_claimed"] for cell in shipped)
    attacks = rows(templated / "results/audit/noisy_mean.csv")
    assert {attack["verdict"] for attack in attacks} == {
        "claimed, not proven: this attack does not refute it"
    }
    assert max(float(attack["epsilon_audited"]) for attack in attacks) > 5
    audited = {
        c["audited_by"] for c in rows(templated / "results/audit/cells.csv") if c["epsilon"] == "1"
    }
    assert all(by.startswith(("opposite", "flipped", "saturated", "linear")) for by in audited)
    assert "Nothing to be done" in templated.snakemake("-n")


def test_an_edited_mechanism_reruns_its_own_and_a_moved_one_nothing(templated, tmp_path):
    study = templated.duplicate(tmp_path / "moved")
    assert "Nothing to be done" in study.snakemake("-n")
    study.append("mechanisms/noisy_mean.py", "\nAN_EDIT = True\n")
    planned = study.plan()
    runs = [job for job in planned if job.startswith(("run:", "attack:"))]
    assert len(runs) == 10 and all("/noisy_mean/" in job for job in runs)


@pytest.fixture
def claiming(fresh, tmp_path):
    """A study with the template's mechanism and one attack on it, not yet run."""
    study = Study(tmp_path / "claiming")
    study.home = fresh("checkout").folder
    shutil.copytree(study.home / "workflow/template", study.folder)
    study.write("config/config.yaml", OVERLAY)
    return study


def test_a_claim_that_an_attack_refutes_fails_the_audit_if_told_so(claiming):
    claiming.replace("mechanisms/noisy_mean.py", NOISE, "draws, rng) / 8\n")
    target = ("--", "results/audit/claims/held.csv")
    output = claiming.snakemake(*target, ok=False)
    said = "error: noisy_mean claims epsilon 1, and the attack opposite_corner shows that it is at least"
    assert said in output and "Traceback" not in output
    (attack,) = rows(claiming / "results/audit/noisy_mean.csv")
    assert attack["verdict"] == "refutes the claim" and attack["epsilon_proven"] == ""
    assert badge_class(attack["verdict"]) == "bad"
    held = "claims_held: results/audit/claims/held.csv"
    assert held in claiming.plan("--", "audit")
    claiming.replace("config/audit.yaml", "strict: true", "strict: false")
    assert held not in claiming.plan("--", "audit")


LARGEST = '''

@register("largest_norm")
class LargestNorm(NoisyMean):
    """The scale of its noise follows from the rows."""

    def _release(self, X, y, p, draws, rng):
        p.bound = (X**2).sum(axis=1).max() ** 0.5
        return super()._release(X, y, p, draws, rng)
'''


def test_a_claim_that_only_a_replay_refutes_fails_the_audit_if_told_so(claiming):
    claiming.append("mechanisms/noisy_mean.py", LARGEST)
    output = claiming.snakemake("--", "results/audit/claims/held.csv", ok=False)
    said = (
        "error: largest_norm claims epsilon 1, and the replay of the pair shortened_row says: refutes the "
        "claim: the scale of noise depends on the rows, and tells them apart. Correct the claim or the "
        "noise"
    )
    assert said in output and "Traceback" not in output
    for name in ("noisy_mean", "largest_norm"):
        (attack,) = rows(claiming / f"results/audit/{name}.csv")
        assert attack["verdict"] == "claimed, not proven: this attack does not refute it"
        assert attack["epsilon_proven"] == ""


def test_a_mechanism_that_cannot_be_imported_is_one_line(claiming):
    claiming.append("mechanisms/noisy_mean.py", "\nimport no_such_library\n")
    output = claiming.snakemake("-n", ok=False)
    assert output.splitlines()[-1] == (
        "error: mechanisms/noisy_mean.py: ModuleNotFoundError: No module named 'no_such_library'"
    )
    text = (claiming / "mechanisms/noisy_mean.py").read_text().partition("\nimport no_such")[0]
    claiming.write("mechanisms/noisy_mean.py", text.replace('("noisy_mean")', '("adassp")'))
    output = claiming.snakemake("-n", ok=False)
    assert (
        "error: mechanisms/noisy_mean.py: another file registers a mechanism 'adassp' too" in output
    )
