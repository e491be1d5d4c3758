"""A preview of how a release reads a file, only for the owner of the rows.

Everything in a preview, even its number of sentences, is private and has no noise. Bounds or categories
changed after a preview depend on private rows.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dp.releasing import rows

PRIVATE = "PRIVATE: for the owner of the rows alone. Publish nothing of this: nothing pays for it."
EXAMPLES = 3  # maximum number of cells shown per column


class Looked:
    """Counts of a column's cells.

    unread: invalid cells. replaced: whether a value replaces missing cells. below, above: clipped
    numbers.
    """

    def __init__(self, column: rows.Column, reader: Callable) -> None:
        self.name, self.reader = column.name, reader
        self.unread, self.missing, self.below, self.above = Counter(), 0, 0, 0
        self.replaced = column.missing is not None
        self.ends = None
        if isinstance(column, rows.Number):
            self.ends = rows.fraction(column.low), rows.fraction(column.high)

    def see(self, cell: bytes) -> None:
        read = self.reader(cell) is not None
        if cell.lower() in rows.EMPTY and (not read or self.replaced):
            self.missing += 1
        elif not read:
            self.unread[cell.decode(errors="replace")] += 1
        elif self.ends:
            value = rows.value_of(rows.decimal(cell))
            self.below += value < self.ends[0]
            self.above += value > self.ends[1]


class Preview(NamedTuple):
    """Counts of a file.

    stated: the public number of lines. uneven: lines that `Schema.split` finds invalid. nothing: all
    invalid lines, which become zeros. shortened: rows beyond the public radius. labels: label -> number of
    valid lines; empty for numbers.
    """

    lines: int
    stated: int
    uneven: int
    nothing: int
    shortened: int
    labels: dict[str, int]
    columns: list[Looked]

    def sentences(self, classes: list[str] | None) -> list[str]:
        """The counts in words. classes: names of the labels -1 and 1."""
        said = []
        if self.lines != self.stated:
            said.append(
                f"The file has {self.lines:,} lines, and {self.stated:,} are stated: a release would stop."
            )
        said.append(
            f"{_lines(self.nothing, self.lines)} of {self.lines:,} would count nothing"
            + (f", {self.uneven:,} for another number of cells." if self.uneven else ".")
        )
        if self.shortened:
            said.append(f"{_lines(self.shortened, self.lines)} would be shortened to the radius.")
        for column in self.columns:
            said += column_sentences(column)
        if classes and self.labels:
            said.append(
                "Of the others, "
                + " and ".join(f"{self.labels[name]:,} are {name!r}" for name in classes)
                + "."
            )
        return said


def _lines(count, of):
    return f"{count:,} lines ({count / max(of, 1):.1%})"


def column_sentences(column: Looked) -> list[str]:
    """Sentences about a column."""
    said = []
    if column.missing:
        what = "replaced by the stated value" if column.replaced else "so their lines count nothing"
        said.append(f"{column.name}: {column.missing:,} cells are missing, {what}.")
    if column.unread:
        shown = ", ".join(f"{cell!r}" for cell, _ in column.unread.most_common(EXAMPLES))
        more = ", .." if len(column.unread) > EXAMPLES else ""
        said.append(
            f"{column.name}: {column.unread.total():,} cells are no number or in no category, so their "
            f"lines count nothing: {shown}{more}"
        )
    for count, side in ((column.below, "below"), (column.above, "above")):
        if count:
            said.append(f"{column.name}: {count:,} numbers are {side} the bounds, and are clipped.")
    return said


def preview(
    schema: rows.Schema, lines: list[bytes], stated: int, classes: list[str] | None = None
) -> Preview:
    """The `Preview` of a file's lines without its header."""
    pairs = zip(schema.columns, schema.cells, strict=True)
    looked = [None if reader is None else Looked(column, reader) for column, reader in pairs]
    uneven = nothing = shortened = 0
    labels: Counter = Counter()
    v = np.zeros(schema.d, np.int32)
    for line in lines:
        cells = schema.split(line)
        if cells is None:
            uneven += 1
        else:
            for column, cell in zip(looked, cells, strict=True):
                if column is not None:
                    column.see(cell)
        v[:] = 0
        label = schema.record(line, v)
        nothing += not v.any()
        shortened += int(v.astype(np.int64) @ v.astype(np.int64)) > rows.ONE**2
        if classes and label:
            labels[classes[label > 0]] += 1
    columns = [column for column in looked if column is not None]
    return Preview(len(lines), stated, uneven, nothing, shortened, labels, columns)
