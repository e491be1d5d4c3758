"""Makes scripts/ importable, and changes to the folder that `--directory` names, as snakemake does.

A tool must import this module first, because other modules read the working folder when imported.
"""

import argparse
import importlib.util
import os
import select
import sys
from pathlib import Path

if importlib.util.find_spec("pydantic") is None:
    sys.exit(
        "error: this Python lacks the workflow's libraries: activate the environment "
        "(`. .venv/bin/activate`; `sh envs/setup.sh` makes it)"
    )
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def _report(kind, error, trace):
    """Report an error, but not that the reader of the output, such as `head`, has closed its pipe."""
    output = select.poll()
    output.register(sys.stdout, 0)
    if kind is BrokenPipeError and output.poll(0):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still buffered
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _report

START = Path.cwd()  # relative paths in the arguments are relative to this folder

ARGUMENTS = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
ARGUMENTS.add_argument(
    "--directory", "-d", metavar="FOLDER", default=".", help="the run's folder, as for snakemake"
)


def run_arguments(description):
    """A parser for the arguments that describe a Snakemake run: folder, targets and overlays.

    The parser makes paths of overlays relative to the run's folder.
    """
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
