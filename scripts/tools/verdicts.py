"""Prints what a source says beside what we found: claims, defects and printed tables, with verdicts.

    python scripts/tools/verdicts.py cm08
    python scripts/tools/verdicts.py einarsson_2018 --section claims

The source is a folder of config/sources, its short name, or one of its experiments. Verdicts of the last
run come first; where it leaves a line open, the verdict of the recorded run is shown, marked with its date.
Tables have the source's shape; `--section published` lists their numbers, with methods and readings.
"""

import argparse
import shutil
import sys
import textwrap
from pathlib import Path

import home

from checks import by_source
from checks.verdicts import CALIBRATED
from reporting import costs, dots, readings, record, shape
from study import facts, paths
from study.configuration.sources import experiment_files
from study.configuration.validation import read_yaml
from study.jobs.files import read_csv

SECTIONS = ("claims", "defects", "tables", "published")
WIDEST = 120


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[home.ARGUMENTS],
    )
    parser.add_argument("source")
    parser.add_argument("--section", nargs="+", choices=SECTIONS, default=SECTIONS[:3])
    parser.add_argument("--results", default="results", help="the run's folder of results")
    arguments = parser.parse_args()
    paths.use(arguments.results)
    key = key_of(arguments.source)
    own, further = decided(key)
    rows = [*own, *further]
    if not rows:
        sys.exit(
            f"error: neither {paths.results()} nor config/record/{key} has verdicts: run its experiments "
            f"first"
        )
    source = facts.read(key)
    print(source.cited)
    print(record.counts(record.once(own or further)))
    if own and further:
        print(
            f"Not counted are {len(further):,} lines of the recorded run that this run does not have."
        )
    for path in sorted(map(Path, best_readings(own))):
        print(readings.best(read_csv(path), source.stated))
    width = min(shutil.get_terminal_size((WIDEST, 0)).columns, WIDEST)
    for section in arguments.section:
        if section == "tables":
            print("", *shape.lines(key, rows), sep="\n")
            continue
        own = [row for row in rows if row["section"] == section]
        if own:
            print(f"\n{section} ({len(own)})")
            print(*(numbers(own) if section == "published" else statements(own, width)), sep="\n")


def key_of(name):
    """The source of a folder's name, a short name or an experiment's name."""
    keys = facts.files()
    known = {key: key for key in keys} | {facts.read(key).short.lower(): key for key in keys}
    files = experiment_files()
    if name in files:
        known[name] = read_yaml(files[name]).get("source")
    key = known.get(name) or known.get(name.lower())
    if key is None:
        sys.exit(f"error: {name!r} is no source: take one of {', '.join(sorted(keys))}")
    return key


def decided(key):
    """As `record.instead`, of the experiments that have run, perhaps not all."""
    own = {}
    for name, path in experiment_files().items():
        files = {s: Path(paths.VERDICTS(experiment=name, section=s)) for s in record.SECTIONS}
        if any(map(Path.exists, files.values())) and read_yaml(path).get("source") == key:
            own[name] = {s: read_csv(file) for s, file in files.items() if file.exists()}
    return record.instead(key, [*by_source.rows(facts.read(key), own)] if own else [])


def best_readings(rows):
    """The files of this run with the source's readings."""
    experiments = dict.fromkeys(row["experiment"] for row in rows if not row["date"])
    files = [paths.READINGS(experiment=name) for name in experiments if name]
    return [file for file in files if Path(file).exists()]


def _verdict(row):
    return row["verdict"] + f", recorded {row['date']}" * bool(row["date"])


def statements(rows, width):
    for row in rows:
        where = f" ({row['where']})" if row["where"] else ""
        indent = {"initial_indent": "    ", "subsequent_indent": "    "}
        yield f"{row['id']}: {_verdict(row)}"
        yield textwrap.fill(f"{row['says']}{where}", width, **indent)
        if row["because"]:
            yield textwrap.fill(f"because {row['because']}", width, **indent)


def numbers(rows):
    """A narrow table: where a number is printed, the method, the printed number, ours and the verdict."""
    experiments = {row["experiment"] for row in rows}
    seconds = {name: costs.seconds_of_cells(name) for name in experiments}
    cells = [("where", "method", "printed", "ours", "verdict")]
    for row in rows:
        ours = row["read_ours"] or row["ours"]
        where = row["where"].removeprefix("tables/").removeprefix("settings/")
        said = "sd of " * ("standard deviation" in row["quantity"]) + row["method"]
        verdict = _verdict(row)
        if row["verdict"] == CALIBRATED:
            verdict += f", residual {float(ours) - float(row['stated']):+.3g}"
        if needs := costs.needed(row, seconds[row["experiment"]]):
            verdict += f"; {needs}"
        cells.append((where, said, dots.brief(row["stated"]), dots.brief(ours), verdict))
    widths = [max(len(line[k]) for line in cells) for k in range(4)]
    for line in cells:
        yield "  ".join([*(t.ljust(w) for t, w in zip(line[:4], widths, strict=True)), line[4]])


if __name__ == "__main__":
    main()
