"""Code that jobs share: their start, arguments, error messages, and the log of a job's cost."""

import argparse
import errno
import importlib
import json
import sys

from study import lambdas
from study.jobs import cost


def start(name, words):
    """Run the job of the file `jobs/<name>.py` with these arguments."""
    sys.argv = [name, *words]
    run(importlib.import_module(f"jobs.{name}").main)


def run(main, job=True):
    """Run a main function. Errors that users can fix are shown as messages, with exit status 1.

    job: whether to log the job's time and memory.
    """
    try:
        main()
        if job:
            print(cost.line(), file=sys.stderr)
    except MemoryError as error:
        sys.exit(
            f"error: not enough memory{f' ({error})' if str(error) else ''}: run fewer jobs side by "
            f"side (a smaller --cores) or on a larger machine, with the same command; finished jobs stay"
        )
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            sys.exit(f"error: {error}")
        message = (
            f"error: the disk is full ({error}): free some space and repeat the command; "
            f"finished jobs stay"
        )
        print(message)  # standard error may be lost: its log is on the full disk
        sys.exit(message)
    except ValueError as error:
        sys.exit(f"error: {error}")


def parser(description, seed=False):
    arguments = argparse.ArgumentParser(description=description)
    if seed:
        arguments.add_argument("--seed", type=int, required=True)
    return arguments


def add_data_arguments(parser, lam=True):
    """Add the arguments of jobs that train. lam: whether these jobs need lambda."""
    parser.add_argument("--data", required=True, help="prepared rows, .npz")
    parser.add_argument("--meta", required=True, help="what was done to them, .json")
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--dataset", required=True)
    split = parser.add_mutually_exclusive_group(required=True)
    split.add_argument("--folds", type=int)
    split.add_argument("--simulations", type=int)
    parser.add_argument("--divisions", type=int, help="of rows that were not drawn several times")
    parser.add_argument("--whole", action="store_true", help="size counts rows before the folds")
    parser.add_argument("--zero", type=int, help="-1 or 1: the label that enters the loss as 0")
    parser.add_argument("--shared", action="store_true", help="all folds have the same draws")
    parser.add_argument(
        "--fresh", action="store_true", help="draws anew for every size and epsilon"
    )
    parser.add_argument("--train-size", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    if lam:
        what = "a number, the .json that a tuning or search wrote, or `rule`"
        parser.add_argument("--lam", type=lambdas.parse, required=True, help=what)


def parse_options(text):
    return json.loads(text)
