"""Checks of Hoseinpour (2023): printed differences, and the sensitivity of a clipped mean."""

from checks.statements import Outcome
from study import canonical
from study import facts as source_file
from study.configuration.inputs import NOTHING
from study.configuration.kinds import check
from study.configuration.options import Options


class PrintedColumn(Options):
    column: str
    first: str
    second: str
    tolerance: float = 1e-09


@check(NOTHING, PrintedColumn)
def printed_column(results, *, column, first, second, tolerance):
    """In at least one row, a printed column is not the difference of the two numbers printed beside it.

    column: the path of {key: number}. first, second: the two numbers' paths, with {} for the key.
    """
    source = source_file.read(results.experiment.source)
    wrong, printed = [], source.look_up(column)
    for key, value in printed.items():
        at = canonical.epsilon(key) if isinstance(key, (int, float)) else key
        ends = [float(source.look_up(path.format(at))) for path in (first, second)]
        difference = ends[0] - ends[1]
        if abs(difference - float(value)) > tolerance:
            wrong.append(f"at {at} {value:g} for {ends[0]:g} - {ends[1]:g} = {difference:g}")
    text = f"{column} is the difference in {len(printed) - len(wrong)} of {len(printed)} rows"
    text += "; it prints " * bool(wrong) + ", ".join(wrong)
    return Outcome(bool(wrong), text, float(len(wrong)), 0.0)


class ClippedMeanMoves(Options):
    n: float
    clip: float
    at_least: float


@check(NOTHING, ClippedMeanMoves)
def clipped_mean_moves(results, *, n, clip, at_least):
    """Replacing one of n records moves the clipped mean gradient by at least `at_least` times 2 clip/n,
    the sensitivity of a mean of clipped gradients. The example has n - 1 zero gradients and a large
    gradient whose sign changes, as unbounded features allow.
    """
    import numpy as np

    means = []
    for sign in (1.0, -1.0):
        gradients = np.zeros((int(n), 2))
        gradients[-1] = sign * n * clip, 0.0
        mean = gradients.mean(axis=0)
        means.append(mean * min(1.0, clip / np.linalg.norm(mean)))
    moved, claimed = float(np.linalg.norm(means[0] - means[1])), 2 * clip / n
    text = (
        f"one record of {n:g} replaced moves the clipped mean gradient by {moved:.4g}, "
        f"{moved / claimed:.4g} times the 2 C/n = {claimed:.4g} that the noise is for"
    )
    return Outcome(moved >= at_least * claimed, text, moved / claimed, at_least)
