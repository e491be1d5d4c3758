"""Finds which verdicts of experiments change with other seeds, and whether chance explains it.

    python scripts/tools/other_seeds.py cm08 veldhuizen [--configfile config/real.yaml] [--seeds 1 2]

It computes published values and claims once per seed, each in a folder of its own, results-seed-<seed>, and
compares them with the existing results, under every reading. A value may change if the printed number is
within two standard errors of an end of our interval. A claim may become undecided, or decided, but it may
not hold with one seed and fail with another. The exit status is 1 if anything else changes.
"""

import argparse
import math
import subprocess
import sys
from pathlib import Path

import home  # noqa: F401, what follows is in scripts/

from checks.verdicts import REPRODUCED
from study.jobs.files import read_csv, read_json

SECTIONS = ("published", "claims")
ROW = ("section", "id", "reading", "published_at", "method", "quantity")


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
        for name in arguments.experiments:
            replicates = replicates_of(Path(arguments.results, name, "configuration.json"))
            first, second = (decisions(Path(root, name)) for root in (arguments.results, folder))
            for where, before, after, why, allowed in changes(first, second, replicates):
                left_over += not allowed
                print(f"seed {seed}: {name}: {where}: {before} -> {after} ({why})")
    print(f"{left_over} changes are not explained by chance near a threshold")
    sys.exit(bool(left_over))


def replicates_of(path):
    """On how many independent parts an experiment's intervals rest.

    Another seed also splits the rows, or simulates them, anew. So these are the folds if there are fewer
    folds than draws of the noise.
    """
    experiment = read_json(path)
    draws = max(2, experiment.get("restarts") or 0, experiment.get("simulations") or 0)
    folds = experiment.get("folds") or 0
    return min(draws, folds) if folds > 1 else draws


def decisions(folder):
    """Rows of readings.csv; if the experiment has no readings, the same of its values and claims."""
    if (folder / "readings.csv").exists():
        return read_csv(folder / "readings.csv")
    rows = []
    for section in SECTIONS:
        path = folder / f"{section}.csv"
        for row in read_csv(path) if path.exists() else []:
            holds = {True: "yes", False: "no" if "not reproduced" in row["verdict"] else ""}
            rows.append(
                {"id": "", "published_at": "", "method": "", "quantity": "", "reading": "as stated"}
                | row
                | {"section": section, "holds": holds[row["verdict"] == REPRODUCED]}
            )
    return rows


def decided(row):
    """What a row says of its value or claim; "" if nothing, since it is undecided or was not run."""
    words = (
        ("reproduced", "not reproduced") if row["section"] == "published" else ("holds", "fails")
    )
    return dict(zip(("yes", "no"), words, strict=True)).get(row["holds"], "")


def changes(first, second, replicates):
    """(row, what it says in each, why that may be or not, whether it may be) for the rows that differ.

    first, second: rows of `decisions`. replicates: as `margin` has it.
    """
    others = {tuple(row[key] for key in ROW): row for row in second}
    for row in first:
        key = tuple(row[name] for name in ROW)
        other = others.get(key)
        before, after = decided(row), decided(other) if other else ""
        if before == after or not (before and after):
            continue
        near = (
            [margin(each, replicates) for each in (row, other)]
            if row["section"] == "published"
            else []
        )
        known = [each for each in near if each is not None]
        why = (
            f"{min(known):.2g} standard errors from the interval's end" if known else "no interval"
        )
        yield ", ".join(filter(None, key)), before, after, why, bool(known) and min(known) <= 2


def margin(row, replicates):
    """How many standard errors a printed value is from the nearer end of our interval, None if unknown.

    The interval is that of one run by the source's protocol, about four standard deviations wide. Its ends
    are estimated from m replicates: mean +- 2 sd, whose variance is sd^2 (1/m + 4/(2 (m - 1))).
    """
    names = ("published", "prediction_low", "prediction_high")
    if not all(row[name] for name in names):
        return None
    printed, low, high = (float(row[name]) for name in names)
    error = (high - low) / 4 * math.sqrt(1 / replicates + 2 / (replicates - 1))
    return min(abs(printed - low), abs(printed - high)) / error if error > 0 else None


if __name__ == "__main__":
    main()
