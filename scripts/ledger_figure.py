"""The privacy ledger as a figure: claimed, proven and audited epsilon of every attack."""

import argparse

import pandas as pd

from plots import style
from plots.ledger import ledger
from study.jobs import script


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ledger", help=".csv")
    parser.add_argument("--out", nargs="+", required=True, help=".png, .pdf")
    arguments = parser.parse_args()

    style.save(ledger(pd.read_csv(arguments.ledger)), *arguments.out)


if __name__ == "__main__":
    script.run(main)
