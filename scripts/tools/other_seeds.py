"""Finds the verdicts that change with other seeds.

    python scripts/tools/other_seeds.py cm08 veldhuizen [--configfile config/real.yaml] [--seeds 1 2]

The experiments run once per seed, in the folder results-seed-<seed>. The program prints every verdict of
published.csv, claims.csv and defects.csv that changes, with both runs' numbers. If it was stopped, the same
command resumes it. With --compare, it only compares existing folders.

Chance explains a change if both verdicts are "reproduced if ..." (under different readings). It also does
if one is "too wide to decide", "undecided" or "not excluded", which lie between agreement and failure.
After any other change, such as to "not tested", the exit status is 1. Beside the number of changes stands
how many the powers of the numbers' verdicts predict.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import home

from checks.by_source import key_of
from checks.statements import SECTIONS
from checks.verdicts import NOT_EXCLUDED, NOT_REPRODUCED, REPRODUCED, TOO_WIDE, UNDECIDED
from study.jobs.files import read_csv

FILES = ("published", *SECTIONS)
OPEN = (TOO_WIDE, UNDECIDED, NOT_EXCLUDED)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[home.ARGUMENTS],
    )
    parser.add_argument("experiments", nargs="+")
    parser.add_argument("--results", default="results", help="the folder to compare with")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--configfile", nargs="+", default=[])
    parser.add_argument("--cores", default="all")
    parser.add_argument("--compare", action="store_true", help="run nothing")
    arguments = parser.parse_args()

    unexplained = 0
    for number, seed in enumerate(arguments.seeds, 1):
        folder = f"{arguments.results}-seed-{seed}"
        files = [f"{name}/{file}.csv" for name in arguments.experiments for file in FILES]
        files = [file for file in files if Path(arguments.results, file).exists()]
        if not files:
            sys.exit(
                f"error: {arguments.results}/ has no verdicts of these experiments: run them first"
            )
        if not arguments.compare:
            print(f"seed {seed}, {number} of {len(arguments.seeds)}, in {folder}/", flush=True)
            run(seed, folder, files, arguments)
        for name in arguments.experiments:
            first, second = (verdicts(Path(root, name)) for root in (arguments.results, folder))
            differences = list(changes(first, second))
            unexplained += sum(not explained for *_, explained in differences)
            print(f"seed {seed}: {name}: {len(differences)} of {len(first)} verdicts differ")
            numbers = sum(where.startswith("published, ") for where, *_ in differences)
            print(f"  {numbers} of numbers; powers predict {most(first.values()):.1f} at most")
            for where, before, after, explained in differences:
                mark = "  " if explained else "! "
                print(f"{mark}{where}: {said(before)} -> {said(after)}", flush=True)
    print(f"{unexplained} changes are not explained by chance near a threshold")
    sys.exit(bool(unexplained))


def run(seed, folder, files, arguments):
    command = [sys.executable, "-m", "snakemake", "--cores", arguments.cores]
    command += ["--configfile", *arguments.configfile] if arguments.configfile else []
    command += ["--config", f"seed={seed}", f"results={folder}", "--"]
    if subprocess.run([*command, *(f"{folder}/{file}" for file in files)], check=False).returncode:
        sys.exit(f"error: the run with the seed {seed} failed")


def verdicts(folder):
    rows = {}
    for file in FILES:
        path = folder / f"{file}.csv"
        for row in read_csv(path) if path.exists() else ():
            rows[key_of(row, file, folder.name)] = row
    return rows


def word(verdict):
    """A verdict without its number of readings, which may change when the verdict does not."""
    return NOT_REPRODUCED if verdict.startswith(NOT_REPRODUCED) else verdict


def changes(first, second):
    """Yield (key, old row, new row, whether chance explains the change) for each verdict that changes."""
    for key, before in first.items():
        after = second.get(key, {"verdict": "missing"})
        words = word(before["verdict"]), word(after["verdict"])
        if words[0] != words[1]:
            agree = [each.startswith(f"{REPRODUCED} if ") for each in words]
            explained = all(agree) or any(each in OPEN for each in words)
            yield ", ".join(filter(None, key[1:])), before, after, explained


def most(rows):
    """The number of changes of numbers that their powers predict, plus two standard deviations.

    A number of the source's own protocol and settings, with the power p, is called reproduced by one seed
    and left open by another with the probability 2 p (1 - p).
    """
    powers = [
        float(row["power"])
        for row in rows
        if row.get("power") and (row["verdict"] == REPRODUCED or row["verdict"] in OPEN)
    ]
    chances = [2 * power * (1 - power) for power in powers]
    return sum(chances) + 2 * sum(chance * (1 - chance) for chance in chances) ** 0.5


def said(row):
    why = row.get("reason") or row.get("decided_by") or ""
    return f"{row['verdict']}{f' ({why})' if why else ''}"


if __name__ == "__main__":
    main()
