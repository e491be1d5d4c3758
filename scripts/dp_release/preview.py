"""A preview of how a release reads a file, only for the owner of the rows.

Everything in a preview, even its number of sentences, is private and has no noise. It is printed and
stored nowhere. The book records only that these rows were seen under this request, which a release needs.
Bounds or categories changed after a preview depend on private rows, and the card says so.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dp_release import rows

PRIVATE = "PRIVATE: for the owner of the rows alone. Publish nothing of this: nothing pays for it."
EXAMPLES = 3  # maximum number of cells shown per column
FREQUENT = 0.01  # share of the lines above which one number beyond the bounds may be a code
DECIMAL_COMMA = re.compile(r"[+-]?\d+(\.\d{3})*,\d+")


class Looked:
    """Counts of a column's cells, over lines with the right number of cells.

    read: valid cells, with the clipped ones. unread: invalid cells. replaced: whether a value replaces
    missing cells. below, above: clipped numbers. others: labels that are the first class because they are
    not listed. foreign: an invalid cell that is not UTF-8. largest: the reader's value at a bound.
    """

    def __init__(self, column: rows.Column, reader: Callable, largest: int) -> None:
        self.name, self.reader, self.largest = column.name, reader, largest
        self.read, self.missing, self.foreign = 0, 0, None
        self.unread, self.below, self.above, self.others = (
            Counter(),
            Counter(),
            Counter(),
            Counter(),
        )
        self.replaced, self.ends, self.rest = column.missing is not None, None, False
        self.found = getattr(column, "find", None) is not None
        self.listed = set()  # cells that are listed, even if they look missing
        if isinstance(column, rows.Number):
            self.ends = rows.fraction(column.low), rows.fraction(column.high)
        elif isinstance(column, rows.Category):
            self.listed = {str(value).encode() for value in column.values}
        elif column.above is None:
            self.listed = {str(value).encode() for value in (*column.positive, *column.negative)}
            self.rest = not column.negative

    def see(self, cell: bytes) -> None:
        value = self.reader(cell)
        empty = cell.lower() in rows.EMPTY and cell not in self.listed
        if empty and (value is None or self.replaced):
            self.missing += 1
        elif value is None:
            self.unread[_text(cell)] += 1
            if not _is_utf8(cell):
                self.foreign = cell
        else:
            self.read += 1
            if self.ends:
                size = value if isinstance(value, int) else value[1]
                if abs(size) == self.largest:  # at a bound, or beyond
                    self._place(cell)
            elif self.rest and value < 0:
                self.others[_text(cell)] += 1

    def _place(self, cell):
        number = rows.value_of(rows.decimal(cell))
        if number < self.ends[0]:
            self.below[_text(cell)] += 1
        elif number > self.ends[1]:
            self.above[_text(cell)] += 1


def _text(cell):
    return cell.decode(errors="replace")


def _is_utf8(cell):
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return True


class Preview(NamedTuple):
    """Counts of a file.

    stated: the public number of lines. torn: lines with invalid quotes. uneven: these, lines with another
    number of cells, and too long lines. widths: another number of cells -> lines. nothing: all lines that
    become zeros. shortened: rows beyond the public radius. labels: label -> number of valid lines; empty
    for numbers. target: position in `columns`.
    """

    lines: int
    stated: int
    torn: int
    uneven: int
    widths: Counter
    nothing: int
    shortened: int
    labels: dict[str, int]
    columns: list[Looked]
    target: int

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
        said += self._of_lines()
        if self.shortened:
            said.append(f"{_lines(self.shortened, self.lines)} would be shortened to the radius.")
        for k, column in enumerate(self.columns):
            labels = classes if k == self.target else None
            said += column_sentences(column, self.lines, labels)
        if classes and self.labels:
            said.append(
                "Of the others, "
                + " and ".join(f"{self.labels[name]:,} are {name!r}" for name in classes)
                + "."
            )
            said += [
                f"No line is {name!r}: a model of one class learns nothing."
                for name in classes
                if not self.labels[name]
            ]
        return said

    def _of_lines(self):
        if self.torn:
            yield (
                f"In {_lines(self.torn, self.lines)} quotes are invalid. A record is one line: replace "
                f"line feeds in quotes by spaces."
            )
        for width, count in self.widths.most_common(EXAMPLES):
            yield f"{_lines(count, self.lines)} have {width:,} cells, and the header has another number."


def _lines(count, of):
    return f"{count:,} lines ({count / max(of, 1):.1%})"


def column_sentences(column: Looked, lines: int, classes: list[str] | None = None) -> list[str]:
    """Sentences about a column. classes: names of the labels, if the column is the target of classes."""
    said = [f"{column.name}: {column.read:,} cells are read."]
    if column.found:
        said.append(
            f"{column.name}: the release finds its bounds, with noise, between the public least and most. "
            f"Change nothing here by what you know of the rows."
        )
    if column.missing:
        what = "replaced by the stated value" if column.replaced else "so their lines count nothing"
        said.append(f"{column.name}: {column.missing:,} cells are missing, {what}.")
    if column.unread:
        what = "no number or in no category"
        if classes:
            what = f"neither {classes[0]!r} nor {classes[1]!r}"
        said.append(
            f"{column.name}: {column.unread.total():,} cells are {what}, so their "
            f"lines count nothing: {_examples(column.unread)}"
        )
        said += _reasons(column)
    for numbers, side in ((column.below, "below"), (column.above, "above")):
        if numbers:
            said.append(
                f"{column.name}: {numbers.total():,} numbers are {side} the bounds, and are clipped."
            )
            (most, count), *_ = numbers.most_common(1)
            if count > FREQUENT * lines:
                said.append(
                    f"{column.name}: {count:,} of them are {most}. If this is a code for a missing value, "
                    f"replace it by an empty cell."
                )
    if column.others:
        said.append(
            f"{column.name}: {column.others.total():,} labels are {classes[0]!r} because they are not "
            f"listed: {_examples(column.others, counts=True)}"
        )
    return said


def _examples(cells, counts=False):
    most = cells.most_common(EXAMPLES)
    shown = ", ".join(f"{cell!r}" + f" ({count:,})" * counts for cell, count in most)
    return shown + (", .." if len(cells) > EXAMPLES else "")


def _reasons(column):
    """What is probably wrong with invalid cells."""
    if column.ends:
        commas = sum(n for cell, n in column.unread.items() if DECIMAL_COMMA.fullmatch(cell))
        if commas:
            yield f"{column.name}: {commas:,} cells have a decimal comma: write a decimal point."
    if column.foreign is not None:
        yield (
            f"{column.name}: such cells are not UTF-8, as {column.foreign.decode('latin-1')!r} in Latin-1: "
            f"save the file as UTF-8."
        )


def preview(
    schema: rows.Schema, lines: list[bytes], stated: int, classes: list[str] | None = None
) -> Preview:
    """The `Preview` of a file's lines without its header."""
    looked = [
        None
        if reader is None
        else Looked(column, reader, rows.ONE if k == schema.target else schema.each)
        for k, (column, reader) in enumerate(zip(schema.columns, schema.cells, strict=True))
    ]
    torn = uneven = nothing = shortened = 0
    widths, labels = Counter(), Counter()
    v = np.zeros(schema.d, np.int32)
    for line in lines:
        cells = schema.split(line)
        if cells is None:
            uneven += 1
            if len(line) <= schema.longest:
                parts = rows.cells_of(line, schema.separator)
                torn += parts is None
                if parts is not None:
                    widths[len(parts)] += 1
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
    target = columns.index(looked[schema.target])
    return Preview(
        *(len(lines), stated, torn, uneven, widths, nothing, shortened, labels, columns, target)
    )
