"""Old results are not silently kept if a user's data file is missing or has changed."""

import os

import pytest

ENTRY = """
my_survey:
  source: {csv: my_survey.csv}
  label: outcome
  positive: 'yes'
  bounds: {age: [18, 100]}
"""
STUDY = """
title: "My study"
datasets: [my_survey]
folds: 2
restarts: 2
lambda: 0.01
methods: {nonprivate: {}}
sweeps: {main: {train_sizes: [20], epsilons: [1]}}
"""
ROWS = [f"{20 + k},{'yes' if k % 3 else 'no'}\n" for k in range(60)]
CELL = "results/my_study/runs/my_survey/nonprivate/n=20/eps=inf.csv"


@pytest.fixture(scope="module")
def made(fresh):
    """Read-only copy in which a study of a user's own data has run."""
    project = fresh("own")
    project.append("config/datasets.yaml", ENTRY)
    project.write("config/experiments/my_study.yaml", STUDY)
    project.write("my_survey.csv", "age,outcome\n" + "".join(ROWS))
    project.snakemake("--", "my_study")
    return project


@pytest.fixture
def project(made, tmp_path):
    return made.duplicate(tmp_path / "project")


def prepares(project):
    return "prepare: results/data/my_survey.npz" in project.plan("--", "my_study")


def test_a_missing_file_is_refused_although_there_are_results(project):
    project.replace("config/datasets.yaml", "{csv: my_survey.csv}", "{csv: my_survy.csv}")
    expected = (
        "error: config/datasets.yaml: my_survey.source.csv: no file 'my_survy.csv'; did you mean "
        "'my_survey.csv'?"
    )
    prepared = "results/data/my_survey.npz"
    for arguments in (["--", "my_study"], ["-n", "--", "audit"], ["--", prepared]):
        output = project.snakemake(*arguments, ok=False)
        assert output.splitlines()[-1] == expected and "Traceback" not in output
    assert project.plan("--", "wdbc")  # wdbc does not need the missing file


def test_a_report_and_a_job_elsewhere_do_not_miss_the_file(project):
    (project / "my_survey.csv").unlink()
    project.snakemake("--report", "report.zip", "--", "my_study")
    assert (project / "report.zip").stat().st_size > 0
    # Run the job as a cluster node does.
    before = (project / CELL).read_bytes()
    (project / CELL).unlink()
    words = ("--mode", "remote", "--nolock", "--force", "--allowed-rules", "run", "--", CELL)
    project.snakemake(*words)
    assert (project / CELL).read_bytes() == before


@pytest.mark.slow
def test_other_rows_are_prepared_although_their_file_is_older(project):
    assert not prepares(project)
    os.utime(project / "my_survey.csv")
    assert not prepares(project)
    project.write("my_survey.csv", "age,outcome\n99,no\n" + "".join(ROWS[1:]))
    os.utime(project / "my_survey.csv", (1e9, 1e9))
    assert prepares(project)


def test_another_file_is_prepared_although_it_is_older(project):
    project.write("other.csv", (project / "my_survey.csv").read_text())
    os.utime(project / "other.csv", (1e9, 1e9))
    project.replace("config/datasets.yaml", "{csv: my_survey.csv}", "{csv: other.csv}")
    assert prepares(project)
