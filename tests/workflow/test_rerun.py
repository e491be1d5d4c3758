"""A second run, a touched file or an edit reruns exactly the affected jobs."""

import os
import time

from project import TINY

RUNS = "results/cm08/runs/cm08_separable"
REPORT = {"report: results/report.html"}  # the report shows all figures and tables


def test_a_run_ends_with_its_results_and_names_them(finished):
    for path in (
        "results.csv",
        "timing.csv",
        "provenance.json",
        "tables/figure_1.csv",
        "tuned/cm08_separable.csv",
        "figures/figure_2c.png",
        "figures/figure_2c.pdf",
        "figures/tuning.png",
    ):
        assert (finished / "results/cm08" / path).stat().st_size > 0
    end = f"All of it on one page: {finished / 'results/report.html'}\n"
    assert end in finished.output


def test_touched_files_other_words_and_other_resources_rerun_nothing(edited):
    edited.replace("workflow/rules/resources.smk", "SNAKEMAKE_MB = 300", "SNAKEMAKE_MB = 999")
    edited.replace("workflow/rules/resources.smk", "SHORTEST = 5", "SHORTEST = 7")
    edited.replace("workflow/rules/run.smk", "runtime=minutes(3)", "runtime=minutes(50)")
    for path in ("scripts/dp/mechanisms/output_perturbation.py", "scripts/dp/noise.py"):
        text = (edited / path).read_text(encoding="utf-8")
        assert text.startswith('"""')
        edited.write(path, '"""Other words: ' + text[3:] + "\n# a comment\n")
    later = time.time() + 10
    touched = 0
    for folder in ("scripts", "workflow", "config", "profiles", "tests", "envs"):
        for path in (edited / folder).rglob("*"):
            if path.is_file():
                os.utime(path, (later, later))
                touched += 1
    os.utime(edited / "Snakefile", (later, later))
    assert touched > 40
    before = edited.files("results")
    output = edited.snakemake(*TINY, "--set-resources", "fit:mem_mb=5000")
    assert "Nothing to be done" in output
    assert edited.files("results") == before


def test_an_edited_plotting_script_redraws_figures_only(edited):
    edited.append("scripts/plots/curves.py", "\nAN_EDIT = True\n")
    figures = {f"figure: results/cm08/figures/{name}.png" for name in ("figure_2c", "tuning")}
    assert edited.plan(*TINY) == figures | REPORT


def test_an_edited_mechanism_reruns_its_jobs_and_no_other_mechanisms(edited):
    edited.append("scripts/dp/mechanisms/output_perturbation.py", "\nAN_EDIT = True\n")
    assert edited.plan(*TINY) == {
        f"run: {RUNS}/output_perturbation/n=100/eps=0.5.csv",
        f"run: {RUNS}/output_perturbation/n=100/eps=1.csv",
        "guarantees: results/cm08/guarantees.csv",
        "aggregate: results/cm08/results.csv",
        "provenance: results/cm08/timing.csv",
        "table: results/cm08/tables/figure_1.csv",
        "figure: results/cm08/figures/figure_2c.png",
        *REPORT,
    }


def test_an_edited_library_reruns_the_jobs_that_execute_it(edited):
    edited.append("scripts/dp/noise.py", "\nAN_EDIT = True\n")
    planned = edited.plan(*TINY)
    assert f"run: {RUNS}/objective_perturbation/n=100/eps=1.csv" in planned
    assert f"run: {RUNS}/nonprivate/n=100/eps=inf.csv" not in planned
    assert {job.partition(":")[0] for job in planned}.isdisjoint({"prepare", "tune", "fit"})


def test_overlays_combine_and_the_later_one_wins(edited):
    edited.write(
        "first.yaml",
        "settings: {cm08: {sweeps: {epsilon: {epsilons: [0.5, 1, 3]}}, tables: {figure_1: null}}}",
    )
    edited.write("second.yaml", "settings: {cm08: {sweeps: {epsilon: {epsilons: [0.5, 1, 4]}}}}")
    # Only new cells run. The first overlay removes the table; what tiny.yaml removes stays removed.
    assert edited.plan("--configfile", "tests/tiny.yaml", "first.yaml", "second.yaml") == {
        f"run: {RUNS}/output_perturbation/n=100/eps=4.csv",
        f"run: {RUNS}/objective_perturbation/n=100/eps=4.csv",
        "configuration: results/cm08/configuration.json",
        "guarantees: results/cm08/guarantees.csv",
        "aggregate: results/cm08/results.csv",
        "provenance: results/cm08/timing.csv",
        "figure: results/cm08/figures/figure_2c.png",
        *REPORT,
    }
