"""An unknown target, profile or experiment is refused with the nearest known name."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from study import asked
from study.configuration import config

RULES = ("all", "cm08", "wdbc", "audit")
FIGURES = "results/cm08/figures"
FILES = {
    FIGURES: [f"{FIGURES}/figure_2a.png", f"{FIGURES}/figure_2a.pdf", f"{FIGURES}/tuning.png"],
    "results/cm08/runs": ["results/cm08/runs/rows/output_perturbation/n=100/eps=1.csv"],
    "": ["results/cm08/results.csv", "results/report.html"],
}


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("cm8", "cm08"),
        ("figure_2a", f"{FIGURES}/figure_2a.png"),
        ("cm08/figures/figure_2a.png", f"{FIGURES}/figure_2a.png"),
        (f"{FIGURES}/figure_2aa.pdf", f"{FIGURES}/figure_2a.pdf"),
        ("results/cm80/figures/figure_2a.pdf", f"{FIGURES}/figure_2a.pdf"),
        ("results/cm08/result.csv", "results/cm08/results.csv"),
        (
            "results/cm08/runs/rows/output_perturbaton/n=100/eps=1.csv",
            "results/cm08/runs/rows/output_perturbation/n=100/eps=1.csv",
        ),
    ],
)
def test_an_unknown_target_names_the_nearest(target, meant):
    # Rules match any figure name; only the configuration knows which are valid.
    made = target.startswith((FIGURES, "results/cm08/runs"))
    actual = asked.no_target(target, RULES, FILES, made)
    assert actual == f"no target {target!r}; did you mean {meant!r}?"


def test_without_a_near_one_the_targets_are_listed():
    actual = asked.no_target("nothing", RULES, FILES, False)
    assert actual == "no target 'nothing' (valid: all, audit, cm08, wdbc)"


@pytest.mark.parametrize(
    ("target", "made"),
    [
        ("cm08", False),
        (f"{FIGURES}/tuning.png", True),
        (f"./{FIGURES}/tuning.png", True),
        ("results/report.html", False),
        ("results/data/rows.npz", True),
    ],
)
def test_a_target_is_one(target, made):
    assert asked.no_target(target, RULES, FILES, made) == ""


def test_a_file_of_the_user_is_left_to_snakemake(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").touch()
    assert asked.no_target("own.csv", RULES, FILES, False) == ""


def test_an_unknown_profile_names_the_nearest():
    actual = asked.no_profile("workflow/profiles/slrum")
    assert actual.endswith("workflow/profiles/slurm'?") and "did you mean" in actual
    assert "sbatch" in asked.no_profile("elsewhere/nothing")
    # With --directory, relative paths have another base, so only absolute ones are checked.
    assert asked.no_profile("workflow/profiles/sbatch", "../study") == ""
    assert asked.no_profile("/nowhere/sbatch", "../study")
    assert asked.no_profile(None) == asked.no_profile("none") == ""
    assert asked.no_profile(str(asked.paths.HOME / asked.PROFILES / "local")) == ""


def test_the_profile_slurm_asks_squeue_without_an_accounting_database(monkeypatch, tmp_path):
    from snakemake.profiles import ProfileConfigFileParser

    monkeypatch.setattr(asked.sys, "argv", ["snakemake"])
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    profile = asked.paths.HOME / asked.PROFILES / "slurm/config.yaml"
    for status, command in ((1, "squeue"), (0, None)):
        sacct = tmp_path / "sacct"
        sacct.write_text(f"#!/bin/sh\nexit {status}\n", encoding="utf-8")
        sacct.chmod(0o755)
        with profile.open(encoding="utf-8") as file:
            settings = ProfileConfigFileParser().parse(file)
        assert settings.get("slurm-status-command") == command
        assert settings["executor"] == "slurm"


def test_a_missing_scheduler_stops_a_run_with_its_profile(monkeypatch, tmp_path):
    def said(name, **changes):
        profile = str(asked.paths.HOME / asked.PROFILES / name)
        parsed = {"workflow_profile": profile, "dryrun": False, "unlock": False} | changes
        monkeypatch.setattr(asked.sys, "argv", ["snakemake", "--workflow-profile", profile])
        return asked.no_scheduler(SimpleNamespace(**parsed))

    import snakemake.cli  # noqa: F401 (looks for programs of its own when it is imported)

    monkeypatch.setenv("PATH", str(tmp_path))
    for name, program in {
        "sbatch": "sbatch",
        "slurm": "sbatch",
        "lsf": "bsub",
        "generic": "qsub",
    }.items():
        assert f"submits jobs with {program}, which this machine does not have" in said(name)
        assert said(name, dryrun=True) == said(name, unlock=True) == ""
    assert said("local") == said("nowhere") == said("sbatch", workflow_profile=None) == ""
    (tmp_path / "sbatch").write_text("#!/bin/sh\n")
    (tmp_path / "sbatch").chmod(0o755)
    assert said("sbatch") == said("slurm") == ""


def test_another_program_has_no_arguments_of_snakemake(monkeypatch):
    monkeypatch.setattr(asked.sys, "argv", ["/usr/bin/pytest", "--cores", "1"])
    assert asked.arguments() is None
    for name in ("/opt/bin/snakemake", "/opt/lib/snakemake/__main__.py"):
        monkeypatch.setattr(asked.sys, "argv", [name, "--cores", "1", "--", "cm8"])
        assert set(asked.arguments().targets) == {"cm8"}


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        (["cm08"], {"cm08"}),
        (["results/cm08/figures/none.png", "wdbc"], {"cm08", "wdbc"}),
        (["./results/cm08/readings/rows/results.csv"], {"cm08"}),
        ([], {"wdbc"}),
        (["all"], None),
        (["cm8"], None),
        (["results"], None),
        (["results/report.html", "cm08"], None),
        (["elsewhere/cm08/results.csv"], None),
        (["results/data/none.npz", "./data/raw/none.csv"], set()),
        (["results/data/none.npz", "wdbc"], {"wdbc"}),
    ],
)
def test_targets_of_a_few_experiments_name_them(targets, expected):
    arguments = SimpleNamespace(targets=targets, target_jobs=None, until=set())
    assert asked.experiments(arguments, ("cm08", "wdbc"), "results", {"wdbc"}) == expected
    arguments.until = {"run"}
    assert asked.experiments(arguments, ("cm08", "wdbc"), "results", {"wdbc"}) is None
    assert asked.experiments(None, ("cm08", "wdbc"), "results", {"wdbc"}) is None


def test_data_sets_among_targets_are_named():
    targets = [
        "./results/data/digits.npz",
        "data/raw/survey.csv",
        "results/cm08/results.csv",
        "wdbc",
    ]
    assert asked.datasets(SimpleNamespace(targets=targets), "results") == {"digits", "survey"}
    assert asked.datasets(None, "results") == set()


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        (
            {"run": {"experiment": "cm08/readings/rows"}, "table": {"experiment": "wdbc"}},
            {"cm08", "wdbc"},
        ),
        ({"prepare": {"dataset": "none"}}, set()),
        ({"attack": {"mechanism": "none"}}, None),
        ({"run": {"experiment": "none"}}, None),
    ],
)
def test_the_jobs_of_a_submission_name_their_experiments(jobs, expected):
    arguments = SimpleNamespace(targets=[], target_jobs=list(jobs.items()))
    assert asked.experiments(arguments, ("cm08", "wdbc"), "results", {"wdbc"}) == expected


@pytest.mark.parametrize(
    ("listing", "expected"),
    [
        ({"experiments": ["cm08"]}, {"cm08"}),
        ({"experiments": ["cm08"], "settings": {"mine": {}}}, {"cm08", "mine"}),
        ({"experiments": ["cm08"], "settings": 3}, None),
        ({"experiments": ["cm08", "cm80"]}, None),  # refused when everything is validated
        ({"experiments": "cm08"}, None),
        ({"experiments": [["cm08"]]}, None),
        ({"experiments": []}, None),
        ({}, {"mine"}),
    ],
)
def test_without_targets_the_listed_experiments_are_read(listing, expected):
    available = {"cm08": config.SHIPPED / "experiments/cm08.yaml", "mine": Path("mine.yaml")}
    assert config.listed(listing, available) == expected
