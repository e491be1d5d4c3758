"""One experiment's cells, and the path of everything that is computed for them."""

import json
import math
from typing import NamedTuple

from study import canonical, kinds


def data_path(dataset, suffix="npz"):
    """Prepared rows (npz), or what was done to them (json)."""
    return f"results/data/{dataset}.{suffix}"


class Cell(NamedTuple):
    """What one job runs; epsilon is infinite for methods without privacy."""

    dataset: str
    method: str
    train_size: int
    epsilon: float


class Experiment:
    """A resolved experiment: read-only, its configuration's keys as attributes."""

    def __init__(self, name, values):
        self.name = name
        self.values = values

    def __getattr__(self, key):
        try:
            return self.values[key]
        except KeyError:
            raise AttributeError(f"experiment {self.name} has no {key!r}") from None

    @classmethod
    def from_json(cls, text):
        values = json.loads(text)
        return cls(values.pop("name"), values)

    def to_json(self, *keys):
        """The named keys (all where none is) as one line, for a job's command line."""
        keys = keys or self.values
        return json.dumps({"name": self.name} | {key: self.values[key] for key in keys})

    def cells(self, sweep=None, datasets=None, methods=None):
        """Cells of one sweep (or a list of them), or of all, each once, in the configuration's order."""
        found = {}
        names = [sweep] if isinstance(sweep, str) else sweep or self.sweeps
        for each in (self.sweeps[name] for name in names):
            for dataset in self.datasets:
                if dataset not in (datasets or self.datasets):
                    continue
                if dataset not in each.get("datasets", self.datasets):
                    continue
                for method in self.methods:
                    if method not in (methods or self.methods):
                        continue
                    if method not in each.get("methods", self.methods):
                        continue
                    private = self.methods[method]["private"]
                    for size in each["train_sizes"]:
                        for epsilon in each["epsilons"] if private else [math.inf]:
                            found[Cell(dataset, method, size, epsilon)] = None
        order = {name: k for k, name in enumerate([*self.datasets, *self.methods])}
        return sorted(found, key=lambda c: (order[c.dataset], order[c.method], c[2:]))

    def entry_cells(self, spec):
        """Cells that a table or figure shows."""
        return self.cells(spec["sweep"], spec.get("datasets"), spec.get("methods"))

    def entry_paths(self, spec, inputs):
        """Data set -> path of what an entry reads ("" -> path for an analysis' result)."""
        if inputs == "analysis":
            return {"": self.analysis_path(spec["analysis"])}
        path = {"data": data_path, "tuning": self.tuned_path}[inputs]
        return {name: path(name) for name in spec.get("datasets", self.datasets)}

    def run_path(self, cell):
        return (
            f"results/{self.name}/runs/{cell.dataset}/{cell.method}/"
            f"n={cell.train_size}/eps={canonical.epsilon(cell.epsilon)}.csv"
        )

    def tuned_path(self, dataset, suffix="csv"):
        """The tuning's errors (csv), or the tuned lambda with its ties (json)."""
        return f"results/{self.name}/tuned/{dataset}.{suffix}"

    def analysis_path(self, name):
        suffix = kinds.ANALYSES[self.analyses[name]["kind"]].suffix
        return f"results/{self.name}/analyses/{name}.{suffix}"

    def fit_label(self, label):
        """The folder of a method's fit: equal for methods that share it; None without a fit."""
        fit = self.methods[label]["fit"]
        if fit is None:
            return None
        options = (
            f"{key}={canonical.number(fit['options'][key])}" for key in sorted(fit["options"])
        )
        lam = self.methods[label]["lambda"]
        lam = lam if isinstance(lam, str) else canonical.epsilon(lam)
        return "-".join([fit["name"], *options, f"lambda={lam}"])

    def fits(self):
        """Fit label -> {name, options, lambda} of all methods that have a fit."""
        return {
            self.fit_label(label): {**method["fit"], "lambda": method["lambda"]}
            for label, method in self.methods.items()
            if method["fit"]
        }

    def fit_path(self, cell):
        label = self.fit_label(cell.method)
        return label and f"results/{self.name}/fits/{cell.dataset}/{label}/n={cell.train_size}.npz"
