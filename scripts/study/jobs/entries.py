"""The table, figure or analysis that a job makes."""

from study.configuration import kinds
from study.configuration.experiment import Experiment


class Entry:
    def __init__(self, section, arguments):
        self.experiment = arguments.experiment
        self.spec = self.experiment.section(section)[arguments.name]
        self.kind = kinds.SECTIONS[section][self.spec.kind]

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--experiment", type=Experiment.from_json, required=True, help="JSON")
        parser.add_argument("--name", required=True, help="the entry's name")

    def inputs(self):
        """The `inputs` that the kind's function gets (see `study.configuration.inputs`)."""
        made_of = self.kind.inputs
        if made_of.frame:
            from study.jobs import summary  # imports pandas and scipy, which few entries need

            read = getattr(summary, made_of.frame)
            return read(self.experiment, self.experiment.entry_cells(self.spec))
        paths = made_of.paths(self.experiment, self.spec)
        return paths[""] if made_of.needs == "analysis" else paths
