"""A check that compares a source's numbers with each other, or with a known number."""

from checks.statements import Outcome
from study import facts as source_file
from study.configuration.inputs import NOTHING
from study.configuration.kinds import check
from study.configuration.options import Operator, Options, Printed


def numbers(results, *paths):
    source = source_file.read(results.experiment.source)
    return [float(source.look_up(path)) for path in paths]


class PrintedNumbers(Options):
    left: Printed
    operator: Operator
    right: Printed | float
    factor: float = 1.0
    within: float = 0.0


@check(NOTHING, PrintedNumbers)
def printed(results, *, left, operator, right, factor, within):
    """The number printed at `left` is ">=", "=" or "!=" `factor` times `right`, where numbers that
    differ by at most `within` are equal.
    right: a number, or where one is printed.
    """
    (first,) = numbers(results, left)
    if isinstance(right, str):
        (second,) = numbers(results, right)
        said = f"{left} prints {first:g}, {right} {second:g}"
    else:
        second, said = right, f"{left} prints {first:g} beside {right:g}"
    if operator == ">=":
        ratio = first / second
        return Outcome(ratio >= factor, f"{said}: {ratio:.4g} times", ratio, factor)
    gap = abs(first - factor * second)
    equal = gap <= within
    return Outcome(equal if operator == "=" else not equal, f"{said}: {gap:.4g} apart", gap, within)
