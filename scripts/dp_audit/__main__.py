"""`python -m dp_audit PROGRAM.py:FUNCTION --epsilon E`: whether a program keeps its claim."""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from dp_audit import check, programs
from dp_audit.small_pairs import Domain
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE
from dp_privacy.errors import Refused

EPILOG = (
    """exit status: 0 if no fault was found, 1 for a fault, 2 for arguments that cannot be used"""
)


def arguments() -> argparse.ArgumentParser:
    """The command's arguments."""
    parser = argparse.ArgumentParser("python -m dp_audit", description=__doc__, epilog=EPILOG)
    add = parser.add_argument
    add("program", help="PROGRAM.py:NAME of a function or class, or the name of a mechanism")
    add("--epsilon", type=float, required=True, help="the claim")
    add("--delta", type=float, default=0.0)
    add("--neighbours", choices=[REPLACE_ONE, ADD_REMOVE], default=REPLACE_ONE)
    add("--bound", type=float, default=1.0, help="norm of the longest row that the claim is for")
    add("--labels", type=float, nargs=2, default=[-1, 1], metavar=("A", "B"))
    add("--targets", type=float, nargs=2, metavar=("LEAST", "MOST"), help="in place of labels")
    add("--missing", action="store_true", help="cells of a record may be missing (NaN)")
    add("--rows", help="CSV of numbers with a header, the target last: neighbours of these too")
    add("--set", nargs="+", default=[], metavar="NAME=VALUE", help="further arguments")
    add("--released", action="store_true", help="the claim counts all noisy values as released")
    add("--pairs", type=int, default=240)
    add("--seconds", type=float, default=60.0)
    add("--script", help="file for a program that shows the fault, by default fault_NAME.py")
    return parser


def read(path: str) -> tuple[np.ndarray, np.ndarray]:
    """(X, y) of a CSV file."""
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file))[1:]
        table = np.array([line for line in lines if line], dtype=float)
    except (OSError, ValueError) as error:
        raise Refused(f"{path} is no CSV file of numbers with a header: {error}") from error
    if table.ndim != 2 or table.shape[1] < 2 or not np.isfinite(table).all():
        raise Refused(f"{path} needs a header, rows of finite numbers, and two columns or more")
    return table[:, :-1], table[:, -1]


def domain_of(told: argparse.Namespace) -> Domain:
    """The records that the claim is for."""
    values = told.targets or told.labels
    rows = read(told.rows) if told.rows else None
    if rows:
        longest = np.linalg.norm(rows[0], axis=1).max()
        if longest > told.bound * (1 + 1e-9):
            raise Refused(f"a row of {told.rows} has norm {longest:.6g}: state a larger --bound")
        inside = (rows[1] >= values[0]) & (rows[1] <= values[1])
        if not (inside if told.targets else np.isin(rows[1], values)).all():
            raise Refused(f"a target of {told.rows} is not {values}: state --labels or --targets")
    return Domain(
        told.bound, tuple(values), bool(told.targets), told.neighbours, rows, told.missing
    )


def main(words: list[str] | None = None) -> int:
    """Print the answer, and return the exit status."""
    told = arguments().parse_args(words)
    try:
        domain = domain_of(told)
        settings = programs.numbered(told.set)
        program = programs.load(told.program, told.epsilon, told.delta, **settings)
        answer = check.check(
            program, domain, released=told.released, count=told.pairs, seconds=told.seconds
        )
    except Refused as error:
        print(error, file=sys.stderr)
        return 2
    print(answer.sentence)
    if answer.fault:
        path = Path(told.script or f"fault_{program.name}.py")
        if path.exists() and not told.script:
            print(
                f"{path} exists and stays as it is; name another file by --script", file=sys.stderr
            )
        else:
            path.write_text(check.script(answer, told.program, program), encoding="utf-8")
            print(f"{path} shows it", file=sys.stderr)
    return int(answer.fault)


if __name__ == "__main__":
    sys.exit(main())
