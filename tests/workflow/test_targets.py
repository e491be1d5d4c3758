import re
from collections import Counter

import pytest
import yaml

from project import ROOT, TINY
from study.configuration.sources import experiment_files


@pytest.fixture(scope="module")
def project(fresh):
    return fresh("targets")


def test_one_figure_runs_only_what_it_needs(project):
    planned = project.plan("--", "results/cm08/figures/figure_2c.png")
    jobs = Counter(job.partition(":")[0] for job in planned)
    path = ROOT / "config/sources/chaudhuri_monteleoni_2008/cm08.yaml"
    values = yaml.safe_load(path.read_text())
    private = len(values["methods"]) - 1
    assert jobs == {"prepare": 1, "fit": 1, "run": 20 * private + 1, "figure": 1}
    assert all("cm08_separable" in job or "figure_2c" in job for job in planned)
    assert all("n=10000/" in job or "n=10000." in job for job in planned if "run" in job[:4])


@pytest.mark.slow
def test_every_experiment_is_a_target(project):
    names = list(experiment_files())
    assert {"cm08", "wdbc"} <= set(names)
    planned = project.plan("--configfile", "config/smoke.yaml", "--", *names)
    made = {job.partition(": results-smoke/")[2].partition("/")[0] for job in planned}
    assert set(names) <= made


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--", "cm8"), "error: no target 'cm8'; did you mean 'cm08'?"),
        (
            ("--workflow-profile", "workflow/profiles/slrum", "--", "cm08"),
            "error: no profile 'workflow/profiles/slrum'; did you mean 'workflow/profiles/slurm'?",
        ),
    ],
)
def test_what_there_is_not_is_refused_with_the_nearest_name(project, words, said):
    output = project.snakemake("--dry-run", *words, ok=False)
    assert said in output and "Traceback" not in output and "Exception" not in output


@pytest.mark.slow
def test_files_that_rules_make_beside_results_remain_targets(project):
    words = ("results/data/cm08_separable.npz", "./results/cm08/figures/figure_2c.pdf")
    assert project.plan("--", words[0]) == {f"prepare: {words[0]}"}
    assert project.plan("--config", "experiments=[cm08]", "--", words[1])


def test_an_experiment_s_target_makes_all_of_its_folder(project, finished):
    own = {job for job in project.plan(*TINY, "--", "cm08") if ": results/cm08/" in job}
    whole = re.findall(
        r"^(?:local)?rule (\w+):\n(?:    .*\n)*?    output: ([^,\n]+)", finished.log(), re.M
    )
    whole = {f"{rule}: {file}" for rule, file in whole if file.startswith("results/cm08/")}
    assert own == whole and len(own) > 5
