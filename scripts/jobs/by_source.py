"""Writes what a published source says, with verdicts and numbers, and its tables in their own shape."""

from pathlib import Path

from checks import by_source
from reporting import shape
from study import facts
from study.jobs import script
from study.jobs.files import atomic, read_csv, write_csv


def main():
    parser = script.parser(__doc__)
    parser.add_argument("--source", required=True, help="its key")
    parser.add_argument("--verdicts", nargs="+", required=True, help=".csv, <experiment>/<section>")
    parser.add_argument("--out", required=True, help=".csv")
    parser.add_argument("--out-tables", required=True, help=".md")
    arguments = parser.parse_args()

    decided = {}
    for path in map(Path, arguments.verdicts):
        decided.setdefault(path.parent.name, {})[path.stem] = read_csv(path)
    rows = [*by_source.rows(facts.read(arguments.source), decided)]
    write_csv(arguments.out, by_source.COLUMNS, (row.values() for row in rows))
    with atomic(arguments.out_tables) as handle:
        handle.write(shape.document(arguments.source, rows))
