"""A randomly changed configuration file loads, or one sentence says what is wrong.

DP_FAULTS is the number of changes, by default 40.
"""

import copy
import datetime
import json
import os
import pickle
import random
from pathlib import Path

import pytest
from snakemake.utils import update_config

from project import ROOT
from study.configuration import audits, config, kinds, publications, sources, validation
from study.configuration.config import ConfigError
from study.configuration.experiment import Experiment

DEFAULT = "config/config.yaml"
OVERLAYS = ("config/smoke.yaml", "config/real.yaml", "config/full.yaml")
ODD = [
    *(None, True, 0, -1, 3, 2.5, 1e308, 10**40, float("inf"), float("nan"), "", "x", "a b", "é"),
    *(10**400, {"from": 1, "to": 10**12, "step": 1}, {"from": 1, "to": 1e300, "step": 1e-300}),
    *("two\nlines", "1e-3", "../x", "{x}", "{", "nonprivate", "tuned", "wdbc_clip", "0.1"),
    *([], {}, [1], ["x"], [["x"]], [None], {"a": 1}, {1: 2}, {"x": {"y": []}}),
    datetime.date(2008, 12, 8),
]


def place(value, rng):
    """A random value's path. It ends after each step with probability 0.2, so not only at leaves."""
    path = []
    while isinstance(value, (dict, list)) and len(value) and (not path or rng.random() < 0.8):
        path.append(rng.choice(list(value) if isinstance(value, dict) else range(len(value))))
        value = value[path[-1]]
    return path


class Twice(dict):
    """A mapping written with a duplicate key."""

    def items(self):
        results = list(super().items())
        return [*results, results[-1]]


def change(values, rng):
    """The change's description, and the changed values (text if a key is duplicated)."""
    values = copy.deepcopy(values)
    *parents, last = path = place(values, rng)
    here = values
    for part in parents:
        here = here[part]
    done = rng.choice(["value", "value", "gone", "renamed", "doubled"])
    if done == "value":
        here[last] = copy.deepcopy(rng.choice(ODD))
        return f"{path} = {here[last]!r}", values
    if done == "doubled" and isinstance(here, list):
        here.insert(last, here[last])
    elif done == "doubled":
        twice = Twice(here)
        if not parents:
            return f"{path} twice", json.dumps(twice, default=str)
        outer = values
        for part in parents[:-1]:
            outer = outer[part]
        outer[parents[-1]] = twice
        return f"{path} twice", json.dumps(values, default=str)
    elif done == "renamed" and isinstance(here, dict):
        name = rng.choice([f"{last}s", str(last)[:-1], "x", "", 7])
        items = [(name if key == last else key, item) for key, item in here.items()]
        here.clear()
        here.update(items)
    else:
        del here[last]
    return f"{path} {done}", values


class Files:
    """Configuration files in memory, and results cached by the content that determines them."""

    def __init__(self, monkeypatch):
        monkeypatch.chdir(ROOT)
        paths = sorted(Path("config").rglob("*.yaml"))
        self.originals = {str(path): validation.read_yaml(path) for path in paths}
        self.stored = {name: pickle.dumps(values) for name, values in self.originals.items()}
        self.values, self.known = dict(self.stored), {}
        self.really = validation.read_yaml
        for module in (config, sources, publications, audits, validation):
            monkeypatch.setattr(module, "read_yaml", self.read)
        for module, name, key in (
            (config, "experiment", self.experiment_key),
            (
                config,
                "_datasets",
                lambda: self.content("config/datasets.yaml", "config/files.yaml"),
            ),
            (sources, "load", lambda: self.content("config/sources")),
            (audits, "load", lambda changes: (self.content("config/audit"), repr(changes))),
        ):
            monkeypatch.setattr(module, name, self.remember(getattr(module, name), key))

    def read(self, path):
        if str(path) not in self.stored:
            self.stored[str(path)] = self.values[str(path)] = pickle.dumps(self.really(path))
        return pickle.loads(self.values[str(path)])

    def change(self, name, values):
        self.values = self.stored | {name: pickle.dumps(values)}

    def content(self, *starts):
        return tuple(value for path, value in self.values.items() if path.startswith(starts))

    @staticmethod
    def experiment_key(name, value, where, datasets, without=(), runs=True):
        text = repr((value, without, runs))
        return name + text + repr([entry for key, entry in datasets.items() if key in text])

    def remember(self, function, key):
        """Cache a function's results. `key` maps its arguments to the cache key."""

        def call(*arguments, **named):
            known = (function.__name__, key(*arguments, **named))
            if known not in self.known:
                made = function(*arguments, **named)
                made = (made.name, made.values) if isinstance(made, Experiment) else made
                self.known[known] = pickle.dumps(made)
                if function.__name__ == "experiment":
                    ask(Experiment(*made))
            made = pickle.loads(self.known[known])
            return Experiment(*made) if function.__name__ == "experiment" else made

        return call

    def load(self, changed):
        merged = self.read(DEFAULT)
        overlays = [changed] if changed in OVERLAYS else []
        for overlay in overlays:
            update_config(merged, self.read(overlay))
        merged, experiments, datasets = config.load(merged, [*overlays, DEFAULT])
        audits.load(merged.audit)
        publications.check(experiments, sources.load(), datasets)


def ask(experiment):
    experiment.to_json()
    experiment.fits()
    for cell in experiment.cells():
        method = experiment.methods[cell.method]
        experiment.run_path(cell), experiment.fit_path(cell), experiment.split(cell.method)
        experiment.regularisation(method, cell.dataset, cell.train_size, cell.epsilon)
    for section, available in kinds.SECTIONS.items():
        for entry in experiment.section(section).values():
            available[entry.kind].inputs.paths(experiment, entry)


@pytest.mark.slow
def test_single_changes(monkeypatch, tmp_path):
    count = int(os.environ.get("DP_FAULTS", "40"))
    files = Files(monkeypatch)
    names = list(files.originals)
    for name in [DEFAULT, *OVERLAYS]:
        files.load(name)
    refused, faults = 0, []
    for seed in range(count):
        rng = random.Random(seed)
        name = rng.choice(names)
        done, values = change(files.originals[name], rng)
        try:
            if isinstance(values, str):
                (tmp_path / "twice.yaml").write_text(values)
                values = files.really(tmp_path / "twice.yaml")
            files.change(name, values)
            files.load(name)
        except ConfigError as error:
            refused += 1
            if len(str(error).splitlines()) != 1 or ".yaml" not in str(error):
                faults.append(f"{seed}: {name}: {done}: {error}")
        except Exception as error:
            faults.append(f"{seed}: {name}: {done}: {type(error).__name__}: {error}")
    assert not faults, "\n".join(faults[:20])
    assert count / 4 < refused < count
