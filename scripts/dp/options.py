"""Kinds of options, each with a default and allowed values."""

import math
from numbers import Integral, Real

from dp import losses
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE
from dp_privacy.errors import Refused, did_you_mean


def _number(value):
    return isinstance(value, Real) and not isinstance(value, bool)


def plain(value: object) -> object:
    """Convert a number to Python's int or float, and leave anything else unchanged.

    Given a half-precision number, NumPy would compute in half precision, perhaps with too little noise.
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else value


class Option:
    """Base class of options. `what` describes the allowed values."""

    what = ""

    def __init__(self, default: object = None) -> None:
        self.default = default

    def takes(self, value: object) -> bool:
        raise NotImplementedError

    def check(self, name: str, value: object) -> None:
        if not self.takes(value):
            raise Refused(f"{name} must be {self.what}, not {value!r}")


class Between(Option):
    """A number strictly between two others."""

    def __init__(self, default: float | None = None, *, low: float, high: float) -> None:
        super().__init__(default)
        self.low, self.high = low, high
        self.what = f"a number strictly between {low:g} and {high:g}"

    def takes(self, value: object) -> bool:
        return _number(value) and self.low < value < self.high


class Ordinary(Between):
    """A number x between 1e-50 and 1e50, so that x^4 and x^-4 neither underflow nor overflow.

    Squares of other numbers may underflow or overflow, which would disable clipping.
    """

    def __init__(self, default: float | None = None) -> None:
        super().__init__(default, low=1e-50, high=1e50)


class Positive(Option):
    """A finite number > 0."""

    what = "a finite number > 0"

    def takes(self, value: object) -> bool:
        return _number(value) and 0 < value < math.inf


class NonNegative(Option):
    """A finite number >= 0."""

    what = "a finite number >= 0"

    def takes(self, value: object) -> bool:
        return _number(value) and 0 <= value < math.inf


class Whole(Option):
    """A whole number of at least `least`."""

    def __init__(self, default: int | None = None, *, least: int = 1) -> None:
        super().__init__(default)
        self.least, self.what = least, f"a whole number of at least {least}"

    def takes(self, value: object) -> bool:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return whole and value >= self.least


class Flag(Option):
    """True or false."""

    what = "true or false"

    def takes(self, value: object) -> bool:
        return isinstance(value, bool)


class Choice(Option):
    """One of several names, by default the first."""

    def __init__(self, *names: str, default: str | None = None) -> None:
        super().__init__(names[0] if default is None else default)
        self.names, self.what = names, f"one of {', '.join(map(repr, names))}"

    def check(self, name: str, value: object) -> None:
        if not isinstance(value, str) or value not in self.names:
            near = did_you_mean(value, self.names)
            raise Refused(f"{name} is {self.what}, not {value!r}{near}")


class Optional(Option):
    """A value of another kind, or None, which is the default."""

    def __init__(self, kind: Option) -> None:
        super().__init__(None)
        self.kind, self.what = kind, f"{kind.what}, or none"

    def takes(self, value: object) -> bool:
        return value is None or self.kind.takes(value)


class Name(Option):
    """A name that the mechanism looks up."""

    what = "a name"

    def takes(self, value: object) -> bool:
        return isinstance(value, str)


class Numbers(Option):
    """A list of numbers as in `Ordinary`, not empty."""

    what = "a list of numbers strictly between 1e-50 and 1e+50"

    def takes(self, value: object) -> bool:
        listed = isinstance(value, list | tuple) and len(value) > 0
        return listed and all(map(Ordinary().takes, value))


class Blocks(Option):
    """Lists of numbers of columns. No column is in two of them."""

    what = "a list of lists of column numbers from 0, without repetition"

    def takes(self, value: object) -> bool:
        if not (
            isinstance(value, list | tuple) and all(isinstance(b, list | tuple) for b in value)
        ):
            return False
        columns = [column for block in value for column in block]
        whole = all(value) and all(map(Whole(least=0).takes, columns))
        return whole and len(set(columns)) == len(columns)


class Settings(Option):
    """A mapping from option names to values or, with `lists`, to lists of values."""

    def __init__(self, default: dict, *, lists: bool = False) -> None:
        super().__init__(default)
        self.lists = lists
        self.what = "a mapping of names to " + ("lists of values" if lists else "values")

    def takes(self, value: object) -> bool:
        return isinstance(value, dict) and all(
            isinstance(name, str) and (not self.lists or (isinstance(entry, list) and entry))
            for name, entry in value.items()
        )


class Loss(Option):
    """A loss of `dp.losses`, given as a name, as {name: options}, or as an object."""

    def __init__(self, default: losses.Loss = "logistic") -> None:
        super().__init__(default)

    def check(self, name: str, value: object) -> None:
        losses.get(value)


ADJACENCY = {"adjacency": Choice(REPLACE_ONE, ADD_REMOVE)}
# Under add-remove, `public_n` replaces the number of records, which is otherwise taken as public.
PUBLIC_N = {"public_n": Optional(Whole())}


def public_size(p: object, at_most: bool = False) -> str:
    """Text appended to a guarantee's reason under add-remove: what n is.

    at_most: whether a release refuses more than `public_n` records (`stated_size`), so that the guarantee
    is for neighbours that have at most so many.
    """
    if p.adjacency != ADD_REMOVE:
        return ""
    if p.public_n is not None:
        records = "whatever the number of records is"
        if at_most:
            records = f"and neighbours have at most {p.public_n} records (a premise)"
        return f"; n is {p.public_n}, a number that was stated, {records}"
    return "; n is the number of records, taken as public: the same with or without a record"


def stated_size(name: str, p: object, records: int) -> int:
    """`public_n`, by default `records`. Raises `Refused` if `records` exceeds `public_n`."""
    n = p.public_n or records
    if records > n:
        raise Refused(
            f"{name}: there are {records} records, and public_n is {n}: it must be at least their "
            f"number, since nothing is certified for more"
        )
    return n


def unused_size(p: object) -> str:
    """Text appended to a guarantee's reason under add-remove if n is not used."""
    return "; n is not used" if p.adjacency == ADD_REMOVE else ""


LOSS = {"loss": Loss()}
# "paid" spends part of the guarantee on the mean target, around which scores are then offset.
OFFSET = {"offset": Choice("none", "paid")}
TOLERANCE = {"tolerance": NonNegative(1e-9)}
