"""Rows of several audit files in one, in the order in which they are given."""

import argparse
import csv
from pathlib import Path

from study import jobs
from study.files import write_csv


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", help=".csv, all with the same columns")
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
    write_csv(arguments.out, header, rows)


if __name__ == "__main__":
    jobs.run(main)
