"""A preview of how a release reads a file, only for the owner of the rows.

Everything in a preview, even its number of sentences, is private and has no noise. It is printed and
stored nowhere. The book records only that these rows were seen under this request, which a release needs.
Bounds or categories changed after a preview depend on private rows, and the card says so.
"""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dp_release import rows
from dp_release.formats import Format, likely_encoding
from dp_release.persons import Persons, Read

PRIVATE = "PRIVATE: for the owner of the rows alone. Publish nothing of this: nothing pays for it."
EXAMPLES = 3  # maximum number of cells shown per column
FREQUENT = 0.01  # share of the lines above which one extreme number may be a code
CODES = 5  # maximum number of codes looked for at either end of a column


class Looked:
    """Counts of a column's cells, over lines with the right number of cells.

    read: valid cells, with the clipped ones. unread: invalid cells. replaced: whether a value replaces
    missing cells. below, above: clipped numbers. others: labels that are the first class because they are
    not listed. foreign: (line, cell) of the first that is not in the file's encoding, or is rather UTF-8.
    largest: the reader's value at a bound. within: numbers between the bounds.
    """

    def __init__(self, column: rows.Column, reader: Callable, largest: int, format: Format) -> None:
        self.name, self.reader, self.largest, self.format = column.name, reader, largest, format
        self.read, self.missing, self.foreign, self.within = 0, 0, None, Counter()
        self.unread, self.below, self.above, self.others = (
            Counter(),
            Counter(),
            Counter(),
            Counter(),
        )
        self.replaced, self.ends, self.rest = column.missing is not None, None, False
        listed = ()  # cells that are listed, even if they look missing
        self.found = getattr(column, "find", None) is not None
        if isinstance(column, rows.Number):
            self.ends = rows.fraction(column.low), rows.fraction(column.high)
        elif isinstance(column, rows.Category):
            listed = column.values
        elif column.above is None:
            listed = (*column.positive, *column.negative)
            self.rest = not column.negative
        self.is_missing = rows.is_missing(column.codes, format, listed)

    def see(self, cell: bytes, line: int = 1) -> None:
        value = self.reader(cell)
        if self.is_missing(cell):
            self.missing += 1
        elif value is None:
            self.unread[self._text(cell)] += 1
            if self.foreign is None and _is_foreign(cell, self.format.encoding):
                self.foreign = line, cell
        else:
            self.read += 1
            if self.ends:
                size = value if isinstance(value, int) else value[1]
                if abs(size) == self.largest:  # at a bound, or beyond
                    self._place(cell)
                else:
                    self.within[cell] += 1
            elif self.rest and value < 0:
                self.others[self._text(cell)] += 1

    def _place(self, cell):
        number = rows.value_of(rows.decimal(self.format.plain(cell)))
        if number < self.ends[0]:
            self.below[self._text(cell)] += 1
        elif number > self.ends[1]:
            self.above[self._text(cell)] += 1
        else:
            self.within[cell] += 1

    def _text(self, cell):
        return cell.decode(self.format.encoding, errors="replace")

    def suspects(self, lines: int) -> dict[str, int]:
        """Numbers between the bounds that may be codes, with their counts.

        Each is at more than one line of a hundred. It is beyond the middle 98 % of the other numbers, and
        not simply the next step of their scale.
        """
        numbers = Counter()
        for cell, count in self.within.items():
            numbers[float(rows.value_of(rows.decimal(self.format.plain(cell))))] += count
        found = _ends(numbers, max(FREQUENT * lines, 2))
        return {f"{number:.9g}": numbers[number] for number in found}


def _ends(numbers, frequent):
    """The keys of a Counter that stand apart at its ends, each counted more than `frequent` times."""
    found = []
    for side in (1, -1):
        values = sorted(numbers, reverse=side > 0)
        often = [value for value in values if numbers[value] > frequent][:CODES]
        for k in range(len(often), 0, -1):
            apart = set(often[:k])
            others = [value for value in values if value not in apart]
            total = sum(numbers[value] for value in others)
            inner, seen = [], 0
            for value in others:
                if 0.01 * total <= seen + numbers[value] and seen < 0.99 * total:
                    inner.append(value)
                seen += numbers[value]
            steps = sorted(abs(a - b) for a, b in pairwise(inner))
            if steps and side * (often[k - 1] - inner[0]) > 2 * steps[len(steps) // 2]:
                found += often[:k]
                break
    return found


def _is_foreign(cell, encoding):
    """Whether a cell is not in this encoding, or is in UTF-8 although this one is of single bytes."""
    if cell.isascii():
        return False
    return _is_in(cell, encoding) == (encoding != "utf-8" and _is_in(cell, "utf-8"))


def _is_in(cell, encoding):
    try:
        cell.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


class Preview(NamedTuple):
    """Counts of a file.

    stated: the public number of lines. torn: lines with invalid quotes. comments: lines that are comments.
    uneven: these, lines with another number of cells, and too long lines. widths: another number of cells
    -> lines. nothing: all lines that become zeros. shortened: rows beyond the public radius. labels: label
    -> number of valid lines; empty for numbers. target: position in `columns`.
    """

    lines: int
    stated: int
    torn: int
    comments: int
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
        if self.comments:
            yield (
                f"{_lines(self.comments, self.lines)} are comments, which count nothing, but are among the "
                f"lines that are stated."
            )
        for width, count in self.widths.most_common(EXAMPLES):
            yield f"{_lines(count, self.lines)} have {width:,} cells, and the header has another number."


def of_people(read: Read, persons: Persons) -> list[str]:
    """How lines become people, in words. Private like all of a preview."""
    found, sizes = len(read.people), Counter(map(len, read.people.values()))
    said = [f"{persons.column}: {found:,} people have a row that is read."]
    if found > persons.people:
        said.append(
            f"{persons.column}: {persons.people:,} are stated, so {found - persons.people:,} of them, "
            f"chosen by the key, would count nothing. More people than stated are no error."
        )
    if read.nameless:
        said.append(f"{persons.column}: {read.nameless:,} rows have no person, and count nothing.")
    if read.dropped:
        said.append(
            f"{persons.column}: {sizes[persons.most]:,} people have {persons.most} rows or more. "
            f"{read.dropped:,} rows beyond the first {persons.most} of a person count nothing."
        )
    alike = Counter(map(_plain, read.people))
    if (twice := sum(count > 1 for count in alike.values())) > 0:
        said.append(
            f"{persons.column}: {twice:,} ids differ from another in case, leading zeros or a final .0 "
            f"alone. They are compared byte by byte, so a person written in two ways is two people."
        )
    return said


def _plain(own):
    own = own.lower().lstrip(b"0")
    return own.removesuffix(b".0")


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
                said.append(f"{column.name}: {count:,} of them are {most}. {_code(column, most)}")
    for number, count in column.suspects(lines).items():
        said.append(
            f"{column.name}: {count:,} numbers are {number}, apart from the others. {_code(column, number)}"
        )
    if column.others:
        said.append(
            f"{column.name}: {column.others.total():,} labels are {classes[0]!r} because they are not "
            f"listed: {_examples(column.others, counts=True)}"
        )
    return said


def _code(column, number):
    return (
        f"If this is a code for a missing value, state it: "
        f"`missing: {{{column.name}: {{codes: [{number.replace(',', '.')}]}}}}`."
    )


def _examples(cells, counts=False):
    most = cells.most_common(EXAMPLES)
    shown = ", ".join(f"{cell!r}" + f" ({count:,})" * counts for cell, count in most)
    return shown + (", .." if len(cells) > EXAMPLES else "")


def _reasons(column):
    """What is probably wrong with invalid cells."""
    hints = Counter()
    if column.ends:
        for cell, n in column.unread.items():
            hints[column.format.hint(cell)] += n
    for hint, count in hints.items():
        if hint:
            yield f"{column.name}: {count:,} cells have {hint}."
    if column.foreign is not None:
        line, cell = column.foreign
        encoding = "utf-8" if _is_in(cell, "utf-8") else likely_encoding(cell)
        yield (
            f"{column.name}: such a cell is not {column.format.encoding.upper()}: in line {line:,} below "
            f"the names, it is likely {cell.decode(encoding, 'replace')!r}, so set `encoding: {encoding}`."
        )


def preview(
    schema: rows.Schema, lines: list[bytes], stated: int, classes: list[str] | None = None
) -> Preview:
    """The `Preview` of a file's lines without its header."""
    looked = [
        None
        if reader is None
        else Looked(column, reader, rows.ONE if k == schema.target else schema.each, schema.format)
        for k, (column, reader) in enumerate(zip(schema.columns, schema.cells, strict=True))
    ]
    torn = comments = uneven = nothing = shortened = 0
    widths, labels = Counter(), Counter()
    v = np.zeros(schema.d, np.int32)
    for number, line in enumerate(lines, 1):
        cells = schema.split(line)
        if cells is None:
            uneven += 1
            if len(line) <= schema.longest:
                parts = rows.cells_of(line, schema.separator)
                torn += parts is None
                if parts is not None and schema.format.is_comment(parts):
                    comments += 1
                elif parts is not None:
                    widths[len(parts)] += 1
        else:
            for column, cell in zip(looked, cells, strict=True):
                if column is not None:
                    column.see(cell, number)
        v[:] = 0
        label = schema.record(line, v)
        nothing += not v.any()
        shortened += int(v.astype(np.int64) @ v.astype(np.int64)) > rows.ONE**2
        if classes and label:
            labels[classes[label > 0]] += 1
    columns = [column for column in looked if column is not None]
    target = columns.index(looked[schema.target])
    return Preview(
        *(
            len(lines),
            stated,
            torn,
            comments,
            uneven,
            widths,
            nothing,
            shortened,
            labels,
            columns,
            target,
        )
    )
