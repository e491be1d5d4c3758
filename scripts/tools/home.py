"""The folder that a tool is about: that of `--directory`, as for snakemake, or the one it is started in.

Imported before all else of the project, which asks on its import whose folder it works in.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

START = Path.cwd()  # what relative paths among the arguments are seen from

ARGUMENTS = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
ARGUMENTS.add_argument(
    "--directory", "-d", metavar="FOLDER", default=".", help="the run's folder, as for snakemake"
)


def run_arguments(description):
    """A parser of what tells a run, as for snakemake: its folder, its targets, its overlays, which are
    made paths from the run's folder."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[ARGUMENTS],
    )
    parser.add_argument("targets", nargs="*", help="as for snakemake; everything where not given")
    parser.add_argument(
        "--configfile",
        nargs="+",
        type=lambda path: os.path.relpath(START / path),
        default=[],
        help="overlays, as for snakemake",
    )
    return parser


try:
    os.chdir(ARGUMENTS.parse_known_args()[0].directory)
except OSError as error:
    sys.exit(f"error: --directory {error.filename}: {error.strerror}")
