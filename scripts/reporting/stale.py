"""Digests of the settings, data, code and judge of a record, and which of them have changed since.

A record is current or stale as a whole.
"""

import hashlib
import json
from functools import cache

from reporting import record
from reporting.plan import merged
from study import facts
from study.configuration import kinds, needs, options, sources
from study.configuration.code import mechanism_modules, modules_of_checks, of_entry
from study.configuration.config import ConfigError, load
from study.data import origins
from study.dependencies import digest

# Keys that determine no cell and no verdict. Each reading is an experiment of its own.
UNREAD = ("title", "figures", "readings", "together")


@cache
def changed():
    """Stale record -> which of `record.WHY` have changed; all, if its configuration is unreadable."""
    stale = {}
    for name in record.names():
        run = record.run(name)
        try:
            now = digests(run["experiments"], *loaded(run["configfile"], run["experiments"]))
        except (ConfigError, KeyError):  # KeyError: an experiment has been removed
            now = {}
        if what := [key for key in record.WHY if run["digests"][key] != now.get(key)]:
            stale[name] = what
    return stale


def loaded(configfile, names):
    """Configuration, experiments and data sets of a record, which has run.

    configfile: paths of the overlays, separated by spaces.
    """
    known = {*names} & sources.experiment_files().keys()
    return load(*merged(configfile.split()), only=sources.concerned(known), runs=False)


def variants(names, experiments):
    """The experiments and their readings."""
    return [experiment for experiment in experiments.values() if experiment.axis() in names]


def digests(names, config, experiments, datasets):
    """{settings, data, code, judge} of a record of these experiments.

    code: of the jobs that make cells, so equal cells can confirm it. judge: of the jobs that make verdicts.
    """
    chosen = variants(names, experiments)
    chosen += [experiments[other] for other in sorted(_compared({*names}, experiments))]
    keys = sorted({e.source for e in chosen if e.source is not None})
    return {
        "settings": _digest([config.seed, [_settings(e) for e in chosen], [*map(_printed, keys)]]),
        "data": _digest(_data(chosen, config.files, datasets)),
        "code": _digest(sorted({each for e in chosen for each in _code(e)})),
        "judge": _digest(sorted({each for e in chosen for each in _judge(e)})),
    }


def _compared(names, experiments):
    """Other experiments with which checks of these compare."""
    return {
        other
        for name in names
        for section in ("claims", "defects")
        for check in needs.present_checks(experiments[name], section)
        for other in options.named(kinds.CHECKS[check.kind].options, check.options, options.Other)
    } - names


def _settings(experiment):
    values = {key: value for key, value in experiment.settings().items() if key not in UNREAD}
    return [experiment.folder, values]


def _printed(key):
    """What a source prints, without the words of its claims and defects."""
    printed = facts.read(key).facts()
    printed = {k: printed[k] for k in ("settings", "tables")} | printed  # as older records have it
    return json.dumps([(k, v) for k, v in printed.items() if k not in ("claims", "defects")])


def _data(chosen, files, datasets):
    names = {name for experiment in chosen for name in experiment.all_datasets()}
    names |= {
        name
        for experiment in chosen
        for search in experiment.searches.values()
        for name in (search.instead or {}).values()
    }
    for name in sorted(names):
        entry = datasets[name]
        named = [place.rpartition("/")[2] for place in origins.source_files(entry.source).values()]
        pinned = [files[file].sha256 if file in files else None for file in named]
        own = origins.own_files(entry.source, files).values()
        yield [name, entry.plain(), pinned, origins.content(own)]


def _code(experiment):
    jobs = {
        "prepare": True,
        "run": experiment.methods,
        "fit": any(map(experiment.fit_label, experiment.methods)),
        "tune": experiment.tune is not None,
        "search": experiment.searches,
    }
    modules = mechanism_modules(experiment)
    return {digest(f"jobs/{name}.py", *modules) for name, used in jobs.items() if used}


def _judge(experiment):
    modules = {
        module
        for section in ("claims", "defects")
        for module in modules_of_checks(experiment, section)
    }
    scripts = ["aggregate", "guarantees", "compare", "readings", "check"]
    scripts += ["recommend"] * bool(experiment.recommends)
    judges = {digest(f"jobs/{name}.py", *sorted(modules)) for name in scripts}
    return judges | {of_entry(experiment, *entry) for entry in _read_by_verdicts(experiment)}


def _read_by_verdicts(experiment):
    """(section, name, script) of each table and analysis that verdicts read."""
    specs = [*experiment.published.values()]
    for section in ("claims", "defects"):
        specs += needs.present_checks(experiment, section)
    tables = {spec.table for spec in specs} & experiment.tables.keys()
    specs += [experiment.tables[name] for name in tables]
    analyses = {spec.analysis for spec in specs} & experiment.analyses.keys()
    return [
        *(("tables", name, "jobs/table.py") for name in tables),
        *(("analyses", name, "jobs/analyse.py") for name in analyses),
    ]


def _digest(value):
    text = json.dumps([*value], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
