"""Refuse options that do not fit the class that declares them."""

from study.configuration.faults import nearest, wrong_type
from study.configuration.options import REQUIRED, example, fields, parts
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
    for place, value, types, kind in parts(options, values):
        if kind is None:
            words = dict.fromkeys(kind_of(example(each)) for each in types)
            wanted = " or ".join(word for word in words if word != "null")
            raise fail(place, wrong_type(wanted, value))
        names, what = known.get(kind, ((value,), ""))
        if value not in names:
            raise fail(place, f"no {what} {value!r}{nearest(value, list(names))}")
