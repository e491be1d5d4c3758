"""The inputs of tables, figures, analyses and checks."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from study import paths


class Inputs(NamedTuple):
    """One kind of input.

    needs: the key by which an entry names its input: sweep, analysis (for a check, maybe table), datasets
    (by default the experiment's), or None.

    paths(experiment, entry): name -> path of each file; the name of a single file is "".

    frame: the function of `study.jobs.summary` that reads the entry's cells. Without it, the kind's
    function gets the paths, or the only path of an analysis. choice: whether to also read the .json files
    with the jobs' choices.
    """

    needs: str | None
    paths: Callable
    frame: str | None = None
    choice: bool = False

    def files(self, experiment, entry):
        paths = [*self.paths(experiment, entry).values()]
        return [*paths, *(str(Path(path).with_suffix(".json")) for path in paths if self.choice)]


def _runs(experiment, entry):
    return {cell: experiment.run_path(cell) for cell in experiment.entry_cells(entry)}


def _results(experiment, entry):
    return {"": paths.CELLS(experiment=experiment.folder)}


def _analysis(experiment, entry):
    """The file of an analysis or table; {} if this run does not make it."""
    if entry.get("analysis") in experiment.analyses:
        return {"": experiment.analysis_path(entry["analysis"])}
    if entry.get("table") in experiment.tables:
        return {"": paths.TABLE(experiment=experiment.folder, name=entry["table"])}
    return {}


def _data(experiment, entry):
    return {name: paths.DATA(dataset=name) for name in entry.get("datasets", experiment.datasets)}


def _tuning(experiment, entry):
    wanted = entry.get("datasets", experiment.datasets)
    return {name: experiment.tuned_path(name) for name in experiment.datasets if name in wanted}


def _fits(experiment, entry):
    return {cell: experiment.fit_path(cell) for cell in experiment.entry_cells(entry)}


def _searches(experiment, entry):
    return {cell: experiment.cell_search_path(cell) for cell in experiment.entry_cells(entry)}


def _trained(experiment, entry):
    return experiment.trained_paths(experiment.entry_cells(entry))


def _nothing(experiment, entry):
    return {}


# A data frame with a row for each cell: coordinates, and means and intervals over draws.
CELLS = Inputs("sweep", _runs, "cells_frame")
# A data frame with a row for each draw, and the columns of run files.
DRAWS = Inputs("sweep", _runs, "draws_frame")
# A data frame of the sweep's rows of results.csv.
RESULTS = Inputs("sweep", _results, "results_frame")
DATA = Inputs("datasets", _data)
# Data set -> the .csv of its tuning.
TUNING = Inputs("datasets", _tuning, choice=True)
ANALYSIS = Inputs("analysis", _analysis)
FITS = Inputs("sweep", _fits)
# Cell -> the .csv of its search.
SEARCHES = Inputs("sweep", _searches, choice=True)
# Files to train the sweep's cells: ("data", data set) -> .npz, ("meta", data set) -> .json, and
# ("settings", cell) -> the .json of the cell's tuning or search, if any.
TRAINED = Inputs("sweep", _trained)
NOTHING = Inputs(None, _nothing)
