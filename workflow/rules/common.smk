# Configuration, and the functions that rules take inputs and parameters from.

import json
import os
import re
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

sys.path.insert(0, str(Path(workflow.basedir) / "scripts"))

from study import downloads, kinds, printed
from study.config import ConfigError, load
from study.dependencies import digest
from study.experiment import data_path

from dp.mechanisms import MECHANISMS

# Jobs call `python`: the one that runs Snakemake, unless a conda environment puts its own first.
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
)

try:
    CONFIG, EXPERIMENTS, DATASETS = load(config, workflow.configfiles)
except ConfigError as error:
    raise WorkflowError(str(error)) from None


# Downloads run beside Snakemake, so mirrors reach them through the environment.
os.environ[downloads.MIRRORS] = ",".join(
    [*downloads.environment_mirrors(), *CONFIG["data"]["mirrors"]]
)


def names(values):
    """A wildcard constraint that matches exactly these names."""
    return "|".join(map(re.escape, values)) or "(?!)"


wildcard_constraints:
    experiment=names(EXPERIMENTS),
    dataset=names(DATASETS),
    file=names(CONFIG["files"]),
    size=r"\d+",
    name=r"[A-Za-z0-9_]+",
    suffix="csv|npz",
    epsilon=r"\d+(\.\d*[1-9])?|inf",


def experiment_of(wildcards):
    return EXPERIMENTS[wildcards.experiment]


def source_files(source):
    """Files that a data set is read from."""
    return [source["csv"]] if "csv" in source else list(source.get("idx", {}).values())


def download_arguments(name):
    """What fixes a file's content: its checksum, or for a file without one its address."""
    file = CONFIG["files"][name]
    checksum = [f"--sha256={file['sha256']}"] if file.get("sha256") else []
    own = [f"--url={url}" for url in file["urls"]] if file.get("own") else []
    return shlex.join(checksum + own)


def method_of(wildcards):
    return experiment_of(wildcards).methods[wildcards.method]


def fit_of(wildcards):
    return experiment_of(wildcards).fits()[wildcards.fit]


def tuned_lambda(wildcards, lam):
    """The tuning's result as an input, where a method or fit asks for the tuned lambda."""
    return experiment_of(wildcards).tuned_path(wildcards.dataset, "json") if lam == "tuned" else []


def lambda_argument(wildcards, lam):
    return tuned_lambda(wildcards, lam) or lam


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
    if kind.describes_data:
        paths += [data_path(name, "json") for name in entry.get("datasets", experiment.datasets)]
    if kind.printed and "source" in experiment.values:
        paths.append(str(printed.path(experiment.values)))
    return paths


def entry_configuration(wildcards, section):
    """The part of an experiment's configuration that one entry depends on."""
    entry, _ = entry_of(wildcards, section)
    values = experiment_of(wildcards).values
    keys = ("datasets", "methods", "folds", "restarts", "source", "lambda_published", "tune")
    part = {key: values[key] for key in keys if key in values}
    part[section] = {wildcards.name: entry}
    for key, other in (("sweep", "sweeps"), ("analysis", "analyses")):
        if key in entry:
            part[other] = {entry[key]: values[other][entry[key]]}
    return json.dumps({"name": wildcards.experiment} | part)


def entry_library(wildcards, section, script):
    return digest(script, entry_of(wildcards, section)[1].module)


def mechanism_modules(experiment):
    return sorted(
        {MECHANISMS.module(method["mechanism"]) for method in experiment.methods.values()}
    )


def results_of(name):
    """Every file that an experiment ends with."""
    experiment = EXPERIMENTS[name]
    folder = f"results/{name}"
    cells = ["results.csv", "timing.csv", "provenance.json"] if experiment.sweeps else []
    return [
        *(f"{folder}/{file}" for file in cells),
        *(
            experiment.tuned_path(dataset)
            for dataset in experiment.datasets
            if "tune" in experiment.values
        ),
        *map(experiment.analysis_path, experiment.analyses),
        *(f"{folder}/tables/{table}.csv" for table in experiment.tables),
        *(f"{folder}/figures/{figure}.png" for figure in experiment.figures),
    ]


def announce(experiments):
    """The last lines of a run: where its results are."""
    done = [name for name in experiments if Path(f"results/{name}/results.csv").exists()]
    for name in done:
        print(f"results/{name}/: results.csv, tables/, figures/", file=sys.stderr)
