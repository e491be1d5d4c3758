# The configuration, and the functions that give rules their inputs and parameters.

import hashlib
import json
import os
import re
import shlex
import sys
from functools import cache
from pathlib import Path

# The workflow's folder, independent of the working folder and of the main Snakefile.
HERE = Path(workflow.current_basedir.get_path_or_uri(secret_free=True))
if not (HERE.parents[1] / "scripts").is_dir():
    sys.exit(
        "error: this workflow cannot be a module by github(): its jobs run programs of scripts/, which "
        "Snakemake does not unpack. Clone the repository, and name the clone's Snakefile"
    )
sys.path.insert(0, str(HERE.parents[1] / "scripts"))

from study import asked, canonical, paths
from reporting import record
from study.configuration import (
    audits,
    kinds,
    needs,
    publications,
    release_files,
    sizes,
)
from study.configuration.config import ConfigError, check_own_files, listed, load
from study.configuration.experiment import Reading, data_path
from study.configuration.experiment_keys import Method
from study.configuration import sources as source_files
from study.configuration.code import mechanism_modules, modules_of, modules_of_checks, of_entry
from study.data import downloads, origins
from study.dependencies import digest
from study.jobs import records

from dp.mechanisms import MECHANISMS

# Jobs use the `python` that runs Snakemake, unless a conda environment puts its own
# `python` first in PATH.
os.environ.update(
    {
        "PATH": os.pathsep.join(
            [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        ),
        paths.HOME_VARIABLE: str(paths.HOME.resolve()),
    }
)

# As a module, this workflow gets only `config` from Snakemake. Overlays and config/config.yaml
# belong to the workflow that includes this one.
MODULE = not workflow.modifier.is_main_snakefile()
modifier = workflow.modifier.path_modifier
while modifier is not None:
    if modifier.prefix or modifier.modifies_prefixes:
        sys.exit(
            "error: this module takes neither prefix nor replace_prefix, since its jobs spell paths "
            "themselves: choose the folder of its results by the key `results` of its config"
        )
    modifier = modifier.inner_modifier

GIVEN = None if MODULE else asked.arguments()


def configuration(only=None):
    """Load CONFIG, EXPERIMENTS, DATASETS and sources, of all experiments or of `only`."""
    # Sources come first, because a search may take its grid from a source.
    sources = source_files.load(only)
    files, place = ([], "the module's config") if MODULE else (workflow.configfiles, "--config")
    loaded = load(config, files, place, only)
    publications.check(loaded[1], sources, loaded[2])
    return *loaded, sources


try:
    # Validating all experiments takes seconds, so read only those that are requested or listed.
    available = source_files.experiment_files()
    root = str(config.get("results", paths.results()))
    READ = asked.experiments(GIVEN, available, root, listed(config, available))
    FEW = READ is not None and asked.has_targets(GIVEN)  # targets limit which experiments are read
    CONFIG, EXPERIMENTS, DATASETS, sources = configuration(
        None if READ is None else source_files.concerned(READ)
    )
    LISTED = [name for name in CONFIG.experiments if name in EXPERIMENTS]
    # A study audits only the mechanisms that it uses; the workflow's own checkout audits all.
    own = [EXPERIMENTS[name] for name in LISTED] if MODULE or paths.in_study() else None
    AUDITS = audits.load(CONFIG.audit, [] if FEW else own)
    # Snakemake takes prepared data to be up to date even if their source file is missing, so check
    # that this file exists. Compute nodes may not see it, and reports do not need it.
    reports = any(word.partition("=")[0] == "--report" for word in sys.argv)
    if workflow.is_main_process and not reports:
        check_own_files(EXPERIMENTS, DATASETS, CONFIG.files, asked.datasets(GIVEN, root))
except ConfigError as error:
    sys.exit(f"error: {error}")  # without a traceback


CONFIGURATION = records.words(workflow.overwrite_configfiles, workflow.config_settings.config)
if MODULE and getattr(workflow, "dp_results", CONFIG.results) != CONFIG.results:
    sys.exit(
        f"error: two modules with results in {workflow.dp_results} and {CONFIG.results}: all "
        "experiments of one workflow share a folder of results, so give both the same"
    )
workflow.dp_results = CONFIG.results
paths.use(CONFIG.results)


# Jobs that download read the mirrors from the environment.
os.environ[downloads.MIRRORS] = ",".join([*downloads.environment_mirrors(), *CONFIG.data.mirrors])


os.environ[kinds.MODULES] = kinds.modules()  # so that each job imports only its own kinds' modules


# In paths, the wildcard `experiment` is a folder of results. The folder of a reading is below
# that of its experiment.
FOLDERS = {experiment.folder: experiment for experiment in EXPERIMENTS.values()}


def names(values):
    """A wildcard constraint for exactly these names."""
    return "|".join(map(re.escape, values)) or "(?!)"


wildcard_constraints:
    experiment=names(FOLDERS),
    dataset=names(DATASETS),
    file=names(CONFIG.files),
    size=r"\d+",
    name=r"[A-Za-z0-9_]+",
    search=r"[A-Za-z0-9_]+",
    suffix="csv|npz",
    epsilon=canonical.EPSILON_PATTERN,


def experiment_of(wildcards):
    return FOLDERS[wildcards.experiment]


@cache
def cells_of(experiment):
    return experiment.cells()


# Functions that several rules files use.


def of_listed(place):
    """A file of each listed experiment that has cells."""
    return [place(experiment=name) for name in LISTED if EXPERIMENTS[name].sweeps]


@cache
def facts(experiment):
    """A digest of the facts of an experiment's source, independent of the files that contain them."""
    content = json.dumps(sources[experiment.source].facts())
    return hashlib.sha256(content.encode()).hexdigest()


def stand_ins(experiment):
    """Data set -> how it differs from the source's data, which makes numbers on it undecidable."""
    return {
        name: DATASETS[name].stand_in
        for name in experiment.datasets
        if DATASETS[name].stand_in is not None
    }


def all_stand_ins():
    """`stand_ins` of all experiments, because a report may show experiments that are not listed."""
    differences = {}
    for experiment in EXPERIMENTS.values():
        differences |= stand_ins(experiment)
    return json.dumps(differences, sort_keys=True)


def stale_words(names):
    """The report's arguments for stale records; none if all of these experiments ran at smaller sizes."""
    if sizes.toy(EXPERIMENTS[name] for name in names):
        return []
    from reporting import stale  # slow to import, and few runs need it

    return ["--stale", json.dumps(stale.changed())]


# data.smk


def own_content(wildcards):
    """A digest of a data set's files without downloads, which have checksums."""
    source = DATASETS[wildcards.dataset].source
    return origins.content(origins.own_files(source, CONFIG.files).values())


def download_arguments(name):
    """Arguments that determine a file's content: its checksum or, without one, its address."""
    file = CONFIG.files[name]
    checksum = [f"--sha256={file.sha256}"] if file.sha256 else []
    own = [f"--url={url}" for url in file.urls] if isinstance(file, downloads.Wanted) else []
    return shlex.join(checksum + own)


# run.smk


def method_of(wildcards):
    return experiment_of(wildcards).methods[wildcards.method]


def fit_of(wildcards):
    """A method that has the fit."""
    return experiment_of(wildcards).fits()[wildcards.fit]


def regularisation_of(wildcards, settings):
    """The kind of `study.lambdas` by which a method or fit chooses lambda."""
    epsilon = float(wildcards.get("epsilon", "inf"))
    return experiment_of(wildcards).regularisation(
        settings, wildcards.dataset, int(wildcards.size), epsilon
    )


def lambda_file(wildcards, settings):
    """The tuning or search file that is an input; [] if lambda is stated or set by a rule."""
    return regularisation_of(wildcards, settings).file or []


def chosen_settings(wildcards):
    """A cell's tuning or search file as an input; {} without one, since empty inputs add up over cells."""
    file = regularisation_of(wildcards, method_of(wildcards)).file
    return {"chosen": file} if file else {}


def cell_settings(wildcards):
    """The arguments of a run besides its wildcards.

    They form a single parameter, because each parameter takes a kilobyte per job, and there are tens of
    thousands of jobs.
    """
    experiment, method = experiment_of(wildcards), method_of(wildcards)
    words = {
        "meta": data_path(wildcards.dataset, "json"),
        "mechanism": method.mechanism,
        "options": json.dumps(method.options),
        "delta": experiment.delta(wildcards.method, int(wildcards.size)),
        "lam": regularisation_of(wildcards, method).text,
        "restarts": experiment.restarts,
        "seed": CONFIG.seed,
    }
    arguments = shlex.join(
        text for key, value in words.items() for text in (f"--{key}", str(value))
    )
    return sys.intern(f"{arguments} {experiment.split(wildcards.method)}")


def cell_fit(wildcards):
    """The file of the fits that a cell's method shares; [] if the method has no fit."""
    label = experiment_of(wildcards).fit_label(wildcards.method)
    if label is None:
        return []
    return paths.FIT(fit=label)


# tune.smk


def search_of(wildcards):
    return experiment_of(wildcards).searches[wildcards.search]


def searched_data(wildcards, suffix):
    """The prepared rows on which a search runs."""
    dataset = wildcards.dataset
    return data_path((search_of(wildcards).instead or {}).get(dataset, dataset), suffix)


def searched_method(wildcards):
    return experiment_of(wildcards).methods[search_of(wildcards).method]


def search_split(wildcards):
    """A search's split; a search with fewer simulations than its method uses only the first ones."""
    search = search_of(wildcards)
    return experiment_of(wildcards).split(search.method, search.simulations)


def lasso_argument(wildcards):
    tune = experiment_of(wildcards).tune
    return f"--lasso {tune.lasso}" if tune.lasso else ""


# aggregate.smk


def cells_configuration(wildcards):
    """The settings on which an experiment's cells and their guarantees depend."""
    return experiment_of(wildcards).to_json(
        *("datasets", "methods", "families", "sweeps", "searches", "lambda_published"),
        *("folds", "divisions", "subsets"),
    )


def lambda_files(experiment):
    """The tuning and search files of an experiment's cells."""
    lambdas = map(experiment.lambda_of, cells_of(experiment))
    return sorted({lam.file for lam in lambdas if lam.file})


def what_was_computed(experiment):
    """results.csv or, for an experiment without cells, the files of its data and analyses."""
    if experiment.sweeps:
        return [paths.CELLS(experiment=experiment.folder)]
    return [
        *(data_path(dataset, "json") for dataset in experiment.datasets),
        *map(experiment.analysis_path, experiment.analyses),
    ]


# figures.smk


def entry_of(wildcards, section):
    """(configuration, kind) of a table, figure or analysis."""
    entry = experiment_of(wildcards).section(section)[wildcards.name]
    return entry, kinds.SECTIONS[section][entry.kind]


def entry_inputs(wildcards, section):
    entry, kind = entry_of(wildcards, section)
    experiment = experiment_of(wildcards)
    inputs = kind.inputs.files(experiment, entry)
    if kind.describes_data:
        named = entry.datasets or experiment.datasets
        if entry.sweep:
            named = dict.fromkeys(cell.dataset for cell in experiment.entry_cells(entry))
        inputs += [data_path(name, "json") for name in named]
    return inputs


def entry_facts(wildcards, section):
    """The digest of the source's facts if an entry shows printed values, otherwise ""."""
    entry, kind = entry_of(wildcards, section)
    shown = kind.shows_printed(entry.options)
    return facts(experiment_of(wildcards)) if shown else ""


def entry_library(wildcards, section, script):
    return of_entry(experiment_of(wildcards), section, wildcards.name, script)


# verdicts.smk

# Keys of an experiment that determine its cells, or how these differ from the source's protocol.
COMPARED_BY = (
    *("source", "datasets", "methods", "families", "searches", "sweeps", "analyses", "tables"),
    *("tune", "lambda_published", "folds", "subsets", "draws"),
)


def check_inputs(wildcards):
    return needs.files_of_checks(experiment_of(wildcards), wildcards.section, CONFIG.experiments)


def of_source(source):
    """A source's listed experiments or, if none is listed, all of them."""
    own = [
        experiment
        for experiment in EXPERIMENTS.values()
        if experiment.source == source and not isinstance(experiment, Reading)
    ]
    return [experiment for experiment in own if experiment.name in LISTED] or own


def by_source():
    """The tables of sources that have a listed experiment with verdicts."""
    listed = [EXPERIMENTS[name] for name in LISTED]
    keys = {e.source for e in listed if e.source is not None and verdict_paths(e)}
    return [paths.BY_SOURCE(source=key) for key in sorted(keys)]


# audit.smk


def own_mechanisms():
    return [name for name in MECHANISMS.added() if name in AUDITS.mechanisms]


def ledger_files():
    """All final files of the audit."""
    return [
        paths.LEDGER(),
        paths.EXACT(),
        paths.REPLAY(),
        paths.SPENDING(),
        paths.AUDITED_CELLS(),
        paths.LEDGER("png"),
        paths.PROFILES(),
        *([paths.HELD()] if AUDITS.settings.strict and own_mechanisms() else []),
        *(paths.ATTACKS(mechanism=mechanism) for mechanism in AUDITS.mechanisms),
    ]


def replayed():
    """The mechanism, first epsilon and settings of each attack, which the replay uses."""
    return [
        [attack.mechanism, attack.epsilon, AUDITS.attack(attack.mechanism, attack.label)]
        for attack in AUDITS.first_attacks()
    ]


def replayed_modules():
    return sorted({m for attack in AUDITS.first_attacks() for m in attack_modules(*attack[:2])})


def attack_modules(mechanism, label):
    """The modules of a mechanism and of any mechanism that it runs."""
    options = AUDITS.attack(mechanism, label)["options"]
    return (
        modules_of(Method(mechanism=mechanism, options=options)) if mechanism in MECHANISMS else []
    )


# report.smk: recommendations.


def recommending():
    listed = [EXPERIMENTS[name] for name in LISTED]
    return [each for each in listed if each.recommends and each.sweeps]


def recommendation_files():
    files = [paths.RECOMMENDATIONS(), paths.ACROSS(), paths.ACROSS("png")]
    return files if recommending() else []


# Data sets of the first picture: two surveys, and simulated rows of 5 and 20 columns.
FIRST_PICTURE = ("randhie", "fair", "separable_5", "separable_20")


def headline_sources():
    """The sources of listed experiments, in the experiments' order."""
    listed = (EXPERIMENTS[name].source for name in LISTED)
    return [
        name
        for name in dict.fromkeys(listed)
        if name and paths.BY_SOURCE(source=name) in by_source()
    ]


def headline_data():
    used = {name for experiment in recommending() for name in experiment.datasets}
    return [name for name in FIRST_PICTURE if name in used]


def headline_files():
    """The first screens' pictures and numbers. A study has other questions."""
    if paths.in_study() or not LISTED:
        return []
    return [*(paths.HEADLINE(picture=p) for p in ("keeps", "holds", "leaks")), paths.HEADLINES()]


def forecast_files():
    return [paths.FORECASTS()] if release_files.of_study() else []


# Snakefile and report.smk


def verdict_paths(experiment):
    """An experiment's published.csv, claims.csv and defects.csv, if it has these sections."""
    return [
        paths.VERDICTS(experiment=experiment.name, section=section)
        for section in ("published", "claims", "defects")
        if experiment.section(section)
    ]


def results_of(name):
    experiment = EXPERIMENTS[name]
    if isinstance(experiment, Reading):
        # A reading has no verdicts of its own; its main experiment has them.
        return [paths.CELLS(experiment=experiment.folder)] if cells_of(experiment) else []
    return [
        *([paths.CELLS(experiment=name)] if experiment.sweeps else []),
        paths.TIMING(experiment=name),
        paths.PROVENANCE(experiment=name),
        paths.CONFIGURATION(experiment=name),
        *(
            experiment.tuned_path(dataset)
            for dataset in experiment.datasets
            if experiment.tune is not None
        ),
        *map(experiment.analysis_path, experiment.analyses),
        *(paths.TABLE(experiment=name, name=table) for table in experiment.tables),
        *(paths.FIGURE(experiment=name, name=figure) for figure in experiment.figures),
        *verdict_paths(experiment),
    ]


# readings.smk


def readings_of(experiment):
    return [
        reading
        for reading in EXPERIMENTS.values()
        if isinstance(reading, Reading) and reading.of == experiment.name
    ]


def readings_path(experiment):
    """readings.csv; [] without readings."""
    return paths.READINGS(experiment=experiment.name) if readings_of(experiment) else []


def readings_inputs(wildcards):
    return inputs_of_readings(experiment_of(wildcards))


@cache
def inputs_of_readings(experiment):
    readings = readings_of(experiment)
    return {
        "results": [
            paths.CELLS(experiment=reading.folder)
            for reading in (experiment, *readings)
            if cells_of(reading)
        ],
        "runs": [
            reading.run_path(cell)
            for reading in (experiment, *readings)
            for cell in sorted(needs.cells(reading.plain()).intersection(cells_of(reading)))
        ],
        "made": needs.files_of_readings(experiment, readings),
        "configurations": [paths.CONFIGURATION(experiment=reading.folder) for reading in readings],
    }
