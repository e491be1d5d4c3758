"""The kinds of inputs that tables, figures, analyses and checks can have."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from study import paths
from study.configuration.experiment import Experiment


class Inputs(NamedTuple):
    """A kind of input.

    needs: the key by which an entry names its input: sweep, analysis, datasets or None. A check may name a
    table instead of an analysis. An entry without `datasets` uses those of the experiment.

    paths(experiment, entry): name -> path of each file; a single file has the name "".

    frame: the name of the function in `study.jobs.summary` that reads the entry's cells. If None, the
    kind's function gets all paths or, if `needs` is analysis, the analysis's path. choice: whether the kind
    also reads the choice, a .json file beside each path.
    """

    needs: str | None
    paths: Callable
    frame: str | None = None
    choice: bool = False

    def files(self, experiment: Experiment, entry):
        paths = [*self.paths(experiment, entry).values()]
        return [*paths, *(str(Path(path).with_suffix(".json")) for path in paths if self.choice)]


def _runs(experiment: Experiment, entry):
    return {cell: experiment.run_path(cell) for cell in experiment.entry_cells(entry)}


def _results(experiment: Experiment, entry):
    return {"": paths.CELLS(experiment=experiment.folder)}


def _analysis(experiment: Experiment, entry):
    if entry.analysis in experiment.analyses:
        return {"": experiment.analysis_path(entry.analysis)}
    if getattr(entry, "table", None) in experiment.tables:
        return {"": paths.TABLE(experiment=experiment.folder, name=entry.table)}
    return {}


def _data(experiment: Experiment, entry):
    return {name: paths.DATA(dataset=name) for name in entry.datasets or experiment.datasets}


def _tuning(experiment: Experiment, entry):
    wanted = entry.datasets or experiment.datasets
    return {name: experiment.tuned_path(name) for name in experiment.datasets if name in wanted}


def _fits(experiment: Experiment, entry):
    return {cell: experiment.fit_path(cell) for cell in experiment.entry_cells(entry)}


def _searches(experiment: Experiment, entry):
    return {cell: experiment.cell_search_path(cell) for cell in experiment.entry_cells(entry)}


def _trained(experiment: Experiment, entry):
    return experiment.trained_paths(experiment.entry_cells(entry))


def _nothing(experiment: Experiment, entry):
    return {}


# A data frame with one row per cell: coordinates, means and intervals over draws.
CELLS = Inputs("sweep", _runs, "cells_frame")
# A data frame with one row per draw: the cell's coordinates, the columns of run files, and `replicate`.
DRAWS = Inputs("sweep", _runs, "draws_frame")
# A data frame of the sweep's rows in results.csv.
RESULTS = Inputs("sweep", _results, "results_frame")
DATA = Inputs("datasets", _data)
# Data set -> the .csv file of its tuning.
TUNING = Inputs("datasets", _tuning, choice=True)
ANALYSIS = Inputs("analysis", _analysis)
FITS = Inputs("sweep", _fits)
# Cell -> the .csv file of its search.
SEARCHES = Inputs("sweep", _searches, choice=True)
# The files needed to train the sweep's cells: ("data", data set) -> .npz, ("meta", data set) -> .json
# and, if the cell was tuned or searched, ("settings", cell) -> the .json of the choice.
TRAINED = Inputs("sweep", _trained)
NOTHING = Inputs(None, _nothing)
