"""Computes privacy losses from densities, for differences too small for attacks to detect."""

import json

from dp_audit import exact_losses
from study.jobs import script
from study.jobs.files import write_csv


def main():
    parser = script.parser(__doc__)
    parser.add_argument("--settings", type=json.loads, required=True, help="JSON")
    parser.add_argument("--out", required=True, help=f".csv: {', '.join(exact_losses.COLUMNS)}")
    arguments = parser.parse_args()

    write_csv(arguments.out, exact_losses.COLUMNS, exact_losses.rows(**arguments.settings))
