"""Stamps of recorded lines: digests of settings, cells' code, verdicts' code and data.

A line is stale if one of them has changed.
"""

import hashlib
import json
from functools import cached_property
from typing import NamedTuple

from checks import grids
from checks.by_source import STAMPS
from dp.mechanisms import MECHANISMS
from study import lambdas
from study.configuration import inputs, kinds, needs, options
from study.configuration.code import modules_of, modules_of_checks, of_entry
from study.data import origins
from study.dependencies import digest

SETTINGS = ("repetitions", "divisions", "subsets", "labels", "draws", "restarts", "tune")
SCRIPTS = {"analysis": ("analyses", "jobs/analyse.py"), "table": ("tables", "jobs/table.py")}


class About(NamedTuple):
    """The dependencies of a recorded line.

    entries: the line's comparison or checks, which may name an analysis or a table.
    judges: the scripts that decide the verdict.
    modules: modules that these scripts load by name.
    """

    methods: tuple
    datasets: tuple
    entries: tuple
    modules: tuple = ()
    judges: tuple = ()


class Stamper:
    """Computes the stamps of one experiment's lines under one configuration.

    The stamps of values, claims and cells also cover the experiment's readings.
    """

    def __init__(self, experiments, name, datasets, files, seed):
        self.experiment = experiments[name]
        self.experiments, self.datasets, self.files, self.seed = experiments, datasets, files, seed
        self._known = {}

    @cached_property
    def all(self):
        name = self.experiment.name
        return [experiment for experiment in self.experiments.values() if experiment.axis() == name]

    def stamps(self, row):
        """{settings, code, judge, data} of a recorded row; all "" if it names a removed item."""
        # A value's id is `<comparison> <place>`. Its stamps do not depend on the place.
        key = row["section"], row["id"].partition(" ")[0], row["method"], row["dataset"]
        if key not in self._known:
            try:
                self._known[key] = self._stamps(*key)
            except KeyError:
                self._known[key] = dict.fromkeys(STAMPS, "")
        return self._known[key]

    def _stamps(self, section, entry, method, dataset):
        about = self._about(section, entry, method, dataset)
        parts = self.all if section in ("published", "claims", "cells") else self.all[:1]
        chosen = [
            (experiment, [m for m in about.methods if m in experiment.methods])
            for experiment in parts
        ]
        chosen += [(experiment, experiment.methods) for experiment in self._others(about.entries)]
        return {
            "settings": _digest(
                [
                    *(self.seed, about.entries),
                    *(_settings(experiment, own) for experiment, own in chosen),
                    *(_cells(experiment, about.entries) for experiment in parts),
                ]
            ),
            "code": _digest([_code(experiment, own, about.entries) for experiment, own in chosen]),
            "judge": _digest(
                [
                    *(digest(script, *about.modules) for script in about.judges),
                    *(digest(script) for script in ("jobs/aggregate.py", "jobs/guarantees.py")),
                ]
            ),
            "data": self._data({*about.datasets, *(n for e in parts[1:] for n in e.datasets)}),
        }

    def _about(self, section, entry, method, dataset):
        values = self.experiment.values
        if section in ("claims", "defects"):
            checks = values[section][entry].get("checks", ())
            cells = needs.of_checks(self.experiment, checks)
            return About(
                tuple(grids.methods_of(self.experiment, checks)),
                tuple(sorted({cell.dataset for cell in cells})) or tuple(self.experiment.datasets),
                tuple(checks),
                tuple(modules_of_checks(self.experiment, section)),
                ("jobs/compare.py", "jobs/readings.py", "jobs/check.py"),
            )
        methods = (method,) if method in self.experiment.methods else ()
        datasets = (dataset,) if dataset else tuple(self.experiment.datasets)
        if section == "published":
            spec = values["published"][entry]
            if not methods:
                methods = tuple(self.experiment.methods)
            modules = modules_of_checks(self.experiment, "claims")
            judges = ("jobs/compare.py", "jobs/readings.py", "jobs/check.py")
            return About(methods, datasets, (spec,), tuple(modules), judges)
        return About(
            methods, datasets, (), judges=() if section == "cells" else ("jobs/recommend.py",)
        )

    def _others(self, entries):
        named = [
            name
            for entry in entries
            if "kind" in entry
            for name in options.named(
                kinds.CHECKS[entry["kind"]].options, entry["options"], options.Other
            )
        ]
        return [self.experiments[name] for name in dict.fromkeys(named)]

    def _data(self, names):
        facts = []
        for name in sorted(names):
            entry = self.datasets[name]
            places = origins.source_files(entry["source"]).values()
            own = origins.own_files(entry["source"], self.files).values()
            pinned = [self.files.get(p.rpartition("/")[2], {}).get("sha256") for p in places]
            facts.append([name, entry, pinned, origins.content(own)])
        return _digest([self.seed, digest("jobs/prepare.py"), facts])


def _settings(experiment, methods):
    own = {name: experiment.methods[name] for name in methods}
    searches = [experiment.searches[m["search"]] for m in own.values() if m.get("search")]
    lam = any(m["lambda"] in lambdas.WORDS for m in own.values())
    return [
        experiment.name,
        {key: experiment.values.get(key) for key in (*SETTINGS, experiment.repetitions)},
        own,
        searches,
        experiment.values.get("lambda_published") if lam else None,
    ]


def _cells(experiment, checks):
    checks = [entry for entry in checks if "kind" in entry]
    return sorted(needs.of_checks(experiment.plain(), checks), key=repr)


def _code(experiment, methods, entries):
    digests = set()
    for label in methods:
        method = experiment.methods[label]
        digests.add(digest("jobs/run.py", *modules_of(method)))
        digests |= {digest("jobs/fit.py")} if experiment.fit_label(label) else set()
        digests |= {digest("jobs/tune.py")} if method["lambda"] == "tuned" else set()
        if method.get("search"):
            digests.add(digest("jobs/search.py", *modules_of(method)))
    for entry in entries:
        for key, (section, script) in SCRIPTS.items():
            named = entry.get(key)
            if named not in experiment.values[section]:
                continue
            digests.add(of_entry(experiment, section, named, script))
            of = experiment.values[section][named].get("analysis")
            if of in experiment.analyses:
                digests.add(of_entry(experiment, "analyses", of, "jobs/analyse.py"))
        if "tune" in experiment.values and (entry.get("table") or _reads_tuning(entry)):
            digests.add(digest("jobs/tune.py"))
        mechanism = entry.get("options", {}).get("mechanism")
        if mechanism in MECHANISMS:
            digests.add(digest("jobs/run.py", MECHANISMS.module(mechanism)))
    return sorted(digests)


def _reads_tuning(entry):
    return "kind" in entry and kinds.CHECKS[entry["kind"]].inputs is inputs.TUNING


def _digest(value):
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
