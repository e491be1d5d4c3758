"""Writes the predictions of a published model for new rows.

python scripts/tools/predict.py --model model.json --rows new.csv --out p.csv

The input file must have a header line and at least the model's columns. The output has one line per row,
even if a quoted cell of the row holds line feeds. A line is empty if a numeric cell is not a number or a
cell is not in its column's categories. For a classifier, `probability` is that of the second class in the
model's card.
"""

import argparse
import zlib
from pathlib import Path

import home

from dp_privacy.errors import Refused
from dp_release import files, making, using
from study.jobs import script
from study.jobs.files import atomic


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, what in (
        ("model", "model.json of a release"),
        ("rows", "a CSV, also .gz"),
        ("out", "a CSV"),
    ):
        parser.add_argument(
            f"--{name}", required=True, type=lambda path: home.START / path, help=what
        )
    arguments = parser.parse_args()
    model = files.load(arguments.model)
    try:
        data = making.read(Path(arguments.rows))
    except (OSError, EOFError, zlib.error) as error:
        raise Refused(f"{arguments.rows}: cannot be read ({error})") from None
    with atomic(arguments.out) as file:
        without = using.write_csv(model, data, file)
    if without:
        print(f"{without:,} rows have no prediction: a cell is no number, or in no category")


if __name__ == "__main__":
    script.run(main, job=False)
