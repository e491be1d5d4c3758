"""Runs one analysis of an experiment."""

from study.jobs import script
from study.jobs.entries import Entry


def main():
    parser = script.parser(__doc__, seed=True)
    Entry.add_arguments(parser)
    parser.add_argument("--out", required=True, help=".csv or .npz")
    arguments = parser.parse_args()

    entry = Entry("analyses", arguments)
    entry.kind.function(entry.experiment, entry.spec, entry.inputs(), arguments.seed, arguments.out)
