"""Many small pairs of neighbours, for programs of which nothing is known.

`fixed` has the general pairs, and those on which one record may decide how others are treated. `Search`
combines sizes, rows and records, and goes on from the worst so far. `in_words` describes a pair.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dp_audit import branches, pairs, replay
from dp_privacy.accounting import ADD_REMOVE, REPLACE_ONE

__all__ = ["Domain", "Search", "changed", "fixed", "in_words"]

LENGTHS = (1.0, 0.5, 0.1, 1e-3)
RECORDS = (
    *("axis", "reversed", "other axis", "corner", "zero", "tenth", "duplicate"),
    *("short duplicate",),
)
CHOICES = {
    "n": (1, 2, 3, 5, 8, 20, 100),
    "d": (1, 2, 3),
    "others": ("random", "equal", "axes", "zero"),
    "length": LENGTHS,
    "first": RECORDS,
    "second": RECORDS,
    "labels": ((1, 1), (0, 0), (1, 0), (0, 1)),
    "classes": ("both", "one"),
}


class Domain(NamedTuple):
    """The records that a claim is for.

    bound: rows have at most this norm. values: both labels or, if they are `numbers`, the least and the
    largest target. rows: (X, y) of public rows whose neighbours are tried, too. missing: whether cells
    of a record may be NaN.
    """

    bound: float = 1.0
    values: tuple[float, float] = (-1, 1)
    numbers: bool = False
    adjacency: str = REPLACE_ONE
    rows: tuple | None = None
    missing: bool = False

    def neighbours(self, sides: tuple) -> tuple | None:
        """A pair for labels -1 and 1, with this domain's labels and adjacency; None if there is none."""
        sides = [(np.asarray(X, dtype=float), self._labels(np.asarray(y))) for X, y in sides]
        row = changed(sides)
        if row is None:
            return None
        if self.adjacency == ADD_REMOVE and len(sides[0][0]) == len(sides[1][0]):
            if len(sides[0][0]) < 2:
                return None
            sides[1] = tuple(np.delete(each, row, axis=0) for each in sides[0])
        return tuple(sides)

    def _labels(self, y):
        low, high = self.values
        y = low + (y + 1.0) / 2 * (high - low)
        whole = not self.numbers and float(low).is_integer() and float(high).is_integer()
        return y.astype(int) if whole else y


def changed(sides: tuple) -> int | None:
    """Index of the record in which the sides differ, or which the second lacks; None if they agree."""
    (X, y), (Z, z) = sides
    k = min(len(X), len(Z))
    differ = (X[:k] != Z[:k]).any(axis=1) | (y[:k] != z[:k])
    return int(differ.argmax()) if differ.any() else k if len(X) != len(Z) else None


def fixed(domain: Domain) -> Iterator[tuple]:
    """Yield pairs ((X, y), (X', y')) that suit most programs."""
    X, y = np.full((99, 1), 0.1), np.ones(99)
    Z = X.copy()
    Z[0] = 1.0
    tried = [((X, y), (Z, y)), ((Z, y), (X, y))]
    if domain.missing:
        tried.insert(0, _without_a_cell(*pairs.find("turned_row").sides))
    if domain.adjacency == ADD_REMOVE:  # of few rows, one is a larger share
        tried.insert(0, ((Z[:20], y[:20]), (X[:20], y[:20])))
    tried += [pairs.find(name).sides for name in replay.GENERAL]
    tried += [tuple(reversed(pairs.find("shortened_row").sides))]
    tried += [sides for _, *sides in branches.neighbours(12, 2)]
    if domain.numbers:
        tried += [sides for _, *sides in branches.numbers(12)]
    if domain.adjacency == ADD_REMOVE:
        tried += [pairs.find(name).sides for name in replay.RESIZED]
    for sides in tried:
        sides = domain.neighbours(_scaled(sides, domain.bound))
        if sides is not None:
            yield sides


def _without_a_cell(first, second):
    X = second[0].copy()
    X[changed((first, second)), 0] = np.nan
    return first, (X, first[1])


def _scaled(sides, bound):
    return tuple((bound * np.asarray(X, dtype=float), y) for X, y in sides)


class Search:
    """Pairs by chance, and in turn near the `worst` so far."""

    def __init__(self, domain: Domain, rng: np.random.Generator) -> None:
        self.domain, self.rng, self.worst, self.count = domain, rng, None, 0
        self.choices = dict(CHOICES)
        if domain.missing:  # on one side: two missing records are equal
            self.choices = CHOICES | {"second": (*RECORDS, "missing")}
        if domain.rows is not None:
            n, d = domain.rows[0].shape
            sizes = *(k for k in (3, 20, 100) if k < n), n
            self.choices |= {"n": sizes, "d": (d,), "others": ("rows",)}

    def next(self) -> tuple[dict, tuple]:
        """The next pair's choices, and the pair. Set `worst` to choices that are worth a try nearby."""
        while True:
            drawn = {name: self._one(name) for name in self.choices}
            self.count += 1
            if self.worst is not None and self.count % 2:
                kept = self.rng.permutation(list(self.choices))[2:]
                drawn |= {name: self.worst[name] for name in kept}
            sides = self.domain.neighbours(self._made(**drawn))
            if sides is not None:
                return drawn, sides

    def _one(self, name):
        return self.choices[name][self.rng.integers(len(self.choices[name]))]

    def _made(self, n, d, others, length, first, second, labels, classes):
        domain, axes = self.domain, np.eye(d)
        if others == "rows":
            low, high = domain.values
            X = domain.rows[0][:n] / domain.bound
            y = (domain.rows[1][:n] - low) / (high - low) * 2 - 1
        else:
            X = self.rng.standard_normal((n, d))
            X /= np.linalg.norm(X, axis=1, keepdims=True)
            X = {"equal": X[:1].repeat(n, 0), "axes": axes[np.arange(n) % d]}.get(others, X)
            X = X * (0.0 if others == "zero" else length)
            y = np.where((np.arange(n) % 2 == 1) & (classes == "both"), -1.0, 1.0)
        k = int(self.rng.integers(n)) if others == "rows" else 0
        record = {
            "axis": axes[0],
            "reversed": -axes[0],
            "other axis": axes[-1],
            "corner": np.full(d, d**-0.5),
            "zero": 0 * axes[0],
            "tenth": axes[0] / 10,
            "duplicate": X[k - 1],
            "short duplicate": X[k - 1] / 10,
            "missing": np.where(np.arange(d) == 0, np.nan, X[k]),
        }
        sides = []
        for name, label in zip((first, second), labels, strict=True):
            sides.append((X.copy(), y.copy()))
            sides[-1][0][k], sides[-1][1][k] = record[name], 2.0 * label - 1
        return _scaled(sides, domain.bound)


def in_words(sides: tuple) -> str:
    """What a pair is, such as "99 equal rows, one of them from .1 to 1"."""
    (X, y), (Z, z) = sides
    k, n = changed(sides), len(X)
    others = np.delete(X, k, axis=0)
    rows = "one row" if n == 1 else f"{n} rows"
    if len(others) > 1 and (others == others[0]).all():
        as_others = any((side[k : k + 1] == others[0]).all() and len(side) > k for side in (X, Z))
        rows = f"{n} equal rows" if as_others else f"{n} rows, equal but for one"
    whose = "" if n == 1 else ", one of them"
    if len(Z) != n:
        return f"{rows}{whose or ','} {_row(X[k])}, left out"
    parts = []
    if (X[k] != Z[k]).any():
        lengths = np.linalg.norm(X[k]), np.linalg.norm(Z[k])
        alike = all(map(np.isfinite, lengths)) and np.allclose(
            X[k] * lengths[1], Z[k] * lengths[0], rtol=1e-9, atol=0
        )
        told = lengths if alike and all(lengths) else (_row(X[k]), _row(Z[k]))
        parts.append(
            "from {} to {}".format(*(t if isinstance(t, str) else _short(t) for t in told))
        )
    if y[k] != z[k]:
        parts.append(f"with its label from {_short(y[k])} to {_short(z[k])}")
    return f"{rows}{whose} {' and '.join(parts)}"


def _row(row):
    numbers = [_short(each) for each in row[:4]] + ["..."] * (len(row) > 4)
    return numbers[0] if len(row) == 1 else f"({', '.join(numbers)})"


def _short(number):
    text = f"{float(number) + 0.0:.3g}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text
