"""Draws one figure of an experiment."""

from plots import style
from study.jobs import script
from study.jobs.entries import Entry


def main():
    parser = script.parser(__doc__)
    Entry.add_arguments(parser)
    parser.add_argument("--out", nargs="+", required=True, help=".png, .pdf")
    arguments = parser.parse_args()

    entry = Entry("figures", arguments)
    figure = entry.kind.function(entry.experiment, entry.spec, entry.inputs())
    style.save(figure, *arguments.out)
