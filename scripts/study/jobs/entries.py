"""A table, figure or analysis of an experiment, as its job sees it."""

import importlib

from study.configuration import kinds
from study.configuration.experiment import Experiment


class Entry:
    """One entry of a section of an experiment's configuration."""

    def __init__(self, section, arguments):
        self.experiment = arguments.experiment
        self.spec = self.experiment.values[section][arguments.name]
        self.kind = kinds.SECTIONS[section][self.spec["kind"]]

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--experiment", type=Experiment.from_json, required=True, help="JSON")
        parser.add_argument("--name", required=True, help="the entry's name")

    def function(self):
        """The function that makes this kind of entry, from its own module."""
        return getattr(importlib.import_module(self.kind.module), self.kind.function)

    def inputs(self):
        """What that function is given: see `study.configuration.kinds.Kind`."""
        if self.kind.inputs == "cells":
            from study.jobs.summary import (
                cells_frame,  # pandas and scipy: only where cells are read
            )

            return cells_frame(self.experiment, self.experiment.entry_cells(self.spec))
        if self.kind.inputs == "draws":
            from study.jobs.summary import draws_frame

            return draws_frame(self.experiment, self.experiment.entry_cells(self.spec))
        if self.kind.inputs == "results":
            from study.jobs.summary import results_frame

            return results_frame(self.experiment, self.experiment.entry_cells(self.spec))
        paths = self.experiment.entry_paths(self.spec, self.kind.inputs)
        return paths[""] if self.kind.inputs == "analysis" else paths
