"""Checks that compare a source's numbers with each other."""

import math

from checks.statements import Outcome
from study import canonical
from study import facts as source_file
from study.configuration.inputs import NOTHING
from study.configuration.kinds import check
from study.configuration.options import Options, Printed


def _values(results, *paths):
    source = source_file.read(results.experiment.source)
    return [float(source.look_up(path)) for path in paths]


class PrintedTwice(Options):
    first: Printed
    second: Printed


@check(NOTHING, PrintedTwice)
def printed_twice(results, *, first, second):
    """Two places of the source's tables print the same number."""
    values = _values(results, first, second)
    text = f"{first} and {second} print {values[0]:g} and {values[1]:g}"
    return Outcome(values[0] == values[1], text, abs(values[0] - values[1]), 0.0)


class PrintedRatio(Options):
    first: Printed
    second: Printed
    at_least: float


@check(NOTHING, PrintedRatio)
def printed_ratio(results, *, first, second, at_least):
    """The number printed at `first` is at least `at_least` times the number printed at `second`."""
    values = _values(results, first, second)
    ratio = values[0] / values[1]
    text = f"{first} prints {values[0]:g}, {second} {values[1]:g}: {ratio:.4g} times"
    return Outcome(ratio >= at_least, text, ratio, at_least)


class PrintedClose(Options):
    path: Printed
    value: float
    within: float
    what: str


@check(NOTHING, PrintedClose)
def printed_close(results, *, path, value, within, what):
    """The number printed at `path` differs from `value` by at most `within`. what: `value` in words."""
    (printed,) = _values(results, path)
    gap = abs(printed - value)
    text = f"{path} prints {printed:g}; {what} gives {value:g}, {gap:.4g} away"
    return Outcome(gap <= within, text, gap, within)


class PrintedDifference(Options):
    first: Printed
    second: Printed
    printed: float
    tolerance: float = 1e-09


@check(NOTHING, PrintedDifference)
def printed_difference(results, *, first, second, printed, tolerance):
    """The difference of the numbers printed at `first` and `second` is not the printed difference."""
    values = _values(results, first, second)
    difference = values[0] - values[1]
    text = f"{first} - {second} = {values[0]:g} - {values[1]:g} = {difference:g}; {printed:g} is printed"
    gap = abs(difference - printed)
    return Outcome(gap > tolerance, text, gap, tolerance)


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


class PrintedSpread(Options):
    mean: Printed
    sd: Printed
    half: float
    count: int


@check(NOTHING, PrintedSpread)
def printed_spread(results, *, mean, sd, half, count):
    """The standard deviation printed for `count` non-negative numbers is impossible for their mean.
    Numbers with mean m spread most if all but one are 0; their standard deviation is then sqrt(count) m.
    half: half a unit of the mean's last printed digit.
    """
    values = _values(results, mean, sd)
    most = math.sqrt(count) * (values[0] + half)
    text = (
        f"{mean} prints {values[0]:g}, at most {values[0] + half:g}: {count} numbers of that mean "
    )
    text += f"have a standard deviation of at most {most:.2g}; {values[1]:g} is printed"
    return Outcome(values[1] > most, text, values[1], most)
