"""Classes that declare the options of a kind, such as a figure's. A field's type says what its value names.

    class LowerThan(Options):
        lower: Method          # required; names a method of the experiment
        share: float = 1.0

If an option's name is a Python keyword, its field's name ends with `_`.
"""

from functools import cache
from types import UnionType
from typing import Any, NamedTuple, NewType, Union, get_args, get_origin, get_type_hints

from study.configuration.section import kind_of

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


class Part(NamedTuple):
    """An option's value, or a part of it at any depth.

    place: such as ".panels.first". types: the types that it may have. type: the one that it has, or None.
    """

    place: str
    value: Any
    types: tuple
    type: object


def parts(options, values):
    """Yield each `Part` of the options' `values`."""
    for name, field in fields(options).items():
        if name in values:
            yield from _parts(f".{name}", values[name], field.type)


def _parts(place, value, kind):
    types = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    kind = next((each for each in types if kind_of(example(each)) == kind_of(value)), None)
    yield Part(place, value, types, kind)
    if get_origin(kind) is list:
        for item in value:
            yield from _parts(place, item, *get_args(kind))
    if get_origin(kind) is dict:
        for key, item in value.items():
            yield from _parts(f"{place}.{key}", item, get_args(kind)[1])


def example(kind):
    """A value of a type."""
    if isinstance(kind, NewType):
        return {} if kind is Rows else ""
    return (get_origin(kind) or kind)()


def named(options, values, *what):
    """The distinct names, at any depth of the options' `values`, whose type is one of `what`."""
    names = {}
    for part in parts(options, values):
        if part.type in what:
            found = part.value.get("method", ()) if part.type is Rows else part.value
            names |= dict.fromkeys(found if isinstance(found, list) else [found])
    return list(names)
