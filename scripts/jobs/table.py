"""Writes one table of an experiment."""

from study.jobs import script
from study.jobs.entries import Entry
from study.jobs.files import write_csv


def main():
    parser = script.parser(__doc__)
    Entry.add_arguments(parser)
    parser.add_argument("--out", required=True, help=".csv")
    arguments = parser.parse_args()

    entry = Entry("tables", arguments)
    columns, rows = entry.kind.function(entry.experiment, entry.spec, entry.inputs())
    write_csv(arguments.out, columns, rows)
