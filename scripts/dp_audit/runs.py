"""Runs of a function with recorded noise, and what they release, as numbers and words."""

from collections.abc import Callable, Iterator, MappingView
from typing import NamedTuple

import numpy as np

from dp_audit.recorder import Parted, Recorder, Tape, plain

__all__ = [
    *("Run", "equal", "neighbours", "numbers_of", "released_parts", "run_both", "run_once"),
    "words_of",
]


class Run(NamedTuple):
    """One run of a function: its tape and its release as `released_parts`.

    released: None if the run failed. problem: why it failed, or "".
    """

    tape: Tape
    released: object
    problem: str


def run_once(function: Callable, side: tuple, seed: int, tape: Tape) -> Run:
    """Run function(X, y, rng) on copies of one side, (X, y), with a `Recorder` in place of rng."""
    X, y = (each.copy() if isinstance(each, np.ndarray) else each for each in side)
    try:
        with np.errstate(all="ignore"):
            released = released_parts(function(X, y, Recorder(np.random.PCG64(seed), tape)))
        return Run(tape, released, "")
    except Parted:
        return Run(tape, None, "it uses other noisy values")
    except Exception as error:  # any error of one side alone tells the sides apart
        return Run(tape, None, f"{type(error).__name__}: {error}")


def run_both(
    function: Callable,
    sides: tuple[tuple, tuple],
    seed: int,
    row: int | None = None,
    place: int | None = None,
) -> tuple[Run, Run]:
    """The runs on both sides, the second with the first's noisy values.

    row, place: put this row at this place of all random orders of the rows.
    """
    first = run_once(function, sides[0], seed, Tape(None, row, place))
    return first, run_once(function, sides[1], seed, Tape(first.tape, row, place))


def neighbours(side: tuple) -> Iterator[tuple]:
    """Neighbours of a data set: one of the first rows becomes a copy of the next."""
    X, y = map(np.asarray, side)
    for k in range(min(len(X), 8) if X.ndim else 0):
        other = X.copy(), y.copy()
        for each in other:
            if each.ndim:
                each[k] = each[(k + 1) % len(each)]
        yield other


def released_parts(thing: object) -> object:
    """A release as nested dictionaries, lists, arrays, numbers and words.

    Objects of any other class become dictionaries of their attributes, and sets and iterators lists.
    """
    thing = plain(thing)
    if isinstance(thing, Iterator | MappingView):
        return [released_parts(part) for part in thing]
    if isinstance(thing, dict):
        return {key: released_parts(value) for key, value in thing.items()}
    if isinstance(thing, set | frozenset):
        return sorted(map(released_parts, thing), key=repr)
    if isinstance(thing, tuple | list):
        return list(map(released_parts, thing))
    slots = [name for each in type(thing).__mro__ for name in vars(each).get("__slots__", ())]
    if hasattr(thing, "__array__") or callable(thing) or not (slots or hasattr(thing, "__dict__")):
        return thing
    fields = getattr(thing, "__dict__", {})
    fields = fields | {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
    return {"class": type(thing).__name__} | released_parts(fields)


def numbers_of(released: object) -> np.ndarray:
    """All numbers of a release, (m,), in order."""
    if isinstance(released, dict | list):
        parts = released.values() if isinstance(released, dict) else released
        return np.concatenate([np.zeros(0), *map(numbers_of, parts)])
    array = np.asarray(released)
    return array.ravel().astype(float) if array.dtype.kind in "fiub" else np.zeros(0)


def words_of(released: object) -> object:
    """All of a release that is no number, in order."""
    if isinstance(released, dict | list):
        parts = released.items() if isinstance(released, dict) else enumerate(released)
        return [(key, words_of(part)) for key, part in parts]
    return "" if np.asarray(released).dtype.kind in "fiub" else repr(released)


def equal(one: object, two: object) -> bool:
    """Whether two releases are equal bit for bit, where NaN equals NaN."""
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(equal(one[key], two[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(map(equal, one, two))
    one, two = np.asarray(one), np.asarray(two)
    return np.array_equal(one, two, equal_nan=one.dtype.kind == "f" and two.dtype.kind == "f")
