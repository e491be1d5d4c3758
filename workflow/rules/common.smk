# Configuration, and the functions that rules take inputs and parameters from.

import json
import os
import re
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

sys.path.insert(0, str(Path(workflow.basedir) / "scripts"))

from study import audits, kinds, published
from study.config import ConfigError, load
from study.dependencies import digest

from dp.mechanisms import MECHANISMS

# Jobs call `python`: the one that runs Snakemake, unless a conda environment puts its own first.
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
)

try:
    CONFIG, EXPERIMENTS, DATASETS = load(config, workflow.configfiles)
    AUDITS = audits.load(CONFIG)
except ConfigError as error:
    raise WorkflowError(str(error)) from None


def names(values):
    """A wildcard constraint that matches exactly these names."""
    return "|".join(map(re.escape, values)) or "(?!)"


wildcard_constraints:
    experiment=names(EXPERIMENTS),
    dataset=names(DATASETS),
    size=r"\d+",
    name=r"[A-Za-z0-9_]+",
    suffix="csv|npz",
    epsilon=r"\d+(\.\d*[1-9])?|inf",


def experiment_of(wildcards):
    return EXPERIMENTS[wildcards.experiment]


def method_of(wildcards):
    return experiment_of(wildcards).methods[wildcards.method]


def fit_of(wildcards):
    return experiment_of(wildcards).fits()[wildcards.fit]


def tuned_lambda(wildcards, lam):
    """The tuning's result as an input, where a method or fit asks for the tuned lambda."""
    return experiment_of(wildcards).tuned_path(wildcards.dataset, "json") if lam == "tuned" else []


def lambda_argument(wildcards, lam):
    return tuned_lambda(wildcards, lam) or lam


def private_tuning_argument(wildcards):
    private = experiment_of(wildcards).tune.get("private_tuning")
    return f"--private {shlex.quote(json.dumps(private, sort_keys=True))}" if private else ""


def private_tuning_modules(wildcards):
    private = experiment_of(wildcards).tune.get("private_tuning", {})
    return [MECHANISMS.module(private["mechanism"])] if "mechanism" in private else []


def cell_fit(wildcards):
    """The shared fits of a cell's method, [] for a method without one."""
    label = experiment_of(wildcards).fit_label(wildcards.method)
    if label is None:
        return []
    return f"results/{{experiment}}/fits/{{dataset}}/{label}/n={{size}}.npz"


def entry_of(wildcards, section):
    """(configuration, kind) of a table, figure or analysis."""
    entry = experiment_of(wildcards).values[section][wildcards.name]
    return entry, kinds.SECTIONS[section][entry["kind"]]


def entry_inputs(wildcards, section):
    """Files that a table, figure or analysis reads."""
    entry, kind = entry_of(wildcards, section)
    experiment = experiment_of(wildcards)
    if kind.inputs == "cells":
        paths = [experiment.run_path(cell) for cell in experiment.entry_cells(entry)]
    else:
        paths = list(experiment.entry_paths(entry, kind.inputs).values())
    if entry["options"].get("published"):
        paths.append(str(published.path(experiment)))
    return paths


def entry_configuration(wildcards, section):
    """The part of an experiment's configuration that one entry depends on."""
    entry, _ = entry_of(wildcards, section)
    values = experiment_of(wildcards).values
    part = {key: values[key] for key in ("datasets", "methods", "folds", "restarts")}
    part |= {key: values[key] for key in ("source", "lambda_published", "tune") if key in values}
    part[section] = {wildcards.name: entry}
    for key, other in (("sweep", "sweeps"), ("analysis", "analyses")):
        named = entry.get(key, [])
        for name in [named] if isinstance(named, str) else named:
            part.setdefault(other, {})[name] = values[other][name]
    return json.dumps({"name": wildcards.experiment} | part)


def entry_library(wildcards, section, script):
    kind = entry_of(wildcards, section)[1]
    loaded = mechanism_modules(experiment_of(wildcards)) if kind.mechanisms else []
    return digest(script, kind.module, *loaded)


def mechanism_modules(experiment):
    return sorted(
        {MECHANISMS.module(method["mechanism"]) for method in experiment.methods.values()}
    )


def results_of(name):
    """Every file that an experiment ends with."""
    experiment = EXPERIMENTS[name]
    folder = f"results/{name}"
    return [
        f"{folder}/results.csv",
        f"{folder}/timing.csv",
        f"{folder}/provenance.json",
        *(
            experiment.tuned_path(dataset)
            for dataset in experiment.datasets
            if "tune" in experiment.values
        ),
        *map(experiment.analysis_path, experiment.analyses),
        *(f"{folder}/tables/{table}.csv" for table in experiment.tables),
        *(f"{folder}/figures/{figure}.png" for figure in experiment.figures),
    ]


def ledger_files():
    """Every file that the audit ends with."""
    return [
        "results/audit/ledger.csv",
        "results/audit/exact.csv",
        "results/audit/spending.csv",
        "results/audit/ledger.png",
        *(f"results/audit/{mechanism}.csv" for mechanism in AUDITS.mechanisms),
    ]


def attack_modules(mechanism):
    """The mechanism's own module: an attack depends on no other mechanism's source."""
    return [MECHANISMS.module(mechanism)] if mechanism in MECHANISMS else []


def tuned_of(experiment):
    """The tunings that an experiment's methods use."""
    used = any(method["lambda"] == "tuned" for method in experiment.methods.values())
    return [experiment.tuned_path(name, "json") for name in experiment.datasets] if used else []


def announce(experiments):
    """The last lines of a run: where its results are."""
    done = [name for name in experiments if Path(f"results/{name}/results.csv").exists()]
    for name in done:
        print(f"results/{name}/: results.csv, tables/, figures/", file=sys.stderr)
    if AUDITS.values["enabled"] and Path("results/audit/ledger.csv").exists():
        print("results/audit/: ledger.csv, ledger.png, exact.csv, spending.csv", file=sys.stderr)
