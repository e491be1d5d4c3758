"""Privacy losses computed from densities: what no number of releases could resolve."""

import argparse
import json

from dp import exact
from study import jobs
from study.files import write_csv


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=json.loads, required=True, help="JSON")
    parser.add_argument("--out", required=True, help=f".csv: {', '.join(exact.COLUMNS)}")
    arguments = parser.parse_args()

    write_csv(arguments.out, exact.COLUMNS, exact.rows(**arguments.settings))


if __name__ == "__main__":
    jobs.run(main)
