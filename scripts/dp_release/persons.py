"""Releases that protect a person, not a row: which rows a person has in a matrix of public size.

The number of people N and the most rows K of one person are public. The number of lines is not: it changes
with a person's rows. The matrix has N K slots. A person's rows take K of them, and empty slots are rows of
zeros, which add nothing. `dp.proofs.person_tilt` proves how much noise suffices. Its neighbours differ in
all rows of one person, of which there may be any number, also none.

THE RULES, and why neighbours' matrices differ in one person's slots alone:

- A person is the text of one column, compared byte by byte ("7" and "07" are two), without spaces around
  it. A row without this text (`dp_release.rows.EMPTY`) or one that does not parse (`Schema.record`) is
  left out. So a line depends on nothing else, and a person's lines on no other person's.
- Of a person's lines that are read, the first K in the file's order are kept. That rule looks at this
  person's lines alone. If each person counts once, each of c kept rows has the weight floor(2^20/c) 2^-20,
  so that a person's weights add up to at most 1.
- LEMMA 5. Of all people, the N with the smallest keyed hashes of their ids are kept, in the order of the
  hashes; the rest is dropped. Then tables that differ in one person give matrices that differ in one
  person, up to the order. Proof. Let R be the other people. The N smallest of R and {p} are those of R, or
  the N - 1 smallest of R and p. The same holds for R and {p'}, and for R alone. All of these contain the
  N - 1 smallest of R, so any two of them differ in at most one person. An empty slot is a person without
  rows. The hash is HMAC-SHA256 under a key that the release's key determines, so it favours nobody.

So nothing is refused if there are other numbers of people or lines than expected, since neither is public.
The order of rows is no function of the file's, and every theorem here holds for any order of rows.

"Person" is the data holder's claim: that all rows of a person have the same id, and no two people share
one. The card says so. A person with two ids is two people, whose epsilons add up.
"""

import hmac
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dp_privacy.errors import Refused
from dp_release import rows
from dp_release.draws import Stream

ROWS, PEOPLE = "rows", "persons"
MOST = 1000  # of `most`
SLOTS = 10**9  # of people times most


class Persons(NamedTuple):
    """The public facts of a release that protects people.

    Attributes
    ----------
    column : str
        The column that says whose a row is. It is not learnt from.
    people : int
        Number of people.
    most : int
        The most rows of a person that are used.
    count : str
        "rows": every row counts. "persons": every person counts once, so what is estimated is a mean over
        people.
    """

    column: str
    people: int
    most: int
    count: str = ROWS

    @property
    def slots(self) -> int:
        """Number of rows of the matrix."""
        return self.people * self.most

    @property
    def weight(self) -> int:
        """W of `dp.proofs.person_tilt`: the largest total weight of a person."""
        return 1 if self.count == PEOPLE else self.most

    @property
    def weighted(self) -> bool:
        """Whether rows can have weights below 1."""
        return self.count == PEOPLE and self.most > 1


def of(values: dict | None, schema: rows.Schema) -> Persons | None:
    """The `Persons` of a request. Raises `Refused` for values without a proof. None: a row is protected."""
    if values is None:
        return None
    stated = set(values) if isinstance(values, dict) else set()
    if not {"column", "people", "most"} <= stated <= set(Persons._fields):
        raise Refused("person: state column, most and people, and perhaps count")
    persons = Persons(**values)
    if persons.count not in (ROWS, PEOPLE):
        raise Refused(
            f"person.count: is {ROWS!r}, or {PEOPLE!r} if every person counts once, not "
            f"{persons.count!r}"
        )
    for key, limit in (("people", SLOTS), ("most", MOST)):
        value = getattr(persons, key)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= limit:
            raise Refused(f"person.{key}: is a whole number from 1 to {limit:,}, not {value!r}")
    if persons.slots > SLOTS:
        raise Refused(f"person: {persons.slots:,} rows are more than {SLOTS:,}")
    place(schema, persons)
    return persons


def place(schema: rows.Schema, persons: Persons) -> int:
    """The position of the id among a line's cells."""
    for k, column in enumerate(schema.columns):
        if column.name == persons.column:
            if not isinstance(column, rows.Unused):
                raise Refused(
                    f"person.column: {persons.column!r} says whose a row is, so nothing is learnt from it: "
                    f"leave it out of bounds, categories and target"
                )
            return k
    raise Refused(f"person.column: the file has no column {persons.column!r}")


class Table(NamedTuple):
    """Rows of people, (slots, d) and (slots,), as `Schema.rows` returns rows; and their weights.

    shares: (slots,) in units of 2^-20, 0 in empty slots; None if all are 1.
    """

    V: np.ndarray
    y: np.ndarray
    shares: np.ndarray | None


class Read(NamedTuple):
    """People in the order of the file: id -> their kept rows and labels. Private.

    nameless: lines that parse and have no id. dropped: rows beyond the most of their person.
    """

    people: dict[bytes, list[tuple[np.ndarray, int]]]
    nameless: int
    dropped: int


def read(schema: rows.Schema, lines: Iterable[bytes], persons: Persons) -> Read:
    """The people of a file. Each line is read by itself, and a person's rows by themselves."""
    column, people = place(schema, persons), {}
    nameless = dropped = 0
    v = np.zeros(schema.d, np.int32)
    for line in lines:
        v[:] = 0
        label = schema.record(line, v)
        if not v.any() or (label == 0 and not schema.numbers):
            continue
        own = schema.split(line)[column]
        if own.lower() in rows.EMPTY:
            nameless += 1
            continue
        kept = people.setdefault(own, [])
        if len(kept) < persons.most:
            kept.append((v.copy(), label))
        else:
            dropped += 1
    return Read(people, nameless, dropped)


def table(schema: rows.Schema, lines: Iterable[bytes], persons: Persons, key: bytes) -> Table:
    """The `Table` of a file under a release's key."""
    people = read(schema, lines, persons).people
    return filled([people[own] for own in chosen(people, persons.people, key)], schema.d, persons)


def chosen(ids: Iterable[bytes], count: int, key: bytes) -> list[bytes]:
    """At most `count` of different ids, by lemma 5."""
    own = Stream(key, "people").bits(256).to_bytes(32, "big")
    return sorted(ids, key=lambda each: hmac.digest(own, each, "sha256"))[:count]


def filled(people: Sequence[Sequence[tuple[np.ndarray, int]]], d: int, persons: Persons) -> Table:
    """The `Table` of at most `persons.people` people, each with at most `persons.most` rows."""
    if len(people) > persons.people or any(len(each) > persons.most for each in people):
        raise ValueError("there are more people, or rows of a person, than slots")
    V, y = np.zeros((persons.slots, d), np.int32), np.zeros(persons.slots, np.int32)
    shares = np.zeros(persons.slots, np.int32) if persons.weighted else None
    for k, own in enumerate(people):
        for j, (v, label) in enumerate(own, k * persons.most):
            V[j], y[j] = v, label
            if shares is not None:
                shares[j] = rows.ONE // len(own)
    return Table(rows.shortened(V), y, shares)


def check_shares(shares: np.ndarray | None, persons: Persons | None, n: int) -> np.ndarray | None:
    """The weights of rows, n of which stand by person, as floats (n,); None if all are 1.

    Raises `Refused` unless those of each person are at least 0 and add up to 1 at most, as from `filled`.
    """
    if persons is None or not persons.weighted:
        if shares is not None:
            raise Refused("rows have weights only if every person counts once")
        return None
    shares = np.asarray(shares)
    if shares.shape != (n,) or shares.dtype.kind not in "iu" or n % persons.most:
        raise Refused("every row has a weight, in units of 2^-20")
    own = shares.astype(np.int64).reshape(-1, persons.most)
    if (own < 0).any() or (own.sum(axis=1) > rows.ONE).any():
        raise Refused("the weights of a person's rows are at least 0, and add up to 1 at most")
    return shares / rows.ONE
