# Configuration, and the functions that rules take inputs and parameters from.

import json
import os
import re
import subprocess
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

sys.path.insert(0, str(Path(workflow.basedir) / "scripts"))

from study import audits, canonical, data_sources, downloads, kinds, sources
from study.config import ConfigError, check_own_files, load
from study.dependencies import digest, looks_up_mechanisms
from study.experiment import data_path

from dp.mechanisms import MECHANISMS

# Jobs call `python`: the one that runs Snakemake, unless a conda environment puts its own first.
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
)

try:
    CONFIG, EXPERIMENTS, DATASETS = load(config, workflow.configfiles)
    AUDITS = audits.load(CONFIG)
    sources.check(EXPERIMENTS, sources.load(), DATASETS)
    # Without its file Snakemake would take a data set that was prepared from another for up to date. A
    # computing node may not see the file, and a report shows what was computed of it.
    reports = any(word.partition("=")[0] == "--report" for word in sys.argv)
    if workflow.is_main_process and not reports:
        check_own_files(EXPERIMENTS, DATASETS, CONFIG["files"])
except ConfigError as error:
    sys.exit(f"error: {error}")  # one sentence: an exception would bring a traceback


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
    search=r"[A-Za-z0-9_]+",
    suffix="csv|npz",
    epsilon=canonical.EPSILON_PATTERN,


def experiment_of(wildcards):
    return EXPERIMENTS[wildcards.experiment]


def own_content(wildcards):
    """What the data set's files of the user's own hold; a download's content is fixed by its source."""
    source = DATASETS[wildcards.dataset]["source"]
    return data_sources.content(data_sources.own_files(source, CONFIG["files"]).values())


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


def lambda_source(wildcards, settings):
    """lambda of a method or fit: a number, or the file of a tuning or search that will hold it."""
    epsilon = float(wildcards.get("epsilon", "inf"))
    return experiment_of(wildcards).lambda_source(
        settings, wildcards.dataset, int(wildcards.size), epsilon
    )


def lambda_file(wildcards, settings):
    """That file as an input, [] for a number."""
    source = lambda_source(wildcards, settings)
    return source if isinstance(source, str) else []


def chosen_settings(wildcards):
    """That file of a cell's method; nothing, not an empty list, in each of many cells without one."""
    source = lambda_source(wildcards, method_of(wildcards))
    return {"chosen": source} if isinstance(source, str) else {}


def cell_settings(wildcards):
    """Arguments of a run beside its wildcards: one parameter, because every one costs each of tens of
    thousands of jobs a kilobyte."""
    experiment, method = experiment_of(wildcards), method_of(wildcards)
    words = {
        "mechanism": method["mechanism"],
        "options": json.dumps(method["options"]),
        "delta": method["delta"],
        "lam": lambda_source(wildcards, method),
        "restarts": experiment.restarts,
        "seed": CONFIG["seed"],
    }
    given = shlex.join(text for key, value in words.items() for text in (f"--{key}", str(value)))
    return sys.intern(f"{given} {experiment.split(wildcards.method)}")


def search_of(wildcards):
    return experiment_of(wildcards).searches[wildcards.search]


def searched_method(wildcards):
    return experiment_of(wildcards).methods[search_of(wildcards)["method"]]


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
    if kind.inputs in ("cells", "draws"):
        paths = [experiment.run_path(cell) for cell in experiment.entry_cells(entry)]
    else:
        paths = list(experiment.entry_paths(entry, kind.inputs).values())
    if kind.printed or entry["options"].get("published"):
        paths += sources.files(experiment.source)
    if kind.describes_data:
        paths += [data_path(name, "json") for name in entry.get("datasets", experiment.datasets)]
    return paths


def entry_configuration(wildcards, section):
    """The part of an experiment's configuration that one entry depends on."""
    entry, _ = entry_of(wildcards, section)
    values = experiment_of(wildcards).values
    keys = (
        *("source", "datasets", "methods", "folds", "simulations", "restarts", "searches"),
        *("lambda_published", "tune"),
    )
    part = {key: values[key] for key in keys if key in values}
    part[section] = {wildcards.name: entry}
    for key, other in (("sweep", "sweeps"), ("analysis", "analyses"), ("published", "published")):
        named = entry.get(key) or entry["options"].get(key) or []
        for name in [named] if isinstance(named, str) else named:
            part.setdefault(other, {})[name] = values[other][name]
    return json.dumps({"name": wildcards.experiment} | part)


def entry_library(wildcards, section, script):
    loaded = [entry_of(wildcards, section)[1].module]
    if looks_up_mechanisms(script, *loaded):
        loaded += mechanism_modules(experiment_of(wildcards))
    return digest(script, *loaded)


def searched_paths(experiment, suffix):
    """Every search result that the experiment's cells and fits use, each once."""
    found = {}
    for cell in experiment.cells():
        method = experiment.methods[cell.method]
        if "search" in method:
            key = (method["search"], *cell[:1], *cell[2:])
            found[experiment.search_path(*key, suffix=suffix)] = None
    return list(found)


def checks_of(experiment, section):
    """Every check that the claims, or the defects, of an experiment are decided by."""
    return [
        check
        for entry in experiment.values[section].values()
        for check in entry.get("checks", ())
        if check.get("analysis") in (None, *experiment.analyses)
        and check.get("table") in (None, *experiment.tables)
    ]


def check_modules(wildcards):
    """Modules that the checks of a section load by name: their own, and those of mechanisms."""
    checks = checks_of(experiment_of(wildcards), wildcards.section)
    mechanisms = {c["options"]["mechanism"] for c in checks if "mechanism" in c["options"]}
    return sorted(
        {kinds.CHECKS[check["kind"]].module for check in checks}
        | {MECHANISMS.module(name) for name in mechanisms}
    )


def check_inputs(wildcards):
    """Files that the claims, or the defects, of an experiment are decided from."""
    experiment = experiment_of(wildcards)
    checks = checks_of(experiment, wildcards.section)
    files = {path: None for path in sources.files(experiment.source)}
    if any(kinds.CHECKS[check["kind"]].inputs == "results" for check in checks):
        files[f"results/{experiment.name}/results.csv"] = None
    for check in checks:
        if "analysis" in check:
            files[experiment.analysis_path(check["analysis"])] = None
        other = check["options"].get("experiment")
        if other in CONFIG["experiments"]:
            files[f"results/{other}/results.csv"] = None
        if "table" in check:
            files[f"results/{experiment.name}/tables/{check['table']}.csv"] = None
        if kinds.CHECKS[check["kind"]].inputs == "tuning":
            for dataset in check["options"].get("datasets", experiment.datasets):
                if dataset in experiment.datasets:
                    files |= {experiment.tuned_path(dataset, end): None for end in ("json", "csv")}
    return list(files)


def comparison_inputs(wildcards):
    """Files that hold the published values and ours."""
    experiment = experiment_of(wildcards)
    analyses = {spec.get("analysis") for spec in experiment.published.values()}
    specs = experiment.published.values()
    return [
        *(
            [f"results/{experiment.name}/results.csv"]
            if any(not spec.get("analysis") and not spec.get("table") for spec in specs)
            else []
        ),
        *sources.files(experiment.source),
        *(experiment.analysis_path(name) for name in experiment.analyses if name in analyses),
        *(
            f"results/{experiment.name}/tables/{name}.csv"
            for name in {spec.get("table"): None for spec in experiment.published.values()}
            if name in experiment.tables
        ),
    ]


def stand_ins(experiment):
    """Data set -> why nothing about the source's data is decided on it."""
    return {
        name: DATASETS[name]["stand_in"]
        for name in experiment.datasets
        if "stand_in" in DATASETS[name]
    }


def verdict_paths(experiment):
    """published.csv, claims.csv and defects.csv, those that an experiment's configuration asks for."""
    return [
        f"results/{experiment.name}/{section}.csv"
        for section in ("published", "claims", "defects")
        if experiment.values[section]
    ]


def mechanism_modules(experiment):
    return sorted(
        {MECHANISMS.module(method["mechanism"]) for method in experiment.methods.values()}
    )


def what_was_computed(experiment):
    """results.csv, or of an experiment without cells its data and analyses."""
    if experiment.sweeps:
        return [f"results/{experiment.name}/results.csv"]
    return [
        *(f"results/data/{dataset}.json" for dataset in experiment.datasets),
        *map(experiment.analysis_path, experiment.analyses),
    ]


def results_of(name):
    """Every file that an experiment ends with."""
    experiment = EXPERIMENTS[name]
    folder = f"results/{name}"
    return [
        *([f"{folder}/results.csv"] if experiment.sweeps else []),
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
        *verdict_paths(experiment),
    ]


def check_folders():
    """Said before the first job, since each of them would fail with a traceback."""
    for folder in map(Path, ("results", "data")):
        if folder.exists() and not os.access(folder, os.W_OK):
            raise WorkflowError(
                f"{folder}/ cannot be written: make it writable, or work in a copy of the project"
            )


def announce(dag):
    """The last lines of a run: the result files that it was asked for, one line per folder."""
    folders = {}
    for job in dag.targetjobs:
        for path in map(Path, job.output or job.input):
            folders.setdefault(path.parent, set()).add(path.name)
    for folder, files in sorted(folders.items()):
        print(f"{folder}/: {', '.join(sorted(files))}", file=sys.stderr)
    if "report.html" in folders.get(Path("results"), ()):
        print("All of it on one page: results/report.html", file=sys.stderr)


def ledger_files():
    """Every file that the audit ends with."""
    return [
        "results/audit/ledger.csv",
        "results/audit/exact.csv",
        "results/audit/spending.csv",
        "results/audit/cells.csv",
        "results/audit/ledger.png",
        *(f"results/audit/{mechanism}.csv" for mechanism in AUDITS.mechanisms),
    ]


def attack_modules(mechanism):
    """The mechanism's own module: an attack depends on no other mechanism's source."""
    return [MECHANISMS.module(mechanism)] if mechanism in MECHANISMS else []


def lambda_files(experiment):
    """The files that hold the lambdas of an experiment's cells, where these are chosen in the run."""
    sources = (
        experiment.lambda_source(
            experiment.methods[cell.method], cell.dataset, cell.train_size, cell.epsilon
        )
        for cell in experiment.cells()
    )
    return sorted({source for source in sources if isinstance(source, str)})


def all_stand_ins():
    return json.dumps(
        {
            dataset: why
            for name in CONFIG["experiments"]
            for dataset, why in stand_ins(EXPERIMENTS[name]).items()
        }
    )


def explain_kills(logs):
    """A killed job says nothing: its log is empty. logs: paths of Snakemake's own."""
    there = filter(Path.is_file, map(Path, logs))
    said = "".join(path.read_text(errors="replace") for path in there)
    if re.search(r"exit status 137|Signals\.SIGKILL", said):
        print(
            "A job was killed, most often because the machine had no memory left for it: run fewer "
            "jobs side by side (a smaller --cores) with the same command; finished jobs stay",
            file=sys.stderr,
        )


def report_what_there_is():
    """results/report.html of the results that there are, with the gaps shown: after a failure, too."""
    folder = Path("results/logs/configuration")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in CONFIG["experiments"]:
        path = folder / f"{name}.json"
        path.write_text(EXPERIMENTS[name].to_json())
        paths.append(str(path))
    words = ["--configuration", *paths, "--seed", str(CONFIG["seed"])]
    words += ["--stand-ins", all_stand_ins(), "--out-html", "results/report.html"]
    words += ["--out-costs", "results/costs.csv"]
    done = subprocess.run([sys.executable, "scripts/report.py", *words], check=False)
    if done.returncode == 0:
        print("results/report.html: what there is, with its gaps", file=sys.stderr)
