"""Classes that declare the options of a kind, such as a figure's. A field's type says what its value names.

    class LowerThan(Options):
        lower: Method          # required; names a method of the experiment
        share: float = 1.0

If an option's name is a Python keyword, its field's name ends with `_`.
"""

from functools import cache
from types import UnionType
from typing import NamedTuple, NewType, Union, get_args, get_origin, get_type_hints

Method = NewType("Method", str)
Sweep = NewType("Sweep", str)
DataSet = NewType("DataSet", str)
Comparison = NewType("Comparison", str)  # an entry of the experiment's `published` section
Other = NewType("Other", str)  # another experiment
OtherMethod = NewType("OtherMethod", str)  # a method of the experiment `Other`
Mechanism = NewType("Mechanism", str)
Printed = NewType("Printed", str)  # the path of a number in the source
PrintedAxis = NewType("PrintedAxis", str)  # the path of an axis's range in the source
End = NewType("End", str)  # "smallest" or "largest"
Axis = NewType("Axis", str)  # "epsilon" or "train_size"
Operator = NewType("Operator", str)  # "=", "!=" or ">="
Procedure = NewType("Procedure", str)  # a method, or another name, whose time an analysis measures
Rows = NewType("Rows", dict)  # table column -> values; those of the column "method" are methods

Methods = Method | list[Method]
Sweeps = Sweep | list[Sweep]
DataSets = DataSet | list[DataSet]
At = float | list[float] | End

REQUIRED = object()


class Options:
    """Base class of options."""


class Place(Options):
    """Options that select cells, for a check that has its own options for epsilons and methods."""

    sweep: Sweeps | None = None
    datasets: DataSets | None = None
    train_size: At | None = None


class Point(Place):
    epsilon: At | None = None


class Cells(Point):
    methods: Methods | None = None


class Field(NamedTuple):
    """One option. default: its default, or `REQUIRED` if it must be given."""

    type: object
    default: object = REQUIRED


@cache
def fields(options):
    """Name -> `Field` of each option, base classes first."""
    types = get_type_hints(options)
    return {
        name.removesuffix("_"): Field(hint, getattr(options, name, REQUIRED))
        for name, hint in types.items()
    }


def defaults(options):
    return {
        k: field.default for k, field in fields(options).items() if field.default is not REQUIRED
    }


def named(options, values, *what):
    """The distinct names, at any depth of the options' `values`, whose type is one of `what`."""
    names = {}
    for option, field in fields(options).items():
        names |= dict.fromkeys(_names(values.get(option), field.type, what))
    return list(names)


def _names(value, kind, what):
    if value is None:
        return []
    if kind in what:
        if kind is Rows:
            value = value.get("method", ())
        return value if isinstance(value, list) else [value]
    if get_origin(kind) in (Union, UnionType):
        return [name for part in get_args(kind) for name in _names(value, part, what)]
    if get_origin(kind) is list and isinstance(value, list):
        return [name for item in value for name in _names(item, *get_args(kind), what)]
    if get_origin(kind) is dict and isinstance(value, dict):
        return [n for item in value.values() for n in _names(item, get_args(kind)[1], what)]
    return []
