"""The folder that a tool works on: that of `--directory`, as for snakemake, or the one it is started in.

It must be imported before the rest of the project, which looks at its working folder when it is imported.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

START = Path.cwd()  # relative paths among the arguments start here

ARGUMENTS = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
ARGUMENTS.add_argument(
    "--directory", "-d", metavar="FOLDER", default=".", help="the run's folder, as for snakemake"
)


def run_arguments(description):
    """A parser for the arguments that describe a run, as for snakemake: its folder, targets and overlays.
    Overlays become paths relative to the run's folder."""
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
