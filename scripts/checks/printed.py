"""Checks of the source's own numbers against each other."""

import math

from checks.statements import Outcome
from study import canonical
from study import facts as source_file
from study.configuration.check_options import Printed


def _values(results, *paths):
    source = source_file.read(results.experiment.source)
    return [float(source.look_up(path)) for path in paths]


def printed_twice(results, *, first: Printed, second: Printed):
    """Two places of the source's tables print the same number."""
    values = _values(results, first, second)
    text = f"{first} and {second} print {values[0]:g} and {values[1]:g}"
    return Outcome(values[0] == values[1], text, abs(values[0] - values[1]), 0.0)


def printed_ratio(results, *, first: Printed, second: Printed, at_least: float):
    """The number printed at `first` is at least `at_least` times the one at `second`."""
    values = _values(results, first, second)
    ratio = values[0] / values[1]
    text = f"{first} prints {values[0]:g}, {second} {values[1]:g}: {ratio:.4g} times"
    return Outcome(ratio >= at_least, text, ratio, at_least)


def printed_close(results, *, path: Printed, value: float, within: float, what: str):
    """The number printed at `path` lies within `within` of a known one. what: that one in words."""
    (printed,) = _values(results, path)
    gap = abs(printed - value)
    text = f"{path} prints {printed:g}; {what} gives {value:g}, {gap:.4g} away"
    return Outcome(gap <= within, text, gap, within)


def printed_difference(results, *, first: Printed, second: Printed, printed: float, tolerance=1e-9):
    """The difference of the numbers printed at `first` and `second` is not the one that is printed."""
    values = _values(results, first, second)
    difference = values[0] - values[1]
    text = f"{first} - {second} = {values[0]:g} - {values[1]:g} = {difference:g}; {printed:g} is printed"
    gap = abs(difference - printed)
    return Outcome(gap > tolerance, text, gap, tolerance)


def printed_column(results, *, column: str, first: str, second: str, tolerance=1e-9):
    """Not every number of a printed column is the difference of the two numbers printed beside it.

    column: path of {key: number}. first, second: paths of the two numbers, with {} in place of the key.
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


def printed_spread(results, *, mean: Printed, sd: Printed, half: float, count: int):
    """The standard deviation printed for `count` numbers, none of them negative, is larger than their mean
    allows. half: half a unit of the mean's last printed digit.

    Numbers with mean m spread most if all but one are 0: then their deviation is sqrt(count) m.
    """
    values = _values(results, mean, sd)
    most = math.sqrt(count) * (values[0] + half)
    text = (
        f"{mean} prints {values[0]:g}, at most {values[0] + half:g}: {count} numbers of that mean "
    )
    text += f"have a standard deviation of at most {most:.2g}; {values[1]:g} is printed"
    return Outcome(values[1] > most, text, values[1], most)


def interval_covers(results, *, quantile: float, simulations: list, named: float):
    """Intervals of mean +- t sd/sqrt(m), with t the `quantile` of Student's t, cover less than the share
    that they are `named` after: the area between both ends, for every number m of simulations."""
    from scipy import integrate, stats

    found = []
    for m in simulations:
        law = stats.t(m - 1)
        end = float(law.ppf(quantile))
        found.append(integrate.quad(law.pdf, -end, end)[0])
    texts = [f"{m} simulations: {share:.4g}" for m, share in zip(simulations, found, strict=True)]
    text = (
        f"intervals named {named:g} that end at the {quantile:g} quantile cover {'; '.join(texts)}"
    )
    return Outcome(max(found) < named - 0.01, text, max(found), named)
