"""Refuse options that do not fit the class that declares them."""

from types import UnionType
from typing import NewType, Union, get_args, get_origin

from study.configuration.faults import nearest, wrong_type
from study.configuration.options import REQUIRED, Rows, fields
from study.configuration.section import kind_of


def check(options, values, known, fail):
    """Refuse unknown options, values of a wrong type, and unknown names.

    known: type of names -> (valid names, what they name). fail: a function (place, text) that returns
    the error to raise. An option's place is a string such as ".panels.first".
    """
    valid = fields(options)
    for name in values:
        if name not in valid:
            raise fail("", f"no option {name!r}{nearest(name, list(valid))}")
    for name, field in valid.items():
        if field.default is REQUIRED and name not in values:
            raise fail("", f"the option {name!r} is missing")
    for name, value in values.items():
        _fits(value, valid[name].type, known, lambda text, at="": fail(at, text), f".{name}")


def _fits(value, kind, known, fail, place):
    """Raise unless a value has the type `kind` and, if `kind` is a type of names, is a valid name."""
    expected = []
    for part in get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,):
        example = {Rows: {}}.get(part, "") if isinstance(part, NewType) else _origin(part)()
        if kind_of(example) == kind_of(value):
            if part in known and value not in known[part][0]:
                valid, what = known[part]
                raise fail(f"no {what} {value!r}{nearest(value, list(valid))}", place)
            if _origin(part) is list and get_args(part):
                for item in value:
                    _fits(item, *get_args(part), known, fail, place)
            if _origin(part) is dict and get_args(part):
                for key, item in value.items():
                    _fits(item, get_args(part)[1], known, fail, f"{place}.{key}")
            return
        expected.append(kind_of(example))
    wanted = " or ".join(word for word in dict.fromkeys(expected) if word != "null")
    raise fail(wrong_type(wanted, value), place)


def _origin(kind):
    return get_origin(kind) or kind
