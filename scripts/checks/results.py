"""Reads an experiment's results for comparisons and claims, and reports missing results."""

import re
from functools import cached_property
from pathlib import Path

from study import paths
from study.configuration.cell import Cell
from study.configuration.experiment import data_path
from study.jobs.files import read_json

LOST = 0.05  # if a larger share of draws failed, the mean over the others decides nothing


class Missing(Exception):
    """This run lacks a result that a comparison or claim needs."""


class Lost(Missing):
    """Too many draws failed."""


class Absent(Missing):
    """It has no row with this value of a key, such as a training size."""

    def __init__(self, key, value):
        self.cause, self.value = f"this run has no {key.replace('_', ' ')}", value
        super().__init__(f"{self.cause} {value} here")


def lost(status):
    """The status if too many draws failed, otherwise ""."""
    failed = sum(int(k) / int(n) for k, n in re.findall(r"(\d+) of (\d+) ", str(status)))
    return str(status) if failed > LOST else ""


class Results:
    """The results of an experiment, read on first use. frame: used instead of results.csv."""

    def __init__(self, experiment, frame=None):
        self.experiment = experiment
        self.predictions = {}  # that readings share, from `checks.prediction`
        if frame is not None:
            self.frame = frame

    @cached_property
    def frame(self):
        return self._csv(paths.CELLS(experiment=self.experiment.folder))

    @cached_property
    def printed(self):
        """The rows that `checks.published.compare` returned in a previous job."""
        main = self.experiment.folder.partition("/")[0]
        by_experiment = read_json(self._present(paths.COMPARED(experiment=main)))
        return by_experiment[self.experiment.name]

    def analysis(self, name):
        """The table of an analysis or, for an .npz file, its arrays."""
        if name not in self.experiment.analyses:
            raise Missing(f"this run has no analysis {name!r}")
        path = self.experiment.analysis_path(name)
        if path.endswith(".csv"):
            return self._csv(path)
        import numpy as np

        with np.load(self._present(path)) as arrays:
            return dict(arrays)

    def draws(self, cell, column):
        """A column of a cell's draws (data sets, folds, restarts), NaN if failed; None if missing."""
        import pandas as pd

        path = Path(self.run_path(cell))
        if not path.exists():
            return None
        frame = pd.read_csv(path)
        if column not in frame:
            return None
        values = frame[column].where(frame["status"] == "ok")
        data_sets = frame["data_set"].nunique() if "data_set" in frame else 1
        return values.to_numpy(dtype=float).reshape(data_sets, frame["fold"].nunique(), -1)

    def run_path(self, cell):
        return self.experiment.run_path(cell)

    def other(self, name):
        return self._csv(paths.CELLS(experiment=name))

    def named(self, analysis, table):
        if analysis:
            return self.analysis(analysis)
        if table not in self.experiment.tables:
            raise Missing(f"this run has no table {table!r}")
        return self._csv(paths.TABLE(experiment=self.experiment.folder, name=table))

    def tuned(self, dataset):
        """({lambda, ties, ...}, the table of errors per lambda) of a data set."""
        path = self._present(self.experiment.tuned_path(dataset, "json"))
        return read_json(path), self._csv(self.experiment.tuned_path(dataset, "csv"))

    def data(self, dataset):
        return read_json(self._present(data_path(dataset, "json")))

    def test_rows(self, cell):
        """The number of a run's test rows: over all folds, or of the official test set; None if unknown.

        Further draws do not increase it, because draws that hardly differ count the same rows.
        """
        if self.experiment.subsets == "whole":
            return cell.train_size
        try:
            data = self.data(cell.dataset)
        except Missing:
            return None
        return data["rows" if self.experiment.folds else "test_rows"] or None

    def _csv(self, path):
        import pandas as pd  # takes 0.6 s, and configuration checks import this module

        return pd.read_csv(self._present(path))

    @staticmethod
    def _present(path):
        if not Path(path).exists():
            raise Missing(f"{path} was not made")
        return path

    def cells(self, *, sweep=None, datasets=None, methods=None, train_size=None, epsilon=None):
        """The rows of `frame` that match all arguments; None matches every row.

        train_size, epsilon: a number, a list of numbers, or the "smallest" or "largest" finite number on
        each data set. Rows of non-private methods match any epsilon.
        """
        frame = self.frame
        if sweep is not None:
            for name in [sweep] if isinstance(sweep, str) else sweep:
                if name not in self.experiment.sweeps:
                    raise Missing(f"this run has no sweep {name!r}")
            wanted = {tuple(cell) for cell in self.experiment.cells(sweep)}
            columns = ("dataset", "method", "train_size", "epsilon")
            keys = zip(*(frame[column] for column in columns), strict=True)
            frame = frame.loc[[key in wanted for key in keys]]
        for column, values in (("dataset", datasets), ("method", methods)):
            if values is not None:
                values = [values] if isinstance(values, str) else values
                frame = frame[frame[column].isin(values)]
        private = frame["epsilon"] != float("inf")
        frame = frame[_at(frame["train_size"], train_size, frame["dataset"])]
        keep = _at(frame["epsilon"].where(private), epsilon, frame["dataset"])
        return frame[keep | ~private.reindex(frame.index)]


class Read(Results):
    """Results of a reading: its own cells, and those that it shares with the main experiment."""

    def __init__(self, reading, main):
        import pandas as pd

        self.own = {*reading.own}
        self.main, self.reading = main, reading
        frames = []
        if self.own:
            frames.append(Results(reading).frame)
        shared = {*reading.shared}
        keys = [Cell(*key) for key in main.frame[[*Cell._fields]].itertuples(index=False)]
        frames.append(main.frame.loc[[key in shared for key in keys]])
        super().__init__(reading.plain(), pd.concat(frames, ignore_index=True))
        self.predictions = main.predictions

    def run_path(self, cell):
        return (self.reading if cell in self.own else self.main.experiment).run_path(cell)


def _at(values, wanted, groups):
    if wanted is None:
        return values.index == values.index
    if wanted in ("smallest", "largest"):
        return values == values.groupby(groups).transform("min" if wanted == "smallest" else "max")
    wanted = wanted if isinstance(wanted, list) else [wanted]
    return values.map(lambda value: any(abs(value - w) <= 1e-9 * abs(w) for w in wanted))
