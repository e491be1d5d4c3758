"""Finds which verdicts of experiments change with other seeds, and whether chance explains it.

    python scripts/tools/other_seeds.py cm08 veldhuizen [--configfile config/real.yaml] [--seeds 1 2]

It computes published values and claims once per seed, each in a folder of its own, results-seed-<seed>, and
compares them with the existing results. A value's verdict may change if the printed number is within two
standard errors of an end of our interval. The exit status is 1 if another verdict changes.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import home  # noqa: F401, what follows is in scripts/

from checks.verdicts import NOT_RUN
from study.jobs.files import read_csv

SECTIONS = {"published": ("published_at", "dataset", "method", "quantity"), "claims": ("id",)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiments", nargs="+")
    parser.add_argument("--results", default="results", help="the folder to compare with")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--configfile", nargs="+", default=[])
    parser.add_argument("--cores", default="all")
    arguments = parser.parse_args()

    left_over = 0
    for seed in arguments.seeds:
        folder = f"{arguments.results}-seed-{seed}"
        files = [f"{name}/{section}.csv" for name in arguments.experiments for section in SECTIONS]
        files = [file for file in files if Path(arguments.results, file).exists()]
        if not files:
            sys.exit(
                f"error: {arguments.results}/ has no verdicts of these experiments: run them first"
            )
        command = [sys.executable, "-m", "snakemake", "--quiet", "--cores", arguments.cores]
        command += ["--configfile", *arguments.configfile] if arguments.configfile else []
        command += ["--config", f"seed={seed}", f"results={folder}", "--"]
        command += [f"{folder}/{file}" for file in files]
        if subprocess.run(command, check=False).returncode:
            sys.exit(f"error: the run with the seed {seed} failed")
        for file in files:
            section = Path(file).stem
            rows = [read_csv(Path(root, file)) for root in (arguments.results, folder)]
            for where, before, after, why, allowed in changes(section, *rows):
                left_over += not allowed
                print(f"seed {seed}: {file}: {where}: {before} -> {after} ({why})")
    print(f"{left_over} changes are not explained by chance near a threshold")
    sys.exit(bool(left_over))


def changes(section, first, second):
    """(row, its verdicts, why that may be or not, whether it may be) for the rows whose verdicts differ.

    first, second: rows of published.csv or claims.csv, as text.
    """
    keys = SECTIONS[section]
    others = {tuple(row[key] for key in keys): row for row in second}
    for row in first:
        other = others[tuple(row[key] for key in keys)]
        if row["verdict"] == other["verdict"] or NOT_RUN in (row["verdict"], other["verdict"]):
            continue
        near = [margin(each) for each in (row, other)] if section == "published" else []
        known = [each for each in near if each is not None]
        if section == "claims":
            why, allowed = (
                "a claim: see what decided it",
                "undecided" in (row["decided_by"] + other["decided_by"]),
            )
        elif known:
            why = f"{min(known):.2g} standard errors from the interval's end"
            allowed = min(known) <= 2
        else:
            why, allowed = "no interval", False
        yield ", ".join(row[key] for key in keys), row["verdict"], other["verdict"], why, allowed


def margin(row):
    """How many of our standard errors a printed value is from the nearer end, None if unknown.

    A mean has its own interval. A standard deviation has none: it is estimated from about as many folds as
    a run by the source's protocol has, so its error is taken to be that of such a run.
    """
    ends = ("prediction_low", "prediction_high")
    own = ends if "standard deviation" in row["quantity"] else ("ours_low", "ours_high")
    names = ("published", *ends, *own)
    if not all(row[name] for name in names):
        return None
    printed, *ends, low, high = (float(row[name]) for name in names)
    error = (high - low) / 4  # half of a 95 % interval is about two of them
    return min(abs(printed - end) for end in ends) / error if error > 0 else None


if __name__ == "__main__":
    main()
