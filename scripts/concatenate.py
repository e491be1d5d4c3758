"""Puts the rows of several audit files into one, in the order in which the files are given."""

import argparse
import csv
from pathlib import Path

from study.jobs import script
from study.jobs.files import write_csv


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", help=".csv, all with the same columns")
    parser.add_argument("--strict", action="store_true", help="fail where one refutes a claim")
    parser.add_argument("--out", required=True, help=".csv")
    arguments = parser.parse_args()

    header, rows = None, []
    for file in arguments.files:
        with Path(file).open(newline="", encoding="utf-8") as handle:
            columns, *found = csv.reader(handle)
        if header not in (None, columns):
            raise ValueError(f"{file}: has other columns than {arguments.files[0]}; make it again")
        header = columns
        rows += found
    if arguments.strict:
        refuse([dict(zip(header, row, strict=True)) for row in rows])
    write_csv(arguments.out, header, rows)


def refuse(attacks):
    """Raise ValueError if an attack found more than its mechanism claims."""
    refuted = [attack for attack in attacks if attack["verdict"].startswith("refutes")]
    if refuted:
        worst = max(
            refuted, key=lambda a: float(a["epsilon_audited"]) / float(a["epsilon_claimed"])
        )
        raise ValueError(
            f"{worst['mechanism']} claims epsilon {worst['epsilon_claimed']}, and the attack "
            f"{worst['attack']} shows that it is at least {worst['epsilon_audited']}: correct the claim "
            f"or the noise (this stops the audit because of `strict`; {len(refuted)} of {len(attacks)} "
            f"attacks show one)"
        )


if __name__ == "__main__":
    script.run(main)
