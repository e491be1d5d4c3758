"""Draws the privacy ledger: claimed, proven and audited epsilon, and profiles delta(epsilon)."""

import pandas as pd

from plots import style
from plots.ledger import ledger
from plots.proven_profiles import profiles
from study.jobs import script


def main():
    parser = script.parser(__doc__)
    parser.add_argument("ledger", help=".csv")
    parser.add_argument("--out", nargs="+", required=True, help=".png, .pdf")
    parser.add_argument("--profiles", nargs="+", required=True, help=".png, .pdf")
    arguments = parser.parse_args()

    frame = pd.read_csv(arguments.ledger)
    style.save(ledger(frame), *arguments.out)
    style.save(profiles(frame), *arguments.profiles)
