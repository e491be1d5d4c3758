"""Find an experiment's cells, and the paths of files that are computed for them."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import TypeAdapter

from dp_privacy.accounting import rule_delta
from study import canonical, lambdas, paths
from study.configuration.cell import Cell
from study.configuration.experiment_keys import (
    Comparison,
    Entry,
    ExperimentFile,
    Family,
    Lambda,
    LambdaTable,
    LeftOpen,
    Method,
    Search,
    Statement,
    Sweep,
    Tune,
)
from study.configuration.section import Section
from study.jobs.files import read_json


def data_path(dataset, suffix="npz"):
    """The file of prepared rows (npz) or of their preparation's record (json)."""
    return paths.DATA(suffix, dataset=dataset)


def data_name(dataset):
    """A data set's title if it is prepared and has one, otherwise its key with spaces for underscores."""
    path = Path(data_path(dataset, "json"))
    title = read_json(path).get("title") if path.exists() else None
    return title or dataset.replace("_", " ")


# Keys on which every table, figure and analysis may depend.
SHARED = (
    *("source", "datasets", "methods", "families", "folds", "simulations", "restarts"),
    *("divisions", "subsets", "labels", "draws", "searches", "lambda_published", "tune"),
)
# Sections of which an entry depends only on the parts that it names.
NAMED = {"sweep": "sweeps", "analysis": "analyses", "published": "published"}


class Part(dict):
    """The values of those `keys` of an experiment that a job depends on.

    Without an entry here, a changed key does not rerun the job. So any other key is refused, rather than
    read as missing.
    """

    def __init__(self, values, keys):
        super().__init__(values)
        self.keys_read = frozenset(keys)

    def _check(self, key):
        if key not in self.keys_read:
            raise LookupError(
                f"this job reads the experiment's key {key!r} but does not depend on it: add the key to "
                f"those that its rule passes (for tables, figures and analyses, `SHARED` in {__name__})"
            )

    def __getitem__(self, key):
        self._check(key)
        return super().__getitem__(key)

    def __contains__(self, key):
        self._check(key)
        return super().__contains__(key)

    def get(self, key, default=None):
        self._check(key)
        return super().get(key, default)


FIELDS = {(field.alias or name): name for name, field in ExperimentFile.model_fields.items()}
KEYS = {name: key for key, name in FIELDS.items()}


@cache
def _type(key):
    field = ExperimentFile.model_fields[FIELDS[key]]
    kind = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    return TypeAdapter(kind)


def typed(values):
    """Values of an experiment's keys, as JSON has them, as objects of their classes."""
    return {key: value and _type(key).validate_python(value) for key, value in values.items()}


def _plain(value):
    if isinstance(value, Section):
        return value.plain()
    raise TypeError(f"{type(value).__name__} is not part of a configuration")


class Experiment:
    """A resolved experiment. The keys of its configuration are attributes; None if not given.

    values: key -> value, as JSON has it, or as an object of `study.configuration.experiment_keys`. folder:
    the results' folder, below the root of all results; by default, `name`.
    """

    title: str
    source: str | None
    datasets: list[str]
    folds: int | None
    divisions: int | None
    simulations: int | None
    subsets: str | None
    labels: str | None
    draws: str | None
    restarts: int
    lambda_: Lambda | None
    lambda_published: float | LambdaTable | None
    searches: dict[str, Search]
    tune: Tune | None
    recommends: bool | list[str] | None
    methods: dict[str, Method]
    sweeps: dict[str, Sweep]
    analyses: dict[str, Entry]
    tables: dict[str, Entry]
    figures: dict[str, Entry]
    published: dict[str, Comparison]
    readings: dict[str, LeftOpen]
    together: list[list[str]]
    claims: dict[str, Statement]
    defects: dict[str, Statement]
    families: dict[str, Family] | None
    smaller: list[str] | None

    def __init__(self, name: str, values: dict[str, Any], folder: str | None = None):
        self.name = name
        self.values = values if isinstance(values, Part) else typed(values)
        self.folder = folder or name

    def __getattr__(self, name):
        if name not in KEYS:
            raise AttributeError(f"an experiment has no {name!r}")
        return self.values.get(KEYS[name])

    def __setattr__(self, name, value):
        if name in KEYS:
            self.values |= typed({KEYS[name]: value})
        else:
            super().__setattr__(name, value)

    def section(self, name: str) -> dict[str, Any]:
        """The entries of a section, such as "tables" or "claims"."""
        return self.values[name]

    @staticmethod
    def from_json(text):
        """The experiment or reading of which `to_json` returned the text."""
        values = json.loads(text)
        name, folder = values.pop("name"), values.pop("folder", None)
        reading, keys = values.pop("reading", None), values.pop("keys", None)
        values = values if keys is None else Part(typed(values), keys)
        if reading is None:
            return Experiment(name, values, folder)
        return Reading(name, values, folder, **reading)

    def settings(self) -> dict[str, Any]:
        """All keys and values, as JSON has them."""
        return json.loads(json.dumps(self.values, default=_plain))

    def to_json(self, *keys):
        """One line of JSON with the values of those `keys` that exist or, without `keys`, with all values.

        An experiment that is read from JSON with `keys` has no other keys (see `Part`).
        """
        part = {key: self.values[key] for key in keys if key in self.values}
        part = {"keys": keys} | part if keys else self.values
        return json.dumps(self.named() | self.about() | part, default=_plain)

    def about(self, cells=True):
        """What a reading's JSON has besides an experiment's. cells: whether to list its cells."""
        return {}

    def entry_json(self, section, name):
        """The configuration that a table, figure or analysis depends on, as JSON on one line."""
        entry = self.values[section][name]
        part = {key: self.values[key] for key in SHARED if key in self.values}
        part |= {other: {} for other in NAMED.values()}
        part[section] = {name: entry}
        for key, other in NAMED.items():
            named = getattr(entry, key, None) or entry.options.get(key) or []
            for label in [named] if isinstance(named, str) else named:
                part[other][label] = self.values[other][label]
        keys = {"keys": list(part | dict.fromkeys(SHARED))}
        return json.dumps(self.named() | self.about(cells=False) | keys | part, default=_plain)

    def named(self):
        return {"name": self.name} | ({"folder": self.folder} if self.folder != self.name else {})

    def cells(self, sweep=None, datasets=None, methods=None):
        """The distinct cells of some sweeps, in configured order.

        sweep: one name, several, or None for all.
        """
        cells = {}
        names = [sweep] if isinstance(sweep, str) else sweep or self.sweeps
        for spec in (self.sweeps[name] for name in names):
            for dataset in self.datasets:
                if dataset not in (datasets or self.datasets):
                    continue
                if dataset not in (spec.datasets or self.datasets):
                    continue
                for method in self.methods:
                    if method not in (methods or self.methods):
                        continue
                    if method not in (spec.methods or self.methods):
                        continue
                    private = self.methods[method].private
                    for size in spec.train_sizes:
                        for epsilon in spec.epsilons if private else [math.inf]:
                            cells[Cell(dataset, method, size, epsilon)] = None
        order = {name: k for k, name in enumerate([*self.datasets, *self.methods])}
        return sorted(cells, key=lambda c: (order[c.dataset], order[c.method], c[2:]))

    def axis(self):
        """The experiment whose draws and searches this one uses: itself or, for a reading, the main one."""
        return self.name

    def plain(self):
        """Itself or, for a reading, an experiment that also has the cells that the main one runs."""
        return self

    def repeated(self, count):
        return "divisions" if count == self.divisions else "data sets"

    def trained_rows(self, cell):
        """The smallest number of training rows over a cell's folds."""
        if self.subsets != "whole":
            return cell.train_size
        return cell.train_size - -(-cell.train_size // self.folds)

    def varied(self):
        """The options that families of methods vary, perhaps including `lambda`."""
        families = (self.families or {}).values()
        return list(dict.fromkeys(name for family in families for name in family.vary))

    def all_datasets(self):
        """The names of all data sets, including those that only figures or analyses use."""
        sections = (self.tables, self.figures, self.analyses)
        entries = [entry for section in sections for entry in section.values()]
        return {name for entry in (self, *entries) for name in entry.datasets or ()}

    def recommended_cells(self):
        sweeps = self.recommends
        return self.cells(sweeps if isinstance(sweeps, list) else None) if sweeps else []

    def entry_cells(self, spec):
        """The cells that a table or figure shows. A reading's cells include the main experiment's."""
        return self.plain().cells(spec.sweep, spec.datasets, spec.methods)

    def trained_paths(self, cells):
        """The files needed to train these cells: see `inputs.TRAINED`."""
        files = {}
        for cell in cells:
            files["data", cell.dataset] = data_path(cell.dataset)
            files["meta", cell.dataset] = data_path(cell.dataset, "json")
            lam = self.lambda_of(cell)
            if lam.file:
                files["settings", cell] = lam.file
        return files

    def run_path(self, cell):
        return self._at(paths.RUN, cell)

    def run_log(self, cell):
        return self._at(paths.RUN.log, cell)

    def _at(self, place, cell):
        dataset, method, size, epsilon = cell
        where = {"dataset": dataset, "method": method, "size": size}
        return place(experiment=self.folder, epsilon=canonical.epsilon(epsilon), **where)

    def tuned_path(self, dataset, suffix="csv"):
        """The file with all lambdas' errors (csv), or with the tuned lambda and its ties (json)."""
        return paths.TUNED(suffix, experiment=self._tuned_in(), dataset=dataset)

    def _tuned_in(self):
        return self.folder

    def _searched_in(self):
        return self.folder

    def delta(self, label, size):
        delta = self.methods[label].delta
        return {"rule": rule_delta(size), "squared": size**-2.0}.get(delta, delta)

    def regularisation(self, settings, dataset, size, epsilon=math.inf):
        """How a method or fit gets lambda at a training size, as an object of `study.lambdas`."""
        lam = settings.lambda_
        if lam == "rule":
            return lambdas.ByRule()
        if lam == "selected":
            return lambdas.Selected()
        if lam == "tuned":
            return lambdas.Chosen(self.tuned_path(dataset, "json"))
        if lam == "searched":
            return lambdas.Chosen(self.search_path(settings.search, dataset, size, epsilon))
        if lam == "published":
            table = self.lambda_published
            if size not in table.train_sizes:
                raise ValueError(
                    f"lambda is 'published' but lambda_published has none for {size} rows"
                )
            lam = table.lambdas[table.train_sizes.index(size)]
        return lambdas.Stated(lam)

    def lambda_of(self, cell):
        dataset, method, size, epsilon = cell
        return self.regularisation(self.methods[method], dataset, size, epsilon)

    def search_path(self, name, dataset, size, epsilon=math.inf, suffix="json"):
        """The file with a search's choice (json), or with all candidates' errors (csv)."""
        private = self.methods[self.searches[name].method].private
        epsilon = canonical.epsilon(epsilon if private else math.inf)
        where = {"search": name, "dataset": dataset, "size": size, "epsilon": epsilon}
        return paths.SEARCH(suffix, experiment=self._searched_in(), **where)

    def cell_search_path(self, cell, suffix="csv"):
        search = self.methods[cell.method].search
        return self.search_path(search, cell.dataset, cell.train_size, cell.epsilon, suffix)

    @property
    def repetitions(self):
        return "folds" if self.folds else "simulations"

    def split(self, method=None, first=None):
        """A job's arguments: how to divide rows, how labels enter the loss, and whose draws to use.

        first: the maximum number of simulations.
        """
        if self.folds:
            words = [f"--folds {self.folds}"]
        else:
            own = self.methods[method].simulations if method in self.methods else None
            count = own or self.simulations
            words = [f"--simulations {min(count, first or count)}"]
        if self.divisions:
            words.append(f"--divisions {self.divisions}")
        words += ["--whole"] * (self.subsets == "whole")
        zero = {"zero_one": -1, "one_zero": 1}.get(self.labels)
        words += [f"--zero={zero}"] if zero else []
        draws = self.draws or "own"
        words += [f"--{draws}"] * (draws != "own")
        return " ".join(words)

    def analysis_path(self, name):
        return paths.ANALYSIS(self.analyses[name].suffix, experiment=self.folder, name=name)

    def fit_label(self, label):
        """The name of a method's non-private fit, which other methods may share; None without a fit."""
        method = self.methods[label]
        fit = method.fit
        if fit is None:
            return None
        options = (f"{key}={canonical.number(fit.options[key])}" for key in sorted(fit.options))
        lam = method.search if method.lambda_ == "searched" else method.lambda_
        lam = lam if isinstance(lam, str) else canonical.epsilon(lam)
        return "-".join([fit.name, *options, f"lambda={lam}"])

    def fits(self):
        """Label of a fit -> a method that has it."""
        return {
            self.fit_label(label): method for label, method in self.methods.items() if method.fit
        }

    def fit_path(self, cell):
        label = self.fit_label(cell.method)
        where = {"dataset": cell.dataset, "fit": label, "size": cell.train_size}
        return label and paths.FIT(experiment=self.folder, **where)


class Reading(Experiment):
    """An experiment under another interpretation of what its source leaves open.

    It has the draws and searches of its main experiment, which also runs all cells that do not differ.

    of: the main experiment's name. label, left_open: the interpretation, and what it is about, in words.
    tunes: whether it tunes lambda otherwise. own: the cells that it runs. shared: the other cells that its
    verdicts need.
    """

    def __init__(self, name, values, folder, *, of, label, left_open, tunes, own, shared):
        super().__init__(name, values, folder)
        self.of, self.label, self.left_open, self.tunes = of, label, left_open, tunes
        self.own, self.shared = ([Cell(*cell) for cell in cells] for cells in (own, shared))

    def about(self, cells=True):
        known = {key: getattr(self, key) for key in ("of", "label", "left_open", "tunes")}
        cells = (self.own, self.shared) if cells else ([], [])
        return {"reading": known | dict(zip(("own", "shared"), cells, strict=True))}

    def cells(self, sweep=None, datasets=None, methods=None):
        """Those of `own` that are cells of these sweeps, data sets and methods."""
        own = {*self.own}
        return [cell for cell in super().cells(sweep, datasets, methods) if cell in own]

    def axis(self):
        return self.of

    def plain(self):
        return Experiment(self.name, self.values, self.folder)

    def split(self, method=None, first=None):
        return f"{super().split(method, first)} --experiment {self.of}"

    def _tuned_in(self):
        return self.folder if self.tunes else self.of

    def _searched_in(self):
        return self.of
