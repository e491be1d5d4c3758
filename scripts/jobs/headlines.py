"""Draws the three pictures of the first screens, and writes the numbers in their sentences."""

from pathlib import Path

from plots import headlines as pictures
from plots import style
from reporting import headlines
from study import paths
from study.configuration.experiment import data_name
from study.jobs import script
from study.jobs.files import read_csv, write_json


def main():
    parser = script.parser(__doc__)
    parser.add_argument("--sources", nargs="*", default=[], help="keys of sources with verdicts")
    parser.add_argument("--shown", nargs="*", default=[], help="data sets of the first picture")
    parser.add_argument("--out-keeps", required=True, help=".png")
    parser.add_argument("--out-holds", required=True, help=".png")
    parser.add_argument("--out-leaks", required=True, help=".png")
    parser.add_argument("--out", required=True, help=".json: the numbers")
    arguments = parser.parse_args()

    path = Path(paths.RECOMMENDATIONS())
    rows = read_csv(path) if path.exists() else []
    keeps = headlines.keeps(rows)
    holds = headlines.holds(arguments.sources)
    leaking = headlines.leaks()
    titles = {name: data_name(name) for name in arguments.shown}
    style.save(pictures.keeps(keeps, titles), arguments.out_keeps)
    style.save(pictures.holds([entry[:2] for entry in holds]), arguments.out_holds)
    style.save(pictures.leaks(leaking[0]), arguments.out_leaks)
    write_json(arguments.out, headlines.numbers(keeps, holds, leaking, arguments.shown))
